// Rates over time, as stacked bars. Dragging zooms in, and scrolls the message list.

import * as api from "./api.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { show } from "./filter.js";
import { duration, grouped, seconds } from "./format.js";
import { showRow, showTime } from "./messages.js";
import { report, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const canvas = /** @type {HTMLCanvasElement} */ (byId("rates"));
const legend = byId("legend");
const out = /** @type {HTMLButtonElement} */ (byId("zoom-out"));
/** Height of the strips for gaps and problems. */
const STRIP = 7;

/** @type {T.TimelineData | null} */
let data = null;
/** The period that is zoomed into. @type {{from: bigint, to: bigint} | null} */
let zoom = null;
/** The drag, in pixels. @type {{from: number, to: number} | null} */
let drag = null;
let isLoading = false;
let isOutdated = false;

const buckets = () => Math.max(20, Math.min(400, Math.floor(canvas.clientWidth / 3)));

async function load() {
  if (isLoading) {
    isOutdated = true;
    return;
  }
  isLoading = true;
  isOutdated = false;
  try {
    const selection = values.shown.selection?.id ?? null;
    const { from, to } = zoom ?? { from: null, to: null };
    data = await api.timeline({ selection, from, to, buckets: buckets() });
    draw();
    describe();
  } catch (error) {
    report(error);
  }
  isLoading = false;
  if (isOutdated) setTimeout(load, 500);
}

/** A colour of the style sheet. @param {string} name */
const colour = (name) => getComputedStyle(canvas).getPropertyValue(name);

function draw() {
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  if (!context || !data) return;
  context.scale(scale, scale);
  context.clearRect(0, 0, width, height);
  const count = data.series[0]?.counts.length ?? 0;
  if (count === 0) return;
  const sums = Array.from({ length: count }, (_, at) =>
    (data?.series ?? []).reduce((sum, series) => sum + (series.counts[at] ?? 0), 0),
  );
  const most = Math.max(1, ...sums);
  const room = height - 2 * STRIP;
  const bar = width / count;
  const tops = sums.map(() => height - STRIP);
  data.series.forEach((series, number) => {
    context.fillStyle = series.name === undefined ? colour("--series-other") : colour(`--series-${number}`);
    series.counts.forEach((own, at) => {
      if (own === 0) return;
      const size = (own / most) * room;
      const top = (tops[at] ?? 0) - size;
      context.fillRect(at * bar, top, Math.max(1, bar - 0.5), size);
      tops[at] = top;
    });
  });
  context.fillStyle = colour("--gap");
  for (const { bucket } of data.gaps) context.fillRect(bucket * bar, height - STRIP + 1, Math.max(2, bar), STRIP - 1);
  context.fillStyle = colour("--problem");
  for (const { bucket } of data.problems) context.fillRect(bucket * bar, 0, Math.max(2, bar), STRIP - 1);
  const row = values.row;
  if (row) {
    const at = place(BigInt(row.time));
    context.fillStyle = colour("--text");
    if (at !== null) context.fillRect(at - 0.5, 0, 1, height);
  }
  if (drag) {
    context.fillStyle = colour("--brush");
    context.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height);
  }
}

/** The pixel of a time; `null` if it is outside. @param {bigint} time */
function place(time) {
  if (!data) return null;
  const [from, to] = [BigInt(data.from), BigInt(data.to)];
  if (time < from || time > to) return null;
  return (Number(time - from) / Math.max(1, Number(to - from))) * canvas.clientWidth;
}

/** The time at a pixel. @param {number} x */
function timeAt(x) {
  if (!data) return 0n;
  const [from, to] = [BigInt(data.from), BigInt(data.to)];
  const part = Math.max(0, Math.min(1, x / Math.max(1, canvas.clientWidth)));
  return from + BigInt(Math.round(Number(to - from) * part));
}

