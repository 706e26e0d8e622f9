// Splitters between the regions of the messages view, moved with the pointer or with arrows. The browser keeps
// the sizes for the address of the page.

import { byId, element, setAttribute } from "./dom.js";

/**
 * @typedef {object} Splitter
 * @property {string} name The resized dimension.
 * @property {string} region The id of the region at whose edge it is.
 * @property {"left" | "right" | "top"} edge
 * @property {string} [only] A class, if there is a splitter at this edge only in one arrangement of the regions.
 * @property {string} variable The property of the style sheet that has the size.
 * @property {number} least The minimum size of the region, in pixels.
 * @property {number} rest The minimum size of the regions beside it.
 */

/** @type {Splitter[]} */
const SPLITTERS = [
  { name: "Width of the conversations", region: "sidebar", edge: "right", variable: "--sidebar", least: 120, rest: 400 },
  { name: "Height of the message", region: "detail", edge: "top", variable: "--detail", least: 90, rest: 110 },
  { name: "Width of the bytes", region: "byte-region", edge: "left", only: "beside", variable: "--bytes", least: 160, rest: 200 },
  { name: "Height of the bytes", region: "byte-region", edge: "top", only: "below", variable: "--bytes-height", least: 60, rest: 60 },
  { name: "Width of the breakpoints", region: "breakpoints", edge: "left", variable: "--breakpoints", least: 240, rest: 400 },
];
/** Where the browser keeps the sizes. */
const KEY = "worldwire-sizes";
/** The distance that an arrow moves a splitter. */
const STEP = 16;

/** @type {Record<string, number>} */
let sizes = {};
try {
  const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
  for (const { variable } of SPLITTERS) if (Number.isFinite(kept?.[variable])) sizes[variable] = kept[variable];
} catch {
  // No usable sizes were saved.
}

/** @param {Splitter} splitter */
function add(splitter) {
  const { name, region: id, edge, only = "", variable, least, rest } = splitter;
  const region = byId(id);
  const isColumn = edge !== "top";
  const handle = element("div", {
    class: `splitter ${edge} ${only}`,
    role: "separator",
    tabindex: 0,
    "aria-label": name,
    "aria-controls": id,
    "aria-orientation": isColumn ? "vertical" : "horizontal",
    "aria-valuemin": least,
  });
  region.append(handle);

  /** The current size of the region, and that of the space that it shares. */
  const measure = () => {
    const [own, around] = [region.getBoundingClientRect(), region.parentElement?.getBoundingClientRect()];
    return isColumn ? { size: own.width, room: around?.width ?? 0 } : { size: own.height, room: around?.height ?? 0 };
  };
  const describe = () => {
    const { size, room } = measure();
    setAttribute(handle, "aria-valuemax", Math.max(least, Math.round(room - rest)));
    setAttribute(handle, "aria-valuenow", Math.max(least, Math.round(size)));
  };
  /** @param {number | null} wanted `null` is the size of the style sheet */
  const resize = (wanted) => {
    if (wanted === null) {
      delete sizes[variable];
      document.documentElement.style.removeProperty(variable);
    } else {
      const size = Math.max(least, Math.min(wanted, measure().room - rest));
      sizes[variable] = Math.round(size);
      document.documentElement.style.setProperty(variable, `${Math.round(size)}px`);
    }
    describe();
    try {
      localStorage.setItem(KEY, JSON.stringify(sizes));
    } catch {
      // The sizes last until the page is closed.
    }
  };

  /** The pointer and the size where the drag began. @type {{at: number, size: number} | null} */
  let drag = null;
  const sign = edge === "right" ? 1 : -1;
  /** @param {PointerEvent} event */
  const position = (event) => (isColumn ? event.clientX : event.clientY);
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    drag = { at: position(event), size: measure().size };
    event.stopPropagation();
  });
  handle.addEventListener("pointermove", (event) => {
    if (drag) resize(drag.size + sign * (position(event) - drag.at));
  });
  for (const end of ["pointerup", "pointercancel"]) handle.addEventListener(end, () => (drag = null));
  handle.addEventListener("dblclick", () => resize(null));
  handle.addEventListener("keydown", (event) => {
    const { size, room } = measure();
    const [more, less] = isColumn ? (edge === "right" ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"]) : ["ArrowUp", "ArrowDown"];
    if (event.key === more) resize(size + STEP);
    else if (event.key === less) resize(size - STEP);
    else if (event.key === "Home") resize(least);
    else if (event.key === "End") resize(room);
    else if (event.key === "Enter") resize(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  if (sizes[variable] !== undefined) document.documentElement.style.setProperty(variable, `${sizes[variable]}px`);
  new ResizeObserver(describe).observe(region);
}

SPLITTERS.forEach(add);
