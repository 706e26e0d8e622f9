// MxO's views from above: where the objects that a client saw were, at any time of the capture.

import * as api from "./api.js";
import { element, gridHead, gridRow, setAttribute, setText } from "./dom.js";
import { counted, seconds } from "./format.js";
import { showRow } from "./messages.js";
import { Rows } from "./rows.js";
import { report, set } from "./store.js";
import { MESSAGES, register, showView, visibleView } from "./worlds.js";

/** @import * as T from "./types.js" */

const SVG = "http://www.w3.org/2000/svg";
const NAME = "mxo";
/** How often the picture changes while it plays, in milliseconds. */
const FRAME = 100;
/** More objects than this have no names in the picture. */
const MAX_NAMED = 150;
/** The smallest width of the plane, in the game's units: 100 units are one metre. */
const LEAST_WIDTH = 400;
const COLUMNS = ["Name", "Kind", "X", "Height", "Z", "State", "Since", "Row"];
/** The shapes of objects, around their position. */
const SHAPES = /** @type {Record<string, string>} */ ({
  character: "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0",
  npc: "M0-7L7 0L0 7L-7 0Z",
  door: "M-6-6H6V6H-6Z",
  object: "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
});

const conversation = element("select", { "aria-label": "Conversation" });
const play = element("button", { type: "button", "aria-pressed": false }, "Play");
const speed = element("select", { "aria-label": "Speed" });
for (const times of [1, 2, 5, 20, 100]) speed.append(element("option", { value: times }, `${times}×`));
const slider = element("input", { type: "range", "aria-label": "Time", min: 0, max: 0, value: 0 });
const clock = element("span", { class: "clock" });
const fit = element("button", { type: "button" }, "Fit");
const closer = element("button", { type: "button", "aria-label": "Zoom in" }, "+");
const farther = element("button", { type: "button", "aria-label": "Zoom out" }, "−");
const again = element("button", { type: "button" }, "Reload");
const about = element("span", { role: "status", "aria-label": "Objects found" });
const picture = svg("svg", { role: "img", "aria-label": "No objects" });
const [grid, trails, points] = [svg("g"), svg("g"), svg("g")];
const scale = svg("text", { x: 8, y: 16 });
picture.append(grid, trails, points, scale);
const scroller = element("div", { id: "objects", class: "rows", role: "grid", "aria-label": "Objects", tabindex: 0 });
const open = element("button", { type: "button", disabled: "" }, "Show message");
const panel = element("section", { class: "plane" });
panel.append(
  element("div", { class: "bar" }, conversation, play, speed, slider, clock, farther, closer, fit, again),
  element("div", { class: "above" }, picture),
  element("div", { class: "bar" }, element("h2", {}, "Objects"), about, open),
  scroller,
);

/** @type {T.MxoConversation[]} */
let conversations = [];
/** The objects at the time of the slider. @type {T.MxoObject[]} */
let objects = [];
/** The chosen object, by `keyOf`. */
let chosen = "";
/** The middle of the picture, and pixels per unit. */
const look = { x: 0, z: 0, scale: 1 };
/** The elements of objects, by `keyOf`. @type {Map<string, SVGElement>} */
const drawn = new Map();
/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;
let isLoading = false;
let isOutdated = false;
let isLoaded = false;
/** Whether the user zoomed or moved the picture. */
let isMoved = false;

/**
 * @param {string} tag
 * @param {Record<string, string | number | null>} [attributes]
 * @returns {SVGElement}
 */
function svg(tag, attributes = {}) {
  const made = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  return made;
}

/** @param {T.MxoObject} object */
const keyOf = (object) => `${object.view}.${object.spawn}.${object.goid}`;
const current = () => conversations.find((it) => String(it.stream) === conversation.value);

/** The state of a door. @param {number | null} state */
function stateOf(state) {
  if (state === null) return "";
  if (state === 0x834) return "open";
  return state === 0x838 ? "closed" : `0x${state.toString(16)}`;
}

scroller.append(gridHead(COLUMNS));

const list = new Rows({
  scroller,
  height: 22,
  header: 26,
  prefix: "object-",
  create: () => gridRow(COLUMNS),
  fill: (row, position) => {
    const object = objects[position];
    if (!object) return;
    const [x, height, z] = object.at.map((part) => part.toFixed(1));
    const kind = object.kind === "object" ? (object.object ?? "") : object.kind;
    const since = seconds(object.since, current()?.first ?? object.since);
    const texts = [object.name, `${kind}${object.guess ? " (guess)" : ""}`, x, height, z, stateOf(object.state), since, String(object.row)];
    [...row.children].forEach((cell, index) => setText(cell, texts[index] ?? ""));
  },
  moved: (position) => choose(objects[position]),
  opened: () => openMessage(),
});

