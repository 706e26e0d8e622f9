// Takes the screenshots for `docs/inspect.md`. Look at each of them before committing it.

import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { command, fromDisk, root, run, samples, serve, until } from "./harness.js";
import { behindProxy, withPage } from "./worlds.js";

const folder = path.join(root, "docs/inspect");
mkdirSync(folder, { recursive: true });
const server = await serve(path.join(samples, "uru-login.pcapng"), "--keys", path.join(samples, "uru-keys.toml"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await fromDisk(page);
await page.goto(server.url);
await page.getByRole("grid", { name: "Messages", exact: true }).waitFor();
const grid = page.getByRole("grid", { name: "Messages", exact: true });
const box = page.getByRole("textbox", { name: "Filter" });

/** @param {string} name @param {import("playwright-core").PageScreenshotOptions} [options] */
async function picture(name, options = {}) {
  await page.waitForTimeout(400);
  await page.screenshot({ path: path.join(folder, `${name}.png`), ...options });
}

/** @param {string} filter */
async function find(filter) {
  await box.fill(filter);
  await box.press("Enter");
  await page.waitForTimeout(400);
  await grid.focus();
  await page.keyboard.press("Home");
  await page.waitForTimeout(300);
}

await until(page, () => /59|row/.test(document.getElementById("status")?.textContent ?? ""));
await find("auth.AcctLoginRequest");
await page.getByRole("button", { name: "Show all" }).click();
await page.waitForTimeout(400);
await page.locator("#fields .row", { hasText: "accountName" }).click();
await picture("start");
const part = await page.locator("#detail").boundingBox();
if (part) await picture("message", { clip: part });
await page.emulateMedia({ colorScheme: "dark" });
await picture("dark");
await page.emulateMedia({ colorScheme: "light" });
const rates = await page.locator("#rates").boundingBox();
if (rates) {
  await page.mouse.move(rates.x + 0.25 * rates.width, rates.y + 30);
  await page.mouse.down();
  await page.mouse.move(rates.x + 0.75 * rates.width, rates.y + 30, { steps: 4 });
  await page.mouse.up();
  await picture("timeline", { clip: { x: 0, y: 0, width: 1280, height: 330 } });
  await page.getByRole("button", { name: "Zoom out" }).click();
}
await box.fill("");
await box.pressSequentially("result == Pl");
await picture("filter", { clip: { x: 0, y: 0, width: 1280, height: 330 } });
await find("auth.VaultNodeFetched");
await page.keyboard.press("m");
await page.keyboard.press("ArrowDown");
await page.waitForTimeout(400);
await page.keyboard.press("d");
await picture("compare");
await page.keyboard.press("Escape");
await page.setViewportSize({ width: 390, height: 800 });
await picture("phone");
await server.stop();
await page.setViewportSize({ width: 1280, height: 800 });

const archive = await serve(path.join(samples, "ki-zone.wad"));
await page.goto(archive.url);
await page.locator("#files .row", { hasText: "collision.bcd" }).click();
await page.getByRole("img", { name: "collision.bcd from above" }).waitFor();
await page.locator("#fields .row", { hasText: "category_flags" }).first().click();
await picture("archive");
await archive.stop();

const made = mkdtempSync(path.join(tmpdir(), "worldwire-"));
mkdirSync(path.join(made, "files/Pets"), { recursive: true });
copyFileSync(path.join(samples, "ki-pet.xml"), path.join(made, "files/Pets/Nyx.xml"));
command(made, "ki", "wad", "create", "files", "-o", "Root.wad");
const editor = await serve(path.join(made, "Root.wad"), "--data", path.join(samples, "ki-types.json"), "--edit");
await page.goto(editor.url);
await page.locator("#files .row").first().waitFor();
await page.getByRole("treegrid", { name: "Files" }).focus();
await page.keyboard.press("ArrowRight");
await page.locator("#files .row", { hasText: "Nyx.xml" }).click();
await page.getByRole("button", { name: "Edit", exact: true }).click();
await page.locator("[data-key='m_snacks[0]']").click();
await page.locator("[data-key='m_speed']").fill("2.5");
await picture("editor");
await editor.stop();
rmSync(made, { recursive: true });

const walk = await serve(path.join(samples, "uru-walk.pcapng"), "--keys", path.join(samples, "uru-keys.toml"), "--data", path.join(samples, "sdl"));
await page.goto(walk.url);
await page.getByRole("tab", { name: "Vault" }).click();
await page.locator("#vault-nodes .row").click();
await page.getByRole("treegrid", { name: "Vault" }).focus();
await page.keyboard.press("ArrowRight");
await page.getByRole("button", { name: /Journal/ }).click();
await picture("vault");
await page.getByRole("tab", { name: "Ages", exact: true }).click();
await page.locator("#age-objects .row").first().click();
await page.getByRole("slider", { name: "Time" }).fill("700");
await picture("ages");
await walk.stop();

await page.setViewportSize({ width: 1280, height: 800 });
const views = [
  { tab: "Opcodes", name: "opcodes", args: ["tera-login.pcapng", "--data", "tera"] },
  { tab: "Plane", name: "plane", args: ["mxo-crowd.pcapng", "--keys", "mxo-crowd-keys.toml"] },
];
for (const { tab, name, args } of views) {
  const shown = await serve(...args.map((arg) => (arg.startsWith("-") ? arg : path.join(samples, arg))));
  await page.goto(shown.url);
  await page.getByRole("tab", { name: tab }).click();
  await page.waitForTimeout(1000);
  if (name === "plane") await page.locator(".above [data-object]", { hasText: "Passer-by" }).locator("path").click();
  await picture(name);
  await shown.stop();
}

/** The functions that end what runs while the screenshots are taken. @type {(() => unknown)[]} */
const ends = [];
const t = /** @type {import("node:test").TestContext} */ (/** @type {unknown} */ ({ after: (/** @type {() => unknown} */ act) => ends.push(act) }));
await page.setViewportSize({ width: 1280, height: 800 });

const { url, play } = await behindProxy(t);
await page.goto(url);
const hold = page.getByRole("textbox", { name: "Hold" });
await hold.fill('game.* and any contains "hello"');
await hold.press("Enter");
const ben = await play("ben", "login + create-player Ben male + set-player Ben + enter city + wait 600");
await ben.hear("out", /all of the age's states have arrived/);
await play("ann", "login + create-player Ann female + set-player Ann + enter city + say hello + wait 600");
await page.getByRole("heading", { name: /Held: / }).waitFor();
await grid.focus();
await page.keyboard.press("End");
const text = page.locator("[data-path='buffer.message.stream.payload.text']");
await text.fill("hello from the page");
await text.scrollIntoViewIfNeeded();
await page.waitForTimeout(800);
await picture("breakpoints");

const { home, url: shown } = await withPage(t);
await page.goto(shown);
const steps = "login + create-player Ann female + set-player Ann + enter city + say hello + wait 600";
await run(t, home, "client", "uru", "server.ini", "--account", "ann", "--password-file", "pw", ...steps.split(" "));
await page.getByRole("heading", { name: "Players (1)" }).waitFor();
await page.waitForTimeout(6000);
await picture("server");
await browser.close();
for (const end of ends.reverse()) await end();
