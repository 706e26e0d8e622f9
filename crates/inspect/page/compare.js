// Compares two messages, field by field.

import { byId, element, setText } from "./dom.js";
import { places } from "./paths.js";
import { report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

const dialog = /** @type {HTMLDialogElement} */ (byId("compare"));
const mark = byId("mark");
const open = /** @type {HTMLButtonElement} */ (byId("compare-open"));

/** The values of a message, by path. @param {T.Detail} detail */
function valuesOf(detail) {
  const placed = places(detail.nodes);
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const [number, node] of detail.nodes.entries()) {
    const place = placed[number];
    if (!place || node.kind === "record" || place.path === "") continue;
    found.set(place.path, node.value);
  }
  return found;
}

/** Marks the selected message for comparison, or removes its mark. */
export function toggleMark() {
  const detail = values.detail;
  if (!detail) return report("select a message first");
  const isMarked = values.marked?.row === detail.row;
  set("marked", isMarked ? null : detail);
  set("message", isMarked ? "mark removed" : `row ${detail.row} is marked; select another message and press Compare`);
}

/** Shows the differences. */
export function compare() {
  const [left, right] = [values.marked, values.detail];
  if (!left || !right) return report("mark one message and select another");
  const [before, after] = [valuesOf(left), valuesOf(right)];
  const paths = [...new Set([...before.keys(), ...after.keys()])];
  const isSame = (/** @type {string} */ path) => before.get(path) === after.get(path);
  const rows = paths.map((path) => {
    const row = element("tr", { class: isSame(path) ? "" : "different" });
    row.append(
      element("th", { scope: "row" }, path),
      element("td", {}, before.get(path) ?? "absent"),
      element("td", {}, after.get(path) ?? "absent"),
    );
    return row;
  });
  const differing = paths.filter((path) => !isSame(path)).length;
  setText(byId("compare-title"), `${left.name} (row ${left.row}) and ${right.name} (row ${right.row})`);
  setText(byId("compare-count"), `${differing} of ${paths.length} fields differ`);
  setText(byId("compare-left"), `Row ${left.row}`);
  setText(byId("compare-right"), `Row ${right.row}`);
  byId("compare-rows").replaceChildren(...rows);
  dialog.showModal();
}

mark.addEventListener("click", toggleMark);
open.addEventListener("click", compare);
watch(["marked", "detail"], () => {
  const isMarked = values.marked !== null && values.marked.row === values.detail?.row;
  mark.setAttribute("aria-pressed", String(isMarked));
  open.disabled = !values.marked || !values.detail || isMarked;
});
