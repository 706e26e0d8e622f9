// TERA opcodes without a name: the definitions that fit them, how each decodes a message, and a map with
// the accepted names.

import * as api from "./api.js";
import { element, gridHead, gridRow, setAttribute, setText } from "./dom.js";
import { counted, grouped } from "./format.js";
import { showRow } from "./messages.js";
import { places } from "./paths.js";
import { Rows } from "./rows.js";
import { report, set, values } from "./store.js";
import { MESSAGES, register, showView } from "./worlds.js";

/** @import * as T from "./types.js" */

/** Layouts shown side by side: initially, and at most. */
const INITIAL = 2;
const MAX_COMPARED = 6;
/** Maximum fields and bytes shown of each. */
const MAX_FIELDS = 400;
const MAX_BYTES = 1024;
const COLUMNS = ["Opcode", "From", "Messages", "Bytes", "Best definition", "Accepted"];

const about = element("span", { role: "status", "aria-label": "Opcodes found" });
const again = element("button", { type: "button" }, "Reload");
const save = element("button", { type: "button", disabled: "" }, "Export map");
const scroller = element("div", { id: "opcodes", class: "rows", role: "grid", "aria-label": "Unknown opcodes", tabindex: 0 });
const detail = element("section", { class: "candidates", "aria-label": "Candidates" });
const panel = element("section", { class: "board" });
panel.append(element("div", { class: "bar" }, element("h2", {}, "Opcodes without a name"), about, again, save), scroller, detail);

/** @type {T.TeraBoard} */
let board = { messages: 0, builds: [], total: 0, opcodes: [] };
/** What fits each opcode, by `keyOf`. @type {Map<string, T.TeraCandidates>} */
let ranked = new Map();
/** The names that the user accepted, by `keyOf`. @type {Map<string, string>} */
let accepted = new Map();
/** @type {T.TeraOpcode | null} */
let chosen = null;
/** The definitions whose layouts are shown, and the row of their message. @type {Set<string>} */
let compared = new Set();
let sample = -1;
/** Change with the list and the choice, to detect late responses. */
let loads = 0;
let choices = 0;
let isLoaded = false;

/** @param {T.TeraOpcode} of */
const keyOf = (of) => `${of.build}:${of.opcode}`;
const storage = () => `worldwire-opcodes ${values.capture?.file ?? ""}`;

scroller.append(gridHead(COLUMNS));

const list = new Rows({
  scroller,
  height: 24,
  header: 26,
  prefix: "opcode-",
  create: () => gridRow(COLUMNS),
  fill: (row, position) => {
    const of = board.opcodes[position];
    if (!of) return;
    const [client, server] = of.messages;
    const texts = [
      String(of.opcode),
      client && server ? "both" : client ? "client" : "server",
      grouped(client + server),
      of.shortest === of.longest ? grouped(of.shortest) : `${grouped(of.shortest)}–${grouped(of.longest)}`,
      best(of),
      accepted.get(keyOf(of)) ?? "",
    ];
    [...row.children].forEach((cell, index) => setText(cell, texts[index] ?? ""));
  },
  moved: (position) => void choose(board.opcodes[position] ?? null),
  opened: () => detail.querySelector("button")?.focus(),
});

/** @param {T.TeraOpcode} of */
function best(of) {
  const found = ranked.get(keyOf(of));
  if (!found) return "…";
  const [first] = found.candidates;
  if (!first) return "none fits";
  if (found.tied.length) return `tie: ${found.tied.join(", ")}`;
  return `${first.name} ${first.score.toFixed(1)}`;
}

async function load() {
  const own = ++loads;
  setText(about, "reading…");
  try {
    const found = await api.opcodes();
    if (own !== loads) return;
    board = found;
    ranked = new Map();
    restore();
    list.resize(board.opcodes.length);
    describe();
    const again = board.opcodes.find((of) => chosen && keyOf(of) === keyOf(chosen)) ?? board.opcodes[0] ?? null;
    list.cursor = again ? board.opcodes.indexOf(again) : -1;
    list.draw();
    await choose(again);
    await rankAll();
  } catch (error) {
    setText(about, "");
    report(error);
  }
}

function describe() {
  const unnamed = board.opcodes.reduce((sum, of) => sum + of.messages[0] + of.messages[1], 0);
  const parts = [`${counted(board.total, "opcode")}, ${grouped(unnamed)} of ${counted(board.messages, "message")}`];
  for (const { revision, patch, has_map, definitions } of board.builds) {
    const build = revision === null ? "unknown revision" : `revision ${revision}${patch ? ` (patch ${patch})` : ""}`;
    parts.push(`${build}, ${has_map ? "with a map" : "no map"}, ${counted(definitions, "definition")}`);
  }
  if (board.opcodes.length < board.total) parts.push(`the ${grouped(board.opcodes.length)} with the most messages are listed`);
  setText(about, parts.join(" · "));
}

