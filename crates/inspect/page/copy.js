// Copies a message, or the selected field, in several formats.

import { byId, setAttribute } from "./dom.js";
import { pathOf } from "./fields.js";
import { bytesOf, hex } from "./format.js";
import { attach } from "./menu.js";
import { filterFor } from "./paths.js";
import { report, set, values, watch } from "./store.js";

/** @import * as T from "./types.js" */

/** @param {string} what @param {(detail: T.Detail) => string | null} make */
function item(what, make) {
  return {
    name: what,
    act: async () => {
      const detail = values.detail;
      if (!detail) return report("select a message first");
      const text = make(detail);
      if (text === null) return;
      try {
        await navigator.clipboard.writeText(text);
        set("message", `copied ${text.length} characters as ${what}`);
      } catch {
        report("the browser refused access to the clipboard");
      }
    },
  };
}

/** @param {T.Detail} detail */
function json(detail) {
  if (!detail.line) {
    report("the message is too long to copy as JSON; export it instead");
    return null;
  }
  return detail.line;
}

/** The bytes of the chosen field, or of the whole message. @param {T.Detail} detail */
function digits(detail) {
  const node = values.node === null ? undefined : detail.nodes[values.node];
  const layer = node ? detail.layers[node.layer] : undefined;
  if (!node || !layer) return detail.body;
  return layer.bytes.slice(2 * node.start[0], 2 * (node.end[0] + (node.end[1] ? 1 : 0)));
}

/** @param {T.Detail} detail */
function rust(detail) {
  const bytes = bytesOf(digits(detail));
  const lines = [];
  for (let at = 0; at < bytes.length; at += 12) {
    lines.push(`    ${[...bytes.slice(at, at + 12)].map((byte) => `0x${hex(byte, 2)}`).join(", ")},`);
  }
  const path = values.node === null ? "" : pathOf(values.node);
  const name = `${detail.name}${path && `.${path}`}`.replace(/[^A-Za-z0-9]+/g, "_").replace(/_$/, "").toUpperCase();
  const before = `/// ${path && `\`${path}\` of `}${detail.name} from the ${detail.from}, row ${detail.row}.\n`;
  return `${before}const ${name}: [u8; ${bytes.length}] = [\n${lines.join("\n")}\n];\n`;
}

/** @param {T.Detail} detail */
function filter(detail) {
  const node = values.node === null ? undefined : detail.nodes[values.node];
  const condition = node && values.node !== null ? filterFor(node, pathOf(values.node)) : null;
  return condition ? `${detail.name} and ${condition}` : detail.name;
}

/** @param {T.Detail} detail */
function encode(detail) {
  const line = json(detail);
  if (line === null) return null;
  if (!detail.codec) {
    report(`no codec encodes ${detail.name} by itself; copy the JSON line instead`);
    return null;
  }
  // A single quote ends a quoted shell string, so it is placed outside.
  return `printf '%s\\n' '${line.replaceAll("'", "'\\''")}' | worldwire encode --lines --hex${values.capture?.options ?? ""}`;
}

attach(byId("copy"), byId("copy-menu"), [
  item("JSON", json),
  item("hex", digits),
  item("Rust", rust),
  item("filter", filter),
  item("encode command", encode),
]);

watch(["detail"], () => {
  for (const id of ["copy", "mark", "bookmark", "resend"]) setAttribute(byId(id), "disabled", values.detail ? null : "");
});
