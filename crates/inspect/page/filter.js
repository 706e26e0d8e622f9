// The filter and its suggestions. It determines which messages the list shows.

import * as api from "./api.js";
import { Completion } from "./completion.js";
import { byId, inputById, setAttribute, setLines, setText } from "./dom.js";
import { latestStatus, report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const input = inputById("filter");
const state = byId("filter-state");
const problem = byId("filter-problem");
const completion = new Completion({ input, listbox: byId("suggestions"), taken: (suggestion) => taken(suggestion) });
let requests = 0;

/**
 * Shows the messages that match.
 * @param {{filter?: string, stream?: number | null}} change
 */
export async function show(change) {
  const { filter, stream } = { ...values.shown, ...change };
  const own = ++requests;
  completion.close();
  try {
    const isAll = filter.trim() === "" && stream === null;
    const selection = isAll ? null : await api.select({ filter, search: "", stream });
    if (own !== requests) {
      if (selection) void api.drop(selection.id);
      return;
    }
    const old = values.shown.selection;
    setText(problem, selection?.remarks?.join("; ") ?? "");
    setAttribute(input, "aria-invalid", null);
    set("message", "");
    input.value = filter;
    set("shown", { filter, stream, selection: selection && latestStatus(selection) });
    if (old) await api.drop(old.id);
  } catch (error) {
    setAttribute(input, "aria-invalid", true);
    const column = error instanceof api.Refused && error.column ? `column ${error.column}: ` : "";
    const shown = values.shown.filter.trim();
    const still = shown ? `the list still shows the messages that match ${shown}` : "the list is not filtered";
    setLines(problem, `${column}${error instanceof Error ? error.message : error}\n(${still})`);
    report(error);
  }
}

/** Cancels a filter that is still collecting messages, and shows all of them. */
export async function cancel() {
  const { selection } = values.shown;
  if (selection && !selection.complete) await show({ filter: "", stream: null });
}

/** Shows whether the text is the filter that the list shows. */
function compare() {
  const isApplied = input.value.trim() === values.shown.filter.trim();
  input.classList.toggle("pending", !isApplied);
  setText(state, isApplied ? "" : "press Enter to apply");
  if (!isApplied || !input.hasAttribute("aria-invalid")) return;
  // The user has changed the faulty text.
  setAttribute(input, "aria-invalid", null);
  setText(problem, "");
}

/** Offers the operators after a field. @param {T.Suggestion} suggestion */
function taken({ kind, text }) {
  const end = input.selectionEnd ?? input.value.length;
  if (kind === "field" && !text.endsWith(")") && end === input.value.length) {
    input.value += " ";
    void completion.ask();
  }
  compare();
}

input.addEventListener("input", compare);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    void show({ filter: input.value });
  } else if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    byId("messages").focus();
  }
});
watch(["shown"], compare);
