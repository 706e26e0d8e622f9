'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { TestConversation, folderOf } = require('./conversation');
const { findMods } = require('../lib/info');
const { addLongMembers } = require('../lib/legacy');
const { described, message } = require('../lib/thrown');

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
const json = JSON.stringify;

test('mods are found in order, and those that cannot run are named', () => {
  const module = (/** @type {any} */ facts) => ({ 'module.json': json(facts), 'index.js': 'module.exports = function () {}' });
  /** @type {Record<string, string>} */
  const files = { '.hidden.js': '', '_off.js': '', 'readme.txt': '', 'single.js': '', 'broken/module.json': '{' };
  for (const [folder, facts] of Object.entries({
    b: { name: 'Bee', dependencies: { a: 'url' } },
    a: { name: 'a', conflicts: ['nobody'] },
    c: { name: 'BEE' },
    d: { name: 'd', dependencies: ['missing'] },
    e: { name: 'e', dependencies: ['d'] },
    f: { name: 'f', conflicts: ['a'] },
    g: { name: 'g', disabled: true },
    h: { name: 'command' },
  })) {
    for (const [name, text] of Object.entries(module(facts))) files[`${folder}/${name}`] = text;
  }
  const { mods, refused } = findMods(folderOf(files));
  assert.deepStrictEqual(mods.map(({ name }) => name), ['a', 'bee', 'single.js']);
  const why = Object.fromEntries(refused.map(({ name, why: text }) => [name, text]));
  assert.deepStrictEqual(Object.keys(why).sort(), ['broken', 'c', 'd', 'e', 'f', 'h']);
  assert.match(why.c, /same name/);
  assert.match(why.d, /needs the mod missing/);
  assert.match(why.e, /needs the mod d/);
  assert.match(why.f, /conflicts with the mod a/);
});

test('mods run in strict mode, find packages, and lose what they write to an old interface', () => {
  const it = new TestConversation({
    'loose.js': 'module.exports = function () { undeclared = 1; }',
    'old.js': `
      const Vec3 = require('tera-vec3'), { SkillID } = require('tera-data-parser').types, { Settings } = require('tera-mod-ui');
      module.exports = function (dispatch) {
        dispatch.settings = 5; dispatch.foo = 1;
        this.got = [new Vec3(1, 2, 3).z, String(new SkillID(3)), dispatch.settings, dispatch.foo, dispatch.proxyAuthor, dispatch.region];
        new Settings(dispatch, {}).show();
        this.same = [require('command')(dispatch) === dispatch.command, require('tera-game-state')(dispatch) === dispatch.game];
      }`,
    'new/module.json': json({ name: 'New' }),
    'new/index.js': `exports.NetworkMod = class { constructor(mod) { mod.extra = 1; this.got = [mod.extra, mod.name, mod.info.rawName, mod.majorPatchVersion]; } }
      exports.ClientMod = class { constructor(mod) { this.mod = mod; } }
      exports.GlobalMod = class { constructor(mod) { this.name = mod.name; } }`,
    'arrow.js': 'module.exports = () => {}',
    'missing.js': "require('not-there')",
  }, { world: { publisher: 'EME' } });
  assert.strictEqual(it.instance('loose.js'), undefined);
  assert.deepStrictEqual(it.instance('old.js').got, [3, 'A3', it.loaded('old.js')?.settings, undefined, 'caali', 'na']);
  assert.deepStrictEqual(it.instance('old.js').same, [true, true]);
  assert.deepStrictEqual(it.instance('new').got, [1, 'new', 'New', 115]);
  assert.strictEqual(it.loaded('new')?.global.name, 'new');
  const failed = it.manager.refused.map(({ name }) => name).sort();
  assert.deepStrictEqual(failed, ['arrow.js', 'loose.js', 'missing.js']);
  it.close();
});

