// Names of fields: paths for filters, and colours.

/** @import * as T from "./types.js" */

/** The number of colours in `page.css`. */
const COLOURS = 12;

/**
 * @typedef {object} Place A field in its message.
 * @property {string} path As filters accept it.
 * @property {string} plain The path without the numbers of elements.
 * @property {number} parent The index of the field around it; -1 at the top.
 * @property {boolean} hasParts
 * @property {number} index Its number among its siblings.
 * @property {string} colour The class of its colour.
 */

/**
 * The places of all fields of a message.
 * @param {T.FieldNode[]} nodes
 * @returns {Place[]}
 */
export function places(nodes) {
  /** @type {Place[]} */
  const found = [];
  /** @type {number[]} */
  const open = [];
  /** @type {number[]} */
  const counts = [0];
  for (const [number, node] of nodes.entries()) {
    open.length = node.depth;
    counts.length = node.depth + 1;
    const parent = node.depth > 0 ? (open[node.depth - 1] ?? -1) : -1;
    const around = found[parent];
    const index = counts[node.depth] ?? 0;
    counts[node.depth] = index + 1;
    counts.push(0);
    const isElement = nodes[parent]?.kind === "list";
    const name = /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(node.name) ? node.name : `[${JSON.stringify(node.name)}]`;
    const step = isElement ? `[${index}]` : name;
    const plainStep = isElement ? "[]" : node.name;
    // The record of all fields is left out, as in filters.
    const isTop = !around || (around.parent < 0 && around.path === "");
    const path = node.depth === 0 && node.name === "fields" ? "" : join(isTop ? "" : (around?.path ?? ""), step);
    const plain = `${around?.plain ?? ""}.${plainStep}`;
    if (around) around.hasParts = true;
    found.push({ path, plain, parent, hasParts: false, index, colour: "" });
    open.push(number);
  }
  paint(nodes, found);
  return found;
}

/**
 * Chooses the colours of fields: the same for the same name in every message, unless the field before it already
 * has that colour.
 * @param {T.FieldNode[]} nodes
 * @param {Place[]} found
 */
function paint(nodes, found) {
  /** @type {Place | null} */
  let before = null;
  for (const [number, place] of found.entries()) {
    if (place.hasParts) continue;
    const around = nodes[place.parent];
    place.colour = colour(nodes[number]?.name || around?.name || "");
    if (before && before.plain !== place.plain && before.colour === place.colour) place.colour = next(place.colour);
    before = place;
  }
}

/** @param {string} path @param {string} step */
function join(path, step) {
  if (path === "") return step;
  return step.startsWith("[") ? path + step : `${path}.${step}`;
}

/** The class of the colour of a name. @param {string} name */
function colour(name) {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  }
  return `c${(hash >>> 8) % COLOURS}`;
}

/** A colour that is easily distinguished from another one. @param {string} other */
const next = (other) => `c${(Number(other.slice(1)) + 5) % COLOURS}`;

/**
 * A filter that finds messages with the same value of a field.
 * @param {T.FieldNode} node
 * @param {string} path
 * @returns {string | null}
 */
export function filterFor(node, path) {
  if (path === "") return null;
  if (node.json === undefined) return `exists(${path})`;
  const value = JSON.parse(node.json);
  switch (node.kind) {
    case "null":
      return `${path} == null`;
    case "flags":
      if (!Array.isArray(value) || value.length === 0) return `${path} == 0`;
      return value.map((flag) => `${path} has ${flag}`).join(" and ");
    case "bytes":
      return `${path} == hex"${value?.$hex ?? ""}"`;
    case "enum":
      return `${path} == ${typeof value === "string" && !/^[\w]+$/.test(value) ? literal(value) : value}`;
    case "bool":
      return `${path} == ${value}`;
    default:
      if (typeof value === "object" && value !== null) return `${path} == hex"${value.$hex ?? ""}"`;
      // Integers of more than 53 bits are JSON strings.
      if (node.kind === "number" || node.kind === "hex") return `${path} == ${value}`;
      return `${path} == ${typeof value === "string" ? literal(value) : value}`;
  }
}

/** @param {string} text */
function literal(text) {
  const escaped = text.replace(/["\\]/g, "\\$&");
  return `"${escaped.replace(/\p{Cc}/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)}"`;
}
