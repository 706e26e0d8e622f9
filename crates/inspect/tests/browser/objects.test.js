// The editor for game objects in archives.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, command, folder, forgive, open, samples, until } from "./harness.js";

after(close);

/** @typedef {import("playwright-core").Page} Page */

const BIG = "10903862769591682850";

/** A type list with every kind of value. */
const types = {
  version: 2,
  classes: Object.fromEntries(
    [
      { name: "class Base", properties: { m_id: "int" } },
      { name: "class Good", bases: ["Base"], properties: { m_id: "int", m_text: "std::string" } },
      { name: "class Other", properties: { m_id: "int" } },
      { name: "class Nest", properties: { m_id: "int", m_in: "class Nest*" } },
      { name: "class <b>Markup</b>", bases: ["Base"], properties: { "<img src=x onerror=alert(1)>": "int" } },
      {
        name: "class Holder",
        properties: {
          m_flag: "bool",
          m_level: "unsigned char",
          m_speed: "float",
          m_big: "unsigned __int64",
          m_school: { type: "enum School", flags: 2097183, enum_options: { Fire: 1, Ice: 2, Storm: 3 } },
          m_rights: { type: "unsigned int", flags: 1048607, enum_options: { CHAT: 1, TRADE: 2, HATCH: 4 } },
          m_color: "class Color",
          m_at: "class Vector3D",
          m_turn: "class Matrix3x3",
          m_name: "std::string",
          m_wide: "std::wstring",
          m_list: { type: "int", container: "List", dynamic: true },
          m_one: "class Base*",
          m_all: { type: "class SharedPointer<class Base>", container: "List", dynamic: true },
        },
      },
    ].map(({ name, bases = [], properties }, at) => {
      const described = Object.entries(properties).map(([own, it], id) => [own, { id, flags: 31, container: "Static", ...(typeof it === "string" ? { type: it } : it) }]);
      return [1000 + at, { name, bases, hash: 1000 + at, properties: Object.fromEntries(described) }];
    }),
  ),
};

const holder = `{"$class":"class Holder","m_flag":true,"m_level":7,"m_speed":1.5,"m_big":${BIG},"m_school":"Ice","m_rights":["CHAT","0x10"],
"m_color":{"b":1,"g":2,"r":3,"a":255},"m_at":{"x":1.0,"y":-2.0,"z":0.0},"m_turn":{"i":[1.0,0.0,0.0],"j":[0.0,1.0,0.0],"k":[0.0,0.0,1.0]},
"m_name":"Nyx","m_wide":"ünï","m_list":[1,2,3],"m_one":{"$class":"class Base","m_id":5},"m_all":[null,{"$class":"class Good","m_id":6,"m_text":"six"}]}`;

/**
 * An archive of objects, given as JSON by their names, and the page on it.
 * @param {import("node:test").TestContext} t
 * @param {Record<string, string>} objects
 * @param {{edit?: boolean, options?: import("playwright-core").BrowserContextOptions}} [how]
 */
async function archive(t, objects, { edit = true, options } = {}) {
  const home = folder(t);
  mkdirSync(path.join(home, "files"));
  writeFileSync(path.join(home, "types.json"), JSON.stringify(types));
  for (const [name, json] of Object.entries(objects)) {
    writeFileSync(path.join(home, "object.json"), json);
    command(home, "ki", "op", "encode", "object.json", "--types", "types.json", "-o", path.join("files", name), "--quiet");
  }
  writeFileSync(path.join(home, "files", "readme.txt"), "not an object");
  command(home, "ki", "wad", "create", "files", "-o", "Root.wad");
  const args = [path.join(home, "Root.wad"), "--data", path.join(home, "types.json"), ...(edit ? ["--edit"] : [])];
  return { home, ...(await open(t, args, options)) };
}

/** Opens the editor on a file. @param {Page} page @param {string} name */
async function start(page, name) {
  await page.locator("#files .row", { hasText: name }).click();
  await page.getByRole("heading", { name, exact: true }).waitFor();
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("group", { name: "Object", exact: true }).waitFor();
}

/** The control or section of a value. @param {Page} page @param {string} own */
const control = (page, own) => page.locator(`#object-form [data-key="${own}"]`);

/**
 * Waits until the fields beside the bytes show a value. They scroll to the control with the focus.
 * @param {Page} page
 * @param {string} own
 * @param {RegExp} value
 */
async function decoded(page, own, value) {
  const there = control(page, own);
  if (await there.isVisible()) await there.focus();
  const name = /\w+$/.exec(own)?.[0] ?? own;
  await page.locator("#fields .row:not([hidden])", { hasText: name }).filter({ hasText: value }).first().waitFor();
}

