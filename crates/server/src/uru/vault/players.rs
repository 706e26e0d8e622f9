//! Players: their names, and the sessions and ages in which they are active.
//!
//! Clients send the name of a player who chats as a `SafeString`. In that form, a text whose first
//! byte is above 0x7f cannot be distinguished from one that is not inverted: clients would misread
//! it or crash. So a name must begin with an ASCII character.

use worldwire_core::text::is_hostile;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::config::OnDuplicate;
use super::content::{Facts, decode};
use super::session::{ConnectionId, Outcome, Session, Stop};
use super::steps::{RESTRICTED, VaultState};
use super::tables::players::{Player, PlayerSummary};
use super::trees::text;

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

/// A player whom an operator renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The player's number.
    pub player: u32,
    /// The old name.
    pub old: String,
    /// The new name, without superfluous spaces.
    pub new: String,
    /// The AgeInfo nodes of the player's ages that had the old name, too.
    pub ages: Vec<u32>,
    /// Whether the player is online. The player's client and the age that it is in keep the old
    /// name until the next login.
    pub online: bool,
}

/// A player's name must be shorter than this, in UTF-16 units.
const NAME_UNITS: usize = 40;
/// The minimum number of characters in a player's name, not counting spaces.
const NAME_CHARACTERS: usize = 3;
/// The rule for players' names, as the end of a sentence.
pub(crate) const NAME_RULE: &str = "\
     must have at least 3 characters other than spaces, at most 39 UTF-16 units, and no control or \
     invisible characters, and must begin with an ASCII character, because clients crash on chat from \
     other names";
/// The place shown for a player who is in no age.
const LOBBY: &str = "Lobby";

impl VaultState {
    /// `AcctSetPlayerRequest`. 0 means no player; choosing that always succeeds.
    pub(crate) fn set_player(&mut self, connection: ConnectionId, player: u32) -> Outcome<()> {
        let session = self.logged_in(connection)?.clone();
        if player == 0 {
            return self.leave_player(connection);
        }
        if self.players().account(player) != Some(session.account) {
            return Err(NetError::PlayerNotFound.into());
        }
        match self.connection_of(player) {
            // The other session's client did not return with its token.
            Some(other) if self.is_waiting(other) => self.disconnect(other)?,
            Some(other) if other != connection => match self.config().on_duplicate {
                OnDuplicate::Refuse => return Err(NetError::LoggedInElsewhere.into()),
                OnDuplicate::Kick => self.kick(other, NetError::LoggedInElsewhere)?,
            },
            _ => {}
        }
        self.leave_player(connection)?;
        let Session { account, flags, ticket, .. } = session;
        let session = Session { account, flags, player, ticket, ..Session::default() };
        self.put_session(connection, Some(session));
        self.show_player(player, true, LOBBY, Uuid::ZERO)
    }

    /// Takes a session's player offline, if it has one.
    pub(crate) fn leave_player(&mut self, connection: ConnectionId) -> Outcome<()> {
        let session = self.session(connection)?.clone();
        if session.player == 0 {
            return Ok(());
        }
        let Session { account, flags, player, ticket, .. } = session;
        let session = Session { account, flags, ticket, ..Session::default() };
        self.put_session(connection, Some(session));
        self.show_player(player, false, "", Uuid::ZERO)
    }

    /// Records that a session's player has left its age.
    pub(crate) fn leave_age(&mut self, connection: ConnectionId) -> Outcome<()> {
        let session = self.playing(connection)?.clone();
        let player = session.player;
        self.put_session(connection, Some(session.moved_to(0, self.now())));
        self.show_player(player, true, LOBBY, Uuid::ZERO)
    }

    /// Ends a session and takes its player offline.
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

