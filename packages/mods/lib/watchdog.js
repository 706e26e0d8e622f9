'use strict';
// Ends the program if a mod blocks; the proxy then restarts it. A second thread watches, because
// the first one is busy.

const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const fs = require('fs');

const BEAT_MS = 250;
/** The program ends after this many steps without a sign of life: 3 seconds. */
const MAX_STEPS = 12;

/** Starts watching. Returns the function that records which mod is running. */
function watch() {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(__filename, { workerData: state });
  worker.unref();
  setInterval(() => Atomics.add(state, 0, 1), BEAT_MS).unref();
  /** @type {Map<string, number>} */
  const names = new Map();
  let last = '';
  return (/** @type {{name: string}} */ { name }) => {
    // Called for every hook of every message.
    if (name === last) return;
    last = name;
    let number = names.get(name);
    if (number === undefined) {
      number = names.size + 1;
      names.set(name, number);
      worker.postMessage(name);
    }
    state[1] = number;
  };
}

/** The second thread. */
function run() {
  const state = /** @type {Int32Array} */ (workerData);
  const names = /** @type {string[]} */ ([]);
  parentPort?.on('message', (name) => names.push(name));
  let [last, steps] = [-1, 0];
  setInterval(() => {
    const beat = Atomics.load(state, 0);
    steps = beat === last ? steps + 1 : 0;
    last = beat;
    if (steps < MAX_STEPS) return;
    const name = names[Atomics.load(state, 1) - 1];
    const suspect = name === undefined ? 'a mod' : `the mod ${name}, or a timer,`;
    fs.writeSync(2, `[worldwire-mods] error: ${suspect} has not returned for ${(MAX_STEPS * BEAT_MS) / 1000} s; ending the program\n`);
    process.kill(process.pid, 'SIGKILL');
  }, BEAT_MS);
}

if (!isMainThread && workerData instanceof Int32Array) run();

module.exports = { watch };
