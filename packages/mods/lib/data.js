'use strict';
// The user's files: definitions, opcode maps, and the lists that accompany them.

const fs = require('fs');
const path = require('path');
const { parseDefinition } = require('./definition');
const { Codec } = require('./codec');

const MAX_FILES = 100_000;
const MAX_DEPTH = 6;
const MAX_FILE_BYTES = 64 << 20;

/** One version of a definition, compiled on first use. */
class Definition {
  /** @type {Codec | null} */
  #codec = null;

  /** @param {() => import('./definition').Field[]} fields @param {string} from the file, for messages */
  constructor(fields, from) {
    this.fields = fields;
    this.from = from;
  }

  get codec() {
    if (this.#codec === null) {
      try {
        this.#codec = new Codec(this.fields());
      } catch (error) {
        throw new Error(`${this.from}: ${/** @type {Error} */ (error).message}`);
      }
    }
    return this.#codec;
  }

  /** @param {string} file */
  static ofFile(file) {
    return new Definition(() => parseDefinition(readText(file)), file);
  }
}

/** Everything in the folders that `--data` names. */
class GameData {
  constructor() {
    /** @type {Map<string, Map<number, Definition>>} by name and version */
    this.definitions = new Map();
    /** @type {Map<number, Map<string, number>>} opcodes, by revision and name */
    this.maps = new Map();
    /** @type {Map<number, Map<string, number>>} IDs of system messages, by patch or revision */
    this.systemMessages = new Map();
    /** @type {Record<string, Record<string, {min?: number, max?: number, readable?: boolean}>>} */
    this.deprecated = {};
    /** @type {Map<number, {major: number, minor: number}>} patches, by revision */
    this.patches = new Map();
    /** @type {Map<number, Set<string>>} names of messages with counter and checksum, by patch */
    this.integrity = new Map();
    /** @type {string[]} what is wrong with files */
    this.problems = [];
  }

  /** @param {string[]} folders or files */
  static load(folders) {
    const data = new GameData();
    for (const place of folders) {
      if (fs.statSync(place).isDirectory()) data.#addFolder(place, 0, { files: 0 });
      else data.#addFile(place, path.basename(place));
    }
    return data;
  }

  /** @param {string} folder @param {number} depth @param {{files: number}} seen */
  #addFolder(folder, depth, seen) {
    if (depth > MAX_DEPTH) return void this.problems.push(`${folder}: more than ${MAX_DEPTH} levels of folders`);
    const entries = fs.readdirSync(folder, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!entry.name.startsWith('.') && entry.name !== 'node_modules') this.#addFolder(file, depth + 1, seen);
        continue;
      }
      if (++seen.files > MAX_FILES) return void this.problems.push(`${folder}: more than ${MAX_FILES} files`);
      try {
        this.#addFile(file, entry.name);
      } catch (error) {
        this.problems.push(`${file}: ${/** @type {Error} */ (error).message}`);
      }
    }
  }

  /** @param {string} file @param {string} name */
  #addFile(file, name) {
    const definition = /^(\w+)\.(\d+)(\.pc)?\.def$/.exec(name);
    if (definition) return this.#define(definition[1], Number(definition[2]), Definition.ofFile(file), Boolean(definition[3]));
    const map = /^(protocol|sysmsg)\.(\d+)\.map$/.exec(name);
    if (map) {
      const maps = map[1] === 'protocol' ? this.maps : this.systemMessages;
      maps.set(Number(map[2]), parseMap(readText(file)));
    } else if (name === 'deprecated.json') {
      Object.assign(this.deprecated, JSON.parse(readText(file)));
    } else if (name === 'revisions.json') {
      this.#addRevisions(JSON.parse(readText(file)));
    } else if (name === 'data.json') {
      this.#addBundle(JSON.parse(readText(file)), file);
    } else if (/^\d+\.json$/.test(name) && path.basename(path.dirname(file)) === 'integrity') {
      this.integrity.set(parseInt(name, 10), new Set(JSON.parse(readText(file))));
    }
  }

  /** @param {string} name @param {number} version @param {Definition} definition @param {boolean} replaces */
  #define(name, version, definition, replaces) {
    const versions = this.definitions.get(name) ?? new Map();
    if (replaces || !versions.has(version)) versions.set(version, definition);
    this.definitions.set(name, versions);
  }

  /** `{"387463": "eu-115.02"}` @param {Record<string, string>} revisions */
  #addRevisions(revisions) {
    for (const [revision, text] of Object.entries(revisions)) {
      const match = /^(?:[a-z]+-)?(\d+)(?:\.(\d+))?/i.exec(String(text));
      if (match) this.patches.set(Number(revision), { major: Number(match[1]), minor: Number(match[2] ?? 0) });
    }
  }

  /** The file in which tera-toolbox distributes its data. @param {any} bundle @param {string} file */
  #addBundle({ maps = {}, protocol = {}, deprecated = {} }, file) {
    for (const [revision, names] of Object.entries(maps)) this.maps.set(Number(revision), new Map(Object.entries(names)));
    for (const [key, text] of Object.entries(protocol)) {
      const match = /^(\w+)\.(\d+)\.def$/.exec(key);
      if (!match) continue;
      const fields = () => parseDefinition(Buffer.from(String(text), 'base64').toString('utf8'));
      this.#define(match[1], Number(match[2]), new Definition(fields, `${file}: ${key}`), false);
    }
    Object.assign(this.deprecated, deprecated);
  }
}

/** Lines `NAME CODE` or `NAME = CODE`. @param {string} text @returns {Map<string, number>} */
function parseMap(text) {
  const map = new Map();
  text.replace(/^\ufeff/, '').split(/\r?\n/).forEach((line, index) => {
    const content = line.replace(/#.*/, '').trim();
    if (content === '') return;
    const match = /^([^\s=]+)\s*[\s=]\s*(\d+)$/.exec(content);
    if (match === null) throw new Error(`line ${index + 1}: write NAME NUMBER instead of "${content}"`);
    map.set(match[1], Number(match[2]));
  });
  return map;
}

/** @param {string} file */
function readText(file) {
  if (fs.statSync(file).size > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes`);
  return fs.readFileSync(file, 'utf8').replace(/^\ufeff/, '');
}

module.exports = { Definition, GameData, parseMap, readText };
