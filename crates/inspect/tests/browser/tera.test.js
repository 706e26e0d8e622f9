// TERA's opcodes without a name: ranked definitions, layouts side by side, and a map of accepted names.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, complete, cursor, decoded, filter, folder, open, rows, samples, until } from "./harness.js";

after(close);

const capture = path.join(samples, "tera-login.pcapng");
const data = path.join(samples, "tera");

/** Opens the board. @param {import("playwright-core").Page} page */
async function board(page) {
  await complete(page);
  await page.getByRole("tab", { name: "Opcodes" }).click();
  // Definitions have been ranked for every opcode.
  await until(page, () => {
    const cells = [...document.querySelectorAll("#opcodes .window > .row:not([hidden]) > :nth-child(5)")];
    return cells.length > 0 && cells.every((cell) => cell.textContent !== "…");
  });
  await page.getByRole("region", { name: /^Layout / }).first().waitFor();
}

test("an opcode is identified, compared, accepted and exported, and the map names its messages", async (t) => {
  const { page } = await open(t, [capture, "--data", data]);
  await board(page);
  const found = await rows(page, "opcodes");
  assert.deepEqual(found, [["51042", "server", "3", "42–108", "S_PARTY_MEMBER_LIST 55.5", ""]]);
  const status = await page.getByRole("status", { name: "Opcodes found" }).innerText();
  assert.match(status, /1 opcode, 3 of 15 messages .* revision 999001 \(patch 98\.02\), with a map/);
  const region = page.getByRole("region", { name: "Candidates", exact: true });
  assert.match(await region.innerText(), /Opcode 51042 \(0xc762\): 3 messages tried\s+Preceded by 51042 \(2\), C_START_SKILL \(1\)\. Followed by .*S_WEATHER_INFO \(1\)/);
  const best = region.getByRole("row").filter({ hasText: "S_PARTY_MEMBER_LIST.1" });
  assert.deepEqual((await best.innerText()).split(/\s+/).filter(Boolean).slice(0, 5), ["S_PARTY_MEMBER_LIST.1", "55.5", "3/3", "3/3", "4"]);
  assert.match(await region.getByRole("row").filter({ hasText: "S_LOGIN_ACCOUNT_INFO.1" }).innerText(), /trailing_bytes in 3, 30112 in the map/);

  // The two best layouts are side by side; a third one joins them.
  const layouts = page.getByRole("region", { name: /^Layout / });
  assert.equal(await layouts.count(), 2);
  const right = page.getByRole("region", { name: "Layout S_PARTY_MEMBER_LIST.1" });
  assert.match(await right.getByRole("region", { name: /^Fields/ }).innerText(), /members/);
  const coloured = await right.locator(".sample span[class^=c]").count();
  assert.ok(coloured > 20, String(coloured));
  const wrong = page.getByRole("region", { name: "Layout S_LOGIN_ACCOUNT_INFO.1" });
  assert.match(await wrong.innerText(), /trailing_bytes at/);
  await page.getByRole("checkbox", { name: "Compare S_LOGIN_ARBITER.1" }).check();
  await until(page, () => document.querySelectorAll("#layouts > section").length === 3);
  const [one, other] = [await layouts.nth(0).boundingBox(), await layouts.nth(1).boundingBox()];
  assert.ok(one && other && one.y === other.y && other.x > one.x, "side by side");
  // Another sample has other values.
  const sample = page.getByRole("combobox", { name: "Sample message" });
  const before = await right.locator(".sample").textContent();
  await sample.selectOption({ index: 2 });
  await until(page, (before) => document.querySelector("#layouts .sample")?.textContent !== before, before);
  assert.equal((await right.locator(".sample").innerText()).split(" ").filter(Boolean).length, 108);
  await accessible(page, "opcodes");

  // A name that the map already has is refused; another one is accepted, withdrawn and accepted
  // again.
  await page.getByRole("button", { name: "Accept S_LOGIN_ACCOUNT_INFO.1" }).click();
  await until(page, () => /S_LOGIN_ACCOUNT_INFO is already opcode 30112 in the map/.test(document.getElementById("message")?.textContent ?? ""));
  const save = page.getByRole("button", { name: "Export map" });
  assert.equal(await save.isDisabled(), true);
  const accept = page.getByRole("button", { name: "Accept S_PARTY_MEMBER_LIST.1" });
  for (const isAccepted of [true, false, true]) {
    await accept.click();
    assert.equal(await accept.getAttribute("aria-pressed"), String(isAccepted));
  }
  await until(page, () => document.querySelector("#opcodes .window > .row > :nth-child(6)")?.textContent === "S_PARTY_MEMBER_LIST");
  // It survives a reload of the page.
  await page.reload();
  await board(page);
  const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
  assert.equal(download.suggestedFilename(), "protocol.999001.map");
  const made = folder(t);
  cpSync(path.join(data, "definitions"), path.join(made, "definitions"), { recursive: true });
  mkdirSync(path.join(made, "map"));
  const file = path.join(made, "map", download.suggestedFilename());
  copyFileSync(await download.path(), file);
  assert.match(readFileSync(file, "utf8"), /^S_PARTY_MEMBER_LIST = 51042$/m);
  const { page: next } = await open(t, [capture, "--data", made]);
  assert.match(await filter(next, "tera.S_PARTY_MEMBER_LIST"), /^3 of /);
  await next.getByRole("tab", { name: "Opcodes" }).click();
  await next.getByText("Every message has a name.").waitFor();
});

