//! Learns player names from a capture.

use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Reader, Side};
use worldwire_uru::connection::{Received, Unit};
use worldwire_uru::frame::{self, Service};
use worldwire_uru::message::auth::server::ServerMessage as Auth;
use worldwire_uru::message::game::server::ServerMessage as Game;
use worldwire_uru::net_message::{MemberInfo, NetMessage, received};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::knowledge::{Fact, Facts};
use crate::message::NumberNames;

/// Player names by player ID.
///
/// An auth connection reveals the players of an account (`AcctPlayerInfo`, `PlayerCreateReply`) and
/// those whose vault nodes it fetches (Player, PlayerInfo). A game connection reveals the players
/// in its age. Both state the names as facts. A game connection learns all known names when it
/// begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Players {
    names: BTreeMap<u32, Arc<str>>,
    /// Players learned since facts were last requested.
    fresh: Vec<u32>,
}

#[derive(Debug, PartialEq)]
struct PlayerName {
    player_id: u32,
    name: Arc<str>,
}

/// The maximum number of names kept.
const MAX_NAMES: usize = 65_536;
/// The maximum number of bytes kept of a name.
const MAX_NAME: usize = 255;

/// Fields that hold a player ID or a list of player IDs.
pub(super) const FIELDS: &[&str] = &[
    "ccrPlayerId",
    "clonerId",
    "initiator",
    "initiatorId",
    "invitee",
    "inviter",
    "offeree",
    "originatingPlayerId",
    "owner",
    "player",
    "playerId",
    "receivers",
    "winner",
];

impl Players {
    /// The number of known names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn learn_from(&mut self, message: &Received<'_>) {
        let Unit::Message(service @ (Service::Auth | Service::Game)) = message.unit else { return };
        if message.side != Side::Server || !reveals_players(message.name().1) {
            return;
        }
        let mut reader = Reader::new(message.bytes);
        match frame::Message::decode(service, Side::Server, &mut reader) {
            Ok(frame::Message::AuthServer(message)) => self.auth(&message),
            Ok(frame::Message::GameServer(Game::PropagateBuffer(message))) => {
                let limits = &worldwire_core::Limits::DEFAULT;
                match received(message.type_, &message.buffer, limits) {
                    Ok(NetMessage::MembersList(list)) => {
                        list.members.iter().for_each(|member| self.member(member));
                    }
                    Ok(NetMessage::MemberUpdate(update)) => self.member(&update.member),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn auth(&mut self, message: &Auth<'_>) {
        match message {
            Auth::AcctPlayerInfo(info) => self.add(info.player_id, &info.player_name.to_text()),
            Auth::PlayerCreateReply(reply) => {
                self.add(reply.player_id, &reply.player_name.to_text());
            }
            Auth::VaultNodeFetched(fetched) => {
                if let Ok(node) = fetched.node.decode() {
                    self.node(&node);
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, node: &VaultNode<'_>) {
        let player_id = match node.node_type {
            Some(NodeType::Player) => node.node_id,
            Some(NodeType::PlayerInfo) => node.uint32_1,
            _ => None,
        };
        if let (Some(player_id), Some(name)) = (player_id, &node.istring64_1) {
            self.add(player_id, &name.to_text());
        }
    }

    fn member(&mut self, member: &MemberInfo<'_>) {
        let client = &member.client;
        if let (Some(player_id), Some(name)) = (client.player_id, &client.player_name) {
            self.add(player_id, &name.to_text());
        }
    }

    fn add(&mut self, player_id: u32, name: &str) {
        let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        let old = self.names.get(&player_id);
        let has_room = old.is_some() || self.names.len() < MAX_NAMES;
        if player_id == 0 || name.is_empty() || !has_room || old.is_some_and(|old| **old == *name) {
            return;
        }
        self.names.insert(player_id, name.into());
        self.fresh.push(player_id);
    }

    /// The names learned since the last call.
    pub(super) fn facts(&mut self) -> Vec<Fact> {
        let names = &self.names;
        let fact = |player_id: u32| {
            let name = Arc::clone(names.get(&player_id)?);
            let value = Arc::new(PlayerName { player_id, name });
            Some(Fact { family: "uru", name: format!("player {player_id}"), value })
        };
        core::mem::take(&mut self.fresh).into_iter().filter_map(fact).collect()
    }

    /// Learns names from other conversations. Names that this conversation revealed itself take
    /// precedence.
    pub(super) fn learn(&mut self, facts: &Facts) {
        for PlayerName { player_id, name } in facts.all("uru") {
            if self.names.len() < MAX_NAMES {
                self.names.entry(*player_id).or_insert_with(|| Arc::clone(name));
            }
        }
    }
}

/// Whether a message of this name can reveal player names.
fn reveals_players(name: &str) -> bool {
    let names = ["AcctPlayerInfo", "PlayerCreateReply", "VaultNodeFetched", "PropagateBuffer"];
    names.contains(&name)
}

impl NumberNames for Players {
    fn key(&self) -> &'static str {
        "players"
    }

    fn name(&self, field: &str, number: u64) -> Option<&str> {
        if !FIELDS.contains(&field) {
            return None;
        }
        self.names.get(&u32::try_from(number).ok()?).map(|name| &**name)
    }
}
