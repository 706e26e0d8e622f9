// A form for a game object, driven by the classes of the type list. Objects and lists are only filled in
// when they are opened, and long lists in parts.

import * as api from "./api.js";
import { element, setAttribute, setLines, visible } from "./dom.js";
import { counted, grouped } from "./format.js";
import { Digits, parse } from "./json.js";
import { UNREADABLE, at, classOf, describe, described, escaped, newObject, number, objectOf, pathText, replaced, textOf, unescaped, usualValue } from "./object-value.js";
import { report } from "./store.js";

/** @import * as T from "./types.js" */
/** @import { Json } from "./json.js" */
/** @import { Path, Property } from "./object-value.js" */

/** The number of elements shown at first, and added by each click. */
const MAX_ITEMS = 100;
/** Longer lists, and objects with more properties, are initially closed. */
const LONG = 24;
/** Longer lists of options are offered while typing. */
const MAX_SELECT = 200;
/** Keeps browsers from correcting what the user types. */
const RAW = { spellcheck: "false", autocomplete: "off" };
let lists = 0;

const wrong = () => element("span", { class: "wrong", role: "alert" });

/**
 * @typedef {object} FormOptions
 * @property {(value: Json, key: string) => void} edited Takes the changed object. Changes with the same key, unless it
 *   is empty, are one step.
 * @property {(path: string) => void} focused
 */

export class ObjectForm {
  /** @param {HTMLElement} root @param {FormOptions} options */
  constructor(root, options) {
    this.root = root;
    this.options = options;
    /** @type {Json} */
    this.value = null;
    /** The number of the latest object to show. */
    this.latest = 0;
    /** Inputs and sections, for problems. @type {Map<string, {mark: HTMLElement, problem: HTMLElement}>} */
    this.entries = new Map();
    /** Sections that the user opened or closed. @type {Map<string, boolean>} */
    this.opened = new Map();
    /** Shown elements of each list. @type {Map<string, number>} */
    this.shown = new Map();
    root.addEventListener("focusin", (event) => {
      const path = event.target instanceof Element ? event.target.getAttribute("data-path") : null;
      if (path !== null) this.options.focused(path);
    });
  }

  /**
   * Shows an object, and keeps the focus where it is or moves it.
   * @param {Json} value
   * @param {string} [focus] the key of the control that receives it
   */
  async show(value, focus) {
    const name = classOf(value);
    const before = focus ?? document.activeElement?.getAttribute("data-key");
    const hadFocus = focus !== undefined || this.root.contains(document.activeElement);
    const own = ++this.latest;
    if (name) await describe(name);
    if (own !== this.latest) return;
    this.value = value;
    this.entries.clear();
    const { scrollTop } = this.root;
    this.root.replaceChildren(...this.members(value, []));
    this.root.scrollTop = scrollTop;
    if (hadFocus && before) this.find(before)?.focus();
  }

  /** Forgets which sections are open. */
  reset() {
    this.opened.clear();
    this.shown.clear();
  }

