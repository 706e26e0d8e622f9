// Builds SVG elements. Like `element` of dom.js, it only ever sets text as text.

import { setAttribute, visible } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * An SVG element with attributes and children.
 * @param {string} tag
 * @param {Record<string, string | number | null | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  for (const child of children) made.append(typeof child === "string" ? visible(child) : child);
  return /** @type {SVGElement} */ (made);
}
