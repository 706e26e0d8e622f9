'use strict';
// Splits a line that a player typed into words.

/** Removes the tags around a whole chat message: `<FONT>text</FONT>`. @param {string} text */
function withoutTags(text) {
  let rest = String(text);
  for (;;) {
    const match = /^<(\w+)(?:\s[^>]*)?>([^]*)<\/(\w+)>$/.exec(rest);
    if (match === null || match[1].toLowerCase() !== match[3].toLowerCase()) return rest;
    // The last tag must close the first one.
    if (match[2].toLowerCase().includes(`</${match[1].toLowerCase()}>`)) return rest;
    rest = match[2];
  }
}

/**
 * Splits a line at spaces. Quotes at the beginning of a word keep spaces, a backslash escapes, and a
 * tag with its content is one piece.
 * @param {string} line
 * @returns {string[]}
 */
function splitLine(line) {
  const words = [];
  let at = 0;
  while (at < line.length) {
    if (line[at] === ' ') {
      at++;
      continue;
    }
    const [word, end] = line[at] === '"' || line[at] === "'" ? quoted(line, at) : plain(line, at);
    words.push(word);
    at = end;
  }
  return words;
}

/** @param {string} line @param {number} start @returns {[string, number]} */
function quoted(line, start) {
  const quote = line[start];
  let word = '';
  for (let at = start + 1; at < line.length; at++) {
    if (line[at] === quote) {
      // Text that follows without a space belongs to the word.
      const [rest, end] = plain(line, at + 1);
      return [word + rest, end];
    }
    if (line[at] === '\\' && at + 1 < line.length) at++;
    word += line[at];
  }
  throw new Error(`Expected ${quote}`);
}

/** @param {string} line @param {number} start @returns {[string, number]} */
function plain(line, start) {
  let word = '';
  let at = start;
  while (at < line.length && line[at] !== ' ') {
    if (line[at] === '\\' && at + 1 < line.length) {
      word += line[at + 1];
      at += 2;
      continue;
    }
    const tag = line[at] === '<' ? /^<(\w+)[^>]*>/.exec(line.slice(at)) : null;
    const close = tag ? line.toLowerCase().indexOf(`</${tag[1].toLowerCase()}>`, at) : -1;
    const end = tag && close >= 0 ? close + tag[1].length + 3 : at + 1;
    word += line.slice(at, end);
    at = end;
  }
  return [word, at];
}

module.exports = { splitLine, withoutTags };
