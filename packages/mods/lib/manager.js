'use strict';
// Loads, unloads and reloads mods, and creates their instances for each connection.

const { CORE_MODS, findMods } = require('./info');
const { addInit } = require('./legacy');
const { ClientInterface, ModInterface, NetworkInterface } = require('./interface');
const { report } = require('./report');
const { SettingsFile } = require('./settings');
const thrown = require('./thrown');
const modules = require('./modules');

/** @typedef {import('./info').ModInfo} ModInfo */
/** @typedef {import('./connection').Connection} Connection */

/** A mod whose code is loaded, with its instances. */
class LoadedMod {
  /** @param {ModInfo} info */
  constructor(info) {
    this.info = info;
    /** The object that mods access as `info`. */
    this.facts = { ...info.raw, ...info };
    const exported = modules.load(info.entry);
    const forms = ['NetworkMod', 'ClientMod', 'GlobalMod', 'RequireInterface'];
    const isObject = (typeof exported === 'object' || typeof exported === 'function') && exported !== null;
    this.isOldForm = !(isObject && forms.some((form) => exported[form] !== undefined));
    if (this.isOldForm && typeof exported !== 'function') throw new Error(`${info.entry} does not export a function or class`);
    const old = info.keywords.includes('client') ? { ClientMod: exported } : { NetworkMod: exported };
    /** @type {Record<string, any>} */
    this.exported = this.isOldForm ? old : exported;
    this.file = SettingsFile.of(info, modules.load);
    /** @type {any} */
    this.settings = {};
    this.readSettings();
    /** @type {any} */
    this.global = null;
    /** @type {Map<any, {instance: any, mod: ClientInterface}>} by client */
    this.clients = new Map();
    /** @type {Map<Connection, {instance: any, mod: NetworkInterface}>} */
    this.networks = new Map();
  }

  readSettings() {
    this.settings = addInit(this.file ? this.file.load() : {}, (version, migrate) => {
      if (this.file !== null) return this.settings;
      const file = SettingsFile.withInit(this.info, version, migrate);
      const settings = file.load();
      this.file = file;
      return settings;
    });
  }
}