async function load() {
  setText(about, "reading…");
  try {
    const found = await api.mxoConversations();
    conversations = found.conversations;
    const before = conversation.value;
    conversation.replaceChildren(
      ...conversations.map((it) => element("option", { value: it.stream }, `#${it.stream} ${it.name ?? ""}: ${counted(it.objects, "object")}`)),
    );
    if (conversations.some((it) => String(it.stream) === before)) conversation.value = before;
    if (found.limited) report("only the first objects and positions are shown");
    begin();
  } catch (error) {
    setText(about, "");
    report(error);
  }
}

/** Shows the chosen conversation from its end. */
function begin() {
  const of = current();
  const length = of ? Math.ceil(Number(BigInt(of.last) - BigInt(of.first)) / 1e6) : 0;
  const step = Math.max(1, Math.round(length / 1000));
  // The last step reaches the end.
  const last = Math.ceil(length / step) * step;
  setAttribute(slider, "max", last);
  setAttribute(slider, "step", step);
  slider.value = String(last);
  fitArea();
  void refresh();
}

/** The time of the slider. */
const time = () => BigInt(current()?.first ?? 0) + BigInt(Math.round(slider.valueAsNumber)) * 1_000_000n;

/** Shows the objects at the time of the slider. */
async function refresh() {
  if (isLoading) {
    isOutdated = true;
    return;
  }
  const of = current();
  const shownTime = `${(slider.valueAsNumber / 1000).toFixed(1)} s`;
  setText(clock, shownTime);
  setAttribute(slider, "aria-valuetext", shownTime);
  if (!of) {
    objects = [];
    setText(about, "no conversation with views; to decrypt conversations, use --keys");
    return;
  }
  isLoading = true;
  isOutdated = false;
  try {
    const found = await api.mxoViews(of.stream, time());
    objects = found.objects;
    const more = found.total > objects.length ? `, the first ${objects.length} are shown` : "";
    setText(about, `${counted(found.total, "object")}${more}`);
    setAttribute(picture, "aria-label", `${counted(found.total, "object")} from above`);
    list.resize(objects.length);
    list.cursor = objects.findIndex((object) => keyOf(object) === chosen);
    list.draw();
    draw();
  } catch (error) {
    stop();
    report(error);
  }
  isLoading = false;
  if (isOutdated) void refresh();
}

/** Shows the whole area of the conversation. */
function fitArea() {
  const area = current()?.area;
  const [width, height] = size();
  if (!area) return;
  const { from, to } = area;
  [look.x, look.z] = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const wide = Math.max(to[0] - from[0], LEAST_WIDTH) * 1.3;
  const high = Math.max(to[1] - from[1], LEAST_WIDTH / 2) * 1.3;
  look.scale = Math.min(width / wide, height / high);
  isMoved = false;
}

/** The size of the picture in pixels. @returns {[number, number]} */
const size = () => [Math.max(1, picture.clientWidth), Math.max(1, picture.clientHeight)];

/** The pixel of a position; z points up. @param {number} x @param {number} z @returns {[number, number]} */
function pixel(x, z) {
  const [width, height] = size();
  return [width / 2 + (x - look.x) * look.scale, height / 2 - (z - look.z) * look.scale];
}

