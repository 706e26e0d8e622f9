// KI: edits the game objects of an archive, with undo, and saves changed copies.

import * as api from "./api.js";
import { debounce, element, setAttribute, setLines, setText } from "./dom.js";
import { pathOf } from "./fields.js";
import { counted, size } from "./format.js";
import { compact, parse } from "./json.js";
import { ObjectForm } from "./object-form.js";
import { report, set, values } from "./store.js";

/** @import * as T from "./types.js" */
/** @import { Json } from "./json.js" */

/** Maximum undoable steps of a file. */
const MAX_STEPS = 500;

/**
 * @typedef {object} Edit The edits of a file.
 * @property {number} file
 * @property {string} path
 * @property {Json[]} steps The first is the object in the archive.
 * @property {number} at The current step.
 * @property {Json} saved
 * @property {string} key of the value that is being edited
 * @property {string} problem
 */

/** @type {Map<number, Edit>} */
const edits = new Map();
/** The shown file. @type {T.FileDetail | null} */
let shown = null;
/** The edits that the form shows. @type {Edit | null} */
let current = null;
/** Counts changes, so that answers to earlier requests are ignored. */
let version = 0;
/** Shows a file after edits. @type {(file: T.FileDetail) => void} */
let show = () => {};

/** @param {string} text @param {Record<string, string>} [more] */
const button = (text, more = {}) => element("button", { type: "button", ...more }, text);
const edit = button("Edit", { "aria-pressed": "false" });
const undo = button("Undo");
const redo = button("Redo");
const save = button("Save…");
const state = element("small", { role: "status", "aria-label": "Edits" });
const problem = element("div", { class: "wrong", role: "alert" });
const fields = element("div", { id: "object-form", role: "group", "aria-label": "Object", tabindex: -1 });
/** The buttons for the bar of a file. */
export const tools = [edit, undo, redo, save, state];
export const panel = element("section", { id: "object-editor", "aria-label": "Edit object", hidden: "" }, problem, fields);

const form = new ObjectForm(fields, {
  edited: (value, key) => {
    const own = current;
    if (!own) return;
    // Typing in one field is one step.
    const isSame = key !== "" && key === own.key && own.at > 0 && own.at === own.steps.length - 1 && valueOf(own) !== own.saved;
    own.steps.length = own.at + (isSame ? 0 : 1);
    own.steps.push(value);
    if (own.steps.length > MAX_STEPS) own.steps.splice(1, 1);
    own.at = own.steps.length - 1;
    own.key = key;
    changed();
  },
  focused: (path) => {
    const wanted = `object.${path}`;
    const node = (values.detail?.nodes ?? []).findIndex((_, number) => pathOf(number) === wanted);
    if (node >= 0) set("node", node);
  },
});
fields.addEventListener("focusout", () => {
  if (current) current.key = "";
});

/** @param {Edit} own */
const valueOf = (own) => own.steps[own.at] ?? null;
/** @param {Edit} own */
const isChanged = (own) => own.at > 0;
/** @param {Edit} own */
const isUnsaved = (own) => valueOf(own) !== own.saved;
/** The files with changes. */
const changedFiles = () => [...edits.values()].filter(isChanged);

/** @param {(file: T.FileDetail) => void} act */
export function whenEdited(act) {
  show = act;
}

/** Follows the file that the page shows. @param {T.FileDetail | null} file */
export function follow(file) {
  shown = file;
  version++;
  current = null;
  panel.hidden = true;
  const own = file ? edits.get(file.file) : undefined;
  if (own && isChanged(own)) void open(own).catch(report);
  draw();
}

/** Starts to edit the shown file, or hides the form. */
async function toggle() {
  const file = shown;
  if (!file) return;
  if (!panel.hidden) {
    version++;
    current = null;
    panel.hidden = true;
    show(await api.archiveFile(file.file));
    return draw();
  }
  edit.disabled = true;
  try {
    await open(edits.get(file.file) ?? (await begin(file)));
  } catch (error) {
    if (shown?.file !== file.file) return;
    panel.hidden = false;
    fields.replaceChildren();
    setLines(problem, error instanceof Error ? error.message : String(error));
    draw();
  } finally {
    edit.disabled = false;
  }
}

/** Reads an object for the first time. @param {T.FileDetail} file @returns {Promise<Edit>} */
async function begin(file) {
  const object = parse((await api.archiveObject(file.file)).object);
  const { changed } = await api.encodeObject(file.file, compact(object));
  if (changed) throw new Error("the object cannot be edited because this page cannot preserve all of its values");
  return { file: file.file, path: file.path, steps: [object], at: 0, saved: object, key: "", problem: "" };
}

/** @param {Edit} own */
async function open(own) {
  if (shown?.file !== own.file) return;
  edits.set(own.file, own);
  current = own;
  panel.hidden = false;
  form.reset();
  setLines(problem, "");
  draw();
  await form.show(valueOf(own));
  await encode();
}

function changed() {
  version++;
  draw();
  soon();
}

const soon = debounce(120, () => void encode());