test("without a map, opcodes are listed by their number of messages, and reached with the keyboard", async (t) => {
  const { page } = await open(t, [capture, "--data", path.join(data, "definitions")]);
  await board(page);
  const list = page.getByRole("grid", { name: "Unknown opcodes" });
  const total = Number(await list.getAttribute("aria-rowcount")) - 1;
  assert.ok(total > 8, String(total));
  const found = await rows(page, "opcodes");
  const counts = found.map((row) => Number(row[2]));
  assert.deepEqual(counts, [...counts].sort((a, b) => b - a));
  await list.focus();
  await page.keyboard.press("End");
  assert.equal(await cursor(page, "opcodes"), total - 1);
  const last = (await rows(page, "opcodes")).at(-1)?.[0];
  await until(page, (last) => document.querySelector(".candidates h2")?.textContent?.startsWith(`Opcode ${last} `), last);
  // Tabs change with arrow keys, and a sample leads to its row.
  const first = Number((await page.getByRole("combobox", { name: "Sample message" }).inputValue()));
  await page.getByRole("button", { name: "Show in messages" }).click();
  assert.equal(await page.getByRole("tab", { name: "Messages" }).getAttribute("aria-selected"), "true");
  await decoded(page, first);
  await page.getByRole("tab", { name: "Messages" }).focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.getByRole("tab", { name: "Opcodes" }).getAttribute("aria-selected"), "true");
  // Two opcodes cannot have the same name.
  const accepting = page.getByRole("region", { name: "Candidates", exact: true }).getByRole("button", { name: /^Accept / });
  const name = await accepting.first().getAttribute("aria-label");
  await accepting.first().click();
  await list.focus();
  await page.keyboard.press("ArrowUp");
  await until(page, (last) => !document.querySelector(".candidates h2")?.textContent?.startsWith(`Opcode ${last} `), last);
  const again = page.getByRole("button", { name: name ?? "", exact: true });
  if (await again.count()) {
    await again.click();
    await until(page, () => /is already accepted for opcode/.test(document.getElementById("message")?.textContent ?? ""));
  }
});

test("other captures have no board", async (t) => {
  const { page } = await open(t, [path.join(samples, "uru-login.pcapng"), "--keys", path.join(samples, "uru-keys.toml")]);
  await complete(page);
  assert.equal(await page.getByRole("tab", { name: "Opcodes" }).count(), 0);
});
