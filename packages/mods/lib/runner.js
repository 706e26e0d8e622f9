'use strict';
// Connects mods to a proxy: conversations, subscriptions, and answers to messages.

const { Connection } = require('./connection');
const { Protocol } = require('./protocol');
const { report } = require('./report');
const { DO, FrameReader, FrameWriter, MAX_ADDED } = require('./wire');

/** The client's first message, which contains its revision. It has this opcode in every build. */
const CHECK_VERSION = { name: 'C_CHECK_VERSION', code: 19900 };
/** Conversations that the proxy announces within this time after its welcome had already begun. */
const EARLIER_MS = 500;
/** The longest names that are sent to the proxy. */
const MAX_NAME = 200;

/** @typedef {import('./wire').Shown} Shown */
/**
 * One conversation.
 * @typedef {object} Session
 * @property {number} number
 * @property {Connection | null} connection null until its revision is known
 * @property {boolean} isProbing whether all messages are subscribed to, to learn the revision
 */

class Runner {
  /** @type {Map<number, Session>} */
  #sessions = new Map();
  #reader = new FrameReader();
  #frames = new FrameWriter();
  /** @type {Map<string, {code: number | null, count: number}>} hooked messages, by name */
  #hooked = new Map();
  /** @type {Set<string>} names to which the proxy knows subscriptions */
  #subscribed = new Set();
  #hasNewNames = false;
  /** The message being handled, and what is to be sent before it. @type {{session: Session, added: import('./wire').Addition[]} | null} */
  #current = null;
  /** @type {Set<string>} requests that the proxy has not confirmed yet. Until then, messages wait. */
  #syncs = new Set();
  /** @type {Shown[]} */
  #waiting = [];
  #nextSync = 1;
  #isFlushing = false;
  #hasStarted = false;
  #welcomed = 0;

  /**
   * @param {import('./manager').Manager} manager
   * @param {import('./data').GameData} data
   * @param {import('./protocol').World} world
   * @param {(bytes: Buffer) => void} send
   */
  constructor(manager, data, world, send) {
    this.manager = manager;
    this.data = data;
    this.world = world;
    this.send = send;
  }

  /** Introduces the mods to the proxy. Everything after this line is binary. */
  start() {
    const subscriptions = [subscription(CHECK_VERSION.name, CHECK_VERSION.code)];
    this.#subscribed.add(CHECK_VERSION.name);
    this.#hooked.set(CHECK_VERSION.name, { code: CHECK_VERSION.code, count: 1 });
    const hello = { type: 'hello', version: 1, name: 'mods', json_safe: true, form: 'binary', catch_up: true, subscriptions };
    this.send(Buffer.from(`${JSON.stringify(hello)}\n`));
    this.#hasStarted = true;
    this.#flush();
  }

  /** Writes to the proxy's log. @param {import('./report').Level} level @param {string} text */
  log(level, text) {
    this.#frames.json({ type: 'log', level, text });
    this.#flush();
  }

  /** Handles bytes from the proxy. @param {Buffer} chunk */
  receive(chunk) {
    this.#isFlushing = true;
    try {
      this.#reader.push(chunk, (message) => this.#message(message), (line) => this.#line(line));
    } finally {
      this.#isFlushing = false;
      this.#flush();
    }
  }

