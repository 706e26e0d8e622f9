// Every view and key of the page, on the samples.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { accessible, close, complete, cursor, decoded, filter, folder, forgive, loaded, open, program, rows, samples, until } from "./harness.js";

after(close);

const login = [path.join(samples, "uru-login.pcapng"), "--keys", path.join(samples, "uru-keys.toml")];

test("conversations, messages and the timeline show the capture", async (t) => {
  const { page } = await open(t, login);
  const status = await complete(page);
  assert.match(status, /4 conversations/);
  for (const name of ["Conversations", "Timeline", "Fields", "Bytes"]) {
    await page.getByRole("region", { name, exact: true }).waitFor();
  }
  const conversations = await rows(page, "conversations");
  assert.equal(conversations.length, 4);
  assert.match(conversations[0]?.[0] ?? "", /#0 uru, tcp, .*14617/);
  await loaded(page);
  const messages = await rows(page, "messages");
  assert.equal(messages[1]?.[4], "connect.CliToGateKeeper");
  const grid = page.getByRole("grid", { name: "Messages", exact: true });
  assert.equal(await grid.getByRole("row").nth(1).getAttribute("aria-rowindex"), "2");
  assert.match((await page.getByRole("img", { name: /messages and notes/ }).getAttribute("aria-label")) ?? "", /intervals with gaps/);
  await accessible(page, "start");
});

test("arrows, Page keys, Home, End, Enter and Escape move through messages, fields and bytes", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  assert.equal(await cursor(page, "messages"), 0);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await cursor(page, "messages"), 2);
  await page.keyboard.press("PageDown");
  const below = (await cursor(page, "messages")) ?? 0;
  assert.ok(below > 5, String(below));
  await page.keyboard.press("PageUp");
  assert.equal(await cursor(page, "messages"), 2);
  await page.keyboard.press("End");
  const last = (await cursor(page, "messages")) ?? 0;
  assert.ok(last > 50, String(last));
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await decoded(page, 1);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "fields");
  await page.keyboard.press("ArrowDown");
  await cursor(page, "fields");
  assert.ok(await page.locator("#bytes .chosen").count());
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "messages");
  await page.getByRole("grid", { name: "Bytes", exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "fields");
});

/** Shows the first message that matches. @param {import("playwright-core").Page} page @param {string} text */
async function find(page, text) {
  await filter(page, text);
  await loaded(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("Home");
  const row = Number((await rows(page, "messages"))[0]?.[0]);
  await decoded(page, row);
  return row;
}

test("fields and bytes select each other, down to bits and in all layers", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await find(page, "auth.AcctLoginRequest");
  const field = page.locator("#fields .row", { hasText: "accountName" });
  await field.click();
  await cursor(page, "fields");
  assert.equal(await field.getAttribute("aria-selected"), "true");
  const chosen = await page.locator("#bytes .chosen").count();
  assert.ok(chosen > 2, String(chosen));
  const first = page.locator("#bytes [data-byte='0']");
  await first.click();
  await cursor(page, "fields");
  assert.equal(await field.getAttribute("aria-selected"), "false");
  assert.equal(await page.locator("#fields .row[aria-selected=true]").count(), 1);
  await page.getByRole("grid", { name: "Bytes", exact: true }).focus();
  for (let step = 0; step < 4; step++) await page.keyboard.press("ArrowRight");
  await cursor(page, "fields");
  const name = await page.locator("#fields .row[aria-selected=true]").innerText();
  assert.match(name, /transId/);
  await page.getByRole("button", { name: "bit 0: ", exact: false }).click();
  assert.match(await page.locator("#fields .row[aria-selected=true]").innerText(), /transId/);
  const tabs = page.getByRole("tab");
  assert.ok((await tabs.count()) >= 2);
  await page.getByRole("tab", { name: /wire/ }).click();
  assert.equal(await page.getByRole("tab", { name: /wire/ }).getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.getByRole("tab", { name: /wire/ }).getAttribute("aria-selected"), "false");
  const colour = await page.locator("#bytes .byte.chosen").first().getAttribute("class");
  assert.match(colour ?? "", /\bc\d+\b/);
  await accessible(page, "a message");
});