    /// Ends sessions on behalf of an operator: the session of a player, given by number or name, or
    /// all sessions of an account, given by name. Returns the sessions that were ended.
    pub(crate) fn kick_by_name(&mut self, who: &str) -> Outcome<Vec<Kicked>> {
        let account = self.accounts().named(who).map(|(id, _)| id);
        let player = self.player_called(who);
        let is_meant = |id: &ConnectionId, session: &Session| match (account, player) {
            (Some(account), _) => session.account == account,
            (None, Some(player)) => self.connection_of(player) == Some(*id),
            (None, None) => false,
        };
        match (account, player) {
            (None, None) => return Err(NetError::AccountNotFound.into()),
            // An account has the same name as another account's player.
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

    /// Sets whether only staff may log in. If `kick` is set, also ends the sessions of all others.
    pub(crate) fn restrict(&mut self, restricted: bool, kick: bool) -> Outcome<Vec<Kicked>> {
        let sessions = self.sessions().iter();
        let others = sessions.filter(|(_, session)| kick && !session.is_staff());
        let others = others.filter(|(_, session)| !session.account.is_zero());
        let others = others.map(|(id, session)| (*id, session.account, session.player)).collect();
        let kicked = self.kick_all(others, NetError::RemoteShutdown)?;
        self.tell_standbys(RESTRICTED, &restricted.to_string());
        self.set_restricted(restricted);
        Ok(kicked)
    }

    /// Ends sessions, each given with its account and player.
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

    /// Marks all players as offline when the shard starts, except those of waiting sessions.
    pub(crate) fn clear_online(&mut self) -> Outcome<()> {
        let online = |id: &u32| match self.graph().get(*id).map(|entry| &entry.facts) {
            Some(Facts::PlayerInfo { online: true, player, .. }) => {
                self.connection_of(*player).is_none()
            }
            _ => false,
        };
        let infos: Vec<_> = self.graph().ids().into_iter().filter(online).collect();
        self.need(&infos)?;
        for info in infos {
            self.change_node(info, None, shown(false, "", Uuid::ZERO))?;
        }
        Ok(())
    }

    /// Updates a PlayerInfo, which shows others where the player is.
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
        let Some(name) = tidy_name(name) else {
            self.log_refusal(name, account);
            return Err(NetError::PlayerNameInvalid.into());
        };
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

    /// Renames a player, given by number or name: the player itself, its Player and PlayerInfo, and
    /// the ages that are named after it.
    pub(crate) fn rename_player(&mut self, who: &str, name: &str) -> Outcome<Renamed> {
        let id = self.player_called(who).ok_or(NetError::PlayerNotFound)?;
        let new = tidy_name(name).ok_or(NetError::PlayerNameInvalid)?;
        if self.players().named(&new).is_some_and(|other| other != id) {
            return Err(NetError::PlayerAlreadyExists.into());
        }
        let player = self.players().get(id).cloned().ok_or(NetError::PlayerNotFound)?;
        let old = player.name.clone();
        let (prefix, new_prefix) = (format!("{old}'s"), format!("{new}'s"));
        let template = VaultNode {
            node_type: Some(NodeType::AgeInfo),
            string64_4: text(&prefix),
            ..VaultNode::default()
        };
        let mut ages = self.graph().find(&template, usize::MAX);
        ages.retain(|info| self.owns_age(id, *info));
        let info = self.graph().child(id, NodeType::PlayerInfo, None);
        let named: Vec<_> = [Some(id), info].into_iter().flatten().collect();
        self.need(&[&named[..], &ages].concat())?;
        self.put_player(id, Some(Player { name: new.clone(), ..player }));
        for node in named {
            let change = VaultNode { istring64_1: text(&new), ..VaultNode::default() };
            self.change_node(node, None, change)?;
        }
        for info in &ages {
            let content = self.content(*info)?;
            let about = decode(&content)?.text_1.as_ref().map(TermStr::to_text);
            let rest = about.as_deref().and_then(|about| about.strip_prefix(&prefix));
            let change = VaultNode {
                string64_4: text(&new_prefix),
                text_1: rest.map(|rest| TermStr::from(&*format!("{new_prefix}{rest}"))),
                ..VaultNode::default()
            };
            self.change_node(*info, None, change)?;
        }
        Ok(Renamed { player: id, old, new, ages, online: self.connection_of(id).is_some() })
    }

    /// The player with this number or name.
    fn player_called(&self, who: &str) -> Option<u32> {
        let number = who.parse().ok().filter(|id| self.players().contains(*id));
        number.or_else(|| self.players().named(who))
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
        self.remove_markers_of(player);
        self.put_player(player, None);
    }
}

/// The fields of a PlayerInfo that show where its player is.
fn shown(online: bool, place: &str, instance: Uuid) -> VaultNode<'static> {
    VaultNode {
        int32_1: Some(i32::from(online)),
        uuid_1: Some(instance),
        string64_1: Some(text(place).unwrap_or_default()),
        ..VaultNode::default()
    }
}

/// Whether a player may have this name.
pub(crate) fn is_player_name(name: &str) -> bool {
    tidy_name(name).is_some()
}

/// Normalises a player's name as clients do: no surrounding spaces, and single spaces inside.
/// `None` for a name that no player may have.
fn tidy_name(name: &str) -> Option<String> {
    let unfit = |c: char| c == '\u{fffd}' || is_hostile(c);
    let tidy = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters = tidy.chars().filter(|c| *c != ' ').count();
    let fits = tidy.starts_with(|c: char| c.is_ascii())
        && characters >= NAME_CHARACTERS
        && tidy.encode_utf16().count() < NAME_UNITS
        && !name.contains(unfit);
    fits.then_some(tidy)
}
