// Uru: the state of an age's objects as a form with its history, and the positions of players from above.

import * as api from "./api.js";
import { element, setAttribute, setText } from "./dom.js";
import { drawn } from "./drawing.js";
import { counted, utc } from "./format.js";
import { LazyTree } from "./lazy-tree.js";
import { report } from "./store.js";
import { historyTable, showMessage } from "./worlds-uru.js";
import { Refresh, register } from "./worlds.js";

/** @import * as T from "./types.js" */
/** @import { Branch } from "./lazy-tree.js" */

/** The width and height of the drawn part of the plane. */
const SIDE = 1000;
/** The number of steps of the slider over the whole time. */
const STEPS = 1000;
/** How long the whole time takes to play, in milliseconds. */
const PLAYED = 15_000;
/** The number of colours in `page.css`. */
const COLOURS = 8;

const choice = element("select", { id: "age-choice", "aria-label": "Age" });
const about = element("small", { role: "status", "aria-label": "Objects found" });
const list = element("div", { id: "age-objects", class: "rows", role: "treegrid", "aria-label": "Objects", tabindex: 0 });
const title = element("h2", {}, "No object selected");
const moment = element("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Change" });
const momentText = element("output", { class: "dim" });
const form = element("div", { class: "state", role: "group", "aria-label": "State" });
const history = element("div", { class: "table", role: "region", "aria-label": "State history", tabindex: 0 });
const play = element("button", { type: "button", "aria-pressed": "false" }, "Play");
const time = element("input", { type: "range", min: 0, max: STEPS, value: STEPS, "aria-label": "Time" });
const timeText = element("output", { class: "dim" });
const plane = element("div", { class: "positions", role: "region", "aria-label": "Positions", tabindex: 0 });
const panel = element("section", { class: "vault" },
  element("section", { class: "tree", "aria-label": "Age and objects" }, element("div", { class: "bar" }, choice, about), list),
  element("section", { class: "halves-of-age" },
    element("section", { class: "stack", "aria-label": "Object state" }, element("div", { class: "bar" }, title), element("div", { class: "slider" }, element("span", { "aria-hidden": "true" }, "Change"), moment, momentText), form, history),
    element("section", { class: "stack", "aria-label": "Positions from above" },
      element("div", { class: "bar" }, element("h2", {}, "Positions"), play), element("div", { class: "slider" }, element("span", { "aria-hidden": "true" }, "Time"), time, timeText), plane)));

/** The shown age. @type {number | null} */
let age = null;
/** @type {T.AgeObjectDetail | null} */
let object = null;
/** @type {T.AgePath[]} */
let paths = [];
let latest = 0;
/** The first and the last time of all positions, in nanoseconds. @type {[bigint, bigint]} */
let period = [0n, 0n];

/** @param {T.AgeObject} line @returns {Branch} */
function branch(line) {
  const owner = line.player ? ` of ${line.player}` : "";
  const descriptor = line.descriptor ? ` (${line.descriptor})` : "";
  return { text: `${line.name}${owner}${descriptor}`, note: counted(line.changes, "change"), hasParts: false, of: line };
}

const tree = new LazyTree({
  scroller: list,
  prefix: "age-",
  load: async (_, start) => {
    if (age === null) return { total: 0, branches: [] };
    const found = await api.ageObjects(age, start);
    return { total: found.total, branches: found.objects.map(branch) };
  },
  chosen: (chosen) => void open(chosen.of.object),
  entered: () => moment.focus(),
});

/** @param {number} number */
async function open(number) {
  const own = ++latest;
  try {
    if (age === null) return;
    const found = await api.ageObject(age, number);
    if (own !== latest) return;
    object = found;
    setText(title, branch(/** @type {any} */ ({ ...found, changes: 0 })).text);
    setAttribute(moment, "max", Math.max(0, found.history.length - 1));
    moment.value = moment.max;
    history.replaceChildren(historyTable(found.history.map((change) => ({ ...change, values: change.variables }))));
    fill();
  } catch (error) {
    if (own === latest) report(error);
  }
}

/** Shows the state after the chosen change. */
function fill() {
  if (!object) return;
  const last = Number(moment.value);
  const change = object.history[last];
  /** @type {Map<string, {value: string, at: number}>} */
  const state = new Map();
  for (const [at, { variables }] of object.history.slice(0, last + 1).entries()) {
    for (const { name, value } of variables) state.set(name, { value, at });
  }
  const text = change ? `change ${last + 1} of ${object.history.length}, row ${change.row}` : "";
  setText(momentText, text);
  setAttribute(moment, "aria-valuetext", change ? `${text}, ${utc(change.time)}` : "");
  const rows = [...state].map(([name, { value, at }]) => {
    const input = element("input", { type: "text", readonly: "" });
    input.value = value;
    return element("label", { class: at === last ? "changed" : "" }, element("span", {}, name), input);
  });
  form.replaceChildren(...rows);
  const lines = [...history.querySelectorAll("tr[data-row]")];
  const own = lines.filter((line) => line.getAttribute("data-row") === String(change?.row));
  for (const line of lines) line.classList.toggle("current", own.includes(line));
  own[0]?.scrollIntoView({ block: "nearest" });
}

