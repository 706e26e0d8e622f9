'use strict';
// Runs the program in tests, as the proxy does.

const path = require('path');
const { spawn } = require('child_process');

const PROGRAM = path.join(__dirname, '../bin/worldwire-mods.js');

/** A frame from the proxy. @param {number} kind @param {Buffer} content */
function frame(kind, content) {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(content.length + 1, 0);
  head[4] = kind;
  return Buffer.concat([head, content]);
}

/** @param {string[]} words */
function start(words) {
  return spawn(process.execPath, [PROGRAM, ...words]);
}

/** Runs the program until it ends. @param {string[]} words @param {string | Buffer} input @returns {Promise<{code: number | null, output: string, errors: string}>} */
function run(words, input = '') {
  return new Promise((resolve) => {
    const child = start(words);
    const said = { output: '', errors: '' };
    child.stdout.on('data', (text) => { said.output += text; });
    child.stderr.on('data', (text) => { said.errors += text; });
    child.on('close', (code) => resolve({ code, ...said }));
    child.stdin.end(input);
  });
}

module.exports = { frame, run, start };
