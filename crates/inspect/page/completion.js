// Suggestions below a text field: arrows choose one, Tab and Enter accept it.

import * as api from "./api.js";
import { debounce, element, setAttribute } from "./dom.js";
import { report } from "./store.js";

/** @import * as T from "./types.js" */

/**
 * @typedef {object} CompletionOptions
 * @property {HTMLInputElement} input
 * @property {HTMLElement} listbox
 * @property {(suggestion: T.Suggestion) => boolean} [fits] Whether to offer a suggestion.
 * @property {(suggestion: T.Suggestion) => void} [taken] A suggestion has replaced the word.
 */

export class Completion {
  /** @param {CompletionOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {T.Suggestion[]} */
    this.suggestions = [];
    this.chosen = -1;
    /** The part of the text that a suggestion replaces. */
    this.part = { start: 0, end: 0 };
    this.asked = 0;
    const { input } = options;
    const soon = debounce(60, () => this.ask());
    input.addEventListener("input", soon);
    input.addEventListener("blur", () => this.close());
    // Added before the field's own key handlers, so that this one runs first.
    input.addEventListener("keydown", (event) => this.key(event));
  }

  get isOpen() {
    return this.suggestions.length > 0;
  }

  close() {
    this.asked++;
    this.suggestions = [];
    this.chosen = -1;
    this.draw();
  }

  async ask() {
    const { input, fits = () => true } = this.options;
    const own = ++this.asked;
    try {
      const found = await api.suggestions(input.value, input.selectionStart ?? input.value.length);
      if (own !== this.asked || document.activeElement !== input) return;
      this.part = found;
      this.suggestions = found.suggestions.filter(fits);
      this.chosen = -1;
      this.draw();
    } catch (error) {
      report(error);
    }
  }

  draw() {
    const { input, listbox } = this.options;
    listbox.hidden = !this.isOpen;
    const options = this.suggestions.map((suggestion, index) => {
      const id = `${listbox.id}-${index}`;
      const option = element("div", { role: "option", id, "aria-selected": index === this.chosen }, suggestion.text);
      option.append(element("small", {}, suggestion.kind));
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        this.take(index);
      });
      return option;
    });
    listbox.replaceChildren(...options);
    setAttribute(input, "aria-activedescendant", this.chosen < 0 ? null : `${listbox.id}-${this.chosen}`);
    options[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  /** Completes the word. @param {number} index */
  take(index) {
    const { input, taken } = this.options;
    const suggestion = this.suggestions[index];
    if (!suggestion) return;
    const before = input.value.slice(0, this.part.start) + suggestion.text;
    input.value = before + input.value.slice(this.part.end);
    input.setSelectionRange(before.length, before.length);
    this.close();
    taken?.(suggestion);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && this.isOpen) {
      const count = this.suggestions.length;
      this.chosen = this.chosen < 0 ? (step > 0 ? 0 : count - 1) : (this.chosen + step + count) % count;
      this.draw();
    } else if ((event.key === "Tab" || event.key === "Enter") && this.chosen >= 0) {
      this.take(this.chosen);
    } else if (event.key === "Escape" && this.isOpen) {
      this.close();
      event.stopPropagation();
    } else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}
