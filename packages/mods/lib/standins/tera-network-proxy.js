'use strict';
// In place of the package tera-network-proxy, whose connections the proxy provides.
module.exports = {};
