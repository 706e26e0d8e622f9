'use strict';
// Describes whatever a mod throws, which need not be an error.

/**
 * Describes what was thrown, with its stack if it has one. Never throws.
 * @param {any} thrown
 * @returns {string}
 */
function described(thrown) {
  return textOf(() => thrown?.stack) ?? message(thrown);
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
