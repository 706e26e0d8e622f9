'use strict';
// Passes messages through the hooks of one connection, and injects new ones.

const { Codec } = require('./codec');
const { watchResult } = require('./promises');
const { ResolveError } = require('./protocol');
const { described } = require('./thrown');

/** @typedef {import('./protocol').Protocol} Protocol */

/**
 * @typedef {object} Owner the interface of a mod, or a core mod
 * @property {string} name
 */

/**
 * @typedef {object} Hook
 * @property {string} name of its message, or *
 * @property {number | null} code null for all messages
 * @property {'typed' | 'raw' | 'event'} kind
 * @property {number} version
 * @property {ReturnType<Protocol['resolve']> | null} message
 * @property {number} order
 * @property {{fake: boolean | null, incoming: boolean | null, modified: boolean | null, silenced: boolean | null}} filter
 * @property {boolean} once
 * @property {Function} callback
 * @property {Owner} owner
 */

/** Hooks of the same order. The list is replaced, not changed, when one is removed. @typedef {{order: number, hooks: Hook[]}} Group */

/** A message whose bytes may be built only when they are needed. @typedef {{readonly bytes: Buffer}} Source */

/** @typedef {(toClient: boolean, data: Buffer, name: string | undefined) => void} Write */

const FILTER = { fake: false, incoming: null, modified: null, silenced: false };

/** The class of events and the prototype of buffers for each combination of flags. */
const FLAGGED = Array.from({ length: 16 }, (_, bits) => {
  const flags = { $fake: (bits & 1) !== 0, $incoming: (bits & 2) !== 0, $modified: (bits & 4) !== 0, $silenced: (bits & 8) !== 0 };
  const getters = Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, { get: () => value }]));
  const Event = class Event {};
  Object.defineProperties(Event.prototype, getters);
  return { Event, buffer: Object.create(Buffer.prototype, getters) };
});

/** What happened to a message. */
class Outcome {
  /** @param {Source} source @param {boolean} modified @param {boolean} silenced */
  constructor(source, modified, silenced) {
    this.source = source;
    this.modified = modified;
    this.silenced = silenced;
    /** The bytes with which a hook has replaced it. @type {Buffer | null} */
    this.changed = null;
  }

  /** Its current bytes. */
  get data() { return this.changed ?? this.source.bytes; }
}

class Dispatch {
  /** @type {Map<number, Group[]>} by opcode */
  #named = new Map();
  /** @type {Group[]} for all messages */
  #all = [];

  /**
   * @param {Protocol} protocol
   * @param {Write} write sends an injected message
   * @param {(owner: Owner | null, text: string) => void} report
   * @param {(name: string, code: number | null, isHooked: boolean) => void} [changed] a message has gained
   *   its first hook or lost its last one
   * @param {(owner: Owner) => void} [mark] receives the owner of each hook that is called
   */
  constructor(protocol, write, report, changed = () => {}, mark = () => {}) {
    this.protocol = protocol;
    this.write = write;
    this.report = report;
    this.changed = changed;
    this.mark = mark;
    this.isClosed = false;
    /** The number of messages being handled, nested inside each other. */
    this.depth = 0;
  }

  /**
   * Adds a hook. The arguments after the owner are a message, a version, possibly options, and a
   * callback.
   * @param {Owner} owner @param {any[]} rest @param {boolean} [once]
   * @returns {Hook}
   */
  hook(owner, rest, once = false) {
    const [name, version, third, fourth] = rest;
    const hasOptions = rest.length > 3;
    const callback = hasOptions ? fourth : third;
    if (typeof name !== 'string') throw new TypeError(`hook: the message must be a name, not ${String(name)}`);
    if (typeof callback !== 'function') throw new TypeError(`hook ${name}: the callback must be a function`);
    if (hasOptions && (typeof third !== 'object' || third === null)) {
      throw new TypeError(`hook ${name}: the options must be an object`);
    }
    const { order = 0, filter = {} } = hasOptions ? third : {};
    if (typeof order !== 'number' || Number.isNaN(order)) throw new TypeError(`hook ${name}: the order must be a number`);
    const isTyped = typeof version === 'number' || version === '*' || version instanceof Codec;
    if (!isTyped && version !== 'raw' && version !== 'event') {
      throw new TypeError(`hook ${name}: the version must be a number, '*', 'raw' or 'event', not ${JSON.stringify(version)}`);
    }
    if (name === '*' && isTyped) throw new TypeError("hook *: to hook all messages, the version must be 'raw' or 'event'");
    const message = isTyped ? this.protocol.resolve(name, version) : null;
    if (message !== null && !message.isWriteable) {
      this.report(owner, `version ${message.version} of ${name} is deprecated at patch ${this.protocol.major}: changes to it are not written`);
    }
    /** @type {Hook} */
    const hook = {
      name,
      code: name === '*' ? null : message?.code ?? this.protocol.code(name),
      kind: isTyped ? 'typed' : version,
      version: message?.version ?? 0,
      message,
      order: order + 0,
      filter: { ...FILTER, ...filter },
      once,
      callback,
      owner,
    };
    this.#add(hook);
    return hook;
  }

