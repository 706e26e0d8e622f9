'use strict';
// Compiles definitions to functions that read and write messages.
//
// Numbers are little-endian, and offsets count from the first byte of the message. A scope is the
// message or an element of an array. It begins with the metadata of its variable-length fields: the
// offset for text, offset and count for bytes, count and offset for arrays. In a definition with
// `ref` lines, these say where the metadata is. An element begins with its own offset and the
// offset of the next one.

const { Vec3, readSkill, skillWord, readLooks, writeLooks } = require('./types');
const { DefinitionError, SIZES } = require('./definition');

/** @typedef {import('./definition').Field} Field */

/** The maximum length of a message in bytes. */
const MAX_BYTES = 65_535;
/** The maximum number of elements in a list to write. */
const MAX_ELEMENTS = 65_535;
/**
 * The maximum number of elements, characters and bytes to read from one message. Parts of a message
 * can be shared, so a short one could otherwise take minutes and gigabytes.
 */
const MAX_PARTS = 262_144;
const HEADER_BYTES = 4;
const RADIANS = Math.PI / 32768;
/** Multiplying by this rounds as tera-toolbox does; dividing by `RADIANS` does not. */
const UNITS = 32768 / Math.PI;

const scratch = Buffer.alloc(MAX_BYTES + 256);
const scratchView = new DataView(scratch.buffer, scratch.byteOffset, scratch.byteLength);
const EMPTY = Object.freeze({});

/** Names that compiled functions use. */
const CONTEXT = {
  Vec3, readSkill, skillWord, readLooks, writeLooks, RADIANS, UNITS, EMPTY, MAX_PARTS, bytesAt, count, int64, tooMany,
};

/** A definition that can read and write messages. */
class Codec {
  /** @param {Field[]} fields */
  constructor(fields) {
    this.fields = fields;
    this.isExplicit = hasRefs(fields);
    const source = new Reader(this.isExplicit).message(fields);
    this.makeReader = compile(['Event'], `return ${source}`);
    this.write = compile([], `return ${new Writer(this.isExplicit).message(fields)}`)();
    /** @type {Map<any, (bytes: Buffer, view: DataView, at: number) => any>} */
    this.readers = new Map();
  }

  /**
   * Reads a message. `Event` is the class of the result.
   * @param {Buffer} bytes
   * @param {number} header its length in bytes
   * @param {new () => any} Event
   */
  read(bytes, header = HEADER_BYTES, Event = /** @type {any} */ (Object)) {
    // A separate class for each definition and base class keeps V8's property accesses fast.
    const read = this.readers.get(Event) ?? this.#addReader(Event);
    return read(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), header);
  }

  /** @param {new () => any} Event */
  #addReader(Event) {
    const read = this.makeReader(Event);
    this.readers.set(Event, read);
    return read;
  }

  /**
   * Writes a message. Missing fields are zero or empty.
   * @param {number} code
   * @param {any} fields
   * @param {number} header the header's length in bytes
   * @returns {Buffer}
   */
  encode(code, fields, header = HEADER_BYTES) {
    scratch.fill(0, 4, header);
    let length;
    try {
      length = this.write(scratch, scratchView, fields ?? EMPTY, header);
    } catch (error) {
      if (error instanceof RangeError && /bounds|out of range/i.test(error.message)) length = Infinity;
      else throw error;
    }
    if (length > MAX_BYTES) throw new RangeError(`the message has more than ${MAX_BYTES} bytes`);
    scratchView.setUint16(0, length, true);
    scratchView.setUint16(2, code, true);
    return Buffer.from(scratch.subarray(0, length));
  }
}

/** @param {string[]} names @param {string} body @returns {any} */
function compile(names, body) {
  const context = Object.entries(CONTEXT);
  const make = new Function(...context.map(([name]) => name), ...names, `'use strict';\n${body}`);
  return (/** @type {any[]} */ ...rest) => make(...context.map(([, value]) => value), ...rest);
}

/** @param {Field[]} fields @returns {boolean} */
function hasRefs(fields) {
  return fields.some(({ type, fields: inner }) => type === 'ref' || (inner !== undefined && hasRefs(inner)));
}

/** @param {string} type */
const isVariable = (type) => ['string', 'bytes', 'array'].includes(type);

/** The variable-length fields in a scope, with their paths. @param {Field[]} fields @returns {[string, Field][]} */
function variables(fields, prefix = '') {
  return fields.flatMap((field) => {
    if (field.type === 'object') return variables(field.fields ?? [], `${prefix}${field.name}.`);
    return isVariable(field.type) ? [/** @type {[string, Field]} */ ([prefix + field.name, field])] : [];
  });
}

