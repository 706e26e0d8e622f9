// Starts the page: the connection to the server, the status bar, and the keys that work everywhere.

import * as api from "./api.js";
import { resend } from "./breakpoints.js";
import "./bytes.js";
import { toggleMark, compare } from "./compare.js";
import "./conversations.js";
import "./copy.js";
import { byId, inputById, setText } from "./dom.js";
import "./export.js";
import { cancel, show } from "./filter.js";
import { counted, grouped, oneLine, size } from "./format.js";
import { grow } from "./messages.js";
import { toggle } from "./notes.js";
import { reach } from "./restore.js";
import * as search from "./search.js";
import "./server.js";
import "./splitters.js";
import { forgetStatuses, keepStatus, report, set, values, watch } from "./store.js";
import * as timeline from "./timeline.js";
import { visibleView } from "./worlds.js";
import "./worlds-ages.js";
import "./worlds-ki.js";
import "./worlds-mxo.js";
import "./worlds-tera.js";
import "./worlds-uru.js";

/** @import * as T from "./types.js" */

const help = /** @type {HTMLDialogElement} */ (byId("help"));
const cancelButton = byId("cancel");
let isConnected = true;

function status() {
  const capture = values.capture;
  if (!capture) return;
  // The file of a proxy can be a temporary one.
  const title = capture.live ?? capture.file;
  document.title = `${title} – worldwire`;
  setText(byId("file"), title);
  byId("status").classList.toggle("wrong", !isConnected);
  const { archive } = capture;
  if (archive || capture.live === "server") {
    const state = archive ? `${counted(archive.files, "file")}, ${size(archive.size)}` : "the server is running";
    setText(byId("status"), isConnected ? state : "not connected: has the program stopped?");
    return;
  }
  const { selection, stream } = values.shown;
  const shown = selection ? `${grouped(selection.rows)} of ` : "";
  const parts = [
    `${shown}${counted(capture.rows, "row")}`,
    counted(capture.conversations, "conversation"),
  ];
  if (stream !== null) parts.push(`only conversation ${stream}`);
  if (capture.gaps) parts.push(gaps(capture));
  if (capture.warnings) parts.push(counted(capture.warnings, "warning"));
  if (capture.problems) parts.push(counted(capture.problems, "problem"));
  const percent = (/** @type {number} */ bytes) => `${Math.floor((100 * bytes) / Math.max(1, capture.size))} %`;
  if (capture.following && capture.caught_up) parts.push(capture.live === "proxy" ? "following the proxy" : "following the file");
  else if (!capture.complete) parts.push(`reading, ${percent(capture.bytes)}`);
  if (selection && !isFound(selection)) parts.push(`filtering, ${percent(selection.bytes)}`);
  if (capture.changed) parts.push("another program changed the file; restart worldwire to show it");
  if (selection?.error) parts.push(selection.error);
  if (capture.error) parts.push(capture.error);
  if (!isConnected) parts.unshift("not connected: has the program stopped?");
  setText(byId("status"), oneLine(parts.join(" · ")));
  cancelButton.hidden = !selection || isFound(selection);
}

/** The number of gaps, and of those without a row. @param {T.CaptureStatus} capture */
function gaps(capture) {
  const { gaps: all, gaps_without_rows: hidden } = capture;
  const text = counted(all, "gap");
  return hidden ? `${text} (${hidden === all ? "" : `${grouped(hidden)} `}in conversations that are not decoded)` : text;
}

/** Whether a selection has all rows so far. @param {T.SelectionStatus} selection */
const isFound = (selection) => selection.complete || selection.caught_up;

/** @param {T.PageEvent} event */
function heard(event) {
  if (event.capture) set("capture", event.capture);
  if (event.live) set("live", event.live);
  const found = event.selection;
  if (!found) return;
  keepStatus(found);
  search.update(found);
  const { shown } = values;
  if (shown.selection?.id === found.id) {
    shown.selection = found;
    grow();
    reach();
    timeline.refresh();
    status();
  }
}

watch(["capture", "shown"], status);
watch(["message"], () => {
  setText(byId("message"), values.message);
  byId("message").classList.toggle("wrong", values.message !== "" && values.message === values.fault);
});
cancelButton.addEventListener("click", () => void cancel());
byId("help-open").addEventListener("click", () => help.showModal());
byId("all").addEventListener("click", () => void show({ filter: "", stream: null }));
watch(["shown"], () => {
  byId("all").hidden = values.shown.selection === null;
});

/** The previous region of the page, for Escape. @type {Record<string, string>} */
const BACK = { bytes: "fields", fields: "messages", bits: "bytes", conversations: "messages", held: "messages" };

/** The search fields and lists of views of worlds. @type {Record<string, string>} */
const SEARCHES = { archive: "file-search", vault: "vault-search" };
/** @type {Record<string, string>} */
const LISTS = { archive: "files", vault: "vault-nodes", ages: "age-objects" };
/** The search field of the visible view. @param {string} own that of messages */
const searchId = (own) => SEARCHES[visibleView()] ?? own;
/** The list of the visible view, instead of the messages. @param {string} id */
const listId = (id) => (id === "messages" ? (LISTS[visibleView()] ?? id) : id);

document.addEventListener("keydown", (event) => {
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  if (event.ctrlKey && event.key.toLowerCase() === "f") {
    event.preventDefault();
    const input = inputById(searchId("search"));
    input.focus();
    input.select();
    return;
  }
  const isTyping =
    target instanceof HTMLInputElement ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  // The other keys act on messages.
  if (visibleView() !== "messages" && !["/", "?", "Escape"].includes(event.key)) return;
  switch (event.key) {
    case "/":
      inputById(searchId("filter")).focus();
      inputById(searchId("filter")).select();
      break;
    case "?":
      help.showModal();
      break;
    case "n":
      void search.go(1);
      break;
    case "N":
      void search.go(-1);
      break;
    case "b":
      toggle();
      break;
    case "m":
      toggleMark();
      break;
    case "d":
      compare();
      break;
    case "e":
      void resend();
      break;
    case "Escape":
      byId(listId(BACK[target.id] ?? (target.closest("#bits") ? "bytes" : "messages"))).focus();
      break;
    default:
      return;
  }
  event.preventDefault();
});

for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector("[data-close]")?.addEventListener("click", () => dialog.close());
}

api.listen(heard, (connected) => {
  isConnected = connected;
  if (!connected) forgetStatuses();
  status();
});
try {
  const capture = await api.capture();
  // Events may overtake this response.
  if (!values.capture) set("capture", capture);
} catch (error) {
  report(error);
}
