// A scrolling list that contains only its visible rows. Browsers limit the height of elements, so a
// long list's height is not proportional to its length.

import { setAttribute } from "./dom.js";

/** The maximum height of the scrolled area; Firefox allows 17.8 million pixels. */
const MAX_HEIGHT = 8_000_000;

/**
 * @typedef {object} RowsOptions
 * @property {HTMLElement} scroller The element that scrolls. It is focusable and has the role.
 * @property {number} height The height of a row in pixels.
 * @property {string} prefix The start of the ids of rows.
 * @property {number} [header] The height of a fixed header in pixels.
 * @property {() => HTMLElement} create Makes an empty row.
 * @property {(row: HTMLElement, position: number) => void} fill Shows a row.
 * @property {(position: number) => void} moved The cursor has moved to another row.
 * @property {(position: number) => void} [opened] Enter or a double click on a row.
 */

export class Rows {
  /** @param {RowsOptions} options */
  constructor(options) {
    this.options = options;
    this.count = 0;
    /** The row at the cursor; -1 if there is none. */
    this.cursor = -1;
    /** The first visible row, with its hidden part as a fraction. */
    this.top = 0;
    this.isQueued = false;
    this.scrolledTo = 0;
    /** @type {HTMLElement[]} */
    this.pool = [];
    this.window = document.createElement("div");
    this.window.className = "window";
    this.window.setAttribute("role", "rowgroup");
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    this.spacer.setAttribute("role", "presentation");
    const { scroller } = options;
    scroller.append(this.window, this.spacer);
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    scroller.addEventListener("keydown", (event) => this.key(event));
    this.window.addEventListener("mousedown", (event) => {
      const position = this.positionOf(event);
      if (position !== null && event.button === 0) this.move(position);
    });
    this.window.addEventListener("dblclick", (event) => {
      const position = this.positionOf(event);
      if (position !== null) options.opened?.(position);
    });
    new ResizeObserver(() => this.layout()).observe(scroller);
  }

  /** The number of rows that fit. */
  get visible() {
    const { scroller, height, header = 0 } = this.options;
    return Math.max(1, (scroller.clientHeight - header) / height);
  }

  /** The first visible row of the scrolled-down list. */
  get lastTop() {
    return Math.max(0, this.count - this.visible);
  }

  /**
   * Changes the number of rows.
   * @param {number} count
   */
  resize(count) {
    this.count = count;
    if (this.cursor >= count) this.cursor = count - 1;
    this.layout();
  }

  /** Adapts to the size of the element. */
  layout() {
    const { scroller, height, header = 0 } = this.options;
    const total = Math.min(this.count * height, MAX_HEIGHT);
    const wanted = `${Math.max(total, 0)}px`;
    if (this.spacer.style.height !== wanted) this.spacer.style.height = wanted;
    this.isScaled = this.count * height > MAX_HEIGHT;
    this.range = Math.max(0, total + header - scroller.clientHeight);
    setAttribute(scroller, "aria-rowcount", this.count + (header ? 1 : 0));
    this.top = Math.min(this.top, this.lastTop);
    this.sync();
    this.draw();
  }

  /** Moves the scroll bar to the first visible row. */
  sync() {
    const { scroller, height } = this.options;
    const last = this.lastTop;
    const wanted = this.isScaled ? (last ? (this.top / last) * (this.range ?? 0) : 0) : this.top * height;
    if (Math.abs(scroller.scrollTop - wanted) >= 1) scroller.scrollTop = wanted;
    this.scrolledTo = scroller.scrollTop;
  }

  scrolled() {
    const { scroller, height } = this.options;
    // `sync` scrolled, not the user.
    if (Math.abs(scroller.scrollTop - this.scrolledTo) < 1) return;
    this.scrolledTo = scroller.scrollTop;
    this.top = this.isScaled
      ? (scroller.scrollTop / Math.max(1, this.range ?? 1)) * this.lastTop
      : scroller.scrollTop / height;
    this.draw();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    // Otherwise the browser scrolls smoothly by itself.
    if (!this.isScaled || event.ctrlKey || event.deltaY === 0) return;
    event.preventDefault();
    const lines = event.deltaMode === 0 ? event.deltaY / this.options.height : event.deltaY;
    this.scrollTo(this.top + lines);
  }

  /** @param {number} top */
  scrollTo(top) {
    this.top = Math.min(Math.max(0, top), this.lastTop);
    this.sync();
    this.draw();
  }

  /**
   * Moves the cursor, and scrolls if the row is not visible.
   * @param {number} position
   */
  move(position) {
    if (this.count === 0) return;
    this.cursor = Math.min(Math.max(0, position), this.count - 1);
    const whole = Math.floor(this.visible);
    if (this.cursor < this.top) this.scrollTo(this.cursor);
    else if (this.cursor >= this.top + whole) this.scrollTo(this.cursor - whole + 1);
    else this.draw();
    this.options.moved(this.cursor);
  }

  /**
   * Moves the cursor to a row, and scrolls the row to the middle.
   * @param {number} position
   */
  center(position) {
    this.scrollTo(position - this.visible / 2);
    this.move(position);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.options.scroller) return;
    const page = Math.max(1, Math.floor(this.visible) - 1);
    /** @type {Record<string, number>} */
    const targets = {
      ArrowDown: this.cursor + 1,
      ArrowUp: this.cursor < 0 ? 0 : this.cursor - 1,
      PageDown: this.cursor + page,
      PageUp: this.cursor - page,
      Home: 0,
      End: this.count - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      event.preventDefault();
      this.move(target);
    } else if (event.key === "Enter" && this.cursor >= 0) {
      event.preventDefault();
      this.options.opened?.(this.cursor);
    }
  }

  /** @param {Event} event */
  positionOf(event) {
    const target = event.target instanceof Element ? event.target.closest("[data-position]") : null;
    return target ? Number(target.getAttribute("data-position")) : null;
  }

  /** Draws in the next frame. */
  draw() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }

  paint() {
    const { scroller, height, prefix, create, fill, header = 0 } = this.options;
    const first = Math.floor(this.top);
    const shown = Math.min(Math.ceil(this.visible) + 1, this.count - first);
    while (this.pool.length < shown) {
      const row = create();
      row.setAttribute("role", "row");
      this.pool.push(row);
      this.window.append(row);
    }
    const offset = (first - this.top) * height;
    for (const [index, row] of this.pool.entries()) {
      if (index >= shown) {
        if (!row.hidden) row.hidden = true;
        continue;
      }
      const position = first + index;
      if (row.hidden) row.hidden = false;
      row.style.transform = `translateY(${offset + index * height}px)`;
      setAttribute(row, "id", `${prefix}${position}`);
      setAttribute(row, "data-position", position);
      setAttribute(row, "aria-rowindex", position + 1 + (header ? 1 : 0));
      setAttribute(row, "aria-selected", position === this.cursor);
      fill(row, position);
    }
    const isCursorShown = this.cursor >= first && this.cursor < first + shown;
    setAttribute(scroller, "aria-activedescendant", isCursorShown ? `${prefix}${this.cursor}` : null);
  }
}
