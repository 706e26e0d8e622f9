// Uru: the vault as a tree with search, a node's fields and history, and the nodes around it as a graph. The
// nodes come from the messages of a capture, or from a running shard, where fields can be edited.

import * as api from "./api.js";
import { element, setText } from "./dom.js";
import { drawn } from "./drawing.js";
import { counted, utc } from "./format.js";
import { LazyTree } from "./lazy-tree.js";
import { showRow, timeText } from "./messages.js";
import { report, set, values } from "./store.js";
import { MESSAGES, Refresh, register, showView } from "./worlds.js";

/** @import * as T from "./types.js" */
/** @import { Branch } from "./lazy-tree.js" */

/** Maximum parents or children shown in the graph. */
const MAX_DRAWN = 24;
/** The height of a node in the graph. */
const HEIGHT = 26;
/** The text fields of nodes that a shard searches. */
const TEXTS = ["IString64_1", "String64_1", "String64_2", "String64_3", "String64_4"];
/** Limits on a search: a shard's nodes that it shows, and shown nodes that it covers. */
const MAX_FOUND = 50;
const MAX_KNOWN = 10_000;

const search = element("input", {
  id: "vault-search",
  type: "text",
  "aria-label": "Search nodes",
  placeholder: "Search nodes: number or text   ( / )",
  autocomplete: "off",
  spellcheck: "false",
  maxlength: 1000,
});
const count = element("small", { role: "status", "aria-label": "Nodes" });
const nodes = element("div", { id: "vault-nodes", class: "rows", role: "treegrid", "aria-label": "Vault", tabindex: 0 });
const title = element("h2", {}, "No node selected");
const undo = element("button", { type: "button", disabled: "", hidden: "" }, "Undo");
const fields = element("div", { class: "table", role: "region", "aria-label": "Node fields", tabindex: 0 });
const graph = element("div", { class: "graph", role: "region", "aria-label": "References", tabindex: 0 });
const history = element("div", { class: "table", role: "region", "aria-label": "Node history", tabindex: 0 });
const panel = element("section", { class: "vault" },
  element("section", { class: "tree", "aria-label": "Nodes" }, element("div", { class: "bar" }, search, count), nodes),
  element("section", { class: "stack", "aria-label": "Node" }, element("div", { class: "bar" }, title, undo), fields, graph, history));

const isShard = () => values.capture?.live === "server";
/** The number of the latest request for a node. */
let latest = 0;
/** The changes that can be undone, latest last. @type {{node: number, name: string, before: unknown, after: unknown}[]} */
const edits = [];

/** The fields of a shard's nodes that can be edited. */
const EDITABLE = /^(U?Int32|Uuid|I?String64|Text)_\d$/;
/** Maximum changes listed, and values of each. */
const MAX_SHOWN = 200;
/** Maximum undoable changes. */
const MAX_EDITS = 100;

/** @param {T.VaultLine} line */
const nameOf = (line) => [line.id, line.type || "node", line.title].filter((part) => part !== "").join(" ");

/** @param {T.VaultLine} line @returns {Branch} */
function branch(line) {
  const parts = line.children === undefined ? "" : counted(line.children, "child").replace("childs", "children");
  return { text: nameOf(line), note: line.deleted ? "deleted" : line.children ? parts : "", hasParts: line.children !== 0, of: line };
}

/** Nodes of a shard that were shown, for the search. @type {Map<number, T.VaultLine>} */
const known = new Map();

/** Nodes of a running shard: a node, and those directly below it. @param {string | null} node @param {number} depth */
async function below(node, depth) {
  const request = node === null ? { request: "tree", depth } : { request: "tree", node, depth };
  const lines = /** @type {T.VaultLine[]} */ (/** @type {unknown} */ (await api.perform(request)));
  const found = lines.map(({ id, type, title }) => ({ id, type, title }));
  for (const line of found) if (known.size < MAX_KNOWN) known.set(line.id, line);
  return found;
}

