'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { TestConversation, stopTime } = require('./conversation');
const { splitLine, withoutTags } = require('../lib/words');

const SETTINGS = { '.command.json': JSON.stringify({ version: 3, data: { login_message: false } }) };
const MOD = { 'mod/module.json': JSON.stringify({ name: 'mod', options: { cliName: 'M' } }) };

/** A conversation in which the player has appeared. @param {string} body @param {any} t */
function playing(body, t) {
  const pass = stopTime(t);
  const it = new TestConversation({ ...SETTINGS, ...MOD, 'mod/index.js': `module.exports = function (mod) { this.mod = mod; const seen = this.seen = []; const { command } = mod; ${body} }` });
  it.say('S_SPAWN_ME', {});
  pass(2000);
  it.take();
  return it;
}

/** @param {TestConversation} it @param {string} message */
function type(it, message, channel = 18) {
  it.say('C_CHAT', { channel, message });
  return it.take().map(({ name, message: text }) => (name === 'C_CHAT' ? `sent ${text}` : text));
}

test('lines are split into words', () => {
  assert.deepStrictEqual(splitLine('a  "b c" d\\ e \'f "g\' x"y z'), ['a', 'b c', 'd e', 'f "g', 'x"y', 'z']);
  assert.deepStrictEqual(splitLine('a <b x="1 2">c d</b>e &quot;f'), ['a', '<b x="1 2">c d</b>e', '&quot;f']);
  assert.throws(() => splitLine('a "b'), /Expected "/);
  assert.strictEqual(withoutTags('<FONT color="#1"><b>x y</b></FONT>'), 'x y');
  assert.strictEqual(withoutTags('<a>x</a><a>y</a>'), '<a>x</a><a>y</a>');
});

test('commands are found by their first word, with sub-commands', (t) => {
  const it = playing(`
    command.add('Say', (...words) => { seen.push(words); });
    command.add(['many', 'm'], { $none: () => seen.push('none'), One: (...words) => seen.push(['one', ...words]), deep: { x: () => seen.push('deep') }, $default: (...words) => seen.push(['default', ...words]) });
    command.add('silent', { only: () => {} });
    command.add('fails', () => { throw new Error('oops'); });
    command.add('bound', function () { seen.push(this.tag); }, { tag: 7 });`, t);
  const { seen } = it.instance('mod');
  for (const line of ['say Hello "a b"', '<FONT>SAY x</FONT>', 'many', 'm ONE 2', 'm other 3', 'many deep x', 'silent nothing', 'bound']) {
    assert.deepStrictEqual(type(it, line), [], line);
  }
  assert.deepStrictEqual(seen.splice(0), [['Hello', 'a b'], ['x'], 'none', ['one', '2'], ['default', 'other', '3'], 'deep', 7]);
  assert.deepStrictEqual(type(it, 'fails'), [' Error running callback for command']);
  assert.deepStrictEqual(type(it, 'nonsense x'), [' Unknown command "nonsense".']);
  assert.deepStrictEqual(type(it, 'say "x'), [' Syntax error: Expected "']);
  assert.deepStrictEqual(type(it, '!say public', 1), []);
  assert.deepStrictEqual(type(it, '!!say', 1), ['sent !!say']);
  assert.deepStrictEqual(type(it, 'say hello', 1), ['sent say hello']);
  it.say('C_WHISPER', { target: 'x', message: '!say whispered' });
  assert.deepStrictEqual([it.take(), seen.splice(0)], [[], [['public'], ['whispered']]]);
  it.close();
});

test('other mods can handle unknown commands', (t) => {
  const it = playing("mod.hook('C_CHAT', 1, event => event.message === 'mine' ? false : undefined);", t);
  assert.deepStrictEqual(type(it, 'mine'), []);
  it.close();
});

test('names are checked, and commands can be removed and run', (t) => {
  const it = playing("command.add('a', () => { seen.push('a'); });", t);
  const { mod, seen } = it.instance('mod');
  assert.throws(() => mod.command.add('A', () => {}), /already exists/);
  assert.throws(() => mod.command.add('', () => {}));
  assert.throws(() => mod.command.add(5, () => {}));
  assert.throws(() => mod.command.add('b', 5));
  assert.deepStrictEqual([mod.command.exec('a'), mod.command.exec(['a', 'b']), mod.command.exec('c')], [true, true, false]);
  mod.command.remove(['a']);
  assert.strictEqual(mod.command.exec('a'), false);
  assert.deepStrictEqual(seen, ['a', 'a']);
  it.close();
});

test('lines wait until the player has appeared for two seconds', async (t) => {
  const pass = stopTime(t);
  const it = new TestConversation({ ...MOD, 'mod/index.js': "module.exports = function (mod) { this.mod = mod; mod.command.message('early'); }" }, { world: { publisher: 'gf' } });
  it.say('S_SPAWN_ME', {});
  await new Promise((resolve) => process.nextTick(resolve));
  const [, joined] = it.take();
  assert.deepStrictEqual([joined.name, joined.index, joined.channelId], ['Toolbox', 7, -2]);
  pass(1999);
  assert.deepStrictEqual(it.take(), []);
  pass(1);
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['[M] early', ' GF patch 115.2, protocol 7']);
  it.instance('mod').mod.command.message('now');
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['[M] now']);
  assert.strictEqual(it.say('S_JOIN_PRIVATE_CHANNEL', { index: 7 }).silenced, true, 'the real channel');
  it.close();
});

test('the program has its own command, whose settings are kept', (t) => {
  const it = playing('', t);
  assert.deepStrictEqual(type(it, 'toolbox onlychannel'), [' Commands only in the private channel on.']);
  assert.deepStrictEqual(type(it, '!toolbox', 1), ['sent !toolbox']);
  assert.deepStrictEqual(type(it, 'proxy unload mod'), [' unload mod: done.']);
  assert.deepStrictEqual(type(it, 'proxy load mod'), [' load mod: done.']);
  assert.deepStrictEqual(type(it, 'proxy reload mod'), [' reload mod: failed.']);
  const kept = JSON.parse(fs.readFileSync(path.join(it.folder, '.command.json'), 'utf8'));
  assert.deepStrictEqual([kept.version, kept.data.public_enable], [3, false]);
  it.close();
});
