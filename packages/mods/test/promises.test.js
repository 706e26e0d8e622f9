'use strict';
const assert = require('assert');
const { once } = require('events');
const { test } = require('node:test');
const { folderOf, testData } = require('./conversation');
const { frame, start } = require('./program');

/** What mods throw asynchronously, and what the log says about it. "text" and "null" have no location. */
const EXPECTED = [
  '[Loads] unhandled rejection: Error: while loading, at loads/index.js:1:',
  '[Loads] Error: in a timer, at loads/index.js:2:26',
  '[nested] unhandled rejection: Error: inside, at nested/inner.js:1:',
  '[calls] the hook for S_CHAT, version 4, failed: text',
  '[calls] the hook for S_CHAT, raw, function data, failed: null',
  '[calls] the hook for S_CHAT, event, failed: Error: oops, at calls/index.js:',
  '[calls] the command all failed: text',
  '[calls] text from a timer',
  '[calls] text from an interval',
];

test('what mods throw asynchronously is logged under their names', { timeout: 60_000 }, async () => {
  const mods = folderOf({
    'loads/module.json': '{"name": "Loads"}',
    'loads/index.js': "Promise.reject(new Error('while loading'));\nsetTimeout(() => { throw new Error('in a timer'); });\nmodule.exports = function () {};",
    'nested/index.js': "require('./inner')(); module.exports = function () {};",
    'nested/inner.js': "module.exports = async () => { await null; throw new Error('inside'); };",
    'calls/index.js': `module.exports = function (mod) {
      const all = { filter: { fake: null } };
      mod.hook('S_CHAT', 4, all, async () => { throw 'text'; });
      mod.hook('S_CHAT', 'raw', all, async function data() { throw null; });
      mod.hook('S_CHAT', 'event', all, async () => { await null; throw new Error('oops'); });
      mod.hook('S_CHAT', 4, all, () => { const it = Promise.reject(new Error('caught by the mod')); it.catch(() => {}); return it; });
      mod.send('S_CHAT', 4, {});
      mod.command.add('all', { $default: async () => { throw 'text'; } });
      mod.command.exec('all x');
      mod.setTimeout(async () => { throw 'text from a timer'; });
      const interval = mod.setInterval(async () => { mod.clearInterval(interval); throw 'text from an interval'; }, 1);
    };`,
  });
  const program = start(['--connect', 'stdin', '--mods', mods, '--data', testData(), '--revision', '7']);
  const ended = once(program, 'close');
  let [output, errors] = ['', ''];
  program.stderr.on('data', (text) => { errors += text; });
  const lacking = () => EXPECTED.filter((text) => !output.includes(JSON.stringify(text).slice(1, -1)));
  const isComplete = new Promise((resolve) => {
    program.stdout.on('data', (chunk) => {
      output += chunk.toString('latin1');
      if (lacking().length === 0) resolve(undefined);
    });
  });
  for (const line of [{ type: 'welcome' }, { type: 'opened', conversation: 1, family: 'tera' }]) {
    program.stdin.write(frame(0, Buffer.from(JSON.stringify(line))));
  }
  await Promise.race([isComplete, new Promise((resolve) => setTimeout(resolve, 20_000).unref())]);
  program.stdin.end();
  await ended;
  assert.deepStrictEqual(lacking(), [], `${output}\n${errors}`);
  assert(!output.includes('caught by the mod'), output);
  assert(!output.includes('[worldwire-mods] unhandled'), output);
});
