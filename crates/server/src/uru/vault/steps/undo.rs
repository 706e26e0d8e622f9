//! The undo log: the inverse of every step since the last commit.

use std::sync::Arc;

use worldwire_uru::types::Uuid;

use super::VaultState;
use crate::store::{Change, Key, ScoreRow};
use crate::uru::vault::content::Entry;
use crate::uru::vault::interest::Interests;
use crate::uru::vault::placements::Placement;
use crate::uru::vault::session::{ConnectionId, Session};
use crate::uru::vault::tables::accounts::Account;
use crate::uru::vault::tables::players::Player;

/// The inverse of a step, which contains the previous value.
pub(super) enum Undo {
    Node(u32, Option<Entry>),
    /// A reference, by parent and child, and its owner if it existed.
    Ref(u32, u32, Option<u32>),
    Staged(Key, Option<Change>),
    Session(ConnectionId, Option<Arc<Session>>),
    Account(Uuid, Option<Account>),
    Player(u32, Option<Player>),
    Score(u32, Option<ScoreRow>),
    NextNode(u32),
    NextScore(u32),
    System(u32),
    Identity(u64),
    /// The digest of the keys.
    Keys(u64),
    OwnAge(Uuid),
    Placement(u32, Option<Placement>),
    NextFence(u64),
}

/// A point to which [`VaultState::roll_back`] can return.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    undo: usize,
    outbox: usize,
}

impl VaultState {
    /// The current point in the log.
    pub(crate) fn mark(&self) -> Mark {
        Mark { undo: self.undo.len(), outbox: self.outbox.len() }
    }

    /// Undoes all steps since a mark, the latest first, and discards their notices.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        while self.undo.len() > mark.undo
            && let Some(step) = self.undo.pop()
        {
            self.undo_step(step);
        }
        self.outbox.truncate(mark.outbox);
    }

    /// Writes the inverse of a step to the log. Call this before the step changes anything, so that
    /// a step that panics halfway is undone like a complete step.
    pub(super) fn record(&mut self, inverse: Undo) {
        self.undo.push(inverse);
        #[cfg(test)]
        self.panic_if_due();
    }

    fn undo_step(&mut self, step: Undo) {
        match step {
            Undo::Node(id, entry) => self.place_entry(id, entry),
            Undo::Ref(parent, child, None) => {
                if self.graph.unlink(parent, child).is_some() {
                    self.interests.unlinked(parent, child, &self.graph);
                }
            }
            Undo::Ref(parent, child, Some(owner)) => {
                if self.graph.link(parent, child, owner) {
                    self.interests.linked(parent, child, &self.graph);
                }
            }
            Undo::Staged(key, Some(change)) => drop(self.staged.insert(key, change)),
            Undo::Staged(key, None) => drop(self.staged.remove(&key)),
            Undo::Session(connection, session) => self.place_session(connection, session),
            Undo::Account(id, account) => drop(self.accounts.set(id, account)),
            Undo::Player(id, player) => drop(self.players.set(id, player)),
            Undo::Score(id, score) => drop(self.scores.set(id, score)),
            Undo::NextNode(next) => self.next_node = next,
            Undo::NextScore(next) => self.next_score = next,
            Undo::System(system) => {
                self.system = system;
                self.interests.set_system(system, &self.graph);
            }
            Undo::Identity(identity) => self.identity = identity,
            Undo::Keys(keys) => self.keys = keys,
            Undo::OwnAge(instance) => drop(self.own_ages.remove(&instance)),
            Undo::Placement(number, placement) => self.placements.set(number, placement),
            Undo::NextFence(next) => self.placements.set_next_fence(next),
        }
    }

    /// Recomputes the indexes that follow from the graph and the sessions. After a panic, they may
    /// contain only half of a step.
    pub(super) fn rebuild_indexes(&mut self) {
        self.interests = Interests::of_graph(self.system, &self.graph);
        self.online.clear();
        for (connection, session) in &self.sessions {
            for root in session.roots() {
                self.interests.add_root(*connection, root, &self.graph);
            }
            if session.player != 0 {
                self.online.insert(session.player, *connection);
            }
        }
    }

    /// Panics when a test's countdown is over.
    #[cfg(test)]
    fn panic_if_due(&mut self) {
        match self.panic_after.as_mut() {
            Some(0) => {
                self.panic_after = None;
                std::panic::resume_unwind(Box::new("a test asked for a panic"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }
}