function draw() {
  drawGrid();
  const isNamed = objects.length <= MAX_NAMED;
  const gone = new Set(drawn.keys());
  const lines = [];
  for (const object of objects) {
    const key = keyOf(object);
    gone.delete(key);
    const [x, y] = pixel(object.at[0], object.at[2]);
    const isChosen = key === chosen;
    let shown = drawn.get(key);
    if (!shown) {
      shown = svg("g");
      shown.append(svg("line"), svg("path"), svg("text", { x: 9, y: 4 }));
      shown.setAttribute("data-object", key);
      drawn.set(key, shown);
      points.append(shown);
    }
    setAttribute(shown, "class", `${object.kind} ${stateOf(object.state)}${isChosen ? " chosen" : ""}`);
    setAttribute(shown, "transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    const [direction, path, text] = shown.children;
    if (!direction || !path || !text) continue;
    // 256 units are a full turn, from z towards x.
    const angle = ((object.yaw ?? 0) / 128) * Math.PI;
    setAttribute(direction, "x2", object.yaw === null ? 0 : (14 * Math.sin(angle)).toFixed(1));
    setAttribute(direction, "y2", object.yaw === null ? 0 : (-14 * Math.cos(angle)).toFixed(1));
    setAttribute(path, "d", SHAPES[object.kind] ?? SHAPES.object);
    setText(text, isNamed || isChosen ? object.name : "");
    if (object.trail.length) {
      const places = [...object.trail, [object.at[0], object.at[2]]].map(([x = 0, z = 0]) => pixel(x, z).map((part) => part.toFixed(1)).join(","));
      lines.push(svg("polyline", { points: places.join(" "), class: isChosen ? "chosen" : null }));
    }
  }
  for (const key of gone) {
    drawn.get(key)?.remove();
    drawn.delete(key);
  }
  trails.replaceChildren(...lines);
  setAttribute(open, "disabled", objects.some((object) => keyOf(object) === chosen) ? null : "");
}

/** Lines at a round distance, at least 60 pixels apart. */
function drawGrid() {
  const [width, height] = size();
  const least = 60 / look.scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((part) => part * power).find((it) => it >= least) ?? 10 * power;
  const lines = [];
  const [left, top] = [look.x - width / 2 / look.scale, look.z + height / 2 / look.scale];
  // Only lines that are visible: positions of a hostile capture can be far apart.
  for (let at = 0; at <= width / 60 + 1; at++) {
    const [x] = pixel((Math.ceil(left / step) + at) * step, 0);
    lines.push(svg("line", { x1: x.toFixed(1), x2: x.toFixed(1), y1: 0, y2: height }));
  }
  for (let at = 0; at <= height / 60 + 1; at++) {
    const [, y] = pixel(0, (Math.floor(top / step) - at) * step);
    lines.push(svg("line", { x1: 0, x2: width, y1: y.toFixed(1), y2: y.toFixed(1) }));
  }
  grid.replaceChildren(...lines);
  const metres = step / 100;
  setText(scale, `a square is ${step >= 1 ? step : step.toPrecision(1)} units, ${metres >= 1 ? metres : metres.toPrecision(1)} m`);
}

/** Chooses an object, and selects the message that moved it there. @param {T.MxoObject | undefined} object */
function choose(object) {
  if (!object) return;
  chosen = keyOf(object);
  list.cursor = objects.indexOf(object);
  list.draw();
  draw();
  void showRow(object.row);
  set("message", `${object.name}: message in row ${object.row}`);
}

/** Shows the message that moved the chosen object to its position. */
function openMessage() {
  const object = objects.find((it) => keyOf(it) === chosen);
  if (!object) return;
  stop();
  showView(MESSAGES);
  void showRow(object.row);
}

/** @param {number} factor @param {number} [x] @param {number} [y] the pixel that stays in its place */
function zoom(factor, x = size()[0] / 2, y = size()[1] / 2) {
  const next = Math.min(1e6, Math.max(1e-35, look.scale * factor));
  const [width, height] = size();
  look.x += (x - width / 2) * (1 / look.scale - 1 / next);
  look.z -= (y - height / 2) * (1 / look.scale - 1 / next);
  look.scale = next;
  isMoved = true;
  draw();
}

function stop() {
  clearInterval(timer);
  timer = undefined;
  setAttribute(play, "aria-pressed", false);
}

play.addEventListener("click", () => {
  if (timer !== undefined) return stop();
  if (slider.valueAsNumber >= Number(slider.max)) slider.value = "0";
  setAttribute(play, "aria-pressed", true);
  let at = slider.valueAsNumber;
  timer = setInterval(() => {
    if (visibleView() !== NAME) return stop();
    // The slider rounds to its step.
    if (Math.abs(at - slider.valueAsNumber) > 2 * Number(slider.step)) at = slider.valueAsNumber;
    at += FRAME * Number(speed.value);
    slider.value = String(at);
    if (at >= Number(slider.max)) stop();
    void refresh();
  }, FRAME);
});
slider.addEventListener("input", () => void refresh());
conversation.addEventListener("change", () => {
  stop();
  chosen = "";
  begin();
});
again.addEventListener("click", () => void load());
open.addEventListener("click", openMessage);
fit.addEventListener("click", () => {
  fitArea();
  draw();
});
closer.addEventListener("click", () => zoom(1.5));
farther.addEventListener("click", () => zoom(1 / 1.5));
picture.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
  },
  { passive: false },
);
picture.addEventListener("pointerdown", (event) => {
  const target = event.target instanceof Element ? event.target.closest("[data-object]") : null;
  if (target) return choose(objects.find((object) => keyOf(object) === target.getAttribute("data-object")));
  picture.setPointerCapture(event.pointerId);
});
picture.addEventListener("pointermove", (event) => {
  if (!picture.hasPointerCapture(event.pointerId)) return;
  look.x -= event.movementX / look.scale;
  look.z += event.movementY / look.scale;
  isMoved = true;
  draw();
});
picture.addEventListener("dblclick", (event) => {
  if (event.target instanceof Element && event.target.closest("[data-object]")) openMessage();
});
new ResizeObserver(() => {
  if (!isMoved) fitArea();
  draw();
}).observe(picture);

register({
  name: NAME,
  title: "Plane",
  panel,
  shown: () => {
    if (isLoaded) return;
    isLoaded = true;
    void load();
  },
});
