// The pages of a KI login server and of an MxO server: accounts, figures, logs and kicks.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, command, folder, run, until, visit } from "./harness.js";

after(close);

/** The row of a table with this name, as texts of its cells. @param {import("playwright-core").Page} page @param {string} name */
const account = (page, name) =>
  page.getByRole("region", { name: "Accounts, table" }).getByRole("row").filter({ has: page.getByRole("cell", { name, exact: true }) });

/** Waits until a figure has a value. @param {import("playwright-core").Page} page @param {string} name @param {string} value */
const figure = (page, name, value) =>
  until(page, ([name, value]) => {
    const items = [...document.querySelectorAll("#figures li")];
    return items.some((item) => item.children[0]?.textContent === name && item.children[1]?.textContent === value);
  }, [name, value]);

/**
 * Opens a server's page, and checks what every server shows.
 * @param {import("node:test").TestContext} t
 * @param {Awaited<ReturnType<typeof run>>} server
 */
async function opened(t, server) {
  const url = (await server.hear("log", /the page is (http:\S+)/))[1] ?? "";
  const { page } = await visit(t, url);
  await page.getByRole("region", { name: "Server", exact: true }).waitFor();
  assert.equal(await page.getByRole("region", { name: "Timeline" }).isHidden(), true);
  await page.getByRole("heading", { name: "Accounts (1)" }).waitFor();
  await page.getByRole("heading", { name: "Totals (1)" }).waitFor();
  await page.getByRole("log", { name: "Server log" }).waitFor();
  return page;
}

test("a login server shows accounts with characters, figures and rates, and kicks", async (t) => {
  const home = folder(t);
  writeFileSync(path.join(home, "pw"), "hunter2\n");
  const server = await run(t, home, "serve", "ki", "login", "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--inspect");
  await server.hear("log", /Ctrl-C/);
  const address = (await server.hear("log", /connect to (127\.0\.0\.1:\d+)/))[1] ?? "";
  command(home, "ki", "account", "add", "merle", "--password-file", "pw", "--server", "login");
  const page = await opened(t, server);
  assert.doesNotMatch(await account(page, "merle").innerText(), /Ambrose/);
  const steps = "login + validate + create Ambrose Fire + list + wait 600".split(" ");
  const merle = await run(t, home, "client", "ki", address, "--account", "merle", "--password-file", "pw", ...steps);
  await merle.hear("out", /create: ok/);
  await account(page, "merle").filter({ hasText: "Ambrose (" }).waitFor();
  await figure(page, "players", "1");
  await figure(page, "characters", "1");
  // The login counter has a rate, and its plot has several values.
  await until(page, () => [...document.querySelectorAll("#figures li")].some((item) => {
    const path = item.querySelector("path[d]")?.getAttribute("d") ?? "";
    return item.children[0]?.textContent === "logins_total" && /per second/.test(item.textContent ?? "") && path.split("L").length > 2;
  }));
  await accessible(page, "a login server");
  await page.getByRole("button", { name: "Kick merle" }).click();
  await merle.ended;
  assert.match(merle.said.log, /disconnected by an operator/);
  await page.locator("#message", { hasText: "kicked merle" }).waitFor();
  await figure(page, "players", "0");
});

test("an MxO server shows accounts with characters, figures and its log, and kicks", async (t) => {
  const home = folder(t);
  writeFileSync(path.join(home, "pw"), "hunter2\n");
  const any = ["--auth-listen", "--margin-listen", "--game-listen", "--status"].flatMap((option) => [option, "127.0.0.1:0"]);
  const server = await run(t, home, "serve", "mxo", "mxo", ...any, "--inspect");
  await server.hear("log", /Ctrl-C/);
  const [, auth = "", margin = "", game = ""] = await server.hear("log", /auth on (\S+), margin on (\S+), the world on UDP ([\d.:]+)/);
  command(home, "mxo", "account", "add", "neo", "--password-file", "pw", "--server", "mxo");
  const page = await opened(t, server);
  await figure(page, "players", "0");
  const servers = [auth, "--margin", margin, "--game", game, "--pubkey", "mxo/pubkey.dat"];
  const steps = "login + create Thomas + enter + wait 600".split(" ");
  const neo = await run(t, home, "client", "mxo", ...servers, "--account", "neo", "--password-file", "pw", ...steps);
  await neo.hear("out", /loading district/);
  await account(page, "neo").filter({ hasText: "Thomas (" }).waitFor();
  await figure(page, "players", "1");
  await figure(page, 'connections{server="game"}', "1");
  await page.getByRole("log", { name: "Server log" }).getByText("client entered").waitFor();
  await accessible(page, "an MxO server");
  await page.getByRole("button", { name: "Kick neo" }).click();
  await neo.hear("out", /An operator has disconnected you/);
  await neo.ended;
  await page.locator("#message", { hasText: "kicked neo" }).waitFor();
  await figure(page, "players", "0");
});
