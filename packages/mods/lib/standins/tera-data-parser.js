'use strict';
// Replaces the package tera-data-parser, but contains only its classes. Mods read and write messages
// through their dispatch.
const types = require('./tera-types');
module.exports = { types, ...types };
