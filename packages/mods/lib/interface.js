'use strict';
// The objects passed to mods' constructors.

const { format } = require('util');
const { Timers } = require('./timers');
const { legacyView } = require('./legacy');
const { report } = require('./report');
const { described } = require('./thrown');

/** @typedef {import('./manager').LoadedMod} LoadedMod */
/** @typedef {import('./manager').Manager} Manager */
/** @typedef {import('./connection').Connection} Connection */
/** @typedef {import('./client').ClientStandIn} ClientStandIn */

/** What all of a mod's interfaces share. A GlobalMod's interface has nothing else. */
class ModInterface {
  /** @param {LoadedMod} mod @param {Manager} manager */
  constructor(mod, manager) {
    this.info = mod.facts;
    this.name = mod.info.name;
    this.options = mod.info.options;
    this.rootFolder = mod.info.path;
    this.loaded = mod;
    this.owner = manager;
    this.manager = manager.facade;
    Object.defineProperty(this, 'loaded', { enumerable: false });
    Object.defineProperty(this, 'owner', { enumerable: false });
  }

  get settings() { return this.loaded.settings; }
  set settings(settings) { this.loaded.settings = settings; }
  saveSettings() { this.owner.saveSettings(this.loaded); }
  loadSettings() { this.loaded.readSettings(); }

  /** @param {any[]} rest */
  log(...rest) { report('info', this.info.rawName, textOf(rest)); }
  /** @param {any[]} rest */
  warn(...rest) { report('warning', this.info.rawName, textOf(rest)); }
  /** @param {any[]} rest */
  error(...rest) { report('error', this.info.rawName, textOf(rest)); }
}

/** The interface of a ClientMod: one for each game client. */
class ClientInterface extends ModInterface {
  /** @param {LoadedMod} mod @param {Manager} manager @param {ClientStandIn} client */
  constructor(mod, manager, client) {
    super(mod, manager);
    this.clientInterface = client.viewFor(this);
    this.info = mod.facts;
  }

  get globalMod() { return this.loaded.global; }
  /** @param {string} query @param {any[]} rest */
  queryData(query, ...rest) { return this.clientInterface.queryData(query, ...rest); }
}

/** The interface of a NetworkMod: one for each connection to a game server. */
class NetworkInterface extends ModInterface {
  #timers = new Timers((error) => this.error(error));

  /** @param {LoadedMod} mod @param {Manager} manager @param {Connection} connection */
  constructor(mod, manager, connection) {
    super(mod, manager);
    const { protocol, world } = connection;
    this.connection = connection.view;
    this.clientInterface = connection.client.viewFor(this);
    this.majorPatchVersion = protocol.major;
    this.minorPatchVersion = protocol.minor;
    this.protocolVersion = protocol.revision;
    this.publisher = (world.publisher ?? '').toLowerCase();
    this.platform = world.platform ?? 'pc';
    this.environment = world.environment ?? 'live';
    this.language = (world.language ?? '').toLowerCase();
    this.serverId = world.serverId;
    this.serverList = world.serverList ?? {};
    this.dispatch = connection.dispatchFor(this);
    this.game = connection.game;
    this.command = connection.command?.viewFor(this);
    this.require = requirer(this, connection);
    /** Whether its hooks, timers and commands have been removed. */
    this.isGone = false;
    Object.defineProperty(this, 'isGone', { enumerable: false });
    const left = () => this.#timers.clearAll();
    connection.game?.on('leave_game', left);
    this.release = () => {
      this.#timers.clearAll();
      connection.game?.removeListener('leave_game', left);
      connection.dispatch.unhookAll(this);
      connection.command?.removeAll(this);
      this.isGone = true;
    };
    Object.defineProperty(this, 'release', { enumerable: false });
    this.hosting = connection;
    Object.defineProperty(this, 'hosting', { enumerable: false });
  }

  get globalMod() { return this.loaded.global; }
  get clientMod() { return this.loaded.clients.get(this.hosting.client)?.instance ?? null; }

