'use strict';
// Interfaces for older kinds of mods: those that export a function, and those for the 2020 proxy.

const { Codec } = require('./codec');
const { parseDefinition } = require('./definition');

/** Regions of publishers. Others have the region "int". */
const REGIONS = { gf: 'eu', eme: 'na', nx: 'kr', pm: 'jp', m5: 'tw' };

/**
 * The interface of a mod that exports a function. Reads are passed through. Properties that the mod
 * sets are lost, as in the original.
 * @param {any} mod
 * @returns {any}
 */
function legacyView(mod) {
  const patch = mod.majorPatchVersion + mod.minorPatchVersion / 100;
  /** @type {Record<string, any>} */
  const extra = {
    niceName: mod.options.niceName ?? mod.options.cliName ?? mod.info.rawName,
    proxyAuthor: 'caali',
    region: REGIONS[/** @type {keyof REGIONS} */ (mod.publisher)] ?? 'int',
    isConsole: mod.platform !== 'pc',
    isClassic: mod.environment === 'classic',
    patchVersion: patch,
    compileProto: (/** @type {string} */ text) => new Codec(parseDefinition(text)),
    parse: (/** @type {string} */ name, /** @type {any} */ version, /** @type {Buffer} */ data) => mod.dispatch.fromRaw(name, version, data),
  };
  return new Proxy(mod, {
    get(_, name) {
      if (typeof name === 'string' && Object.hasOwn(extra, name)) return extra[name];
      const value = mod[name];
      // Methods must find private members of the interface itself.
      return typeof value === 'function' && !Object.hasOwn(mod, name) ? value.bind(mod) : value;
    },
    has: (_, name) => name in mod || name in extra,
    set: () => true,
  });
}

/**
 * `settings.$init` of the 2020 proxy: reads the saved settings, migrates those of older versions, and
 * fills in defaults.
 * @param {any} settings
 * @param {(version: number, migrate: Function | undefined) => any} open returns the saved settings
 */
function addInit(settings, open) {
  if (typeof settings !== 'object' || settings === null || '$init' in settings) return settings;
  const init = ({ version = 0, defaults = {}, migrate = undefined } = /** @type {any} */ ({})) => {
    Object.assign(settings, { ...defaults, ...open(version, migrate) });
    Object.defineProperty(settings, '$version', { value: version, configurable: true });
  };
  Object.defineProperty(settings, '$init', { value: init, enumerable: false });
  return settings;
}

/** Gives 64-bit integers the members they had before 2018, when they were objects: `id.equals(other)`, `id.low`. */
function addLongMembers() {
  const half = (/** @type {bigint} */ shift) => ({
    /** @this {bigint} */
    get() { return Number(BigInt.asIntN(32, BigInt(this) >> shift)); },
    configurable: true,
  });
  Object.defineProperties(BigInt.prototype, {
    low: half(0n),
    high: half(32n),
    equals: { value: equals, configurable: true },
    /** @this {bigint} */
    toNumber: { value() { return Number(this); }, configurable: true },
  });
}

/** @this {bigint} @param {any} other */
function equals(other) {
  return BigInt(this) === BigInt(other);
}

module.exports = { addInit, addLongMembers, legacyView };