function describe() {
  if (!data) return;
  const first = values.capture?.first ?? data.from;
  const length = Number(BigInt(data.to) - BigInt(data.from)) / 1e9;
  const total = data.series.reduce((sum, series) => sum + series.total, 0);
  setText(byId("period"), `${seconds(data.from, first)} to ${seconds(data.to, first)} s (${duration(length)})`);
  const text = `${grouped(total)} messages and notes in ${duration(length)}, ${data.gaps.length} intervals with gaps, ${data.problems.length} with problems`;
  setAttribute(canvas, "aria-label", text);
  const items = data.series
    .map((series, number) => ({ series, number }))
    .filter(({ series }) => series.total > 0)
    .map(({ series, number }) => {
      const mark = element("i", { class: series.name === undefined ? "series-other" : `series-${number}`, "aria-hidden": "true" });
      const name = series.name === undefined ? "others" : `${series.name} from ${series.from}`;
      const text = `${name} ${grouped(series.total)}`;
      const own = element("button", { type: "button", title: "Show only these" }, mark, text);
      own.addEventListener("click", () => void show({ filter: `${series.name} and from == ${series.from}` }));
      return element("li", {}, ...(series.name === undefined ? [mark, element("span", {}, text)] : [own]));
    });
  // These come first, because the legend can be longer than the window.
  if (data.problems[0]) items.unshift(jump("problem", "Problem", data.problems[0].row));
  if (data.gaps[0]) items.unshift(jump("gap", "Gap", data.gaps[0].row));
  legend.replaceChildren(...items);
  out.disabled = zoom === null;
}

/** @param {string} kind @param {string} name @param {number} row */
function jump(kind, name, row) {
  const button = element("button", { type: "button" }, `${name}: first at row ${row}`);
  button.addEventListener("click", () => void showRow(row));
  const item = element("li", {});
  item.append(element("i", { class: kind, "aria-hidden": "true" }), button);
  return item;
}

/** Zooms to a period. @param {bigint} from @param {bigint} to */
function zoomTo(from, to) {
  zoom = { from, to: to > from ? to : from + 1n };
  void load();
  void showTime(from);
}

function zoomOut() {
  zoom = null;
  void load();
}

/** @param {PointerEvent} event */
const pixel = (event) => event.clientX - canvas.getBoundingClientRect().left;

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  drag = { from: pixel(event), to: pixel(event) };
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return;
  drag.to = pixel(event);
  draw();
});
canvas.addEventListener("pointerup", () => {
  if (!drag) return;
  const { from, to } = drag;
  drag = null;
  draw();
  const [first, last] = [timeAt(Math.min(from, to)), timeAt(Math.max(from, to))];
  if (Math.abs(to - from) >= 4) zoomTo(first, last);
  else void showTime(first);
});
canvas.addEventListener("pointercancel", () => {
  drag = null;
  draw();
});
canvas.addEventListener("dblclick", zoomOut);
canvas.addEventListener("keydown", (event) => {
  if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
  const [from, to] = [BigInt(data.from), BigInt(data.to)];
  const part = (to - from) / 4n;
  if (event.key === "+" || event.key === "=") zoomTo(from + part, to - part);
  else if (event.key === "-" || event.key === "Escape") zoomOut();
  else if (event.key === "ArrowLeft" && zoom) zoomTo(from - part, to - part);
  else if (event.key === "ArrowRight" && zoom) zoomTo(from + part, to + part);
  else return;
  event.preventDefault();
  event.stopPropagation();
});
out.addEventListener("click", zoomOut);

let last = "";
watch(["capture"], () => {
  const { rows = 0, complete = false } = values.capture ?? {};
  if (`${rows} ${complete}` !== last) void load();
  last = `${rows} ${complete}`;
});
watch(["shown"], () => void load());
watch(["row"], draw);
new ResizeObserver(() => void load()).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

/** Reloads the rates because the filter has found more rows. */
export const refresh = () => void load();
