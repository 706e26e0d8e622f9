'use strict';
// Describes whatever a mod throws, which need not be an error.

const path = require('path');

/** The maximum number of calls that are named. */
const MAX_CALLS = 3;

/**
 * Describes what was thrown, and where in the code of mods, in one line. Never throws.
 * @param {any} thrown
 * @returns {string}
 */
function described(thrown) {
  const text = (textOf(() => thrown?.message) === undefined ? undefined : textOf(() => String(thrown))) ?? message(thrown);
  const calls = callsIn(textOf(() => thrown?.stack) ?? '');
  return [text.trim().replace(/\s*\n\s*/g, ' '), ...calls].join(', at ');
}

/** The innermost calls in mods: file, line and column. @param {string} stack */
function callsIn(stack) {
  const calls = [];
  for (const line of stack.split('\n')) {
    const found = /^\s+at (?:.* \()?(?:file:\/\/)?([^()]+):(\d+):(\d+)\)?$/.exec(line);
    if (found === null || found[1].startsWith('node:') || found[1].startsWith(__dirname + path.sep)) continue;
    const [, file, row, column] = found;
    calls.push(`${path.basename(path.dirname(file))}/${path.basename(file)}:${row}:${column}`);
    if (calls.length === MAX_CALLS) break;
  }
  return calls;
}

/**
 * Describes briefly what was thrown. Never throws.
 * @param {any} thrown
 * @returns {string}
 */
function message(thrown) {
  return textOf(() => thrown?.message) ?? textOf(() => String(thrown)) ?? 'something without a text was thrown';
}

/** The text that a function returns, if it returns one. @param {() => any} get */
function textOf(get) {
  try {
    const text = get();
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

module.exports = { described, message };