  /** @param {Hook} hook */
  #add(hook) {
    const groups = hook.code === null ? this.#all : this.#named.get(hook.code) ?? [];
    if (groups.length === 0) {
      if (hook.code !== null) this.#named.set(hook.code, groups);
      this.changed(hook.name, hook.code, true);
    }
    const group = groups.find(({ order }) => order === hook.order);
    if (group) return void group.hooks.push(hook);
    const after = groups.findIndex(({ order }) => order > hook.order);
    groups.splice(after < 0 ? groups.length : after, 0, { order: hook.order, hooks: [hook] });
  }

  /** @param {Hook | null | undefined} hook */
  unhook(hook) {
    if (hook === null || hook === undefined) return;
    const groups = hook.code === null ? this.#all : this.#named.get(hook.code) ?? [];
    const at = groups.findIndex(({ order }) => order === hook.order);
    if (at < 0 || !groups[at].hooks.includes(hook)) return;
    groups[at].hooks = groups[at].hooks.filter((one) => one !== hook);
    if (groups[at].hooks.length === 0) groups.splice(at, 1);
    if (groups.length > 0) return;
    if (hook.code !== null) this.#named.delete(hook.code);
    this.changed(hook.name, hook.code, false);
  }

  /** Removes all hooks of a mod. @param {Owner} owner */
  unhookAll(owner) {
    for (const hook of this.hooks()) {
      if (hook.owner === owner) this.unhook(hook);
    }
  }

  /** All hooks. @returns {Hook[]} */
  hooks() {
    return [this.#all, ...this.#named.values()].flatMap((groups) => groups.flatMap(({ hooks }) => hooks));
  }

  /**
   * Passes a message through its hooks.
   * @param {number} code @param {Source} source @param {boolean} incoming whether it goes to the client
   * @param {boolean} [fake] @param {boolean} [modified] @param {boolean} [silenced]
   * @returns {Outcome}
   */
  handle(code, source, incoming, fake = false, modified = false, silenced = false) {
    const state = new Outcome(source, modified, silenced);
    /** @type {number | null} */
    let at = null;
    this.depth++;
    try {
      for (;;) {
        // Hooks can change the lists, so they are looked up again for each order.
        const forAll = following(this.#all, at);
        const named = following(this.#named.get(code), at);
        if (forAll === undefined && named === undefined) return state;
        if (forAll === undefined || (named !== undefined && named.order < forAll.order)) {
          const group = /** @type {Group} */ (named);
          at = group.order;
          this.#run(group.hooks, code, state, incoming, fake);
          continue;
        }
        at = forAll.order;
        this.#run(forAll.hooks, code, state, incoming, fake);
        const group = this.#named.get(code)?.find(({ order }) => order === at);
        if (group !== undefined) this.#run(group.hooks, code, state, incoming, fake);
      }
    } finally {
      this.depth--;
    }
  }

  /** @param {Hook[]} hooks @param {number} code @param {Outcome} state @param {boolean} incoming @param {boolean} fake */
  #run(hooks, code, state, incoming, fake) {
    // The length is read again each time, because a hook can add others with the same order.
    for (let index = 0; index < hooks.length; index++) {
      const hook = hooks[index];
      const { filter } = hook;
      if ((filter.fake !== null && filter.fake !== fake)
        || (filter.incoming !== null && filter.incoming !== incoming)
        || (filter.modified !== null && filter.modified !== state.modified)
        || (filter.silenced !== null && filter.silenced !== state.silenced)) continue;
      if (hook.once) this.unhook(hook);
      this.mark(hook.owner);
      try {
        this.#call(hook, code, state, incoming, fake);
      } catch (error) {
        this.#failed(hook, code, /** @type {any} */ (error));
      }
    }
  }

  /** @param {Hook} hook @param {number} code @param {Outcome} state @param {boolean} incoming @param {boolean} fake */
  #call(hook, code, state, incoming, fake) {
    const flagged = FLAGGED[(fake ? 1 : 0) | (incoming ? 2 : 0) | (state.modified ? 4 : 0) | (state.silenced ? 8 : 0)];
    if (hook.kind === 'event') {
      const result = hook.callback();
      if (result === false) state.silenced = true;
      else this.#watch(result, hook, code);
    } else if (hook.kind === 'raw') {
      const copy = Object.setPrototypeOf(Buffer.from(state.data), flagged.buffer);
      const result = hook.callback(code, copy, incoming, fake);
      if (result === true || result === false) {
        state.silenced = !result;
      } else if (Buffer.isBuffer(result) && !state.data.equals(result)) {
        state.changed = Buffer.from(result);
        state.modified = true;
      } else {
        this.#watch(result, hook, code);
      }
    } else {
      const { codec, header, isWriteable } = /** @type {NonNullable<Hook['message']>} */ (hook.message);
      const event = codec.read(state.data, header, flagged.Event);
      const result = hook.callback(event, fake);
      if (result === false) {
        state.silenced = true;
      } else if (result === true) {
        if (!isWriteable) throw new ResolveError(`version ${hook.version} is deprecated and cannot be written`);
        const written = codec.encode(code, event, header);
        // The counter and checksum are kept because the proxy recomputes them.
        if (header > 4) state.data.copy(written, 4, 4, header);
        state.changed = written;
        state.modified = true;
        state.silenced = false;
      } else {
        this.#watch(result, hook, code);
      }
    }
  }

  /** @param {any} result of an asynchronous hook @param {Hook} hook @param {number} code */
  #watch(result, hook, code) {
    // Most hooks return nothing, so nothing is created for them.
    if (typeof result === 'object') watchResult(result, (error) => this.#failed(hook, code, error));
  }

  /** @param {Hook} hook @param {number} code @param {any} error */
  #failed(hook, code, error) {
    const name = this.protocol.names.get(code) ?? code;
    const version = hook.kind === 'typed' ? `version ${hook.version}` : hook.kind;
    const callback = hook.callback.name ? `, function ${hook.callback.name}` : '';
    this.report(hook.owner, `the hook for ${name}, ${version}${callback}, failed: ${described(error)}`);
  }

  /**
   * Injects a message. Returns whether it was sent: false if a hook silenced it.
   * @param {boolean} toClient @param {string} name @param {any} version a number or '*' @param {any} [fields]
   */
  inject(toClient, name, version, fields) {
    if (typeof version !== 'number' && version !== '*' && !(version instanceof Codec)) {
      throw new TypeError(`send ${name}: the version must be a number or '*', not ${JSON.stringify(version)}`);
    }
    return this.injectRaw(toClient, this.encode(name, version, fields));
  }

  /** @param {string} name @param {any} version @param {any} [fields] */
  encode(name, version, fields) {
    const { code, codec, header, isWriteable, version: number } = this.protocol.resolve(name, version);
    if (!isWriteable) throw new ResolveError(`version ${number} of ${name} is deprecated at patch ${this.protocol.major} and cannot be sent`);
    try {
      return codec.encode(code, fields, header);
    } catch (error) {
      throw new Error(`${name}, version ${number}, cannot be written: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** @param {boolean} toClient @param {Buffer} data the whole message, with its header */
  injectRaw(toClient, data) {
    if (!Buffer.isBuffer(data) || data.length < 4) throw new TypeError('send: the message must be a Buffer with a header');
    if (this.isClosed) return false;
    const code = data.readUInt16LE(2);
    const outcome = this.handle(code, { bytes: data }, toClient, true);
    if (!outcome.silenced) this.write(toClient, outcome.data, this.protocol.names.get(code));
    return !outcome.silenced;
  }
}

/** The first group after an order. @param {Group[] | undefined} groups @param {number | null} order */
function following(groups, order) {
  if (groups === undefined) return undefined;
  if (order === null) return groups[0];
  for (let index = 0; index < groups.length; index++) {
    if (groups[index].order > order) return groups[index];
  }
  return undefined;
}

module.exports = { Dispatch };
