'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { once } = require('events');
const { test } = require('node:test');
const { folderOf, testData } = require('./conversation');
const { frame, run, start } = require('./program');

const GOOD = 'module.exports = function () {}';
const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

test('the check names mods that block or end the program, and goes on with the others', async () => {
  const mods = folderOf({
    'a.js': GOOD,
    'exits.js': 'process.exit(3)',
    'killed.js': "module.exports = function () { process.kill(process.pid, 'SIGTERM'); for (;;) ; }",
    'loops.js': 'for (;;) ;',
    'starts/module.json': '{"name": "Starts"}',
    'starts/index.js': 'exports.NetworkMod = class { constructor() { for (;;) ; } }',
    'z.js': "module.exports = function () { throw new Error('oops'); }",
  });
  const { code, output } = await run(['check', '--mods', mods, '--data', testData()]);
  assert.strictEqual(code, 1);
  assert.match(output, /^a\.js: runs$/m);
  assert.match(output, /^exits\.js: cannot run\n {2}it ended the program while it was starting \(exit code 3\)$/m);
  if (process.platform !== 'win32') assert.match(output, /^killed\.js: cannot run\n {2}it ended the program while it was starting \(SIGTERM\)$/m);
  assert.match(output, /^loops\.js: cannot run\n {2}it blocked for 3 s while it was starting$/m);
  assert.match(output, /^Starts: cannot run\n {2}it blocked for 3 s while it was starting$/m);
  assert.match(output, /^z\.js: cannot run\n {2}it failed to start: oops$/m);
  assert.match(output, /6 mods, 5 cannot run/);
});

test('a check ends with its input, and so does the process that runs the mods', async () => {
  const mods = folderOf({});
  const note = path.join(mods, 'pid');
  fs.writeFileSync(path.join(mods, 'a.js'), `require('fs').writeFileSync(${JSON.stringify(note)}, String(process.pid)); for (;;) ;`);
  const program = start(['check', '--mods', mods, '--until-eof']);
  const ended = once(program, 'close');
  while (!fs.existsSync(note) || fs.readFileSync(note, 'utf8') === '') await pause(5);
  const child = Number(fs.readFileSync(note, 'utf8'));
  assert(isRunning(child));
  program.stdin.end();
  assert.deepStrictEqual(await ended, [2, null]);
  while (isRunning(child)) await pause(5);
});

test('a check reports what prevents it', async () => {
  const { code, errors } = await run(['check', '--mods', folderOf({}), '--data', '/not/there']);
  assert.strictEqual(code, 2);
  assert.match(errors, /^worldwire-mods: .*\/not\/there/);
});

test('a mod that blocks while it starts is named, and not loaded again in the same run', async () => {
  const mods = folderOf({ 'a.js': GOOD, 'loops.js': 'for (;;) ;' });
  const blocked = path.join(folderOf({}), 'new', 'blocked');
  const words = ['--connect', 'stdin', '--mods', mods, '--revision', '7', '--blocked', blocked];
  const first = await run(words);
  assert.match(first.errors, /the mod loops\.js has been starting for 3 s; ending the program/);
  assert.notStrictEqual(first.code, 0);
  const { code, output } = await run(words);
  assert.strictEqual(code, 0);
  assert.match(output, /\[loops\.js\] does not run: it blocked while it was starting; correct it, then restart the proxy/);
});

test('a mod that exits while it starts is named, and not loaded again in the same run', async () => {
  const mods = folderOf({ 'a.js': GOOD, 'exits.js': 'module.exports = function () { process.exit(3); };', 'leaves.js': 'process.exit(0);' });
  const blocked = path.join(folderOf({}), 'new', 'blocked');
  const words = ['--connect', 'stdin', '--mods', mods, '--revision', '7', '--blocked', blocked];
  const first = await run(words);
  assert.match(first.errors, /error: the mod leaves\.js has ended the program while it was starting \(exit code 0\)\n/);
  // The other one exits when a connection begins.
  const input = [frame(0, Buffer.from(JSON.stringify({ type: 'welcome' }))), frame(0, Buffer.from(JSON.stringify({ type: 'opened', conversation: 1, family: 'tera' })))];
  const second = await run(words, Buffer.concat(input));
  assert.match(second.output, /\[leaves\.js\] does not run: it ended the program \(exit code 0\) while it was starting; correct it, then restart the proxy/);
  assert.match(second.errors, /error: the mod exits\.js has ended the program while it was starting \(exit code 3\)\n/);
  assert.strictEqual(second.code, 3);
  const third = await run(words, Buffer.concat(input));
  assert.match(third.output, /\[exits\.js\] does not run: it ended the program \(exit code 3\) while it was starting/);
  assert.deepStrictEqual([third.code, third.errors], [0, '']);
});

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
