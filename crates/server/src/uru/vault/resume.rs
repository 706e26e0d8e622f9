//! Sessions that outlive their connection or their process.
//!
//! While a process serves the shard, [`Reconnections`](crate::uru::auth::Reconnections) moves
//! sessions to new connections. If several processes share the database, the database also stores
//! the session of every client that can reconnect. A process that takes over reads these sessions,
//! and each of them *waits* for its client: the player stays online. The client connects again with
//! the token that it got from the previous process, as it does after losing any connection, and its
//! session moves to the new connection. After a while, sessions whose clients have not returned
//! end.
//!
//! The database contains only digests of the tokens. A token can be used only once and only from
//! the client's address.

use std::fmt;
use std::net::IpAddr;

use sha2::{Digest as _, Sha256};
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::NodeType;

use super::ask::{asks, decoded, encoded, wire_struct};
use super::handle::{Connection, Vault};
use super::session::{ConnectionId, Notice, Outcome, Session};
use super::steps::VaultState;
use crate::store::{Change, SessionRow};

/// The credentials with which a client can resume a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ticket {
    /// A digest of the token.
    pub(super) digest: [u8; 32],
    address: IpAddr,
}

impl Ticket {
    /// The ticket of a client with this token and address.
    pub(in crate::uru) fn new(token: Uuid, address: IpAddr) -> Self {
        Self { digest: Sha256::digest(token.0).into(), address: address.to_canonical() }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("address", &self.address).finish_non_exhaustive()
    }
}

wire_struct! {
    Ticket { digest: [u8; 32], address: IpAddr }
}

/// The client of a session that was resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resumed {
    pub(in crate::uru) account: Uuid,
    pub(in crate::uru) account_name: String,
    /// The player, or 0.
    pub(in crate::uru) player: u32,
}

wire_struct! {
    Resumed { account: Uuid, account_name: String, player: u32 }
}

asks! {
    /// Lets a client that has logged in resume its session through the next process, with this
    /// ticket only.
    130 KeepTicket { ticket: Option<Ticket> } -> ();
        |state, id| {
            let session = Session { ticket: *ticket, ..state.logged_in(id)?.clone() };
            state.put_session(id, Some(session));
            Ok(())
        }

    /// Resumes the session that waits for this ticket, if there is one, on a new connection with
    /// a new ticket.
    131 Resume { presented: Ticket, new: Option<Ticket> } -> Option<Resumed>;
        |state, id| state.resume(id, presented, *new)

    /// The account and player of this session.
    132 Identify {} -> Resumed;
        |state, id| state.logged_in(id).map(|session| state.client(session)).map_err(Into::into)
}

impl Connection {
    /// Lets the client resume this session through the process that takes over from this one.
    pub(in crate::uru) async fn keep_ticket(&self, ticket: Option<Ticket>) -> Result<(), NetError> {
        self.ask(KeepTicket { ticket }).await
    }

    /// The account and player of this session. Fails with [`NetError::AuthenticationFailed`] before
    /// the login.
    pub(in crate::uru) async fn identify(&self) -> Result<Resumed, NetError> {
        self.ask(Identify {}).await
    }

    /// Resumes a session of the previous process, if one waits for this ticket. `new` is the ticket
    /// for the next time.
    pub(in crate::uru) async fn resume(
        &self,
        presented: Ticket,
        new: Option<Ticket>,
    ) -> Result<Option<Resumed>, NetError> {
        self.ask(Resume { presented, new }).await
    }
}

impl Vault {
    /// Ends the sessions whose clients have not returned. Returns their number.
    pub(in crate::uru) async fn end_waiting(&self) -> Result<usize, NetError> {
        self.operate(None, VaultState::end_waiting).await
    }
}

