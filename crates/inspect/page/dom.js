// Builds elements. Text from captures is only ever set as text, and characters that could disguise
// it are shown as escapes.

/**
 * Control characters, invisible characters, and those that change the text direction, as in
 * `worldwire_core::text::is_hostile`, and lone surrogates.
 */
const HOSTILE =
  /[\u{0}-\u{1f}\u{7f}-\u{9f}\u{ad}-\u{ad}\u{34f}-\u{34f}\u{61c}-\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}-\u{2800}\u{3164}-\u{3164}\u{fe00}-\u{fe0f}\u{feff}-\u{feff}\u{ffa0}-\u{ffa0}\u{fff0}-\u{fffb}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\p{Cs}]/gu;

/**
 * A text with all hostile characters escaped.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HOSTILE, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/**
 * An element with attributes and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  for (const child of children) {
    if (child !== null) made.append(typeof child === "string" ? visible(child) : child);
  }
  return made;
}

/** The head of a grid: a row with the names of the columns. @param {readonly string[]} names */
export function gridHead(names) {
  const titles = names.map((name) => element("span", { role: "columnheader" }, name));
  const row = element("div", { role: "row", class: "row", "aria-rowindex": 1 }, ...titles);
  return element("div", { role: "rowgroup", class: "head" }, row);
}

/** An empty row of a grid with a cell for each column. @param {readonly string[]} names */
export function gridRow(names) {
  return element("div", { class: "row" }, ...names.map(() => element("span", { role: "gridcell" })));
}

/**
 * Sets an attribute, or removes it if the value is `null` or `undefined`.
 * @param {Element} of
 * @param {string} name
 * @param {string | number | boolean | null | undefined} value
 */
export function setAttribute(of, name, value) {
  if (value === null || value === undefined) of.removeAttribute(name);
  else if (of.getAttribute(name) !== String(value)) of.setAttribute(name, String(value));
}

/**
 * Sets an element's text, if it differs.
 * @param {Element} of
 * @param {string} text
 */
export function setText(of, text) {
  const shown = visible(text);
  if (of.textContent !== shown) of.textContent = shown;
}

/**
 * Sets an element's text as `setText` does, but keeps line breaks.
 * @param {Element} of
 * @param {string} text
 */
export function setLines(of, text) {
  const shown = text.trimEnd().split(/\r?\n/).map(visible).join("\n");
  if (of.textContent !== shown) of.textContent = shown;
}

/**
 * The element with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/**
 * The input with this id.
 * @param {string} id
 * @returns {HTMLInputElement}
 */
export function inputById(id) {
  const found = byId(id);
  if (!(found instanceof HTMLInputElement)) throw new Error(`${id} is not an input`);
  return found;
}

/** A function that calls `act` after a delay. Further calls during the delay have no effect.
 * @param {number} wait in milliseconds
 * @param {() => void} act
 */
export function throttle(wait, act) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      act();
    }, wait);
  };
}

/**
 * Delays calls of a function until no further call has arrived for a while.
 * @template {unknown[]} A
 * @param {number} wait in milliseconds
 * @param {(...values: A) => unknown} act
 * @returns {(...values: A) => void}
 */
export function debounce(wait, act) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), wait);
  };
}
