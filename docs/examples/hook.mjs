#!/usr/bin/env node
// Answers Uru clients that ask for the server's build, without asking the server.
// Give a port to connect to a proxy that listens for hooks: node hook.mjs 7900
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const BUILD = 918;
const port = Number(process.argv[2] ?? 0);
const socket = port ? connect(port, '127.0.0.1') : null;
const input = socket ?? process.stdin;
const output = socket ?? process.stdout;
const say = (line) => output.write(JSON.stringify(line) + '\n');

const subscriptions = [{ id: 'request', filter: 'file.BuildIdRequest' }];
say({ type: 'hello', version: 1, name: 'build', json_safe: true, subscriptions });

for await (const line of createInterface({ input })) {
  const message = JSON.parse(line);
  if (message.type === 'error') console.error(message.text);
  if (message.type !== 'message') continue;
  const { transId } = message.fields;
  const fields = { transId, result: 'Success', buildId: BUILD };
  const reply = { to: 'client', name: 'file.BuildIdReply', fields };
  say({ type: 'answer', id: message.id, do: 'drop', add: [reply] });
}
