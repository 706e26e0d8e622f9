'use strict';
// Runs tera-toolbox's parser for `toolbox.rs`, which starts one process per measurement and controls
// it line by line:
//
//     node toolbox.cjs PARSER parse|write MILLISECONDS
//
// The first input line is JSON: { definitions: { KEY: text }, messages: [{ key, hex }] }. The script
// prints which messages the parser can read and write, and `ready` after warming up for
// MILLISECONDS. Each further line is a number of milliseconds to work for; it prints nanoseconds per
// message. PARSER is the parser, or a folder with `node_modules/tera-data-parser`.
//
// The last 256 results are kept alive, so that V8 cannot optimize the work away.

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
      // A definition that the parser cannot read.
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
  // A batch takes about two milliseconds, and ends after a full round of messages.
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
  // Whether the parser can read and write a message; both sides leave out the others.
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
