'use strict';
// Replaces the package tera-network-proxy, whose connections the proxy provides.
module.exports = {};
