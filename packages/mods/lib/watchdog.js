'use strict';
// Ends the program if a mod blocks; the proxy then restarts it. A second thread does the watching
// because the first one is busy. If a mod ends the program itself, the log names it.

const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const fs = require('fs');
const path = require('path');

const BEAT_MS = 250;
/** The program ends after this many steps without a heartbeat: 3 seconds. */
const MAX_STEPS = 12;
const MAX_SECONDS = (MAX_STEPS * BEAT_MS) / 1000;

/** Positions in the memory that both threads share. Mods are numbered from 1. */
const [BEATS, RUNNING, STARTING] = [0, 1, 2];

/**
 * Where to write the name of a mod that blocks or exits while it starts, as a line of JSON: a file or a descriptor. `isQuiet`
 * prevents messages on standard error, and means that the caller notices the end of the program.
 * @typedef {{to?: string | number, isQuiet?: boolean}} Blocked
 */

/**
 * Starts watching.
 * @param {Blocked} [blocked]
 */
function watch(blocked = {}) {
  const state = new Int32Array(new SharedArrayBuffer(12));
  const worker = new Worker(__filename, { workerData: { state, blocked } });
  worker.unref();
  setInterval(() => Atomics.add(state, BEATS, 1), BEAT_MS).unref();
  /** @type {Map<string, number>} */
  const names = new Map();
  const numberOf = (/** @type {string} */ name) => {
    let number = names.get(name);
    if (number === undefined) {
      number = names.size + 1;
      names.set(name, number);
      worker.postMessage(name);
    }
    return number;
  };
  let last = '';
  /** @type {string | null} */
  let current = null;
  const exited = (/** @type {number} */ code) => {
    const suspect = last === '' ? 'a mod' : `the mod ${last}, or a timer,`;
    const what = current === null ? `${suspect} has ended the program` : `the mod ${current} has ended the program while it was starting`;
    fs.writeSync(2, `[worldwire-mods] error: ${what} (exit code ${code})\n`);
    if (current !== null && blocked.to !== undefined) note(blocked.to, { exited: current, code });
  };
  if (!blocked.isQuiet) process.on('exit', exited);
  return {
    /** Stops watching for exits: from now on, the program itself may exit. */
    release: () => { process.removeListener('exit', exited); },
    /** Records which mod is running. Called for every hook of every message. */
    mark: (/** @type {{name: string}} */ { name }) => {
      if (name === last) return;
      last = name;
      state[RUNNING] = numberOf(name);
    },
    /** Records which mod is starting, or that none is. Each mod gets the full time. @param {string | null} name */
    starting: (name) => {
      current = name;
      Atomics.add(state, BEATS, 1);
      Atomics.store(state, STARTING, name === null ? 0 : numberOf(name));
    },
  };
}

/** The second thread. @param {{state: Int32Array, blocked: Blocked}} data */
function run({ state, blocked: { to, isQuiet = false } }) {
  const names = /** @type {string[]} */ ([]);
  parentPort?.on('message', (name) => names.push(name));
  let [last, steps] = [-1, 0];
  setInterval(() => {
    const beat = Atomics.load(state, BEATS);
    steps = beat === last ? steps + 1 : 0;
    last = beat;
    if (steps < MAX_STEPS) return;
    const starting = names[Atomics.load(state, STARTING) - 1];
    const running = names[Atomics.load(state, RUNNING) - 1];
    const suspect = running === undefined ? 'a mod' : `the mod ${running}, or a timer,`;
    const what = starting === undefined ? `${suspect} has not returned` : `the mod ${starting} has been starting`;
    if (!isQuiet) fs.writeSync(2, `[worldwire-mods] error: ${what} for ${MAX_SECONDS} s; ending the program\n`);
    try {
      if (starting !== undefined && to !== undefined) note(to, { blocked: starting });
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  }, BEAT_MS);
}

/** @param {string | number} to @param {{blocked: string} | {exited: string, code: number}} what */
function note(to, what) {
  if (typeof to === 'string') fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.appendFileSync(to, `${JSON.stringify(what)}\n`);
}

/** The mods that blocked or exited while they started, according to a file that the watchdog has written. @param {string} file @returns {{name: string, why: string}[]} */
function blockedIn(file) {
  if (!fs.existsSync(file)) return [];
  return fs.readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => {
    const { blocked, exited, code } = JSON.parse(line);
    return exited === undefined ? { name: blocked, why: 'it blocked' } : { name: exited, why: `it ended the program (exit code ${code})` };
  });
}

if (!isMainThread && workerData?.state instanceof Int32Array) run(workerData);

module.exports = { MAX_SECONDS, blockedIn, watch };