/** Ranks the definitions for one opcode after another, as long as the list does not change. */
async function rankAll() {
  const { opcodes } = board;
  for (const of of opcodes) {
    if (ranked.has(keyOf(of))) continue;
    const found = await api.candidates(of.build, of.opcode);
    if (opcodes !== board.opcodes) return;
    ranked.set(keyOf(of), found);
    list.draw();
  }
}

/** Shows the definitions that fit an opcode. @param {T.TeraOpcode | null} of */
async function choose(of) {
  chosen = of;
  const own = ++choices;
  if (!of) return detail.replaceChildren(element("p", {}, "Every message has a name."));
  try {
    const found = ranked.get(keyOf(of)) ?? (await api.candidates(of.build, of.opcode));
    if (own !== choices) return;
    ranked.set(keyOf(of), found);
    compared = new Set(found.candidates.slice(0, INITIAL).map((it) => it.title));
    sample = found.samples[0]?.[0] ?? -1;
    list.draw();
    show(of, found);
  } catch (error) {
    report(error);
  }
}

/** @param {T.TeraNeighbour[]} neighbours */
const named = (neighbours) => neighbours.map(({ name, messages }) => `${name} (${grouped(messages)})`).join(", ") || "nothing";

/** @param {T.TeraOpcode} of @param {T.TeraCandidates} found */
function show(of, found) {
  const total = of.messages[0] + of.messages[1];
  const tried = found.tried < total ? `${grouped(found.tried)} of ${counted(total, "message")} tried` : `${counted(total, "message")} tried`;
  const title = element("h2", {}, `Opcode ${of.opcode} (0x${of.opcode.toString(16)}): ${tried}`);
  const around = element("p", {}, `Preceded by ${named(of.before)}. Followed by ${named(of.after)}.`);
  const tie = found.tied.length ? element("p", { class: "wrong" }, `A tie: nothing in the messages distinguishes ${found.tied.join(", ")}.`) : null;
  const columns = ["Compare", "Definition", "Score", "Fits", "Clean", "Header", "Evidence against", ""];
  const titles = element("tr", {}, ...columns.map((name) => (name ? element("th", { scope: "col" }, name) : element("td", {}))));
  const rows = found.candidates.map((it) => candidate(of, found, it));
  const table = element("table", {}, element("thead", {}, titles), element("tbody", {}, ...rows));
  const body = rows.length ? element("div", { class: "table", role: "region", "aria-label": "Candidates, table", tabindex: 0 }, table) : element("p", {}, "No definition fits.");
  const select = element("select", { "aria-label": "Sample message" });
  for (const [row, length] of found.samples) select.append(element("option", { value: row }, `row ${row}, ${counted(length, "byte")}`));
  select.value = String(sample);
  select.addEventListener("change", () => {
    sample = Number(select.value);
    void layouts(of, found);
  });
  const open = element("button", { type: "button" }, "Show in messages");
  open.addEventListener("click", () => {
    showView(MESSAGES);
    void showRow(sample);
  });
  const side = element("div", { id: "layouts" });
  detail.replaceChildren(title, around, ...(tie ? [tie] : []), body, element("div", { class: "choices" }, select, open), side);
  void layouts(of, found);
}

/** @param {T.TeraOpcode} of @param {T.TeraCandidates} found @param {T.TeraCandidate} it */
function candidate(of, found, it) {
  const compare = element("input", { type: "checkbox", "aria-label": `Compare ${it.title}` });
  compare.checked = compared.has(it.title);
  compare.addEventListener("change", () => {
    if (compare.checked && compared.size >= MAX_COMPARED) {
      compare.checked = false;
      return report(`at most ${MAX_COMPARED} layouts are shown side by side`);
    }
    if (compare.checked) compared.add(it.title);
    else compared.delete(it.title);
    void layouts(of, found);
  });
  const against = Object.entries(it.notes).map(([kind, count]) => `${kind} in ${grouped(count)}`);
  if (it.mapped !== null) against.push(`${it.mapped} in the map`);
  if (it.error) against.push(it.error);
  const isAccepted = accepted.get(keyOf(of)) === it.name;
  const accept = element("button", { type: "button", "aria-label": `Accept ${it.title}`, "aria-pressed": isAccepted }, "Accept");
  accept.addEventListener("click", () => void decide(of, isAccepted ? null : it));
  const cells = [it.title, it.score.toFixed(1), `${it.fits}/${found.tried}`, `${it.clean}/${found.tried}`, String(it.header), against.join(", ")];
  const row = element("tr", { class: isAccepted ? "different" : "" }, element("td", {}, compare));
  row.append(...cells.map((text, at) => (at === 0 ? element("th", { scope: "row" }, text) : element("td", {}, text))), element("td", {}, accept));
  return row;
}

