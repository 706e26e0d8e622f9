//! Players: the register of their names, and which of them are active where.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::json;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::store::CharacterRow;
use crate::unseen::is_unseen;
use crate::uru::vault::{ConnectionId, Facts, OnDuplicate, Outcome, Session, State, text};

/// A player, as `AcctPlayerInfo` and `PlayerCreateReply` show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerSummary {
    /// Its number (KI number): that of its Player node.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `male` or `female`.
    pub shape: String,
    /// 1 for explorers.
    pub explorer: u32,
}

/// Somebody whom an operator threw out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrownOut {
    /// The name of the account.
    pub account: String,
    /// The player's number; 0 if none was chosen yet.
    pub player: u32,
    /// Its name.
    pub player_name: Option<String>,
}

/// UTF-16 units that a player's name stays below.
const NAME_UNITS: usize = 40;
/// Characters other than spaces that a player's name has at least.
const NAME_CHARACTERS: usize = 3;
/// Where a player is that has chosen no age yet, as others see it.
const LOBBY: &str = "Lobby";

/// The form of a player's name by which it is found: names are compared without case.
pub(crate) fn folded_player(name: &str) -> String {
    name.to_lowercase()
}

/// A player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Player {
    pub(crate) account: Uuid,
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) explorer: u32,
    pub(crate) created: u32,
}

impl Player {
    /// # Errors
    /// What is wrong with the row.
    pub(crate) fn of(row: CharacterRow) -> Result<(u32, Self), String> {
        let CharacterRow { id, account, name, created, data } = row;
        let data: serde_json::Value =
            serde_json::from_slice(&data).map_err(|error| format!("player {id}: {error}"))?;
        let shape = data["shape"].as_str().unwrap_or("male").to_owned();
        let explorer = data["explorer"].as_u64().and_then(|value| u32::try_from(value).ok());
        let explorer = explorer.unwrap_or(1);
        Ok((id, Self { account: Uuid(account), name, shape, explorer, created }))
    }

    pub(crate) fn row(&self, id: u32) -> CharacterRow {
        let data = json!({ "shape": self.shape, "explorer": self.explorer });
        CharacterRow {
            id,
            account: self.account.0,
            name: self.name.clone(),
            created: self.created,
            data: data.to_string().into_bytes(),
        }
    }

    fn summary(&self, id: u32) -> PlayerSummary {
        let Self { name, shape, explorer, .. } = self.clone();
        PlayerSummary { id, name, shape, explorer }
    }
}

/// All players.
#[derive(Debug, Default)]
pub(crate) struct Players {
    by_id: BTreeMap<u32, Player>,
    by_name: HashMap<String, u32>,
    by_account: BTreeSet<(Uuid, u32)>,
}

impl Players {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn account(&self, id: u32) -> Option<Uuid> {
        self.by_id.get(&id).map(|player| player.account)
    }

    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|player| &*player.name)
    }

    pub(crate) fn named(&self, name: &str) -> Option<u32> {
        self.by_name.get(&folded_player(name)).copied()
    }

    /// The players of an account, by number.
    pub(crate) fn of(&self, account: Uuid) -> Vec<PlayerSummary> {
        let all = self.by_account.range((account, 0)..=(account, u32::MAX));
        all.filter_map(|(_, id)| Some(self.by_id.get(id)?.summary(*id))).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Player)> {
        self.by_id.iter().map(|(id, player)| (*id, player))
    }

    /// Makes, replaces or removes a player, and returns what was there.
    pub(crate) fn set(&mut self, id: u32, player: Option<Player>) -> Option<Player> {
        let new = player.as_ref().map(|player| (folded_player(&player.name), player.account));
        let old = match player {
            Some(player) => self.by_id.insert(id, player),
            None => self.by_id.remove(&id),
        };
        if let Some(old) = &old {
            self.by_name.remove(&folded_player(&old.name));
            self.by_account.remove(&(old.account, id));
        }
        if let Some((name, account)) = new {
            self.by_name.insert(name, id);
            self.by_account.insert((account, id));
        }
        old
    }
}

