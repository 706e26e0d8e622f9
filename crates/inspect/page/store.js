// The values that views share, and the functions to call when they change.

import { oneLine } from "./format.js";

/** @import * as T from "./types.js" */

/**
 * @typedef {object} Shown What the list of messages shows.
 * @property {string} filter
 * @property {number | null} stream
 * @property {T.SelectionStatus | null} selection `null` shows everything.
 */

/**
 * @typedef {object} Values
 * @property {T.CaptureStatus | null} capture
 * @property {Shown} shown
 * @property {T.Row | null} row The row at the cursor.
 * @property {T.Detail | null} detail The decoded message at the cursor.
 * @property {number | null} node The index of the chosen field.
 * @property {T.Detail | null} marked The message to compare with.
 * @property {T.RowNote[]} notes
 * @property {T.LiveState | null} live What the running program reported.
 * @property {string} message The latest message to the user.
 * @property {string} fault The latest message about a failure.
 */

/** @type {Values} */
export const values = {
  capture: null,
  shown: { filter: "", stream: null, selection: null },
  row: null,
  detail: null,
  node: null,
  marked: null,
  notes: [],
  live: null,
  message: "",
  fault: "",
};

/** @type {Map<keyof Values, (() => void)[]>} */
const listeners = new Map();

/**
 * Calls a function after each change of some values.
 * @param {(keyof Values)[]} names
 * @param {() => void} act
 */
export function watch(names, act) {
  for (const name of names) listeners.set(name, [...(listeners.get(name) ?? []), act]);
}

/**
 * Changes a value.
 * @template {keyof Values} N
 * @param {N} name
 * @param {Values[N]} value
 */
export function set(name, value) {
  values[name] = value;
  for (const act of listeners.get(name) ?? []) act();
}

/** The server forgets selections beyond this number. */
const MAX_SELECTIONS = 64;
/** The latest status of each selection. @type {Map<number, T.SelectionStatus>} */
const statuses = new Map();

/**
 * Keeps the status of a selection that the server reported as an event.
 * @param {T.SelectionStatus} status
 */
export function keepStatus(status) {
  statuses.delete(status.id);
  statuses.set(status.id, status);
  const [oldest] = statuses.keys();
  if (oldest !== undefined && statuses.size > MAX_SELECTIONS) statuses.delete(oldest);
}

/** Forgets every status. After a restart, the server uses the same numbers again. */
export const forgetStatuses = () => statuses.clear();

/**
 * The latest status of a new selection. Events may overtake the response to the request for it.
 * @param {T.SelectionStatus} answer
 */
export const latestStatus = (answer) => statuses.get(answer.id) ?? answer;

/**
 * Reports a failure to the user.
 * @param {unknown} error
 */
export function report(error) {
  set("fault", oneLine(error instanceof Error ? error.message : String(error)));
  set("message", values.fault);
}
