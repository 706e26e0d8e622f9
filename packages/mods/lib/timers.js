'use strict';
// Timers of a mod, which end when the player leaves the game and when the mod is unloaded.

const { watchResult } = require('./promises');

class Timers {
  /** @param {(error: any) => void} failed handles what callbacks throw */
  constructor(failed) {
    this.failed = failed;
    /** @type {Set<any>} */
    this.timeouts = new Set();
    /** @type {Set<any>} */
    this.intervals = new Set();
  }

  /** @param {Function} callback @param {number} [delay] @param {any[]} rest */
  setTimeout(callback, delay, ...rest) {
    const timer = setTimeout(() => {
      this.timeouts.delete(timer);
      this.#call(callback, rest);
    }, delay);
    this.timeouts.add(timer);
    return timer;
  }

  /** @param {Function} callback @param {number} [delay] @param {any[]} rest */
  setInterval(callback, delay, ...rest) {
    const timer = setInterval(() => this.#call(callback, rest), delay);
    this.intervals.add(timer);
    return timer;
  }

  /** Returns false unless this is a time-out of this mod that is still pending. @param {any} timer */
  clearTimeout(timer) {
    clearIfIn(this.timeouts, timer);
    return this.timeouts.delete(timer);
  }

  /** @param {any} timer */
  clearInterval(timer) {
    clearIfIn(this.intervals, timer);
    return this.intervals.delete(timer);
  }

  clearAllTimeouts() {
    this.timeouts.forEach((timer) => clearTimeout(timer));
    this.timeouts.clear();
  }

  clearAllIntervals() {
    this.intervals.forEach((timer) => clearInterval(timer));
    this.intervals.clear();
  }

  clearAll() {
    this.clearAllTimeouts();
    this.clearAllIntervals();
  }

  /** @param {Function} callback @param {any[]} rest */
  #call(callback, rest) {
    try {
      watchResult(callback(...rest), this.failed);
    } catch (error) {
      this.failed(error);
    }
  }
}

/** @param {Set<any>} timers @param {any} timer */
function clearIfIn(timers, timer) {
  if (timers.has(timer)) clearTimeout(timer);
}

module.exports = { Timers };
