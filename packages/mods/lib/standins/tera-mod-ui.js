'use strict';
// Replaces the settings window, which needs Electron, with windows that never open.
const { EventEmitter } = require('events');

class Window extends EventEmitter {
  show() {}
  hide() {}
  close() {}
  update() {}
}

module.exports = { Settings: class Settings extends Window { constructor() { super(); this.ui = new Window(); } }, Host: class Host extends Window {} };