/** Where the tree of a shard begins: the System node, the shard's ages, and players who are online. */
async function shardRoots() {
  const found = await below(null, 0);
  const ages = await api.perform({ request: "ages", all: false, running: false });
  const online = await api.perform({ request: "online" });
  for (const age of ages) {
    if (typeof age["id"] === "number") found.push({ id: age["id"], type: "AgeInfo", title: String(age["name"]) });
  }
  for (const session of online) {
    const player = /** @type {{id: number, name: string} | null} */ (session["player"]);
    if (player) found.push({ id: player.id, type: "Player", title: player.name });
  }
  return found;
}

/**
 * Finds a shard's nodes by number, by the name of a player or age, or by complete text, and nodes shown
 * earlier by part of their names. If `isLimited` is true, a limit was reached and nodes may be missing.
 * @param {string} text
 */
async function shardSearch(text) {
  /** @type {Map<number, T.VaultLine>} */
  const found = new Map();
  let isLimited = known.size >= MAX_KNOWN;
  const add = async (/** @type {string} */ node) => {
    try {
      for (const line of await below(node, 0)) found.set(line.id, line);
    } catch {
      // There is no such node.
    }
  };
  await add(text);
  for (const line of known.values()) {
    if (found.has(line.id) || !nameOf(line).toLowerCase().includes(text.toLowerCase())) continue;
    if (found.size < MAX_FOUND) found.set(line.id, line);
    else isLimited = true;
  }
  for (const field of TEXTS) {
    const ids = /** @type {unknown[]} */ (await api.perform({ request: "find", fields: { [field]: text } }));
    isLimited ||= ids.length > MAX_FOUND;
    for (const id of ids.slice(0, MAX_FOUND)) {
      if (typeof id !== "number" || found.has(id)) continue;
      if (found.size < MAX_FOUND) await add(String(id));
      else isLimited = true;
    }
  }
  return { lines: [...found.values()], isLimited };
}

const tree = new LazyTree({
  scroller: nodes,
  prefix: "vault-",
  load: async (parent, start) => {
    const text = search.value.trim();
    if (isShard()) {
      const searched = parent || !text ? null : await shardSearch(text);
      const found = parent ? (await below(String(parent.of.id), 1)).slice(1) : (searched?.lines ?? (await shardRoots()));
      const limit = searched?.isLimited ? ", limit reached" : "";
      if (!parent) setText(count, searched ? counted(found.length, "node") + limit : "");
      const page = found.slice(start, start + 1000);
      return { total: found.length, branches: page.map(branch) };
    }
    const found = await api.vault(parent ? { parent: parent.of.id, start } : { search: text, start });
    if (!parent) {
      const all = text ? found.total : found.known.nodes;
      setText(count, counted(all, "node") + (found.status.full ? ", more than can be shown" : ""));
      reading.isFinished = found.status.complete || found.status.caught_up;
    }
    return { total: found.total, branches: found.nodes.map(branch) };
  },
  chosen: (chosen, parents) => void open(chosen.of.id, parents.at(-1)?.of ?? null),
  entered: () => fields.focus(),
});

/** @param {number} id @param {T.VaultLine | null} parent The node through which it was reached. */
async function open(id, parent) {
  const own = ++latest;
  try {
    const node = isShard() ? await shardNode(id, parent) : await api.vaultNode(id);
    if (own === latest) show(node);
  } catch (error) {
    if (own === latest) report(error);
  }
}

