// The bytes of each layer of a message. Selecting a byte selects its field, and vice versa.

import { byId, element, setAttribute, setText } from "./dom.js";
import { colourOf, hasParts } from "./fields.js";
import { bytesOf, hex } from "./format.js";
import { Rows } from "./rows.js";
import { set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const WIDTH = 16;

/**
 * @typedef {object} Shown A layer, or the bytes as captured.
 * @property {string} name
 * @property {number} base
 * @property {number} length
 * @property {Uint8Array} bytes
 * @property {number} layer The number of the layer whose fields it shows; -1 without fields.
 * @property {Int32Array} owners For each byte, the field that it belongs to; -1 for none.
 */

const scroller = byId("bytes");
const tabs = byId("layers");
const bits = byId("bits");
/** @type {Shown[]} */
let all = [];
let current = 0;
/** The byte at the cursor. */
let cursor = -1;
/** Whether this view itself chose the field. */
let isOwnChoice = false;

const list = new Rows({
  scroller,
  height: 20,
  prefix: "bytes-",
  create: () => {
    const row = element("div", { class: "row" });
    row.append(element("span", { role: "rowheader", class: "offset" }));
    for (let at = 0; at < WIDTH; at++) row.append(element("span", { role: "gridcell", class: "byte" }));
    row.append(element("span", { role: "gridcell", class: "ascii" }));
    return row;
  },
  fill,
  moved: () => {},
});

/** @returns {Shown | undefined} */
const shown = () => all[current];

/** @param {HTMLElement} row @param {number} position */
function fill(row, position) {
  const layer = shown();
  if (!layer) return;
  const cells = /** @type {HTMLElement[]} */ ([...row.children]);
  const start = position * WIDTH;
  const [from, to] = chosenRange(layer);
  const [offset] = cells;
  if (offset) setText(offset, hex(layer.base + start, 6));
  let text = "";
  for (let at = 0; at < WIDTH; at++) {
    const cell = cells[at + 1];
    if (!cell) continue;
    const index = start + at;
    const byte = layer.bytes[index];
    if (byte === undefined) {
      setText(cell, "");
      cell.className = "byte";
      setAttribute(cell, "data-byte", null);
      setAttribute(cell, "aria-selected", null);
      continue;
    }
    setText(cell, hex(byte, 2));
    const owner = layer.owners[index] ?? -1;
    const own = owner >= 0 && !hasParts(owner) ? ` ${colourOf(owner)}` : "";
    const isChosen = index >= from && index < to;
    cell.className = `byte${own}${isChosen ? " chosen" : ""}${index === cursor ? " cursor" : ""}`;
    setAttribute(cell, "data-byte", index);
    setAttribute(cell, "id", `byte-${index}`);
    setAttribute(cell, "aria-selected", isChosen);
    text += byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·";
  }
  const ascii = cells[WIDTH + 1];
  if (ascii) setText(ascii, text);
  setAttribute(row, "aria-selected", null);
}

/** The bytes of the chosen field in a layer. @param {Shown} layer @returns {[number, number]} */
function chosenRange(layer) {
  const node = values.node === null ? undefined : values.detail?.nodes[values.node];
  if (!node || node.layer !== layer.layer) return [0, 0];
  return [node.start[0], node.end[0] + (node.end[1] ? 1 : 0)];
}

/**
 * The field of each byte: the innermost one or, if there are several, the first of them.
 * @param {T.FieldNode[]} nodes
 * @param {number} layer
 * @param {number} length
 */
function ownersOf(nodes, layer, length) {
  const owners = new Int32Array(length).fill(-1);
  for (const [number, node] of nodes.entries()) {
    if (node.layer !== layer) continue;
    const end = Math.min(node.end[0] + (node.end[1] ? 1 : 0), length);
    for (let at = node.start[0]; at < end; at++) {
      const owner = owners[at] ?? -1;
      const before = nodes[owner];
      if (!before || before.depth < node.depth) owners[at] = number;
    }
  }
  return owners;
}

/** Shows another layer. @param {number} number */
function choose(number) {
  current = Math.max(0, Math.min(number, all.length - 1));
  for (const [index, tab] of [...tabs.children].entries()) {
    setAttribute(tab, "aria-selected", index === current);
    setAttribute(tab, "tabindex", index === current ? 0 : -1);
  }
  cursor = -1;
  list.top = 0;
  list.resize(Math.ceil((shown()?.bytes.length ?? 0) / WIDTH));
  list.draw();
  showBits();
}

watch(["detail"], () => {
  const detail = values.detail;
  all = (detail?.layers ?? []).map((layer, number) => {
    const bytes = bytesOf(layer.bytes);
    const owners = ownersOf(detail?.nodes ?? [], number, bytes.length);
    return { name: layer.name, base: layer.base, length: layer.length, bytes, layer: number, owners };
  });
  const captured = detail?.captured;
  if (captured) {
    const bytes = bytesOf(captured.bytes);
    // Stream ciphers preserve the length, so the fields are at the same positions.
    const same = all[0] && all[0].bytes.length === bytes.length ? 0 : -1;
    const owners = same === 0 && all[0] ? all[0].owners : new Int32Array(bytes.length).fill(-1);
    all.push({ name: "wire", base: captured.base, length: bytes.length, bytes, layer: same, owners });
  }
  tabs.replaceChildren(
    ...all.map((layer, number) => {
      const tab = element("button", { role: "tab", type: "button", "aria-controls": "bytes" }, `${layer.name} (${layer.length})`);
      tab.addEventListener("click", () => choose(number));
      return tab;
    }),
  );
  tabs.hidden = all.length === 0;
  choose(0);
});

tabs.addEventListener("keydown", (event) => {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  choose((current + step + all.length) % Math.max(1, all.length));
  const tab = tabs.children[current];
  if (tab instanceof HTMLElement) tab.focus();
});

/** A field was chosen: shows its layer and its bytes. */
watch(["node"], () => {
  const node = values.node === null ? undefined : values.detail?.nodes[values.node];
  if (!isOwnChoice && node) {
    if (shown()?.layer !== node.layer) choose(node.layer);
    cursor = node.start[0];
    const first = Math.floor(node.start[0] / WIDTH);
    const last = Math.floor(Math.max(node.start[0], node.end[0] - 1) / WIDTH);
    const visible = Math.floor(list.visible);
    if (first < list.top || last >= list.top + visible) list.scrollTo(Math.max(0, first - 1));
  }
  list.draw();
  showBits();
});

/** Moves the cursor to a byte, and chooses its field. @param {number} index */
function move(index) {
  const layer = shown();
  if (!layer || layer.bytes.length === 0) return;
  cursor = Math.max(0, Math.min(index, layer.bytes.length - 1));
  list.move(Math.floor(cursor / WIDTH));
  setAttribute(scroller, "aria-activedescendant", `byte-${cursor}`);
  const owner = layer.owners[cursor] ?? -1;
  isOwnChoice = true;
  if (owner >= 0) set("node", owner);
  isOwnChoice = false;
  list.draw();
  showBits();
}

scroller.addEventListener("mousedown", (event) => {
  const cell = event.target instanceof Element ? event.target.closest("[data-byte]") : null;
  if (cell) move(Number(cell.getAttribute("data-byte")));
});

scroller.addEventListener(
  "keydown",
  (event) => {
    if (event.target !== scroller || event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(list.visible) - 1) * WIDTH;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: WIDTH,
      ArrowUp: -WIDTH,
      PageDown: page,
      PageUp: -page,
      Home: -(cursor % WIDTH),
      End: WIDTH - 1 - (cursor % WIDTH),
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    move(cursor < 0 ? 0 : cursor + step);
  },
  { capture: true },
);

scroller.addEventListener("focus", () => {
  if (cursor < 0) move(0);
});

/** The bits of the byte at the cursor, from the highest. */
function showBits() {
  const layer = shown();
  const byte = layer?.bytes[cursor];
  bits.hidden = byte === undefined;
  if (byte === undefined || !layer) return;
  const nodes = values.detail?.nodes ?? [];
  const buttons = [element("span", {}, `byte ${cursor}:`)];
  for (let bit = 7; bit >= 0; bit--) {
    const owner = ownerOfBit(nodes, layer.layer, cursor, bit);
    const isChosen = owner >= 0 && owner === values.node;
    const value = (byte >> bit) & 1;
    const button = element(
      "button",
      {
        type: "button",
        class: `${owner >= 0 ? colourOf(owner) : ""}${isChosen ? " chosen" : ""}`,
        "aria-label": `bit ${bit}: ${value}`,
        "aria-pressed": isChosen,
      },
      String(value),
    );
    button.addEventListener("click", () => {
      if (owner < 0) return;
      isOwnChoice = true;
      set("node", owner);
      isOwnChoice = false;
      const again = bits.querySelectorAll("button")[7 - bit];
      if (again instanceof HTMLElement) again.focus();
    });
    buttons.push(button);
  }
  bits.replaceChildren(...buttons);
}

/**
 * The innermost field that contains a bit. Bits are numbered from the lowest.
 * @param {T.FieldNode[]} nodes
 * @param {number} layer
 * @param {number} byte
 * @param {number} bit
 */
function ownerOfBit(nodes, layer, byte, bit) {
  let found = -1;
  const at = byte * 8 + bit;
  for (const [number, node] of nodes.entries()) {
    const isIn = node.start[0] * 8 + node.start[1] <= at && at < node.end[0] * 8 + node.end[1];
    if (node.layer === layer && isIn && (nodes[found]?.depth ?? -1) < node.depth) found = number;
  }
  return found;
}
