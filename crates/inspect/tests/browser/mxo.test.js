// MxO's views from above, at any time of a capture.

import assert from "node:assert/strict";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, complete, cursor, decoded, open, rows, samples, until } from "./harness.js";

after(close);

const crowd = [path.join(samples, "mxo-crowd.pcapng"), "--keys", path.join(samples, "mxo-crowd-keys.toml")];

/** Opens the plane, at the end of the capture. @param {import("playwright-core").Page} page */
async function plane(page) {
  await complete(page);
  await page.getByRole("tab", { name: "Plane" }).click();
  await until(page, () => document.querySelectorAll(".above [data-object]").length > 0);
}

/** The objects in the picture, by name. @param {import("playwright-core").Page} page */
const drawn = (page) =>
  page.evaluate(() =>
    Object.fromEntries([...document.querySelectorAll(".above [data-object]")].map((it) => [it.textContent ?? "", it.getAttribute("transform") ?? ""])),
  );

test("objects are drawn from above, move with the slider, and lead to their messages", async (t) => {
  const { page } = await open(t, crowd);
  await plane(page);
  await page.getByRole("img", { name: "4 objects from above" }).waitFor();
  const names = ["Door SL Push Knob Graymetal01texvar", "Passer-by", "Visitor 191", "Visitor 192"];
  assert.deepEqual(Object.keys(await drawn(page)).sort(), names);
  const listed = await rows(page, "objects");
  assert.deepEqual(listed.map((row) => row[0]).sort(), names);
  const own = listed.find((row) => row[0] === "Visitor 191");
  assert.deepEqual(own?.slice(1, 5), ["character", "-140.9", "0.0", "21.9"]);
  assert.equal(listed.find((row) => row[1] === "door")?.[5], "closed");
  await accessible(page, "plane");

  // The picture is inside the page, and nothing overlaps the list.
  const picture = await page.locator(".above svg").boundingBox();
  assert.ok(picture && picture.width > 600 && picture.height > 200, JSON.stringify(picture));

  // An earlier time shows other positions.
  const end = await drawn(page);
  const slider = page.getByRole("slider", { name: "Time" });
  await slider.focus();
  await page.keyboard.press("Home");
  await until(page, () => document.querySelectorAll(".above [data-object]").length === 0);
  for (let presses = 0; presses < 300; presses++) await page.keyboard.press("ArrowRight");
  await until(page, () => document.querySelectorAll(".above [data-object]").length > 0);
  await until(page, (end) => [...document.querySelectorAll(".above [data-object]")].some((it) => it.textContent === "Visitor 191" && it.getAttribute("transform") !== end), end["Visitor 191"]);
  assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /^\d+\.\d s$/);

  // A click on a point chooses it, and selects the message that moved the object there.
  await page.keyboard.press("End");
  await until(page, (end) => [...document.querySelectorAll(".above [data-object]")].some((it) => it.textContent === "Visitor 191" && it.getAttribute("transform") === end), end["Visitor 191"]);
  await page.locator(".above [data-object]", { hasText: "Visitor 191" }).locator("path").click();
  const at = (await rows(page, "objects")).findIndex((row) => row[0] === "Visitor 191");
  assert.equal(await cursor(page, "objects"), at);
  const row = Number((await rows(page, "objects"))[at]?.[7]);
  await decoded(page, row);
  await page.getByRole("button", { name: "Show message" }).click();
  assert.equal(await page.getByRole("tab", { name: "Messages" }).getAttribute("aria-selected"), "true");
  assert.match(await page.locator("#title").innerText(), new RegExp(`game\\.Objects from client, row ${row}`));
  await page.getByRole("treegrid", { name: "Fields" }).focus();
  await page.keyboard.press("End");
  await until(page, () => /-140\.94212/.test(document.getElementById("fields")?.textContent ?? ""));

  // The same with the keyboard, for another conversation.
  await page.getByRole("tab", { name: "Plane" }).click();
  await page.getByRole("combobox", { name: "Conversation" }).selectOption("1");
  await until(page, () => /Visitor 192/.test(document.querySelector("#objects .window > .row")?.textContent ?? ""));
  await page.getByRole("grid", { name: "Objects" }).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  assert.equal(await page.getByRole("tab", { name: "Messages" }).getAttribute("aria-selected"), "true");
});

