'use strict';
// For mods of before 2018: require('command')(dispatch) returns the mod's commands.
module.exports = (/** @type {any} */ mod) => mod.command;