/** Accepts a definition's name, or none. @param {T.TeraOpcode} of @param {T.TeraCandidate | null} it */
function decide(of, it) {
  const same = [...accepted].find(([key, name]) => name === it?.name && key !== keyOf(of) && key.startsWith(`${of.build}:`));
  if (same) return report(`${it?.name} is already accepted for opcode ${same[0].split(":")[1]}`);
  if (it && it.mapped !== null) return report(`${it.name} is already opcode ${it.mapped} in the map`);
  if (it) accepted.set(keyOf(of), it.name);
  else accepted.delete(keyOf(of));
  set("message", it ? `accepted ${it.name} for opcode ${of.opcode}; Export map saves it` : `opcode ${of.opcode} is unnamed again`);
  keep();
  const found = ranked.get(keyOf(of));
  if (found) show(of, found);
  const pressed = detail.querySelector(it ? "button[aria-pressed=true]" : "button[aria-pressed]");
  if (pressed instanceof HTMLElement) pressed.focus();
}

/** Keeps the accepted names as long as the tab is open, even if it is reloaded. */
function keep() {
  sessionStorage.setItem(storage(), JSON.stringify([...accepted]));
  changed();
}

function restore() {
  try {
    accepted = new Map(JSON.parse(sessionStorage.getItem(storage()) ?? "[]"));
  } catch {
    accepted = new Map();
  }
  changed();
}

function changed() {
  setText(save, accepted.size ? `Export map (${counted(accepted.size, "name")})` : "Export map");
  setAttribute(save, "disabled", accepted.size ? null : "");
  list.draw();
}

/** Decodes the sample with each of the compared definitions. @param {T.TeraOpcode} of @param {T.TeraCandidates} found */
async function layouts(of, found) {
  const own = ++choices;
  const wanted = found.candidates.filter((it) => compared.has(it.title));
  try {
    const answers = await Promise.all(wanted.map((it) => api.layout(of.build, of.opcode, it, sample)));
    if (own !== choices) return;
    document.getElementById("layouts")?.replaceChildren(...answers.map(layout));
  } catch (error) {
    report(error);
  }
}

/** @param {T.TeraLayout} it */
function layout(it) {
  const placed = places(it.nodes);
  /** The colour of each byte: that of the innermost field. @type {(string | null)[]} */
  const colours = [];
  const rows = it.nodes.slice(0, MAX_FIELDS).map((node, number) => {
    const place = placed[number];
    const own = place && !place.hasParts ? place.colour : null;
    if (own) for (let at = node.start[0]; at < Math.min(node.end[0], MAX_BYTES); at++) colours[at] = own;
    const name = element("th", { scope: "row" });
    name.style.paddingLeft = `${Math.min(node.depth, 24) * 12 + 4}px`;
    name.append(element("b", { class: own ? `dot ${own}` : "dot", "aria-hidden": "true" }), element("span", {}, node.name || `[${place?.index ?? 0}]`));
    const range = `${node.start[0].toString(16)}–${node.end[0].toString(16)}`;
    return element("tr", {}, name, element("td", {}, node.value), element("td", {}, node.kind), element("td", {}, range));
  });
  const bytes = element("div", { class: "sample", role: "region", "aria-label": `Bytes as ${it.definition}`, tabindex: 0 });
  const digits = it.bytes.match(/../g) ?? [];
  for (const [at, byte] of digits.slice(0, MAX_BYTES).entries()) {
    bytes.append(element("span", { class: colours[at] ?? "" }, byte), " ");
  }
  const left = digits.length > MAX_BYTES ? element("small", {}, `${grouped(digits.length - MAX_BYTES)} more bytes`) : null;
  const more = it.node_count > rows.length ? element("p", {}, `Only the first ${rows.length} of ${grouped(it.node_count)} fields are shown.`) : null;
  const notes = it.notes.map(([kind, at]) => `${kind} at ${at.toString(16)}`);
  const wrong = it.error ?? (notes.length ? notes.join(", ") : null);
  const titles = ["Field", "Value", "Kind", "Place"].map((name) => element("th", { scope: "col" }, name));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows));
  const scroller = element("div", { class: "table", role: "region", "aria-label": `Fields as ${it.definition}`, tabindex: 0 }, table);
  const title = element("h3", {}, it.definition);
  return element("section", { "aria-label": `Layout ${it.definition}` }, title, wrong ? element("p", { class: "wrong" }, wrong) : null, bytes, left, scroller, more);
}

save.addEventListener("click", async () => {
  const build = chosen?.build ?? 0;
  const names = [...accepted].map(([key, name]) => ({ key: key.split(":"), name })).filter(({ key }) => Number(key[0]) === build);
  try {
    const { file, text } = await api.opcodeMap(build, Object.fromEntries(names.map(({ key, name }) => [key[1], name])));
    const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    const link = element("a", { href: url, download: file });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    set("message", `exported ${counted(names.length, "new name")} and the map's names as ${file}`);
  } catch (error) {
    report(error);
  }
});
again.addEventListener("click", () => void load());

register({
  name: "tera",
  title: "Opcodes",
  panel,
  shown: () => {
    if (isLoaded) return;
    isLoaded = true;
    void load();
  },
});
