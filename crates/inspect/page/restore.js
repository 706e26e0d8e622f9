// After a reload, shows the messages and the row that were shown before.

import { show } from "./filter.js";
import { showRow } from "./messages.js";
import { values, watch } from "./store.js";

/** Where the browser keeps what is shown, until the tab is closed. */
const KEY = "worldwire-shown";

/**
 * The capture, and what was shown of it.
 * @typedef {{capture: string, filter: string, stream: number | null, row: number | null}} Kept
 */

/** @type {Kept | null} */
let kept = null;
/** Whether it has been restored. Until then, changes are not saved. */
let isRestored = false;
/** The row to show once it has been read. @type {number | null} */
let row = null;

/** Identifies the capture: another one can be served at the same address later. */
const own = () => `${values.capture?.file} ${values.capture?.first}`;

function keep() {
  if (!isRestored || row !== null) return;
  const { filter, stream } = values.shown;
  /** @type {Kept} */
  const now = { capture: own(), filter, stream, row: values.row?.row ?? null };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(now));
  } catch {
    // A reload then shows everything.
  }
}

async function restore() {
  isRestored = true;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch {
    kept = null;
  }
  if (kept?.capture !== own()) return;
  const { filter, stream } = kept;
  if (filter || stream !== null) await show({ filter, stream });
  row = kept.row;
  reach();
}

/** Shows the row again, if it has been read and the filter has found it. */
export function reach() {
  if (row === null || (values.capture?.rows ?? 0) <= row) return;
  const { selection } = values.shown;
  if (selection && !selection.complete && !selection.caught_up) return;
  const wanted = row;
  row = null;
  // The user may already have chosen a row.
  if (values.row === null) void showRow(wanted);
}

watch(["capture"], () => {
  if (!isRestored && values.capture?.first) void restore();
  reach();
});
watch(["shown", "row"], keep);
