'use strict';
// The environment that mods expect from the program in which they run.

const { addLongMembers } = require('./legacy');
const { report } = require('./report');
const { described } = require('./thrown');

/** Sets global objects, and prevents errors in mods from ending the program. */
function setGlobals() {
  addLongMembers();
  Object.assign(globalThis, {
    TeraProxy: { DevMode: false, GUIMode: false, IsAdmin: false, UILanguage: 'en', DiscordUrl: '', SupportUrl: '' },
  });
  process.on('uncaughtException', (error) => report('error', 'worldwire-mods', `${described(error)}`));
  process.on('unhandledRejection', (error) => report('error', 'worldwire-mods', `unhandled rejection: ${described(error)}`));
}

module.exports = { setGlobals };
