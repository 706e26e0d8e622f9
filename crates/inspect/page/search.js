// Finds a text or bytes in all values of the shown messages.

import * as api from "./api.js";
import { byId, inputById, setText } from "./dom.js";
import { counted, grouped, oneLine } from "./format.js";
import { showRow } from "./messages.js";
import { latestStatus, report, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const input = inputById("search");
const count = byId("matches");
/** @type {T.SelectionStatus | null} */
let found = null;
let searched = "";
/** The match at the cursor, counted from 1; 0 if there is none. */
let place = 0;

/** Handles a search's new status. @param {T.SelectionStatus} status */
export function update(status) {
  if (found?.id !== status.id) return;
  const isFirst = found.rows === 0 && status.rows > 0;
  found = status;
  draw();
  if (isFirst) void go(1, true);
}

function draw() {
  if (!found) return setText(count, "");
  const state = found.complete || found.caught_up ? "" : ", searching…";
  const all = counted(found.rows, "match").replace("matchs", "matches");
  const text = place > 0 ? `${grouped(place)} of ${grouped(found.rows)}` : all;
  setText(count, found.error ? oneLine(found.error) : `${text}${state}`);
}

/** Starts a search. */
async function start() {
  const text = input.value;
  const old = found;
  found = null;
  place = 0;
  searched = text;
  draw();
  try {
    if (old) await api.drop(old.id);
    if (text === "") return;
    const { filter, stream } = values.shown;
    const status = await api.select({ filter, search: text, stream });
    if (searched !== text) return void api.drop(status.id);
    found = latestStatus(status);
    draw();
    if (found.rows > 0) void go(1, true);
  } catch (error) {
    setText(count, oneLine(error instanceof Error ? error.message : String(error)));
    report(error);
  }
}

/**
 * Goes to the next or previous match.
 * @param {1 | -1} step
 * @param {boolean} [isHereAllowed]
 */
export async function go(step, isHereAllowed = false) {
  if (!found || found.rows === 0) return;
  const { id } = found;
  try {
    const row = values.row?.row ?? -1;
    const from = step > 0 ? row + (isHereAllowed && row >= 0 ? 0 : 1) : Math.max(row, 0);
    const { position } = await api.position(id, { row: from });
    let wanted = step > 0 ? position : position - 1;
    // Continues at the other end.
    if (wanted >= found.rows) wanted = 0;
    if (wanted < 0) wanted = found.rows - 1;
    const { rows } = await api.rows(id, wanted, 1);
    const match = rows[0];
    if (!match) return;
    await showRow(match.row);
    if (found?.id !== id) return;
    place = wanted + 1;
    draw();
  } catch (error) {
    report(error);
  }
}

/** Ends the search. */
export async function stop() {
  const old = found;
  found = null;
  place = 0;
  input.value = searched = "";
  draw();
  if (old) await api.drop(old.id);
}

input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    if (input.value !== searched || !found) void start();
    else void go(event.shiftKey ? -1 : 1);
  } else if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    void stop();
    byId("messages").focus();
  }
});
byId("next").addEventListener("click", () => void go(1));
byId("previous").addEventListener("click", () => void go(-1));

/** A search applies to the messages that the filter shows. */
watch(["shown"], () => {
  if (found) void start();
});