impl VaultState {
    /// From now on, stores sessions. Those that the previous process stored wait for their clients,
    /// which may have missed some notices. `last_epoch` is the epoch of the previous process. Call
    /// this after [`finish_loading`](VaultState::finish_loading).
    pub(super) fn load_sessions(
        &mut self,
        rows: Vec<(u64, SessionRow)>,
        last_epoch: u64,
        missed: Vec<Notice>,
    ) {
        self.keep_sessions(missed);
        for (written, row) in rows {
            let connection = ConnectionId(row.connection);
            // Earlier sessions belong to clients that gave up long ago.
            let session = decoded::<Session>(&row.data).ok().filter(|_| written == last_epoch);
            match session.filter(|session| self.can_wait(session)) {
                // The session is stored again, in this epoch.
                Some(session) => self.put_waiting(connection, session),
                None => self.stage(Change::DeleteSession(row.connection)),
            }
        }
    }

    fn can_wait(&self, session: &Session) -> bool {
        let Session { account, player, ticket, .. } = session;
        let is_own = *player == 0 || self.players().account(*player) == Some(*account);
        let is_offline = self.connection_of(*player).is_none();
        ticket.is_some() && self.accounts().get(*account).is_some() && is_own && is_offline
    }

    fn resume(
        &mut self,
        connection: ConnectionId,
        presented: &Ticket,
        new: Option<Ticket>,
    ) -> Outcome<Option<Resumed>> {
        self.session(connection)?;
        let Some(old) = self.waiting().get(&presented.digest).copied() else { return Ok(None) };
        let Some(session) = self.sessions().get(&old) else { return Ok(None) };
        if session.ticket.as_ref() != Some(presented) {
            return Ok(None);
        }
        let session = Session { ticket: new, ..Session::clone(session) };
        let client = self.client(&session);
        self.put_session(old, None);
        self.put_session(connection, Some(session));
        self.tell_missed(old, connection);
        Ok(Some(client))
    }

    fn client(&self, session: &Session) -> Resumed {
        let Session { account, player, .. } = *session;
        let account_name = self.accounts().get(account).map(|account| account.name.clone());
        Resumed { account, account_name: account_name.unwrap_or_default(), player }
    }

    /// Whether a session waits for its client.
    pub(super) fn is_waiting(&self, connection: ConnectionId) -> bool {
        let ticket = self.sessions().get(&connection).and_then(|session| session.ticket);
        ticket.is_some_and(|ticket| self.waiting().get(&ticket.digest) == Some(&connection))
    }

    fn end_waiting(&mut self) -> Outcome<usize> {
        let waiting = self.waiting().values();
        let waiting = waiting.filter_map(|id| Some((*id, self.sessions().get(id)?.player)));
        let waiting: Vec<_> = waiting.collect();
        // Ask for all contents at once, because the whole request runs again whenever some are
        // missing.
        let info = |player| self.graph().child(player, NodeType::PlayerInfo, None);
        self.need(&waiting.iter().filter_map(|(_, player)| info(*player)).collect::<Vec<_>>())?;
        for (connection, _) in &waiting {
            self.disconnect(*connection)?;
        }
        Ok(waiting.len())
    }
}

