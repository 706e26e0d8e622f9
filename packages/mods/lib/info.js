'use strict';
// Finds the mods in a folder and reads their descriptions.

const fs = require('fs');
const path = require('path');
const { readText } = require('./data');

/** Mods that are part of this package. */
const CORE_MODS = ['command', 'tera-game-state'];

/**
 * @typedef {object} ModInfo
 * @property {string} name in lower case
 * @property {string} rawName
 * @property {string} path its folder
 * @property {string} entry what to load
 * @property {string} version
 * @property {string} author
 * @property {string} description
 * @property {Record<string, any>} options
 * @property {string[]} dependencies
 * @property {string[]} conflicts
 * @property {string[]} keywords
 * @property {boolean} disabled
 * @property {boolean} isLegacy whether it has no module.json
 * @property {any} raw its module.json
 */

/**
 * The mods in a folder, in the order in which they are loaded, and those that cannot run.
 * @param {string} folder
 * @returns {{mods: ModInfo[], refused: {name: string, why: string}[]}}
 */
function findMods(folder) {
  /** @type {Map<string, ModInfo>} */
  const found = new Map();
  const refused = [];
  for (const entry of fs.readdirSync(folder).sort()) {
    const file = path.join(folder, entry);
    const isFolder = fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
    if (/^[._]/.test(entry) || entry === 'node_modules' || (!isFolder && !entry.endsWith('.js'))) continue;
    try {
      const info = isFolder ? readFolder(file, entry) : legacy(path.dirname(file), file, entry);
      if (info.disabled) continue;
      const other = found.get(info.name);
      if (other || CORE_MODS.includes(info.name)) {
        throw new Error(other ? `${other.entry} has the same name` : 'a part of this program has the same name');
      }
      found.set(info.name, info);
    } catch (error) {
      refused.push({ name: entry, why: /** @type {Error} */ (error).message });
    }
  }
  refused.push(...exclude(found));
  return { mods: [...found.values()], refused };
}

/** @param {string} folder @param {string} entry @returns {ModInfo} */
function readFolder(folder, entry) {
  const description = ['module.json', 'mod.json'].map((name) => path.join(folder, name)).find(fs.existsSync);
  if (description === undefined) return legacy(folder, folder, entry);
  const raw = parse(description);
  const config = path.join(folder, 'module.config.json');
  const { disabled = raw.disabled } = fs.existsSync(config) ? parse(config) : {};
  const rawName = typeof raw.name === 'string' && raw.name !== '' ? raw.name : entry;
  const names = (/** @type {any} */ list) => (Array.isArray(list) ? list : Object.keys(list ?? {})).map((one) => String(one).toLowerCase());
  return {
    name: rawName.toLowerCase(),
    rawName,
    path: folder,
    entry: folder,
    version: String(raw.version ?? ''),
    author: String(raw.author ?? ''),
    description: String(raw.description ?? ''),
    options: typeof raw.options === 'object' && raw.options !== null ? raw.options : {},
    dependencies: names(raw.dependencies),
    conflicts: names(raw.conflicts),
    keywords: names(raw.keywords ?? (raw.category ? [raw.category] : [])),
    disabled: Boolean(disabled),
    isLegacy: false,
    raw,
  };
}

/** @param {string} folder @param {string} entry @param {string} rawName @returns {ModInfo} */
function legacy(folder, entry, rawName) {
  return {
    name: rawName.toLowerCase(), rawName, path: folder, entry, version: '', author: '', description: '',
    options: {}, dependencies: [], conflicts: [], keywords: [], disabled: false, isLegacy: true, raw: {},
  };
}

/** @param {string} file */
function parse(file) {
  try {
    const json = JSON.parse(readText(file));
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json;
  } catch (error) {
    throw new Error(`${file}: ${/** @type {Error} */ (error).message}`);
  }
  throw new Error(`${file}: not an object`);
}

/**
 * Removes mods with missing dependencies or with conflicts, until all remaining mods can run.
 * @param {Map<string, ModInfo>} found
 */
function exclude(found) {
  const refused = [];
  const has = (/** @type {string} */ name) => CORE_MODS.includes(name) || found.has(name);
  for (let changed = true; changed;) {
    changed = false;
    for (const info of [...found.values()]) {
      const missing = info.dependencies.filter((name) => !has(name));
      const conflicts = info.conflicts.filter((name) => name !== info.name && has(name));
      if (missing.length + conflicts.length === 0) continue;
      found.delete(info.name);
      const why = missing.length ? `it needs the mod ${missing.join(', ')}` : `it conflicts with the mod ${conflicts.join(', ')}`;
      refused.push({ name: info.rawName, why });
      changed = true;
    }
  }
  return refused;
}

module.exports = { CORE_MODS, findMods };