test("the plane plays, zooms and is dragged", async (t) => {
  const { page } = await open(t, crowd);
  await plane(page);
  await page.getByRole("combobox", { name: "Speed" }).selectOption("5");
  const play = page.getByRole("button", { name: "Play" });
  await play.click();
  assert.equal(await play.getAttribute("aria-pressed"), "true");
  const slider = page.getByRole("slider", { name: "Time" });
  await until(page, () => Number(/** @type {HTMLInputElement} */ (document.querySelector(".plane input")).value) > 1000);
  // It starts again from the beginning, so it ends where it was.
  await until(page, () => document.querySelector(".plane button")?.getAttribute("aria-pressed") === "false");
  assert.equal(await slider.inputValue(), await slider.getAttribute("max"));
  const place = async () => (await drawn(page))["Passer-by"] ?? "";
  const before = await place();
  await page.getByRole("button", { name: "Zoom in" }).click();
  assert.notEqual(await place(), before);
  await page.getByRole("button", { name: "Fit" }).click();
  assert.equal(await place(), before);
  const box = await page.locator(".above svg").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + 30, box.y + box.height - 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 80, box.y + box.height - 60, { steps: 3 });
  await page.mouse.up();
  const [x, y] = [before, await place()].map((text) => /\((\S+) (\S+)\)/.exec(text)?.slice(1).map(Number) ?? []);
  assert.ok(Math.abs((y?.[0] ?? 0) - (x?.[0] ?? 0) - 50) < 1 && Math.abs((y?.[1] ?? 0) - (x?.[1] ?? 0) + 30) < 1, `${x} ${y}`);
  await page.mouse.wheel(0, 200);
  await until(page, (y) => ![...document.querySelectorAll(".above [data-object]")].some((it) => it.getAttribute("transform") === y), `translate(${y?.join(" ")})`);
});

test("hostile names and places, and many objects, do no harm", async (t) => {
  const { page } = await open(t, crowd);
  const names = ["<img src=x onerror=alert(1)>", "\u202egnp\u0007", "x".repeat(64)];
  await page.route(/\/api\/mxo\/views$/, async (route) => {
    const answer = await (await route.fetch()).json();
    answer.conversations[0].name = names[0];
    answer.conversations[0].area = { from: [-3.4e38, -3.4e38], to: [3.4e38, 3.4e38] };
    await route.fulfill({ json: answer });
  });
  await page.route(/\/api\/mxo\/views\/0/, async (route) => {
    const places = [-3.4e38, 3.4e38, 0, 1e-38];
    const objects = Array.from({ length: 600 }, (_, view) => ({
      view, goid: 12, spawn: 1, kind: "character", name: names[view % 3], object: names[0], guess: true,
      at: [places[view % 4], view, places[(view + 1) % 4]], yaw: view % 256, state: view, row: view % 50, since: "0", trail: [[0, 0]],
    }));
    await route.fulfill({ json: { time: "0", total: 16_000, objects } });
  });
  await plane(page);
  await page.getByText("16,000 objects, the first 600 are shown").waitFor();
  assert.equal(await page.evaluate(() => document.querySelectorAll("img, script:not([src])").length), 0);
  const lines = await page.evaluate(() => document.querySelectorAll(".above line").length);
  assert.ok(lines < 700, String(lines));
  const text = await page.evaluate(() => document.body.innerText);
  assert.ok(!/[\u0007\u202e]/.test(text));
  for (const name of ["Zoom in", "Zoom out", "Fit"]) await page.getByRole("button", { name }).click();
  await accessible(page, "a hostile plane");
});

test("without keys, the plane says so", async (t) => {
  const { page } = await open(t, crowd.slice(0, 1));
  await complete(page);
  await page.getByRole("tab", { name: "Plane" }).click();
  await page.getByText("no conversation with views; to decrypt conversations, use --keys").waitFor();
});