test("a tree opens and closes with arrows", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await find(page, "auth.AcctLoginRequest");
  const grid = page.getByRole("treegrid", { name: "Fields" });
  await grid.focus();
  await page.keyboard.press("Home");
  while (!(await page.locator("#fields .row[aria-selected=true][aria-expanded=true]").count())) {
    await page.keyboard.press("ArrowDown");
    await cursor(page, "fields");
  }
  const before = (await rows(page, "fields")).length;
  await page.keyboard.press("ArrowLeft");
  assert.ok((await rows(page, "fields")).length < before);
  assert.equal(await page.locator("#fields .row[aria-selected=true]").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  assert.equal((await rows(page, "fields")).length, before);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  await cursor(page, "fields");
  assert.equal(await page.locator("#fields .row[aria-selected=true]").getAttribute("aria-expanded"), "true");
});

test("the filter completes names, fields and values, and explains mistakes", async (t) => {
  const { page, faults } = await open(t, login);
  await complete(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("/");
  const box = page.getByRole("textbox", { name: "Filter" });
  assert.ok(await box.evaluate((it) => it === document.activeElement));
  await box.pressSequentially("auth.PlayerCreateRepl");
  const list = page.getByRole("listbox", { name: "Suggestions" });
  await list.getByRole("option", { name: "auth.PlayerCreateReply" }).waitFor();
  await accessible(page, "suggestions");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  assert.equal(await box.inputValue(), "auth.PlayerCreateReply");
  await box.pressSequentially(" and result == PlayerA");
  await list.getByRole("option", { name: "PlayerAlreadyExists" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await box.inputValue(), "auth.PlayerCreateReply and result == PlayerAlreadyExists");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Show all" }).waitFor();
  assert.match(await complete(page), /^1 of /);
  await box.fill("result = 3");
  await box.press("Enter");
  const alert = page.getByRole("alert");
  await alert.filter({ hasText: "column 8" }).waitFor();
  assert.equal(await box.getAttribute("aria-invalid"), "true");
  forgive(faults, /status of 400/);
  assert.match(await alert.innerText(), /did you mean `==`/);
  // The page says what the list shows, and the text is marked as not applied.
  assert.match(await alert.innerText(), /still shows the messages that match auth\.PlayerCreateReply/);
  assert.match((await box.getAttribute("class")) ?? "", /pending/);
  await box.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "messages");
  await page.getByRole("button", { name: "Show all" }).click();
  await until(page, () => !/ of /.test(document.getElementById("status")?.textContent ?? ""));
});

test("suggestions form valid filters, and unapplied text is marked as such", async (t) => {
  const { page, faults } = await open(t, login);
  await complete(page);
  const box = page.getByRole("textbox", { name: "Filter" });
  const list = page.getByRole("listbox", { name: "Suggestions", exact: true });
  await box.pressSequentially("auth.PlayerCreateReply and resul");
  // A field of the message comes first, and its operators follow.
  await list.getByRole("option").first().filter({ hasText: /^result/ }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await list.getByRole("option", { name: "contains" }).waitFor();
  assert.equal(await box.inputValue(), "auth.PlayerCreateReply and result ");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#filter-state").innerText(), "press Enter to apply");
  assert.match(await complete(page), /^\d+ rows/);
  await box.fill("result");
  await list.getByRole("option", { name: "exists(result)" }).click();
  assert.equal(await box.inputValue(), "exists(result)");
  await Promise.all([page.waitForResponse((it) => it.url().endsWith("/api/selections")), box.press("Enter")]);
  assert.equal(await page.locator("#filter-state").innerText(), "");
  assert.match(await complete(page), /^\d+ of \d+ rows/);
  // An empty list says why.
  await filter(page, 'any contains "no such text"');
  await page.getByText('No message matches any contains "no such text"').waitFor();
  await accessible(page, "no messages");
  await box.fill("vaultNodeTypo");
  await box.press("Enter");
  await page.getByRole("alert").filter({ hasText: "there is no message named" }).waitFor();
  forgive(faults, /status of 400/);
});

test("truncated text has tooltips, and splitters change the sizes of regions", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await find(page, "auth.VaultNodeFetched");
  const field = page.locator("#fields .row", { hasText: "NodeId" }).first();
  assert.equal(await field.locator("> *").first().getAttribute("title"), "node.NodeId");
  const first = page.locator("#messages .window > .row").first();
  assert.equal(await first.locator("> :nth-child(5)").getAttribute("title"), "auth.VaultNodeFetched");
  assert.match((await page.locator("#conversations .row").first().getAttribute("title")) ?? "", /:14617\n/);
  const sizes = () => page.evaluate(() => ["sidebar", "detail", "byte-region"].map((id) => document.getElementById(id)?.getBoundingClientRect()).map((it) => [it?.width ?? 0, it?.height ?? 0]));
  const [before] = await sizes();
  const splitter = page.getByRole("separator", { name: "Width of the conversations" });
  assert.equal(Number(await splitter.getAttribute("aria-valuenow")), before?.[0]);
  const box = await splitter.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + 3, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 103, box.y + 200, { steps: 4 });
  await page.mouse.up();
  const [wide] = await sizes();
  assert.equal(wide?.[0], (before?.[0] ?? 0) + 100);
  await until(page, (wide) => Number(document.querySelector(".splitter.right")?.getAttribute("aria-valuenow")) === wide, wide?.[0]);
  // The keyboard moves them too, within limits.
  await page.getByRole("separator", { name: "Width of the bytes" }).focus();
  const bytes = (await sizes())[2]?.[0] ?? 0;
  await page.keyboard.press("ArrowRight");
  assert.equal((await sizes())[2]?.[0], bytes - 16);
  await page.getByRole("separator", { name: "Height of the message" }).focus();
  await page.keyboard.press("Home");
  assert.equal((await sizes())[1]?.[1], 90);
  await page.keyboard.press("End");
  assert.ok(((await sizes())[1]?.[1] ?? 0) > 200);
  await accessible(page, "other sizes");
  // The browser keeps the sizes.
  const kept = await sizes();
  await page.reload();
  await complete(page);
  // The restored filter changes the rest of the page, so the sizes settle a little later.
  for (let tries = 0; tries < 100 && !isDeepStrictEqual(await sizes(), kept); tries++) await page.waitForTimeout(50);
  assert.deepEqual(await sizes(), kept);
});

