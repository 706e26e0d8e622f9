// Builds elements. Text from captures is only ever set as text, and characters that could disguise it
// are shown as their code.

/** Characters that control the output, are invisible, or change the direction of text. */
const HOSTILE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/**
 * A text with all hostile characters replaced by their code.
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

/**
 * Sets, or with `null` and `undefined` removes, an attribute.
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

/**
 * Calls a function once the calls stop for a while.
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