/** Shows the bytes of the object in its current form, or what is wrong with it. */
async function encode() {
  const own = current;
  const now = ++version;
  if (!own) return;
  try {
    const file = await api.encodeObject(own.file, compact(valueOf(own)));
    if (now !== version) return;
    own.problem = "";
    form.blame(null, "");
    setLines(problem, (file.warnings ?? []).map((it) => `! ${it}`).join("\n"));
    const node = values.node;
    const path = node === null ? "" : pathOf(node);
    show(file);
    const again = path ? file.nodes.findIndex((_, number) => pathOf(number) === path) : -1;
    if (again >= 0) set("node", again);
  } catch (error) {
    if (now !== version) return;
    own.problem = error instanceof Error ? error.message : String(error);
    const isMarked = form.blame(error instanceof api.Refused ? (error.field ?? null) : null, own.problem);
    setLines(problem, isMarked ? "" : own.problem);
  }
  draw();
}

/** @param {number} step */
function go(step) {
  const own = current;
  const to = (own?.at ?? 0) + step;
  if (!own || to < 0 || to >= own.steps.length) return;
  own.at = to;
  own.key = "";
  void form.show(valueOf(own)).catch(report);
  changed();
}

/** Shows what can be done. */
function draw() {
  const isObject = shown?.kind === "object" && (values.capture?.archive?.editable ?? false);
  const files = changedFiles();
  edit.hidden = !isObject;
  setAttribute(edit, "aria-pressed", !panel.hidden);
  panel.parentElement?.classList.toggle("editing", !panel.hidden);
  undo.hidden = redo.hidden = !current;
  undo.disabled = !current || current.at === 0;
  redo.disabled = !current || current.at === current.steps.length - 1;
  save.hidden = files.length === 0;
  save.disabled = files.some((it) => it.problem !== "");
  const wrong = files.find((it) => it.problem !== "");
  const more = wrong ? `, a value in ${wrong.path} is wrong` : files.some(isUnsaved) ? "" : ", saved";
  setText(state, files.length ? `${counted(files.length, "file")} changed${more}` : "");
}

edit.addEventListener("click", () => void toggle().catch(report));
undo.addEventListener("click", () => go(-1));
redo.addEventListener("click", () => go(1));
save.addEventListener("click", () => ask());

/** Handles save, undo and redo keys, which browsers would apply to single fields. @param {KeyboardEvent} event */
export function key(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const name = event.key.toLowerCase();
  if (name === "s" && !save.hidden && !save.disabled) ask();
  else if (!current) return;
  else if (name === "z") go(event.shiftKey ? 1 : -1);
  else if (name === "y") go(1);
  else if (name !== "s") return;
  event.preventDefault();
}

const named = element("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 255 });
const only = element("input", { type: "checkbox" });
const onlyLabel = element("span");
const list = element("ul", {});
const refused = element("p", { class: "wrong", role: "alert" });
const confirm = button("Save");
const cancel = button("Cancel");
const dialog = element("dialog", { id: "save-copy", "aria-labelledby": "save-title" },
  element("h2", { id: "save-title" }, "Save a copy"),
  element("p", {}, "The copy is a new file next to the archive. The archive itself is not changed."),
  list,
  element("label", { class: "flag" }, only, onlyLabel),
  element("label", { class: "field" }, element("span", {}, "Name"), named),
  refused,
  element("div", { class: "choices" }, confirm, cancel));
document.body.append(dialog);

/** A name for a copy: `Root.edited.wad`. @param {string} path */
function suggested(path) {
  const name = path.split("/").at(-1) ?? "";
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)}.edited${name.slice(dot)}` : `${name}.edited`;
}

/** Asks for the name of a copy. */
function ask() {
  const files = changedFiles();
  const own = current && isChanged(current) ? current : null;
  list.replaceChildren(...files.map((it) => element("li", {}, it.path)));
  only.checked = false;
  only.disabled = !own;
  setText(onlyLabel, own ? `Only the file ${own.path}, without the archive` : "Only one file: open it first");
  setText(refused, "");
  suggest();
  dialog.showModal();
  named.focus();
  named.select();
}

function suggest() {
  const path = only.checked ? current?.path : values.capture?.file;
  named.value = suggested(path ?? "");
}

async function store() {
  const files = changedFiles();
  const name = named.value.trim();
  const objects = files.map((it) => ({ file: it.file, object: compact(valueOf(it)) }));
  const kept = files.map(valueOf);
  confirm.disabled = true;
  setText(refused, "");
  try {
    const file = only.checked ? (current?.file ?? null) : null;
    const done = await api.saveCopy({ name, file, objects: file === null ? objects : objects.filter((it) => it.file === file) });
    for (const [index, it] of files.entries()) {
      if (file === null || it.file === file) it.saved = kept[index] ?? null;
    }
    dialog.close();
    draw();
    set("message", `saved ${done.file}, ${size(done.size)}, with ${counted(done.changed, "changed file")}`);
  } catch (error) {
    setLines(refused, error instanceof Error ? error.message : String(error));
  } finally {
    confirm.disabled = false;
  }
}

only.addEventListener("change", suggest);
confirm.addEventListener("click", () => void store());
cancel.addEventListener("click", () => dialog.close());
named.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  if (!confirm.disabled) void store();
});

addEventListener("beforeunload", (event) => {
  // Changes exist only in this page.
  if ([...edits.values()].some(isUnsaved)) event.preventDefault();
});