/** Saves a copy. @param {Page} page @param {string} [name] @param {boolean} [isOnly] */
async function save(page, name, isOnly = false) {
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog", { name: "Save a copy" });
  await dialog.waitFor();
  if (isOnly) await dialog.getByRole("checkbox").check();
  const box = dialog.getByRole("textbox", { name: "Name" });
  const usual = await box.inputValue();
  if (name !== undefined) await box.fill(name);
  await box.press("Enter");
  return { dialog, usual };
}

/**
 * The object of a file in an archive, as the program's own commands read it.
 * @param {string} home
 * @param {string} of
 */
const read = (home, of) => JSON.parse(command(home, "ki", "op", "decode", of, "--types", "types.json", "--json-safe")).object;

test("one value is changed, and the copy is what the commands build", async (t) => {
  const { home, page } = await archive(t, { "a.xml": holder, "b.xml": holder });
  const before = readFileSync(path.join(home, "Root.wad"));
  await start(page, "a.xml");
  await accessible(page, "an object editor");
  await control(page, "m_name").fill("Nyx & <b>Luna</b>");
  await decoded(page, "m_name", /Luna/);
  await page.getByRole("status", { name: "Edits" }).filter({ hasText: "1 file changed" }).waitFor();
  // The browser asks before it loses a change.
  const asks = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
  assert.equal(await asks(), true);
  const { usual } = await save(page);
  assert.equal(usual, "Root.edited.wad");
  await page.locator("#message", { hasText: "saved Root.edited.wad" }).waitFor();
  await page.getByRole("status", { name: "Edits" }).filter({ hasText: "1 file changed, saved" }).waitFor();
  assert.equal(await asks(), false);
  command(home, "ki", "wad", "extract", "Root.wad", "-C", "out", "--decode", "json", "--json-safe", "--types", "types.json");
  const file = path.join(home, "out", "a.xml.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"Nyx"', '"Nyx & <b>Luna</b>"'));
  command(home, "ki", "wad", "update", "Root.wad", "--from", "out", "--types", "types.json", "-o", "wanted.wad");
  assert.deepEqual(readFileSync(path.join(home, "Root.edited.wad")), readFileSync(path.join(home, "wanted.wad")));
  assert.deepEqual(readFileSync(path.join(home, "Root.wad")), before);
});

test("every kind of value has a control, with undo and redo", async (t) => {
  const { home, page, faults } = await archive(t, { "a.xml": holder });
  await start(page, "a.xml");
  const group = page.getByRole("group", { name: "Object", exact: true });
  // Numbers have ranges, and errors appear at the field.
  const level = group.getByRole("textbox", { name: "m_level" });
  assert.match((await level.getAttribute("title")) ?? "", /unsigned char, 0 to 255/);
  await level.fill("300");
  await group.getByRole("alert").filter({ hasText: "wanted an unsigned 8-bit number, found 300" }).waitFor();
  assert.equal(await level.getAttribute("aria-invalid"), "true");
  assert.equal(await page.getByRole("button", { name: "Save…" }).isDisabled(), true);
  await accessible(page, "a wrong value");
  forgive(faults, /409/);
  await level.fill("30");
  await decoded(page, "m_level", /30/);
  assert.equal(await level.getAttribute("aria-invalid"), null);
  // The field that has the focus is shown in the bytes.
  await until(page, () => document.querySelectorAll("#bytes .chosen").length > 0);
  // Typing is one step.
  await page.keyboard.press("Control+z");
  assert.equal(await level.inputValue(), "7");
  await page.keyboard.press("Control+y");
  assert.equal(await level.inputValue(), "30");
  await group.getByRole("checkbox", { name: "m_flag" }).uncheck();
  await group.getByRole("combobox", { name: "m_school" }).selectOption("Storm");
  const rights = group.getByRole("group", { name: "m_rights" });
  await rights.getByRole("checkbox", { name: "HATCH" }).check();
  await rights.getByRole("checkbox", { name: "CHAT" }).uncheck();
  assert.equal(await rights.getByRole("checkbox", { name: "0x10" }).isChecked(), true);
  await group.getByRole("group", { name: "m_color" }).getByRole("textbox", { name: "r", exact: true }).fill("200");
  assert.equal(await control(page, "m_color#").inputValue(), "#c80201");
  await group.getByRole("group", { name: "m_at" }).getByRole("textbox", { name: "y", exact: true }).fill("4.25");
  await group.getByRole("textbox", { name: "m_wide" }).fill("日本");
  await control(page, "m_turn.i[1]").fill("0.5");
  // A list grows, shrinks and is reordered, by keyboard too.
  await page.getByRole("button", { name: "Add to m_list" }).focus();
  await page.keyboard.press("Enter");
  await until(page, () => document.activeElement?.getAttribute("data-key") === "m_list[3]");
  await page.keyboard.type("4");
  await control(page, "m_list[3]").fill("40");
  await page.getByRole("button", { name: "Move m_list[3] up" }).focus();
  await page.keyboard.press("Enter");
  await until(page, () => document.activeElement?.getAttribute("data-key") === "m_list[2]:up");
  await page.keyboard.press("Enter");
  await until(page, () => document.activeElement?.getAttribute("data-key") === "m_list[1]:up");
  await page.getByRole("button", { name: "Remove m_list[0]" }).click();
  // An object can be replaced with one of any allowed class; shared properties keep their values.
  const type = control(page, "m_one.$class");
  await type.fill("Other");
  await type.press("Enter");
  await group.getByRole("alert").filter({ hasText: "Other is not class Base or a class derived from it" }).waitFor();
  assert.notEqual(await type.inputValue(), "Other");
  await type.fill("Good");
  await type.press("Enter");
  await control(page, "m_one.m_text").fill("a good one");
  assert.equal(await control(page, "m_one.m_id").inputValue(), "5");
  await control(page, "m_all[1]").click();
  await control(page, "m_all[1].m_text").waitFor();
  await control(page, "m_all[1].$class").fill("");
  await control(page, "m_all[1].$class").press("Enter");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Redo" }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await decoded(page, "m_one.m_text", /a good one/);
  await accessible(page, "an edited object");
  await save(page, "all.wad");
  await page.locator("#message", { hasText: "saved all.wad" }).waitFor();
  const object = read(home, "all.wad/a.xml");
  assert.deepEqual(object, {
    $class: "class Holder",
    m_flag: false,
    m_level: 30,
    m_speed: 1.5,
    m_big: BIG,
    m_school: "Storm",
    m_rights: ["HATCH", "0x10"],
    m_color: { b: 1, g: 2, r: 200, a: 255 },
    m_at: { x: 1, y: 4.25, z: 0 },
    m_turn: { i: [1, 0.5, 0], j: [0, 1, 0], k: [0, 0, 1] },
    m_name: "Nyx",
    m_wide: "日本",
    m_list: [40, 2, 3],
    m_one: { $class: "class Good", m_id: 5, m_text: "a good one" },
    m_all: [null, { $class: "class Good", m_id: 6, m_text: "six" }],
  });
  // Everything can be undone, step by step.
  const undo = page.getByRole("button", { name: "Undo" });
  while (await undo.isEnabled()) await undo.click();
  await decoded(page, "m_level", /m_level7\D/);
  await page.getByRole("button", { name: "Save…" }).waitFor({ state: "hidden" });
  assert.equal(await control(page, "m_name").inputValue(), "Nyx");
});

test("hostile values, long lists, and deep and incomplete objects can be edited", async (t) => {
  const hostile = "a\\r\\nb\\u202e<img src=x onerror=alert(1)>\\u0007";
  const numbers = Array.from({ length: 5000 }, (_, at) => at).join();
  const objects = {
    "hostile.xml": `{"$class":"class Holder","m_name":"${hostile}","m_wide":{"$hex":"00d8"},"m_one":{"$class":"class <b>Markup</b>","<img src=x onerror=alert(1)>":7}}`,
    "deep.xml": `${'{"$class":"class Nest","m_id":1,"m_in":'.repeat(100)}null${"}".repeat(100)}`,
    "long.xml": `{"$class":"class Holder","m_list":[${numbers}]}`,
    "empty.xml": `{"$class":"class Holder","m_all":[null]}`,
  };
  const { home, page, faults } = await archive(t, objects);
  await start(page, "hostile.xml");
  // A browser's fields would change this text, so it is edited as JSON.
  const name = control(page, "m_name");
  assert.equal(await name.inputValue(), '"a\\r\\nb\\u202e<img src=x onerror=alert(1)>\\u0007"');
  await name.fill('"a\\r\\nB\\u202e"');
  await control(page, "m_one").waitFor();
  assert.equal(await page.locator("#object-form img, #object-form b b").count(), 0);
  assert.equal(await control(page, "m_wide").inputValue(), "00d8");
  const markup = page.getByRole("textbox", { name: "<img src=x onerror=alert(1)>" });
  await markup.fill("8");
  await accessible(page, "a hostile object");
  await start(page, "long.xml");
  const list = control(page, "m_list");
  await list.click();
  await control(page, "m_list[99]").waitFor();
  assert.equal(await control(page, "m_list[100]").count(), 0);
  await page.getByRole("button", { name: "Show more of m_list" }).click();
  await control(page, "m_list[199]").waitFor();
  await control(page, "m_list[150]").fill("-1");
  await page.getByRole("status", { name: "Edits" }).filter({ hasText: "2 files changed" }).waitFor();
  await start(page, "empty.xml");
  // Missing properties can be added.
  await page.getByRole("combobox", { name: "Missing property" }).selectOption("m_at");
  await page.getByRole("button", { name: "Add property to the object" }).click();
  await control(page, "m_at.x").fill("3");
  await decoded(page, "m_at.x", /3/);
  // Deep objects are opened step by step, with the mouse, and with the keyboard, which is faster.
  await start(page, "deep.xml");
  const inner = (/** @type {number} */ depth) => Array.from({ length: depth }, () => "m_in").join(".");
  for (let depth = 2; depth < 10; depth++) await control(page, inner(depth)).click();
  for (let depth = 10; depth < 100; depth++) await control(page, inner(depth)).press("Enter");
  await control(page, `${inner(99)}.m_id`).fill("99");
  await decoded(page, `${inner(99)}.m_id`, /99/);
  assert.ok(((await control(page, `${inner(99)}.m_id`).boundingBox())?.width ?? 0) > 50);
  const { dialog } = await save(page, "Root.wad");
  await dialog.getByRole("alert").filter({ hasText: "Root.wad already exists; choose another name" }).waitFor();
  await accessible(page, "a refused copy");
  await dialog.getByRole("textbox", { name: "Name" }).fill("../up.wad");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("alert").filter({ hasText: "`..`" }).waitFor();
  await dialog.getByRole("textbox", { name: "Name" }).fill("new.wad");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.locator("#message", { hasText: "with 4 changed files" }).waitFor();
  for (const _ of [1, 2]) forgive(faults, /409/);
  assert.equal(read(home, "new.wad/hostile.xml").m_name, "a\r\nB\u202e");
  assert.equal(read(home, "new.wad/hostile.xml").m_one["<img src=x onerror=alert(1)>"], 8);
  assert.equal(read(home, "new.wad/long.xml").m_list[150], -1);
  assert.deepEqual(Object.keys(read(home, "new.wad/empty.xml")), ["$class", "m_at", "m_all"]);
  assert.equal(existsSync(path.join(home, "..", "up.wad")), false);
});

test("what cannot be edited is refused with the reason", async (t) => {
  const home = folder(t);
  mkdirSync(path.join(home, "files"));
  copyFileSync(path.join(samples, "ki-pet.xml"), path.join(home, "files", "pet.xml"));
  writeFileSync(path.join(home, "files", "readme.txt"), "not an object");
  command(home, "ki", "wad", "create", "files", "-o", "pets.wad");
  const { page } = await open(t, [path.join(home, "pets.wad"), "--data", path.join(samples, "ki-types.json")]);
  await page.locator("#files .row", { hasText: "pet.xml" }).click();
  await page.locator("#fields .row", { hasText: "m_name" }).first().waitFor();
  const edit = page.getByRole("button", { name: "Edit", exact: true });
  assert.equal(await edit.isVisible(), false, "without --edit");
  // A type list that lacks a property.
  const list = JSON.parse(readFileSync(path.join(samples, "ki-types.json"), "utf8"));
  delete list.classes["1841593929"].properties.m_speed;
  writeFileSync(path.join(home, "other.json"), JSON.stringify(list));
  const { page: other, faults } = await open(t, [path.join(home, "pets.wad"), "--data", path.join(home, "other.json"), "--edit"]);
  await other.locator("#files .row", { hasText: "readme.txt" }).click();
  await other.getByRole("heading", { name: "readme.txt" }).waitFor();
  const button = other.getByRole("button", { name: "Edit", exact: true });
  assert.equal(await button.isVisible(), false, "not an object");
  await other.locator("#files .row", { hasText: "pet.xml" }).click();
  await button.click();
  await other.getByRole("alert").filter({ hasText: "cannot be edited because it cannot be decoded" }).waitFor();
  forgive(faults, /422/);
  await accessible(other, "an object that cannot be edited");
  assert.deepEqual(readdirSync(home).sort(), ["files", "other.json", "pets.wad"]);
});

test("one file is saved alone, on a phone", async (t) => {
  const { home, page } = await archive(t, { "a.xml": holder }, { options: { viewport: { width: 390, height: 800 } } });
  await start(page, "a.xml");
  await control(page, "m_speed").fill("2.5");
  await decoded(page, "m_speed", /2\.5/);
  await accessible(page, "the editor on a phone");
  const { usual } = await save(page, undefined, true);
  assert.equal(usual, "a.edited.xml");
  await page.locator("#message", { hasText: "saved a.edited.xml" }).waitFor();
  assert.equal(read(home, "a.edited.xml").m_speed, 2.5);
  // Hiding the form shows the object of the archive again; the change is kept.
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await decoded(page, "m_speed", /1\.5/);
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await decoded(page, "m_speed", /2\.5/);
});
