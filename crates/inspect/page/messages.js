// The list of messages and notes.

import * as api from "./api.js";
import { byId, debounce, gridHead, gridRow, setAttribute, setText, visible } from "./dom.js";
import { grouped, seconds, utc } from "./format.js";
import { Rows } from "./rows.js";
import { report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

/** Rows requested at a time, and the maximum number of such blocks kept. */
const BLOCK = 200;
const MAX_BLOCKS = 64;
const COLUMNS = ["Row", "Time", "Conv.", "From", "Name", "Bytes", "Values"];

/** @type {Map<number, T.Row[]>} */
let blocks = new Map();
/** Blocks that were requested. @type {Map<number, Promise<void>>} */
let requested = new Map();
/** Changes when other rows are shown, to detect late answers. */
let generation = 0;

const scroller = byId("messages");
const followButton = byId("follow");
const pauseButton = byId("pause");
/** Whether the last row stays visible. */
let isFollowing = false;
/** Rows that stay shown while paused. @type {number | null} */
let paused = null;
const times = /** @type {HTMLSelectElement} */ (byId("times"));
const empty = byId("no-messages");

scroller.append(gridHead(COLUMNS));

export const list = new Rows({
  scroller,
  height: 24,
  header: 26,
  prefix: "message-",
  create: () => gridRow(COLUMNS),
  fill,
  moved: (position) => moved(position),
  opened: () => byId("fields").focus(),
});

/**
 * The row at a position, if it is loaded.
 * @param {number} position
 */
function rowAt(position) {
  return blocks.get(Math.floor(position / BLOCK))?.[position % BLOCK];
}

/** @param {HTMLElement} shown @param {number} position */
function fill(shown, position) {
  const row = rowAt(position);
  const cells = /** @type {HTMLElement[]} */ ([...shown.children]);
  if (!row) {
    load();
    shown.className = "row loading";
    cells.forEach((cell, index) => setText(cell, index === 0 ? "…" : ""));
    return;
  }
  const isNoted = values.notes.some((note) => note.row === row.row);
  const isMarked = values.marked?.row === row.row;
  const problem = row.problem || row.kind === "gap" || row.kind === "warning";
  shown.className = `row ${row.from} ${row.kind}${problem ? " problem" : ""}${isMarked ? " marked" : ""}`;
  const texts = [
    `${isNoted ? "★ " : ""}${row.row}`,
    timeOf(row, position),
    String(row.stream),
    row.from,
    row.name,
    row.length ? grouped(row.length) : "",
    `${row.problem && row.kind === "message" ? "! incomplete  " : ""}${row.info}`,
  ];
  cells.forEach((cell, index) => setText(cell, texts[index] ?? ""));
  const titles = [null, utc(row.time), null, null, row.name, null, row.info];
  cells.forEach((cell, index) => setAttribute(cell, "title", titles[index] ? visible(titles[index]) : null));
}

/** Says why the list is empty. @param {number} count */
function explain(count) {
  empty.hidden = count > 0;
  const { capture, shown } = values;
  const { selection, filter, stream } = shown;
  if (count > 0 || !capture) return;
  const isReading = selection ? !selection.complete && !selection.caught_up : !capture.complete && !capture.caught_up;
  const within = stream === null ? "" : ` in conversation ${stream}`;
  if (selection?.error) setText(empty, selection.error);
  else if (isReading) setText(empty, selection ? "Filtering…" : "Reading…");
  else if (selection) setText(empty, filter.trim() ? `No message${within} matches ${filter.trim()}` : `No messages${within}`);
  else if (capture.live === "proxy") setText(empty, "No messages yet: the page shows them as soon as a client connects to the proxy");
  else setText(empty, capture.following ? "No messages yet" : "The capture has no messages");
}

/** A time as the list shows it, in seconds since the start unless dates are shown. @param {string} time */
export const timeText = (time) => (times.value === "absolute" ? utc(time) : seconds(time, values.capture?.first ?? time));

/** @param {T.Row} row @param {number} position */
function timeOf(row, position) {
  if (times.value !== "delta") return timeText(row.time);
  const before = position > 0 ? rowAt(position - 1) : row;
  return before ? seconds(row.time, before.time) : "…";
}

/** Requests the visible rows once scrolling pauses. */
const load = debounce(15, () => {
  const first = Math.floor(list.top / BLOCK);
  const last = Math.floor((list.top + list.visible + 1) / BLOCK);
  for (let block = first; block <= last; block++) void loadBlock(block);
});

/** @param {number} block */
async function loadBlock(block) {
  if (blocks.has(block)) return;
  const known = requested.get(block);
  if (known) return known;
  const request = fetchBlock(block, generation);
  requested.set(block, request);
  await request;
}

/** @param {number} block @param {number} own the generation */
async function fetchBlock(block, own) {
  try {
    const found = await api.rows(values.shown.selection?.id ?? null, block * BLOCK, BLOCK);
    if (own !== generation) return;
    if (blocks.size >= MAX_BLOCKS) {
      const [oldest] = blocks.keys();
      if (oldest !== undefined) blocks.delete(oldest);
    }
    blocks.set(block, found.rows);
    list.draw();
  } catch (error) {
    report(error);
  } finally {
    if (own === generation) requested.delete(block);
  }
}

/** @param {number} position */
async function moved(position) {
  if (position < list.count - 1) follow(false);
  const own = generation;
  if (!rowAt(position)) await loadBlock(Math.floor(position / BLOCK));
  const row = rowAt(position);
  if (!row || own !== generation || list.cursor !== position) return;
  // A message that is shown keeps its chosen field.
  const isShown = values.row === row && values.detail?.row === row.row && values.detail.file === undefined;
  if (isShown) return;
  set("row", row);
  decode(row);
}

/** Decodes a message when the cursor rests on it. */
const decode = debounce(30, /** @param {T.Row} row */ async (row) => {
  try {
    const detail = await api.message(row.row);
    if (values.row?.row !== row.row) return;
    values.node = null;
    set("detail", detail);
  } catch (error) {
    report(error);
  }
});

/**
 * Shows a row, if it matches the filter.
 * @param {number} row
 */
export async function showRow(row) {
  try {
    const found = await api.position(values.shown.selection?.id ?? null, { row });
    if (found.row !== row) report(`row ${row} does not match the filter`);
    else list.center(found.position);
  } catch (error) {
    report(error);
  }
}

/**
 * Scrolls to a time.
 * @param {bigint} time
 */
export async function showTime(time) {
  try {
    const found = await api.position(values.shown.selection?.id ?? null, { time: String(time) });
    list.scrollTo(found.position);
    if (found.row !== null) list.move(found.position);
  } catch (error) {
    report(error);
  }
}

// From now on, other rows are shown.
watch(["shown"], () => {
  paused = null;
  setAttribute(pauseButton, "aria-pressed", false);
  generation++;
  blocks = new Map();
  requested = new Map();
  const row = values.row?.row;
  list.cursor = -1;
  list.top = 0;
  grow();
  if (row !== undefined) void keep(row);
});

/**
 * Keeps the cursor on its row if the row matches the filter.
 * @param {number} row
 */
async function keep(row) {
  const own = generation;
  try {
    const found = await api.position(values.shown.selection?.id ?? null, { row });
    if (own === generation && found.row === row) list.center(found.position);
  } catch {
    // The selection has been replaced in the meantime.
  }
}

/** Shows rows that have been found since the last call. */
export function grow() {
  const { selection } = values.shown;
  const found = selection ? selection.rows : (values.capture?.rows ?? 0);
  const count = paused ?? found;
  const isLive = values.capture?.following ?? false;
  followButton.hidden = !isLive;
  pauseButton.hidden = !isLive;
  setText(pauseButton, paused !== null && found > paused ? `Pause (${grouped(found - paused)} more)` : "Pause");
  // The last block may have been loaded before it was full.
  const last = Math.floor((count - 1) / BLOCK);
  for (const [block, rows] of blocks) {
    if (rows.length < BLOCK && (block < last || rows.length < count - block * BLOCK)) {
      blocks.delete(block);
    }
  }
  list.resize(count);
  explain(count);
  if (isFollowing) list.scrollTo(list.lastTop);
}

/** @param {boolean} follows whether the last row stays visible */
function follow(follows) {
  isFollowing = follows;
  setAttribute(followButton, "aria-pressed", follows);
  if (follows) list.scrollTo(list.lastTop);
}

/** @param {number | null} count how many rows stay shown */
function pause(count) {
  paused = count;
  setAttribute(pauseButton, "aria-pressed", count !== null);
  if (count !== null) follow(false);
  grow();
}

followButton.addEventListener("click", () => {
  if (!isFollowing) pause(null);
  follow(!isFollowing);
});
pauseButton.addEventListener("click", () => pause(paused === null ? list.count : null));
scroller.addEventListener("wheel", (event) => {
  if (event.deltaY < 0) follow(false);
}, { passive: true });

// On a phone, the message is below the list.
scroller.addEventListener("click", () => {
  if (matchMedia("(max-width: 760px)").matches) byId("detail").scrollIntoView({ block: "start" });
});

watch(["capture"], grow);
watch(["notes", "marked"], () => list.draw());
times.addEventListener("change", () => list.draw());
scroller.addEventListener("focus", () => {
  if (list.cursor < 0 && list.count > 0) list.move(Math.floor(list.top));
});

setAttribute(scroller, "aria-colcount", COLUMNS.length);
