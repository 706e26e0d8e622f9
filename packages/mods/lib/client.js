'use strict';
// A stand-in for the running game client, from which the original program reads data.

const { EventEmitter } = require('events');
const { readText } = require('./data');

/** @typedef {{name: string, attributes: Record<string, any>, children: Node[]}} Node a node of the client's data */

const MAX_NODES = 5_000_000;

class ClientStandIn {
  /** @param {import('./protocol').World} world @param {import('./protocol').Protocol} protocol */
  constructor(world, protocol) {
    this.world = world;
    this.protocol = protocol;
    /** @type {Node | null | undefined} */
    this.root = undefined;
  }

  /** The object that is passed to a mod. @param {{log: Function, warn: Function}} mod */
  viewFor(mod) { return new ClientView(this, mod); }

  /** The client's data (nodes as JSON), if the user supplied a file. @returns {Node | null} */
  get data() {
    if (this.root === undefined) {
      this.root = this.world.clientData === undefined ? null : JSON.parse(readText(this.world.clientData));
    }
    return this.root ?? null;
  }
}

class ClientView extends EventEmitter {
  /** @type {Set<string>} what has been reported */
  #told = new Set();

  /** @param {ClientStandIn} client @param {{log: Function, warn: Function}} mod */
  constructor(client, mod) {
    super();
    this.client = client;
    this.mod = mod;
    const { world, protocol } = client;
    this.info = {
      pid: 0, arch: 'x64', path: '', majorPatchVersion: protocol.major, minorPatchVersion: protocol.minor,
      protocolVersion: protocol.revision, language: world.language ?? '', publisher: world.publisher ?? '',
      platform: world.platform ?? 'pc', environment: world.environment ?? 'live',
    };
    for (const key of ['client', 'mod']) Object.defineProperty(this, key, { enumerable: false });
    // The original emits this once it has read the client's data.
    setImmediate(() => this.emit('ready'));
  }

  /** @param {string} key @param {string} text */
  #tell(key, text) {
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.mod.warn(text);
  }

  flashWindow() { this.#tell('flash', 'flashWindow does nothing here'); }
  configureCameraShake() { this.#tell('shake', 'configureCameraShake does nothing here'); }
  hasFocus() { return true; }

  /**
   * Finds nodes in the client's data.
   * @param {string} query a path such as `/NpcData@huntingZoneId=?/Template/`; each `?` is an argument
   * @param {any[]} [values] for the question marks
   * @param {boolean} [findAll] returns a list
   * @param {boolean} [children] whether children are included
   * @param {string[]} [attributes] the attributes to include; all by default
   */
  async queryData(query, values = [], findAll = false, children = true, attributes = undefined) {
    const { data } = this.client;
    if (data === null) {
      const text = `queryData "${query}" needs the client's data; set clientData in worldwire-mods.json (see docs/mods.md)`;
      this.#tell(`query ${query}`, text);
      throw new Error(text);
    }
    const found = find(data, parseQuery(query, values)).map((node) => shown(node, children, attributes));
    return findAll ? found : found[0] ?? null;
  }
}

/** @typedef {{name: string, wanted: [string, any][]}} Step */

/** @param {string} query @param {any[]} values @returns {Step[]} */
function parseQuery(query, values) {
  const rest = [...values];
  return query.split('/').filter((part) => part !== '').map((part) => {
    const [name, ...conditions] = part.split(/[@&]/);
    const wanted = conditions.filter((one) => one !== '').map((one) => {
      const [key, value = '?'] = one.split(/=(.*)/s);
      return /** @type {[string, any]} */ ([key, value === '?' ? rest.shift() : value]);
    });
    return { name, wanted };
  });
}

/** @param {Node} root @param {Step[]} steps */
function find(root, steps) {
  let nodes = [root];
  let visited = 0;
  for (const { name, wanted } of steps) {
    nodes = nodes.flatMap((node) => (node.children ?? []).filter((child) => {
      if (++visited > MAX_NODES) throw new Error(`the query visits more than ${MAX_NODES} nodes`);
      return child.name === name && wanted.every(([key, value]) => fits(child.attributes?.[key], value));
    }));
  }
  return nodes;
}

/** @param {any} value @param {any} wanted one value, or a list of possible ones */
function fits(value, wanted) {
  return (Array.isArray(wanted) ? wanted : [wanted]).some((one) => String(value) === String(one));
}

/** @param {Node} node @param {boolean} children @param {string[] | undefined} only @returns {Node} */
function shown({ name, attributes = {}, children: below = [] }, children, only) {
  const chosen = only ? Object.fromEntries(Object.entries(attributes).filter(([key]) => only.includes(key))) : { ...attributes };
  return { name, attributes: chosen, children: children ? below.map((node) => shown(node, true, only)) : [] };
}

module.exports = { ClientStandIn };
