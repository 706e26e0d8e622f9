'use strict';
// What mods expect of the program that they run in.

const { addLongMembers } = require('./legacy');
const { described } = require('./thrown');

/** Sets global objects, and keeps errors of mods from ending the program. */
function setGlobals() {
  addLongMembers();
  Object.assign(globalThis, {
    TeraProxy: { DevMode: false, GUIMode: false, IsAdmin: false, UILanguage: 'en', DiscordUrl: '', SupportUrl: '' },
  });
  process.on('uncaughtException', (error) => console.error(`[worldwire-mods] error: ${described(error)}`));
  process.on('unhandledRejection', (error) => console.error(`[worldwire-mods] error: unhandled rejection: ${described(error)}`));
}

module.exports = { setGlobals };
