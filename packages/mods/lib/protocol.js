'use strict';
// The messages of one build: names, opcodes, and the versions of their definitions.

const { Definition, GameData } = require('./data');
const { listedDefinition } = require('./definition');
const { Codec } = require('./codec');

/** The last patch of the game, for builds whose patch is unknown. */
const LAST_PATCH = { major: 115, minor: 2 };
/** The length of a header with counter and checksum. */
const INTEGRITY_HEADER_BYTES = 12;

/**
 * Facts about a connection that its messages do not contain, from `worldwire-mods.json`.
 * @typedef {object} World
 * @property {number} [major]
 * @property {number} [minor]
 * @property {number | string} [map] the revision
 * @property {string} [publisher]
 * @property {string} [language]
 * @property {string} [platform]
 * @property {string} [environment]
 * @property {number} [serverId]
 * @property {Record<string, any>} [serverList]
 * @property {Record<string, any>} [users]
 * @property {Record<string, number>} [extraMap]
 * @property {Record<string, number>} [sysmsg]
 * @property {string} [clientData]
 */

/** Why a message or a version of it is not available. */
class ResolveError extends Error {}

class Protocol {
  /** @param {GameData} data @param {number} revision @param {World} world */
  constructor(data, revision, world = {}) {
    this.revision = revision;
    const known = data.patches.get(revision);
    this.isPatchKnown = world.major !== undefined || known !== undefined;
    this.major = world.major ?? known?.major ?? LAST_PATCH.major;
    this.minor = world.minor ?? known?.minor ?? LAST_PATCH.minor;
    /** @type {Map<string, number>} */
    this.codes = new Map(data.maps.get(revision) ?? []);
    for (const [name, code] of Object.entries(world.extraMap ?? {})) this.codes.set(name, code);
    /** @type {Map<number, string>} */
    this.names = new Map([...this.codes].map(([name, code]) => [code, name]));
    this.hasMap = data.maps.has(revision);
    this.deprecated = data.deprecated;
    this.integrity = data.integrity.get(this.major) ?? new Set();
    /** @type {Map<string, Map<number, Definition>>} */
    this.messages = new Map([...data.definitions].map(([name, versions]) => [name, new Map(versions)]));
    const systemMessages = data.systemMessages.get(revision) ?? data.systemMessages.get(this.major);
    const pairs = [...(systemMessages ?? []), ...Object.entries(world.sysmsg ?? {})];
    this.hasSystemMessages = pairs.length > 0;
    this.systemMessages = { name: new Map(pairs), code: new Map(pairs.map(([name, id]) => [id, name])) };
  }

  /** The highest version of a message. @param {string} name */
  latest(name) {
    const versions = this.messages.get(name);
    return versions?.size ? Math.max(...versions.keys()) : undefined;
  }

  /** The opcode of a message. @param {string} name */
  code(name) {
    const code = this.codes.get(name);
    if (code !== undefined) return code;
    const map = `protocol.${this.revision}.map`;
    throw new ResolveError(this.hasMap
      ? `${name} has no opcode in ${map}; add the line "${name} NUMBER" to it`
      : `${name} has no opcode: there is no ${map} in the data`);
  }

  /**
   * Finds a definition.
   * @param {string | number} name or opcode
   * @param {number | '*' | Codec} version
   * @returns {{name: string, code: number, version: number, codec: Codec, header: number, isWriteable: boolean}}
   */
  resolve(name, version) {
    if (typeof name === 'number') name = this.names.get(name) ?? String(name);
    const code = this.code(name);
    const header = this.header(name);
    if (version instanceof Codec) return { name, code, version: 0, codec: version, header, isWriteable: true };
    const number = version === '*' ? this.latest(name) : version;
    const definition = number === undefined ? undefined : this.messages.get(name)?.get(number);
    if (number === undefined || definition === undefined) throw this.#missing(name, version);
    const { isReadable, isWriteable } = this.standing(name, number);
    if (!isReadable) {
      throw new ResolveError(`version ${number} of ${name} is deprecated at patch ${this.major}; ${this.#present(name)}`);
    }
    return { name, code, version: number, codec: definition.codec, header, isWriteable };
  }

