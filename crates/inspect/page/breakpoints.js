// The messages that a proxy holds, and an editor for them and for additional messages.

import * as api from "./api.js";
import { Completion } from "./completion.js";
import { byId, debounce, element, inputById, setAttribute, setLines, setText } from "./dom.js";
import { Form } from "./form.js";
import { grouped } from "./format.js";
import { format, parse } from "./json.js";
import { report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */
/** @import { Json } from "./json.js" */

const region = byId("breakpoints");
const opener = byId("breakpoints-open");
const listing = byId("held");
const editor = byId("editor");
const text = /** @type {HTMLTextAreaElement} */ (byId("fields-json"));
const connection = /** @type {HTMLSelectElement} */ (byId("connection"));
const receiver = /** @type {HTMLSelectElement} */ (byId("receiver"));
const name = inputById("message-name");
const hold = inputById("hold");
const buttons = { release: byId("release"), drop: byId("drop"), send: byId("send"), revert: byId("revert") };

/**
 * The message being edited: held, or null if additional; its fields before any edit; its original bytes or "".
 * @typedef {{held: T.Held | null, fields: Json, original: string}} Edit
 */

/** @type {Edit | null} */
let edited = null;
/** Counts changes to the fields, so that late answers are ignored. */
let version = 0;
let isJson = false;
/** The edits of held messages that are not shown, as JSON. @type {Map<string, string>} */
const drafts = new Map();
/** Released or dropped messages, which a late report can still list. @type {Set<string>} */
const decided = new Set();
/** The filters that the proxy last reported. */
let filters = "";

const form = new Form(byId("form"), () => changed());

/** The requests of `worldwire proxy ctl`. @param {Record<string, unknown>} request */
const ask = (request) => api.perform(request);

const keyOf = (/** @type {T.Held} */ held) => `${held.connection}.${held.id}`;

/** The held messages. */
const waiting = () => (values.live?.held ?? []).filter((held) => !decided.has(keyOf(held)));

/** Shows what the proxy reported. */
function update() {
  const live = values.live;
  if (!live?.held) return;
  const { connections = [] } = live;
  const held = waiting();
  setText(opener, held.length ? `Breakpoints (${grouped(held.length)})` : "Breakpoints");
  setText(byId("held-count"), held.length ? `${grouped(held.length)} held` : "nothing is held");
  const own = edited?.held ? keyOf(edited.held) : null;
  const latest = held.find((it) => keyOf(it) === own);
  if (edited && latest) edited.held = latest;
  for (const key of drafts.keys()) if (!held.some((it) => keyOf(it) === key)) drafts.delete(key);
  const items = held.map((it) => {
    const key = keyOf(it);
    const item = element("div", { role: "option", id: `held-${key}`, "aria-selected": key === own, class: it.from });
    const about = [it.from, `connection ${it.connection}`, `${Math.round(it.seconds)} s`];
    if (key === own ? isEdited() : drafts.has(key)) about.push("edited");
    if (it.receiver_ended) about.push(`the ${receiverOf(it)} has closed the connection`);
    item.append(element("b", { title: it.name }, it.name), element("small", { class: it.receiver_ended ? "wrong" : "" }, about.join(", ")));
    item.addEventListener("click", () => edit(it));
    return item;
  });
  listing.replaceChildren(...items);
  setAttribute(listing, "aria-activedescendant", own ? `held-${own}` : null);
  const chosen = connection.value;
  const options = connections.map((it) => element("option", { value: it.connection }, `${it.connection}: ${it.client} → ${it.server}`));
  if (connection.options.length !== options.length || options.some((it, at) => it.value !== connection.options[at]?.value)) {
    connection.replaceChildren(...options);
    if (options.some((it) => it.value === chosen)) connection.value = chosen;
  }
  const now = (live.filters ?? []).join(" or ");
  if (now !== filters && document.activeElement !== hold) hold.value = now;
  filters = now;
  if (edited?.held && !latest) {
    const isOpen = connections.some((it) => it.connection === edited?.held?.connection);
    close(isOpen ? "the message is no longer held" : "the message was dropped: its connection has ended");
  }
  if (!edited && held[0]) edit(held[0]);
  advise();
}

/** Who receives a held message. @param {T.Held} held */
const receiverOf = (held) => (held.from === "client" ? "server" : "client");

/** Whether the shown fields differ from those of the held message. */
const isEdited = () => edited?.held != null && fieldsText() !== format(edited.fields);

/** Shows which buttons apply, and what they send. */
function advise() {
  const isChanged = isEdited();
  const held = edited?.held;
  setAttribute(buttons.release, "disabled", held && isChanged ? "" : null);
  buttons.revert.hidden = !held || !isChanged;
  const parts = [];
  if (held?.receiver_ended) parts.push(`The ${receiverOf(held)} has closed the connection: anything sent may not arrive.`);
  if (held) parts.push(isChanged ? "Send forwards your edits; Revert discards them." : "Release forwards the message unchanged.");
  setText(byId("decision"), parts.join(" "));
}

/** Edits a held message. @param {T.Held} held */
function edit(held) {
  const line = parse(held.line);
  const fields = line !== null && typeof line === "object" && "fields" in line ? line.fields : {};
  connection.value = String(held.connection);
  receiver.value = held.from === "client" ? "server" : "client";
  keepDraft();
  open({ held, fields: fields ?? {}, original: "" }, held.name, drafts.get(keyOf(held)));
}

/** Keeps the shown message's edits. */
function keepDraft() {
  if (!edited?.held) return;
  const key = keyOf(edited.held);
  if (isEdited() && !decided.has(key)) drafts.set(key, fieldsText());
  else drafts.delete(key);
}

/**
 * Edits an additional message.
 * @param {string} title
 * @param {Json} fields
 * @param {string} [to]
 */
function compose(title, fields, to) {
  keepDraft();
  if (to) receiver.value = to;
  open({ held: null, fields, original: "" }, title);
}

/** @param {Edit} next @param {string} title @param {string} [draft] edited fields */
function open(next, title, draft) {
  edited = next;
  editor.hidden = false;
  const isHeld = next.held !== null;
  name.value = title;
  for (const input of [name, connection, receiver]) input.disabled = isHeld;
  buttons.release.hidden = !isHeld;
  buttons.drop.hidden = !isHeld;
  byId("template").hidden = isHeld;
  setText(byId("editor-title"), isHeld ? `Held: ${title}` : "New message");
  setText(byId("editor-problem"), "");
  text.value = draft ?? format(next.fields);
  showForm(title, text.value);
  showBytes("", "");
  version++;
  void encode();
  draw();
  advise();
}

/** Shows fields as a form, unless they are not JSON. @param {string} title @param {string} fields */
function showForm(title, fields) {
  try {
    form.show(title, parse(fields));
  } catch {
    // Only the text can be edited.
    if (!isJson) setJson(true);
  }
}

/** @param {string} [why] */
function close(why) {
  edited = null;
  editor.hidden = true;
  if (why) set("message", why);
  draw();
}

function draw() {
  for (const option of listing.querySelectorAll("[role=option]")) {
    setAttribute(option, "aria-selected", edited?.held ? option.id === `held-${keyOf(edited.held)}` : false);
  }
  setAttribute(listing, "aria-activedescendant", edited?.held ? `held-${keyOf(edited.held)}` : null);
}

/** The fields as JSON. */
const fieldsText = () => (isJson ? text.value : format(form.value));

function changed() {
  version++;
  advise();
  refresh();
}

/** A new message is being composed, so its bytes are not compared with the previous one's. */
function renamed() {
  if (edited) edited.original = "";
  changed();
}

const refresh = debounce(120, () => void encode());

/** Shows the bytes of the message in its current form, or what is wrong with it. */
async function encode() {
  const own = version;
  if (!edited) return;
  const isNamed = name.value.trim() !== "";
  if (!isNamed || connection.value === "") {
    setText(byId("editor-problem"), isNamed ? "No open connection can carry the message." : "");
    setAttribute(buttons.send, "disabled", "");
    return showBytes("", "");
  }
  const wrong = byId("editor-problem");
  const request = {
    request: "encode",
    connection: Number(connection.value),
    id: edited.held?.id ?? null,
    to: receiver.value,
    name: name.value,
    fields: fieldsText(),
  };
  try {
    const [answer] = await ask(request);
    if (own !== version) return;
    const bytes = String(answer?.bytes ?? "");
    if (!edited.held || !isEdited()) edited.original ||= bytes;
    showBytes(bytes, edited.original || bytes);
    form.blame(null, "");
    setText(wrong, "");
    setAttribute(text, "aria-invalid", null);
    buttons.send.removeAttribute("disabled");
  } catch (error) {
    if (own !== version) return;
    const problem = error instanceof Error ? error.message : String(error);
    const field = error instanceof api.Refused ? (error.field ?? null) : null;
    const isShown = form.blame(field, problem) && !isJson;
    // A name that is still being typed is not an error.
    setLines(wrong, isShown || document.activeElement === name ? "" : problem);
    setAttribute(text, "aria-invalid", true);
    setAttribute(buttons.send, "disabled", "");
  }
}

/**
 * Shows bytes, and marks those that differ from the original ones.
 * @param {string} digits
 * @param {string} original
 */
function showBytes(digits, original) {
  const MAX = 2048;
  const shown = [];
  for (let at = 0; at < Math.min(digits.length, 2 * MAX); at += 2) {
    const byte = digits.slice(at, at + 2);
    shown.push(byte === original.slice(at, at + 2) ? byte : element("b", {}, byte), " ");
  }
  if (digits.length > 2 * MAX) shown.push("…");
  byId("edited-bytes").replaceChildren(...shown.map((it) => (typeof it === "string" ? document.createTextNode(it) : it)));
  setText(byId("edited-length"), `${grouped(digits.length / 2)} bytes`);
}

/** @param {Record<string, unknown>} request @param {string} done */
async function carryOut(request, done) {
  const own = edited;
  const isLate = own?.held?.receiver_ended ?? false;
  try {
    await ask(request);
    if (own?.held) decided.add(keyOf(own.held));
    if (own?.held) drafts.delete(keyOf(own.held));
    // Another message may have been opened in the meantime.
    if (edited === own) close();
    set("message", isLate && request["request"] !== "drop" ? `${done}, after the receiver had closed the connection: it may not have arrived` : done);
    set("live", await api.live());
  } catch (error) {
    report(error);
    setLines(byId("editor-problem"), error instanceof Error ? error.message : String(error));
  }
}

buttons.release.addEventListener("click", () => {
  const held = edited?.held;
  if (held) void carryOut({ request: "send", connection: held.connection, id: held.id }, `released ${held.name} unchanged`);
});
buttons.drop.addEventListener("click", () => {
  const held = edited?.held;
  if (held) void carryOut({ request: "drop", connection: held.connection, id: held.id }, `dropped ${held.name}`);
});
buttons.send.addEventListener("click", () => {
  if (!edited) return;
  const { held } = edited;
  const fields = fieldsText();
  if (held) {
    void carryOut({ request: "edit", connection: held.connection, id: held.id, fields }, `sent ${held.name} with these fields`);
  } else {
    const request = { request: "inject", connection: Number(connection.value), to: receiver.value, name: name.value, fields };
    void carryOut(request, `sent ${name.value} to the ${receiver.value}`);
  }
});
byId("compose").addEventListener("click", () => compose("", {}));
byId("discard").addEventListener("click", () => {
  keepDraft();
  close();
});
buttons.revert.addEventListener("click", () => {
  if (!edited?.held) return;
  drafts.delete(keyOf(edited.held));
  open({ ...edited, original: "" }, edited.held.name);
  buttons.release.focus();
});
byId("as-json").addEventListener("click", () => {
  if (isJson) {
    try {
      form.show(name.value, parse(text.value));
    } catch (error) {
      return setLines(byId("editor-problem"), error instanceof Error ? error.message : String(error));
    }
  } else text.value = format(form.value);
  setJson(!isJson);
  void encode();
});

/** @param {boolean} wanted whether fields are edited as JSON */
function setJson(wanted) {
  isJson = wanted;
  setAttribute(byId("as-json"), "aria-pressed", isJson);
  byId("form").hidden = isJson;
  byId("json-entry").hidden = !isJson;
}

text.addEventListener("input", changed);
name.addEventListener("input", renamed);
name.addEventListener("change", refresh);
connection.addEventListener("change", renamed);
receiver.addEventListener("change", renamed);

new Completion({ input: hold, listbox: byId("hold-suggestions") });
new Completion({
  input: name,
  listbox: byId("name-suggestions"),
  fits: ({ kind, text }) => kind === "message" && text.includes("."),
  taken: renamed,
});

/** Fills in the fields of the last message of the same name. */
byId("template").addEventListener("click", async () => {
  const wanted = name.value.trim();
  try {
    const found = await template(wanted);
    if (!found) return report(`the capture has no ${wanted || "such message"} whose fields can be copied`);
    const line = parse(found.line ?? "{}");
    const fields = line !== null && typeof line === "object" && "fields" in line ? line.fields : {};
    compose(found.name, fields ?? {}, found.from === "client" ? "server" : "client");
  } catch (error) {
    report(error);
  }
});

/** The last message of this name. @param {string} wanted @returns {Promise<T.Detail | null>} */
async function template(wanted) {
  const selection = await api.select({ filter: wanted, search: "", stream: null });
  try {
    const patience = Date.now() + 5000;
    for (;;) {
      const now = await api.selection(selection.id);
      const isRead = now.complete || now.caught_up;
      if ((isRead || Date.now() > patience) && now.rows === 0) return null;
      if (isRead || now.rows > 0) {
        const { rows } = await api.rows(selection.id, now.rows - 1, 1);
        return rows[0] ? await api.message(rows[0].row) : null;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    void api.drop(selection.id);
  }
}

/**
 * The connection of a conversation. The conversation between the proxy and the server comes right
 * after the one with the client, whose address the proxy reports.
 * @param {number} stream
 */
async function connectionOf(stream) {
  const first = Math.max(0, stream - 1);
  const { conversations } = await api.conversations(first, stream - first + 1);
  for (const { client } of conversations.reverse()) {
    const found = values.live?.connections?.find((it) => it.client === client);
    if (found) return String(found.connection);
  }
  return null;
}

/** Loads the message at the cursor into the editor. */
export async function resend() {
  const detail = values.detail;
  if (!values.live?.held) return;
  if (!detail?.line || detail.note) return report("select a message first");
  const line = parse(detail.line);
  const fields = line !== null && typeof line === "object" && "fields" in line ? line.fields : {};
  try {
    const own = await connectionOf(detail.stream);
    if (own !== null) connection.value = own;
    else report("this message's connection has ended; choose another");
  } catch (error) {
    report(error);
  }
  show(true);
  compose(detail.name, fields ?? {}, detail.from === "client" ? "server" : "client");
  buttons.send.focus();
}

byId("resend").addEventListener("click", () => void resend());

hold.addEventListener("keydown", async (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  const filter = hold.value.trim();
  try {
    await ask({ request: "pause", filters: filter ? [filter] : [] });
    setAttribute(hold, "aria-invalid", null);
    setText(byId("hold-problem"), "");
    set("message", filter ? `messages that match ${filter} will be held` : "no further messages are held");
  } catch (error) {
    setAttribute(hold, "aria-invalid", true);
    setLines(byId("hold-problem"), error instanceof Error ? error.message : String(error));
  }
});

listing.addEventListener("keydown", (event) => {
  const held = waiting();
  const own = edited?.held ? keyOf(edited.held) : "";
  const at = held.findIndex((it) => keyOf(it) === own);
  const targets = /** @type {Record<string, number>} */ ({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: held.length - 1 });
  const target = targets[event.key];
  const next = target === undefined ? undefined : held[Math.min(Math.max(target, 0), held.length - 1)];
  if (!next) return;
  event.preventDefault();
  edit(next);
});

/** @param {boolean} isShown */
function show(isShown) {
  region.hidden = !isShown;
  document.body.classList.toggle("with-breakpoints", isShown);
  setAttribute(opener, "aria-pressed", isShown);
}

opener.addEventListener("click", () => show(region.hidden));

let isKnown = false;
watch(["capture"], () => {
  const isProxy = values.capture?.live === "proxy";
  if (isProxy === isKnown) return;
  isKnown = isProxy;
  opener.hidden = !isProxy;
  byId("resend").hidden = !isProxy;
  show(isProxy);
});
watch(["live"], update);
