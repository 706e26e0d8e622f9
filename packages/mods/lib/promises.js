'use strict';
// Remembers which callbacks returned promises, so that a rejection that no mod handles is reported like an exception.

/** @type {WeakMap<Promise<any>, (error: any) => void>} */
const handlers = new WeakMap();

/** Handles a callback's result if it is a promise that is rejected and that nothing else handles. @param {any} result @param {(error: any) => void} failed */
function watchResult(result, failed) {
  if (result instanceof Promise) handlers.set(result, failed);
}

/** @param {Promise<any>} promise */
function handlerOf(promise) { return handlers.get(promise); }

module.exports = { handlerOf, watchResult };
