// Downloads what the list shows.

import { exportPath } from "./api.js";
import { byId, element } from "./dom.js";
import { attach } from "./menu.js";
import { report, set, values } from "./store.js";

/** @param {string} format */
function download(format) {
  const { selection } = values.shown;
  if (!values.capture?.complete || (selection && !selection.complete)) {
    return report("wait until reading and filtering are complete");
  }
  const link = element("a", { href: exportPath(format, selection?.id ?? null), download: "" });
  document.body.append(link);
  link.click();
  link.remove();
  set("message", `exporting ${selection ? "matching messages" : "everything"} as ${format}`);
}

attach(byId("export"), byId("export-menu"), [
  { name: "Packets of their conversations (pcapng)", act: () => download("pcapng") },
  { name: "JSON lines", act: () => download("jsonl") },
  { name: "Table (CSV)", act: () => download("csv") },
]);