test("a gap in a conversation that cannot be decoded is counted", async (t) => {
  const whole = readFileSync(login[0] ?? "");
  const file = path.join(folder(t), "torn.pcapng");
  writeFileSync(file, without(whole, 20));
  const { page } = await open(t, [file]);
  assert.match(await complete(page), /1 gap \(in conversations that are not decoded\)/);
  await page.locator("#conversations .row", { hasText: "1 gap" }).waitFor();
});

/** A capture without one of its packets. @param {Buffer} capture @param {number} number */
function without(capture, number) {
  const blocks = [];
  for (let [at, packet] = [0, 0]; at < capture.length; ) {
    const length = capture.readUInt32LE(at + 4);
    const isPacket = capture.readUInt32LE(at) === 6;
    if (isPacket) packet++;
    if (!isPacket || packet !== number) blocks.push(capture.subarray(at, at + length));
    at += length;
  }
  return Buffer.concat(blocks);
}

test("a conversation is shown alone", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await page.locator("#conversations .row").nth(2).dblclick();
  await page.getByRole("status", { name: "Status" }).filter({ hasText: "only conversation 2" }).waitFor();
  await loaded(page);
  const shown = await rows(page, "messages");
  assert.ok(shown.length > 0 && shown.every((row) => row[2] === "2"));
  await page.getByRole("grid", { name: "Conversation list" }).focus();
  await page.keyboard.press("Enter");
  await until(page, () => !/only/.test(document.getElementById("status")?.textContent ?? ""));
});

