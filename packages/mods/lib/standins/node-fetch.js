'use strict';
// Replaces the package node-fetch with Node's own `fetch`.
const get = (/** @type {[any, any]} */ ...rest) => fetch(...rest);
module.exports = Object.assign(get, { default: get });
