// Starts the program on a capture, and opens its page in Chromium.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.join(here, "../../../..");
export const samples = path.join(root, "samples");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The program under test. */
export const program = process.env.WORLDWIRE ?? path.join(root, "target/debug/worldwire");

/**
 * Serves a capture.
 * @param {string[]} args
 */
export async function serve(...args) {
  const child = spawn(program, ["inspect", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (text) => (errors += text));
  const url = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      const line = /^(http\S+)\n/.exec(text);
      if (line) resolve(line[1]);
    });
    child.on("exit", (code) => reject(new Error(`exit code ${code}: ${errors}`)));
    child.on("error", reject);
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.kill("SIGINT");
    const code = await ended;
    assert.equal(code, 0, errors);
  };
  return { url, stop, pid: child.pid };
}

/** What to do after each test. @type {WeakMap<import("node:test").TestContext, (() => unknown)[]>} */
const endings = new WeakMap();

/**
 * Does something after the test, before everything registered earlier: a page closes before the
 * program that serves it.
 * @param {import("node:test").TestContext} t
 * @param {() => unknown} act
 */
function atEnd(t, act) {
  const known = endings.get(t);
  if (known) {
    known.push(act);
    return;
  }
  const all = [act];
  endings.set(t, all);
  t.after(async () => {
    /** @type {unknown} */
    let failure;
    for (const next of all.reverse()) {
      try {
        await next();
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure) throw failure;
  });
}

/** A new directory that is removed after the test. @param {import("node:test").TestContext} t */
export function folder(t) {
  const made = mkdtempSync(path.join(tmpdir(), "worldwire-"));
  atEnd(t, () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** @type {import("playwright-core").Browser | undefined} */
let browser;

/** Chromium, started once. */
async function chrome() {
  const candidates = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/google-chrome"];
  const executablePath = candidates.find((file) => file && existsSync(file));
  assert.ok(executablePath, "Chromium is not installed (apt-get install chromium)");
  // Containers lack the privileges for Chromium's sandbox. Only our own page is opened.
  browser ??= await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  return browser;
}

export const close = async () => {
  await browser?.close();
  browser = undefined;
};

/**
 * While the page is developed, it need not be compiled into the program again. Only scripts and styles:
 * Chromium does not let a replaced document connect to this machine.
 * @param {import("playwright-core").Page} page
 */
export async function fromDisk(page) {
  if (!process.env.PAGE_FROM_DISK) return;
  await page.route(/\.(js|css)$/, (route) => {
    const file = path.join(here, "../../page", new URL(route.request().url()).pathname);
    return route.fulfill({ path: file });
  });
}

/**
 * Opens the page of a capture. After the test, errors on the page fail it.
 * @param {import("node:test").TestContext} t
 * @param {string[]} args
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function open(t, args, options = {}) {
  const server = await serve(...args);
  atEnd(t, server.stop);
  return { server, ...(await visit(t, server.url, options)) };
}

/**
 * Opens a page by its address. After the test, errors on the page fail it.
 * @param {import("node:test").TestContext} t
 * @param {string} url
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function visit(t, url, options = {}) {
  const context = await (await chrome()).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  const own = new URL(url).host;
  page.on("console", (line) => {
    if (line.type() === "error" || line.type() === "warning") faults.push(line.text());
  });
  page.on("pageerror", (error) => faults.push(String(error.stack)));
  page.on("request", (request) => {
    const { host, protocol } = new URL(request.url());
    if (host !== own && protocol !== "blob:") faults.push(`a request to ${request.url()}`);
  });
  atEnd(t, async () => {
    await context.close();
    assert.deepEqual(faults, [], "errors on the page");
  });
  await fromDisk(page);
  await page.goto(url);
  // A locator still works after the first response has redirected to the page.
  await page.locator("#status").filter({ hasNotText: "Reading…" }).waitFor();
  return { page, faults };
}

/**
 * Starts a server or a proxy, and stops it after the test.
 * @param {import("node:test").TestContext} t
 * @param {string} cwd
 * @param {string[]} args
 */
export async function run(t, cwd, ...args) {
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, WORLDWIRE_PASSWORD: "hunter2" } });
  const said = { out: "", log: "" };
  child.stdout.on("data", (text) => (said.out += text));
  child.stderr.on("data", (text) => (said.log += text));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.kill("SIGINT");
    return ended;
  };
  atEnd(t, stop);
  /** Waits for a text in the output. @param {"out" | "log"} where @param {RegExp} wanted */
  const hear = async (where, wanted) => {
    for (let left = 1500; !wanted.test(said[where]); left--) {
      assert.ok(left > 0 && child.exitCode === null, `${args.join(" ")}: no ${wanted}: ${said.out}${said.log}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return /** @type {RegExpExecArray} */ (wanted.exec(said[where]));
  };
  return { said, stop, hear, ended };
}

/** Runs a command to its end. @param {string} cwd @param {string[]} args */
export function command(cwd, ...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  assert.equal(status, 0, `${args.join(" ")}: ${stderr}`);
  return stdout;
}

/**
 * Writes the report of `stats` on a capture, and opens the file.
 * @param {import("node:test").TestContext} t
 * @param {string[]} args
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function report(t, args, options = {}) {
  const file = path.join(folder(t), "report.html");
  const { status, stderr } = spawnSync(program, ["stats", ...args, "--report", file], { encoding: "utf8" });
  assert.ok(status !== null && status < 2, stderr);
  const context = await (await chrome()).newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("console", (line) => faults.push(line.text()));
  page.on("pageerror", (error) => faults.push(String(error.stack)));
  page.on("request", (request) => {
    if (request.url() !== pathToFileURL(file).href) faults.push(`a request to ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href);
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, [], "errors in the report");
  });
  return { page, size: statSync(file).size };
}

