'use strict';
// The environment that mods expect from their host program.

const { addLongMembers } = require('./legacy');
const { handlerOf } = require('./promises');
const { report } = require('./report');
const { described } = require('./thrown');

/** Sets global objects, and prevents errors in mods from ending the program. @param {import('./manager').Manager} manager */
function setGlobals(manager) {
  addLongMembers();
  Object.assign(globalThis, {
    TeraProxy: { DevMode: false, GUIMode: false, IsAdmin: false, UILanguage: 'en', DiscordUrl: '', SupportUrl: '' },
  });
  const nameOf = (/** @type {any} */ error) => manager.modOf(error)?.rawName ?? 'worldwire-mods';
  process.on('uncaughtException', (error) => report('error', nameOf(error), described(error)));
  process.on('unhandledRejection', (error, promise) => {
    const failed = handlerOf(promise);
    if (failed === undefined) report('error', nameOf(error), `unhandled rejection: ${described(error)}`);
    else failed(error);
  });
}

module.exports = { setGlobals };
