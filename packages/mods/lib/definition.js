'use strict';
// Reads message definitions: `NAME.VERSION.def`, in the dialect of tera-toolbox.

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} type a fixed type, or string, bytes, array, object or ref
 * @property {Field[]} [fields] of an object, or of an array's elements
 * @property {boolean} [isValue] whether an array's elements are values instead of objects
 * @property {boolean} [interleaved] whether an array's elements are mixed with its neighbours'
 */

/** The sizes of types with a fixed size. */
const SIZES = {
  bool: 1, byte: 1, int16: 2, uint16: 2, angle: 2, int32: 4, uint32: 4, float: 4, skillid32: 4,
  int64: 8, uint64: 8, double: 8, skillid: 8, customize: 8, vec3: 12, vec3fa: 12,
};
const MAX_DEPTH = 16;

/** An error in a definition, with its line. */
class DefinitionError extends Error {}

/**
 * @param {string} text
 * @returns {Field[]}
 */
function parseDefinition(text) {
  /** @type {Field[]} */
  const root = [];
  const open = [root];
  text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/).forEach((line, index) => {
    const fail = (/** @type {string} */ what) => new DefinitionError(`line ${index + 1}: ${what}`);
    const content = line.replace(/#.*/, '').trim();
    if (content === '') return;
    const match = /^((?:-\s*)*)([A-Za-z0-9]+(?:\s*[<[][^\s]*[>\]])*)\s+([\w.]+)$/.exec(content);
    if (match === null) throw fail(`"${content}" is not a field; write TYPE NAME`);
    const [, dashes, written, name] = match;
    const depth = dashes.replace(/[^-]/g, '').length;
    if (depth >= open.length) throw fail(`${name} has too many dashes`);
    if (depth > MAX_DEPTH) throw fail(`more than ${MAX_DEPTH} levels`);
    open.length = depth + 1;
    const field = fieldOf(written.replace(/\s/g, ''), name, fail);
    if (field === null) return;
    open[depth].push(field);
    if (field.fields && !field.isValue) open.push(field.fields);
  });
  return root;
}

/** @param {string} written @param {string} name @param {(what: string) => Error} fail @returns {Field | null} */
function fieldOf(written, name, fail) {
  const match = /^(\w+)(?:<(\w+)>)?(\[interleaved\])?$/.exec(written);
  if (match === null) throw fail(`unknown type ${written}`);
  const [, type, element, interleaved] = match;
  if (type === 'array') {
    if (element && !(element in SIZES) && element !== 'string') throw fail(`unknown type ${element}`);
    const fields = element ? [{ name: 'value', type: element }] : [];
    return { name, type, fields, isValue: Boolean(element), interleaved: Boolean(interleaved) };
  }
  if (element || interleaved) throw fail(`unknown type ${written}`);
  // Older definitions name both words of the metadata.
  if (type === 'count') return null;
  if (type === 'offset') return { name, type: 'ref' };
  if (type === 'object') return { name, type, fields: [] };
  if (type in SIZES || ['string', 'bytes', 'ref'].includes(type)) return { name, type };
  throw fail(`unknown type ${type}`);
}

/**
 * Reads a definition given as a list of `[name, type]`, where the type of an array or object is a
 * list of its fields. The list's property `type` says which of the two it is; the default is an
 * array.
 * @param {any[]} list
 * @returns {Field[]}
 */
function listedDefinition(list, depth = 0) {
  if (depth > MAX_DEPTH) throw new DefinitionError(`more than ${MAX_DEPTH} levels`);
  return list.flatMap((entry) => {
    const [name, type] = Array.isArray(entry) ? entry : [];
    if (typeof name !== 'string') throw new DefinitionError('an entry must have the form [name, type]');
    if (Array.isArray(type)) {
      const kind = /** @type {any} */ (type).type === 'object' ? 'object' : 'array';
      return [{ name, type: kind, fields: listedDefinition(type, depth + 1) }];
    }
    const field = fieldOf(String(type), name, (what) => new DefinitionError(`${name}: ${what}`));
    return field === null ? [] : [field];
  });
}

module.exports = { DefinitionError, SIZES, parseDefinition, listedDefinition };
