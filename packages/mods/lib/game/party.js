'use strict';
// The player's party.

const { EventEmitter } = require('events');

/** `mod.game.party`. */
class Party extends EventEmitter {
  /** @param {import('./index').GameState} game */
  constructor(game) {
    super();
    this.setMaxListeners(0);
    /** @type {any[]} the entries of S_PARTY_MEMBER_LIST, without the player */
    this.partyMembers = [];
    /** @type {{serverId: number, playerId: number} | null} */
    this.leader = null;
    this.isRaid = false;
    game.observe('S_PARTY_MEMBER_LIST', '*', ({ members, leader, raid }) => {
      this.partyMembers = members.filter((/** @type {any} */ one) => !isPlayer(game, one));
      this.leader = leader ?? null;
      this.isRaid = Boolean(raid);
      this.emit('list', this.partyMembers);
    });
    for (const name of ['S_LEAVE_PARTY_MEMBER', 'S_BAN_PARTY_MEMBER']) {
      game.observe(name, '*', (event) => {
        const left = this.getMemberData(event);
        this.partyMembers = this.partyMembers.filter((one) => one !== left);
        if (left) this.emit('leave', left);
      });
    }
    game.observe('S_LOGOUT_PARTY_MEMBER', '*', (event) => {
      const member = this.getMemberData(event);
      if (!member) return;
      member.online = false;
      this.emit('logout', member);
    });
    game.observe('S_CHANGE_PARTY_MANAGER', '*', ({ serverId, playerId }) => {
      this.leader = { serverId, playerId };
      this.emit('leader', this.leader);
    });
    game.observe('S_LEAVE_PARTY', 'event', () => this.#disband());
    game.on('leave_game', () => this.#disband());
  }

  inParty() { return this.partyMembers.length > 0; }
  /** @param {any} who a game ID, or an object with serverId and playerId */
  isMember(who) { return this.getMemberData(who) !== undefined; }
  /** @param {any} who a game ID, or an object with serverId and playerId */
  getMemberData(who) {
    return this.partyMembers.find((one) => (typeof who === 'bigint'
      ? one.gameId === who
      : one.playerId === who?.playerId && one.serverId === who?.serverId));
  }

  #disband() {
    if (!this.inParty()) return;
    this.partyMembers = [];
    this.leader = null;
    this.emit('disband');
  }
}

/** @param {import('./index').GameState} game @param {any} member */
function isPlayer({ me }, { playerId, serverId }) {
  return me.playerId === playerId && me.serverId === serverId;
}

module.exports = { Party };
