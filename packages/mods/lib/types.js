'use strict';
// The classes of structured values in events: points, skills and appearance.

/** A point or direction. Methods return new vectors and leave the original unchanged. */
class Vec3 {
  /**
   * @param {number | {x: number, y: number, z: number}} [x] or an object with all three
   * @param {number} [y]
   * @param {number} [z]
   */
  constructor(x = 0, y = 0, z = 0) {
    if (typeof x === 'object' && x !== null) ({ x, y, z } = x);
    this.x = /** @type {number} */ (x);
    this.y = y;
    this.z = z;
  }

  clone() { return new Vec3(this.x, this.y, this.z); }
  /** @param {any} [x] @param {number} [y] @param {number} [z] */
  set(x, y, z) { return Object.assign(this, parts(x, y, z)); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  add(x, y, z) { return this.#each(parts(x, y, z), (a, b) => a + b); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  sub(x, y, z) { return this.#each(parts(x, y, z), (a, b) => a - b); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  mult(x, y, z) { return this.#each(parts(x, y, z), (a, b) => a * b); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  div(x, y, z) { return this.#each(parts(x, y, z), (a, b) => a / b); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  addN(x, y, z) { return this.add(x, y, z); }
  /** @param {any} x @param {number} [y] @param {number} [z] */
  subN(x, y, z) { return this.sub(x, y, z); }
  /** @param {number} by */
  scale(by) { return new Vec3(this.x * by, this.y * by, this.z * by); }

  /** Rotated around the vertical axis by an angle in radians. @param {number} angle */
  rotate(angle) {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return new Vec3(this.x * cos - this.y * sin, this.x * sin + this.y * cos, this.z);
  }

  /** @param {Vec3} other */
  equals(other) { return this.x === other.x && this.y === other.y && this.z === other.z; }
  length() { return Math.sqrt(this.sqrLen()); }
  sqrLen() { return this.x ** 2 + this.y ** 2 + this.z ** 2; }
  /** @param {Vec3} other */
  dist3D(other) { return Math.sqrt(this.sqrDist3D(other)); }
  /** @param {Vec3} other */
  sqrDist3D(other) { return this.sqrDist2D(other) + (this.z - other.z) ** 2; }
  /** Ignores the height. @param {Vec3} other */
  dist2D(other) { return Math.sqrt(this.sqrDist2D(other)); }
  /** @param {Vec3} other */
  sqrDist2D(other) { return (this.x - other.x) ** 2 + (this.y - other.y) ** 2; }
  toString() { return `${this.x},${this.y},${this.z}`; }

  /** @param {{x: number, y: number, z: number}} other @param {(a: number, b: number) => number} f */
  #each(other, f) {
    return new Vec3(f(this.x, other.x), f(this.y, other.y), f(this.z, other.z));
  }
}

/**
 * Three numbers, given one by one or as an object. A single number is used for all three.
 * @param {any} x @param {number} [y] @param {number} [z]
 */
function parts(x, y, z) {
  if (typeof x === 'object' && x !== null) return { x: x.x, y: x.y, z: x.z };
  return { x, y: y ?? x, z: z ?? x };
}

/** A skill, with the parts of its wire number. */
class SkillID {
  /**
   * @param {number | {id?: number, type?: number, npc?: boolean, huntingZoneId?: number, reserved?: number}} [id]
   *   a number is an action skill of a player
   * @param {number} [type] 1 is an action, 2 a reaction
   * @param {boolean} [npc]
   * @param {number} [huntingZoneId] only skills of NPCs with type 1 have one
   * @param {number} [reserved]
   */
  constructor(id = 0, type = 1, npc = false, huntingZoneId = 0, reserved = 0) {
    if (typeof id === 'object' && id !== null) {
      ({ id = 0, type = 1, npc = false, huntingZoneId = 0, reserved = 0 } = id);
    }
    this.id = /** @type {number} */ (id);
    this.type = type;
    this.npc = npc;
    this.huntingZoneId = huntingZoneId;
    this.reserved = reserved;
  }

