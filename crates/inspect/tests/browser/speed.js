// Measures the page's server on a generated capture of 1 GB, against `dissect --brief` in the same run.
// `WORLDWIRE=target/dist/worldwire node speed.js [FILE [OPTION...]]`

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { generate } from "./generate.js";
import { program, samples, serve } from "./harness.js";

const ROUNDS = 3;
const MESSAGES = 300;

const [given, ...options] = process.argv.slice(2);
const folder = given ? null : mkdtempSync(path.join(tmpdir(), "worldwire-"));
const file = given ?? path.join(folder ?? "", "large.pcap");
const rest = given ? options : ["--data", path.join(samples, "ki-messages")];
if (folder) generate(file, 2_500_000, 320, 8);

/** Seconds since a time. @param {number} from */
const since = (from) => (performance.now() - from) / 1000;

/** Numbers that are the same in every run. @param {number} below */
const random = ((state) => (/** @type {number} */ below) => (state = (state * 48271) % 2147483647) % below)(1);

for (let round = 0; round < ROUNDS; round++) {
  let begun = performance.now();
  spawnSync(program, ["dissect", file, "--brief", ...rest], { stdio: "ignore" });
  const brief = since(begun);
  begun = performance.now();
  const server = await serve(file, ...rest);
  const { origin, searchParams } = new URL(server.url);
  const headers = { authorization: `Bearer ${searchParams.get("token")}` };
  /** @param {string} request */
  const get = async (request) => (await fetch(origin + request, { headers })).json();
  while ((await get("/api/rows?count=10")).rows.length === 0);
  const first = since(begun);
  let status = await get("/api/capture");
  while (!status.complete) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    status = await get("/api/capture");
  }
  const complete = since(begun);
  /** @type {number[]} */
  const times = [];
  for (let number = 0; number < MESSAGES; number++) {
    const row = random(status.rows);
    begun = performance.now();
    await get(`/api/messages/${row}`);
    times.push(1000 * since(begun));
  }
  times.sort((a, b) => a - b);
  const memory = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"));
  await server.stop();
  const at = (/** @type {number} */ part) => `${times[Math.floor(part * (MESSAGES - 1))]?.toFixed(1)} ms`;
  console.log(
    `first rows ${(1000 * first).toFixed(0)} ms; complete ${complete.toFixed(2)} s, ` +
      `${(complete / brief).toFixed(2)}x dissect --brief (${brief.toFixed(2)} s); ${status.rows} rows; ` +
      `a message ${at(0.5)}, 99 % within ${at(0.99)}, all within ${at(1)}; ${Math.round(Number(memory?.[1]) / 1024)} MiB`,
  );
}
if (folder) rmSync(folder, { recursive: true });