  /** @param {any[]} rest */
  hook(...rest) { return this.isGone ? null : this.hosting.dispatch.hook(this, rest); }
  /** @param {any[]} rest */
  hookOnce(...rest) { return this.isGone ? null : this.hosting.dispatch.hook(this, rest, true); }
  /** @param {any[]} rest */
  tryHook(...rest) { return attempt(() => this.hook(...rest), null); }
  /** @param {any[]} rest */
  tryHookOnce(...rest) { return attempt(() => this.hookOnce(...rest), null); }
  /** @param {any} hook */
  unhook(hook) { this.hosting.dispatch.unhook(hook); }

  /** @param {string} name @param {any} version @param {any} [fields] */
  send(name, version, fields) {
    if (typeof name !== 'string') throw new TypeError('send: the message must be a name; use toClient or toServer for a Buffer');
    const initial = name.replace(/^TTB_/, '')[0];
    if (!['S', 'I', 'C'].includes(initial)) throw new Error(`send: ${name} does not begin with S, I or C; use toClient or toServer`);
    return this.#inject(initial !== 'C', [name, version, fields]);
  }

  /** @param {any[]} rest */
  trySend(...rest) { return attempt(() => this.send(.../** @type {[any, any, any]} */ (rest)), false); }
  /** @param {any[]} rest a name, a version and fields, or a Buffer */
  toClient(...rest) { return this.#inject(true, rest); }
  /** @param {any[]} rest */
  toServer(...rest) { return this.#inject(false, rest); }
  /** @param {any[]} rest */
  tryToClient(...rest) { return attempt(() => this.toClient(...rest), false); }
  /** @param {any[]} rest */
  tryToServer(...rest) { return attempt(() => this.toServer(...rest), false); }

  /** @param {boolean} toClient @param {any[]} rest */
  #inject(toClient, [name, version, fields]) {
    if (this.isGone) return false;
    const { dispatch } = this.hosting;
    return Buffer.isBuffer(name) ? dispatch.injectRaw(toClient, name) : dispatch.inject(toClient, name, version, fields);
  }

  /** @param {string} text */
  parseSystemMessage(text) { return this.hosting.protocol.parseSystemMessage(text); }
  /** @param {any} message @param {any} [tokens] */
  buildSystemMessage(message, tokens) { return this.hosting.protocol.buildSystemMessage(message, tokens); }
  /** @param {string} query @param {any[]} rest */
  queryData(query, ...rest) { return this.clientInterface.queryData(query, ...rest); }

  /** @param {Function} callback @param {number} [delay] @param {any[]} rest */
  setTimeout(callback, delay, ...rest) { return this.#timers.setTimeout(callback, delay, ...rest); }
  /** @param {Function} callback @param {number} [delay] @param {any[]} rest */
  setInterval(callback, delay, ...rest) { return this.#timers.setInterval(callback, delay, ...rest); }
  /** @param {any} timer */
  clearTimeout(timer) { return this.#timers.clearTimeout(timer); }
  /** @param {any} timer */
  clearInterval(timer) { return this.#timers.clearInterval(timer); }
  clearAllTimeouts() { this.#timers.clearAllTimeouts(); }
  clearAllIntervals() { this.#timers.clearAllIntervals(); }
  get activeTimeouts() { return this.#timers.timeouts; }
  get activeIntervals() { return this.#timers.intervals; }

  /** The object that is passed to the mod's constructor. @param {boolean} isOldForm */
  view(isOldForm) { return isOldForm ? legacyView(this) : this; }
}

/** `mod.require.NAME`: what another mod offers. @param {NetworkInterface} from @param {Connection} connection */
function requirer(from, connection) {
  return new Proxy({}, {
    get: (_, name) => (typeof name === 'string' ? from.owner.requireFor(name, from, connection) : undefined),
    has: (_, name) => typeof name === 'string' && from.owner.isInstalled(name),
    set: (_, name) => { throw new TypeError(`mod.require.${String(name)} cannot be set`); },
  });
}

/** What a mod logs, as one text. @param {any[]} values */
function textOf(values) {
  return format(...values.map((value) => (value instanceof Error ? described(value) : value)));
}

/** @template T @param {() => T} f @param {any} otherwise */
function attempt(f, otherwise) {
  try {
    return f();
  } catch {
    return otherwise;
  }
}

module.exports = { ModInterface, ClientInterface, NetworkInterface };
