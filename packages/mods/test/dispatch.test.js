'use strict';
const assert = require('assert');
const { test } = require('node:test');
const { TestConversation } = require('./conversation');

/** A conversation with one mod, given by its body. @param {string} body @param {any} [options] */
function withMod(body, options) {
  return new TestConversation({ 'a.js': `module.exports = function A(mod) { const seen = this.seen = []; this.mod = mod; ${body} }` }, options);
}

/** @param {TestConversation} it */
const seen = (it) => it.instance('a.js').seen.splice(0);
const chat = (/** @type {string} */ message) => ({ channel: 1, name: 'N', message });

test('hooks run by order, those for all messages first, then by registration', () => {
  const it = withMod(`
    for (const [tag, order] of [['b', 1], ['c', 1], ['a', -Infinity], ['d', 1.5], ['e', Infinity]])
      mod.hook('S_CHAT', 4, { order }, () => { seen.push(tag); });
    mod.hook('*', 'event', { order: 1 }, () => { seen.push('*'); });
    mod.hook('*', 'raw', { order: 2 }, (code, data, incoming, fake) => { seen.push([data.length, incoming, fake, data.$incoming]); });`);
  it.say('S_CHAT', chat('x'));
  const length = it.bytes('S_CHAT', chat('x')).length;
  assert.deepStrictEqual(seen(it), ['a', '*', 'b', 'c', 'd', [length, true, false, true], 'e']);
  it.close();
});

test('only the value true writes a typed event, and false silences it', () => {
  const it = withMod(`
    mod.hook('S_CHAT', 4, (event, fake) => {
      const { message } = event;
      event.message += '!';
      return eval(message);
    });`);
  const results = ['true', 'false', 'undefined', '1', '0', '({})', 'Promise.resolve(false)'].map((text) => {
    const { silenced, modified } = it.say('S_CHAT', chat(text));
    return [silenced, modified, ...it.take().map(({ message }) => message)];
  });
  assert.deepStrictEqual(results, [
    [false, true, 'true!'], [true, false], [false, false, 'undefined'], [false, false, '1'], [false, false, '0'],
    [false, false, '({})'], [false, false, 'Promise.resolve(false)'],
  ]);
  it.close();
});

test('a rewritten message loses the bytes that its definition does not cover', () => {
  const it = withMod("mod.hook('S_LOAD_TOPO', 1, () => true);");
  const bytes = it.bytes('S_LOAD_TOPO', { zone: 5, quick: true });
  const longer = Buffer.concat([bytes, Buffer.from([1, 2])]);
  longer.writeUInt16LE(longer.length, 0);
  assert.deepStrictEqual(it.pass('server', longer).data, bytes);
  it.close();
});

test('raw hooks replace a message only with a Buffer of different bytes', () => {
  const it = withMod(`
    let next;
    this.set = f => { next = f; };
    mod.hook('S_CHAT', 'raw', (code, data) => next(data));
    mod.hook('S_CHAT', 'event', { order: 5, filter: { modified: null, silenced: null } }, () => { seen.push('after'); });`);
  const bytes = it.bytes('S_CHAT', chat('x'));
  const other = it.bytes('S_CHAT', chat('y'));
  const run = (/** @type {(data: Buffer) => any} */ f) => {
    it.instance('a.js').set(f);
    const { data, modified, silenced } = it.pass('server', bytes);
    return [data.equals(other), modified, silenced];
  };
  assert.deepStrictEqual(run(() => other), [true, true, false]);
  assert.deepStrictEqual(run(() => new Uint8Array(other)), [false, false, false]);
  assert.deepStrictEqual(run((data) => data), [false, false, false]);
  assert.deepStrictEqual(run((data) => { data[10] = 99; }), [false, false, false]);
  assert.deepStrictEqual(run(() => false), [false, false, true]);
  assert.deepStrictEqual(run(() => true), [false, false, false]);
  it.close();
});

test('filters compare the flags when it is the hook\'s turn', () => {
  const it = withMod(`
    mod.hook('S_CHAT', 4, event => event.message === 'drop' ? false : event.message === 'change' ? true : undefined);
    mod.hook('S_CHAT', 4, { order: 1 }, event => { seen.push('default'); });
    mod.hook('S_CHAT', 4, { order: 2, filter: { silenced: true } }, event => { seen.push(['silenced', event.$silenced]); });
    mod.hook('S_CHAT', 4, { order: 3, filter: { modified: true, silenced: null } }, event => { seen.push(['modified', event.$modified]); });
    mod.hook('S_CHAT', 4, { order: 4, filter: { fake: null, silenced: null } }, (event, fake) => { seen.push([fake, event.$fake]); });
    mod.hook('S_CHAT', 4, { order: 5, filter: { incoming: false } }, () => { seen.push('never'); });`);
  it.say('S_CHAT', chat('drop'));
  assert.deepStrictEqual(seen(it), [['silenced', true], [false, false]]);
  it.say('S_CHAT', chat('change'));
  assert.deepStrictEqual(seen(it), ['default', ['modified', true], [false, false]]);
  it.instance('a.js').mod.send('S_CHAT', 4, chat('x'));
  assert.deepStrictEqual(seen(it), [[true, true]]);
  it.close();
});

