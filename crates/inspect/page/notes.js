// Bookmarks and notes, which the server saves next to the capture.

import * as api from "./api.js";
import { byId, debounce, element, inputById, setAttribute } from "./dom.js";
import { showRow } from "./messages.js";
import { report, set, values, watch } from "./store.js";

const input = inputById("note");
const button = byId("bookmark");
const listing = byId("bookmarks");

/** The state of the file when it was read or written last. @type {string | null} */
let tag = null;

async function load() {
  try {
    const found = await api.notes();
    tag = found.tag;
    set("notes", found.notes);
  } catch (error) {
    report(error);
  }
}

const save = debounce(200, async () => {
  try {
    tag = await api.saveNotes(values.notes, tag);
    set("message", "notes saved next to the capture");
  } catch (error) {
    if (!(error instanceof api.Refused && error.status === 412)) return report(error);
    await merge();
  }
});

/** Another page changed the notes: adds its notes to this page's own. */
async function merge() {
  try {
    const theirs = await api.notes();
    tag = theirs.tag;
    const own = new Set(values.notes.map((note) => note.row));
    const others = theirs.notes.filter((note) => !own.has(note.row));
    set("notes", [...values.notes, ...others].sort((a, b) => a.row - b.row));
    save();
  } catch (error) {
    report(error);
  }
}

const current = () => values.notes.find((note) => note.row === values.row?.row);

/** Adds or removes a bookmark on the row at the cursor. */
export function toggle() {
  const row = values.row;
  if (!row) return report("select a message first");
  const others = values.notes.filter((note) => note.row !== row.row);
  const isNew = others.length === values.notes.length;
  const note = { row: row.row, packet: row.packet, name: row.name, text: "" };
  set("notes", isNew ? [...others, note].sort((a, b) => a.row - b.row) : others);
  save();
}

input.addEventListener("input", () => {
  const row = values.row;
  if (!row) return;
  if (!current()) toggle();
  set("notes", values.notes.map((note) => (note.row === row.row ? { ...note, text: input.value } : note)));
  save();
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    byId("messages").focus();
  }
});
button.addEventListener("click", toggle);

watch(["notes", "row"], () => {
  setAttribute(button, "aria-pressed", current() !== undefined);
  const text = current()?.text ?? "";
  if (input.value !== text) input.value = text;
  input.disabled = values.row === null;
});
watch(["notes"], () => {
  const items = values.notes.map((note) => {
    const open = element("button", { type: "button" }, `★ ${note.row} ${note.name}`);
    open.append(element("small", {}, note.text));
    open.addEventListener("click", () => void showRow(note.row));
    const item = element("li", {});
    item.append(open);
    return item;
  });
  listing.replaceChildren(...items);
  byId("bookmark-section").hidden = items.length === 0;
});

let isKnown = false;
watch(["capture"], () => {
  // Rows that did not exist before can be found now.
  const isRead = values.capture?.complete ?? false;
  if (isRead && !isKnown && values.notes.length) void load();
  isKnown = isRead;
});

void load();
