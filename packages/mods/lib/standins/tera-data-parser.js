'use strict';
// In place of the package tera-data-parser: only its classes. Mods read and write messages through
// their dispatch.
const types = require('./tera-types');
module.exports = { types, ...types };