test('flags are read-only and belong only to the event', () => {
  const it = withMod(`
    mod.hook('S_CHAT', 4, event => {
      seen.push(Object.keys(event), '$fake' in Object.assign({}, event), event.$incoming);
      event.message = 'lost';
      event.$fake = true;
      return true;
    });`);
  it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual(seen(it), [['channel', 'gameId', 'name', 'message'], false, true]);
  assert.deepStrictEqual(it.take().map(({ message }) => message), ['x'], 'the exception drops the effect');
  it.close();
});

test('a hook that fails has no effect, and later ones run', () => {
  const it = withMod(`
    mod.hook('S_CHAT', 4, event => { event.message = 'lost'; throw new Error('oops'); });
    mod.hook('S_CHAT', 4, event => { event.gameId = 'not a number'; return true; });
    mod.hook('S_LOAD_TOPO', 1, () => { seen.push('never'); });
    mod.hook('S_CHAT', 4, event => { seen.push(event.message, event.$modified); });`);
  it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual(seen(it), ['x', false]);
  const short = Buffer.from([5, 0, 0, 0, 1]);
  short.writeUInt16LE(it.protocol.code('S_LOAD_TOPO'), 2);
  const { data, modified, silenced } = it.pass('server', short);
  assert.deepStrictEqual([data, modified, silenced], [short, false, false]);
  assert.deepStrictEqual(seen(it), []);
  it.close();
});

test('hooks can change the list while a message is handled', () => {
  const it = withMod(`
    let done = false;
    const later = mod.hook('S_CHAT', 4, { order: 2 }, () => { seen.push('later'); });
    mod.hook('S_CHAT', 4, () => {
      seen.push('first');
      if (done) return;
      done = true;
      mod.hook('S_CHAT', 4, { order: 1 }, () => { seen.push('higher'); });
      mod.hook('S_CHAT', 4, { order: 0 }, () => { seen.push('same'); });
      mod.hook('S_CHAT', 4, { order: -1 }, () => { seen.push('lower'); });
      mod.unhook(same);
      mod.hook('S_CHAT', 4, { order: 0 }, () => { seen.push('too late'); });
      mod.unhook(later);
      mod.unhook(null);
    });
    const same = mod.hook('S_CHAT', 4, () => { seen.push('removed'); });`);
  it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual(seen(it), ['first', 'removed', 'same', 'higher']);
  it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual(seen(it), ['lower', 'first', 'same', 'too late', 'higher']);
  it.close();
});

test('hookOnce is removed before it is called', () => {
  const it = withMod("mod.hookOnce('S_CHAT', 4, () => { seen.push(1); mod.hook('S_LOAD_TOPO', 1, () => {}); }); mod.tryHookOnce('S_CHAT', 9, () => {});");
  it.say('S_CHAT', chat('x'));
  it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual(seen(it), [1]);
  it.close();
});

test('injected messages are sent first, through the hooks of all mods', () => {
  const it = withMod(`
    mod.hook('S_CHAT', 4, event => {
      seen.push(mod.send('C_CHAT', 1, { channel: 2, message: 'to the server' }));
      seen.push(mod.send('S_CHAT', 4, { message: 'drop' }), mod.toClient('S_CHAT', 4, { message: 'x' }));
      seen.push(mod.toServer(mod.dispatch.toRaw('C_CHAT', 1, { message: 'raw' })));
    });
    mod.hook('S_CHAT', 4, { filter: { fake: true } }, event => event.message === 'drop' ? false : undefined);`);
  it.say('S_CHAT', chat('real'));
  assert.deepStrictEqual(seen(it), [true, false, true, true]);
  const order = it.take().map(({ side, message }) => [side, message]);
  assert.deepStrictEqual(order, [['server', 'to the server'], ['client', 'x'], ['server', 'raw'], ['client', 'real']]);
  it.close();
});

