// KI: the files of an archive as a tree with search, each with its fields and bytes, text or picture.

import * as api from "./api.js";
import { byId, element, setAttribute, setText, visible } from "./dom.js";
import { counted, size } from "./format.js";
import { LazyTree } from "./lazy-tree.js";
import * as editor from "./object-editor.js";
import { report, set, values } from "./store.js";
import { register } from "./worlds.js";

/** @import * as T from "./types.js" */
/** @import { Branch } from "./lazy-tree.js" */

/** The elements that pictures consist of. */
const DRAWN = new Set(["svg", "title", "desc", "rect", "marker", "path", "g", "circle", "text"]);
/** Pictures can be enlarged this much. */
const MAX_ZOOM = 32;

const search = element("input", {
  id: "file-search",
  type: "text",
  "aria-label": "Search files",
  placeholder: "Search names   ( / )",
  autocomplete: "off",
  spellcheck: "false",
  maxlength: 1000,
});
const count = element("small", { id: "file-count", role: "status", "aria-label": "Files found" });
const files = element("div", { id: "files", class: "rows", role: "treegrid", "aria-label": "Files", tabindex: 0 });
const title = element("h2", {}, "No file selected");
const about = element("small");
const smaller = element("button", { type: "button", "aria-label": "Zoom out" }, "−");
const larger = element("button", { type: "button", "aria-label": "Zoom in" }, "+");
const exporter = element("button", { type: "button", id: "export-file" }, "Export file");
const content = element("div", { id: "file-content", role: "region", "aria-label": "Content", tabindex: 0 });
const fileView = element("section", { id: "file-view", "aria-label": "File" },
  element("div", { class: "bar" }, title, about, smaller, larger, exporter, ...editor.tools), content, editor.panel);
const panel = element("section", { class: "archive" },
  element("section", { class: "tree", "aria-label": "Archive" }, element("div", { class: "bar" }, search, count), files), fileView);

/** The shown file. @type {T.FileDetail | null} */
let shown = null;
/** The number of the latest request for a file. */
let latest = 0;
let zoom = 1;

/** @param {T.ArchiveRow} row @param {boolean} isFlat @returns {Branch} */
function branch(row, isFlat) {
  const parts = row.path.split("/");
  if (row.files !== undefined) {
    return { text: `${parts.at(-2) ?? ""}/`, note: counted(row.files, "file"), hasParts: true, of: row };
  }
  return { text: isFlat ? row.path : (parts.at(-1) ?? row.path), note: size(row.size ?? 0), hasParts: false, of: row };
}

const tree = new LazyTree({
  scroller: files,
  prefix: "file-",
  load: async (parent, start) => {
    const text = search.value.trim();
    const found = await api.archive(parent ? { folder: parent.of.path, start } : { search: text, start });
    if (!parent) setText(count, text ? counted(found.total, "file") : "");
    return { total: found.total, branches: found.rows.map((row) => branch(row, text !== "")) };
  },
  chosen: (chosen) => void open(chosen.of.file),
  entered: () => byId("fields").focus(),
});

/** @param {number | undefined} number */
async function open(number) {
  if (number === undefined) return;
  const own = ++latest;
  try {
    const found = await api.archiveFile(number);
    if (own !== latest) return;
    show(found);
    if (found.picture) await draw(found, own);
  } catch (error) {
    if (own !== latest) return;
    show(null);
    report(error);
  }
}

/** @param {T.FileDetail | null} file */
function show(file) {
  shown = file;
  const isDrawn = file?.picture ?? false;
  setText(title, file ? file.path : "No file selected");
  setAttribute(title, "title", file ? visible(file.path) : null);
  const cut = file?.cut ? ", only the beginning is shown" : "";
  setText(about, file ? `${file.kind}, ${size(file.size)}${cut}` : "");
  exporter.hidden = !file;
  smaller.hidden = larger.hidden = !isDrawn;
  content.hidden = !isDrawn && file?.text === undefined;
  content.replaceChildren(...(file?.text === undefined ? [] : [element("pre", {}, lines(file.text))]));
  content.scrollTop = 0;
  set("node", null);
  set("detail", file ? detail(file) : null);
  editor.follow(file);
}

editor.whenEdited((file) => {
  if (file.file !== shown?.file) return;
  set("node", null);
  set("detail", detail(file));
});

/** A text whose lines and columns remain, with all other hostile characters escaped. @param {string} text */
function lines(text) {
  const shownLine = (/** @type {string} */ line) => line.split("\t").map(visible).join("\t");
  const made = document.createTextNode(text.split(/\r\n|\n|\r/).map(shownLine).join("\n"));
  return made;
}

/** A file in the form of a message, for its fields and bytes. @param {T.FileDetail} file @returns {T.Detail} */
function detail(file) {
  const { nodes, layers, node_count, remarks, error } = file;
  const none = { stream: -1, packet: null, time: "0", from: "", body: "" };
  return { ...none, row: -1, family: "ki", name: file.path, file: file.file, range: [0, file.size], nodes, layers, node_count, remarks, ...(error ? { error } : {}) };
}

/** @param {T.FileDetail} file @param {number} own */
async function draw(file, own) {
  const text = await api.picture(file.file);
  if (own !== latest) return;
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  for (const part of [parsed, ...parsed.querySelectorAll("*")]) {
    if (!DRAWN.has(part.nodeName)) throw new Error(`the picture contains <${part.nodeName}>`);
    const only = part.firstChild;
    if (only instanceof Text) only.data = visible(only.data);
  }
  const drawn = /** @type {SVGElement} */ (document.importNode(/** @type {Node} */ (parsed), true));
  setAttribute(drawn, "role", "img");
  setAttribute(drawn, "aria-label", `${file.path} from above`);
  content.replaceChildren(drawn);
  enlarge(1);
}

/** @param {number} wanted */
function enlarge(wanted) {
  zoom = Math.min(MAX_ZOOM, Math.max(1, wanted));
  const drawn = content.querySelector("svg");
  if (!drawn) return;
  drawn.style.width = `${100 * zoom}%`;
  drawn.style.height = `${100 * zoom}%`;
  drawn.style.setProperty("--zoom", String(zoom));
}

larger.addEventListener("click", () => enlarge(zoom * 1.5));
smaller.addEventListener("click", () => enlarge(zoom / 1.5));
exporter.addEventListener("click", () => {
  if (!shown) return;
  const link = element("a", { href: api.contentPath(shown.file), download: "" });
  document.body.append(link);
  link.click();
  link.remove();
  set("message", `exporting ${shown.path}`);
});
fileView.addEventListener("keydown", editor.key);
tree.searchWith(search);

let isLoaded = false;
register({
  name: "archive",
  title: "Archive",
  panel,
  shown: () => {
    if (isLoaded || !values.capture?.archive) return;
    isLoaded = true;
    // There are no messages, so the fields and bytes of a message become those of a file.
    fileView.append(byId("detail"));
    show(null);
    void tree.reload();
  },
});
