'use strict';
// For older mods: require('tera-game-state')(dispatch) returns the game's state.
module.exports = (/** @type {any} */ mod) => mod.game;
