'use strict';
// The player's own character.

const { EventEmitter } = require('events');

/** Values of S_USER_STATUS. */
const IN_COMBAT = 1;

class Me extends EventEmitter {
  /** @param {import('./index').GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    this.game = game;
    Object.defineProperty(this, 'game', { enumerable: false });
    /** @type {Map<number, any> | undefined} active abnormalities by ID, once a mod has asked for them */
    this.abnormalityMap = undefined;
    this.reset();
    this.#addHooks();
  }

  /** Forgets everything when the player leaves the game. */
  reset() {
    /** @type {bigint | null} */
    this.gameId = null;
    /** @type {number | null} */
    this.playerId = null;
    /** @type {number | null} */
    this.serverId = null;
    /** @type {number | null} */
    this.templateId = null;
    /** @type {string | null} */
    this.name = null;
    /** @type {number | null} */
    this.level = null;
    /** @type {string | null} */
    this.class = null;
    /** @type {string | null} */
    this.race = null;
    /** @type {string | null} */
    this.gender = null;
    /** @type {number | null} */
    this.zone = null;
    /** @type {boolean | null} */
    this.alive = null;
    /** @type {boolean | null} */
    this.mounted = null;
    /** @type {number | null} */
    this.mountId = null;
    /** @type {number | null} */
    this.mountSkill = null;
    /** @type {number | null} */
    this.status = null;
    /** @type {boolean | null} */
    this.inCombat = null;
    /** @type {boolean | null} */
    this.onPegasus = null;
    this.abnormalityMap?.clear();
  }

  /** Whether this is the player's own ID. @param {bigint} id */
  is(id) { return this.gameId !== null && this.gameId === id; }

  /** Active abnormalities by ID; undefined until a mod initializes them. */
  get abnormalities() { return this.abnormalityMap ? Object.fromEntries(this.abnormalityMap) : undefined; }

  /**
   * The zone's type if worldwire-mods.json has a table of continents; otherwise undefined.
   * Unverified: the names of the types.
   */
  get #channelType() {
    const { zone } = this;
    return zone === null || zone === undefined ? null : this.game.data.continents.get(zone)?.channelType;
  }

  get inOpenWorld() { return this.#isIn('field'); }
  get inDungeon() { return this.#isIn('dungeon'); }
  get inBattleground() { return this.#isIn('battleField'); }
  get inCivilUnrest() { return this.#isIn('civilUnrest'); }

  /** @param {string} type */
  #isIn(type) {
    const found = this.#channelType;
    return found === null || found === undefined ? found : found === type;
  }

  #addHooks() {
    const { game } = this;
    const own = (/** @type {string} */ name, /** @type {(event: any) => void} */ callback, key = 'gameId') => {
      game.observe(name, '*', (event) => { if (this.is(event[key])) callback(event); });
    };
    game.observe('S_LOGIN', '*', (event) => this.#login(event));
    game.observe('S_LOAD_TOPO', '*', ({ zone, quick }) => {
      if (this.zone === zone) return;
      this.zone = zone;
      this.emit('change_zone', zone, quick);
    });
    own('S_SPAWN_ME', ({ alive }) => this.#setAlive(alive));
    own('S_CREATURE_LIFE', ({ alive }) => this.#setAlive(alive));
    own('S_MOUNT_VEHICLE', ({ id, skill }) => {
      [this.mounted, this.mountId, this.mountSkill] = [true, id, skill];
      this.emit('mount', id, skill);
    });
    own('S_UNMOUNT_VEHICLE', () => {
      const { mountId, mountSkill } = this;
      [this.mounted, this.mountId, this.mountSkill] = [false, null, null];
      this.emit('dismount', mountId, mountSkill);
    });
    own('S_USER_STATUS', ({ status }) => {
      const wasInCombat = this.inCombat;
      this.status = status;
      this.inCombat = status === IN_COMBAT;
      if (this.inCombat !== Boolean(wasInCombat)) this.emit(this.inCombat ? 'enter_combat' : 'leave_combat');
    });
    own('S_USER_CHANGE_NAME', ({ name }) => {
      this.name = name;
      this.emit('change_name', name);
    });
    own('S_USER_LEVELUP', ({ level }) => {
      this.level = level;
      this.emit('change_level', level);
    });
    own('S_START_PEGASUS', () => {
      this.onPegasus = true;
      this.emit('start_pegasus');
    });
    own('S_END_PEGASUS', () => {
      this.onPegasus = false;
      this.emit('finish_pegasus');
    });
  }

  /** @param {any} event */
  #login({ gameId, playerId, serverId, templateId, name, level, alive, status }) {
    Object.assign(this, { gameId, playerId, serverId });
    this.#setTemplate(templateId);
    Object.assign(this, { name, level, alive, status, inCombat: status === IN_COMBAT });
    [this.mounted, this.onPegasus] = [false, false];
  }

  /** @param {number} templateId */
  #setTemplate(templateId) {
    this.templateId = templateId;
    const look = this.game.data.users.get(templateId);
    // Name, level and other facts then remain unknown, as in the original.
    if (look === undefined) throw new Error(`the template ${templateId} is unknown; add it to "users" in worldwire-mods.json`);
    Object.assign(this, { class: look.class, race: look.race, gender: look.gender });
    this.emit('change_template', templateId);
  }

  /** @param {boolean} alive */
  #setAlive(alive) {
    const wasAlive = this.alive;
    this.alive = alive;
    if (wasAlive !== null && wasAlive !== alive) this.emit(alive ? 'resurrect' : 'die');
  }

  /** Starts tracking the player's abnormalities. */
  initializeAbnormalities() {
    if (this.abnormalityMap !== undefined) return;
    const active = this.abnormalityMap = new Map();
    const own = (/** @type {string} */ name, /** @type {(event: any) => void} */ callback) => {
      this.game.observe(name, '*', (event) => { if (this.is(event.target)) callback(event); });
    };
    for (const [name, event] of [['S_ABNORMALITY_BEGIN', 'add'], ['S_ABNORMALITY_REFRESH', 'update']]) {
      own(name, ({ id, source, duration, stacks }) => {
        const known = active.get(id) ?? {};
        const data = this.game.data.abnormalities.get(id);
        active.set(id, { ...known, id, source: source ?? known.source, stacks, end: Date.now() + Number(duration), data });
        this.emit(`abnormality_${event}`, id, active.get(id));
      });
    }
    own('S_ABNORMALITY_END', ({ id }) => {
      const ended = active.get(id);
      active.delete(id);
      if (ended) this.emit('abnormality_remove', id, ended);
    });
  }

  /** Whether an abnormality is active. @param {number} id */
  hasAbnormality(id) { return this.abnormalityMap?.has(id) ?? false; }
}

module.exports = { Me };