test('a mod that throws in its constructor leaves nothing behind', async () => {
  const it = new TestConversation({
    'a.js': `module.exports = function (mod) {
      mod.hook('S_CHAT', 4, () => false); mod.command.add('x', () => {}); mod.setTimeout(() => { throw new Error('late'); }, 1);
      throw new Error('oops'); }`,
    'b.js': 'module.exports = function (mod) { this.runs = true; mod.command.add("x", () => {}); }',
  });
  assert.strictEqual(it.say('S_CHAT', { message: 'x' }).silenced, false);
  assert(it.instance('b.js').runs);
  await pause(5);
  it.close();
});

test('settings are migrated and written atomically, and a broken file is kept', () => {
  const migrate = 'module.exports = (from, to, data) => ({ from: from === undefined ? "undefined" : from, to, data });';
  const mod = (/** @type {string} */ name, more = {}) => ({
    [`${name}/module.json`]: json({ name, options: { settingsVersion: 2, settingsFile: 's.json', settingsMigrator: 'm.js', ...more } }),
    [`${name}/index.js`]: 'module.exports = function (mod) { this.settings = mod.settings; this.mod = mod; }',
  });
  const it = new TestConversation({
    ...mod('same'), 'same/s.json': '\ufeff{"version":2,"data":{"x":1}}',
    ...mod('none'), 'none/m.js': migrate,
    ...mod('older'), 'older/m.js': migrate, 'older/s.json': '{"version":1,"data":7}',
    ...mod('bare'), 'bare/m.js': migrate, 'bare/s.json': '{"a":1}',
    ...mod('lacks'),
    ...mod('broken'), 'broken/s.json': '{"version":2,', 'broken/s.json.broken': 'earlier',
  });
  const got = (/** @type {string} */ name) => it.instance(name).settings;
  assert.deepStrictEqual(got('same'), { x: 1 });
  assert.deepStrictEqual(got('none'), { from: null, to: 2, data: undefined });
  assert.deepStrictEqual(got('older'), { from: 1, to: 2, data: 7 });
  assert.deepStrictEqual(got('bare'), { from: 'undefined', to: 2, data: { a: 1 } });
  assert.match(String(it.manager.refused.find(({ name }) => name === 'lacks')?.why), /m\.js, which does not exist/);
  assert.match(String(it.manager.refused.find(({ name }) => name === 'broken')?.why), /renamed to .*s\.json\.broken2/);
  assert.strictEqual(fs.readFileSync(path.join(it.folder, 'broken/s.json.broken2'), 'utf8'), '{"version":2,');
  it.instance('same').settings.big = 2n ** 60n;
  it.instance('same').mod.saveSettings();
  const written = fs.readFileSync(path.join(it.folder, 'same/s.json'), 'utf8');
  assert.strictEqual(written, '{\n    "version": 2,\n    "data": {\n        "x": 1,\n        "big": "1152921504606846976"\n    }\n}');
  it.close();
  assert(fs.existsSync(path.join(it.folder, 'none/s.json')), 'written when it is unloaded');
  assert.deepStrictEqual(fs.readdirSync(path.join(it.folder, 'same')).filter((name) => name.endsWith('.tmp')), []);
});

test('mods use each other, and a required one is loaded first', () => {
  const it = new TestConversation({
    'a.js': `module.exports = function (mod) { this.got = [mod.require.LIB.value, mod.require['tera-game-state'] === mod.game, mod.require.command.exec('none')];
      try { mod.require.nobody; } catch (error) { this.error = error.message; }
      try { mod.require.lib = 1; } catch (error) { this.type = error.constructor.name; } }`,
    'lib/module.json': json({ name: 'lib' }),
    'lib/index.js': `exports.NetworkMod = class { constructor(mod) { this.value = 5; } };
      exports.RequireInterface = (globalMod, clientMod, networkMod, requiredBy) => ({ value: [networkMod.value, globalMod, clientMod, requiredBy.name] });`,
    'z.js': 'module.exports = function (mod) { this.other = mod.require.plain; }',
    'plain/module.json': json({ name: 'plain' }),
    'plain/index.js': 'module.exports = function (mod) { this.me = 1; }',
  });
  assert.deepStrictEqual(it.instance('a.js').got, [[5, null, null, 'a.js'], true, false]);
  assert.match(it.instance('a.js').error, /nobody.*not installed/);
  assert.strictEqual(it.instance('a.js').type, 'TypeError');
  assert.strictEqual(it.instance('z.js').other, it.instance('plain'));
  it.close();
});