test("a search finds text and bytes in all values", async (t) => {
  const { page, faults } = await open(t, login);
  await complete(page);
  await page.keyboard.press("Control+f");
  const box = page.getByRole("textbox", { name: "Search" });
  assert.ok(await box.evaluate((it) => it === document.activeElement));
  await box.fill("PlayerAlreadyExists");
  await box.press("Enter");
  const count = page.getByRole("status", { name: "Matches" });
  await count.filter({ hasText: "1 of" }).waitFor();
  const first = (await cursor(page, "messages")) ?? -1;
  assert.ok(first >= 0);
  await box.fill("auth.");
  await box.press("Enter");
  await count.filter({ hasText: / of \d+$/ }).waitFor();
  const before = await count.innerText();
  await page.getByRole("button", { name: "Next match" }).click();
  await until(page, (before) => document.getElementById("matches")?.textContent !== before, before);
  await page.getByRole("button", { name: "Previous match" }).click();
  await until(page, (before) => document.getElementById("matches")?.textContent === before, before);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("n");
  await until(page, (before) => document.getElementById("matches")?.textContent !== before, before);
  await page.keyboard.press("Shift+N");
  await until(page, (before) => document.getElementById("matches")?.textContent === before, before);
  // Searches ignore case unless told otherwise. The field that matched is chosen.
  await box.fill("playeralreadyexists");
  await box.press("Enter");
  await count.filter({ hasText: "1 of 1" }).waitFor();
  await page.locator("#message", { hasText: "found in result" }).waitFor();
  await page.locator("#fields .row[aria-selected=true]", { hasText: "result" }).waitFor();
  const matchCase = page.getByRole("button", { name: "Match case" });
  await matchCase.click();
  await count.filter({ hasText: "0 matches" }).waitFor();
  assert.equal(await matchCase.getAttribute("aria-pressed"), "true");
  await matchCase.click();
  await count.filter({ hasText: "1 of 1" }).waitFor();
  await box.fill("hex:9");
  await box.press("Enter");
  await count.filter({ hasText: "hexadecimal" }).waitFor();
  forgive(faults, /status of 400/);
  await box.press("Escape");
  assert.equal(await count.innerText(), "");
});

test("the timeline zooms by dragging and by keys", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  const canvas = page.locator("#rates");
  const period = page.locator("#period");
  await until(page, () => document.getElementById("period")?.textContent);
  const whole = await period.innerText();
  const box = await canvas.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 });
  await page.mouse.up();
  await until(page, (whole) => document.getElementById("period")?.textContent !== whole, whole);
  assert.ok(((await cursor(page, "messages")) ?? 0) > 0);
  await page.getByRole("button", { name: "Zoom out" }).click();
  await until(page, (whole) => document.getElementById("period")?.textContent === whole, whole);
  await canvas.focus();
  await page.keyboard.press("+");
  await until(page, (whole) => document.getElementById("period")?.textContent !== whole, whole);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Escape");
  await until(page, (whole) => document.getElementById("period")?.textContent === whole, whole);
});

test("the legend shows only the messages of a name and sender", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await page.getByRole("list", { name: "Legend" }).getByRole("button", { name: /^auth\.VaultNodeFetch from client \d+/ }).click();
  await page.getByRole("button", { name: "Show all" }).waitFor();
  assert.match(await complete(page), /^3 of /);
  assert.equal(await page.getByRole("textbox", { name: "Filter" }).inputValue(), "auth.VaultNodeFetch and from == client");
});

