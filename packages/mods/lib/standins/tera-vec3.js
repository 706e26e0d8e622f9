'use strict';
// Replaces the package tera-vec3.
const { Vec3 } = require('../types');

module.exports = Object.assign(Vec3, { Vec3 });
