// The values of game objects, and their classes.

import * as api from "./api.js";
import { visible } from "./dom.js";
import { Digits, parse } from "./json.js";

/** @import * as T from "./types.js" */
/** @import { Json, JsonObject } from "./json.js" */

/**
 * @typedef {(string | number)[]} Path
 * @typedef {T.PropertyDetail} Property
 */

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** The member that replaces a text while its JSON is invalid. The server refuses it. */
export const UNREADABLE = "$json";

/** The classes that have been described so far. @type {Map<string, T.ClassDetail>} */
const known = new Map();

/** The class, if it was described. @param {string} name */
export const described = (name) => known.get(name);

/** @param {string} name */
export async function describe(name) {
  const found = known.get(name) ?? (await api.archiveClass(name));
  known.set(name, found);
  return found;
}

/** The path of a value, as errors name it. @param {Path} path */
export function pathText(path) {
  let text = "";
  for (const step of path) text += typeof step === "number" ? `[${step}]` : text ? `.${step}` : step;
  return text;
}

/**
 * A copy with another value at a path, which shares all other values.
 * @param {Json} value
 * @param {Path} path
 * @param {Json} next
 * @returns {Json}
 */
export function replaced(value, path, next) {
  const [step, ...rest] = path;
  if (step === undefined) return next;
  const copy = Array.isArray(value) ? [...value] : Object.assign(Object.create(null), value);
  copy[step] = replaced(copy[step] ?? null, rest, next);
  return copy;
}

/** The value at a path. @param {Json} value @param {Path} path @returns {Json} */
export const at = (value, path) => path.reduce((inner, step) => /** @type {any} */ (inner)[step], value);

/** A value as an object, which may stand for something else, such as `{"$hex": "00ff"}`. @param {Json} value */
export function objectOf(value) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Digits);
  return isObject ? /** @type {JsonObject} */ (value) : null;
}

/** The class of an object; `null` for null. @param {Json} value */
export function classOf(value) {
  const own = objectOf(value);
  return own ? String(own["$class"]) : null;
}

/** @param {string} text @returns {Json} */
export const number = (text) => (NUMBER.test(text) ? new Digits(text) : text);

/** A value as text. Names of options that the type list does not have, and bytes, are objects. @param {Json} value */
export function textOf(value) {
  const own = objectOf(value);
  if (own) return String(own["$name"] ?? own["$hex"] ?? own[UNREADABLE] ?? "");
  return value instanceof Digits ? value.text : value === null ? "" : String(value);
}

/** A text as JSON with all hostile characters escaped. @param {string} text */
export function escaped(text) {
  const units = (/** @type {string} */ c) => [...Array(c.length).keys()].map((index) => `\\u${c.charCodeAt(index).toString(16).padStart(4, "0")}`).join("");
  const json = [...JSON.stringify(text)];
  return json.map((c) => (visible(c) === c ? c : units(c))).join("");
}

/** The text that such JSON represents, if it represents one. @param {string} json */
export function unescaped(json) {
  try {
    const text = JSON.parse(json);
    return typeof text === "string" ? text : null;
  } catch {
    return null;
  }
}

/**
 * A new object, with another object's values of the properties that both have.
 * @param {string} name of its class
 * @param {Json} before
 */
export async function newObject(name, before) {
  const wanted = await describe(name);
  const made = wanted.default ? parse(wanted.default) : Object.assign(Object.create(null), { $class: name });
  const [old, own] = [objectOf(before), objectOf(made)];
  if (!old || !own) return made;
  const was = await describe(String(old["$class"]));
  for (const { name: part, type, list } of wanted.properties) {
    const isSame = was.properties.some((it) => it.name === part && it.type === type && it.list === list);
    if (isSame && part in old) own[part] = old[part];
  }
  return made;
}

/** The value of a new property or element. @param {Property} property @param {boolean} isList @returns {Json} */
export function usualValue(property, isList) {
  if (isList) return [];
  switch (property.kind) {
    case "bool":
      return false;
    case "text":
      return "";
    case "object":
      return null;
    case "float":
      return new Digits("0.0");
    case "tuple": {
      const zero = () => new Digits("0");
      const row = () => ((property.per_part ?? 1) > 1 ? [zero(), zero(), zero()] : zero());
      return Object.assign(Object.create(null), Object.fromEntries((property.parts ?? []).map((name) => [name, row()])));
    }
    default:
      return new Digits("0");
  }
}
