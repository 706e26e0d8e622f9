'use strict';
// Loads mods in strict mode, with stand-ins for the original program's packages.

const fs = require('fs');
const Module = require('module');
const path = require('path');

const STANDINS = path.join(__dirname, 'standins');
/** Packages that mods can require even if their folders do not contain them. */
const PACKAGES = {
  'tera-vec3': 'tera-vec3.js',
  vec3: 'tera-vec3.js',
  'tera-data-parser': 'tera-data-parser.js',
  'tera-data-parser/types': 'tera-types.js',
  'tera-network-proxy': 'tera-network-proxy.js',
  'tera-mod-ui': 'tera-mod-ui.js',
  'tera-toolbox-mui': 'tera-toolbox-mui.js',
  'tera-game-state': 'tera-game-state.js',
  command: 'command.js',
  'node-fetch': 'node-fetch.js',
  'binary-search': 'binary-search.js',
};

/** @type {string[]} the folders of mods */
const roots = [];
let isInstalled = false;

/** Loads modules below this folder as mods. @param {string} folder */
function addRoot(folder) {
  // Modules are identified by their real paths, even below a symbolic link.
  roots.push(fs.realpathSync(folder) + path.sep);
  if (isInstalled) return;
  isInstalled = true;
  const loader = /** @type {any} */ (Module);
  const isOfMod = (/** @type {string | undefined} */ file) => file !== undefined && roots.some((root) => file.startsWith(root));
  const compile = loader.prototype._compile;
  loader.prototype._compile = function compileMod(/** @type {string} */ content, /** @type {string} */ file, /** @type {any[]} */ ...rest) {
    // The directive goes on the first line to preserve line numbers. It replaces a #! line, which is valid only at the
    // very beginning.
    const source = isOfMod(file) ? `'use strict';${content.replace(/^#!.*/, '')}` : content;
    return compile.call(this, source, file, ...rest);
  };
  const resolve = loader._resolveFilename;
  loader._resolveFilename = function resolveForMod(/** @type {string} */ request, /** @type {any} */ parent, /** @type {any[]} */ ...rest) {
    try {
      return resolve.call(this, request, parent, ...rest);
    } catch (error) {
      const standin = PACKAGES[/** @type {keyof PACKAGES} */ (request)];
      if (standin === undefined || !isOfMod(parent?.filename)) throw error;
      return path.join(STANDINS, standin);
    }
  };
}

/** Loads a mod's file or folder. @param {string} entry @returns {any} */
function load(entry) {
  return require(entry);
}

/** Forgets the modules of a mod, so that they are read again. @param {string} entry a file or folder */
function forget(entry) {
  const isOfMod = moduleTest(entry);
  for (const file of Object.keys(require.cache)) {
    if (isOfMod(file)) delete require.cache[file];
  }
}

/** Returns a function that tells whether a file belongs to a mod. @param {string} entry a file or folder */
function moduleTest(entry) {
  const real = fs.realpathSync(entry);
  const prefix = real + path.sep;
  return (/** @type {string} */ file) => file === real || file.startsWith(prefix);
}

module.exports = { addRoot, forget, load, moduleTest };