/** What reading and writing share: the positions of metadata. */
class Generator {
  /** @param {boolean} isExplicit */
  constructor(isExplicit) {
    this.isExplicit = isExplicit;
    this.count = 0;
  }

  /** @param {string} kind */
  fresh(kind) { return `${kind}${this.count++}`; }

  /**
   * Code for the metadata and fields of a scope.
   * @param {Field[]} fields
   * @param {boolean} isExplicit whether `ref` lines place the metadata
   * @param {(field: Field, slot: string) => string} metadata
   * @param {(scope: Scope) => string} body
   */
  scope(fields, isExplicit, metadata, body) {
    /** @type {Scope} */
    const scope = { slots: new Map(), refs: new Map() };
    for (const [path, field] of variables(fields)) {
      const slot = this.fresh('m');
      scope.slots.set(field, slot);
      if (isExplicit) scope.refs.set(path, field);
    }
    let code = '';
    if (!isExplicit) {
      for (const [field, slot] of scope.slots) code += metadata(field, slot);
    }
    return code + body(scope);
  }

  /** The field that a `ref` line places. @param {Scope} scope @param {Field} ref @param {string} prefix */
  placed(scope, ref, prefix) {
    const path = scope.refs.has(ref.name) ? ref.name : prefix + ref.name;
    const field = scope.refs.get(path);
    // Some legacy definitions have a `ref` line but lack the field itself. Two bytes take its place.
    if (field === undefined) return null;
    scope.refs.delete(path);
    return field;
  }

  /** @param {Scope} scope @param {Field} field */
  checkPlaced(scope, field) {
    if ([...scope.refs.values()].includes(field)) {
      throw new DefinitionError(`${field.name} must follow a line "ref ${field.name}"`);
    }
  }
}

/** @typedef {{slots: Map<Field, string>, refs: Map<string, Field>}} Scope */

class Reader extends Generator {
  /** @param {Field[]} fields */
  message(fields) {
    /** @type {[string, string][]} */
    const values = [];
    const code = this.fields(fields, values);
    const set = values.map(([name, value]) => `this[${JSON.stringify(name)}] = ${value};`).join('\n');
    return `(() => {
      class Message extends Event { constructor(b, d, o) { super(); let n = 0;\n${code}${set} } }
      return (b, d, o) => new Message(b, d, o);
    })()`;
  }

  /** @param {Field[]} fields @param {[string, string][]} values filled with names and expressions */
  fields(fields, values, isExplicit = this.isExplicit) {
    return this.scope(fields, isExplicit, (field, slot) => this.metadata(field, slot), (scope) => this.each(fields, scope, '', values));
  }

  /** @param {Field} field @param {string} slot */
  metadata({ type }, slot) {
    const first = `const ${slot} = d.getUint16(o, true);`;
    return type === 'string' ? `${first} o += 2;\n` : `${first} const ${slot}b = d.getUint16(o + 2, true); o += 4;\n`;
  }

  /** @param {Field[]} fields @param {Scope} scope @param {string} prefix @param {[string, string][]} values @returns {string} */
  each(fields, scope, prefix, values) {
    let code = '';
    for (const field of fields) {
      if (field.type === 'ref') {
        const placed = this.placed(scope, field, prefix);
        code += placed ? this.metadata(placed, scope.slots.get(placed) ?? '') : 'o += 2;\n';
      } else if (field.type === 'object') {
        const inner = /** @type {[string, string][]} */ ([]);
        code += this.each(field.fields ?? [], scope, `${prefix}${field.name}.`, inner);
        // Some definitions continue an object after other fields.
        const begun = values.find(([name]) => name === field.name);
        if (begun) begun[1] = `Object.assign(${begun[1]}, ${literal(inner)})`;
        else values.push([field.name, literal(inner)]);
      } else {
        this.checkPlaced(scope, field);
        const name = this.fresh('v');
        code += isVariable(field.type)
          ? this.body(field, scope.slots.get(field) ?? '', name)
          : `const ${name} = ${fixed(field.type)}; o += ${SIZES[/** @type {keyof SIZES} */ (field.type)]};\n`;
        values.push([field.name, name]);
      }
    }
    return code;
  }