  /** The control with a key, if it can have the focus. @param {string} key @returns {HTMLElement | undefined} */
  find(key) {
    const all = /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll("[data-key]")]);
    return all.find((it) => it.getAttribute("data-key") === key && !(it instanceof HTMLButtonElement && it.disabled));
  }

  /**
   * Marks the value that is wrong, or the section that it is in. Returns false if there is none.
   * @param {string | null} path
   * @param {string} problem
   */
  blame(path, problem) {
    const fits = (/** @type {string} */ own) => path !== null && (path === own || path.startsWith(`${own}.`) || path.startsWith(`${own}[`));
    const found = [...this.entries.keys()].filter(fits).sort((a, b) => b.length - a.length)[0];
    for (const [own, { mark, problem: shown }] of this.entries) {
      setAttribute(mark, "aria-invalid", own === found && /^(INPUT|SELECT|TEXTAREA)$/.test(mark.tagName) ? true : null);
      setLines(shown, own === found ? problem : "");
    }
    return found !== undefined;
  }

  /** The value now, which edits may have replaced since it was drawn. @param {Path} path */
  now(path) {
    return at(this.value, path);
  }

  /** @param {Path} path @param {Json} value @param {string} [key] */
  edit(path, value, key = "") {
    this.value = replaced(this.value, path, value);
    this.options.edited(this.value, key);
  }

  /** Changes a value so that the form has other parts. @param {Path} path @param {Json} value @param {string} [focus] */
  restructure(path, value, focus) {
    this.edit(path, value);
    void this.show(this.value, focus ?? pathText(path)).catch(report);
  }

  /** The properties of an object. @param {Json} value @param {Path} path @returns {HTMLElement[]} */
  members(value, path) {
    const name = classOf(value);
    const found = name ? described(name) : undefined;
    const own = objectOf(value);
    if (!found || !own) return [];
    const parts = found.properties.filter((it) => it.name in own).map((it) => this.slot(it, own[it.name], [...path, it.name], it.name));
    const missing = found.properties.filter((it) => !(it.name in own));
    if (missing.length > 0) parts.push(this.adder(found, missing, path));
    if (parts.length === 0) parts.push(element("p", {}, `${found.name} has no properties.`));
    return parts;
  }

  /** Adds a property that an object lacks. @param {T.ClassDetail} of @param {Property[]} missing @param {Path} path */
  adder(of, missing, path) {
    const select = element("select", {}, ...missing.map((it) => element("option", { value: it.name }, it.name)));
    const add = element("button", { type: "button", "aria-label": `Add property to ${pathText(path) || "the object"}` }, "+");
    add.addEventListener("click", () => {
      const wanted = missing.find((it) => it.name === select.value);
      const own = objectOf(this.now(path));
      if (!wanted || !own) return;
      const usual = objectOf(of.default ? parse(of.default) : null);
      const added = usual && wanted.name in usual ? usual[wanted.name] : usualValue(wanted, wanted.list);
      const whole = Object.create(null);
      for (const [name, item] of Object.entries(own)) if (name.startsWith("$")) whole[name] = item;
      for (const { name } of of.properties) {
        if (name === wanted.name) whole[name] = added;
        else if (name in own) whole[name] = own[name];
      }
      this.restructure(path, whole, pathText([...path, wanted.name]));
    });
    return element("div", { class: "field" }, element("label", {}, element("span", { class: "dim" }, "Missing property"), select), add);
  }

  /**
   * The row or section for a value.
   * @param {Property} property
   * @param {Json} value
   * @param {Path} path
   * @param {string} title
   * @param {HTMLElement | null} [buttons]
   * @returns {HTMLElement}
   */
  slot(property, value, path, title, buttons = null) {
    const isElement = typeof path.at(-1) === "number";
    if (property.list && !isElement) return this.list(property, value, path, title);
    if (property.kind === "object") return this.object(property, value, path, title, buttons);
    const problem = wrong();
    const hint = property.type + (property.range ? `, ${property.range.join(" to ")}` : "") + (property.deprecated ? ", deprecated" : "");
    const row = property.kind === "tuple" || property.kind === "flags"
      ? this.group(property, value, path, title, hint, problem)
      : this.single(property, value, path, title, hint, problem);
    return element("div", { class: "field" }, row, buttons);
  }

  /**
   * A section whose content is created when it is opened.
   * @param {Path} path
   * @param {string} title
   * @param {string} note
   * @param {number} length
   * @param {() => HTMLElement[] | Promise<HTMLElement[]>} fill
   */
  section(path, title, note, length, fill) {
    const text = pathText(path);
    const problem = wrong();
    const content = element("div", { class: "inner" });
    const summary = element("summary", { "data-key": text, "data-path": text, title: visible(text) }, element("b", {}, title), " ", element("small", {}, note));
    const made = element("details", {}, summary, problem, content);
    this.entries.set(text, { mark: made, problem });
    const open = async () => {
      if (content.firstChild) return;
      try {
        content.replaceChildren(...(await fill()));
      } catch (error) {
        report(error);
      }
    };
    made.addEventListener("toggle", () => {
      this.opened.set(text, made.open);
      if (made.open) void open();
    });
    if (this.opened.get(text) ?? (path.length < 2 && length <= LONG)) {
      made.open = true;
      // Content that needs no request is shown at once, so that the focus can return to it.
      const parts = fill();
      if (Array.isArray(parts)) content.replaceChildren(...parts);
      else void parts.then((them) => content.replaceChildren(...them), report);
    }
    return made;
  }

  /** @param {Property} property @param {Json} value @param {Path} path @param {string} title @returns {HTMLElement} */
  list(property, value, path, title) {
    if (!Array.isArray(value)) return this.fixed(value, path, title);
    const text = pathText(path);
    const act = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {string} */ key, /** @type {() => void} */ perform, isOff = false) => {
      const button = element("button", { type: "button", "aria-label": label, "data-key": key, disabled: isOff ? "" : null }, sign);
      button.addEventListener("click", perform);
      return button;
    };
    /** @param {(items: Json[]) => void} apply @param {string} focus */
    const change = (apply, focus) => {
      const items = [.../** @type {Json[]} */ (this.now(path))];
      apply(items);
      this.restructure(path, items, focus);
    };
    const move = (/** @type {number} */ from, /** @type {number} */ to) => {
      const isEdge = to === 0 || to === value.length - 1;
      const isUp = to < from;
      change((items) => items.splice(to, 0, ...items.splice(from, 1)), `${text}[${to}]:${isUp !== isEdge ? "up" : "down"}`);
    };
    const fill = () => {
      const count = this.shown.get(text) ?? MAX_ITEMS;
      const parts = value.slice(0, count).map((item, index) => {
        const own = `${text}[${index}]`;
        const isLast = index === value.length - 1;
        const buttons = element("span", { class: "acts" },
          act(`Move ${own} up`, "↑", `${own}:up`, () => move(index, index - 1), index === 0),
          act(`Move ${own} down`, "↓", `${own}:down`, () => move(index, index + 1), isLast),
          act(`Remove ${own}`, "−", `${own}:remove`, () => change((items) => items.splice(index, 1), isLast ? `${text}:add` : `${own}:remove`)));
        return this.slot(property, item, [...path, index], `[${index}]`, buttons);
      });
      const more = value.length - count;
      if (more > 0) {
        parts.push(act(`Show more of ${text}`, `Show ${grouped(Math.min(more, MAX_ITEMS))} more of ${grouped(more)}`, `${text}:more`, () => {
          this.shown.set(text, count + MAX_ITEMS);
          void this.show(this.value, `${text}[${count}]`).catch(report);
        }));
      }
      parts.push(act(`Add to ${text}`, "+", `${text}:add`, () => void this.add(property, path).catch(report)));
      return parts;
    };
    return this.section(path, title, `${property.type}, ${counted(value.length, "element")}`, value.length, fill);
  }

  /** Adds an element to the end of a list. @param {Property} property @param {Path} path */
  async add(property, path) {
    const items = /** @type {Json[]} */ (this.now(path));
    const name = property.kind === "object" ? (classOf(items.at(-1) ?? null) ?? property.base ?? null) : null;
    const added = name ? await newObject(name, null) : usualValue(property, false);
    const text = pathText(path);
    this.shown.set(text, Math.max(this.shown.get(text) ?? MAX_ITEMS, items.length + 1));
    this.restructure(path, [...items, added], `${text}[${items.length}]`);
  }

  /** @param {Property} property @param {Json} value @param {Path} path @param {string} title @param {HTMLElement | null} buttons @returns {HTMLElement} */
  object(property, value, path, title, buttons) {
    const name = classOf(value);
    const length = Object.keys(objectOf(value) ?? {}).length;
    const fill = () => {
      const chooser = this.chooser(property, name, path);
      if (name === null || described(name)) return [chooser, ...this.members(value, path)];
      return describe(name).then(() => [chooser, ...this.members(value, path)]);
    };
    const made = this.section(path, title, name ?? "null", path.length > 1 ? Infinity : length, fill);
    return element("div", { class: "field" }, made, buttons);
  }

  /** Chooses the class of an object, or null. @param {Property} property @param {string | null} name @param {Path} path */
  chooser(property, name, path) {
    const text = pathText(path);
    const id = `classes-${++lists}`;
    const offered = element("datalist", { id });
    const problem = wrong();
    // A name refused here is not part of the object, so the server's responses do not clear this problem.
    const refused = wrong();
    const input = element("input", { type: "text", list: id, "data-path": `${text}.$class`, "data-key": `${text}.$class`, ...RAW, placeholder: "null", title: property.base ? `${property.base}, or a class derived from it; empty for null` : "Any class; empty for null" });
    input.value = name ?? "";
    this.entries.set(`${text}.$class`, { mark: input, problem });
    const offer = async (/** @type {string} */ search) => {
      const found = await api.archiveClasses(property.base ?? "", search);
      offered.replaceChildren(...found.names.map((it) => element("option", { value: it }, it)));
      return found.names;
    };
    const choose = async () => {
      const wanted = input.value.trim();
      if (wanted === (name ?? "")) return;
      if (wanted === "") return this.restructure(path, null);
      const names = await offer(wanted);
      const found = [wanted, `class ${wanted}`, `struct ${wanted}`].find((it) => names.includes(it));
      if (!found) {
        // The form shows only what would be saved.
        input.value = name ?? "";
        setLines(refused, property.base ? `${wanted} is not ${property.base} or a class derived from it` : `no class ${wanted} in the type list`);
        return;
      }
      this.opened.set(text, true);
      this.restructure(path, await newObject(found, this.now(path)), `${text}.$class`);
    };
    input.addEventListener("focus", () => void offer("").catch(report), { once: true });
    input.addEventListener("input", () => {
      setLines(refused, "");
      void offer(input.value.trim()).catch(report);
    });
    input.addEventListener("change", () => void choose().catch(report));
    return element("div", { class: "field" }, element("label", {}, element("span", { class: "dim" }, "Type"), element("span", { class: "value" }, input, offered, problem, refused)));
  }

  /**
   * A value with one control.
   * @param {Property} property
   * @param {Json} value
   * @param {Path} path
   * @param {string} title
   * @param {string} hint
   * @param {HTMLElement} problem
   */
  single(property, value, path, title, hint, problem) {
    const text = pathText(path);
    const control = this.control(property, value, path);
    setAttribute(control, "title", visible(hint));
    setAttribute(control, "data-path", text);
    setAttribute(control, "data-key", text);
    this.entries.set(text, { mark: control, problem });
    const box = element("span", { class: "value" }, control);
    if (property.options.length > 0 && control instanceof HTMLInputElement && control.type === "text") {
      const id = `options-${++lists}`;
      control.setAttribute("list", id);
      box.append(element("datalist", { id }, ...property.options.map(([name]) => element("option", { value: name }, name))));
    }
    box.append(problem);
    return element("label", {}, element("span", {}, title), box);
  }

  /** @param {Property} property @param {Json} value @param {Path} path @returns {HTMLElement} */
  control(property, value, path) {
    const text = pathText(path);
    if (property.kind === "bool") {
      const input = element("input", { type: "checkbox" });
      input.checked = value === true;
      input.addEventListener("change", () => this.edit(path, input.checked));
      return input;
    }
    const isNamed = property.options.length === property.option_count && property.option_count <= MAX_SELECT && property.option_count > 0;
    if (property.kind === "enum" && isNamed) return this.select(property, value, path);
    if (property.kind === "text") return this.text(value, path);
    const input = element("input", { type: "text", inputmode: property.kind === "enum" ? null : "decimal", ...RAW });
    input.value = textOf(value);
    input.addEventListener("input", () => this.edit(path, number(input.value.trim()), text));
    return input;
  }

  /** The options of an enumeration. @param {Property} property @param {Json} value @param {Path} path */
  select(property, value, path) {
    const select = element("select", {}, ...property.options.map(([name, code]) => element("option", { value: name }, `${name} (${code})`)));
    const own = textOf(value);
    if (!property.options.some(([name]) => name === own)) select.prepend(element("option", { value: own }, `${own}, not in the type list`));
    select.value = own;
    select.append(element("option", { value: "" }, "another number…"));
    select.addEventListener("change", () => {
      const text = pathText(path);
      if (select.selectedIndex < select.length - 1) return this.edit(path, select.value === own ? value : select.value, text);
      const input = /** @type {HTMLInputElement} */ (this.control({ ...property, options: [] }, new Digits("0"), path));
      for (const name of ["title", "data-path", "data-key"]) setAttribute(input, name, select.getAttribute(name));
      const entry = this.entries.get(text);
      if (entry) entry.mark = input;
      select.replaceWith(input);
      input.select();
      input.focus();
      this.edit(path, new Digits("0"));
    });
    return select;
  }

  /**
   * A text. If a browser's input would change it, for example because it has control characters, it is edited as JSON.
   * Bytes that are not text are edited in hexadecimal.
   * @param {Json} value
   * @param {Path} path
   */
  text(value, path) {
    const key = pathText(path);
    const object = (/** @type {string} */ name, /** @type {string} */ text) => Object.assign(Object.create(null), { [name]: text });
    const own = objectOf(value);
    if (own && "$hex" in own) {
      const input = element("input", { type: "text", ...RAW, placeholder: "bytes in hexadecimal" });
      input.value = textOf(value);
      input.addEventListener("input", () => this.edit(path, object("$hex", input.value.trim()), key));
      return input;
    }
    const plain = typeof value === "string" ? value : "";
    const isEscaped = own !== null || visible(plain.replaceAll("\n", "")) !== plain.replaceAll("\n", "");
    const isLong = plain.length > 60 || plain.includes("\n");
    const input = element(isLong ? "textarea" : "input", { ...RAW, type: isLong ? null : "text" });
    input.value = own ? textOf(value) : isEscaped ? escaped(plain) : plain;
    input.addEventListener("input", () => this.edit(path, isEscaped ? unescaped(input.value) ?? object(UNREADABLE, input.value) : input.value, key));
    return input;
  }

  /**
   * A value with several controls: the numbers of a tuple, or the names of flags.
   * @param {Property} property
   * @param {Json} value
   * @param {Path} path
   * @param {string} title
   * @param {string} hint
   * @param {HTMLElement} problem
   */
  group(property, value, path, title, hint, problem) {
    const text = pathText(path);
    const isSet = property.kind === "flags";
    if (isSet && (property.options.length === 0 || objectOf(value))) {
      return this.single({ ...property, kind: "number" }, value, path, title, hint, problem);
    }
    const set = element("fieldset", { title: visible(hint), class: "parts" }, element("legend", {}, title));
    this.entries.set(text, { mark: set, problem });
    set.append(...(isSet ? this.flags(property, value, path) : this.parts(property, value, path)), problem);
    return set;
  }

  /** @param {Property} property @param {Json} value @param {Path} path */
  flags(property, value, path) {
    const numbers = new Map(property.options);
    const bitsOf = (/** @type {Json} */ set) => {
      const bits = (/** @type {Json} */ it) => (it instanceof Digits ? undefined : numbers.get(textOf(it))) ?? (Number(textOf(it)) || 0);
      return (Array.isArray(set) ? set : [set]).reduce((sum, it) => (sum | bits(it)) >>> 0, 0);
    };
    const named = property.options.reduce((bits, [, code]) => (bits | code) >>> 0, 0);
    const rest = (bitsOf(value) & ~named) >>> 0;
    const options = rest ? [...property.options, /** @type {[string, number]} */ ([`0x${rest.toString(16)}`, rest])] : property.options;
    return options.filter(([, code]) => code !== 0).map(([name, code]) => {
      const bits = code >>> 0;
      const key = `${pathText(path)}|${name}`;
      const input = element("input", { type: "checkbox", "data-path": pathText(path), "data-key": key });
      input.checked = (bitsOf(value) & bits) >>> 0 === bits;
      input.addEventListener("change", () => {
        const before = bitsOf(this.now(path));
        const after = (input.checked ? before | bits : before & ~bits) >>> 0;
        this.restructure(path, new Digits(String(after)), key);
      });
      return element("label", { class: "flag" }, input, element("span", {}, name));
    });
  }

  /** @param {Property} property @param {Json} value @param {Path} path */
  parts(property, value, path) {
    if (!objectOf(value)) return [this.fixed(value, path, property.name)];
    /** @type {Map<string, HTMLInputElement>} */
    const inputs = new Map();
    const part = (/** @type {Path} */ own, /** @type {string} */ title) => {
      const text = pathText(own);
      const problem = wrong();
      const input = element("input", { type: "text", inputmode: "decimal", "data-path": text, "data-key": text, ...RAW });
      input.value = textOf(this.now(own));
      input.addEventListener("input", () => {
        this.edit(own, number(input.value.trim()), text);
        paint();
      });
      inputs.set(title, input);
      this.entries.set(text, { mark: input, problem });
      return element("label", {}, element("span", {}, title), input, problem);
    };
    const rows = property.parts ?? [];
    const isMatrix = (property.per_part ?? 1) > 1;
    const shown = rows.flatMap((name) => (isMatrix ? [0, 1, 2].map((index) => part([...path, name, index], `${name}${index}`)) : [part([...path, name], name)]));
    const isColour = property.type === "class Color";
    const swatch = element("input", { type: "color", "aria-label": `${pathText(path)} as a colour`, "data-key": `${pathText(path)}#` });
    const paint = () => {
      const digits = ["r", "g", "b"].map((name) => Math.min(255, Number(inputs.get(name)?.value) || 0).toString(16).padStart(2, "0"));
      if (isColour) swatch.value = `#${digits.join("")}`;
    };
    swatch.addEventListener("input", () => {
      const changed = Object.assign(Object.create(null), this.now(path));
      for (const [index, name] of ["r", "g", "b"].entries()) {
        const digits = String(parseInt(swatch.value.slice(1 + 2 * index, 3 + 2 * index), 16));
        changed[name] = new Digits(digits);
        const input = inputs.get(name);
        if (input) input.value = digits;
      }
      this.edit(path, changed, `${pathText(path)}#`);
    });
    paint();
    return isColour ? [swatch, ...shown] : shown;
  }

  /** A value whose form does not match its property. @param {Json} value @param {Path} path @param {string} title */
  fixed(value, path, title) {
    return element("p", {}, `${title}: ${textOf(value)} (${pathText(path)} cannot be edited)`);
  }
}