class Manager {
  /** @type {Map<string, ModInfo>} */
  #installed = new Map();
  /** Whether a file belongs to an installed mod. @type {Map<string, (file: string) => boolean>} */
  #modules = new Map();
  /** @type {Map<string, LoadedMod>} in the order of loading */
  #loaded = new Map();
  /** @type {Set<string>} mods that are being loaded, to detect cycles */
  #loading = new Set();
  /** The mod that is being started. @type {string | null} */
  #starting = null;
  /** @type {Set<Connection>} */
  #connections = new Set();
  /** @type {Set<string>} names of mods that were found and cannot be installed */
  #unreadable = new Set();

  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    /** @type {{name: string, why: string}[]} mods that do not run, with the reason */
    this.refused = [];
    /** Receives the owner of each hook that is called. @type {((owner: {name: string}) => void) | undefined} */
    this.mark = undefined;
    /** Receives the name of each mod before its code is loaded or an instance is created, and null after it. @type {((name: string | null) => void) | undefined} */
    this.starting = undefined;
    /** Mods that must not be loaded, by name, and why. @type {Map<string, string>} */
    this.skipped = new Map();
    /** The object that mods access as `mod.manager`. */
    this.facade = Object.freeze({
      isInstalled: (/** @type {string} */ name) => this.isInstalled(name),
      isLoaded: (/** @type {string} */ name) => this.isLoaded(name),
      isCoreMod: (/** @type {string} */ name) => CORE_MODS.includes(name.toLowerCase()),
      getInfo: (/** @type {string} */ name) => this.#loaded.get(name.toLowerCase())?.facts ?? this.#installed.get(name.toLowerCase()) ?? null,
      get: (/** @type {string} */ name) => this.#loaded.get(name.toLowerCase())?.global ?? null,
      load: (/** @type {string} */ name) => this.load(name),
      unload: (/** @type {string} */ name) => this.unload(name),
      reload: (/** @type {string} */ name) => this.reload(name),
    });
  }

  /** The mod in whose code something was thrown. @param {any} error @returns {ModInfo | undefined} */
  modOf(error) {
    const files = thrown.placesIn(error).map(({ file }) => file);
    for (const file of files) {
      for (const [name, isOfMod] of this.#modules) if (isOfMod(file)) return this.#installed.get(name);
    }
    return undefined;
  }

  /** Finds and loads all mods. */
  loadAll() {
    modules.addRoot(this.folder);
    const { mods, refused } = findMods(this.folder);
    this.refused.push(...refused);
    for (const { name } of refused) this.#unreadable.add(name);
    for (const { name, why } of refused) report('error', name, `does not run: ${why}`);
    for (const info of mods) this.#install(info);
    for (const { name, rawName } of mods) {
      const why = this.skipped.get(name);
      if (why === undefined) continue;
      this.refused.push({ name: rawName, why });
      report('error', rawName, `does not run: ${why}`);
    }
    for (const { name } of mods) this.load(name);
  }

  /** @param {ModInfo} info */
  #install(info) {
    modules.addRoot(info.path);
    this.#installed.set(info.name, info);
    this.#modules.set(info.name, modules.moduleTest(info.entry));
  }

  /** @returns {LoadedMod[]} */
  get loaded() { return [...this.#loaded.values()]; }
  /** @param {string} name */
  isInstalled(name) { return CORE_MODS.includes(name.toLowerCase()) || this.#installed.has(name.toLowerCase()); }
  /** @param {string} name */
  isLoaded(name) { return CORE_MODS.includes(name.toLowerCase()) || this.#loaded.has(name.toLowerCase()); }

  /** Loads a mod and creates its instances for all connections. Returns false if that fails. @param {string} name */
  load(name) {
    const key = name.toLowerCase();
    if (this.#loaded.has(key)) return true;
    const mod = this.#loadCode(key);
    if (mod === null) return false;
    for (const connection of this.#connections) this.#instantiate(mod, connection);
    return true;
  }

  /** @param {string} key */
  #loadCode(key) {
    const info = this.#installed.get(key) ?? this.#findAgain(key);
    if (info === undefined || this.#loading.has(key) || this.skipped.has(key)) return null;
    this.#loading.add(key);
    try {
      const mod = this.#start(info, () => {
        const loaded = new LoadedMod(info);
        const { GlobalMod } = loaded.exported;
        if (GlobalMod) loaded.global = new GlobalMod(new ModInterface(loaded, this));
        return loaded;
      });
      this.#loaded.set(key, mod);
      return mod;
    } catch (error) {
      this.#fail(info, 'it cannot be loaded', error);
      return null;
    } finally {
      this.#loading.delete(key);
    }
  }

  /** Runs code that starts a mod. Mods can start others. @template T @param {ModInfo} info @param {() => T} f */
  #start({ name }, f) {
    const outer = this.#starting;
    this.#starting = name;
    this.starting?.(name);
    try {
      return f();
    } finally {
      this.#starting = outer;
      this.starting?.(outer);
    }
  }

  /** A mod that was installed later. @param {string} key */
  #findAgain(key) {
    const info = findMods(this.folder).mods.find(({ name }) => name === key);
    if (info !== undefined) this.#install(info);
    return info;
  }

  /** @param {ModInfo} info @param {string} what @param {any} error */
  #fail(info, what, error) {
    const why = `${what}: ${thrown.message(error)}`;
    // This may happen again in every conversation.
    if (!this.refused.some((known) => known.name === info.rawName && known.why === why)) this.refused.push({ name: info.rawName, why });
    report('error', info.rawName, `${what}: ${thrown.described(error)}`);
  }

  /** Unloads a mod. @param {string} name */
  unload(name) {
    const key = name.toLowerCase();
    const mod = this.#loaded.get(key);
    if (mod === undefined) return false;
    for (const connection of [...mod.networks.keys()]) this.#release(mod, connection);
    for (const { instance } of mod.clients.values()) this.#destroy(mod, instance);
    this.#destroy(mod, mod.global);
    if (mod.info.options.settingsAutosaveOnClose !== false) this.saveSettings(mod);
    this.#loaded.delete(key);
    modules.forget(mod.info.entry);
    return true;
  }

  /** Unloads a mod and loads it again; its instances can pass their state on. @param {string} name */
  reload(name) {
    const key = name.toLowerCase();
    const mod = this.#loaded.get(key);
    if (mod === undefined || !mod.info.options.reloadable) return false;
    const states = {
      global: save(mod.global),
      clients: new Map([...mod.clients].map(([client, { instance }]) => [client, save(instance)])),
      networks: new Map([...mod.networks].map(([connection, { instance }]) => [connection, save(instance)])),
    };
    this.unload(key);
    this.#findAgain(key);
    if (!this.load(key)) return false;
    const again = /** @type {LoadedMod} */ (this.#loaded.get(key));
    const restore = (/** @type {any} */ instance, /** @type {any} */ state) => {
      if (state === undefined || typeof instance?.loadState !== 'function') return;
      this.#guard(again, 'loadState failed', () => instance.loadState(state));
    };
    restore(again.global, states.global);
    for (const [client, { instance }] of again.clients) restore(instance, states.clients.get(client));
    for (const [connection, { instance }] of again.networks) restore(instance, states.networks.get(connection));
    return true;
  }

  /** The number of mods running in a connection, and of those installed. @param {Connection} connection */
  count(connection) {
    const runs = (/** @type {LoadedMod} */ { exported, networks }) => !exported.NetworkMod || networks.has(connection);
    return { running: this.loaded.filter(runs).length, installed: this.#installed.size + this.#unreadable.size };
  }

  /** Writes a mod's settings. @param {LoadedMod} mod */
  saveSettings(mod) {
    this.#guard(mod, 'its settings cannot be saved', () => mod.file?.save(mod.settings));
  }

  /** Creates the instances of all mods for a connection. @param {Connection} connection */
  connect(connection) {
    this.#connections.add(connection);
    for (const mod of this.loaded) this.#instantiate(mod, connection);
  }

  /** @param {Connection} connection */
  disconnect(connection) {
    this.#connections.delete(connection);
    for (const mod of this.loaded) {
      this.#release(mod, connection);
      const client = mod.clients.get(connection.client);
      mod.clients.delete(connection.client);
      if (client) this.#destroy(mod, client.instance);
    }
  }

  /** @param {LoadedMod} mod @param {Connection} connection */
  #instantiate(mod, connection) {
    const { ClientMod, NetworkMod } = mod.exported;
    const { client } = connection;
    if (ClientMod && !mod.clients.has(client)) {
      const own = new ClientInterface(mod, this, client);
      this.#guard(mod, 'its client part failed to start', () => {
        const instance = this.#start(mod.info, () => new ClientMod(own));
        mod.clients.set(client, { instance, mod: own });
        if (typeof (instance.install ?? ClientMod.install) === 'function') own.warn('it changes the client\'s files, which is not supported');
      });
    }
    if (!NetworkMod || mod.networks.has(connection)) return;
    const own = new NetworkInterface(mod, this, connection);
    // It is added before it starts so that mods that need each other do not start each other forever.
    const entry = { instance: /** @type {any} */ (null), mod: own };
    mod.networks.set(connection, entry);
    const hasStarted = this.#guard(mod, 'it failed to start', () => {
      entry.instance = this.#start(mod.info, () => new NetworkMod(own.view(mod.isOldForm)));
    });
    if (hasStarted) return;
    own.release();
    mod.networks.delete(connection);
  }

  /** @param {LoadedMod} mod @param {Connection} connection */
  #release(mod, connection) {
    const entry = mod.networks.get(connection);
    if (entry === undefined) return;
    this.#destroy(mod, entry.instance);
    entry.mod.release();
    mod.networks.delete(connection);
  }

  /** @param {LoadedMod} mod @param {any} instance */
  #destroy(mod, instance) {
    if (typeof instance?.destructor === 'function') this.#guard(mod, 'its destructor failed', () => instance.destructor());
  }

  /** @param {LoadedMod} mod @param {string} what @param {() => void} f */
  #guard(mod, what, f) {
    try {
      f();
      return true;
    } catch (error) {
      this.#fail(mod.info, what, error);
      return false;
    }
  }

  /**
   * The result of `mod.require.NAME`.
   * @param {string} name @param {NetworkInterface} from @param {Connection} connection
   */
  requireFor(name, from, connection) {
    const key = name.toLowerCase();
    if (key === 'command') return connection.command;
    if (key === 'tera-game-state' || (key === 'game' && !this.#installed.has(key))) return connection.game;
    const mod = this.#loaded.get(key) ?? (this.isInstalled(key) ? this.#loadCode(key) : null);
    if (mod === null || mod === undefined) {
      throw new Error(`[${from.info.rawName}] needs the mod "${name}", which is ${this.isInstalled(key) ? 'not running' : 'not installed'}`);
    }
    this.#instantiate(mod, connection);
    const instances = {
      globalMod: mod.global,
      clientMod: mod.clients.get(connection.client)?.instance ?? null,
      networkMod: mod.networks.get(connection)?.instance ?? null,
    };
    const { RequireInterface } = mod.exported;
    if (!RequireInterface) return mod.isOldForm ? instances.networkMod : instances;
    const rest = [instances.globalMod, instances.clientMod, instances.networkMod, from];
    const isClass = /^class\b/.test(Function.prototype.toString.call(RequireInterface));
    return isClass ? new RequireInterface(...rest) : RequireInterface(...rest);
  }

  /** Unloads everything before the program exits. */
  close() {
    for (const { info } of this.loaded.reverse()) this.unload(info.name);
  }
}

/** @param {any} instance */
function save(instance) {
  return typeof instance?.saveState === 'function' ? instance.saveState() : undefined;
}

module.exports = { LoadedMod, Manager };
