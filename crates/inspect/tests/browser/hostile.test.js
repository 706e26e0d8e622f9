// Captures whose text is markup, control characters or direction changes, and damaged captures.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, complete, decoded, filter, folder, open, rows, samples, serve, until } from "./harness.js";
import { Capture, generate, Talk, weather } from "./generate.js";

after(close);

const data = ["--data", path.join(samples, "ki-messages")];
const TEXTS = [
  "<img src=x onerror=\"document.title='owned'\">",
  "</span><script>document.title='owned'</script>",
  "javascript:alert(1)",
  "\u001b[2J\u0000\u0007\r\nnew line",
  "abc\u0085\u009b\u00adxyz",
  "'; drop table messages; --",
  "x".repeat(30_000),
];

test("hostile text stays text", async (t) => {
  const made = folder(t);
  const capture = path.join(made, "<img src=x onerror=alert(1)>\u202egnp.pcap");
  const writer = new Capture(capture);
  const talk = new Talk(writer, 50000);
  for (const [number, text] of TEXTS.entries()) {
    talk.send("server", weather(number, Buffer.from(text, "latin1")));
  }
  writer.close();
  const { page } = await open(t, [capture, ...data]);
  await complete(page);
  const count = await page.evaluate(async () => (await (await fetch("/api/capture")).json()).rows);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  for (let row = 0; row < count; row++) {
    await decoded(page, row);
    await page.keyboard.press("ArrowDown");
  }
  const found = await page.evaluate(() => ({
    title: document.title,
    hostile: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u202a-\u202e]/.test(document.body.innerText),
    markup: document.querySelectorAll("img, script:not([src])").length,
  }));
  assert.match(found.title, /worldwire$/);
  assert.equal(found.hostile, false);
  assert.equal(found.markup, 0);
  assert.ok((await rows(page, "messages")).some((row) => row[6]?.includes("<img src=x")));
  // It can also be searched, copied as a filter, and used in notes.
  const box = page.getByRole("textbox", { name: "Search" });
  await box.fill("<img src=x onerror=\"");
  await box.press("Enter");
  await page.getByRole("status", { name: "Matches" }).filter({ hasText: "1 of 1" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("b");
  await page.locator("#message", { hasText: "notes saved" }).waitFor();
  await accessible(page, "hostile");
});

test("a gap is listed, marked, and can be reached", async (t) => {
  const capture = path.join(folder(t), "gap.pcap");
  const writer = new Capture(capture);
  const talk = new Talk(writer, 50000);
  for (let number = 0; number < 40; number++) {
    talk.send("server", weather(number, Buffer.from("blue")), number === 20 ? 33 : 0);
    talk.send("client", weather(number, Buffer.from("?")));
  }
  writer.close();
  const { page } = await open(t, [capture, ...data]);
  assert.match(await complete(page), /1 gap/);
  await page.getByRole("button", { name: /^Gap: first at row/ }).click();
  await until(page, () => /gap from server/.test(document.getElementById("title")?.textContent ?? ""));
  assert.match(await page.locator("#notice").innerText(), /33 bytes are missing/);
  assert.match((await rows(page, "conversations"))[0]?.[0] ?? "", /1 gap/);
});

test("a damaged capture shows what precedes the damage", async (t) => {
  const capture = path.join(folder(t), "damaged.pcapng");
  const whole = readFileSync(path.join(samples, "uru-games.pcapng"));
  writeFileSync(capture, whole.subarray(0, Math.floor(whole.length / 2) + 1));
  const { page } = await open(t, [capture]);
  const status = await complete(page);
  assert.match(status, /truncated|ends/i);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await decoded(page, 0);
});

test("a file that is not a capture is refused", async (t) => {
  const capture = path.join(folder(t), "notes.txt");
  writeFileSync(capture, "my shopping list, which is no capture at all");
  await assert.rejects(serve(capture), /exit code 1: .*not a pcap or pcapng capture/s);
});

test("a growing capture keeps its rows", async (t) => {
  const capture = path.join(folder(t), "growing.pcap");
  generate(capture, 3000);
  const { page } = await open(t, [capture, ...data]);
  await complete(page);
  const count = await page.evaluate(async () => (await (await fetch("/api/capture")).json()).rows);
  appendFileSync(capture, Buffer.alloc(100_000, 7));
  assert.match(await filter(page, "ZoneID >= 0"), /^3,000 of /);
  await page.getByRole("grid", { name: "Messages", exact: true }).focus();
  await page.keyboard.press("End");
  await decoded(page, count - 1);
});
