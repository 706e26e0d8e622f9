// A tree whose branches are loaded from the server when they are opened.

import { debounce, element, setAttribute, setText, visible } from "./dom.js";
import { counted } from "./format.js";
import { Rows } from "./rows.js";
import { report } from "./store.js";

/**
 * @typedef {object} Branch
 * @property {string} text
 * @property {string} note Shown at the end of the row.
 * @property {boolean} hasParts
 * @property {any} of The view's own data about it.
 */

/**
 * @typedef {object} Line A visible row.
 * @property {Branch | null} branch `null` is the row that loads more.
 * @property {number} depth
 * @property {boolean} isOpen
 * @property {number} left The number of branches not loaded yet.
 * @property {number} start The number of the next one to load.
 * @property {Branch | null} parent
 */

/**
 * @typedef {object} TreeOptions
 * @property {HTMLElement} scroller With the role `treegrid`, focusable.
 * @property {string} prefix
 * @property {(parent: Branch | null, start: number) => Promise<{total: number, branches: Branch[]}>} load
 * @property {(branch: Branch, parents: Branch[]) => void} chosen
 * @property {() => void} [entered] Enter on a branch without parts.
 */

export class LazyTree {
  /** @param {TreeOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {Line[]} */
    this.lines = [];
    this.generation = 0;
    /** The latest reload. */
    this.loading = Promise.resolve();
    this.list = new Rows({
      scroller: options.scroller,
      height: 22,
      prefix: options.prefix,
      create: () => {
        const name = element("span", { role: "gridcell" }, element("i", { class: "twisty", "aria-hidden": "true" }), element("span"));
        return element("div", { class: "row branch" }, name, element("span", { role: "gridcell", class: "dim" }));
      },
      fill: (row, position) => this.fill(row, position),
      moved: (position) => this.moved(position),
      opened: (position) => void this.toggle(position),
    });
    options.scroller.addEventListener("keydown", (event) => this.key(event));
    options.scroller.addEventListener("mousedown", (event) => {
      const isTwisty = event.target instanceof Element && event.target.classList.contains("twisty");
      const position = this.list.positionOf(event);
      if (isTwisty && position !== null) void this.toggle(position);
    });
    options.scroller.addEventListener("focus", () => {
      if (this.list.cursor < 0 && this.list.count > 0) this.list.move(0);
    });
  }

  /** Reloads the tree from its root. */
  reload() {
    this.loading = this.loadRoot();
    return this.loading;
  }

  /**
   * Lists the results for a text field's query, which `load` reads. Once the list matches the text, Enter and ↓
   * go to it and open its first row if none is chosen.
   * @param {HTMLInputElement} input
   */
  searchWith(input) {
    let isDue = false;
    const start = () => {
      if (!isDue) return this.loading;
      isDue = false;
      return this.reload();
    };
    const soon = debounce(200, start);
    input.addEventListener("input", () => {
      isDue = true;
      soon();
    });
    input.addEventListener("keydown", async (event) => {
      if (event.key !== "Enter" && event.key !== "ArrowDown") return;
      event.preventDefault();
      const text = input.value;
      let loading = start();
      await loading;
      // Another list was requested in the meantime.
      while (loading !== this.loading) await (loading = this.loading);
      if (input.value !== text || document.activeElement !== input) return;
      this.options.scroller.focus();
      if (this.list.cursor < 0) this.list.move(0);
    });
  }

  async loadRoot() {
    const own = ++this.generation;
    try {
      const lines = await this.load(null, 0, 0);
      if (own !== this.generation) return;
      this.lines = lines;
      this.list.cursor = -1;
      this.list.top = 0;
      this.list.resize(lines.length);
      this.list.draw();
    } catch (error) {
      report(error);
    }
  }

  /** @param {Branch | null} parent @param {number} start @param {number} depth @returns {Promise<Line[]>} */
  async load(parent, start, depth) {
    const { total, branches } = await this.options.load(parent, start);
    const lines = branches.map((branch) => ({ branch, depth, isOpen: false, left: 0, start: 0, parent }));
    const next = start + branches.length;
    if (next >= total || branches.length === 0) return lines;
    return [...lines, { branch: null, depth, isOpen: false, left: total - next, start: next, parent }];
  }

  /** @param {HTMLElement} row @param {number} position */
  fill(row, position) {
    const line = this.lines[position];
    if (!line) return;
    const { branch } = line;
    const [name, note] = /** @type {HTMLElement[]} */ ([...row.children]);
    const [twisty, text] = /** @type {HTMLElement[]} */ ([...(name?.children ?? [])]);
    if (!name || !note || !twisty || !text) return;
    name.style.paddingLeft = `${Math.min(line.depth, 24) * 14 + 4}px`;
    setAttribute(row, "aria-level", line.depth + 1);
    setAttribute(row, "aria-expanded", branch?.hasParts ? line.isOpen : null);
    setText(twisty, branch?.hasParts ? (line.isOpen ? "▾" : "▸") : "");
    setText(text, branch ? branch.text : `show more (${counted(line.left, "more row")})`);
    setAttribute(name, "title", branch ? visible(branch.text) : null);
    setText(note, branch?.note ?? "");
  }

  /** @param {number} position */
  moved(position) {
    const line = this.lines[position];
    if (!line?.branch) return;
    this.options.chosen(line.branch, this.parents(position));
  }

  /** The branches around a line, from the root. @param {number} position */
  parents(position) {
    const found = [];
    let depth = this.lines[position]?.depth ?? 0;
    for (let at = position - 1; at >= 0 && depth > 0; at--) {
      const line = this.lines[at];
      if (!line?.branch || line.depth >= depth) continue;
      found.unshift(line.branch);
      depth = line.depth;
    }
    return found;
  }

  /** Opens or closes a branch, or loads more. @param {number} position @param {boolean} [wanted] */
  async toggle(position, wanted) {
    const line = this.lines[position];
    if (!line) return;
    if (line.branch && !line.branch.hasParts) return this.options.entered?.();
    if (line.branch && line.isOpen === (wanted ?? !line.isOpen)) return;
    if (line.branch && line.isOpen) {
      line.isOpen = false;
      let end = position + 1;
      while ((this.lines[end]?.depth ?? -1) > line.depth) end++;
      this.replace(position + 1, end - position - 1, []);
      return;
    }
    const own = this.generation;
    try {
      const loaded = line.branch ? await this.load(line.branch, 0, line.depth + 1) : await this.load(line.parent, line.start, line.depth);
      // The tree may have changed in the meantime.
      const at = this.lines.indexOf(line);
      if (own !== this.generation || at < 0 || line.isOpen) return;
      if (line.branch) {
        line.isOpen = true;
        this.replace(at + 1, 0, loaded);
      } else this.replace(at, 1, loaded);
    } catch (error) {
      report(error);
    }
  }

  /** @param {number} from @param {number} count @param {Line[]} added */
  replace(from, count, added) {
    this.lines = [...this.lines.slice(0, from), ...added, ...this.lines.slice(from + count)];
    this.list.resize(this.lines.length);
    this.list.draw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const position = this.list.cursor;
    const line = this.lines[position];
    if (event.target !== this.options.scroller || !line) return;
    if (event.key === "ArrowRight") {
      event.preventDefault();
      if (line.isOpen) this.list.move(position + 1);
      else if (line.branch?.hasParts) void this.toggle(position, true);
    } else if (event.key === "ArrowLeft") {
      event.preventDefault();
      if (line.isOpen) void this.toggle(position, false);
      else {
        let at = position - 1;
        while (at >= 0 && (this.lines[at]?.depth ?? 0) >= line.depth) at--;
        if (at >= 0) this.list.move(at);
      }
    }
  }
}
