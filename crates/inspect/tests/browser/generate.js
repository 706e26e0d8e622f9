// Generates captures of plain KI connections, in the classic format.

import { closeSync, openSync, writeSync } from "node:fs";

const HEADER = Buffer.from("4d3cb2a1020004000000000000000000ffff0000e4000000", "hex");
/** 2026-01-01 00:00 UTC. */
const DAY = 1_767_225_600;
/** The offer of a server and the answer of a client, which identify the family. */
const OFFER = Buffer.from("0df018000100000001000000000000b9556900000000010000000000", "hex");
const ACCEPT = Buffer.from("0df01a000105000000000000000000b95569020000000100010000000000", "hex");

/** MADEUP.MSG_WEATHER of `samples/ki-messages`. @param {number} zone @param {Buffer} sky */
export function weather(zone, sky) {
  const fields = Buffer.alloc(8 + 2 + sky.length + 4);
  fields.writeBigUInt64LE(BigInt(zone), 0);
  fields.writeUInt16LE(sky.length, 8);
  sky.copy(fields, 10);
  fields.writeFloatLE(zone % 100, 10 + sky.length);
  const message = Buffer.alloc(8 + 4 + fields.length + 1);
  message.writeUInt16LE(0xf00d, 0);
  message.writeUInt16LE(message.length - 4, 2);
  message.writeUInt8(200, 8);
  message.writeUInt8(1, 9);
  message.writeUInt16LE(4 + fields.length, 10);
  fields.copy(message, 12);
  return message;
}

/** Writes packets to a file. */
export class Capture {
  /** @param {string} path */
  constructor(path) {
    this.file = openSync(path, "w");
    this.buffer = Buffer.alloc(1 << 22);
    HEADER.copy(this.buffer);
    this.used = HEADER.length;
    this.micros = 0;
  }

  /**
   * One packet: raw IPv4 with TCP.
   * @param {[number, number]} ports source and destination
   * @param {number} sequence
   * @param {number} acknowledged
   * @param {number} flags
   * @param {Buffer} payload
   */
  packet([source, destination], sequence, acknowledged, flags, payload) {
    const length = 40 + payload.length;
    if (this.used + 16 + length > this.buffer.length) this.flush();
    const { buffer } = this;
    let at = this.used;
    buffer.writeUInt32LE(DAY + Math.floor(this.micros / 1e6), at);
    // The magic number selects nanoseconds.
    buffer.writeUInt32LE((this.micros % 1e6) * 1000, at + 4);
    buffer.writeUInt32LE(length, at + 8);
    buffer.writeUInt32LE(length, at + 12);
    at += 16;
    buffer.fill(0, at, at + 40);
    buffer.writeUInt8(0x45, at);
    buffer.writeUInt16BE(length, at + 2);
    buffer.writeUInt8(64, at + 8);
    buffer.writeUInt8(6, at + 9);
    buffer.writeUInt32BE(0xc0000200 + (source === 12000 ? 2 : 1), at + 12);
    buffer.writeUInt32BE(0xc0000200 + (source === 12000 ? 1 : 2), at + 16);
    buffer.writeUInt16BE(source, at + 20);
    buffer.writeUInt16BE(destination, at + 22);
    buffer.writeUInt32BE(sequence >>> 0, at + 24);
    buffer.writeUInt32BE(acknowledged >>> 0, at + 28);
    buffer.writeUInt8(0x50, at + 32);
    buffer.writeUInt8(flags, at + 33);
    buffer.writeUInt16BE(0xffff, at + 34);
    payload.copy(buffer, at + 40);
    this.used = at + length;
    this.micros += 100;
  }

  flush() {
    writeSync(this.file, this.buffer, 0, this.used);
    this.used = 0;
  }

  close() {
    this.flush();
    closeSync(this.file);
  }
}

/** One connection. */
export class Talk {
  /** @param {Capture} capture @param {number} port */
  constructor(capture, port) {
    this.capture = capture;
    this.port = port;
    this.next = { client: 1, server: 1 };
    const none = Buffer.alloc(0);
    capture.packet([port, 12000], 0, 0, 0x02, none);
    capture.packet([12000, port], 0, 1, 0x12, none);
    capture.packet([port, 12000], 1, 1, 0x10, none);
    this.send("server", OFFER);
    this.send("client", ACCEPT);
  }

  /** @param {"client" | "server"} from @param {Buffer} payload @param {number} [lost] bytes that the capture lacks */
  send(from, payload, lost = 0) {
    const to = from === "client" ? "server" : "client";
    this.next[from] += lost;
    /** @type {[number, number]} */
    const ports = from === "client" ? [this.port, 12000] : [12000, this.port];
    this.capture.packet(ports, this.next[from], this.next[to], 0x18, payload);
    this.next[from] += payload.length;
  }
}

/**
 * Writes a capture with this many messages in a few connections.
 * @param {string} path
 * @param {number} count
 * @param {number} [length] of the text in each message
 * @param {number} [talks]
 */
export function generate(path, count, length = 8, talks = 4) {
  const capture = new Capture(path);
  const all = Array.from({ length: talks }, (_, number) => new Talk(capture, 50000 + number));
  for (let number = 0; number < count; number++) {
    const talk = all[number % all.length];
    const text = `sky ${number} `.padEnd(length, ".");
    talk?.send(number % 3 ? "server" : "client", weather(number, Buffer.from(text, "latin1")));
  }
  capture.close();
}

// `node generate.js FILE MESSAGES [LENGTH] [CONNECTIONS]`
if (process.argv[1]?.endsWith("generate.js")) {
  const [path = "", ...numbers] = process.argv.slice(2);
  const [count = 1000, length, talks] = numbers.map(Number);
  generate(path, count, length, talks);
}
