'use strict';
// A conversation without a proxy: messages go in, and both sides' messages come out.

const fs = require('fs');
const os = require('os');
const path = require('path');
const { Connection } = require('../lib/connection');
const { GameData } = require('../lib/data');
const { Manager } = require('../lib/manager');
const { Protocol } = require('../lib/protocol');

/** Definitions for tests, by file name. */
const DEFINITIONS = {
  'S_CHAT.4.def': 'ref name\nref message\nuint32 channel\nuint64 gameId\nstring name\nstring message',
  'S_CHAT.3.def': 'uint32 channel\nstring name',
  'C_CHAT.1.def': 'uint32 channel\nstring message',
  'C_WHISPER.1.def': 'string target\nstring message',
  'S_LOGIN.1.def': 'int32 templateId\nuint64 gameId\nuint32 serverId\nuint32 playerId\nbool alive\nint32 status\nuint16 level\nstring name',
  'S_LOAD_TOPO.1.def': 'int32 zone\nvec3 loc\nbool quick',
  'S_SPAWN_ME.1.def': 'uint64 gameId\nvec3 loc\nangle w\nbool alive\nbool isLord',
  'S_USER_STATUS.1.def': 'uint64 gameId\nint32 status',
  'S_PRIVATE_CHAT.1.def': 'uint32 channel\nuint64 authorID\nstring authorName\nstring message',
  'S_JOIN_PRIVATE_CHANNEL.2.def': 'ref unk\nref name\nint32 index\nint32 channelId\narray unk\nstring name',
  'S_PARTY_MEMBER_LIST.1.def': 'bool raid\nobject leader\n- uint32 serverId\n- uint32 playerId\narray members\n- uint32 serverId\n- uint32 playerId\n- uint64 gameId\n- bool online\n- string name',
  'S_RETURN_TO_LOBBY.1.def': '',
  'S_MIXED.1.def': 'skillid skill\nfloat f\ndouble d\nint64 big\narray<uint32> ids\nbytes data\ncustomize look\nvec3fa turn',
};

const REVISION = 7;

/** Writes files into a new folder. @param {Record<string, string>} files */
function folderOf(files) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'worldwire-mods-'));
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

/** @param {Record<string, string>} [more] */
function testData(more = {}) {
  const names = [...new Set(Object.keys({ ...DEFINITIONS, ...more }).filter((name) => name.endsWith('.def')).map((name) => name.split('.')[0]))];
  const map = names.map((name, index) => `${name} ${1000 + index}`).join('\n');
  return folderOf({ ...DEFINITIONS, [`protocol.${REVISION}.map`]: map, ...more });
}

/** A clock that advances only when the test says so, until the test ends. @param {any} t */
function stopTime(t) {
  const { setTimeout: real, clearTimeout: clear } = globalThis;
  /** @type {Map<number, {at: number, callback: () => void}>} */
  const timers = new Map();
  let [now, next] = [0, 1];
  Object.assign(globalThis, {
    setTimeout: (/** @type {() => void} */ callback, delay = 0) => {
      timers.set(next, { at: now + delay, callback });
      return next++;
    },
    clearTimeout: (/** @type {number} */ timer) => timers.delete(timer),
  });
  t.after(() => Object.assign(globalThis, { setTimeout: real, clearTimeout: clear }));
  return (/** @type {number} */ ms) => {
    now += ms;
    for (const [timer, { at, callback }] of timers) {
      if (at > now) continue;
      timers.delete(timer);
      callback();
    }
  };
}

class TestConversation {
  /**
   * @param {Record<string, string>} mods files in the folder of mods
   * @param {{world?: any, data?: string, revision?: number, folder?: string}} [options] `folder` is one that has mods already
   */
  constructor(mods, { world = {}, data = testData(), revision = REVISION, folder = folderOf(mods) } = {}) {
    this.folder = folder;
    /** @type {[side: 'client' | 'server', data: Buffer][]} */
    this.sent = [];
    this.manager = new Manager(this.folder);
    this.manager.loadAll();
    this.protocol = new Protocol(GameData.load([data]), revision, world);
    const write = (/** @type {boolean} */ toClient, /** @type {Buffer} */ bytes) => this.sent.push([toClient ? 'client' : 'server', bytes]);
    this.connection = new Connection(this.protocol, world, this.manager, { write, changed: () => {} });
  }

  /** The network instance of a mod. @param {string} name */
  instance(name) { return this.loaded(name)?.networks.get(this.connection)?.instance; }
  /** @param {string} name */
  loaded(name) { return this.manager.loaded.find(({ info }) => info.name === name); }

  /** Handles a message as the proxy does. @param {'client' | 'server'} from @param {Buffer} bytes */
  pass(from, bytes) {
    const incoming = from === 'server';
    const outcome = this.connection.dispatch.handle(bytes.readUInt16LE(2), { bytes }, incoming);
    if (!outcome.silenced) this.sent.push([incoming ? 'client' : 'server', outcome.data]);
    return outcome;
  }

  /** @param {string} name @param {any} fields @param {any} [version] */
  say(name, fields, version = '*') {
    return this.pass(name.startsWith('C_') ? 'client' : 'server', this.bytes(name, fields, version));
  }

  /** @param {string} name @param {any} fields @param {any} [version] */
  bytes(name, fields, version = '*') {
    return this.connection.dispatch.encode(name, version, fields);
  }

  /** What was sent since the last call, read with the newest definitions. */
  take() {
    return this.sent.splice(0).map(([side, bytes]) => {
      const { name, codec } = this.protocol.resolve(bytes.readUInt16LE(2), '*');
      return { side, name, ...codec.read(bytes) };
    });
  }

  close() {
    this.connection.close();
    this.manager.close();
  }
}

module.exports = { REVISION, TestConversation, folderOf, stopTime, testData };
