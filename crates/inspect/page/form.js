// A form for the fields of a message.

import * as api from "./api.js";
import { element, setAttribute, setLines } from "./dom.js";
import { Digits } from "./json.js";

/** @import { Json } from "./json.js" */

/** Longer lists are shown as JSON only. */
const MAX_ITEMS = 200;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
let lists = 0;

/** @typedef {{path: string, input: HTMLElement, problem: HTMLElement}} Entry */

export class Form {
  /**
   * @param {HTMLElement} root
   * @param {() => void} changed
   */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {Json} */
    this.value = null;
    this.name = "";
  }

  /**
   * Shows the fields of a message.
   * @param {string} name of the message
   * @param {Json} value
   */
  show(name, value) {
    this.name = name;
    this.value = value;
    this.entries = [];
    const parts = this.parts(value, "", (changed) => (this.value = changed));
    const none = name ? "This message has no fields." : "Enter the name of a message. Template then fills in the fields of the latest message with that name.";
    if (parts.length === 0) parts.push(element("p", {}, none));
    this.root.replaceChildren(...parts);
  }

  /**
   * Marks the field that is wrong. Returns false if the form does not have it.
   * @param {string | null} path
   * @param {string} problem
   */
  blame(path, problem) {
    const wanted = path?.replace(/^fields\.?/, "") ?? null;
    const fits = (/** @type {Entry} */ it) => wanted !== null && (it.path === wanted || wanted.startsWith(`${it.path}.`) || wanted.startsWith(`${it.path}[`));
    const found = wanted === null ? undefined : this.entries.filter(fits).sort((a, b) => b.path.length - a.path.length)[0];
    for (const entry of this.entries) {
      const isWrong = entry === found;
      setAttribute(entry.input, "aria-invalid", isWrong ? true : null);
      setLines(entry.problem, isWrong ? problem : "");
    }
    return found !== undefined;
  }

  /**
   * The elements for a value's parts.
   * @param {Json} value
   * @param {string} path
   * @param {(value: Json) => void} replace
   * @returns {HTMLElement[]}
   */
  parts(value, path, replace) {
    if (Array.isArray(value)) return this.list(value, path);
    if (value === null || typeof value !== "object" || value instanceof Digits) {
      return [this.single(value, path, replace)];
    }
    return Object.entries(value).map(([name, item]) => {
      const inner = path ? `${path}.${name}` : name;
      return this.part(name, item, inner, (changed) => (value[name] = changed));
    });
  }

  /**
   * @param {string} title
   * @param {Json} value
   * @param {string} path
   * @param {(value: Json) => void} replace
   * @param {HTMLElement | null} [extra]
   */
  part(title, value, path, replace, extra = null) {
    const isSingle = value === null || typeof value !== "object" || value instanceof Digits;
    if (isSingle) {
      const single = this.single(value, path, replace);
      const label = element("label", {}, element("span", {}, title));
      label.append(single);
      const row = element("div", { class: "field" }, label, extra);
      return row;
    }
    const group = element("fieldset", {}, element("legend", {}, title), extra);
    group.append(...this.parts(value, path, replace));
    return group;
  }

  /**
   * @param {Json[]} items
   * @param {string} path
   */
  list(items, path) {
    if (items.length > MAX_ITEMS) return [element("p", {}, `${items.length} items: edit them as JSON.`)];
    const redraw = () => {
      this.show(this.name, this.value);
      this.changed();
    };
    /** @type {HTMLElement[]} */
    const shown = items.map((item, index) => {
      const remove = element("button", { type: "button", "aria-label": `Remove item ${index} of ${path}` }, "−");
      remove.addEventListener("click", () => {
        items.splice(index, 1);
        redraw();
      });
      return this.part(`[${index}]`, item, `${path}[${index}]`, (changed) => (items[index] = changed), remove);
    });
    const last = items.at(-1);
    if (last !== undefined) {
      const add = element("button", { type: "button", "aria-label": `Repeat the last item of ${path}` }, "+");
      add.addEventListener("click", () => {
        items.push(structured(last));
        redraw();
      });
      shown.push(add);
    }
    return shown;
  }

  /**
   * The input for one value.
   * @param {Json} value
   * @param {string} path
   * @param {(value: Json) => void} replace
   */
  single(value, path, replace) {
    const problem = element("span", { class: "wrong", role: "alert" });
    const box = element("span", { class: "value" });
    if (typeof value === "boolean") {
      const input = element("input", { type: "checkbox", "data-path": path });
      input.checked = value;
      input.addEventListener("change", () => {
        replace(input.checked);
        this.changed();
      });
      box.append(input, problem);
      this.entries.push({ path, input, problem });
      return box;
    }
    const isNumber = value instanceof Digits;
    const long = typeof value === "string" && value.length > 60;
    const input = element(long ? "textarea" : "input", { "data-path": path, spellcheck: "false", autocomplete: "off" });
    if (isNumber) input.setAttribute("inputmode", "decimal");
    input.value = isNumber ? value.text : value === null ? "null" : String(value);
    input.addEventListener("input", () => {
      const text = input.value;
      if (isNumber && !NUMBER.test(text)) {
        // A number that has a name can also be given by that name.
        replace(text);
      } else if (isNumber) replace(new Digits(text));
      else replace(value === null && text === "null" ? null : text);
      this.changed();
    });
    if (input instanceof HTMLInputElement) {
      input.addEventListener("focus", () => void this.complete(input, path), { once: true });
    }
    box.append(input, problem);
    this.entries.push({ path, input, problem });
    return box;
  }

  /**
   * Offers the names that a field's values have in its definition.
   * @param {HTMLInputElement} input
   * @param {string} path
   */
  async complete(input, path) {
    const text = `${path.replace(/\[\d+\]/g, "")} == `;
    try {
      const { suggestions } = await api.suggestions(text, text.length);
      const names = suggestions.filter((it) => it.kind === "value");
      if (names.length === 0) return;
      const id = `values-${++lists}`;
      input.after(element("datalist", { id }, ...names.map((it) => element("option", { value: it.text.replace(/^"|"$/g, "") }))));
      input.setAttribute("list", id);
    } catch {
      // The field can be edited without suggestions.
    }
  }
}

/** A copy. @param {Json} value @returns {Json} */
function structured(value) {
  if (value instanceof Digits || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(structured);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, structured(item)]));
}