/** @param {number} id @param {T.VaultLine | null} parent @returns {Promise<T.VaultNode>} */
async function shardNode(id, parent) {
  const [shown] = await api.perform({ request: "show", node: id });
  const lines = await below(String(id), 1);
  const [own = { id, type: "", title: "" }] = lines;
  const isNumbered = /^(NodeId|NodeType|(Create|Modify)Time|CreateAge(Name|Uuid)|Creator(Acct|Id)|(U?Int32|Uuid|I?String64|Text|Blob)_\d)$/;
  const members = Object.entries(shown ?? {}).map(([name, value]) => ({
    name,
    value: typeof value === "string" ? value : JSON.stringify(value),
  }));
  // The game's names come first.
  const named = members.filter((field) => !isNumbered.test(field.name));
  const numbered = members.filter((field) => isNumbered.test(field.name));
  return {
    ...own,
    fields: [...named, ...numbered],
    parents: parent ? [parent] : [],
    shown_children: lines.slice(1),
    children: lines.length - 1,
    history: [],
  };
}

/** A field of a shard's node as JSON. @param {number} node @param {string} name */
async function stored(node, name) {
  const [shown] = await api.perform({ request: "show", node });
  return shown?.[name];
}

/**
 * Changes a field of a shard's node, unless someone else has changed it since it was shown.
 * @param {number} node
 * @param {string} name
 * @param {unknown} before
 * @param {unknown} after
 */
async function change(node, name, before, after) {
  if ((await stored(node, name)) !== before) throw new Error(`${name} of node ${node} has changed in the meantime; its new value is shown`);
  await api.perform({ request: "set", node, fields: { [name]: after } });
}

/** Saves an edited field. @param {T.VaultNode} node @param {string} name @param {string} shown @param {string} text */
async function save(node, name, shown, text) {
  const isNumber = /Int32/.test(name);
  // Keeps what the user has typed.
  if (isNumber && !/^-?\d+$/.test(text.trim())) return report(`${name} must be a whole number`);
  const [before, after] = isNumber ? [Number(shown), Number(text)] : [shown, text];
  try {
    await change(node.id, name, before, after);
    edits.push({ node: node.id, name, before, after });
    if (edits.length > MAX_EDITS) edits.shift();
    set("message", `${name} of node ${node.id} saved`);
  } catch (error) {
    report(error);
  }
  await open(node.id, node.parents[0] ?? null);
}

undo.addEventListener("click", async () => {
  const last = edits.pop();
  if (!last) return;
  try {
    await change(last.node, last.name, last.after, last.before);
    set("message", `${last.name} of node ${last.node} restored`);
  } catch (error) {
    report(error);
  }
  await open(last.node, null);
});

/** The value of a field, as an input if it can be edited. @param {T.VaultNode} node @param {T.NamedValue} field */
function valueCell(node, field) {
  if (!isShard() || !EDITABLE.test(field.name)) return element("td", {}, field.value);
  const input = element("input", { type: "text", "aria-label": field.name });
  input.value = field.value;
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && input.value !== field.value) void save(node, field.name, field.value, input.value);
    if (event.key === "Escape") input.value = field.value;
  });
  return element("td", {}, input);
}

/** @param {T.VaultNode} node */
function show(node) {
  undo.hidden = !isShard();
  undo.disabled = edits.length === 0;
  setText(title, nameOf(node) + (node.deleted ? " (deleted)" : ""));
  const rows = node.fields.map((field) =>
    element("tr", {}, element("th", { scope: "row" }, field.game ?? field.name), element("td", { class: "dim" }, field.game ? field.name : ""), valueCell(node, field)));
  const head = element("tr", {}, ...["Field", "Number", "Value"].map((name) => element("th", { scope: "col" }, name)));
  fields.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  if (rows.length === 0) fields.replaceChildren(element("p", {}, "No message shows the fields of this node."));
  drawGraph(node);
  history.hidden = isShard();
  history.replaceChildren(historyTable(node.history.map((change) => ({ ...change, values: change.fields }))));
}

/**
 * A table of changes, each with a button that shows its message.
 * @param {{row: number, time: string, from: string, values: T.NamedValue[]}[]} changes
 */
