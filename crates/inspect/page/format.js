// Numbers and times as text.

const SECOND = 1_000_000_000n;
const NUMBERS = new Intl.NumberFormat("en");

/** @param {number} count */
export function grouped(count) {
  return NUMBERS.format(count);
}

/**
 * `1 message`, `2 messages`.
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

/**
 * Seconds with six digits between two times in nanoseconds.
 * @param {string} time
 * @param {string} since
 */
export function seconds(time, since) {
  const nanos = BigInt(time) - BigInt(since);
  const sign = nanos < 0n ? "-" : "";
  const micros = (nanos < 0n ? -nanos : nanos) / 1000n;
  return `${sign}${micros / 1_000_000n}.${String(micros % 1_000_000n).padStart(6, "0")}`;
}

/**
 * A date and time in UTC with six digits.
 * @param {string} time nanoseconds since 1970
 */
export function utc(time) {
  const nanos = BigInt(time);
  const below = ((nanos % SECOND) + SECOND) % SECOND;
  const date = new Date(Number((nanos - below) / 1_000_000n));
  if (Number.isNaN(date.getTime())) return `${nanos / SECOND} s`;
  const micros = String(below / 1000n).padStart(6, "0");
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${micros}`;
}

/**
 * A duration in seconds, short.
 * @param {number} value
 */
export function duration(value) {
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1e3).toFixed(0)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  if (value < 7200) return `${(value / 60).toFixed(0)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

/**
 * A text without line breaks, for places with a single line.
 * @param {string} text
 */
export const oneLine = (text) => text.trim().replace(/\s*\n\s*/g, " ");

/**
 * Bytes of hexadecimal digits.
 * @param {string} digits
 */
export function bytesOf(digits) {
  const bytes = new Uint8Array(digits.length / 2);
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = parseInt(digits.slice(2 * index, 2 * index + 2), 16);
  }
  return bytes;
}

/** @param {number} value @param {number} width */
export function hex(value, width) {
  return value.toString(16).padStart(width, "0");
}
