// The page on running programs: a capture that grows, a proxy with clients and a shard, and a server.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, complete, cursor, decoded, folder, loaded, open, rows, run, samples, until, visit } from "./harness.js";
import { behindProxy, withPage } from "./worlds.js";

after(close);

const keys = path.join(samples, "uru-keys.toml");

/** The number of rows that the page lists. @param {import("playwright-core").Page} page */
const count = (page) =>
  page.evaluate(() => Number(document.getElementById("messages")?.getAttribute("aria-rowcount")) - 1);

test("rows of a growing capture appear, are followed, and wait while paused", async (t) => {
  const whole = readFileSync(path.join(samples, "uru-login.pcapng"));
  const file = path.join(folder(t), "growing.pcapng");
  const half = Math.floor(whole.length / 2);
  writeFileSync(file, whole.subarray(0, half));
  const { page } = await open(t, [file, "--keys", keys, "--growing"]);
  await until(page, () => /following the file/.test(document.getElementById("status")?.textContent ?? ""));
  const before = await count(page);
  assert.ok(before > 5, String(before));
  const follow = page.getByRole("button", { name: "Follow", exact: true });
  const pause = page.getByRole("button", { name: "Pause" });
  await follow.click();
  assert.equal(await follow.getAttribute("aria-pressed"), "true");
  await accessible(page, "following");
  await pause.click();
  assert.equal(await follow.getAttribute("aria-pressed"), "false", "pausing stops following");
  appendFileSync(file, whole.subarray(half, half + 3000));
  await until(page, () => /more/.test(document.getElementById("pause")?.textContent ?? ""));
  assert.equal(await count(page), before, "paused");
  await pause.click();
  await until(page, (before) => Number(document.getElementById("messages")?.getAttribute("aria-rowcount")) - 1 > before, before);
  await follow.click();
  appendFileSync(file, whole.subarray(half + 3000));
  await until(page, () => /JoinAgeReply/.test(document.getElementById("messages")?.textContent ?? ""));
  await loaded(page);
  const last = (await rows(page, "messages")).at(-1);
  assert.equal(Number(last?.[0]), (await count(page)) - 1, "the last row is visible");
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("Home");
  await cursor(page, "messages");
  assert.equal(await follow.getAttribute("aria-pressed"), "false", "moving away stops following");
});

