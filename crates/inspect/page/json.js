// JSON whose numbers keep all their digits: messages contain 64-bit numbers, which JavaScript's own numbers cannot
// hold.

/** A number, as it was written. */
export class Digits {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/**
 * @typedef {null | boolean | string | Digits | JsonList | JsonObject} Json A value in which numbers are
 *   {@link Digits}.
 * @typedef {Array<any>} JsonList
 * @typedef {{[name: string]: any}} JsonObject
 */

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SPACE = /[ \t\r\n]*/y;

/**
 * Reads JSON.
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  // The browser's parser reports mistakes better, and the code below can rely on valid JSON.
  JSON.parse(text);
  let at = 0;
  /** @param {RegExp} form */
  const take = (form) => {
    form.lastIndex = at;
    const found = form.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  /** Whether a character follows, which is skipped. @param {string} c */
  const is = (c) => {
    take(SPACE);
    if (text[at] !== c) return false;
    at += 1;
    return true;
  };
  /** @returns {Json} */
  const value = () => {
    if (is("{")) {
      /** @type {Record<string, Json>} */
      const members = Object.create(null);
      while (!is("}")) {
        is(",");
        take(SPACE);
        const name = String(JSON.parse(take(STRING)));
        is(":");
        members[name] = value();
      }
      return members;
    }
    if (is("[")) {
      const items = [];
      while (!is("]")) {
        is(",");
        items.push(value());
      }
      return items;
    }
    take(SPACE);
    if (text[at] === '"') return String(JSON.parse(take(STRING)));
    const number = take(NUMBER);
    if (number) return new Digits(number);
    const word = take(/true|false|null/y);
    return word === "null" ? null : word === "true";
  };
  return value();
}

/**
 * Writes JSON.
 * @param {Json} value
 * @param {string} [indent] of the line
 * @returns {string}
 */
export function format(value, indent = "") {
  if (value instanceof Digits) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map((item) => format(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${format(item, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
}

/**
 * Writes JSON without spaces.
 * @param {Json} value
 * @returns {string}
 */
export function compact(value) {
  if (value instanceof Digits) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(compact).join()}]`;
  return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${compact(item)}`).join()}}`;
}