impl State {
    /// `AcctSetPlayerRequest`: 0 is no player, and always succeeds.
    pub(crate) fn set_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        let session = self.logged_in(connection)?.clone();
        if player == 0 {
            return self.leave_player(connection);
        }
        if self.players.account(player) != Some(session.account) {
            return Err(NetError::PlayerNotFound.into());
        }
        match self.online.get(&player).copied() {
            Some(other) if other != connection => match self.config.on_duplicate {
                OnDuplicate::Refuse => return Err(NetError::LoggedInElsewhere.into()),
                OnDuplicate::Kick => self.kick(other, NetError::LoggedInElsewhere)?,
            },
            _ => {}
        }
        self.leave_player(connection)?;
        let made = Vec::new();
        self.put_session(connection, Some(Session { player, age: 0, made, ..session }));
        self.show_player(player, true, LOBBY, Uuid::ZERO)
    }

    /// Takes the player of a connection offline, if it has one.
    pub(crate) fn leave_player(&mut self, connection: ConnectionId) -> Outcome<()> {
        let session = self.session(connection)?.clone();
        if session.player == 0 {
            return Ok(());
        }
        let player = session.player;
        let made = Vec::new();
        self.put_session(connection, Some(Session { player: 0, age: 0, made, ..session }));
        self.show_player(player, false, "", Uuid::ZERO)
    }

    /// The player of a connection has left its age.
    pub(crate) fn leave_age(&mut self, connection: ConnectionId) -> Outcome<()> {
        let session = self.playing(connection)?.clone();
        let player = session.player;
        self.put_session(connection, Some(Session { age: 0, ..session }));
        self.show_player(player, true, LOBBY, Uuid::ZERO)
    }

    /// A connection has come.
    /// A connection has gone: so has its player.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId) -> Outcome<()> {
        if self.sessions.contains_key(&connection) {
            self.leave_player(connection)?;
            self.put_session(connection, None);
        }
        Ok(())
    }

    /// `KickPlayer`: throws a player out, if an administrator wants it.
    pub(crate) fn kick_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        if !self.playing(connection)?.is_admin() {
            return Err(NetError::ServiceForbidden.into());
        }
        let other = *self.online.get(&player).ok_or(NetError::PlayerNotFound)?;
        self.kick(other, NetError::KickedByCCR)
    }

    /// Throws a player out, or all connections of an account, since an operator wants it: by the
    /// number or the name of a player, or the name of an account. Returns who was there.
    pub(crate) fn throw_out_by_name(&mut self, who: &str) -> Outcome<Vec<ThrownOut>> {
        let account = self.accounts.named(who).map(|(id, _)| id);
        let number = who.parse().ok().filter(|id| self.players.contains(*id));
        let player = number.or_else(|| self.players.named(who));
        let is_meant = |id: &ConnectionId, session: &Session| match (account, player) {
            (Some(account), _) => session.account == account,
            (None, Some(player)) => self.online.get(&player) == Some(id),
            (None, None) => false,
        };
        match (account, player) {
            (None, None) => return Err(NetError::AccountNotFound.into()),
            // The account of one has the name of another's player.
            (Some(account), Some(player)) if self.players.account(player) != Some(account) => {
                return Err(NetError::InvalidParameter.into());
            }
            _ => {}
        }
        let sessions = self.sessions.iter().filter(|(id, session)| is_meant(id, session));
        let mut found: Vec<_> =
            sessions.map(|(id, session)| (*id, session.account, session.player)).collect();
        if found.is_empty() {
            return Err(NetError::PlayerNotFound.into());
        }
        found.sort_unstable_by_key(|(connection, ..)| connection.0);
        let mut thrown_out = Vec::new();
        for (connection, account, player) in found {
            let account = self.accounts.get(account).map(|account| account.name.clone());
            let player_name = self.players.by_id.get(&player).map(|player| player.name.clone());
            let account = account.unwrap_or_default();
            thrown_out.push(ThrownOut { account, player, player_name });
            self.kick(connection, NetError::KickedByCCR)?;
        }
        Ok(thrown_out)
    }

    /// Shows all players offline: when the shard starts, nobody is there.
    pub(crate) fn clear_online(&mut self) -> Outcome<()> {
        let online = |id: &u32| {
            let entry = self.graph.get(*id);
            entry.is_some_and(|entry| matches!(entry.facts, Facts::PlayerInfo { online: true, .. }))
        };
        let infos: Vec<_> = self.graph.ids().into_iter().filter(online).collect();
        self.need(&infos)?;
        for info in infos {
            self.change_node(info, None, shown(false, "", Uuid::ZERO))?;
        }
        Ok(())
    }

    /// Shows others where a player is.
    pub(crate) fn show_player(
        &mut self,
        player: u32,
        online: bool,
        place: &str,
        instance: Uuid,
    ) -> Outcome<()> {
        match self.graph.child(player, NodeType::PlayerInfo, None) {
            Some(info) => self.change_node(info, None, shown(online, place, instance)),
            None => Ok(()),
        }
    }

    /// `PlayerCreateRequest`.
    pub(crate) fn create_player(
        &mut self,
        connection: ConnectionId,
        name: &str,
        shape: &str,
    ) -> Outcome<PlayerSummary> {
        let account = self.logged_in(connection)?.account;
        let name = tidy_name(name)?;
        if !matches!(shape, "male" | "female") {
            return Err(NetError::InvalidParameter.into());
        }
        if self.players.named(&name).is_some() {
            return Err(NetError::PlayerAlreadyExists.into());
        }
        if self.players.of(account).len() >= self.config.players.min(5) {
            return Err(NetError::MaxPlayersOnAcct.into());
        }
        let id = self.make_player(account, &name, shape)?;
        let created = self.now;
        let player = Player { account, name, shape: shape.to_owned(), explorer: 1, created };
        let summary = player.summary(id);
        self.put_player(id, Some(player));
        Ok(summary)
    }

    /// `PlayerDeleteRequest`.
    pub(crate) fn delete_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        let account = self.logged_in(connection)?.account;
        if self.players.account(player) != Some(account) {
            return Err(NetError::PlayerNotFound.into());
        }
        if self.online.contains_key(&player) {
            return Err(NetError::LoggedInElsewhere.into());
        }
        self.remove_player(player);
        Ok(())
    }

    pub(crate) fn remove_player(&mut self, player: u32) {
        self.remove_player_nodes(player);
        self.put_player(player, None);
    }
}

/// The fields of a PlayerInfo that say where its player is.
fn shown(online: bool, place: &str, instance: Uuid) -> VaultNode<'static> {
    VaultNode {
        int32_1: Some(i32::from(online)),
        uuid_1: Some(instance),
        string64_1: Some(text(place).unwrap_or_default()),
        ..VaultNode::default()
    }
}

/// A player's name as clients tidy it: without spaces around it, and one at a time inside.
fn tidy_name(name: &str) -> Result<String, NetError> {
    if name.contains(|c: char| c.is_control() || c == '\u{fffd}' || is_unseen(c)) {
        return Err(NetError::PlayerNameInvalid);
    }
    let tidy = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters = tidy.chars().filter(|c| *c != ' ').count();
    if characters < NAME_CHARACTERS || tidy.encode_utf16().count() >= NAME_UNITS {
        return Err(NetError::PlayerNameInvalid);
    }
    Ok(tidy)
}