test("a chat message is held, edited in a form and sent to a live shard; another is resent", async (t) => {
  const { url, play } = await behindProxy(t);
  const { page, faults } = await visit(t, url);
  const region = page.getByRole("region", { name: "Breakpoints" });
  await region.waitFor();
  const hold = region.getByRole("textbox", { name: "Hold" });
  await hold.fill("game.Nonsense (");
  await hold.press("Enter");
  await until(page, () => document.getElementById("hold-problem")?.textContent);
  forgiveConflict(faults);
  await hold.fill('game.PropagateBuffer and any contains "hello"');
  await hold.press("Enter");
  await until(page, () => /will be held/.test(document.getElementById("message")?.textContent ?? ""));

  const ben = await play("ben", "login + create-player Ben male + set-player Ben + enter city + wait 600");
  await ben.hear("out", /all of the age's states have arrived/);
  const ann = await play("ann", "login + create-player Ann female + set-player Ann + enter city + say hello + wait 600");
  const held = region.getByRole("listbox", { name: "Held messages" });
  await held.getByRole("option").first().waitFor();
  await page.getByRole("heading", { name: /Held: game\.PropagateBuffer/ }).waitFor();
  const text = region.locator("[data-path='buffer.message.stream.payload.text']");
  assert.equal(await text.inputValue(), "hello");
  await until(page, () => /\d/.test(document.getElementById("edited-length")?.textContent ?? ""));
  const bytes = region.getByRole("region", { name: "Edited bytes" });
  const original = await bytes.innerText();
  await text.fill("shorah from the page");
  await until(page, (original) => document.getElementById("edited-bytes")?.innerText !== original, original);
  assert.ok(await bytes.locator("b").count(), "changed bytes are marked");
  await accessible(page, "a held message");

  // A value that does not fit is explained at its field.
  const command = region.locator("[data-path='buffer.message.stream.payload.playerId']");
  await command.fill("not a number");
  await until(page, () => document.querySelector("[data-path='buffer.message.stream.payload.playerId'][aria-invalid]"));
  forgiveConflict(faults);
  assert.equal(await region.getByRole("button", { name: "Send" }).isDisabled(), true);
  await command.fill("7");
  await until(page, () => !document.querySelector("#form [aria-invalid]"));
  await region.getByRole("button", { name: "JSON" }).click();
  const json = region.getByRole("textbox", { name: "Fields as JSON" });
  assert.match(await json.inputValue(), /"text": "shorah from the page"/);
  await region.getByRole("button", { name: "JSON" }).click();
  await region.getByRole("button", { name: "Send" }).click();
  await ben.hear("out", /says: .*shorah from the page/);
  await ann.hear("out", /say: ok/);

  // Rows of both sides of the proxy, decrypted.
  await until(page, () => /following the proxy/.test(document.getElementById("status")?.textContent ?? ""));
  const box = page.getByRole("textbox", { name: "Filter" });
  await box.fill('any contains "shorah from the page"');
  await box.press("Enter");
  await until(page, () => /shorah/.test(document.getElementById("messages")?.textContent ?? ""));
  await loaded(page);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("Home");
  await decoded(page, Number((await rows(page, "messages"))[0]?.[0]));

  // The same message, edited and sent again as an additional one.
  await page.keyboard.press("e");
  await page.getByRole("heading", { name: "New message" }).waitFor();
  await text.fill("sent again");
  await until(page, () => /\d/.test(document.getElementById("edited-length")?.textContent ?? "") && !document.getElementById("send")?.hasAttribute("disabled"));
  await region.getByRole("button", { name: "Send" }).click();
  await ben.hear("out", /says: .*sent again/);

  // The keyboard: arrows move through lists, and a template fills in fields.
  await region.getByRole("button", { name: "New message" }).click();
  await region.getByRole("textbox", { name: "Message", exact: true }).fill("game.PropagateBuffer");
  await region.getByRole("button", { name: "Template" }).click();
  await region.locator("[data-path^='buffer']").first().waitFor();
  faults.splice(0, faults.length, ...faults.filter((it) => !/409/.test(it)));
  await page.getByRole("button", { name: /^Breakpoints/ }).click();
  assert.equal(await region.isHidden(), true);
});

test("edits are kept, and never released as if they were sent", async (t) => {
  const { url, play } = await behindProxy(t);
  const { page, faults } = await visit(t, url);
  assert.match(await page.locator("#no-messages").innerText(), /as soon as a client connects/);
  const region = page.getByRole("region", { name: "Breakpoints" });
  const hold = region.getByRole("textbox", { name: "Hold" });
  // Names are completed.
  await hold.pressSequentially("game.PropagateBuf");
  await page.getByRole("listbox", { name: "Suggestions for Hold" }).getByRole("option", { name: "game.PropagateBuffer" }).waitFor();
  // The longer list for fewer letters scrolls.
  await until(page, () => [...document.querySelectorAll("#hold-suggestions [role=option]")].every((it) => it.textContent?.includes("PropagateBuf")));
  await accessible(page, "suggestions for Hold");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await hold.inputValue(), "game.PropagateBuffer");
  await hold.fill('game.PropagateBuffer and from == client and any contains "word"');
  await hold.press("Enter");
  await until(page, () => /will be held/.test(document.getElementById("message")?.textContent ?? ""));
  const ann = await play("ann", "login + create-player Ann female + set-player Ann + enter city + say word-1 + say word-2 + wait 600");
  await until(page, () => document.querySelectorAll("#held [role=option]").length === 2);
  const text = region.locator("[data-path='buffer.message.stream.payload.text']");
  await page.getByRole("heading", { name: /Held: / }).waitFor();
  const release = region.getByRole("button", { name: "Release" });
  const decision = region.getByRole("status", { name: "Decision" });
  assert.match(await decision.innerText(), /Release forwards the message unchanged/);
  await text.fill("another word");
  assert.equal(await release.isDisabled(), true);
  assert.match(await decision.innerText(), /Send forwards your edits/);
  // The edits stay while another message is shown.
  const options = region.getByRole("listbox", { name: "Held messages" }).getByRole("option");
  await options.nth(1).click();
  assert.equal(await text.inputValue(), "word-2");
  assert.equal(await release.isDisabled(), false);
  await options.nth(0).filter({ hasText: "edited" }).click();
  assert.equal(await text.inputValue(), "another word");
  await region.getByRole("button", { name: "Revert" }).click();
  assert.equal(await text.inputValue(), "word-1");
  assert.equal(await release.isDisabled(), false);

  // A new message begins empty, without bytes of another one and without complaints.
  await region.getByRole("button", { name: "New message" }).click();
  await region.getByText("Enter the name of a message").waitFor();
  assert.equal(await page.locator("#editor-problem").innerText(), "");
  assert.equal(await page.getByRole("region", { name: "Edited bytes" }).innerText(), "");
  assert.equal(await region.getByRole("button", { name: "Send" }).isDisabled(), true);
  const name = region.getByRole("textbox", { name: "Message", exact: true });
  await name.pressSequentially("auth.PingReq");
  await page.getByRole("listbox", { name: "Suggestions for Message" }).getByRole("option", { name: "auth.PingRequest" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  assert.equal(await name.inputValue(), "auth.PingRequest");
  await region.getByRole("button", { name: "Close editor" }).click();

  await ann.stop();
  await until(page, () => /, ended/.test(document.getElementById("conversations")?.textContent ?? ""));
  // Incomplete names are refused, some of them late.
  faults.splice(0, faults.length, ...faults.filter((it) => !/409/.test(it)));
});

test("a message whose receiver has closed the connection says so", async (t) => {
  const { url, play } = await behindProxy(t);
  const { page } = await visit(t, url);
  const region = page.getByRole("region", { name: "Breakpoints" });
  const hold = region.getByRole("textbox", { name: "Hold" });
  await hold.fill("auth.AcctLoginReply");
  await hold.press("Enter");
  await until(page, () => /will be held/.test(document.getElementById("message")?.textContent ?? ""));
  const ann = await play("ann", "login + wait 600");
  await page.getByRole("heading", { name: "Held: auth.AcctLoginReply" }).waitFor();
  assert.doesNotMatch(await region.getByRole("option").first().innerText(), /closed/);
  await ann.stop();
  await region.getByRole("option").filter({ hasText: "the client has closed the connection" }).waitFor();
  assert.match(await region.getByRole("status", { name: "Decision" }).innerText(), /may not arrive/);
  await accessible(page, "a held message without a receiver");
  await until(page, () => !document.getElementById("send")?.hasAttribute("disabled"));
  await region.getByRole("button", { name: "Send" }).click();
  await page.locator("#message", { hasText: "it may not have arrived" }).waitFor();
});

test("held messages are released and dropped with the keyboard", async (t) => {
  const { url, play } = await behindProxy(t);
  const { page } = await visit(t, url);
  const region = page.getByRole("region", { name: "Breakpoints" });
  const hold = region.getByRole("textbox", { name: "Hold" });
  await hold.fill('game.PropagateBuffer and from == client and any contains "word"');
  await hold.press("Enter");
  await until(page, () => /will be held/.test(document.getElementById("message")?.textContent ?? ""));
  const ben = await play("ben", "login + create-player Ben male + set-player Ben + enter city + wait 600");
  await ben.hear("out", /all of the age's states have arrived/);
  await play("ann", "login + create-player Ann female + set-player Ann + enter city + say word-1 + say word-2 + say word-3 + wait 600");
  const held = region.getByRole("listbox", { name: "Held messages" });
  await until(page, () => document.querySelectorAll("#held [role=option]").length === 3);
  await held.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  assert.equal(await held.getByRole("option").nth(1).getAttribute("aria-selected"), "true");
  await region.getByRole("button", { name: "Drop" }).focus();
  await page.keyboard.press("Enter");
  await until(page, () => document.querySelectorAll("#held [role=option]").length === 2);
  for (let left = 2; left > 0; left--) {
    await page.getByRole("heading", { name: /Held: / }).waitFor();
    await region.getByRole("button", { name: "Release" }).focus();
    await page.keyboard.press("Enter");
    await until(page, (left) => document.querySelectorAll("#held [role=option]").length === left, left - 1);
  }
  await ben.hear("out", /says: .*word-1[\s\S]*says: .*word-3/);
  assert.ok(!/word-2/.test(ben.said.out), "the dropped message never arrived");
  // The recording has both sides of every connection.
  await until(page, () => {
    const shown = document.querySelectorAll("#conversations .window > .row:not([hidden]) small");
    const sides = [...shown].map((it) => /^(client to proxy|proxy to server) /.exec(it.textContent ?? "")?.[1] ?? "unknown");
    return sides.length > 3 && new Set(sides).size === 2 && !sides.includes("unknown");
  });
});

test("a server shows its players, figures and log, and kicks", async (t) => {
  const { home, url } = await withPage(t);
  const { page } = await visit(t, url);
  const region = page.getByRole("region", { name: "Server", exact: true });
  await region.waitFor();
  await page.getByRole("heading", { name: "Players (0)" }).waitFor();
  assert.equal(await page.getByRole("region", { name: "Timeline" }).isHidden(), true);
  const steps = "login + create-player Ann female + set-player Ann + enter city + wait 600";
  const ann = await run(t, home, "client", "uru", "server.ini", "--account", "ann", "--password-file", "pw", ...steps.split(" "));
  await ann.hear("out", /all of the age's states have arrived/);
  await page.getByRole("heading", { name: "Players (1)" }).waitFor();
  await page.getByRole("cell", { name: "Ann (", exact: false }).first().waitFor();
  await page.getByRole("heading", { name: "Ages (1)" }).waitFor();
  await until(page, () => document.querySelectorAll("#figures li:not(.idle) path[d]").length > 3);
  assert.ok(await page.getByRole("log", { name: "Server log" }).locator("div").count());
  await accessible(page, "a server");
  await page.getByRole("button", { name: "Kick ann" }).click();
  await page.getByRole("heading", { name: "Players (0)" }).waitFor();
  await page.locator("#message", { hasText: "kicked ann" }).waitFor();
});

test("two pages on one capture keep each other's bookmarks", async (t) => {
  const file = path.join(folder(t), "evening.pcapng");
  writeFileSync(file, readFileSync(path.join(samples, "uru-login.pcapng")));
  const { page: first, server } = await open(t, [file, "--keys", keys]);
  const { page: second, faults } = await visit(t, server.url);
  /** @param {import("playwright-core").Page} page @param {number} row */
  const bookmark = async (page, row) => {
    await complete(page);
    await page.getByRole("grid", { name: "Messages", exact: true }).focus();
    await page.keyboard.press("Home");
    for (let left = row; left > 0; left--) await page.keyboard.press("ArrowDown");
    await decoded(page, row);
    await page.keyboard.press("b");
    await until(page, () => /notes saved/.test(document.getElementById("message")?.textContent ?? ""));
  };
  await bookmark(first, 3);
  await bookmark(second, 5);
  await until(second, () => document.querySelectorAll("#bookmarks li").length === 2);
  faults.splice(0, faults.length, ...faults.filter((it) => !/412/.test(it)));
  const saved = JSON.parse(readFileSync(`${file}.worldwire-notes.json`, "utf8"));
  assert.deepEqual(saved.notes.map((/** @type {{row: number}} */ note) => note.row), [3, 5]);
});

/** The refusals that a test provokes. @param {string[]} faults */
function forgiveConflict(faults) {
  const others = faults.filter((it) => !/409/.test(it));
  assert.ok(others.length < faults.length, "a refused request");
  faults.splice(0, faults.length, ...others);
}
