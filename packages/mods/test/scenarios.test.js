'use strict';
// The example mods' scenarios, whose expectations were recorded from the original program:
// WORLDWIRE_TOOLBOX_MODS=DIRECTORY WORLDWIRE_TERA_DATA=DIRECTORY node --test test

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { test } = require('node:test');
const { TestConversation } = require('./conversation');

const { WORLDWIRE_TOOLBOX_MODS: examples, WORLDWIRE_TERA_DATA: data } = process.env;
const skip = examples && data ? false : 'WORLDWIRE_TOOLBOX_MODS and WORLDWIRE_TERA_DATA are not set';

/** @param {string} folder @param {string} [prefix] @returns {Record<string, string>} */
function filesIn(folder, prefix = '') {
  return Object.assign({}, ...fs.readdirSync(folder, { withFileTypes: true }).map((entry) => {
    const file = path.join(folder, entry.name);
    return entry.isDirectory() ? filesIn(file, `${prefix}${entry.name}/`) : { [prefix + entry.name]: fs.readFileSync(file, 'utf8') };
  }));
}

/** @param {string} name */
async function run(name) {
  const scenario = JSON.parse(fs.readFileSync(path.join(String(examples), 'scenarios', `${name}.json`), 'utf8'));
  const mods = /** @type {Record<string, string>} */ ({ '.command.json': JSON.stringify(scenario.settings.command) });
  for (const mod of scenario.mods) Object.assign(mods, filesIn(path.join(String(examples), 'mods', mod), `${mod}/`));
  if (scenario.settings[name]) mods[`${name}/config.json`] = JSON.stringify(scenario.settings[name]);
  const conversation = new TestConversation(mods, { world: scenario.world, data, revision: Number(scenario.world.map) });
  const steps = [];
  for (const step of scenario.steps) {
    if (step.hex) conversation.pass(step.from, Buffer.from(step.hex, 'hex'));
    for (const { hex } of step.burst ?? []) conversation.pass(step.from, Buffer.from(hex, 'hex'));
    if (step.reload) assert(conversation.manager.reload(step.reload));
    if (step.unload) assert(conversation.manager.unload(step.unload));
    await new Promise((resolve) => setTimeout(resolve, step.wait ?? 0));
    await new Promise((resolve) => setImmediate(resolve));
    const sides = { client: /** @type {string[]} */ ([]), server: /** @type {string[]} */ ([]) };
    for (const [side, bytes] of conversation.sent.splice(0)) sides[side].push(bytes.toString('hex'));
    steps.push({ toClient: sides.client, toServer: sides.server });
  }
  conversation.close();
  return { scenario, steps };
}

for (const name of ['tracer', 'chat-helper']) {
  test(`${name} does what the original's mod does`, { skip }, async () => {
    const { scenario, steps } = await run(name);
    scenario.steps.forEach((/** @type {any} */ { expect, name: message }, /** @type {number} */ index) => {
      for (const side of /** @type {('toClient' | 'toServer')[]} */ (['toClient', 'toServer'])) {
        const wanted = expect[side].map((/** @type {any} */ { hex }) => hex);
        assert.deepStrictEqual(steps[index][side], wanted, `step ${index}, ${message}, ${side}`);
      }
    });
  });
}
