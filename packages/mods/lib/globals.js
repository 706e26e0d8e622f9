'use strict';
// What mods expect of the program that they run in.

const { addLongMembers } = require('./legacy');

/** Sets global objects, and keeps errors of mods from ending the program. */
function setGlobals() {
  addLongMembers();
  Object.assign(globalThis, {
    TeraProxy: { DevMode: false, GUIMode: false, IsAdmin: false, UILanguage: 'en', DiscordUrl: '', SupportUrl: '' },
  });
  process.on('uncaughtException', (error) => console.error('[worldwire-mods] error:', error));
  process.on('unhandledRejection', (error) => console.error('[worldwire-mods] error: unhandled rejection:', error));
}

module.exports = { setGlobals };