  /** @param {string} name @param {number | '*'} version */
  #missing(name, version) {
    const latest = this.latest(name);
    const isOld = typeof version === 'number' && version !== 0 && latest !== undefined && latest > version;
    const asked = version === '*' ? 'any version' : `version ${version}`;
    return new ResolveError(latest === undefined
      ? `${name} has no definition in any version; the mod asks for ${asked}`
      : `version ${version} of ${name} is ${isOld ? 'outdated' : 'unknown'}; ${this.#present(name)}`);
  }

  /** @param {string} name */
  #present(name) {
    const versions = [...(this.messages.get(name)?.keys() ?? [])].sort((a, b) => a - b);
    return `the data has ${versions.length === 1 ? 'version' : 'versions'} ${versions.join(', ')}`;
  }

  /** What the table of deprecated versions says. @param {string} name @param {number} version */
  standing(name, version) {
    const rule = this.deprecated[name]?.[version];
    if (rule === undefined) return { isReadable: true, isWriteable: true };
    const { min, max, readable } = rule;
    const isBounded = min !== undefined || max !== undefined;
    const applies = !isBounded || (min !== undefined && this.major < min) || (max !== undefined && this.major > max);
    return { isReadable: !applies || Boolean(readable), isWriteable: !applies };
  }

  /** The length of a message's header. @param {string} name */
  header(name) { return this.integrity.has(name) ? INTEGRITY_HEADER_BYTES : 4; }

  /**
   * Adds a definition: the name of a file, or a list of `[name, type]`.
   * @param {string} name @param {number} version @param {string | any[]} definition @param {boolean} overwrite
   */
  addDefinition(name, version, definition, overwrite = false) {
    const versions = this.messages.get(name) ?? new Map();
    if (versions.has(version) && !overwrite) return;
    const added = typeof definition === 'string'
      ? Definition.ofFile(definition)
      : new Definition(() => listedDefinition(definition), `${name}.${version}`);
    versions.set(version, added);
    this.messages.set(name, versions);
  }

  /** @param {string} name @param {number} code */
  addOpcode(name, code) {
    this.codes.set(name, code);
    this.names.set(code, name);
  }

  /**
   * Reads `@id` followed by keys and values, separated by vertical tabs.
   * @param {string} text
   */
  parseSystemMessage(text) {
    if (!text.startsWith('@')) throw new Error(`"${text}" is not a system message: it does not begin with @`);
    const [id, ...rest] = text.slice(1).split('\v');
    /** @type {Record<string, string>} */
    const tokens = {};
    for (let at = 0; at + 1 < rest.length; at += 2) tokens[rest[at]] = rest[at + 1];
    if (id.includes(':')) return { id, tokens };
    const name = this.systemMessages.code.get(Number(id));
    if (id === '' || name === undefined) throw this.#noSystemMessage(id);
    return { id: name, tokens };
  }

  /** @param {string | {id: string, tokens?: Record<string, any>}} message @param {Record<string, any>} [tokens] */
  buildSystemMessage(message, tokens) {
    const id = typeof message === 'string' ? message : message.id;
    const values = (typeof message === 'string' ? tokens : message.tokens ?? tokens) ?? {};
    const code = id.includes(':') ? id : this.systemMessages.name.get(id);
    if (code === undefined) throw this.#noSystemMessage(id);
    return `@${code}${Object.entries(values).map(([key, value]) => `\v${key}\v${value}`).join('')}`;
  }

  /** @param {string} id */
  #noSystemMessage(id) {
    return new Error(this.hasSystemMessages
      ? `the system message ${id} is not in the map`
      : `system message ${id}: there is no map of system messages; add sysmsg.${this.major}.map to the data`);
  }
}

module.exports = { Protocol, ResolveError, GameData };
