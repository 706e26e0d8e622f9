'use strict';
// One connection to a game server: its messages, hooks and commands, and the game's state.

const { ClientStandIn } = require('./client');
const { Command } = require('./command');
const { Dispatch } = require('./dispatch');
const { GameState } = require('./game');
const { report } = require('./report');

/** @typedef {import('./protocol').Protocol} Protocol */
/** @typedef {import('./protocol').World} World */

class Connection {
  /**
   * @param {Protocol} protocol
   * @param {World} world
   * @param {import('./manager').Manager} manager
   * @param {object} link
   * @param {import('./dispatch').Write} link.write sends an injected message
   * @param {(name: string, code: number | null, isHooked: boolean) => void} link.changed a message has
   *   gained its first hook or lost its last one
   */
  constructor(protocol, world, manager, { write, changed }) {
    this.protocol = protocol;
    this.world = world;
    this.manager = manager;
    this.client = new ClientStandIn(world, protocol);
    this.dispatch = new Dispatch(protocol, write, fail, changed, manager.mark);
    /** The object that mods access as `mod.connection`. */
    this.view = {
      metadata: {
        serverList: world.serverList ?? {}, serverId: world.serverId, publisher: world.publisher ?? '',
        language: world.language ?? '', platform: world.platform ?? 'pc', environment: world.environment ?? 'live',
        majorPatchVersion: protocol.major, minorPatchVersion: protocol.minor,
      },
    };
    this.game = new GameState(this);
    this.command = new Command(this);
    manager.connect(this);
  }

  /** The object that a mod accesses as `mod.dispatch`. @param {import('./dispatch').Owner} owner */
  dispatchFor(owner) { return new DispatchView(this, owner); }

  /** Ends the connection. */
  close() {
    this.dispatch.isClosed = true;
    this.manager.disconnect(this);
    this.command.close();
    for (const hook of this.dispatch.hooks()) this.dispatch.unhook(hook);
  }
}

/** `mod.dispatch`. */
class DispatchView {
  #dispatch;

  /** @param {Connection} connection @param {import('./dispatch').Owner} owner */
  constructor(connection, owner) {
    const { protocol } = connection;
    this.#dispatch = connection.dispatch;
    this.owner = owner;
    this.protocol = protocol;
    this.protocolVersion = protocol.revision;
    this.protocolMap = { name: protocol.codes, code: protocol.names, padding: [] };
    this.sysmsgMap = protocol.systemMessages;
    this.connection = connection.view;
    this.majorPatchVersion = protocol.major;
    this.minorPatchVersion = protocol.minor;
  }

  get latestDefVersion() {
    return new Map([...this.protocol.messages.keys()].map((name) => [name, this.protocol.latest(name)]));
  }

  /** @param {string} name @param {number} version @param {string | any[]} definition @param {boolean} [overwrite] */
  addDefinition(name, version, definition, overwrite) { this.protocol.addDefinition(name, version, definition, overwrite); }
  /** @param {string} name @param {number} code */
  addOpcode(name, code) { this.protocol.addOpcode(name, code); }
  /** The names without an opcode. @param {string[]} names */
  checkOpcodes(names) { return names.filter((name) => !this.protocol.codes.has(name)); }
  /** The missing versions. @param {Record<string, number | number[]>} wanted */
  checkDefinitions(wanted) {
    return Object.entries(wanted).flatMap(([name, versions]) => [versions].flat()
      .filter((version) => !this.protocol.messages.get(name)?.has(version))
      .map((version) => ({ name, version })));
  }

  /** @param {string | number} name @param {any} version @param {Buffer} data */
  fromRaw(name, version, data) {
    const { codec, header } = this.protocol.resolve(name, version);
    return codec.read(data, header);
  }

  /** @param {string} name @param {any} version @param {any} [fields] */
  toRaw(name, version, fields) { return this.#dispatch.encode(name, version, fields); }

  /** @param {string | number} name @param {any} version */
  resolve(name, version) {
    const found = this.protocol.resolve(name, version);
    return { name: found.name, code: found.code, version: found.version, latest_version: this.protocol.latest(found.name), definition: found.codec.fields };
  }

  /** @param {any} mod @param {any[]} rest */
  hook(mod, ...rest) { return this.#dispatch.hook(mod ?? this.owner, rest); }
  /** @param {any} [first] a hook, or the mod before it @param {any} [second] */
  unhook(first, second) { this.#dispatch.unhook(second ?? first); }
  /** @param {boolean} toClient @param {any[]} rest */
  write(toClient, ...[name, version, fields]) {
    return Buffer.isBuffer(name) ? this.#dispatch.injectRaw(toClient, name) : this.#dispatch.inject(toClient, name, version, fields);
  }
}

/** @param {import('./dispatch').Owner | null} owner @param {string} text */
function fail(owner, text) {
  report('error', owner?.name ?? 'worldwire-mods', text);
}

module.exports = { Connection };