test('a reload passes states on and reads the files again', () => {
  const source = (/** @type {number} */ version) => `exports.NetworkMod = class {
    constructor(mod) { this.version = ${version}; this.mod = mod; mod.hook('S_CHAT', 4, event => { event.message += this.version + (this.state ?? ''); return true; }); }
    saveState() { return { from: this.version }; }
    loadState(state) { this.state = '<' + state.from; }
    destructor() { this.mod.send('C_CHAT', 1, { message: 'bye' }); } };`;
  const it = new TestConversation({ 'm/module.json': json({ name: 'm', options: { reloadable: true } }), 'm/index.js': source(1), 'n.js': 'module.exports = function () {}' });
  it.say('S_CHAT', { message: '' });
  fs.writeFileSync(path.join(it.folder, 'm/index.js'), source(2));
  assert.strictEqual(it.manager.reload('M'), true);
  it.say('S_CHAT', { message: '' });
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['1', 'bye', '2<1']);
  assert.strictEqual(it.manager.reload('n.js'), false, 'it is not reloadable');
  const { facade } = it.manager;
  assert.deepStrictEqual([facade.isLoaded('m'), facade.isInstalled('x'), facade.isCoreMod('Command'), facade.getInfo('m').name], [true, false, true, 'm']);
  assert.strictEqual(facade.unload('m'), true);
  it.take();
  it.say('S_CHAT', { message: '' });
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['']);
  it.close();
});

test('timers end with the game, and their errors end nothing else', async () => {
  const it = new TestConversation({
    'a.js': `module.exports = function (mod) { this.mod = mod; const seen = this.seen = [];
      this.start = () => {
        mod.setTimeout(tag => { seen.push(tag); throw new Error('in a timer'); }, 5, 'timeout');
        mod.setTimeout(() => { seen.push('never'); }, 60);
        const interval = mod.setInterval(() => { seen.push('interval'); }, 60);
        seen.push(mod.clearTimeout(interval), mod.activeIntervals.size, mod.activeTimeouts.size);
      } }`,
  });
  it.say('S_LOGIN', { templateId: 10101, gameId: 5n });
  it.instance('a.js').start();
  await pause(30);
  it.say('S_RETURN_TO_LOBBY', {});
  assert.strictEqual(it.instance('a.js').mod.activeIntervals.size, 0);
  await pause(60);
  assert.deepStrictEqual(it.instance('a.js').seen, [false, 1, 2, 'timeout']);
  it.close();
});

