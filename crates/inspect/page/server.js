// A running server: connections and ages, plots of figures, the log, and kicks.

import * as api from "./api.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { grouped, oneLine } from "./format.js";
import { report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

/** Values plotted for each figure: one per second. */
const HISTORY = 300;
const SVG = "http://www.w3.org/2000/svg";

const region = byId("server");
const lists = byId("server-lists");
const figures = byId("figures");
const log = byId("log");

/**
 * The values of each figure, oldest first. For counters, they are differences: rates per second.
 * @type {Map<string, {last: number, values: number[], item: HTMLElement}>}
 */
const history = new Map();
let shownLists = "";
let before = 0;

/** @param {number} value */
const short = (value) => (Number.isInteger(value) ? grouped(value) : value.toPrecision(3));

/** @param {Record<string, number>} now */
function plot(now) {
  const time = performance.now();
  const seconds = before ? Math.max(0.5, (time - before) / 1000) : 1;
  before = time;
  for (const [name, value] of Object.entries(now)) {
    let kept = history.get(name);
    if (!kept) {
      const item = element("li", {}, element("span", {}, name), element("b"), element("small"));
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", `0 0 ${HISTORY} 20`);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("role", "img");
      svg.append(document.createElementNS(SVG, "path"));
      item.append(svg);
      kept = { last: value, values: [], item };
      history.set(name, kept);
      figures.append(item);
    }
    const isCounter = /_total(\{|$)/.test(name);
    kept.values.push(isCounter ? Math.max(0, value - kept.last) / seconds : value);
    kept.last = value;
    if (kept.values.length > HISTORY) kept.values.shift();
    draw(name, kept, isCounter);
  }
}

/** @param {string} name @param {{last: number, values: number[], item: HTMLElement}} kept @param {boolean} isCounter */
function draw(name, kept, isCounter) {
  const { item, last, values: shown } = kept;
  const now = shown.at(-1) ?? 0;
  // Figures that have always been 0 are below the others, in the order of their names.
  const most = Math.max(...shown);
  item.classList.toggle("idle", most === 0 && last === 0);
  const [, total, rate] = item.children;
  if (total) setText(total, short(last));
  if (rate) setText(rate, isCounter ? `${short(Math.round(now * 10) / 10)} per second` : "");
  const start = HISTORY - shown.length;
  const points = shown.map((value, at) => `${start + at} ${(20 - (most ? (18 * value) / most : 0)).toFixed(1)}`);
  const svg = item.querySelector("svg");
  const path = item.querySelector("path");
  if (path) setAttribute(path, "d", points.length > 1 ? `M${points.join("L")}` : null);
  if (svg) setAttribute(svg, "aria-label", `${name} over time, at most ${short(most)}`);
}

/** A value as one cell. @param {unknown} value @param {string} title @returns {string} */
function cell(value, title) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map((item) => cell(item, title)).join(", ");
  if (typeof value === "number" && /since$|^created$/i.test(title)) {
    return new Date(value * 1000).toISOString().replace("T", " ").slice(0, 19);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "object") return String(value);
  const { name, id } = /** @type {Record<string, unknown>} */ (value);
  if (name !== undefined) return `${name}${id === undefined ? "" : ` (${id})`}`;
  const parts = Object.entries(value).map(([inner, item]) => [titleOf(inner), cell(item, inner)]);
  return parts.filter(([, text]) => text !== "").map(([inner, text]) => `${inner}: ${text}`).join("; ");
}

/** The title of a column, from the name of a JSON member. @param {string} name */
const titleOf = (name) => name.replace(/([a-z])([A-Z])/g, (_, end, begin) => `${end} ${begin.toLowerCase()}`).replaceAll("_", " ");

/** @param {T.ServerList} list @param {T.LiveState["kick"]} kick only for a list of accounts */
function table(list, kick) {
  const columns = [...new Set(list.rows.flatMap((row) => Object.keys(row)))];
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, titleOf(name))));
  if (kick) head.append(element("td", {}));
  const rows = list.rows.map((row) => {
    const shown = element("tr", {}, ...columns.map((name) => element("td", {}, cell(row[name], name))));
    const who = kick ? row[kick.column] : null;
    if (kick && typeof who === "string") {
      const button = element("button", { type: "button", "aria-label": `Kick ${who}` }, "Kick");
      button.addEventListener("click", () => void act(kick.member, who));
      shown.append(element("td", {}, button));
    }
    return shown;
  });
  const title = element("h2", {}, `${list.title} (${grouped(list.total)})`);
  if (list.error) return element("section", { "aria-label": list.title }, title, element("p", { class: "wrong" }, oneLine(list.error)));
  const body = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  const scroller = element("div", { class: "table", role: "region", "aria-label": `${list.title}, table`, tabindex: 0 }, body);
  const more = list.total > list.rows.length ? element("p", {}, `The first ${grouped(list.rows.length)} are shown.`) : null;
  return element("section", { "aria-label": list.title }, title, rows.length ? scroller : element("p", {}, "none"), more);
}

/** @param {string} member @param {string} who */
async function act(member, who) {
  try {
    await api.perform({ request: "kick", [member]: who });
    set("message", `kicked ${who}`);
    set("live", await api.live());
  } catch (error) {
    report(error);
  }
}

watch(["live"], () => {
  const live = values.live;
  if (!live?.server) return;
  const text = JSON.stringify(live.lists);
  // A table that did not change keeps the focus in it.
  if (text !== shownLists) {
    shownLists = text;
    lists.replaceChildren(...(live.lists ?? []).map((list, at) => table(list, at === 0 ? live.kick : undefined)));
  }
  if (live.figures) plot(live.figures);
  byId("no-figures").hidden = Boolean(live.figures);
  const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.replaceChildren(...(live.log ?? []).map((line) => element("div", {}, line)));
  if (isAtEnd) log.scrollTop = log.scrollHeight;
});

watch(["capture"], () => {
  const isServer = values.capture?.live === "server";
  if (isServer !== region.hidden) return;
  region.hidden = !isServer;
  document.body.classList.toggle("server", isServer);
});
