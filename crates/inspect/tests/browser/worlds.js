// Shards with players, for tests and pictures.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { command, folder, run } from "./harness.js";

/**
 * A shard with two accounts, and a proxy with its page in front of it.
 * @param {import("node:test").TestContext} t
 */
export async function behindProxy(t) {
  const home = folder(t);
  const shard = await run(t, home, "serve", "uru", "shard", "--listen", "127.0.0.1:0", "--no-status");
  await shard.hear("log", /Ctrl-C/);
  const port = (await shard.hear("log", /connect to 127\.0\.0\.1:(\d+)/))[1];
  await shard.hear("out", /Server\.Game\.X .*\n/);
  writeFileSync(path.join(home, "pw"), "hunter2\n");
  for (const name of ["ann", "ben"]) command(home, "uru", "account", "add", name, "--password-file", "pw", "--shard", "shard");
  const ini = shard.said.out.split("\n").filter((line) => !line.startsWith("Server.Port"));
  writeFileSync(path.join(home, "server.ini"), `${ini.join("\n")}\nServer.Port ${port}\n`);
  const relay = ["proxy", "uru", "--server-ini", "server.ini", "--client-ini", "client.ini", "--listen", "127.0.0.1:0", "--inspect"];
  const proxy = await run(t, home, ...relay);
  await proxy.hear("log", /Ctrl-C/);
  const url = (await proxy.hear("log", /the page is (http:\S+)/))[1] ?? "";
  const own = (await proxy.hear("log", /clients connect to 127\.0\.0\.1:(\d+)/))[1];
  const client = readFileSync(path.join(home, "client.ini"), "utf8").replace("Server.Port 0\n", `Server.Port ${own}\n`);
  writeFileSync(path.join(home, "client.ini"), client);
  /** @param {string} account @param {string} steps */
  const play = (account, steps) =>
    run(t, home, "client", "uru", "client.ini", "--account", account, "--password-file", "pw", ...steps.split(" "));
  return { home, url, play };
}

/**
 * A shard with its page, and the server.ini for its clients.
 * @param {import("node:test").TestContext} t
 */
export async function withPage(t) {
  const home = folder(t);
  const shard = await run(t, home, "serve", "uru", "shard", "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--inspect");
  await shard.hear("log", /Ctrl-C/);
  const port = (await shard.hear("log", /connect to 127\.0\.0\.1:(\d+)/))[1];
  const url = (await shard.hear("log", /the page is (http:\S+)/))[1] ?? "";
  await shard.hear("out", /Server\.Game\.X .*\n/);
  writeFileSync(path.join(home, "pw"), "hunter2\n");
  command(home, "uru", "account", "add", "ann", "--password-file", "pw", "--shard", "shard");
  const ini = shard.said.out.split("\n").filter((line) => !line.startsWith("Server.Port"));
  writeFileSync(path.join(home, "server.ini"), `${ini.join("\n")}\nServer.Port ${port}\n`);
  return { home, url };
}