test("times are absolute, relative or since the previous row", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await loaded(page);
  const select = page.getByRole("combobox", { name: "Time" });
  const shown = async () => (await rows(page, "messages"))[2]?.[1] ?? "";
  assert.match(await shown(), /^0\.\d{6}$/);
  await select.selectOption("absolute");
  await until(page, () => /2026-/.test(document.querySelector("#messages .window > .row > :nth-child(2)")?.textContent ?? ""));
  assert.match(await shown(), /^2026-01-01 00:00:00\.\d{6}$/);
  await select.selectOption("delta");
  await until(page, () => !/2026-/.test(document.querySelector("#messages .window > .row > :nth-child(2)")?.textContent ?? ""));
});

test("two messages are compared field by field", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await find(page, "auth.*Reply");
  await page.keyboard.press("m");
  await page.keyboard.press("ArrowDown");
  await until(page, () => !(/** @type {HTMLButtonElement} */ (document.getElementById("compare-open")).disabled));
  await page.keyboard.press("d");
  const dialog = page.getByRole("dialog", { name: /auth\..*Reply/ });
  await dialog.waitFor();
  assert.match(await dialog.innerText(), /\d+ of \d+ fields differ/);
  assert.ok(await dialog.locator("tr.different").count());
  await accessible(page, "compare");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
});

test("a message is copied in every form", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  const row = await find(page, "auth.AcctLoginRequest");
  /** @param {string} form */
  const copy = async (form) => {
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menu", { name: "Copy as" }).getByRole("menuitem", { name: form, exact: true }).click();
    await page.locator("#message", { hasText: `as ${form}` }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const line = JSON.parse(await copy("JSON"));
  assert.equal(line.name, "auth.AcctLoginRequest");
  const hex = await copy("hex");
  assert.match(hex, /^0300[0-9a-f]+$/);
  assert.match(await copy("Rust"), new RegExp(`const AUTH_ACCTLOGINREQUEST: \\[u8; ${hex.length / 2}\\] = \\[`));
  assert.match(await copy("encode command"), /^printf .* \| worldwire encode --lines --hex$/s);
  await page.locator("#fields .row", { hasText: "accountName" }).click();
  assert.match(await copy("Rust"), /`accountName` of auth\.AcctLoginRequest from the client, row \d+\.\nconst AUTH_ACCTLOGINREQUEST_ACCOUNTNAME: /);
  const condition = await copy("filter");
  assert.match(condition, /^auth.AcctLoginRequest and accountName == ".+"$/);
  assert.equal(await find(page, condition), row);
  await page.getByRole("button", { name: "Copy as" }).click();
  await accessible(page, "menu");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "hex");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("menu").count(), 0);
});

test("a copied encode command works with the definitions of the page", async (t) => {
  const { page } = await open(t, [path.join(samples, "tera-login.pcapng"), "--data", path.join(samples, "tera")]);
  await complete(page);
  await find(page, "S_CHAT");
  /** @param {string} form */
  const copy = async (form) => {
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name: form, exact: true }).click();
    await page.locator("#message", { hasText: `as ${form}` }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const [hex, command] = [await copy("hex"), await copy("encode command")];
  const env = { ...process.env, PATH: `${path.dirname(program)}:${process.env.PATH}` };
  const { stdout, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8", env });
  assert.equal(stdout.trim(), hex, stderr);
});

test("bookmarks and notes are saved next to the capture", async (t) => {
  const made = folder(t);
  const capture = path.join(made, "evening.pcapng");
  copyFileSync(login[0] ?? "", capture);
  const notes = `${capture}.worldwire-notes.json`;
  const args = [capture, ...login.slice(1)];
  const { page } = await open(t, args);
  await complete(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("ArrowDown");
  await decoded(page, 1);
  await page.keyboard.press("b");
  await page.getByRole("textbox", { name: "Note" }).fill("who is this?");
  await page.locator("#message", { hasText: "notes saved" }).waitFor();
  await page.waitForTimeout(400);
  assert.ok(existsSync(notes));
  const saved = JSON.parse(readFileSync(notes, "utf8"));
  assert.equal(saved.notes[0].text, "who is this?");
  assert.equal(saved.notes[0].row, 1);
  await accessible(page, "bookmarks");
  // The selected row and the filter are restored.
  await filter(page, "connect.*");
  await page.reload();
  await decoded(page, 1);
  assert.equal(await page.getByRole("textbox", { name: "Filter" }).inputValue(), "connect.*");
  await page.getByRole("button", { name: /★ 1 connect/ }).click();
  await decoded(page, 1);
  assert.equal(await page.getByRole("textbox", { name: "Note" }).inputValue(), "who is this?");
});

test("what the filter shows is exported", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await find(page, "auth.*Reply");
  /** @param {string} name */
  const download = async (name) => {
    await page.getByRole("button", { name: "Export", exact: true }).click();
    const [started] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name }).click(),
    ]);
    return { name: started.suggestedFilename(), content: readFileSync(await started.path()) };
  };
  const lines = await download("JSON lines");
  assert.equal(lines.name, "selection.jsonl");
  const names = lines.content.toString().trim().split("\n").map((line) => JSON.parse(line).name);
  assert.ok(names.length > 1 && names.every((name) => /^auth\..*Reply$/.test(name)));
  const table = await download("Table (CSV)");
  const cells = table.content.toString().trim().split("\n");
  assert.equal(cells.length, names.length + 1);
  assert.match(cells[0] ?? "", /^row,time,packet,/);
  const packets = await download("Packets of their conversations (pcapng)");
  assert.equal(packets.content.readUInt32LE(0), 0x0a0d0d0a);
  assert.ok(packets.content.length < readFileSync(login[0] ?? "").length);
});

