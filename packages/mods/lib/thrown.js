'use strict';
// Texts about whatever a mod throws, which need not be an error.

/**
 * What was thrown, with its stack if it has one. Never throws itself.
 * @param {any} thrown
 * @returns {string}
 */
function described(thrown) {
  return textOf(() => thrown?.stack) ?? message(thrown);
}

/**
 * What was thrown, in few words. Never throws itself.
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
