'use strict';
// More state of the player's character: what it carries, trades and has learned.

const { EventEmitter } = require('events');

/** @typedef {import('./index').GameState} GameState */

/** Containers in S_ITEMLIST, and the slot of the weapon. Unverified: taken from mods that use them. */
const CONTAINERS = { inventory: 0, equipment: 14 };
const WEAPON_SLOT = 1;

/** `mod.game.contract`: a window shared by two players, such as a trade. */
class Contract extends EventEmitter {
  /** @param {GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    /** @type {number | null} */
    this.id = null;
    /** @type {number | null} */
    this.type = null;
    game.observe('S_REQUEST_CONTRACT', '*', ({ id, type, senderId }) => {
      if (game.me.is(senderId)) this.#begin(id, type);
    });
    for (const name of ['S_ACCEPT_CONTRACT', 'S_REJECT_CONTRACT', 'S_CANCEL_CONTRACT']) {
      game.observe(name, '*', ({ id }) => { if (id === this.id) this.#end(); });
    }
    game.on('leave_game', () => this.#end());
  }

  get active() { return this.id !== null; }

  /** @param {number} id @param {number} type */
  #begin(id, type) {
    [this.id, this.type] = [id, type];
    this.emit('begin', type, id);
  }

  #end() {
    if (!this.active) return;
    const { id, type } = this;
    [this.id, this.type] = [null, null];
    this.emit('end', type, id);
  }
}

/** `mod.game.inventory`. */
class Inventory extends EventEmitter {
  /** @type {Map<string, any>} items by container, pocket and slot, including those of an incomplete list */
  #incoming = new Map();

  /** @param {GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    /** @type {Map<string, any>} items by container, pocket and slot */
    this.slots = new Map();
    /** @type {bigint} */
    this.money = 0n;
    game.observe('S_ITEMLIST', '*', (event) => { if (game.me.is(event.gameId)) this.#list(event); });
    game.on('leave_game', () => this.slots.clear());
  }

  /** @param {any} event */
  #list({ container, pocket, money, first, more, items }) {
    const prefix = `${container}.${pocket}.`;
    if (first) {
      for (const key of [...this.#incoming.keys()]) if (key.startsWith(prefix)) this.#incoming.delete(key);
    }
    for (const item of items) this.#incoming.set(`${prefix}${item.slot}`, { ...item, container, pocket });
    if (container === CONTAINERS.inventory) this.money = money;
    if (more) return;
    for (const key of [...this.slots.keys()]) if (key.startsWith(prefix)) this.slots.delete(key);
    for (const [key, item] of this.#incoming) if (key.startsWith(prefix)) this.slots.set(key, item);
    this.emit('update');
  }

  get items() { return [...this.slots.values()]; }
  /** Items by their 64-bit ID. */
  get dbids() { return Object.fromEntries(this.items.map((item) => [item.dbid, item])); }
  get equipment() { return this.items.filter(({ container }) => container === CONTAINERS.equipment); }
  get weaponEquipped() { return this.equipment.some(({ slot }) => slot === WEAPON_SLOT); }
  /** The passive effects of the character's equipment. */
  get equipmentPassivities() {
    return this.equipment.flatMap(({ passivitySets = [], passivitySet }) => passivitySets[passivitySet]?.passivities ?? []);
  }

  /** The quantity of an item that the player has. @param {number} id */
  getTotalAmount(id) { return this.items.filter((item) => item.id === id).reduce((sum, { amount }) => sum + amount, 0); }
}

/** `mod.game.glyphs`. */
class Glyphs extends EventEmitter {
  /** @param {GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    /** @type {Set<number>} */
    this.enabled = new Set();
    game.observe('S_CREST_INFO', '*', ({ crests }) => {
      this.enabled = new Set(crests.filter((/** @type {any} */ one) => one.enable).map((/** @type {any} */ one) => one.id));
      this.emit('change');
    });
    game.observe('S_CREST_APPLY', '*', ({ id, enable }) => {
      if (enable) this.enabled.add(id);
      else this.enabled.delete(id);
      this.emit('change');
    });
    game.on('leave_game', () => this.enabled.clear());
  }

  /** @param {number} id */
  isEnabled(id) { return this.enabled.has(id); }
}

/** `mod.game.talents`. */
class Talents extends EventEmitter {
  /** @param {GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    /** @type {Record<number, number>} levels by the ID of the perk */
    this.perks = {};
    for (const name of ['S_LOAD_EP_INFO', 'S_LEARN_EP_PERK']) {
      game.observe(name, '*', ({ perks, success = true }) => {
        if (!success || !perks) return;
        this.perks = Object.fromEntries(perks.map((/** @type {any} */ perk) => [perk.id, perk.level]));
        this.emit('change');
      });
    }
    game.observe('S_RESET_EP_PERK', '*', ({ success }) => { if (success) this.#clear(); });
    game.on('leave_game', () => { this.perks = {}; });
  }

  #clear() {
    this.perks = {};
    this.emit('change');
  }
}

module.exports = { Contract, Glyphs, Inventory, Talents };