test("a filter or search may be reported complete before its creation is", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await page.route("**/api/selections", async (route) => {
    const answer = await route.fetch();
    await page.waitForTimeout(500);
    await route.fulfill({ response: answer });
  });
  assert.match(await filter(page, "auth.*Reply"), /of \d+ rows/);
  const search = page.getByRole("textbox", { name: "Search" });
  await search.fill("AcctLoginReply");
  await search.press("Enter");
  await page.locator("#matches", { hasText: /^1 of \d+$/ }).waitFor();
});

test("help lists the keys", async (t) => {
  const { page } = await open(t, login);
  await complete(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys" });
  await dialog.waitFor();
  await accessible(page, "help");
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "hidden" });
});

test("the page is readable in the dark and on a phone", async (t) => {
  const { page } = await open(t, login, { colorScheme: "dark" });
  await complete(page);
  await find(page, "auth.AcctLoginRequest");
  await accessible(page, "dark");
  await page.setViewportSize({ width: 390, height: 800 });
  await accessible(page, "phone");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(wide, false, "the page is wider than the phone");
});

for (const [name, ...args] of [
  ["ki-login.pcapng", "--keys", path.join(samples, "ki-keys.toml")],
  ["ki-server.pcapng", "--keys", path.join(samples, "ki-server-keys.toml")],
  ["tera-login.pcapng", "--data", path.join(samples, "tera")],
  ["mxo-world.pcapng", "--keys", path.join(samples, "mxo-keys.toml")],
  ["uru-age.pcapng", "--keys", path.join(samples, "uru-keys.toml"), "--data", path.join(samples, "sdl")],
  ["uru-games.pcapng", "--keys", path.join(samples, "uru-keys.toml")],
]) {
  test(`every message of ${name} can be shown`, async (t) => {
    const { page } = await open(t, [path.join(samples, name ?? ""), ...args]);
    await complete(page);
    const total = await page.evaluate(async () => {
      const { rows } = await (await fetch("/api/capture")).json();
      for (let row = 0; row < rows; row++) {
        const response = await fetch(`/api/messages/${row}`);
        const detail = await response.json();
        if (!response.ok || detail.row !== row) throw new Error(`row ${row}: ${JSON.stringify(detail)}`);
      }
      return rows;
    });
    assert.ok(total > 10, String(total));
    await page.getByRole("grid", { name: "Messages", exact: true }).focus();
    await page.keyboard.press("End");
    await decoded(page, total - 1);
  });
}
