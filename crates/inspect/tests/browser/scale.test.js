// A million messages scroll smoothly.

import assert from "node:assert/strict";
import path from "node:path";
import { after, test } from "node:test";
import { close, complete, cursor, decoded, filter, folder, open, rows, samples, until } from "./harness.js";
import { generate } from "./generate.js";

after(close);

const COUNT = 1_000_000;
const data = ["--data", path.join(samples, "ki-messages")];

test("a million messages are scrolled, reached, filtered and cancelled", async (t) => {
  const capture = path.join(folder(t), "million.pcap");
  generate(capture, COUNT);
  const { page } = await open(t, [capture, ...data]);
  await complete(page);
  const grid = page.getByRole("grid", { name: "Messages", exact: true });
  const total = Number(await grid.getAttribute("aria-rowcount")) - 1;
  assert.ok(total > COUNT, String(total));
  await grid.focus();
  await page.keyboard.press("End");
  assert.equal(await cursor(page, "messages"), total - 1);
  await decoded(page, total - 1);
  assert.match((await rows(page, "messages")).at(-1)?.[6] ?? "", /sky 999999/);

  const { frames, worst } = await page.evaluate(async () => {
    const scroller = document.getElementById("messages");
    if (!scroller) throw new Error("no messages");
    scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
    /** @type {number[]} */
    const times = [];
    let last = performance.now();
    const start = last;
    while (last - start < 3000) {
      scroller.dispatchEvent(new WheelEvent("wheel", { deltaY: 300, bubbles: true, cancelable: true }));
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      times.push(now - last);
      last = now;
    }
    times.sort((a, b) => a - b);
    return { frames: (1000 * times.length) / (last - start), worst: times.at(-1) ?? 0 };
  });
  t.diagnostic(`${frames.toFixed(1)} frames per second while scrolling, the longest ${worst.toFixed(0)} ms`);
  // The browser draws 60 frames per second; on a busy machine it may miss some.
  assert.ok(frames > 45, `${frames} frames per second`);

  // The middle of the scroll bar is the middle of the list.
  await page.evaluate(() => {
    const scroller = document.getElementById("messages");
    if (scroller) scroller.scrollTop = (scroller.scrollHeight - scroller.clientHeight) / 2;
  });
  await until(page, 
    (total) => Math.abs(Number(document.querySelector("#messages .window > .row:not([hidden])")?.getAttribute("data-position")) - total / 2) < total / 100,
    total,
  );

  assert.match(await filter(page, "ZoneID == 765432"), /^1 of /);
  await until(page, () => /765432/.test(document.querySelector("#messages .window > .row:not([hidden])")?.textContent ?? ""));

  // A filter can be cancelled while it is applied to all messages.
  const box = page.getByRole("textbox", { name: "Filter" });
  await box.fill("Wind > 50");
  await box.press("Enter");
  await page.getByRole("button", { name: "Cancel" }).click();
  await until(page, () => !/filtering| of /.test(document.getElementById("status")?.textContent ?? ""));
});
