'use strict';
// For mods from before 2018: require('command')(dispatch) returns the mod's commands.
module.exports = (/** @type {any} */ mod) => mod.command;
