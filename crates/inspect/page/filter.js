// The filter and its suggestions. It determines which messages the list shows.

import * as api from "./api.js";
import { byId, debounce, element, inputById, setAttribute, setLines, setText } from "./dom.js";
import { latestStatus, report, set, values } from "./store.js";

/** @import * as T from "./types.js" */

const input = inputById("filter");
const listbox = byId("suggestions");
const problem = byId("filter-problem");
/** @type {T.Suggestion[]} */
let suggestions = [];
let chosen = -1;
/** The part of the text that a suggestion replaces. */
let part = { start: 0, end: 0 };
let requests = 0;

/**
 * Shows the messages that match.
 * @param {{filter?: string, stream?: number | null}} change
 */
export async function show(change) {
  const { filter, stream } = { ...values.shown, ...change };
  const own = ++requests;
  close();
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
    setLines(problem, `${column}${error instanceof Error ? error.message : error}`);
    report(error);
  }
}

/** Cancels a filter that is still collecting, and shows all messages. */
export async function cancel() {
  const { selection } = values.shown;
  if (selection && !selection.complete) await show({ filter: "", stream: null });
}

function close() {
  suggestions = [];
  chosen = -1;
  draw();
}

function draw() {
  listbox.hidden = suggestions.length === 0;
  const options = suggestions.map((suggestion, index) => {
    const option = element(
      "div",
      { role: "option", id: `suggestion-${index}`, "aria-selected": index === chosen },
      suggestion.text,
    );
    option.append(element("small", {}, suggestion.kind));
    option.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(index);
    });
    return option;
  });
  listbox.replaceChildren(...options);
  setAttribute(input, "aria-activedescendant", chosen < 0 ? null : `suggestion-${chosen}`);
  options[chosen]?.scrollIntoView({ block: "nearest" });
}

/** Completes the word. @param {number} index */
function take(index) {
  const suggestion = suggestions[index];
  if (!suggestion) return;
  const rest = input.value.slice(part.end);
  input.value = input.value.slice(0, part.start) + suggestion.text + rest;
  const at = part.start + suggestion.text.length;
  input.setSelectionRange(at, at);
  close();
}

let asked = 0;
const suggest = debounce(60, async () => {
  const own = ++asked;
  try {
    const found = await api.suggestions(input.value, input.selectionStart ?? input.value.length);
    if (own !== asked || document.activeElement !== input) return;
    part = found;
    suggestions = found.suggestions;
    chosen = -1;
    draw();
  } catch (error) {
    report(error);
  }
});

input.addEventListener("input", () => suggest());
input.addEventListener("blur", close);
input.addEventListener("keydown", (event) => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step !== 0 && suggestions.length > 0) {
    event.preventDefault();
    const count = suggestions.length;
    chosen = chosen < 0 ? (step > 0 ? 0 : count - 1) : (chosen + step + count) % count;
    draw();
  } else if ((event.key === "Tab" || event.key === "Enter") && chosen >= 0) {
    event.preventDefault();
    take(chosen);
  } else if (event.key === "Enter") {
    event.preventDefault();
    asked++;
    void show({ filter: input.value });
  } else if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    asked++;
    if (suggestions.length > 0) close();
    else byId("messages").focus();
  }
});
