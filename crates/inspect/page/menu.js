// Menus below buttons: arrows, Home, End, Enter and Escape.

import { element } from "./dom.js";

/**
 * @param {HTMLElement} button
 * @param {HTMLElement} menu
 * @param {{name: string, act: () => void}[]} items
 */
export function attach(button, menu, items) {
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  const entries = items.map(({ name, act }) => {
    const entry = element("button", { role: "menuitem", type: "button", tabindex: -1 }, name);
    entry.addEventListener("click", () => {
      close();
      act();
    });
    return entry;
  });
  menu.replaceChildren(...entries);

  const close = () => {
    if (menu.hidden) return;
    menu.hidden = true;
    button.setAttribute("aria-expanded", "false");
    button.focus();
  };
  button.addEventListener("click", () => {
    if (!menu.hidden) return close();
    menu.hidden = false;
    button.setAttribute("aria-expanded", "true");
    entries[0]?.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const at = entries.findIndex((entry) => entry === document.activeElement);
    /** @type {Record<string, number>} */
    const targets = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 };
    const target = targets[event.key];
    if (target !== undefined) {
      event.preventDefault();
      entries[(target + entries.length) % entries.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      close();
    }
    event.stopPropagation();
  });
  menu.addEventListener("focusout", (event) => {
    const to = event.relatedTarget;
    if (to instanceof Node && !menu.contains(to) && to !== button) {
      menu.hidden = true;
      button.setAttribute("aria-expanded", "false");
    }
  });
}
