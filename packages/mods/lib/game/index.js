'use strict';
// The game's state, derived from a connection's messages. Mods access it as `mod.game`.

const { EventEmitter } = require('events');
const { GameTables } = require('./tables');
const { Me } = require('./me');
const { Contract, Glyphs, Inventory, Talents } = require('./character');
const { Party } = require('./party');

/** The state is updated, and its events are emitted, before the mods' hooks run. */
const ORDER = { update: -10_000, emit: -9_999 };
/** These hooks see all messages, even injected and silenced ones. */
const FILTER = { fake: null, incoming: null, modified: null, silenced: null };

const STATES = Object.freeze({ NONE: 0, LOBBY: 1, LOADING: 2, INGAME: 3 });

/** Parts that mods ask for with `initialize`. @type {Record<string, (game: GameState) => void>} */
const PARTS = {
  me: () => {},
  'me.abnormalities': (game) => game.me.initializeAbnormalities(),
  party: (game) => { game.party ??= new Party(game); },
  inventory: (game) => { game.inventory ??= new Inventory(game); },
  contract: (game) => { game.contract ??= new Contract(game); },
  glyphs: (game) => { game.glyphs ??= new Glyphs(game); },
  talents: (game) => { game.talents ??= new Talents(game); },
};

class GameState extends EventEmitter {
  /** @param {import('../connection').Connection} connection */
  constructor(connection) {
    super();
    this.setMaxListeners(0);
    this.name = 'tera-game-state';
    this.connection = connection;
    Object.defineProperty(this, 'connection', { enumerable: false });
    this.isIngame = false;
    this.isInLoadingScreen = false;
    this.isInLobby = false;
    /** @type {number | null} */
    this.language = null;
    /** @type {bigint | null} */
    this.accountId = null;
    /** @type {string | null} */
    this.accountName = null;
    this.serverId = connection.world.serverId ?? null;
    this.data = new GameTables(connection.world);
    /** @type {Party | undefined} */
    this.party = undefined;
    /** @type {Inventory | undefined} */
    this.inventory = undefined;
    /** @type {Contract | undefined} */
    this.contract = undefined;
    /** @type {Glyphs | undefined} */
    this.glyphs = undefined;
    /** @type {Talents | undefined} */
    this.talents = undefined;
    this.me = new Me(this);
    this.#addHooks();
  }

  /** `GameState.states` of the original: which screen the player sees. */
  get states() { return STATES; }
  get state() {
    if (this.isIngame) return this.isInLoadingScreen ? STATES.LOADING : STATES.INGAME;
    return this.isInLobby ? STATES.LOBBY : STATES.NONE;
  }

  /** Starts parts of the state: party, inventory, contract, glyphs, talents, me.abnormalities. @param {string | string[]} names */
  initialize(names) {
    for (const name of [names].flat()) {
      if (!Object.hasOwn(PARTS, name)) throw new Error(`game.initialize: there is no "${name}"; the parts are ${Object.keys(PARTS).join(', ')}`);
      PARTS[name](this);
    }
  }

  /**
   * Adds a hook that updates the state. If the data does not define the message, everything that depends on it is left out.
   * @param {string} name @param {any} version @param {(event: any) => void} callback
   */
  observe(name, version, callback, order = ORDER.update) {
    const { dispatch, protocol } = this.connection;
    if (!protocol.codes.has(name) || (version === '*' && !protocol.messages.has(name))) return;
    const observer = (/** @type {any} */ event) => { callback(event); };
    dispatch.hook(this, [name, version, { order, filter: FILTER }, observer]);
  }

  #addHooks() {
    const emit = (/** @type {string} */ name, /** @type {() => void} */ callback) => this.observe(name, 'event', callback, ORDER.emit);
    this.observe('C_LOGIN_ARBITER', '*', ({ language, name }) => {
      this.language = language;
      this.accountName = name;
    });
    this.observe('S_LOGIN_ACCOUNT_INFO', '*', ({ accountId }) => { this.accountId = accountId; });
    emit('S_LOGIN', () => {
      this.#setLobby(false);
      if (!this.isIngame) {
        this.isIngame = true;
        this.emit('enter_game');
      }
      this.#setLoading(true);
    });
    emit('S_LOAD_TOPO', () => this.#setLoading(true));
    emit('S_SPAWN_ME', () => this.#setLoading(false));
    for (const name of ['S_GET_USER_LIST', 'S_RETURN_TO_LOBBY']) {
      emit(name, () => {
        this.#leaveGame();
        this.#setLobby(true);
      });
    }
    emit('S_EXIT', () => {
      this.#leaveGame();
      this.#setLobby(false);
    });
  }

  #leaveGame() {
    this.#setLoading(false);
    if (!this.isIngame) return;
    this.isIngame = false;
    this.emit('leave_game');
    this.me.reset();
  }

  /** @param {boolean} isLoading */
  #setLoading(isLoading) {
    if (this.isInLoadingScreen === isLoading) return;
    this.isInLoadingScreen = isLoading;
    this.emit(isLoading ? 'enter_loading_screen' : 'leave_loading_screen');
  }

  /** @param {boolean} isInLobby */
  #setLobby(isInLobby) {
    if (this.isInLobby === isInLobby) return;
    this.isInLobby = isInLobby;
    this.emit(isInLobby ? 'enter_character_lobby' : 'leave_character_lobby');
  }
}

module.exports = { GameState };
