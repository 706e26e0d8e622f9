'use strict';
// The environment that mods expect from the program in which they run.

const { addLongMembers } = require('./legacy');
const { described } = require('./thrown');

/** Sets global objects, and prevents errors in mods from ending the program. */
function setGlobals() {
  addLongMembers();
  Object.assign(globalThis, {
    TeraProxy: { DevMode: false, GUIMode: false, IsAdmin: false, UILanguage: 'en', DiscordUrl: '', SupportUrl: '' },
  });
  process.on('uncaughtException', (error) => console.error(`[worldwire-mods] error: ${described(error)}`));
  process.on('unhandledRejection', (error) => console.error(`[worldwire-mods] error: unhandled rejection: ${described(error)}`));
}

module.exports = { setGlobals };