test('mistakes are refused, and the error lists the versions that exist', () => {
  const it = withMod('');
  const { mod } = it.instance('a.js');
  const fails = (/** @type {() => any} */ f, /** @type {RegExp} */ text, type = Error) => assert.throws(f, (error) => error instanceof type && text.test(/** @type {Error} */ (error).message));
  const hook = (/** @type {any[]} */ ...rest) => () => mod.hook(...rest);
  fails(hook('S_CHAT', '4', () => {}), /the version must be a number.*not "4"/, TypeError);
  fails(hook('*', 1, () => {}), /all messages/, TypeError);
  fails(hook('*', '*', () => {}), /all messages/, TypeError);
  fails(hook('S_CHAT', 4, undefined, () => {}), /options/, TypeError);
  fails(hook('S_CHAT', 4, null, () => {}), /options/, TypeError);
  fails(hook(1000, 4, () => {}), /name/, TypeError);
  fails(hook('S_CHAT', 1, () => {}), /version 1 of S_CHAT is outdated; the data has versions 3, 4/);
  fails(hook('S_CHAT', 5, () => {}), /version 5 of S_CHAT is unknown; the data has versions 3, 4/);
  fails(hook('S_NOTHING', 'raw', () => {}), /S_NOTHING has no opcode in protocol.7.map/);
  assert.strictEqual(mod.tryHook('S_NOTHING', 1, () => {}), null);
  assert.strictEqual(mod.trySend('S_NOTHING', 1), false);
  fails(() => mod.send('X_CHAT', 1), /does not begin with S, I or C/);
  fails(() => mod.send(Buffer.alloc(4)), /toClient or toServer/, TypeError);
  fails(() => mod.send('S_CHAT', 'raw'), /version/, TypeError);
  fails(() => mod.send('S_CHAT', 4, { gameId: 1.5 }), /S_CHAT, version 4, cannot be written/);
  assert.strictEqual(mod.hook('S_CHAT', '*', () => {}).version, 4);
  it.close();
  assert.strictEqual(mod.toClient('S_CHAT', 4), false, 'nothing is sent after the end');
});

test('the dispatch knows and adds definitions', () => {
  const it = withMod('', { world: { sysmsg: { SMT_A: 12 } } });
  const { mod } = it.instance('a.js');
  const { dispatch } = mod;
  dispatch.addDefinition('S_CHAT', 9, [['channel', 'uint32']]);
  dispatch.addDefinition('S_CHAT', 4, [['channel', 'uint32']]);
  assert.strictEqual(dispatch.resolve('S_CHAT', '*').version, 9);
  assert.strictEqual(dispatch.fromRaw('S_CHAT', 4, dispatch.toRaw('S_CHAT', 4, chat('kept'))).message, 'kept');
  dispatch.addOpcode('S_NEW', 4711);
  assert.deepStrictEqual(dispatch.checkOpcodes(['S_NEW', 'S_OTHER']), ['S_OTHER']);
  assert.deepStrictEqual(dispatch.checkDefinitions({ S_CHAT: [3, 5], S_NEW: 1 }), [{ name: 'S_CHAT', version: 5 }, { name: 'S_NEW', version: 1 }]);
  assert.strictEqual(dispatch.protocolMap.code.get(4711), 'S_NEW');
  assert.deepStrictEqual(mod.parseSystemMessage('@12\vname\vAnn'), { id: 'SMT_A', tokens: { name: 'Ann' } });
  assert.strictEqual(mod.buildSystemMessage('SMT_A', { name: 'Ann' }), '@12\vname\vAnn');
  assert.deepStrictEqual(mod.parseSystemMessage('@a:1'), { id: 'a:1', tokens: {} });
  assert.throws(() => mod.parseSystemMessage('12'));
  assert.throws(() => mod.parseSystemMessage('@13'), /not in the map/);
  it.close();
});

test('deprecated versions can be read if their table says so, and are not written', () => {
  const { testData } = require('./conversation');
  const data = testData({ 'deprecated.json': JSON.stringify({ S_CHAT: { 3: { max: 100, readable: true }, 4: { min: 200 } } }) });
  const it = withMod("mod.hook('S_CHAT', 3, () => true);", { data, world: { major: 115 } });
  assert.throws(() => it.instance('a.js').mod.hook('S_CHAT', 4, () => {}), /deprecated at patch 115/);
  assert.throws(() => it.bytes('S_CHAT', {}, 3), /cannot be sent/);
  const bytes = Buffer.alloc(40);
  bytes.writeUInt16LE(it.protocol.code('S_CHAT'), 2);
  assert.strictEqual(it.pass('server', bytes).modified, false);
  it.close();
});

test('whatever a hook throws, the others run', () => {
  const it = withMod(`
    const hostile = { get message() { throw 1; }, get stack() { throw 2; }, toString() { throw 3; } };
    for (const thrown of [Object.create(null), hostile, null, undefined, Symbol('x'), 'text'])
      mod.hook('S_CHAT', 4, () => { throw thrown; });
    mod.hook('S_CHAT', 4, () => { seen.push('last'); });`);
  const { silenced, modified } = it.say('S_CHAT', chat('x'));
  assert.deepStrictEqual([silenced, modified, seen(it)], [false, false, ['last']]);
  it.close();
});
