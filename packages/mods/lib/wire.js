'use strict';
// The binary form of the proxy's hook protocol (docs/hooks.md). A frame has a length, a kind and content.

const KINDS = { json: 0, message: 1, answer: 2, add: 3 };
const DO = { pass: 0, forward: 1, drop: 2, replace: 3, hold: 4 };
/** The maximum length of a frame from the proxy. */
const MAX_FRAME_BYTES = 64 << 20;
/** The maximum number of messages that one frame can add. */
const MAX_ADDED = 256;
const BLOCK_BYTES = 64 << 10;

/**
 * A message as the proxy shows it.
 * @typedef {object} Shown
 * @property {number} conversation
 * @property {number} number
 * @property {boolean} fromServer
 * @property {boolean} modified
 * @property {boolean} silenced
 * @property {boolean} fake
 * @property {number} start its position in its side's stream
 * @property {number} code its opcode; -1 if it is too short to have one
 * @property {Buffer} bytes the whole message
 */

/** A message in a frame. @implements {Shown} */
class FramedMessage {
  /** @type {Buffer | null} */
  #bytes = null;
  #frame;
  #from;
  #to;

  /** @param {Buffer} frame @param {number} at where its content begins @param {number} end */
  constructor(frame, at, end) {
    const flags = frame[at + 17];
    this.conversation = uint64(frame, at);
    this.number = uint64(frame, at + 8);
    this.fromServer = frame[at + 16] === 1;
    this.modified = (flags & 1) !== 0;
    this.silenced = (flags & 2) !== 0;
    this.fake = (flags & 4) !== 0;
    this.start = uint64(frame, at + 18);
    this.#frame = frame;
    this.#from = at + 36 + (frame[at + 34] | (frame[at + 35] << 8));
    this.#to = end;
    this.code = end - this.#from >= 4 ? frame[this.#from + 2] | (frame[this.#from + 3] << 8) : -1;
  }

  /** Created only when a hook needs them, because this takes as long as reading everything else. */
  get bytes() {
    this.#bytes ??= this.#frame.subarray(this.#from, this.#to);
    return this.#bytes;
  }
}

/** @typedef {{toClient: boolean, name: string, bytes: Buffer}} Addition */

/** Collects bytes from the proxy and splits them into frames. */
class FrameReader {
  #rest = Buffer.alloc(0);

  /**
   * @param {Buffer} chunk
   * @param {(message: Shown) => void} onMessage
   * @param {(line: any) => void} onJson
   */
  push(chunk, onMessage, onJson) {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    // A proxy that refuses the hello answers with a line.
    if (bytes[0] === 0x7b) throw new Error(`the proxy refused the connection: ${bytes.toString('utf8', 0, 1000).trim()}`);
    while (at + 5 <= bytes.length) {
      const length = bytes.readUInt32LE(at);
      if (length < 1 || length > MAX_FRAME_BYTES) throw new Error(`a frame cannot have ${length} bytes`);
      if (at + 4 + length > bytes.length) break;
      const kind = bytes[at + 4];
      const end = at + 4 + length;
      if (kind === KINDS.message) onMessage(new FramedMessage(bytes, at + 5, end));
      else if (kind === KINDS.json) onJson(JSON.parse(bytes.toString('utf8', at + 5, end)));
      at = end;
    }
    this.#rest = at === bytes.length ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at));
  }
}

/** @param {Buffer} bytes @param {number} at */
function uint64(bytes, at) {
  const low = uint32(bytes, at);
  const high = uint32(bytes, at + 4);
  // Small numbers stay integers, which are faster.
  return high === 0 ? low : low + high * 2 ** 32;
}

/** @param {Buffer} bytes @param {number} at */
function uint32(bytes, at) {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/** Collects frames for the proxy until they are taken. */
class FrameWriter {
  #block = Buffer.allocUnsafe(BLOCK_BYTES);
  #used = 0;

  /** @param {any} line */
  json(line) {
    const text = Buffer.from(JSON.stringify(line));
    const at = this.#frame(KINDS.json, text.length);
    text.copy(this.#block, at);
  }

  /**
   * @param {number} conversation @param {number} number
   * @param {number} action one of `DO`
   * @param {Addition[]} added messages to send before it, at most `MAX_ADDED`
   * @param {Buffer | null} bytes what to send instead
   */
  answer(conversation, number, action, added, bytes) {
    let at = this.#frame(KINDS.answer, 19 + sizeOf(added) + (bytes?.length ?? 0));
    at = this.#uint64(this.#uint64(at, conversation), number);
    this.#block[at++] = action;
    at = this.#additions(at, added);
    bytes?.copy(this.#block, at);
  }

  /** @param {number} conversation @param {Addition[]} added */
  add(conversation, added) {
    const at = this.#frame(KINDS.add, 10 + sizeOf(added));
    this.#additions(this.#uint64(at, conversation), added);
  }

  /** Everything written since the last call; null if there is nothing. */
  take() {
    if (this.#used === 0) return null;
    const bytes = this.#block.subarray(0, this.#used);
    this.#block = Buffer.allocUnsafe(BLOCK_BYTES);
    this.#used = 0;
    return bytes;
  }

  /** @param {number} kind @param {number} length without the kind. Returns where the content begins. */
  #frame(kind, length) {
    const needed = this.#used + 5 + length;
    if (needed > this.#block.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#block.length));
      this.#block.copy(larger, 0, 0, this.#used);
      this.#block = larger;
    }
    const at = this.#used;
    this.#uint32(at, length + 1);
    this.#block[at + 4] = kind;
    this.#used = needed;
    return at + 5;
  }

  /** @param {number} at @param {number} value */
  #uint64(at, value) {
    this.#uint32(at, value);
    return this.#uint32(at + 4, value < 2 ** 32 ? 0 : Math.floor(value / 2 ** 32));
  }

  /** @param {number} at @param {number} value */
  #uint32(at, value) {
    const block = this.#block;
    block[at] = value;
    block[at + 1] = value >>> 8;
    block[at + 2] = value >>> 16;
    block[at + 3] = value >>> 24;
    return at + 4;
  }

  /** @param {number} at @param {Addition[]} added */
  #additions(at, added) {
    this.#block[at++] = added.length;
    this.#block[at++] = added.length >>> 8;
    for (const { toClient, name, bytes } of added) {
      this.#block[at++] = toClient ? 0 : 1;
      at = this.#block.writeUInt16LE(name.length, at);
      at += this.#block.write(name, at, 'latin1');
      at = this.#block.writeUInt32LE(bytes.length, at);
      at += bytes.copy(this.#block, at);
    }
    return at;
  }
}

/** @param {Addition[]} added */
function sizeOf(added) {
  let size = 0;
  for (const { name, bytes } of added) size += 7 + name.length + bytes.length;
  return size;
}

module.exports = { DO, FrameReader, FrameWriter, MAX_ADDED };
