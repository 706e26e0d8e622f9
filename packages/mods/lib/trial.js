'use strict';
// Runs `check` in a child process, because a mod can block or end the process that starts it. The
// check is then repeated without this mod.

const { spawn } = require('child_process');
const fs = require('fs');
const { check, text } = require('./check');
const { MAX_SECONDS, watch } = require('./watchdog');

/** The child's descriptor for its findings: one JSON object per line. Mods can print to the others. */
const FINDINGS = 3;

/** @typedef {import('./check').CheckOptions} CheckOptions */
/** @typedef {{options: CheckOptions, world: any, skipped: [name: string, why: string][]}} Job `skipped` are mods not to start */

/**
 * Prints what the mods in a folder use, what is missing, and what will not work. Sets the exit code.
 * @param {CheckOptions & {json: boolean, untilEof: boolean}} options @param {any} world
 */
async function runCheck(options, world) {
  /** @type {Map<string, string>} */
  const skipped = new Map();
  for (;;) {
    const { error, build, reports, culprit } = await attempt({ options, world, skipped: [...skipped] }, options.untilEof);
    if (error !== undefined) throw new Error(error);
    if (culprit !== null) {
      if (skipped.has(culprit.name)) throw new Error(`the mod ${culprit.name} ended the check twice: ${culprit.why}`);
      skipped.set(culprit.name, culprit.why);
      continue;
    }
    for (const one of reports) console.log(options.json ? JSON.stringify(one) : text(one));
    const failed = reports.filter(({ runs }) => !runs).length;
    const count = `${reports.length} ${reports.length === 1 ? 'mod' : 'mods'}`;
    if (!options.json) console.log(`${count}, ${failed} cannot run (${build})`);
    process.exitCode = failed > 0 ? 1 : 0;
    return;
  }
}

/**
 * The result of one child process.
 * @typedef {object} Result
 * @property {string} [error] why nothing could be checked
 * @property {string} build
 * @property {any[]} reports
 * @property {{name: string, why: string} | null} culprit the mod that blocked or ended the process
 */

/** @param {Job} job @param {boolean} untilEof @returns {Promise<Result>} */
function attempt(job, untilEof) {
  const child = spawn(process.execPath, [...process.execArgv, __filename], { stdio: ['pipe', 2, 2, 'pipe'] });
  const stop = () => {
    child.kill('SIGKILL');
    process.exit(2);
  };
  if (untilEof) {
    process.stdin.on('end', stop).on('error', stop).resume();
    // The end of the check must not wait for the end of the input.
    /** @type {any} */ (process.stdin).unref?.();
  }
  // The child may end before it has read everything.
  child.stdin?.on('error', () => {});
  child.stdin?.end(JSON.stringify(job));
  const found = /** @type {import('stream').Readable} */ (child.stdio[FINDINGS]);
  /** @type {Buffer[]} */
  const chunks = [];
  found.on('data', (chunk) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.stdin.removeAllListeners();
      try {
        const lines = Buffer.concat(chunks).toString().split('\n').slice(0, -1);
        resolve(resultOf(lines.map((line) => JSON.parse(line)), code, signal));
      } catch (error) {
        // A mod has written to the descriptor.
        reject(error);
      }
    });
  });
}

/** @param {any[]} findings @param {number | null} code @param {string | null} signal @returns {Result} */
function resultOf(findings, code, signal) {
  /** @type {string | null} */
  let starting = null;
  for (const finding of findings) {
    if (finding.error !== undefined || finding.reports !== undefined) return { culprit: null, ...finding };
    if (finding.blocked !== undefined) {
      const why = `it blocked for ${MAX_SECONDS} s while it was starting`;
      return { build: '', reports: [], culprit: { name: finding.blocked, why } };
    }
    starting = finding.starting;
  }
  const how = signal ?? `exit code ${code}`;
  if (starting === null) return { error: `the check ended unexpectedly (${how})`, build: '', reports: [], culprit: null };
  return { build: '', reports: [], culprit: { name: starting, why: `it ended the program while it was starting (${how})` } };
}

/** The child process. */
function runChild() {
  /** @type {Buffer[]} */
  const chunks = [];
  const tell = (/** @type {any} */ finding) => fs.writeFileSync(FINDINGS, `${JSON.stringify(finding)}\n`);
  process.stdin.on('data', (chunk) => chunks.push(chunk));
  process.stdin.on('end', () => {
    try {
      /** @type {Job} */
      const { options, world, skipped } = JSON.parse(Buffer.concat(chunks).toString());
      const watchdog = watch({ to: FINDINGS, isQuiet: true });
      const starting = (/** @type {string | null} */ name) => {
        tell({ starting: name });
        watchdog.starting(name);
      };
      tell(check(options, world, new Map(skipped), starting));
    } catch (error) {
      tell({ error: /** @type {Error} */ (error).message });
    } finally {
      process.exit();
    }
  });
}

if (require.main === module) runChild();

module.exports = { runCheck };