/**
 * Removes an expected error, such as a refused request. Fails if it did not happen.
 * @param {string[]} faults
 * @param {RegExp} expected
 */
export function forgive(faults, expected) {
  const at = faults.findIndex((fault) => expected.test(fault));
  assert.ok(at >= 0, `no error ${expected}`);
  faults.splice(at, 1);
}

/** Waits until the visible messages are loaded and drawn. @param {import("playwright-core").Page} page */
export const loaded = (page) =>
  until(page, async () => {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const visible = document.querySelectorAll("#messages .window > .row:not([hidden])");
    return visible.length > 0 && ![...visible].some((row) => row.classList.contains("loading"));
  });

/**
 * Waits until a function on the page returns something true. Playwright's own way needs `eval`, which
 * the page's policy forbids.
 * @template A
 * @param {import("playwright-core").Page} page
 * @param {(argument: A) => unknown} condition
 * @param {A} [argument]
 * @param {number} [patience] in milliseconds
 */
export async function until(page, condition, argument, patience = 15_000) {
  const end = Date.now() + patience;
  while (!(await page.evaluate(/** @type {any} */ (condition), argument))) {
    if (Date.now() > end) throw new Error(`timeout: ${condition}`);
    await page.waitForTimeout(20);
  }
}

/** Waits until the capture has been read. @param {import("playwright-core").Page} page */
export async function complete(page) {
  const isComplete = () => {
    const text = document.getElementById("status")?.textContent ?? "";
    return /\d rows?/.test(text) && !/reading|filtering/.test(text);
  };
  await until(page, isComplete, undefined, 240_000);
  return page.getByRole("status", { name: "Status" }).innerText();
}

/** Fails if axe finds a violation. @param {import("playwright-core").Page} page @param {string} state */
export async function accessible(page, state) {
  // Sent by the debugger, so the page's policy does not apply.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run(document));
  const found = violations.map((/** @type {any} */ it) => `${it.id}: ${it.nodes.map((/** @type {any} */ node) => node.html).join("\n")}`);
  assert.deepEqual(found, [], `axe in the state: ${state}`);
}

/** The visible rows of a grid, as texts of their cells. @param {import("playwright-core").Page} page @param {string} id */
export const rows = (page, id) =>
  page.evaluate(async (id) => {
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const shown = document.querySelectorAll(`#${id} .window > [role=row]:not([hidden])`);
    return [...shown].map((row) => [...row.children].map((cell) => cell.textContent ?? ""));
  }, id);

/** The position of the cursor of a list, from 0. @param {import("playwright-core").Page} page @param {string} id */
export const cursor = (page, id) =>
  page.evaluate(async (id) => {
    // The list is drawn in the next frame.
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const active = document.getElementById(id)?.getAttribute("aria-activedescendant");
    const row = active ? document.getElementById(active)?.closest("[data-position]") : null;
    return row ? Number(row.getAttribute("data-position")) : null;
  }, id);

/** Waits until the message at the cursor is decoded. @param {import("playwright-core").Page} page @param {number} row */
export const decoded = (page, row) =>
  until(page, (row) => document.getElementById("title")?.textContent?.endsWith(`row ${row}`), row);

/** Applies a filter, and waits for its result. @param {import("playwright-core").Page} page @param {string} text */
export async function filter(page, text) {
  const box = page.getByRole("textbox", { name: "Filter" });
  await box.fill(text);
  await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/api/selections") && response.status() === 201),
    box.press("Enter"),
  ]);
  await cursor(page, "messages");
  return complete(page);
}
