//! Sessions that are stored for the next process, and those of the previous one.

use super::VaultState;
use crate::store::Change;
use crate::uru::vault::session::{ConnectionId, Notice, Session};

/// The maximum number of notices to remember that waiting sessions may have missed. If there are
/// more, the oldest ones are forgotten.
const MAX_MISSED: usize = 1_024;

impl VaultState {
    /// From now on, stores sessions for the next process. `missed` contains the notices that
    /// clients of the previous process may have missed.
    pub(in crate::uru::vault) fn keep_sessions(&mut self, missed: Vec<Notice>) {
        self.keeps_sessions = true;
        self.missed = missed.into();
    }

    /// Stages the new state of a session, or its end.
    pub(super) fn stage_session(&mut self, connection: ConnectionId, session: Option<&Session>) {
        if !self.keeps_sessions {
            return;
        }
        let was_stored = self.sessions.get(&connection).is_some_and(|it| it.ticket.is_some());
        match session.and_then(|session| session.row(connection)) {
            Some(row) => self.stage(Change::PutSession(row)),
            None if was_stored => self.stage(Change::DeleteSession(connection.0)),
            None => {}
        }
    }

    /// Adds a session of the previous process, which waits for its client.
    pub(in crate::uru::vault) fn put_waiting(
        &mut self,
        connection: ConnectionId,
        session: Session,
    ) {
        if let Some(ticket) = session.ticket {
            self.waiting.insert(ticket.digest, connection);
            self.put_session(connection, Some(session));
        }
    }

    /// Keeps this batch's notices to waiting sessions, because no connection takes them.
    pub(super) fn keep_missed(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        for (connection, notice) in &self.outbox {
            // All sessions that watch a node get the same notice, one after another.
            if self.missed.back() == Some(notice) || !self.is_waiting(*connection) {
                continue;
            }
            // Only the latest notice about each node or reference is kept.
            if let Some(at) = self.missed.iter().position(|earlier| notice.supersedes(earlier)) {
                self.missed.remove(at);
            }
            self.missed.push_back(*notice);
        }
        let excess = self.missed.len().saturating_sub(MAX_MISSED);
        self.missed.drain(..excess);
    }

    /// Repeats the notices that a session may have missed while it waited as `old`.
    pub(in crate::uru::vault) fn tell_missed(
        &mut self,
        old: ConnectionId,
        connection: ConnectionId,
    ) {
        let watches = |notice: &&Notice| {
            let node = match **notice {
                Notice::NodeChanged { node_id, .. } => node_id,
                Notice::NodeAdded { parent_id, .. } | Notice::NodeRemoved { parent_id, .. } => {
                    parent_id
                }
                Notice::KickedOff { .. } => return false,
            };
            self.interests.has(connection, node) || self.interests.is_common(node)
        };
        let notices = self.missed.iter().filter(watches).copied();
        let of_this_batch = self.outbox.iter().filter(|(to, _)| *to == old);
        let notices = notices.chain(of_this_batch.map(|(_, notice)| *notice));
        let told: Vec<_> = notices.map(|notice| (connection, notice)).collect();
        self.outbox.extend(told);
    }
}
