// Finds a text or bytes in all values of the shown messages.

import * as api from "./api.js";
import { byId, inputById, setAttribute, setText } from "./dom.js";
import { hasParts, pathOf } from "./fields.js";
import { counted, grouped, oneLine } from "./format.js";
import { showRow } from "./messages.js";
import { latestStatus, report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const input = inputById("search");
const count = byId("matches");
const caseButton = byId("match-case");
let matchesCase = false;
/** @type {T.SelectionStatus | null} */
let found = null;
let searched = "";
/** The match at the cursor, counted from 1; 0 if there is none. */
let place = 0;
/** The row of that match, until its field is chosen; -1 if there is none. */
let matched = -1;

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

/** A text as searches compare it. @param {string} text */
const fold = (text) => (matchesCase ? text : text.toLowerCase());

/**
 * The field of a message that has the text, or the bytes after `hex:`; -1 if it is elsewhere.
 * @param {T.Detail} detail
 */
function fieldOf(detail) {
  if (searched.startsWith("hex:")) return fieldWith(detail, searched.slice(4).replace(/[^0-9a-f]/gi, "").toLowerCase());
  const wanted = fold(searched);
  return detail.nodes.findIndex((node, number) => !hasParts(number) && fold(node.value).includes(wanted));
}

/** The innermost field at the first occurrence of some bytes. @param {T.Detail} detail @param {string} digits */
function fieldWith(detail, digits) {
  for (const [number, layer] of detail.layers.entries()) {
    let at = layer.bytes.indexOf(digits);
    while (at % 2 === 1) at = layer.bytes.indexOf(digits, at + 1);
    if (at < 0) continue;
    let innermost = -1;
    for (const [index, node] of detail.nodes.entries()) {
      const isAround = node.layer === number && node.start[0] <= at / 2 && at / 2 < node.end[0] + (node.end[1] ? 1 : 0);
      if (isAround && node.depth >= (detail.nodes[innermost]?.depth ?? 0)) innermost = index;
    }
    return innermost;
  }
  return -1;
}

/** Chooses the field that matched, once its message is decoded, and says what matched. */
function point() {
  const { detail } = values;
  if (!detail || detail.row !== matched) return;
  matched = -1;
  const number = fieldOf(detail);
  if (number >= 0) {
    set("node", number);
    set("message", `found in ${pathOf(number) || detail.nodes[number]?.name || "a field"}`);
  } else if (fold(detail.name).includes(fold(searched))) set("message", "found in the name of the message");
  else if (detail.note !== undefined) set("message", "found in the note");
  // It is in a value that is shown only in part.
  else set("message", "");
}

watch(["detail"], point);

/** Starts a search. */
async function start() {
  const text = input.value;
  const old = found;
  found = null;
  place = 0;
  searched = text;
  matched = -1;
  draw();
  try {
    if (old) await api.drop(old.id);
    if (text === "") return;
    const { filter, stream } = values.shown;
    const own = matchesCase;
    const status = await api.select({ filter, search: text, match_case: own, stream });
    if (searched !== text || own !== matchesCase) return void api.drop(status.id);
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
    matched = match.row;
    await showRow(match.row);
    if (found?.id !== id) return;
    place = wanted + 1;
    draw();
    // The message may be shown already.
    point();
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
caseButton.addEventListener("click", () => {
  matchesCase = !matchesCase;
  setAttribute(caseButton, "aria-pressed", matchesCase);
  if (found) void start();
});
byId("next").addEventListener("click", () => void go(1));
byId("previous").addEventListener("click", () => void go(-1));

/** A search applies to the messages that the filter shows. */
watch(["shown"], () => {
  if (found) void start();
});
