'use strict';
// The command line.

const fs = require('fs');
const net = require('net');
const path = require('path');
const { GameData, readText } = require('./data');
const { setGlobals } = require('./globals');
const { Manager } = require('./manager');
const { report, reportTo } = require('./report');
const { Runner } = require('./runner');
const { runCheck } = require('./trial');
const { blockedIn, watch } = require('./watchdog');

const USAGE = `Run TERA toolbox mods on worldwire's proxy

Usage:
  worldwire-mods --connect ADDRESS|stdin --data FOLDER --mods FOLDER
  worldwire-mods check --mods FOLDER [--data FOLDER] [--json] [--until-eof]

Options:
  --connect ADDRESS|stdin  the proxy: a Unix socket, HOST:PORT, or standard input and output
  --data FOLDER            definitions and opcode maps; can be repeated
  --mods FOLDER            the mods
  --revision N             the client's revision [default: the one that the client sends; for check, that of the newest map]
  --patch MAJOR.MINOR      the game's version, if revisions.json does not list the revision
  --blocked FILE           skip the mods listed in this file, and add mods that block or exit while they start
  --json                   write JSON (check only)
  --until-eof              end when standard input ends (check only)

Example:
  worldwire-mods --connect 127.0.0.1:7900 --data tera-data --mods mods`;

/** The file in the mods' folder with the user's facts about the server and client. */
const WORLD_FILE = 'worldwire-mods.json';

/** @typedef {{check: boolean, json: boolean, untilEof: boolean, blocked?: string, connect?: string, mods?: string, revision?: number, patch?: string, data: string[]}} Options */

/** @param {string[]} words */
function main(words) {
  let options;
  try {
    options = parse(words);
  } catch (error) {
    console.error(`worldwire-mods: ${/** @type {Error} */ (error).message}`);
    process.exitCode = 2;
    return;
  }
  if (options === null) return void console.log(USAGE);
  const fail = (/** @type {any} */ error) => {
    console.error(`worldwire-mods: ${error.message}`);
    process.exit(2);
  };
  try {
    if (options.check) runCheck(options, readWorld(options)).catch(fail);
    else run(options);
  } catch (error) {
    fail(error);
  }
}

/** @param {string[]} words @returns {Options | null} */
function parse(words) {
  /** @type {Options} */
  const options = { check: false, json: false, untilEof: false, data: [] };
  const rest = [...words];
  if (rest[0] === 'check') options.check = Boolean(rest.shift());
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === '--help' || word === '-h') return null;
    if (word === '--json' || word === '--until-eof') {
      options[word === '--json' ? 'json' : 'untilEof'] = true;
      continue;
    }
    const value = rest.shift();
    if (value === undefined) throw new Error(`${word} needs a value; see --help`);
    if (word === '--data') options.data.push(value);
    else if (word === '--mods') options.mods = value;
    else if (word === '--connect') options.connect = value;
    else if (word === '--blocked') options.blocked = value;
    else if (word === '--revision' && /^\d+$/.test(value)) options.revision = Number(value);
    else if (word === '--patch' && /^\d+(\.\d+)?$/.test(value)) options.patch = value;
    else throw new Error(`unknown option ${word} ${value}; see --help`);
  }
  if (options.mods === undefined) throw new Error('--mods is missing: name the folder of mods');
  if (!options.check && options.connect === undefined) throw new Error('--connect is missing: name the proxy');
  return options;
}

/** Options override the file. @param {Options} options @returns {import('./protocol').World} */
function readWorld({ mods, revision, patch }) {
  const folder = String(mods);
  const file = path.join(folder, WORLD_FILE);
  const world = fs.existsSync(file) ? JSON.parse(readText(file)) : {};
  if (world.clientData !== undefined) world.clientData = path.resolve(folder, world.clientData);
  if (revision !== undefined) world.map = revision;
  if (patch !== undefined) [world.major, world.minor = 0] = patch.split('.').map(Number);
  return world;
}

/** @param {Options} options */
function run(options) {
  const { blocked, connect, data: folders, mods } = options;
  const world = readWorld(options);
  const output = claimStandardStreams();
  const folder = path.resolve(String(mods));
  const data = GameData.load(folders);
  const manager = new Manager(folder);
  setGlobals(manager);
  const watchdog = watch({ to: blocked });
  ({ mark: manager.mark, starting: manager.starting } = watchdog);
  for (const { name, why } of blocked === undefined ? [] : blockedIn(blocked)) {
    manager.skipped.set(name, `${why} while it was starting; correct it, then restart the proxy`);
  }
  const [input, send] = connect === 'stdin' ? [process.stdin, output] : dial(String(connect));
  const runner = new Runner(manager, data, world, send);
  // Otherwise, these mods have their own terminal.
  if (connect === 'stdin') reportTo((level, text) => runner.log(level, text));
  for (const problem of data.problems) report('warning', 'worldwire-mods', problem);
  manager.loadAll();
  const end = () => {
    runner.close();
    manager.close();
    watchdog.release();
    process.exit(0);
  };
  input.on('data', (/** @type {Buffer} */ chunk) => {
    try {
      runner.receive(chunk);
    } catch (error) {
      console.error(`[worldwire-mods] error: ${/** @type {Error} */ (error).stack}`);
      watchdog.release();
      process.exit(1);
    }
  });
  input.on('end', end);
  input.on('error', (/** @type {Error} */ error) => {
    console.error(`[worldwire-mods] error: ${error.message}`);
    end();
  });
  process.on('SIGTERM', end);
  runner.start();
}

/** Reserves standard output for the protocol. Anything that mods print goes to standard error. */
function claimStandardStreams() {
  const { stdout } = process;
  Object.defineProperty(process, 'stdout', { get: () => process.stderr });
  global.console = new console.Console(process.stderr, process.stderr);
  return (/** @type {Buffer} */ bytes) => { stdout.write(bytes); };
}

/** @param {string} address @returns {[NodeJS.ReadableStream, (bytes: Buffer) => void]} */
function dial(address) {
  const match = /^(.+):(\d+)$/.exec(address);
  const socket = match ? net.connect(Number(match[2]), match[1].replace(/^\[|\]$/g, '')) : net.connect(address);
  if (match) socket.setNoDelay(true);
  return [socket, (bytes) => { socket.write(bytes); }];
}

module.exports = { main };
