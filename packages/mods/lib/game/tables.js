'use strict';
// Tables that the original program reads from the game client.

const CLASSES = ['warrior', 'lancer', 'slayer', 'berserker', 'sorcerer', 'archer', 'priest', 'elementalist', 'soulless', 'engineer', 'fighter', 'assassin', 'glaiver'];
const RACES = ['human', 'highelf', 'aman', 'castanic', 'popori', 'baraka'];
const GENDERS = ['male', 'female'];

/** `mod.game.data`. */
class GameTables {
  /** @param {any} world the tables in worldwire-mods.json, by ID */
  constructor(world) {
    this.users = new Users(table(world.users));
    this.items = table(world.items);
    this.continents = table(world.continents);
    this.abnormalities = table(world.abnormalities);
  }

  /** Loads tables. Here, they are available from the start. */
  initialize() {}
}

/** Class, race and gender, from a character's template. */
class Users {
  /** @param {Map<number, any>} known */
  constructor(known) { this.known = known; }

  /** @param {number} template */
  has(template) { return this.get(template) !== undefined; }

  /**
   * Templates are 1XXYY: XX is 1 + 2 * race + gender, and YY is 1 + class.
   * Unverified: the order of the names of races and classes.
   * @param {number} template
   */
  get(template) {
    const known = this.known.get(template);
    if (known !== undefined) return known;
    if (!Number.isInteger(template) || Math.floor(template / 10_000) !== 1) return undefined;
    const body = Math.floor(template / 100) % 100 - 1;
    const [race, gender, job] = [RACES[body >> 1], GENDERS[body & 1], CLASSES[template % 100 - 1]];
    return body >= 0 && race && job ? { class: job, race, gender } : undefined;
  }
}

/** @param {Record<string, any> | undefined} entries @returns {Map<number, any>} */
function table(entries) {
  return new Map(Object.entries(entries ?? {}).map(([id, entry]) => [Number(id), entry]));
}

module.exports = { GameTables };