impl Session {
    /// The row for the next process; `None` if the client cannot resume it.
    pub(super) fn row(&self, connection: ConnectionId) -> Option<SessionRow> {
        self.ticket?;
        let data = encoded(self).ok()?;
        Some(SessionRow { connection: connection.0, data })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use worldwire_uru::message::AccountFlags;

    use super::*;
    use crate::store::seal::ServerKey;
    use crate::store::{Changes, Key};
    use crate::uru::vault::ask::Ask as _;
    use crate::uru::vault::config::VaultConfig;
    use crate::uru::vault::content::Facts;
    use crate::uru::vault::session::Stop;

    const EPOCH: u64 = 4;
    /// A connection to the previous process.
    const OLD: ConnectionId = ConnectionId(7);
    /// A connection to this process.
    const NEW: ConnectionId = ConnectionId(8);

    fn ticket(number: u8, host: u8) -> Ticket {
        Ticket::new(Uuid([number; 16]), [127, 0, 0, host].into())
    }

    fn empty() -> VaultState {
        let mut number = 0_u8;
        let random = Box::new(move |bytes: &mut [u8]| {
            number = number.wrapping_add(1);
            bytes.fill(number);
        });
        VaultState::new(VaultConfig::default(), ServerKey::from_bytes(&[1; 32]), random)
    }

    /// A process with a session that its client can resume with ticket 1. Returns the player, and
    /// the data that the process has stored.
    fn before() -> (u32, Changes) {
        let mut state = empty();
        state.keep_sessions(Vec::new());
        state.run(VaultState::found).unwrap();
        let added = state.run(|state| state.add_account("ann", "secret", AccountFlags(0)));
        state.connect(OLD);
        let session = Session { account: added.unwrap().account, ..Session::default() };
        state.put_session(OLD, Some(session));
        let keep = KeepTicket { ticket: Some(ticket(1, 1)) };
        state.run(|state| keep.run(state, OLD)).unwrap();
        let player = state.run(|state| state.create_player(OLD, "Ann", "female")).unwrap().id;
        state.run(|state| state.set_player(OLD, player)).unwrap();
        (player, state.staged().clone())
    }

    fn rows(stored: &Changes, epoch: u64) -> Vec<(u64, SessionRow)> {
        let row = |change: &Change| match change {
            Change::PutSession(row) => Some((epoch, row.clone())),
            _ => None,
        };
        stored.values().filter_map(row).collect()
    }

    /// The next process, before the sessions are loaded.
    fn next(stored: &Changes) -> VaultState {
        let mut state = empty();
        state.follow(stored).unwrap();
        state.finish_loading().unwrap();
        for change in stored.values() {
            if let Change::PutNode(row) = change {
                state.load_content(row.id, row.data.clone());
            }
        }
        state.connect(NEW);
        state
    }

    /// The next process, with a session that waits for its client.
    fn after(stored: &Changes, missed: Vec<Notice>) -> VaultState {
        let mut state = next(stored);
        state.load_sessions(rows(stored, EPOCH), EPOCH, missed);
        state
    }

    fn resume(state: &mut VaultState, presented: Ticket) -> Option<Resumed> {
        let resume = Resume { presented, new: Some(ticket(2, 1)) };
        state.run(|state| resume.run(state, NEW)).unwrap()
    }

    fn is_online(state: &VaultState, player: u32) -> bool {
        let info = state.graph().child(player, NodeType::PlayerInfo, None).unwrap();
        let facts = &state.graph().get(info).unwrap().facts;
        matches!(facts, Facts::PlayerInfo { online: true, .. })
    }

    #[test]
    fn a_ticket_resumes_its_session_once() {
        let (player, stored) = before();
        let mut state = after(&stored, Vec::new());
        state.run(VaultState::clear_online).unwrap();
        assert!(is_online(&state, player));
        for wrong in [ticket(1, 2), ticket(3, 1)] {
            assert_eq!(resume(&mut state, wrong), None);
        }
        assert_eq!(resume(&mut state, ticket(1, 1)).unwrap().player, player);
        let sessions: Vec<_> = state.sessions().keys().copied().collect();
        assert_eq!((sessions, state.connection_of(player)), (vec![NEW], Some(NEW)));
        let staged = state.staged();
        assert_eq!(staged[&Key::Session(OLD.0)], Change::DeleteSession(OLD.0));
        assert!(matches!(&staged[&Key::Session(NEW.0)], Change::PutSession(_)));
        state.connect(ConnectionId(9));
        let again = Resume { presented: ticket(1, 1), new: None };
        assert_eq!(state.run(|state| again.run(state, ConnectionId(9))), Ok(None));
        state.run(VaultState::end_waiting).unwrap();
        assert!(is_online(&state, player), "it has been resumed");
    }

    #[test]
    fn a_refused_request_leaves_the_session_waiting() {
        let (player, stored) = before();
        let mut state = after(&stored, Vec::new());
        let staged = state.staged().clone();
        let refused: Outcome<()> = state.run(|state| {
            state.resume(NEW, &ticket(1, 1), None)?;
            Err(NetError::InternalError.into())
        });
        assert_eq!(refused, Err(NetError::InternalError.into()));
        assert_eq!((state.connection_of(player), state.staged()), (Some(OLD), &staged));
        assert!(resume(&mut state, ticket(1, 1)).is_some());
    }

    #[test]
    fn sessions_without_a_client_end() {
        let (player, stored) = before();
        let mut state = after(&stored, Vec::new());
        assert_eq!(state.run(VaultState::end_waiting), Ok(1));
        assert!(!is_online(&state, player));
        assert!(!state.sessions().contains_key(&OLD));
        assert_eq!(resume(&mut state, ticket(1, 1)), None);

        // A new login to the account replaces the waiting session.
        let mut state = after(&stored, Vec::new());
        let account = state.sessions()[&OLD].account;
        state.put_session(NEW, Some(Session { account, ..Session::default() }));
        state.run(|state| state.set_player(NEW, player)).unwrap();
        assert_eq!(state.sessions().len(), 1);
        assert!(is_online(&state, player));
    }

    #[test]
    fn contents_for_ending_sessions_are_loaded_at_once() {
        let (player, stored) = before();
        let mut state = empty();
        state.follow(&stored).unwrap();
        state.finish_loading().unwrap();
        state.load_sessions(rows(&stored, EPOCH), EPOCH, Vec::new());
        let info = state.graph().child(player, NodeType::PlayerInfo, None).unwrap();
        assert_eq!(state.run(VaultState::end_waiting), Err(Stop::Need(vec![info])));
    }

    #[test]
    fn only_sound_sessions_of_the_last_process_wait() {
        let (_, stored) = before();
        let rows = rows(&stored, EPOCH);
        let account = stored.keys().find(|key| matches!(key, Key::Account(_))).unwrap();
        let without_account = stored.iter().filter(|(key, _)| *key != account);
        let without_account: Changes =
            without_account.map(|(key, change)| (key.clone(), change.clone())).collect();
        let damaged = vec![(EPOCH, SessionRow { connection: OLD.0, data: vec![1, 2, 3] })];
        for (mut state, rows, last_epoch) in [
            (next(&stored), rows.clone(), EPOCH + 1),
            (next(&stored), rows.clone(), EPOCH - 1),
            (next(&stored), damaged, EPOCH),
            (next(&without_account), rows, EPOCH),
        ] {
            state.load_sessions(rows, last_epoch, Vec::new());
            assert!(!state.sessions().contains_key(&OLD), "epoch {last_epoch}");
            assert_eq!(state.staged()[&Key::Session(OLD.0)], Change::DeleteSession(OLD.0));
        }
    }

    #[test]
    fn missed_notices_are_repeated_to_those_whom_they_concern() {
        let (player, stored) = before();
        let changed = |node_id| Notice::NodeChanged { node_id, revision_id: Uuid([5; 16]) };
        let inbox = next(&stored).graph().child(player, NodeType::Folder, Some(1)).unwrap();
        let added = Notice::NodeAdded { parent_id: inbox, child_id: 1, owner_id: 0 };
        let missed = vec![changed(player), changed(u32::MAX), added];
        let mut state = after(&stored, missed);
        state.settle();
        resume(&mut state, ticket(1, 1)).unwrap();
        assert_eq!(state.settle(), [(NEW, changed(player)), (NEW, added)]);
    }

    /// Waiting sessions have no connection that could take notices.
    #[test]
    fn notices_are_kept_for_waiting_sessions() {
        let (player, stored) = before();
        let changed = |byte| Notice::NodeChanged { node_id: player, revision_id: Uuid([byte; 16]) };
        let mut state = after(&stored, vec![changed(1)]);
        state.settle();
        state.notify(player, changed(2));
        assert_eq!(state.settle(), [(OLD, changed(2))]);
        // This notice is in the batch in which the session returns.
        state.notify(player, changed(3));
        resume(&mut state, ticket(1, 1)).unwrap();
        let told: Vec<_> = state.settle().into_iter().filter(|(to, _)| *to == NEW).collect();
        // The second notice superseded the first.
        assert_eq!(told, [2, 3].map(|byte| (NEW, changed(byte))));
        state.notify(player, changed(4));
        assert_eq!(state.settle(), [(NEW, changed(4))]);
        assert!(!state.is_waiting(OLD) && !state.is_waiting(NEW));
    }
}
