'use strict';
// In place of the package node-fetch: node's own.
const get = (/** @type {[any, any]} */ ...rest) => fetch(...rest);
module.exports = Object.assign(get, { default: get });