  /** Ends all conversations. */
  close() {
    for (const number of [...this.#sessions.keys()]) this.#closed(number);
  }

  /** @param {any} line */
  #line(line) {
    switch (line.type) {
      case 'welcome':
        this.#welcomed = Date.now();
        break;
      case 'opened':
        if (line.family === 'tera') this.#opened(line.conversation);
        break;
      case 'closed':
        this.#closed(line.conversation);
        break;
      case 'synced':
        this.#synced(line.id);
        break;
      case 'message':
        this.#first(line);
        break;
      case 'error':
        if (this.#syncs.has(line.id)) this.#synced(line.id);
        else report('error', 'worldwire-mods', `${line.text}`);
        break;
      default:
    }
  }

  /** @param {number} number */
  #opened(number) {
    /** @type {Session} */
    const session = { number, connection: null, isProbing: false };
    this.#sessions.set(number, session);
    if (this.world.map !== undefined) return this.#begin(session, Number(this.world.map));
    // The conversation began before these mods started, so its first message has already passed. The next one also
    // contains the revision.
    if (Date.now() - this.#welcomed < EARLIER_MS) this.#probe(session, true);
    this.#flush();
  }

  /** @param {Session} session @param {boolean} isProbing */
  #probe(session, isProbing) {
    if (session.isProbing === isProbing) return;
    session.isProbing = isProbing;
    this.#changed('*', null, isProbing);
  }

  /** Starts the mods of a conversation. @param {Session} session @param {number} revision */
  #begin(session, revision) {
    this.#probe(session, false);
    const protocol = new Protocol(this.data, revision, this.world);
    if (!protocol.hasMap) {
      report('error', 'worldwire-mods', `the client has revision ${revision}, and there is no protocol.${revision}.map in the data; mods will see no messages`);
    }
    if (!protocol.isPatchKnown) {
      report('warning', 'worldwire-mods', `the patch of revision ${revision} is unknown; assuming ${protocol.major}. Set "major" and "minor" in worldwire-mods.json, or add the revision to revisions.json`);
    }
    session.connection = new Connection(protocol, this.world, this.manager, {
      write: (toClient, bytes, name) => this.#inject(session, toClient, bytes, name),
      changed: (name, code, isHooked) => this.#changed(name, code, isHooked),
    });
    const { running, installed } = this.manager.count(session.connection);
    const mods = running === installed ? `${running} mods run` : `${running} of ${installed} mods run`;
    report('info', 'worldwire-mods', `conversation ${session.number}: ${mods}, revision ${revision}, patch ${protocol.major}.${protocol.minor}`);
    this.#flush();
  }

