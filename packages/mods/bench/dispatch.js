'use strict';
// Measures the time per message, from the proxy's frame to the frame with the answer, through hooks
// of each kind, with 256 messages in flight: node bench/dispatch.js

const { GameData } = require('../lib/data');
const { Manager } = require('../lib/manager');
const { Protocol } = require('../lib/protocol');
const { Runner } = require('../lib/runner');
const { REVISION, folderOf, testData } = require('../test/conversation');

const IN_FLIGHT = 256;
const BATCHES = 200;
const ROUNDS = 9;
const HOOKS = {
  'typed, read only': "mod.hook('S_CHAT', 4, event => { if (event.channel === 99) count++; });",
  'typed, returns true': "mod.hook('S_CHAT', 4, event => { if (event.channel === 99) count++; return true; });",
  raw: "mod.hook('S_CHAT', 'raw', (code, data) => { if (data[5] === 99) count++; });",
  event: "mod.hook('S_CHAT', 'event', () => { count++; });",
};

const data = GameData.load([testData()]);
const protocol = new Protocol(data, REVISION);
const { codec, code } = protocol.resolve('S_CHAT', 4);
const message = codec.encode(code, { channel: 1, gameId: 77n, name: 'Someone', message: 'x'.repeat(60) });

/** @param {number} kind @param {Buffer} content */
function frame(kind, content) {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(content.length + 1, 0);
  head[4] = kind;
  return Buffer.concat([head, content]);
}

/** @param {string} hook @param {number} count */
function measure(hook, count) {
  const manager = new Manager(folderOf({ 'a.js': `let count = 0; module.exports = function (mod) { for (let i = 0; i < ${count}; i++) ${hook} }` }));
  manager.loadAll();
  const runner = new Runner(manager, data, { map: REVISION, major: 115 }, () => {});
  runner.start();
  runner.receive(frame(0, Buffer.from('{"type":"opened","conversation":1,"family":"tera"}')));
  runner.receive(frame(0, Buffer.from('{"type":"synced","conversation":1,"id":"1.sync1"}')));
  const head = Buffer.alloc(36);
  head[0] = 1;
  head[16] = 1;
  const batch = Buffer.concat(Array(IN_FLIGHT).fill(frame(1, Buffer.concat([head, message]))));
  const rounds = Array.from({ length: ROUNDS }, () => {
    const began = process.hrtime.bigint();
    for (let index = 0; index < BATCHES; index++) runner.receive(batch);
    return Number(process.hrtime.bigint() - began) / (BATCHES * IN_FLIGHT) / 1000;
  });
  return Math.min(...rounds);
}

console.error = () => {};
console.log(`µs per message of ${message.length} bytes, fastest of ${ROUNDS} rounds, with 1 and 10 hooks`);
for (const [kind, hook] of Object.entries(HOOKS)) {
  console.log(`${kind}: ${measure(hook, 1).toFixed(2)}, ${measure(hook, 10).toFixed(2)}`);
}