  /** @param {Field} field @param {string} slot @param {string} name */
  body({ type, fields = [], isValue }, slot, name) {
    if (type === 'string') {
      return `o = ${slot}; while (d.getUint16(o, true) !== 0) o += 2;
        if ((n += (o - ${slot}) / 2) > MAX_PARTS) tooMany();
        const ${name} = b.ucs2Slice(${slot}, o); o += 2;\n`;
    }
    if (type === 'bytes') return `if ((n += ${slot}b) > MAX_PARTS) tooMany(); const ${name} = bytesAt(b, ${slot}, ${slot}b); o = ${slot} + ${slot}b;\n`;
    /** @type {[string, string][]} */
    const values = [];
    // Definitions cannot place the metadata of elements without fields.
    const element = this.fields(fields, values, this.isExplicit && !isValue);
    const next = this.fresh('q');
    const index = this.fresh('i');
    return `const ${name} = []; let ${next} = ${slot}b;
      for (let ${index} = 0; ${index} < ${slot} && ${next} !== 0; ${index}++) {
        if (++n > MAX_PARTS) tooMany();
        o = ${next} + 4; ${next} = d.getUint16(${next} + 2, true);
        ${element}${name}.push(${isValue ? values[0][1] : literal(values)});
      }\n`;
  }
}

/** @param {[string, string][]} values */
function literal(values) {
  const members = values.map(([name, value]) => `${name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)}: ${value}`);
  return `{ ${members.join(', ')} }`;
}

/** The expression that reads a fixed-size value at `o`. @param {string} type */
function fixed(type) {
  switch (type) {
    case 'bool': return 'd.getUint8(o) !== 0';
    case 'byte': return 'd.getUint8(o)';
    case 'int16': return 'd.getInt16(o, true)';
    case 'uint16': return 'd.getUint16(o, true)';
    case 'int32': return 'd.getInt32(o, true)';
    case 'uint32': return 'd.getUint32(o, true)';
    case 'int64': return 'd.getBigInt64(o, true)';
    case 'uint64': return 'd.getBigUint64(o, true)';
    case 'float': return 'd.getFloat32(o, true)';
    case 'double': return 'd.getFloat64(o, true)';
    case 'angle': return 'd.getInt16(o, true) * RADIANS';
    case 'vec3': return 'new Vec3(d.getFloat32(o, true), d.getFloat32(o + 4, true), d.getFloat32(o + 8, true))';
    case 'vec3fa':
      return 'new Vec3(d.getFloat32(o, true) * RADIANS, d.getFloat32(o + 4, true) * RADIANS, d.getFloat32(o + 8, true) * RADIANS)';
    case 'skillid': return "readSkill(d.getBigUint64(o, true), 'skillid')";
    case 'skillid32': return "readSkill(BigInt(d.getUint32(o, true)), 'skillid32')";
    case 'customize': return 'readLooks(d, o)';
    default: throw new DefinitionError(`unknown type ${type}`);
  }
}

class Writer extends Generator {
  /** @param {Field[]} fields */
  message(fields) { return `(b, d, v, o) => {\n${this.fields(fields, 'v')}return o; }`; }

  /** @param {Field[]} fields @param {string} from */
  fields(fields, from, isExplicit = this.isExplicit) {
    return this.scope(fields, isExplicit, (field, slot) => this.metadata(field, slot), (scope) => this.each(fields, scope, '', from));
  }

  /** @param {Field} field @param {string} slot */
  metadata({ type }, slot) {
    if (type === 'string') return `const ${slot} = o; o += 2;\n`;
    return `const ${slot} = o; d.setUint32(o, 0, true); o += 4;\n`;
  }

  /** @param {Field[]} fields @param {Scope} scope @param {string} prefix @param {string} from @returns {string} */
  each(fields, scope, prefix, from) {
    let code = '';
    for (let at = 0; at < fields.length; at++) {
      const field = fields[at];
      const value = `${from}[${JSON.stringify(field.name)}]`;
      if (field.type === 'ref') {
        const placed = this.placed(scope, field, prefix);
        code += placed ? this.metadata(placed, scope.slots.get(placed) ?? '') : 'd.setUint16(o, 0, true); o += 2;\n';
      } else if (field.type === 'object') {
        const name = this.fresh('v');
        code += `const ${name} = ${value} ?? EMPTY;\n`;
        code += this.each(field.fields ?? [], scope, `${prefix}${field.name}.`, name);
      } else if (field.type === 'array') {
        const group = [field];
        while (field.interleaved && fields[at + 1]?.interleaved) group.push(fields[++at]);
        group.forEach((one) => this.checkPlaced(scope, one));
        code += this.arrays(group, scope, from);
      } else {
        this.checkPlaced(scope, field);
        code += isVariable(field.type) ? this.body(field, scope.slots.get(field) ?? '', value) : stored(field.type, value);
      }
    }
    return code;
  }