  /** @param {number} number */
  #closed(number) {
    const session = this.#sessions.get(number);
    this.#sessions.delete(number);
    if (session) this.#probe(session, false);
    session?.connection?.close();
    this.#waiting = this.#waiting.filter(({ conversation }) => conversation !== number);
  }

  /** Handles the first message seen in a conversation that began earlier, given as JSON. @param {any} line */
  #first({ conversation, id, from, revision, flags, bytes }) {
    const session = this.#sessions.get(conversation);
    if (session && session.connection === null && revision !== undefined) {
      this.#begin(session, revision);
    }
    const content = Buffer.from(bytes, 'hex');
    this.#message({
      conversation, number: Number(id.split('.')[1]), fromServer: from === 'server', start: 0,
      modified: flags.includes('modified'), silenced: flags.includes('silenced'), fake: flags.includes('fake'),
      code: content.length >= 4 ? content.readUInt16LE(2) : -1, bytes: content,
    });
  }

  /** @param {Shown} message */
  #message(message) {
    if (this.#syncs.size > 0) this.#waiting.push(message);
    else this.#handle(message);
  }

  /** @param {Shown} message */
  #handle(message) {
    const { conversation, number, fromServer, modified, silenced, fake, code } = message;
    const session = this.#sessions.get(conversation);
    if (session?.connection === null && code === CHECK_VERSION.code) {
      // Mods can take longer to start than the proxy waits for an answer.
      this.#frames.answer(conversation, number, DO.hold, [], null);
      this.#push();
      this.#begin(session, revisionIn(message.bytes));
    }
    if (!session?.connection || code < 0) return this.#frames.answer(conversation, number, DO.pass, [], null);
    this.#current = { session, added: [] };
    const outcome = session.connection.dispatch.handle(code, message, fromServer, fake, modified, silenced);
    const { added } = this.#current;
    this.#current = null;
    if (this.#hasNewNames) this.#subscribe();
    let action = DO.pass;
    if (outcome.silenced) action = silenced ? DO.pass : DO.drop;
    else if (outcome.changed !== null) action = DO.replace;
    else if (silenced) action = DO.forward;
    this.#frames.answer(conversation, number, action, added, action === DO.replace ? outcome.changed : null);
    this.#sync();
  }

  /** Sends a message that a mod injects. @param {Session} session @param {boolean} toClient @param {Buffer} bytes @param {string | undefined} name */
  #inject(session, toClient, bytes, name) {
    const addition = { toClient, name: name === undefined || name.length > MAX_NAME ? '' : `tera.${name}`, bytes };
    if (this.#current?.session !== session) {
      this.#frames.add(session.number, [addition]);
      return this.#flush();
    }
    const { added } = this.#current;
    // Messages added at any other time are sent immediately, so they also precede the message being
    // handled.
    if (added.length >= MAX_ADDED) this.#frames.add(session.number, added.splice(0));
    added.push(addition);
  }

  /** @param {string} name @param {number | null} code @param {boolean} isHooked */
  #changed(name, code, isHooked) {
    const known = this.#hooked.get(name) ?? { code, count: 0 };
    known.count += isHooked ? 1 : -1;
    if (known.count > 0) this.#hooked.set(name, known);
    else this.#hooked.delete(name);
    this.#hasNewNames = true;
    if (this.#current === null) this.#flush();
  }

  /** Tells the proxy which messages are hooked now. */
  #subscribe() {
    this.#hasNewNames = false;
    const subscriptions = [];
    for (const [name, { code }] of this.#hooked) {
      if (!this.#subscribed.has(name)) subscriptions.push(subscription(name, code, this.#needsRevision && name === '*'));
      this.#subscribed.add(name);
    }
    const ids = [...this.#subscribed].filter((name) => !this.#hooked.has(name));
    ids.forEach((name) => this.#subscribed.delete(name));
    if (ids.length > 0) this.#frames.json({ type: 'unsubscribe', ids });
    if (subscriptions.length === 0) return;
    this.#frames.json({ type: 'subscribe', subscriptions });
    // Messages that the proxy has not shown yet may precede ones that it has already sent.
    for (const { number } of this.#sessions.values()) this.#syncs.add(`${number}.sync${this.#nextSync++}`);
    this.#unsent = true;
  }

  #unsent = false;

  get #needsRevision() {
    return [...this.#sessions.values()].some(({ connection }) => connection === null);
  }

  /** Asks the proxy to confirm that it has sent all messages that now match. */
  #sync() {
    if (!this.#unsent) return;
    this.#unsent = false;
    for (const id of this.#syncs) this.#frames.json({ type: 'sync', conversation: parseInt(id, 10), id });
  }

  /** @param {string} id */
  #synced(id) {
    this.#syncs.delete(id);
    if (this.#syncs.size > 0) return;
    const messages = this.#waiting.splice(0);
    // Keeps a side's messages in the order in which they were sent. Added ones have no position.
    for (const fromServer of [false, true]) {
      const isOwn = (/** @type {Shown} */ one) => one.fromServer === fromServer && !one.fake;
      const sorted = messages.filter(isOwn).sort((a, b) => a.conversation - b.conversation || a.start - b.start);
      let next = 0;
      messages.forEach((one, at) => { if (isOwn(one)) messages[at] = sorted[next++]; });
    }
    for (const message of messages) this.#message(message);
  }

  /** Sends everything, unless more follows immediately. */
  #flush() {
    if (this.#isFlushing || this.#current !== null || !this.#hasStarted) return;
    if (this.#hasNewNames) this.#subscribe();
    this.#sync();
    this.#push();
  }

  #push() {
    const bytes = this.#frames.take();
    if (bytes !== null) this.send(bytes);
  }
}

/** @param {string} name @param {number | null} code @param {boolean} [fields] whether the proxy shows it as JSON */
function subscription(name, code, fields = false) {
  // The proxy's own map may lack the name.
  const filter = name === '*' ? 'tera.*' : `tera.${name} or tera.${code}`;
  return { id: name, filter, bytes: true, fields, silenced: null, fake: null };
}

/** The revision in C_CHECK_VERSION: the value of the first entry in its list. @param {Buffer} bytes */
function revisionIn(bytes) {
  const first = bytes.length >= 8 ? bytes.readUInt16LE(6) : 0;
  return bytes.length >= first + 12 ? bytes.readUInt32LE(first + 8) : 0;
}

module.exports = { Runner };
