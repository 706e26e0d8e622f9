// The tabs above the page: messages, and the views of worlds that the server names. Each view is a module
// that registers itself; its tab appears once the server names it.

import { byId, element, setAttribute, throttle } from "./dom.js";
import { values, watch } from "./store.js";

/**
 * @typedef {object} WorldView
 * @property {string} name As the server names it.
 * @property {string} title
 * @property {HTMLElement} panel
 * @property {() => void} [shown] Called whenever the view becomes visible, and when the capture has grown since.
 */

/** The view of messages, or of a server's lists. */
export const MESSAGES = "messages";

const tabs = byId("views");
/** @type {Map<string, WorldView>} */
const registered = new Map();
/** The names of the tabs, in order. @type {string[]} */
let names = [];
let current = MESSAGES;

/**
 * Adds a view.
 * @param {WorldView} view
 */
export function register(view) {
  registered.set(view.name, view);
  const { panel } = view;
  panel.hidden = true;
  panel.classList.add("world");
  panel.id = `view-${view.name}`;
  setAttribute(panel, "role", "tabpanel");
  setAttribute(panel, "aria-label", view.title);
  byId("main").append(panel);
}

/** Reloads a view while the capture is read, but not for every event. */
export class Refresh {
  /** @param {() => unknown} load */
  constructor(load) {
    /** Whether the view shows all of it. */
    this.isFinished = false;
    this.rows = -1;
    this.soon = throttle(200, () => void load());
  }

  /** See {@link WorldView}. */
  shown() {
    const rows = values.capture?.rows ?? 0;
    if (rows === this.rows && this.isFinished) return;
    this.rows = rows;
    this.soon();
  }
}

/** The name of the visible view. */
export const visibleView = () => current;

/**
 * Shows a view.
 * @param {string} name
 */
export function showView(name) {
  current = name;
  const isWorld = name !== MESSAGES;
  document.body.classList.toggle("world", isWorld);
  for (const view of registered.values()) {
    view.panel.hidden = view.name !== name;
    document.body.classList.toggle(`world-${view.name}`, view.name === name);
  }
  for (const tab of tabs.querySelectorAll("[role=tab]")) {
    const isChosen = tab.getAttribute("data-view") === name;
    setAttribute(tab, "aria-selected", isChosen);
    setAttribute(tab, "tabindex", isChosen ? 0 : -1);
  }
  registered.get(name)?.shown?.();
}

/** @param {string} name */
function tab(name) {
  const title = registered.get(name)?.title ?? (values.capture?.live === "server" ? "Server" : "Messages");
  const controls = name === MESSAGES ? "main" : `view-${name}`;
  const made = element("button", { role: "tab", type: "button", "data-view": name, "aria-controls": controls }, title);
  made.addEventListener("click", () => showView(name));
  return made;
}

tabs.addEventListener("keydown", (event) => {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  showView(names[(names.indexOf(current) + step + names.length) % names.length] ?? MESSAGES);
  const chosen = tabs.querySelector('[aria-selected="true"]');
  if (chosen instanceof HTMLElement) chosen.focus();
});

watch(["capture"], () => {
  const named = (values.capture?.views ?? []).filter((name) => registered.has(name));
  // An archive has no messages.
  const wanted = values.capture?.archive ? named : [MESSAGES, ...named];
  if (wanted.join() !== names.join()) {
    names = wanted;
    tabs.replaceChildren(...names.map(tab));
    tabs.hidden = names.length < 2;
    showView(names.includes(current) ? current : (names[0] ?? MESSAGES));
  } else {
    registered.get(current)?.shown?.();
  }
});
