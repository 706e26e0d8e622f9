'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { GameData } = require('../lib/data');
const { Manager } = require('../lib/manager');
const { reportTo } = require('../lib/report');
const { Runner } = require('../lib/runner');
const { DO } = require('../lib/wire');
const { REVISION, folderOf, testData } = require('./conversation');
const { frame, run } = require('./program');

const json = (/** @type {any} */ line) => frame(0, Buffer.from(JSON.stringify(line)));
const opened = (/** @type {number} */ conversation) => json({ type: 'opened', conversation, family: 'tera' });

/** A message for the mods. @param {number} number @param {'client' | 'server'} from @param {Buffer} bytes @param {number} [start] */
function shown(number, from, bytes, start = number, flags = 0) {
  const head = Buffer.alloc(36);
  head.writeBigUInt64LE(1n, 0);
  head.writeBigUInt64LE(BigInt(number), 8);
  head[16] = from === 'server' ? 1 : 0;
  head[17] = flags;
  head.writeBigUInt64LE(BigInt(start), 18);
  return frame(1, Buffer.concat([head, bytes]));
}

/** Frames from the mods, as objects. @param {Buffer} bytes */
function parse(bytes) {
  const frames = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32LE(at);
    const content = bytes.subarray(at + 5, at + 4 + length);
    const kind = bytes[at + 4];
    at += 4 + length;
    if (kind === 0) {
      frames.push(JSON.parse(content.toString()));
      continue;
    }
    let read = kind === 2 ? 17 : 8;
    const count = content.readUInt16LE(read);
    read += 2;
    const add = [];
    for (let index = 0; index < count; index++) {
      const name = content.readUInt16LE(read + 1);
      const size = content.readUInt32LE(read + 3 + name);
      add.push([content[read] ? 'server' : 'client', content.toString('latin1', read + 3, read + 3 + name), size]);
      read += 7 + name + size;
    }
    frames.push(kind === 3 ? { add } : { id: Number(content.readBigUInt64LE(8)), do: content[16], add, bytes: content.subarray(read) });
  }
  return frames;
}

class FakeProxy {
  /** @param {string} body of a mod @param {any} [world] */
  constructor(body, world = { map: REVISION }) {
    const mods = folderOf({ 'a.js': `module.exports = function (mod) { const seen = this.seen = []; ${body} }` });
    this.data = GameData.load([testData({ 'C_CHECK_VERSION.1.def': '', 'protocol.8.map': 'C_CHAT 5\nC_CHECK_VERSION 19900' })]);
    this.manager = new Manager(mods);
    this.manager.loadAll();
    this.sent = Buffer.alloc(0);
    this.runner = new Runner(this.manager, this.data, world, (bytes) => { this.sent = Buffer.concat([this.sent, bytes]); });
    this.runner.start();
    this.hello = JSON.parse(this.take().toString());
    this.receive(json({ type: 'welcome' }));
  }

  take() {
    const bytes = this.sent;
    this.sent = Buffer.alloc(0);
    return bytes;
  }

  /** @param {Buffer[]} frames */
  receive(...frames) {
    this.runner.receive(Buffer.concat(frames));
    return parse(this.take());
  }

  /** @param {string} name */
  code(name, revision = REVISION) { return Number(this.data.maps.get(revision)?.get(name)); }
  get mod() { return [...this.manager.loaded[0].networks.values()][0]?.instance; }

  /** @param {string} name @param {number[]} body */
  message(name, body = []) {
    const bytes = Buffer.from([4 + body.length, 0, 0, 0, ...body]);
    bytes.writeUInt16LE(this.code(name), 2);
    return bytes;
  }
}

const ids = (/** @type {any} */ line) => line.subscriptions.map((/** @type {any} */ one) => one.id);