export function historyTable(changes) {
  const head = element("tr", {}, ...["Row", "Time", "From", "Field", "Value"].map((name) => element("th", { scope: "col" }, name)));
  const shown = changes.slice(-MAX_SHOWN);
  const lines = shown.flatMap((change) =>
    change.values.slice(0, MAX_SHOWN).map((field, at) => {
      const button = element("button", { type: "button", "aria-label": `Show row ${change.row}` }, String(change.row));
      button.addEventListener("click", () => showMessage(change.row));
      return element("tr", { "data-row": change.row }, element("td", {}, at === 0 ? button : ""), element("td", at === 0 ? { title: `${utc(change.time)} UTC` } : {}, at === 0 ? timeText(change.time) : ""),
        element("td", {}, at === 0 ? change.from : ""), element("td", {}, field.game ?? field.name), element("td", {}, field.value));
    }));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
  const hidden = changes.length - shown.length;
  return element("div", {}, hidden > 0 ? element("p", {}, `The last ${counted(shown.length, "change")} are shown.`) : null, table);
}

/** Goes to the row of a message. @param {number} row */
export function showMessage(row) {
  showView(MESSAGES);
  void showRow(row);
}

/** Draws a node between its parents and its children. @param {T.VaultNode} node */
function drawGraph(node) {
  const sides = [node.parents, node.shown_children].map((lines) => lines.slice(0, MAX_DRAWN));
  const [parents = [], children = []] = sides;
  const hidden = (node.children ?? 0) + node.parents.length - parents.length - children.length;
  const height = HEIGHT * Math.max(parents.length, children.length, 1) + 10;
  const svg = drawn("svg", { viewBox: `0 0 900 ${height}`, width: 900, height, role: "group", "aria-label": `${nameOf(node)} between its parents and children` });
  const place = (/** @type {number} */ at, /** @type {number} */ total) => height / 2 + (at - (total - 1) / 2) * HEIGHT;
  for (const at of parents.keys()) svg.append(link(260, place(at, parents.length), 330, height / 2));
  for (const at of children.keys()) svg.append(link(570, height / 2, 640, place(at, children.length)));
  for (const [at, line] of parents.entries()) svg.append(box(line, 10, place(at, parents.length), null));
  for (const [at, line] of children.entries()) svg.append(box(line, 640, place(at, children.length), node));
  svg.append(drawn("rect", { x: 330, y: height / 2 - 11, width: 240, height: 22, rx: 4, class: "own" }), label(nameOf(node), 338, height / 2 + 4));
  graph.replaceChildren(svg, ...(hidden > 0 ? [element("p", {}, `${counted(hidden, "more node")} not drawn`)] : []));
}

/** @param {number} x @param {number} y @param {number} toX @param {number} toY */
const link = (x, y, toX, toY) => drawn("path", { d: `M${x} ${y}C${x + 40} ${y} ${toX - 40} ${toY} ${toX} ${toY}`, class: "link" });

/** @param {string} text @param {number} x @param {number} y */
const label = (text, x, y) => drawn("text", { x, y }, [...text].length > 34 ? `${[...text].slice(0, 33).join("")}…` : text);

/** @param {T.VaultLine} line @param {number} x @param {number} y @param {T.VaultLine | null} parent */
function box(line, x, y, parent) {
  const made = drawn("g", { role: "button", tabindex: 0, "aria-label": nameOf(line) },
    drawn("rect", { x, y: y - 11, width: 250, height: 22, rx: 4 }), label(nameOf(line), x + 8, y + 4));
  made.addEventListener("click", () => void open(line.id, parent));
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      void open(line.id, parent);
    }
  });
  return made;
}

tree.searchWith(search);

const reading = new Refresh(refresh);

/** Reloads the roots while the capture is read, unless something in the tree is open. */
async function refresh() {
  const isTouched = tree.lines.some((line) => line.isOpen) || tree.list.cursor >= 0;
  if (isShard() ? tree.lines.length > 0 : isTouched) return;
  await tree.reload();
  if (!isShard() && !reading.isFinished && !panel.hidden) reading.soon();
}

register({
  name: "vault",
  title: "Vault",
  panel,
  shown: () => reading.shown(),
});