test('the state of the game is up to date before the hooks of mods', () => {
  const it = new TestConversation({
    'a.js': `module.exports = function (mod) { this.mod = mod; const seen = this.seen = []; const { game } = mod;
      game.initialize(['party', 'inventory', 'contract', 'glyphs', 'talents', 'me.abnormalities', 'me']);
      for (const name of ['enter_game', 'leave_game', 'enter_character_lobby', 'leave_character_lobby', 'enter_loading_screen', 'leave_loading_screen'])
        game.on(name, () => { seen.push(name); });
      game.on('enter_game', () => { seen.push(game.me.name); });
      for (const name of ['change_zone', 'enter_combat', 'leave_combat', 'die', 'resurrect']) game.me.on(name, (...rest) => { seen.push([name, ...rest]); });
      mod.hook('S_LOGIN', 1, { order: -9000 }, () => { seen.push(['hook', game.me.is(5n), game.isIngame]); }); }`,
  });
  const { seen, mod } = it.instance('a.js');
  const take = () => seen.splice(0);
  const { game } = mod;
  assert.deepStrictEqual([game.me.gameId, game.me.name, game.isIngame, game.me.is(5n)], [null, null, false, false]);
  it.say('S_LOGIN', { templateId: 11008, gameId: 5n, playerId: 3, serverId: 1, name: 'Ann', level: 65, alive: true });
  assert.deepStrictEqual(take(), ['enter_game', 'Ann', 'enter_loading_screen', ['hook', true, true]]);
  assert.deepStrictEqual([game.me.class, game.me.race, game.me.gender, game.me.level], ['elementalist', 'popori', 'female', 65]);
  it.say('S_LOAD_TOPO', { zone: 7, quick: true });
  it.say('S_LOAD_TOPO', { zone: 7 });
  it.say('S_SPAWN_ME', { gameId: 5n, alive: false });
  it.say('S_USER_STATUS', { gameId: 5n, status: 1 });
  it.say('S_USER_STATUS', { gameId: 6n, status: 0 });
  // Messages that mods send count, too.
  mod.send('S_USER_STATUS', 1, { gameId: 5n, status: 0 });
  assert.deepStrictEqual(take(), [['change_zone', 7, true], ['die'], 'leave_loading_screen', ['enter_combat'], ['leave_combat']]);
  it.say('S_PARTY_MEMBER_LIST', { members: [{ serverId: 1, playerId: 3, gameId: 5n, name: 'Ann' }, { serverId: 1, playerId: 4, gameId: 8n, name: 'Ben' }] });
  assert.deepStrictEqual([game.party.inParty(), game.party.getMemberData(8n).name, game.party.isMember(5n)], [true, 'Ben', false]);
  it.say('S_RETURN_TO_LOBBY', {});
  assert.deepStrictEqual(take(), ['leave_game', 'enter_character_lobby']);
  assert.deepStrictEqual([game.me.gameId, game.me.zone, game.party.inParty()], [null, null, false]);
  it.say('S_LOGIN', { templateId: 99, gameId: 6n, name: 'Odd' });
  assert.deepStrictEqual([game.me.gameId, game.me.name, game.me.alive], [6n, null, null], 'the template is unknown');
  assert.throws(() => game.initialize('nothing'), /there is no "nothing"/);
  it.close();
});

