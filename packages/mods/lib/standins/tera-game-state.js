'use strict';
// For older mods: require('tera-game-state')(dispatch) returns the state of the game.
module.exports = (/** @type {any} */ mod) => mod.game;