/** Loads the objects and positions of the chosen age. */
async function choose() {
  age = choice.value === "" ? null : Number(choice.value);
  object = null;
  setText(title, "No object selected");
  setText(momentText, "");
  form.replaceChildren();
  history.replaceChildren();
  await tree.reload();
  try {
    paths = age === null ? [] : (await api.agePaths(age)).paths.filter((path) => path.points.length > 0);
  } catch (error) {
    report(error);
  }
  const times = paths.flatMap((path) => [BigInt(path.points[0]?.[0] ?? 0), BigInt(path.points.at(-1)?.[0] ?? 0)]);
  period = [times.reduce((a, b) => (a < b ? a : b), times[0] ?? 0n), times.reduce((a, b) => (a > b ? a : b), 0n)];
  time.value = String(STEPS);
  drawPaths();
}

/** The bounds of all points. */
function bounds() {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { points } of paths) {
    for (const [, , x, y] of points) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
  }
  const scale = SIDE / (Math.max(right - left, high - low) || 1);
  return { left, high, scale, width: (right - left) * scale, height: (high - low) * scale };
}

/** @type {{path: T.AgePath, dot: SVGElement, place: (at: number) => [number, number]}[]} */
let dots = [];

/** Draws all paths, and a dot for each object: x to the right, y up. */
function drawPaths() {
  dots = [];
  play.disabled = time.disabled = paths.length === 0;
  if (paths.length === 0) return plane.replaceChildren(element("p", {}, "No message shows a position."));
  const { left, high, scale, width, height } = bounds();
  const svg = drawn("svg", { viewBox: `-60 -60 ${width + 240} ${height + 120}`, role: "group", "aria-label": "From above: x to the right, y up" });
  for (const [number, path] of paths.entries()) {
    const place = (/** @type {number} */ at) => {
      const [, , x = 0, y = 0] = path.points[at] ?? [];
      return /** @type {[number, number]} */ ([(x - left) * scale, (high - y) * scale]);
    };
    const line = path.points.map((_, at) => place(at).map((part) => part.toFixed(1)).join(" ")).join("L");
    svg.append(drawn("path", { d: `M${line}`, class: `path p${number % COLOURS}` }));
    const name = path.player ?? path.name;
    const dot = drawn("g", { role: "button", tabindex: 0, class: `p${number % COLOURS}` }, drawn("circle", { r: 12 }), drawn("text", { x: 18, y: 8 }, name));
    const show = () => {
      const row = path.points[currentOf(path)]?.[1];
      if (row !== undefined) showMessage(row);
    };
    dot.addEventListener("click", show);
    dot.addEventListener("keydown", (event) => {
      if (event.key === "Enter") show();
    });
    dots.push({ path, dot, place });
    svg.append(dot);
  }
  plane.replaceChildren(svg);
  moveDots();
}

/** The chosen time. */
const now = () => period[0] + ((period[1] - period[0]) * BigInt(time.value)) / BigInt(STEPS);

/** The number of a path's last point at the chosen time; -1 before the first. @param {T.AgePath} path */
function currentOf(path) {
  const wanted = now();
  let [low, high] = [0, path.points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (BigInt(path.points[middle]?.[0] ?? 0) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function moveDots() {
  for (const { path, dot, place } of dots) {
    const at = currentOf(path);
    dot.toggleAttribute("hidden", at < 0);
    const [x, y] = place(at);
    const [, row, ownX, ownY, z] = path.points[at] ?? [];
    setAttribute(dot, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    setAttribute(dot, "aria-label", `${path.player ?? path.name} at ${ownX}, ${ownY}, ${z}: show row ${row}`);
  }
  const text = dots.length ? utc(String(now())) : "";
  setText(timeText, text);
  setAttribute(time, "aria-valuetext", text);
}

/** When playing began, and at which step. @type {{since: number, from: number} | null} */
let playing = null;

/** @param {boolean} wanted */
function setPlaying(wanted) {
  const from = Number(time.value) >= STEPS ? 0 : Number(time.value);
  playing = wanted ? { since: performance.now(), from } : null;
  setAttribute(play, "aria-pressed", wanted);
  if (wanted) requestAnimationFrame(frame);
}

function frame() {
  if (!playing) return;
  const step = playing.from + ((performance.now() - playing.since) / PLAYED) * STEPS;
  time.value = String(Math.min(STEPS, Math.round(step)));
  moveDots();
  if (step >= STEPS || panel.hidden) setPlaying(false);
  else requestAnimationFrame(frame);
}

play.addEventListener("click", () => setPlaying(playing === null));
time.addEventListener("input", () => {
  setPlaying(false);
  moveDots();
});
moment.addEventListener("input", fill);
choice.addEventListener("change", () => void choose());

const reading = new Refresh(refresh);

/** Reloads the list of ages while the capture is read. */
async function refresh() {
  try {
    const found = await api.ages();
    const before = choice.value;
    const name = (/** @type {T.AgeLine} */ line) => `${line.name || "age"} ${line.age || "?"}`;
    choice.replaceChildren(...found.ages.map((line) => element("option", { value: line.age }, name(line))));
    if (found.ages.some((line) => String(line.age) === before)) choice.value = before;
    reading.isFinished = found.status.complete || found.status.caught_up;
    setText(about, found.status.full ? "more than can be shown" : counted(found.ages.length, "age"));
    // An object that the user has chosen stays.
    if (object === null) await choose();
  } catch (error) {
    report(error);
  }
  if (!reading.isFinished && !panel.hidden) reading.soon();
}

register({
  name: "ages",
  title: "Ages",
  panel,
  shown: () => reading.shown(),
});
