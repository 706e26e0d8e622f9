'use strict';
// Chat commands: lines that the player types in the private channel, or after an exclamation mark.

const path = require('path');
const { SettingsFile } = require('./settings');
const { watchResult } = require('./promises');
const { report } = require('./report');
const { described } = require('./thrown');
const { splitLine, withoutTags } = require('./words');

/** The eighth private channel: its channel number in C_CHAT, its index, and its ID. */
const CHANNEL = 18;
const CHANNEL_INDEX = 7;
const CHANNEL_ID = -2;
/** How long to hold lines back after the player appears, because the client drops earlier ones. */
const QUIET_MS = 2000;
/** The maximum number of lines held back. */
const MAX_LINES = 1000;

const DEFAULTS = {
  silent_mode: false, login_message: true, private_channel_name: 'Toolbox', public_enable: true, hide_module_names: false,
};
const SETTINGS_VERSION = 3;

/** @typedef {Function | {[name: string]: any}} Callback a function, or an object with one for each sub-command */

/** The commands of one connection: what `mod.require.command` returns. */
class Command {
  /** @type {Map<string, {callback: Callback, context: any, owner: any}>} */
  #commands = new Map();
  /** @type {string[] | null} held lines; null once lines no longer need to wait */
  #waiting = [];
  #hasAppeared = false;
  /** @type {any} */
  #timer = null;

  /** @param {import('./connection').Connection} connection */
  constructor(connection) {
    this.connection = connection;
    this.name = 'command';
    const { folder } = connection.manager;
    this.file = new SettingsFile(path.join(folder, '.command.json'), SETTINGS_VERSION, (_, __, data) => ({ ...DEFAULTS, ...data }));
    /** @type {typeof DEFAULTS} */
    this.settings = { ...DEFAULTS };
    try {
      this.settings = { ...DEFAULTS, ...this.file.load() };
    } catch (error) {
      report('error', 'command', /** @type {Error} */ (error).message);
    }
    this.#addHooks();
    this.#addOwn();
  }

  #addHooks() {
    const { dispatch } = this.connection;
    /** @type {Set<string>} */
    const missing = new Set();
    const hook = (/** @type {any[]} */ ...rest) => {
      try {
        dispatch.hook(this, rest);
      } catch {
        missing.add(rest[0]);
      }
    };
    hook('S_LOGIN', 'event', () => { this.#hasAppeared = false; });
    hook('S_SPAWN_ME', 'event', () => this.#appeared());
    hook('S_JOIN_PRIVATE_CHANNEL', '*', (/** @type {any} */ event) => (event.index === CHANNEL_INDEX ? false : undefined));
    hook('C_REQUEST_PRIVATE_CHANNEL_INFO', '*', (/** @type {any} */ event) => {
      if (event.channelId !== CHANNEL_ID) return undefined;
      this.#send('S_REQUEST_PRIVATE_CHANNEL_INFO', 2, { owner: true, password: 0, members: [], friends: [] });
      return false;
    });
    for (const name of ['C_CHAT', 'C_WHISPER']) {
      hook(name, '*', { order: -10 }, (/** @type {any} */ event) => {
        const line = this.#lineIn(name, event);
        return line !== null && this.#run(line) ? false : undefined;
      });
      hook(name, '*', { order: 10, filter: { silenced: null } }, (/** @type {any} */ event) => {
        const line = event.$silenced ? null : this.#lineIn(name, event);
        if (line === null) return undefined;
        const [word] = splitLine(line);
        this.message(` Unknown command "${word ?? ''}".`);
        return false;
      });
    }
    if (missing.size > 0) {
      report('warning', 'command', `commands work only partly: the data lacks ${[...missing].join(', ')}`);
    }
  }

  /** The command in a chat message; null if there is none. @param {string} name @param {any} event */
  #lineIn(name, event) {
    const text = withoutTags(event.message);
    if (name === 'C_CHAT' && event.channel === CHANNEL) return text;
    if (!this.settings.public_enable || !/^![^!]/.test(text)) return null;
    return text.slice(1);
  }

  /** Runs a line. Returns true if the command exists or the line is faulty. @param {string} line */
  #run(line) {
    try {
      return this.exec(splitLine(line));
    } catch (error) {
      this.message(` Syntax error: ${/** @type {Error} */ (error).message}`);
      return true;
    }
  }

  /** Runs a command. Returns false if no command has this name. @param {string | string[]} line */
  exec(line) {
    const [first = '', ...rest] = Array.isArray(line) ? line : splitLine(line);
    const found = this.#commands.get(String(first).toLowerCase());
    if (found === undefined) return false;
    const failed = (/** @type {any} */ error) => {
      this.message(' Error running callback for command');
      report('error', found.owner?.name ?? 'command', `the command ${first} failed: ${described(error)}`);
    };
    try {
      watchResult(call(found.callback, found.context, rest), failed);
    } catch (error) {
      failed(error);
    }
    return true;
  }

