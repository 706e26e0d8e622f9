'use strict';
// Messages for users, in the log of the proxy or on standard error.

/** @typedef {'info' | 'warning' | 'error'} Level */

const PREFIXES = { info: '', warning: 'warning: ', error: 'error: ' };

/** @type {(level: Level, text: string) => void} */
let write = (level, text) => console.error(text.replace('] ', `] ${PREFIXES[level]}`));

/** Sends all reports to a function. @param {(level: Level, text: string) => void} to */
function reportTo(to) { write = to; }

/** @param {Level} level @param {string} source a mod, or a part of this package @param {string} text */
function report(level, source, text) { write(level, `[${source}] ${text}`); }

module.exports = { report, reportTo };
