// Times a JavaScript parser of TERA messages on the messages that our own benchmark is timed on.
//
//     node opponent.mjs PARSER FOLDER [MILLISECONDS]
//
// PARSER is the path of a module, of either kind, that exports, by name or as its default:
//
//     load(folder)                    reads the definitions NAME.VERSION.def of a folder
//     parse(name, version, buffer)    gives an object for a message, header included
//     write(name, version, object)    gives a Buffer with the message
//
// Each may return a promise while it loads, but not while it is timed. A parser with other names
// needs a module of a few lines in front of it.
//
// FOLDER holds `definitions/` and `messages.json`: { KIND: [{ name, version, hex }] }. What is
// printed is JSON: { KIND: { messages, decode_ns, encode_ns, different, error } }, nanoseconds for
// one message; `different` counts messages that are written with other bytes than they were read
// from, their opcode left aside.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , parserPath, folder, milliseconds = '500'] = process.argv;
if (!parserPath || !folder) {
  console.error('usage: node opponent.mjs PARSER FOLDER [MILLISECONDS]');
  process.exit(2);
}

/** A file is imported, a folder is asked for its main module. */
async function load(path) {
  const whole = resolve(path);
  try {
    return createRequire(import.meta.url)(whole);
  } catch (error) {
    if (error.code !== 'ERR_REQUIRE_ESM') throw error;
    return import(pathToFileURL(createRequire(import.meta.url).resolve(whole)));
  }
}

function interfaceOf(module) {
  for (const candidate of [module, module?.default]) {
    if (['load', 'parse', 'write'].every((name) => typeof candidate?.[name] === 'function')) {
      return candidate;
    }
  }
  throw new Error(`${parserPath} exports no load, parse and write`);
}

/** Nanoseconds for one call, over at least so many milliseconds after as many to warm up. */
function time(items, work) {
  let nanoseconds = 0n;
  let calls = 0;
  const enough = BigInt(Math.ceil(Number(milliseconds) * 1e6));
  for (const measured of [false, true]) {
    nanoseconds = 0n;
    calls = 0;
    while (nanoseconds < enough) {
      const start = process.hrtime.bigint();
      for (const item of items) work(item);
      nanoseconds += process.hrtime.bigint() - start;
      calls += items.length;
    }
    if (measured) break;
  }
  return Number(nanoseconds) / calls;
}

function same(left, right) {
  return (
    left.length === right.length &&
    left.subarray(0, 2).equals(right.subarray(0, 2)) &&
    left.subarray(4).equals(right.subarray(4))
  );
}

const parser = interfaceOf(await load(parserPath));
await parser.load(join(folder, 'definitions'));
const kinds = JSON.parse(readFileSync(join(folder, 'messages.json'), 'utf8'));
const results = {};
for (const [kind, messages] of Object.entries(kinds)) {
  const result = { messages: messages.length };
  results[kind] = result;
  try {
    const items = messages.map(({ name, version, hex }) => {
      const bytes = Buffer.from(hex, 'hex');
      return { name, version, bytes, object: parser.parse(name, version, bytes) };
    });
    result.different = items.filter(({ name, version, bytes, object }) => {
      return !same(Buffer.from(parser.write(name, version, object)), bytes);
    }).length;
    result.decode_ns = time(items, (item) => parser.parse(item.name, item.version, item.bytes));
    result.encode_ns = time(items, (item) => parser.write(item.name, item.version, item.object));
  } catch (error) {
    result.error = String(error?.message ?? error);
  }
}
console.log(JSON.stringify(results));
