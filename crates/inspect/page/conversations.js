// The list of conversations. Choosing one shows only its messages.

import * as api from "./api.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { counted, duration, size } from "./format.js";
import { show } from "./filter.js";
import { Rows } from "./rows.js";
import { report, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

/** The maximum number that one request lists. */
const MAX_LISTED = 1000;

/** @type {T.Conversation[]} */
let conversations = [];
/**
 * For each conversation, by number: its side of the proxy, and the address of its client.
 * @type {Map<number, {side: "client" | "server", client: string | null}>}
 */
const legs = new Map();
/** The connections that the proxy has reported, by the address of the client. @type {Map<string, number>} */
const numbers = new Map();
/** The servers of these connections. @type {Set<string>} */
const servers = new Set();
/** The maximum distance in the list between the two sides of a connection. */
const MAX_APART = 64;
/** @type {Record<"client" | "server", string>} */
const LEG_NAMES = { client: "client to proxy", server: "proxy to server" };
let isLoading = false;
let isOutdated = false;

const list = new Rows({
  scroller: byId("conversations"),
  height: 60,
  prefix: "conversation-",
  create: () => {
    const row = element("div", { class: "row" });
    const cell = element("span", { role: "gridcell" });
    cell.append(element("b"), element("span"), element("small"));
    const cell2 = element("span", { role: "gridcell", class: "spark" });
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 10");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.append(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    cell2.append(svg);
    row.append(cell, cell2);
    return row;
  },
  fill,
  moved: () => {},
  opened: (position) => {
    const stream = conversations[position]?.stream ?? null;
    void show({ stream: values.shown.stream === stream ? null : stream });
  },
});

/** @param {HTMLElement} row @param {number} position */
function fill(row, position) {
  const conversation = conversations[position];
  if (!conversation) return;
  const title = row.querySelector("b");
  const ends = row.querySelector("span > span");
  const about = row.querySelector("small");
  const path = row.querySelector("path");
  const svg = row.querySelector("svg");
  if (!title || !ends || !about || !path || !svg) return;
  const { stream, client, server, family, transport, bytes, gaps, problems } = conversation;
  setText(title, `#${stream} ${family ?? "unknown"}, ${transport}, ${counted(conversation.messages, "message")}`);
  setText(ends, `${client} → ${server}`);
  const seconds = Number(BigInt(conversation.last) - BigInt(conversation.first)) / 1e9;
  const parts = [size(bytes[0] + bytes[1]), duration(seconds)];
  const leg = legs.get(stream);
  if (leg) parts.unshift(LEG_NAMES[leg.side], ...connectionOf(leg.client));
  if (gaps) parts.push(counted(gaps, "gap"));
  if (problems) parts.push(counted(problems, "problem"));
  if (conversation.midstream) parts.push("beginning missing");
  setText(about, parts.join(" · "));
  const most = Math.max(1, ...conversation.sparkline);
  const bars = conversation.sparkline.map((count, at) => (count ? `M${at} 10v-${Math.max(1, (count / most) * 10)}h.8V10z` : ""));
  setAttribute(path, "d", bars.join(""));
  setAttribute(svg, "aria-label", `messages over time, at most ${most} per interval`);
  const isShown = values.shown.stream === stream;
  row.className = `row${isShown ? " shown" : ""}${gaps || problems ? " problem" : ""}`;
  setAttribute(row, "title", `${client} → ${server}\n${parts.join(" · ")}`);
}

/** The number that the proxy gives a connection, and whether it has ended. @param {string | null} client */
function connectionOf(client) {
  const number = client === null ? undefined : numbers.get(client);
  if (number === undefined) return [];
  const isOpen = values.live?.connections?.some((it) => it.connection === number) ?? false;
  return [`connection ${number}${isOpen ? "" : ", ended"}`];
}

async function load() {
  if (isLoading) {
    isOutdated = true;
    return;
  }
  isLoading = true;
  isOutdated = false;
  try {
    /** @type {T.Conversation[]} */
    const found = [];
    let total = 1;
    while (found.length < total) {
      const part = await api.conversations(found.length, MAX_LISTED);
      if (part.conversations.length === 0) break;
      found.push(...part.conversations);
      total = part.total;
    }
    conversations = found;
    findLegs();
    list.resize(found.length);
    list.draw();
  } catch (error) {
    report(error);
  }
  isLoading = false;
  // While the capture is being read, at most about once per second.
  if (isOutdated) setTimeout(load, 1000);
}

/** Finds each conversation's side of the proxy. */
function findLegs() {
  if (values.capture?.live !== "proxy") return;
  for (const [at, one] of conversations.entries()) {
    if (legs.has(one.stream)) continue;
    // A proxy records the beginnings of both TCP connections at the same time, the client's first.
    const other = conversations.slice(at + 1, at + MAX_APART).find((it) => it.first === one.first && it.transport === one.transport && !legs.has(it.stream));
    if (other && one.transport === "tcp") {
      legs.set(one.stream, { side: "client", client: one.client });
      legs.set(other.stream, { side: "server", client: one.client });
    } else if (numbers.has(one.client)) legs.set(one.stream, { side: "client", client: one.client });
    else if (servers.has(one.server)) legs.set(one.stream, { side: "server", client: null });
  }
}

watch(["live"], () => {
  const before = numbers.size;
  for (const { connection, client, server } of values.live?.connections ?? []) {
    numbers.set(client, connection);
    servers.add(server);
  }
  if (numbers.size !== before) findLegs();
  list.draw();
});

let last = "";
watch(["capture"], () => {
  const { rows = 0, conversations: count = 0, complete = false } = values.capture ?? {};
  const state = `${rows} ${count} ${complete}`;
  if (state !== last) void load();
  last = state;
});
watch(["shown"], () => list.draw());