test('only hooked messages are subscribed to, and answers follow the mods\' decisions', () => {
  const proxy = new FakeProxy(`
    mod.hook('S_CHAT', 'raw', (code, data) => {
      switch (data[4]) {
        case 1: return false;
        case 2: return Buffer.concat([data, Buffer.from([9])]);
        case 3: mod.toServer(Buffer.from([4, 0, 1, 0])); mod.send('C_CHAT', 1); return false;
        case 4: return true;
        case 5: for (let i = 0; i < 300; i++) mod.toClient(Buffer.from([4, 0, 1, 0]));
      }
    });
    mod.hook('S_CHAT', 'event', { filter: { silenced: true }, order: 9 }, () => { seen.push('silenced'); });`);
  assert.deepStrictEqual([proxy.hello.form, proxy.hello.catch_up, ids(proxy.hello)], ['binary', true, ['C_CHECK_VERSION']]);
  assert.strictEqual(proxy.hello.subscriptions[0].filter, 'tera.C_CHECK_VERSION or tera.19900');
  const [subscribe, sync] = proxy.receive(opened(1));
  assert(ids(subscribe).includes('S_CHAT') && ids(subscribe).includes('S_LOGIN') && !ids(subscribe).includes('S_MIXED'));
  assert.strictEqual(sync.type, 'sync');
  proxy.receive(json({ type: 'synced', id: sync.id }));
  const say = (/** @type {number} */ what, flags = 0) => proxy.receive(shown(what, 'server', proxy.message('S_CHAT', [what]), what, flags));
  assert.deepStrictEqual(say(0), [{ id: 0, do: DO.pass, add: [], bytes: Buffer.alloc(0) }]);
  assert.deepStrictEqual(say(1), [{ id: 1, do: DO.drop, add: [], bytes: Buffer.alloc(0) }]);
  assert.deepStrictEqual(say(2)[0].bytes, Buffer.concat([proxy.message('S_CHAT', [2]), Buffer.from([9])]));
  const [answer] = say(3);
  assert.deepStrictEqual([answer.do, answer.add], [DO.drop, [['server', '', 4], ['server', 'tera.C_CHAT', 12]]]);
  assert.deepStrictEqual(say(4, 2)[0].do, DO.pass, 'hooks do not see what others dropped');
  assert.deepStrictEqual(proxy.mod.seen, ['silenced', 'silenced', 'silenced']);
  const many = say(5);
  assert.deepStrictEqual(many.map(({ add }) => add.length), [256, 44]);
  proxy.receive(json({ type: 'closed', conversation: 1 }));
});

test('the client says which map to use', () => {
  const proxy = new FakeProxy("seen.push(mod.protocolVersion); mod.hook('C_CHAT', 'event', () => false);", {});
  assert.deepStrictEqual(proxy.receive(opened(1)).map(({ type }) => type), ['subscribe', 'sync'], 'it may have begun earlier');
  const check = Buffer.from([20, 0, 188, 77, 1, 0, 8, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]);
  proxy.receive(json({ type: 'synced', id: '1.sync1' }));
  const frames = proxy.receive(shown(7, 'client', check));
  assert.deepStrictEqual([frames[0].do, frames.at(-1).do ?? frames.at(-2).do], [DO.hold, DO.pass]);
  assert.deepStrictEqual(proxy.mod.seen, [8]);
});

test('a conversation that began earlier is joined at its next message', () => {
  const proxy = new FakeProxy("seen.push(mod.protocolVersion); mod.hook('C_CHAT', 'event', () => false);", {});
  const [{ subscriptions }] = proxy.receive(opened(1));
  assert.deepStrictEqual(subscriptions[0], { id: '*', filter: 'tera.*', bytes: true, fields: true, silenced: null, fake: null });
  proxy.receive(json({ type: 'synced', id: '1.sync1' }));
  const line = { type: 'message', id: '1.5', conversation: 1, from: 'client', flags: [], bytes: '04000500', revision: 8 };
  const frames = proxy.receive(json(line));
  assert.deepStrictEqual(frames.find(({ type }) => type === 'unsubscribe'), { type: 'unsubscribe', ids: ['*'] });
  const synced = frames.filter(({ type }) => type === 'sync').map(({ id }) => json({ type: 'synced', id }));
  const answers = [...frames, ...proxy.receive(...synced)].filter(({ id, do: action }) => id === 5 && action !== undefined);
  assert.deepStrictEqual(answers.map(({ do: action }) => action), [DO.drop]);
});

test('after a new hook, messages are handled in the order in which they were sent', () => {
  const proxy = new FakeProxy(`
    mod.hookOnce('S_CHAT', 'event', () => { mod.hook('S_MIXED', 'raw', () => { seen.push('mixed'); }); });
    mod.hook('S_CHAT', 'raw', (code, data) => { seen.push(data[4]); });`);
  const [, first] = proxy.receive(opened(1));
  proxy.receive(json({ type: 'synced', id: first.id }));
  const chat = (/** @type {number} */ number) => shown(number, 'server', proxy.message('S_CHAT', [number]), number);
  // The proxy has sent the third message before it learns that the second one is hooked, too.
  const frames = proxy.receive(chat(1), chat(3));
  assert.deepStrictEqual(frames.map(({ type, id }) => type ?? id), ['subscribe', 1, 'sync']);
  const answers = proxy.receive(shown(2, 'server', proxy.message('S_MIXED'), 2), json({ type: 'synced', id: frames[2].id }));
  assert.deepStrictEqual(answers.map(({ id }) => id), [2, 3]);
  assert.deepStrictEqual(proxy.mod.seen, [1, 'mixed', 3]);
});