test('queries to the client are rejected, or answered from a file', async () => {
  const mod = { 'a.js': 'module.exports = function (mod) { this.mod = mod; }' };
  const without = new TestConversation(mod);
  const { mod: first } = without.instance('a.js');
  await assert.rejects(first.queryData('/A/'), /needs the client's data/);
  await assert.rejects(first.clientInterface.queryData('/A/', [], true), /needs the client's data/);
  first.clientInterface.flashWindow();
  assert.strictEqual(first.clientInterface.hasFocus(), true);
  without.close();
  const tree = { name: 'root', children: [{ name: 'A', attributes: { id: 1 }, children: [{ name: 'B', attributes: { x: 2, y: 3 } }] }, { name: 'A', attributes: { id: 2 } }] };
  const clientData = path.join(folderOf({ 'tree.json': json(tree) }), 'tree.json');
  const it = new TestConversation(mod, { world: { clientData } });
  const { mod: second } = it.instance('a.js');
  assert.deepStrictEqual(await second.queryData('/A@id=?/B/', [1], false, true, ['x']), { name: 'B', attributes: { x: 2 }, children: [] });
  assert.deepStrictEqual((await second.queryData('/A/', [], true, false)).map(({ attributes }) => attributes.id), [1, 2]);
  assert.strictEqual(await second.queryData('/C/'), null);
  it.close();
});

test('64-bit integers have the members that they had before 2018', () => {
  addLongMembers();
  const id = /** @type {any} */ ((7n << 32n) | 0xfffffffen);
  assert.deepStrictEqual([id.low, id.high, id.equals(id), id.equals(7), id.toNumber()], [-2, 7, true, false, 34359738366]);
  const it = new TestConversation({});
  const { low, high } = id;
  it.say('S_USER_STATUS', { gameId: { low, high } });
  assert.strictEqual(it.take()[0].gameId, id);
  it.close();
});

test('mods for the 2020 proxy find what they use', () => {
  const it = new TestConversation({
    'x/mod.json': json({ name: 'x' }),
    'x/index.js': `module.exports = function (mod) {
      mod.settings.$init({ version: 1, defaults: { on: true } });
      const proto = mod.compileProto('uint32 channel\\nstring message');
      mod.hook('C_CHAT', proto, event => { event.message = 'typed'; return true; });
      this.got = [mod.settings.on, mod.patchVersion, mod.parse('C_CHAT', proto, mod.dispatch.toRaw('C_CHAT', 1, { message: 'm' })).message]; }`,
  });
  assert.deepStrictEqual(it.instance('x').got, [true, 115.02, 'm']);
  it.say('C_CHAT', { message: 'x' });
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['typed']);
  it.close();
});

test('settings of mods for the 2020 proxy are saved', () => {
  const mod = (/** @type {number} */ version) => `module.exports = function (mod) {
    const migrate = (from, to, settings) => ({ ...settings, migrated: [from, to] });
    mod.settings.$init({ version: ${version}, defaults: { on: true, more: 1 }, migrate });
    this.got = { ...mod.settings };
    mod.settings.on = false; }`;
  const files = { 'x/mod.json': json({ name: 'x' }), 'x/index.js': mod(1), 'single.js': mod(1) };
  const first = new TestConversation(files);
  assert.deepStrictEqual(first.instance('x').got, { on: true, more: 1 });
  first.close();
  const saved = (/** @type {string} */ name) => JSON.parse(fs.readFileSync(path.join(first.folder, name), 'utf8'));
  assert.deepStrictEqual(saved('x/module_settings.json'), { version: 1, data: { on: false, more: 1 } });
  assert.deepStrictEqual(saved('single.settings.json').data, { on: false, more: 1 });
  const same = new TestConversation({}, { folder: first.folder });
  assert.deepStrictEqual([same.instance('x').got.on, same.instance('single.js').got.on], [false, false]);
  same.close();
  fs.writeFileSync(path.join(first.folder, 'x/index.js'), mod(2));
  const later = new TestConversation({}, { folder: first.folder });
  assert.deepStrictEqual(later.instance('x').got, { on: false, more: 1, migrated: [1, 2] });
  later.close();
});

test('what a mod throws is described in one line, with the location in its code', () => {
  const folder = folderOf({ 'a.js': 'exports.fail = () => { throw new TypeError("two\\nlines"); };' });
  const { fail } = require(path.join(folder, 'a.js'));
  const text = (() => { try { return fail(); } catch (error) { return described(error); } })();
  assert.match(text, /^TypeError: two lines, at [^/]+\/a\.js:1:30, at test\/mods\.test\.js:\d+:\d+/);
  assert.strictEqual(described('just a text'), 'just a text');
});

test('a syntax error is described with its line', () => {
  const it = new TestConversation({ 'syntax.js': 'let a;\nlet b = ;\n', 'm/index.js': "require('./other')", 'm/other.js': '\n\nif (' });
  const why = Object.fromEntries(it.manager.refused.map(({ name, why: text }) => [name, text]));
  assert.match(why['syntax.js'], /^it cannot be loaded: Unexpected token ';', at [^/]+\/syntax\.js:2$/);
  assert.match(why.m, /^it cannot be loaded: Unexpected end of input, at m\/other\.js:3$/);
  const broken = path.join(it.folder, 'syntax.js');
  const thrown = (() => { try { return require(broken); } catch (error) { return error; } })();
  assert.match(described(thrown), /^SyntaxError: Unexpected token ';', at [^/]+\/syntax\.js:2, at /);
  assert.strictEqual(message(new SyntaxError('made by a mod')), 'made by a mod');
  it.close();
});
