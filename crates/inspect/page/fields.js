// The fields of a message, as a tree next to its bytes.

import { byId, element, gridHead, setAttribute, setText, visible } from "./dom.js";
import { places } from "./paths.js";
import { Rows } from "./rows.js";
import { set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */
/** @import { Place } from "./paths.js" */

const COLUMNS = ["Field", "Value", "Kind", "Place"];
/** Longer lists are initially collapsed. */
const LONG = 100;

const scroller = byId("fields");
/** The places of the message's fields. @type {Place[]} */
let placed = [];
/** The shown fields, as indices. @type {number[]} */
let shown = [];
/** Paths of fields that the user expanded or collapsed. @type {Map<string, boolean>} */
const opened = new Map();

scroller.append(gridHead(COLUMNS));

const list = new Rows({
  scroller,
  height: 22,
  header: 26,
  prefix: "field-",
  create: () => {
    const row = element("div", { class: "row" });
    const name = element("span", { role: "gridcell" });
    name.append(element("i", { class: "twisty", "aria-hidden": "true" }), element("b", { class: "dot", "aria-hidden": "true" }), element("span"));
    row.append(name);
    for (const _ of COLUMNS.slice(1)) row.append(element("span", { role: "gridcell" }));
    return row;
  },
  fill,
  moved: (position) => set("node", shown[position] ?? null),
  opened: (position) => toggle(position),
});

/** @param {HTMLElement} row @param {number} position */
function fill(row, position) {
  const number = shown[position] ?? -1;
  const node = values.detail?.nodes[number];
  const place = placed[number];
  if (!node || !place) return;
  const hasParts = place.hasParts;
  const isOpen = hasParts && isOpened(number);
  row.className = `row kind-${node.kind}`;
  setAttribute(row, "aria-level", node.depth + 1);
  setAttribute(row, "aria-expanded", hasParts ? isOpen : null);
  const [name, value, kind, range] = /** @type {HTMLElement[]} */ ([...row.children]);
  if (!name || !value || !kind || !range) return;
  const [twisty, dot, text] = /** @type {HTMLElement[]} */ ([...name.children]);
  if (!twisty || !dot || !text) return;
  name.style.paddingLeft = `${Math.min(node.depth, 24) * 14 + 4}px`;
  setText(twisty, hasParts ? (isOpen ? "▾" : "▸") : "");
  dot.className = hasParts ? "dot" : `dot ${place.colour}`;
  setText(text, node.name || `[${place.index}]`);
  setAttribute(name, "title", visible(place.path || node.name));
  setText(value, node.value);
  setAttribute(value, "title", node.value ? visible(`${node.kind}: ${node.value}`) : null);
  setText(kind, node.kind);
  setText(range, placeText(node));
  setAttribute(range, "title", `bytes ${placeText(node)}, in hexadecimal; the end is not included`);
}

/** @param {T.FieldNode} node */
export function placeText(node) {
  const layers = values.detail?.layers ?? [];
  const base = layers[node.layer]?.base ?? 0;
  const at = (/** @type {[number, number]} */ [byte, bit]) => (base + byte).toString(16) + (bit ? `.${bit}` : "");
  const layer = layers.length > 1 ? ` ${layers[node.layer]?.name ?? ""}` : "";
  return `${at(node.start)}–${at(node.end)}${layer}`;
}

/** @param {number} number */
function isOpened(number) {
  const place = placed[number];
  const node = values.detail?.nodes[number];
  if (!place || !node) return false;
  const chosen = opened.get(place.plain);
  if (chosen !== undefined) return chosen;
  return !(node.kind === "list" && parseInt(node.value, 10) > LONG);
}

/** @param {number} position @param {boolean} [wanted] */
function toggle(position, wanted) {
  const number = shown[position];
  const place = number === undefined ? undefined : placed[number];
  if (number === undefined || !place?.hasParts) return;
  opened.set(place.plain, wanted ?? !isOpened(number));
  arrange();
}

/** Lists the fields whose parents are open. */
function arrange() {
  const nodes = values.detail?.nodes ?? [];
  shown = [];
  let closedDepth = Infinity;
  for (const [number, node] of nodes.entries()) {
    if (node.depth > closedDepth) continue;
    closedDepth = Infinity;
    shown.push(number);
    if (placed[number]?.hasParts && !isOpened(number)) closedDepth = node.depth;
  }
  list.resize(shown.length);
  list.cursor = values.node === null ? -1 : shown.indexOf(values.node);
  list.draw();
}

/** The path of a field, as filters take it. @param {number} number */
export const pathOf = (number) => placed[number]?.path ?? "";

/** The class of a field's colour. @param {number} number */
export const colourOf = (number) => placed[number]?.colour ?? "";

/** Whether a field consists of others. @param {number} number */
export const hasParts = (number) => placed[number]?.hasParts ?? false;

scroller.addEventListener("keydown", (event) => {
  if (event.target !== scroller || list.cursor < 0) return;
  const number = shown[list.cursor] ?? -1;
  const place = placed[number];
  if (!place) return;
  if (event.key === "ArrowRight" && place.hasParts) {
    event.preventDefault();
    if (isOpened(number)) list.move(list.cursor + 1);
    else toggle(list.cursor, true);
  } else if (event.key === "ArrowLeft") {
    event.preventDefault();
    if (place.hasParts && isOpened(number)) toggle(list.cursor, false);
    else if (place.parent >= 0) list.move(shown.indexOf(place.parent));
  }
});

scroller.addEventListener("click", (event) => {
  const position = list.positionOf(event);
  if (position !== null && event.target instanceof Element && event.target.closest(".twisty")) {
    toggle(position);
  }
});

scroller.addEventListener("focus", () => {
  if (list.cursor < 0 && list.count > 0) list.move(0);
});

watch(["detail"], () => {
  placed = places(values.detail?.nodes ?? []);
  list.top = 0;
  arrange();
  const detail = values.detail;
  /** @type {string[]} */
  const notices = [];
  if (detail?.note !== undefined) notices.push(detail.note);
  if (detail?.error) notices.push(`! ${detail.error}`);
  for (const remark of detail?.remarks ?? []) notices.push(`! shown as bytes: ${remark}`);
  if (detail?.advice) notices.push(`This is a message ${detail.advice}`);
  if (detail && detail.nodes.length < detail.node_count) {
    notices.push(`Only the first ${detail.nodes.length} of ${detail.node_count} fields are shown`);
  }
  const notice = byId("notice");
  notice.replaceChildren(...notices.map((text) => element("p", {}, text)));
  notice.hidden = notices.length === 0;
  // The beginning of a conversation and its continuation after a gap are not problems.
  const isHarmless = detail?.note !== undefined && ["opened", "resync"].includes(detail.name);
  notice.classList.toggle("harmless", isHarmless && notices.length === 1);
  const isFile = detail?.file !== undefined || values.capture?.archive;
  const title = detail ? `${detail.name} from ${detail.from}, row ${detail.row}` : "No message selected";
  setText(byId("title"), isFile ? "" : title);
});

/** A field was chosen elsewhere, such as in the bytes. */
watch(["node"], () => {
  const number = values.node;
  if (number === null) {
    list.cursor = -1;
    return list.draw();
  }
  if (shown[list.cursor] === number) return;
  let around = placed[number]?.parent ?? -1;
  while (around >= 0) {
    const place = placed[around];
    if (place && !isOpened(around)) opened.set(place.plain, true);
    around = place?.parent ?? -1;
  }
  arrange();
  const position = shown.indexOf(number);
  if (position < 0) return;
  list.cursor = position;
  if (position < list.top || position >= list.top + Math.floor(list.visible)) {
    list.scrollTo(position - list.visible / 2);
  }
  list.draw();
});
