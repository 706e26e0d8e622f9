'use strict';
// `check` lists what the mods in a folder use, what is missing, and what will not work.

const fs = require('fs');
const path = require('path');
const { Connection } = require('./connection');
const { GameData } = require('./data');
const { findMods } = require('./info');
const { Manager } = require('./manager');
const { Protocol } = require('./protocol');
const { setGlobals } = require('./globals');
const { SettingsFile } = require('./settings');

const MAX_SOURCE_BYTES = 16 << 20;
const MAX_FILES = 1000;

/** Calls with a message and a version in a mod's source. */
const CALLS = /\b(hook|hookOnce|tryHook|tryHookOnce|send|trySend|toClient|toServer)\s*\(\s*(['"`])([A-Z]\w+)\2\s*,\s*(\d+|(['"`])(?:\*|raw|event)\5)/g;

/**
 * Features that differ from the original, with the source text that reveals them.
 * @type {{pattern: RegExp, text: string, applies?: (protocol: Protocol | null, world: any) => boolean}[]}
 */
const LIMITS = [
  {
    pattern: /\bqueryData\b/,
    text: 'queries the client\'s data, which needs "clientData" in worldwire-mods.json',
    applies: (_, world) => world.clientData === undefined,
  },
  {
    pattern: /\b(?:parse|build)SystemMessage\b/,
    text: 'uses system messages, which need a sysmsg.PATCH.map in the data',
    applies: (protocol) => protocol !== null && !protocol.hasSystemMessages,
  },
  {
    pattern: /\bgame\.data\.(?:items|continents|abnormalities)\b/,
    text: 'uses the client\'s tables, which are empty unless worldwire-mods.json contains them',
  },
  {
    pattern: /\b(?:inBattleground|inDungeon|inOpenWorld|inCivilUnrest)\b/,
    text: 'asks for the kind of zone, which is undefined unless worldwire-mods.json has "continents"',
    applies: (_, world) => world.continents === undefined,
  },
  { pattern: /\b(?:flashWindow|configureCameraShake)\b/, text: 'controls the client\'s window, but these calls do nothing' },
  { pattern: /\binstall\s*\(\s*installer\b/, text: 'changes the client\'s files, which is not supported' },
  { pattern: /require\((['"`])electron\1\)/, text: 'needs Electron, so its windows do not open' },
  { pattern: /require\((['"`])tera-mod-ui\1\)/, text: 'has a settings window, which does not open; use its chat commands' },
  { pattern: /require\((['"`])(?:node:)?child_process\1\)/, text: 'starts other programs, which must exist on this computer' },
];

/** @typedef {{data: string[], mods?: string, revision?: number}} CheckOptions */

/**
 * Starts the mods in a folder, and describes each one.
 * @param {CheckOptions} options
 * @param {any} world
 * @param {Map<string, string>} skipped mods not to start, and why
 * @param {(name: string | null) => void} starting receives the name of each mod before it starts, and null
 * after it
 */
function check({ data: folders, mods, revision }, world, skipped, starting) {
  const folder = path.resolve(String(mods));
  const data = GameData.load(folders);
  // A repeated check has the same problems.
  if (skipped.size === 0) for (const problem of data.problems) console.error(`worldwire-mods: ${problem}`);
  // The result contains everything that matters.
  global.console = new console.Console(process.stderr, process.stderr);
  console.error = () => {};
  console.log = () => {};
  SettingsFile.isReadOnly = true;
  const number = revision ?? (world.map === undefined ? Math.max(0, ...data.maps.keys()) : Number(world.map));
  const protocol = folders.length > 0 ? new Protocol(data, number, world) : null;
  const manager = new Manager(folder);
  setGlobals(manager);
  manager.starting = starting;
  manager.skipped = skipped;
  manager.loadAll();
  if (protocol) new Connection(protocol, world, manager, { write: () => {}, changed: () => {} });
  const reports = [...findMods(folder).mods.map((info) => info.rawName), ...manager.refused.map(({ name }) => name)]
    .filter((name, index, all) => all.indexOf(name) === index)
    .map((name) => report(name, folder, manager, protocol, world));
  const build = protocol ? `revision ${protocol.revision}, patch ${protocol.major}.${protocol.minor}` : 'messages were not checked because --data was not given';
  return { reports, build };
}

/** @param {string} name @param {string} folder @param {Manager} manager @param {Protocol | null} protocol @param {any} world */
function report(name, folder, manager, protocol, world) {
  const loaded = manager.loaded.find(({ info }) => info.rawName === name);
  const found = findMods(folder).mods.find(({ rawName }) => rawName === name);
  const entry = found?.entry ?? path.join(folder, name);
  const source = fs.existsSync(entry) ? sourceOf(entry).join('\n') : '';
  const failures = manager.refused.filter((one) => one.name === name).map(({ why }) => why);
  /** @type {Map<string, {message: string, version: string | number, problem: string}>} */
  const missing = new Map();
  const [hooks, sends] = [new Set(), new Set()];
  for (const [, call, , message, version] of source.matchAll(CALLS)) {
    const asked = /^\d/.test(version) ? Number(version) : version.slice(1, -1);
    const isHook = /hook/i.test(call);
    (isHook ? hooks : sends).add(`${message}.${asked}`);
    const problem = protocol && problemWith(protocol, message, asked);
    if (problem) missing.set(`${message}.${asked}`, { message, version: asked, problem });
  }
  const limits = LIMITS.filter(({ pattern, applies }) => pattern.test(source) && (applies?.(protocol, world) ?? true));
  return {
    name,
    version: found?.version ?? '',
    runs: loaded !== undefined && failures.length === 0,
    failures,
    hooks: [...hooks].sort(),
    sends: [...sends].sort(),
    missing: [...missing.values()],
    limits: limits.map((limit) => limit.text),
  };
}

/** @param {Protocol} protocol @param {string} message @param {any} version */
function problemWith(protocol, message, version) {
  try {
    if (version === 'raw' || version === 'event') protocol.code(message);
    else protocol.resolve(message, version);
    return null;
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/** The text of a mod's own files. @param {string} entry @returns {string[]} */
function sourceOf(entry, seen = { bytes: 0, files: 0 }) {
  const stats = fs.lstatSync(entry);
  if (stats.isDirectory()) {
    const names = fs.readdirSync(entry).filter((name) => name !== 'node_modules' && !name.startsWith('.'));
    return names.flatMap((name) => sourceOf(path.join(entry, name), seen));
  }
  seen.bytes += stats.size;
  if (!stats.isFile() || !entry.endsWith('.js') || seen.bytes > MAX_SOURCE_BYTES || ++seen.files > MAX_FILES) return [];
  return [fs.readFileSync(entry, 'utf8')];
}

/** Describes a mod for people. @param {ReturnType<typeof report>} report */
function text({ name, version, runs, failures, hooks, sends, missing, limits }) {
  const lines = [`${name}${version ? ` ${version}` : ''}: ${runs ? 'runs' : 'cannot run'}`];
  for (const why of failures) lines.push(`  ${why}`);
  if (hooks.length > 0) lines.push(`  hooks ${hooks.join(', ')}`);
  if (sends.length > 0) lines.push(`  sends ${sends.join(', ')}`);
  for (const { problem } of missing) if (!failures.some((why) => why.includes(problem))) lines.push(`  missing: ${problem}`);
  for (const limit of limits) lines.push(`  ${limit}`);
  return lines.join('\n');
}

module.exports = { check, text };
