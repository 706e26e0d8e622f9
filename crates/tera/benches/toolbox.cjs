'use strict';
// Runs the parser of tera-toolbox for `toolbox.rs`, which starts it, one process for each thing that
// is measured, and says what to do line by line:
//
//     node toolbox.cjs PARSER parse|write MILLISECONDS
//
// The first line is JSON: { definitions: { KEY: text }, messages: [{ key, hex }] }; it prints which
// messages the parser can read and write. After warming up for MILLISECONDS it prints
// `ready`; then each line holds a number of milliseconds, for which it works, and prints nanoseconds
// for one message. PARSER is a folder with `node_modules/tera-data-parser`, or the parser itself.
//
// The last 256 results are kept: V8 cannot leave out work whose result is still there.

const fs = require('fs');
const path = require('path');
const readline = require('readline');

global.TeraProxy = { DevMode: false };
const [folder, what, warm] = process.argv.slice(2);
const inside = path.join(folder, 'node_modules', 'tera-data-parser');
const parser = path.resolve(fs.existsSync(inside) ? inside : folder);
const Protocol = require(path.join(parser, 'lib', 'protocol'));
const parseDef = require(path.join(parser, 'lib', 'parsers', 'def'));

function compile(definitions) {
  const map = { name: new Map(), code: new Map(), padding: {} };
  const protocol = new Protocol(115, 0, map, 'pc');
  protocol.loadDefaultBundle({ protocol: {}, deprecated: {} });
  const codecs = new Map();
  let code = 0;
  for (const [key, text] of Object.entries(definitions)) {
    code += 1;
    const name = `M${code}`;
    map.name.set(name, code);
    map.code.set(code, name);
    try {
      protocol.addDefinition(name, 1, parseDef(name, text));
      const id = protocol.resolveIdentifier(name, 1);
      codecs.set(key, {
        parse: (bytes) => protocol.parse(id, bytes),
        write: (value) => protocol.write(id, value),
      });
    } catch {
      // One that it cannot read.
    }
  }
  return codecs;
}

function work(items) {
  const count = items.length;
  const kept = new Array(256);
  const once =
    what === 'parse'
      ? (i) => items[i % count].codec.parse(items[i % count].bytes)
      : (i) => items[i % count].codec.write(items[i % count].value);
  const run = (times) => {
    for (let i = 0; i < times; i++) kept[i & 255] = once(i);
  };
  const now = () => Number(process.hrtime.bigint()) / 1e6;
  // A batch takes some two milliseconds, and ends with a whole round of messages.
  let times = count;
  for (;;) {
    const start = now();
    run(times);
    if (now() - start > 2) break;
    times *= 2;
  }
  return (milliseconds) => {
    const start = now();
    let calls = 0;
    let spent = 0;
    while (spent < milliseconds) {
      run(times);
      calls += times;
      spent = now() - start;
    }
    return (spent * 1e6) / calls;
  };
}

const lines = readline.createInterface({ input: process.stdin });
let slice;
lines.on('line', (line) => {
  if (slice) {
    console.log(slice(Number(line)));
    return;
  }
  const input = JSON.parse(line);
  const codecs = compile(input.definitions);
  // Whether it reads and writes a message; a mix leaves out the others, on both sides.
  const items = input.messages.map(({ key, hex }) => {
    const codec = codecs.get(key);
    const bytes = Buffer.from(hex, 'hex');
    try {
      const value = codec.parse(bytes);
      codec.write(value);
      return { codec, bytes, value };
    } catch {
      return undefined;
    }
  });
  console.log(JSON.stringify(items.map((item) => item !== undefined)));
  slice = work(items.filter((item) => item !== undefined));
  slice(Number(warm));
  console.log('ready');
});