  /**
   * Adds a command, or several names for one.
   * @param {string | string[]} names @param {Callback} callback @param {any} [context] `this` in the callback
   */
  add(names, callback, context, owner = null) {
    const all = Array.isArray(names) ? names : [names];
    if (!['function', 'object'].includes(typeof callback) || callback === null) throw new Error('command.add: the callback must be a function or an object');
    for (const name of all) {
      if (typeof name !== 'string' || name === '') throw new Error('command.add: a name must be a non-empty string');
      if (this.#commands.has(name.toLowerCase())) throw new Error(`command.add: the command ${name} already exists`);
    }
    for (const name of all) this.#commands.set(name.toLowerCase(), { callback, context, owner });
  }

  /** @param {string | string[]} names */
  remove(names) {
    for (const name of [names].flat()) this.#commands.delete(String(name).toLowerCase());
  }

  /** Removes all commands of a mod. @param {any} owner */
  removeAll(owner) {
    for (const [name, command] of this.#commands) {
      if (command.owner === owner) this.#commands.delete(name);
    }
  }

  /** Shows the player a line. @param {string} text */
  message(text) {
    if (this.settings.silent_mode) return;
    if (this.#waiting === null) return this.#show(text);
    if (this.#waiting.length < MAX_LINES) this.#waiting.push(text);
  }

  /** The object that a mod accesses as `mod.command`. @param {any} mod */
  viewFor(mod) {
    const shown = mod.options.cliName ?? mod.options.niceName ?? mod.info.rawName;
    return {
      add: (/** @type {any} */ names, /** @type {Callback} */ callback, /** @type {any} */ context) => this.add(names, callback, context, mod),
      remove: (/** @type {any} */ names) => this.remove(names),
      exec: (/** @type {any} */ line) => this.exec(line),
      message: (/** @type {any} */ text) => this.message(this.settings.hide_module_names ? ` ${text}` : `[${shown}] ${text}`),
    };
  }

  close() {
    clearTimeout(this.#timer);
  }

  #appeared() {
    if (this.#hasAppeared) return;
    this.#hasAppeared = true;
    process.nextTick(() => {
      const { protocol, world } = this.connection;
      this.#send('S_JOIN_PRIVATE_CHANNEL', 2, { index: CHANNEL_INDEX, channelId: CHANNEL_ID, unk: [], name: this.settings.private_channel_name });
      if (this.settings.login_message) {
        this.message(` ${(world.publisher ?? '').toUpperCase()} patch ${protocol.major}.${protocol.minor}, protocol ${protocol.revision}`);
      }
    });
    if (this.#waiting === null || this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      const lines = this.#waiting ?? [];
      this.#waiting = null;
      lines.forEach((line) => this.#show(line));
    }, QUIET_MS);
  }

  /** @param {string} text */
  #show(text) { this.#send('S_PRIVATE_CHAT', 1, { channel: CHANNEL_ID, authorID: 0n, authorName: '', message: text }); }

  /** @param {string} name @param {number} version @param {any} fields */
  #send(name, version, fields) {
    try {
      this.connection.dispatch.inject(true, name, version, fields);
    } catch (error) {
      report('error', 'command', /** @type {Error} */ (error).message);
    }
  }

  /** The program's own commands. */
  #addOwn() {
    const { manager } = this.connection;
    const say = (/** @type {string} */ text) => this.message(` ${text}`);
    const toggle = (/** @type {'silent_mode' | 'login_message' | 'public_enable'} */ key, /** @type {string} */ what, isOn = true) => () => {
      this.settings[key] = !this.settings[key];
      try {
        this.file.save(this.settings);
      } catch (error) {
        report('error', 'command', /** @type {Error} */ (error).message);
      }
      say(`${what} ${this.settings[key] === isOn ? 'on' : 'off'}.`);
    };
    const change = (/** @type {'load' | 'unload' | 'reload'} */ action) => (/** @type {string} */ name) => {
      if (name === undefined) return say(`Add the name of a mod: ${action} NAME.`);
      say(manager[action](name) ? `${action} ${name}: done.` : `${action} ${name}: failed.`);
    };
    this.add(['toolbox', 'proxy'], {
      $default: () => say('The subcommands are silent, onlychannel, loginmessage, load, unload and reload.'),
      silent: toggle('silent_mode', 'Silent mode'),
      onlychannel: toggle('public_enable', 'Commands only in the private channel', false),
      loginmessage: toggle('login_message', 'Login message'),
      load: change('load'),
      unload: change('unload'),
      reload: change('reload'),
    });
  }
}

/** Returns what the callback returns. @param {Callback} callback @param {any} context @param {string[]} words @returns {any} */
function call(callback, context, words) {
  if (typeof callback === 'function') return callback.apply(context, words);
  const [first, ...rest] = words;
  const entries = Object.entries(callback);
  const named = first === undefined
    ? entries.find(([key]) => key === '$none')
    : entries.find(([key]) => !key.startsWith('$') && key.toLowerCase() === first.toLowerCase());
  if (named !== undefined) return call(named[1], context, rest);
  const otherwise = callback.$default;
  return otherwise === undefined ? undefined : call(otherwise, context, words);
}

module.exports = { Command };
