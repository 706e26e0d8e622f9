'use strict';
// Describes what a mod throws, which need not be an error.

const path = require('path');

/** The maximum number of calls that are named. */
const MAX_CALLS = 3;

/**
 * Describes in one line what was thrown, and where in the mods' code. Never throws.
 * @param {any} thrown
 * @returns {string}
 */
function described(thrown) {
  const text = (textOf(() => thrown?.message) === undefined ? undefined : textOf(() => String(thrown))) ?? briefly(thrown);
  const calls = placesIn(thrown).slice(0, MAX_CALLS).map(shown);
  return [text.trim().replace(/\s*\n\s*/g, ' '), ...calls].join(', at ');
}

/**
 * Describes briefly what was thrown; a syntax error with its location. Never throws.
 * @param {any} thrown
 * @returns {string}
 */
function message(thrown) {
  const [first] = placesIn(thrown);
  const place = first !== undefined && first.column === undefined ? `, at ${shown(first)}` : '';
  return `${briefly(thrown)}${place}`;
}

/**
 * A location in a mod's code.
 * @typedef {object} Place
 * @property {string} file
 * @property {string} row
 * @property {string} [column] known for calls
 */

/** The location of a syntax error, and those of the calls outside this package, innermost first. Never throws. @param {any} thrown @returns {Place[]} */
function placesIn(thrown) {
  const lines = (textOf(() => thrown?.stack) ?? '').split('\n');
  const places = [];
  // Before a syntax error, Node.js writes the file and line, the line's text, and a marker below it.
  const syntax = /^(?:file:\/\/)?(.+):(\d+)$/.exec(lines[0]);
  if (syntax !== null && textOf(() => thrown.name) === 'SyntaxError') places.push({ file: syntax[1], row: syntax[2] });
  for (const line of lines) {
    const call = /^\s+at (?:.* \()?(?:file:\/\/)?([^()]+):(\d+):(\d+)\)?$/.exec(line);
    if (call === null || call[1].startsWith('node:') || call[1].startsWith(__dirname + path.sep)) continue;
    places.push({ file: call[1], row: call[2], column: call[3] });
  }
  return places;
}

/** @param {Place} place */
function shown({ file, row, column }) {
  const name = `${path.basename(path.dirname(file))}/${path.basename(file)}:${row}`;
  return column === undefined ? name : `${name}:${column}`;
}

/** @param {any} thrown @returns {string} */
function briefly(thrown) {
  return textOf(() => thrown?.message) ?? textOf(() => String(thrown)) ?? 'a value without a text was thrown';
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

module.exports = { described, message, placesIn };