  /** @param {Field} field @param {string} slot @param {string} value */
  body({ type }, slot, value) {
    const name = this.fresh('v');
    if (type === 'bytes') {
      return `const ${name} = ${value} ?? []; d.setUint16(${slot}, o, true); d.setUint16(${slot} + 2, ${name}.length, true);
        b.set(${name}, o); o += ${name}.length;\n`;
    }
    return `const ${name} = typeof ${value} === 'string' ? ${value} : ''; d.setUint16(${slot}, o, true);
      if (${name}.length < 16) {
        for (let i = 0; i < ${name}.length; i++, o += 2) d.setUint16(o, ${name}.charCodeAt(i), true);
      } else {
        if (o + 2 * ${name}.length > b.length) throw new RangeError('out of range');
        o += b.ucs2Write(${name}, o);
      }
      d.setUint16(o, 0, true); o += 2;\n`;
  }

  /** Neighbouring arrays whose elements are mixed, or a single one. @param {Field[]} group @param {Scope} scope @param {string} from */
  arrays(group, scope, from) {
    const index = this.fresh('i');
    let [before, within] = ['', ''];
    /** @type {string[]} */
    const lengths = [];
    for (const field of group) {
      const slot = scope.slots.get(field) ?? '';
      const [list, link, element] = [this.fresh('a'), this.fresh('k'), this.fresh('e')];
      const from_ = `${from}[${JSON.stringify(field.name)}]`;
      // The word that must point to the next element; at the beginning, the array's own offset.
      before += `const ${list} = ${from_} ?? []; d.setUint16(${slot}, count(${list}), true); let ${link} = ${slot} + 2;\n`;
      lengths.push(`${list}.length`);
      const item = field.isValue ? `{ value: ${list}[${index}] }` : `${list}[${index}] ?? EMPTY`;
      within += `if (${index} < ${list}.length) {
        const ${element} = ${item};
        d.setUint16(${link}, o, true); d.setUint16(o, o, true); d.setUint16(o + 2, 0, true); ${link} = o + 2; o += 4;
        ${this.fields(field.fields ?? [], element, this.isExplicit && !field.isValue)}}\n`;
    }
    return `${before}for (let ${index} = 0; ${index} < Math.max(${lengths.join(', ')}); ${index}++) {\n${within}}\n`;
  }
}

/** Code that writes a fixed-size value at `o`. @param {string} type @param {string} value */
function stored(type, value) {
  const size = SIZES[/** @type {keyof SIZES} */ (type)];
  const point = (/** @type {string} */ factor) => `{ const p = ${value} ?? EMPTY;
    d.setFloat32(o, (p.x ?? 0)${factor}, true); d.setFloat32(o + 4, (p.y ?? 0)${factor}, true);
    d.setFloat32(o + 8, (p.z ?? 0)${factor}, true); }`;
  const code = {
    bool: `d.setUint8(o, ${value} ? 1 : 0);`,
    byte: `d.setUint8(o, ${value});`,
    int16: `d.setInt16(o, ${value}, true);`,
    uint16: `d.setUint16(o, ${value}, true);`,
    int32: `d.setInt32(o, ${value}, true);`,
    uint32: `d.setUint32(o, ${value}, true);`,
    int64: `d.setBigInt64(o, int64(${value}), true);`,
    uint64: `d.setBigUint64(o, int64(${value}), true);`,
    float: `d.setFloat32(o, ${value} ?? 0, true);`,
    double: `d.setFloat64(o, ${value} ?? 0, true);`,
    angle: `d.setInt16(o, (${value} ?? 0) * UNITS, true);`,
    vec3: point(''),
    vec3fa: point(' * UNITS'),
    skillid: `d.setBigUint64(o, skillWord(${value}, 'skillid'), true);`,
    skillid32: `d.setUint32(o, Number(skillWord(${value}, 'skillid32')), true);`,
    customize: `writeLooks(d, o, ${value});`,
  }[type];
  return `${code} o += ${size};\n`;
}

/** @param {Buffer} bytes @param {number} at @param {number} length */
function bytesAt(bytes, at, length) {
  if (length > 0 && at + length > bytes.length) throw new RangeError('bytes end after the message');
  return Buffer.from(bytes.subarray(at, at + length));
}

function tooMany() {
  throw new RangeError(`more than ${MAX_PARTS} elements and characters`);
}

/** @param {any[]} list */
function count(list) {
  if (list.length > MAX_ELEMENTS) throw new RangeError(`more than ${MAX_ELEMENTS} elements`);
  return list.length;
}

/** @param {any} value an integer, its digits, or an older mod's object with `low` and `high` */
function int64(value) {
  if (typeof value === 'bigint') return value;
  if (typeof value?.low === 'number') return (BigInt(value.high ?? 0) << 32n) | BigInt(value.low >>> 0);
  return value ? BigInt(value) : 0n;
}

module.exports = { Codec, MAX_BYTES };
