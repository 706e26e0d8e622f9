//! Players: the register of their names, and which of them are active where.

use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::config::OnDuplicate;
use super::content::Facts;
use super::session::{ConnectionId, Outcome, Session, Stop};
use super::steps::VaultState;
use super::tables::players::{Player, PlayerSummary};
use super::trees::text;
use crate::unseen::is_unseen;

/// A session that an operator ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kicked {
    /// The name of the account.
    pub account: String,
    /// The player's number; 0 if none was chosen.
    pub player: u32,
    /// Its name.
    pub player_name: Option<String>,
}

/// The length that a player's name must stay below, in UTF-16 units.
const NAME_UNITS: usize = 40;
/// The minimum number of characters in a player's name, not counting spaces.
const NAME_CHARACTERS: usize = 3;
/// The place shown for a player who is in no age.
const LOBBY: &str = "Lobby";

impl VaultState {
    /// `AcctSetPlayerRequest`. 0 means no player, which always succeeds.
    pub(crate) fn set_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        let session = self.logged_in(connection)?.clone();
        if player == 0 {
            return self.leave_player(connection);
        }
        if self.players().account(player) != Some(session.account) {
            return Err(NetError::PlayerNotFound.into());
        }
        match self.connection_of(player) {
            Some(other) if other != connection => match self.config().on_duplicate {
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

    /// Takes a session's player offline, if it has one.
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

    /// Records that a session's player has left its age.
    pub(crate) fn leave_age(&mut self, connection: ConnectionId) -> Outcome<()> {
        let session = self.playing(connection)?.clone();
        let player = session.player;
        self.put_session(connection, Some(Session { age: 0, ..session }));
        self.show_player(player, true, LOBBY, Uuid::ZERO)
    }

    /// Ends a session, and takes its player offline.
    pub(crate) fn disconnect(&mut self, connection: ConnectionId) -> Outcome<()> {
        if self.sessions().contains_key(&connection) {
            self.leave_player(connection)?;
            self.put_session(connection, None);
        }
        Ok(())
    }

    /// Ends a session as [`disconnect`](Self::disconnect) does. Fails with the contents that must be
    /// loaded first.
    pub(crate) fn run_ending(&mut self, connection: ConnectionId) -> Result<(), Vec<u32>> {
        match self.run(|state| state.disconnect(connection)) {
            Err(Stop::Need(ids)) => Err(ids),
            Err(Stop::Refused(_)) | Ok(()) => Ok(()),
        }
    }

    /// `KickPlayer`: ends a player's session, on behalf of an administrator.
    pub(crate) fn kick_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        if !self.playing(connection)?.is_admin() {
            return Err(NetError::ServiceForbidden.into());
        }
        let other = self.connection_of(player).ok_or(NetError::PlayerNotFound)?;
        self.kick(other, NetError::KickedByCCR)
    }

    /// Ends sessions on behalf of an operator: that of a player, given by number or name, or all of
    /// an account, given by name. Returns these sessions.
    pub(crate) fn kick_by_name(&mut self, who: &str) -> Outcome<Vec<Kicked>> {
        let account = self.accounts().named(who).map(|(id, _)| id);
        let number = who.parse().ok().filter(|id| self.players().contains(*id));
        let player = number.or_else(|| self.players().named(who));
        let is_meant = |id: &ConnectionId, session: &Session| match (account, player) {
            (Some(account), _) => session.account == account,
            (None, Some(player)) => self.connection_of(player) == Some(*id),
            (None, None) => false,
        };
        match (account, player) {
            (None, None) => return Err(NetError::AccountNotFound.into()),
            // An account has the name of another account's player.
            (Some(account), Some(player)) if self.players().account(player) != Some(account) => {
                return Err(NetError::InvalidParameter.into());
            }
            _ => {}
        }
        let sessions = self.sessions().iter().filter(|(id, session)| is_meant(id, session));
        let found: Vec<_> =
            sessions.map(|(id, session)| (*id, session.account, session.player)).collect();
        if found.is_empty() {
            return Err(NetError::PlayerNotFound.into());
        }
        self.kick_all(found, NetError::KickedByCCR)
    }

    /// Sets whether only staff may log in, and with `kick` ends the sessions of all others.
    pub(crate) fn restrict(&mut self, restricted: bool, kick: bool) -> Outcome<Vec<Kicked>> {
        let sessions = self.sessions().iter();
        let others = sessions.filter(|(_, session)| kick && !session.is_staff());
        let others = others.filter(|(_, session)| !session.account.is_zero());
        let others = others.map(|(id, session)| (*id, session.account, session.player)).collect();
        let kicked = self.kick_all(others, NetError::RemoteShutdown)?;
        self.set_restricted(restricted);
        Ok(kicked)
    }

    /// Ends sessions, given with their account and player.
    fn kick_all(
        &mut self,
        mut sessions: Vec<(ConnectionId, Uuid, u32)>,
        reason: NetError,
    ) -> Outcome<Vec<Kicked>> {
        sessions.sort_unstable_by_key(|(connection, ..)| connection.0);
        let mut kicked = Vec::new();
        for (connection, account, player) in sessions {
            let account = self.accounts().get(account).map(|account| account.name.clone());
            let player_name = self.players().name(player).map(str::to_owned);
            let account = account.unwrap_or_default();
            kicked.push(Kicked { account, player, player_name });
            self.kick(connection, reason)?;
        }
        Ok(kicked)
    }

    /// Marks all players as offline when the shard starts.
    pub(crate) fn clear_online(&mut self) -> Outcome<()> {
        let online = |id: &u32| {
            let entry = self.graph().get(*id);
            entry.is_some_and(|entry| matches!(entry.facts, Facts::PlayerInfo { online: true, .. }))
        };
        let infos: Vec<_> = self.graph().ids().into_iter().filter(online).collect();
        self.need(&infos)?;
        for info in infos {
            self.change_node(info, None, shown(false, "", Uuid::ZERO))?;
        }
        Ok(())
    }

    /// Updates the PlayerInfo, which shows others where a player is.
    pub(crate) fn show_player(
        &mut self,
        player: u32,
        online: bool,
        place: &str,
        instance: Uuid,
    ) -> Outcome<()> {
        match self.graph().child(player, NodeType::PlayerInfo, None) {
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
        if self.players().named(&name).is_some() {
            return Err(NetError::PlayerAlreadyExists.into());
        }
        if self.players().of(account).len() >= self.config().players.min(5) {
            return Err(NetError::MaxPlayersOnAcct.into());
        }
        let id = self.make_player(account, &name, shape)?;
        let created = self.now();
        let player = Player { account, name, shape: shape.to_owned(), explorer: 1, created };
        let summary = player.summary(id);
        self.put_player(id, Some(player));
        Ok(summary)
    }

    /// `PlayerDeleteRequest`.
    pub(crate) fn delete_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        let account = self.logged_in(connection)?.account;
        if self.players().account(player) != Some(account) {
            return Err(NetError::PlayerNotFound.into());
        }
        if self.connection_of(player).is_some() {
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

/// The fields of a PlayerInfo about the whereabouts of its player.
fn shown(online: bool, place: &str, instance: Uuid) -> VaultNode<'static> {
    VaultNode {
        int32_1: Some(i32::from(online)),
        uuid_1: Some(instance),
        string64_1: Some(text(place).unwrap_or_default()),
        ..VaultNode::default()
    }
}

/// Normalizes a player's name as clients do: no surrounding spaces, and single spaces inside.
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