  /** @param {any} other a skill, or the number of an action skill */
  equals(other) {
    const { id, type, npc, huntingZoneId, reserved } = SkillID.from(other);
    return this.id === id && this.type === type && this.npc === npc
      && this.huntingZoneId === huntingZoneId && this.reserved === reserved;
  }

  toString() {
    const kind = this.type === 1 ? 'A' : this.type === 2 ? 'R' : `[T${this.type}]`;
    const reserved = this.reserved ? `[X${this.reserved.toString(16)}]` : '';
    const zone = this.npc && this.type === 1 ? `${this.huntingZoneId}:` : '';
    return `${reserved}${kind}${zone}${this.id}`;
  }

  /** @param {any} value @returns {SkillID} */
  static from(value) {
    if (value instanceof SkillID) return value;
    return new SkillID(typeof value === 'object' && value !== null ? value : Number(value ?? 0));
  }
}

// Below the sign and type, a skill has an ID of this many bits. NPC skills split it into a hunting
// zone and a 16-bit ID.
const FORMS = {
  skillid: { id: 28n, type: 28n, npc: 32n, reserved: 33n, reservedBits: 31n },
  skillid32: { id: 26n, type: 26n, npc: 30n, reserved: 31n, reservedBits: 1n },
};

/** @param {bigint} word @param {'skillid' | 'skillid32'} form */
function readSkill(word, form) {
  const { id: bits, type: typeAt, npc: npcAt, reserved: reservedAt } = FORMS[form];
  const id = Number(word & ((1n << bits) - 1n));
  const type = Number((word >> typeAt) & 15n);
  const npc = ((word >> npcAt) & 1n) === 1n;
  const reserved = Number(word >> reservedAt);
  const isZoned = npc && type === 1;
  return new SkillID(isZoned ? id & 0xffff : id, type, npc, isZoned ? id >>> 16 : 0, reserved);
}

/** @param {any} value @param {'skillid' | 'skillid32'} form */
function skillWord(value, form) {
  if (value === undefined || value === null) return 0n;
  const { id: bits, type: typeAt, npc: npcAt, reserved: reservedAt, reservedBits } = FORMS[form];
  const { id, type, npc, huntingZoneId, reserved } = SkillID.from(value);
  const number = npc && type === 1 ? ((huntingZoneId & 0xfff) << 16) | (id & 0xffff) : id;
  return BigInt.asUintN(Number(bits), BigInt(Math.trunc(number)))
    | (BigInt(type & 15) << typeAt)
    | (npc ? 1n << npcAt : 0n)
    | (BigInt.asUintN(Number(reservedBits), BigInt(reserved)) << reservedAt);
}

/** The parts of a character's appearance, one byte each, in the order in which they are sent. */
const LOOKS = ['unk', 'skinColor', 'faceStyle', 'faceDecal', 'hairStyle', 'hairColor', 'voice', 'tattoos'];

/** @param {DataView} view @param {number} at @returns {Record<string, number>} */
function readLooks(view, at) {
  return {
    unk: view.getUint8(at),
    skinColor: view.getUint8(at + 1),
    faceStyle: view.getUint8(at + 2),
    faceDecal: view.getUint8(at + 3),
    hairStyle: view.getUint8(at + 4),
    hairColor: view.getUint8(at + 5),
    voice: view.getUint8(at + 6),
    tattoos: view.getUint8(at + 7),
  };
}

/** @param {DataView} view @param {number} at @param {any} value parts, or all of them as a BigInt */
function writeLooks(view, at, value) {
  if (typeof value === 'bigint') return view.setBigUint64(at, value, true);
  LOOKS.forEach((name, index) => view.setUint8(at + index, value?.[name] ?? 0));
}

module.exports = { Vec3, SkillID, readSkill, skillWord, readLooks, writeLooks };