test('frames can arrive in pieces, and faulty ones end the connection', () => {
  const proxy = new FakeProxy("mod.hook('S_CHAT', 'raw', (code, data) => { seen.push(data[4]); });");
  const bytes = Buffer.concat([opened(1), json({ type: 'synced', id: '1.sync1' }), shown(1, 'server', proxy.message('S_CHAT', [7])), shown(2, 'server', proxy.message('S_CHAT', [8]))]);
  for (const byte of bytes) proxy.runner.receive(Buffer.from([byte]));
  assert.deepStrictEqual(proxy.mod.seen, [7, 8]);
  assert.throws(() => proxy.receive(Buffer.alloc(5)), /a frame cannot have 0 bytes/);
  const refused = new FakeProxy('');
  assert.throws(() => refused.runner.receive(Buffer.from('{"type":"error","text":"no"}\n')), /refused the connection/);
});

test('the log has levels and counts the running mods', () => {
  const folder = folderOf({
    'good.js': 'module.exports = function () {}',
    'bad.js': "module.exports = function () { throw new Error('no'); }",
    'worse/module.json': '{',
  });
  const manager = new Manager(folder);
  /** @type {any[]} */
  const sent = [];
  const runner = new Runner(manager, GameData.load([testData()]), { map: REVISION, major: 92 }, (bytes) => sent.push(bytes));
  reportTo((level, text) => runner.log(level, text));
  try {
    manager.loadAll();
    assert.deepStrictEqual(sent, [], 'nothing is sent before the hello');
    runner.start();
    runner.receive(opened(1));
  } finally {
    reportTo((level, text) => console.error(level, text));
  }
  const lines = sent.slice(1).flatMap(parse).filter(({ type }) => type === 'log');
  const [unreadable, failed, summary] = lines.filter(({ text }) => !text.startsWith('[command]'));
  assert.deepStrictEqual([unreadable.level, failed.level, summary.level], ['error', 'error', 'info']);
  assert.match(unreadable.text, /^\[worse\] does not run: /);
  assert.match(failed.text, /^\[bad\.js\] it failed to start: Error: no, at [^/]+\/bad\.js:1:\d+$/);
  assert.match(summary.text, /^\[worldwire-mods\] conversation 1: 1 of 3 mods run, revision 7, patch /);
});

test('the program uses its standard streams and reports what is wrong', async () => {
  const mods = folderOf({
    'a.js': "console.log('printed'); process.stdout.write('written'); setInterval(() => {}, 1); module.exports = function () {}",
    'worldwire-mods.json': '{"major": 92}',
  });
  const data = testData();
  const { code, output, errors } = await run(['--connect', 'stdin', '--data', data, '--mods', mods, '--revision', '7']);
  assert.strictEqual(code, 0);
  assert.strictEqual(JSON.parse(output).type, 'hello', 'nothing else is on standard output');
  assert.match(errors, /printed\nwritten/);
  assert.match((await run(['--mods', mods])).errors, /--connect is missing/);
  assert.strictEqual((await run(['--connect', 'stdin'])).code, 2);
  assert.match((await run(['--connect', 'stdin', '--mods', path.join(mods, 'none')])).errors, /ENOENT/);
  assert.match((await run(['--help'])).output, /Usage:/);
});

test('the check names what a mod uses and what is missing', async () => {
  const mods = folderOf({
    'good.js': "module.exports = function (mod) { mod.hook('S_CHAT', 4, () => {}); mod.queryData('/A/').catch(() => {}); }",
    'late.js': "module.exports = function (mod) { mod.command.add('x', () => mod.send('S_CHAT', 9, {})); }",
    'old.js': "module.exports = function (mod) { mod.hook('S_CHAT', 1, () => {}); }",
    'broken/module.json': '{',
    'kept/module.json': '{"name": "kept", "options": {"settingsVersion": 1}}',
    'kept/index.js': 'module.exports = function () {}',
    'kept/module_settings.json': '{',
  });
  const data = testData();
  const text = await run(['check', '--mods', mods, '--data', data]);
  assert.strictEqual(text.code, 1);
  assert.match(text.output, /good\.js: runs\n {2}hooks S_CHAT\.4\n {2}queries the client's data/);
  assert.match(text.output, /late\.js: runs\n {2}sends S_CHAT\.9\n {2}missing: version 9 of S_CHAT is unknown; the data has versions 3, 4/);
  assert.match(text.output, /old\.js: cannot run\n {2}it failed to start: version 1 of S_CHAT is outdated; the data has versions 3, 4/);
  assert.match(text.output, /5 mods, 3 cannot run \(revision 7, patch 115\.2\)\n$/);
  assert(fs.existsSync(path.join(mods, 'kept/module_settings.json')), 'a check changes nothing');
  const lines = (await run(['check', '--json', '--mods', mods])).output.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepStrictEqual(lines.find(({ name }) => name === 'late.js').sends, ['S_CHAT.9']);
  assert.strictEqual(lines.find(({ name }) => name === 'broken').runs, false);
});
