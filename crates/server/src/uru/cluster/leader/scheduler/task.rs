//! The tasks that the scheduler gives the leader.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::uru::cluster::ages::AgeOrder;

/// A task for the leader.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru::cluster) enum Task {
    /// Give a node an order.
    Order { incarnation: u64, order: AgeOrder },
    /// Answer a request to expect a player.
    Answer { request: u64, outcome: Result<(), NotExpected> },
    /// End placements in the vault, given by number and fence.
    End(Vec<(u32, u64)>),
    /// Record in the vault that the player of a session has left an age.
    Left { auth: u64, age: u32 },
    /// Remove a player who has arrived on a node from the ages of this process.
    Came { player: u32 },
    /// Report nodes that may still be running ages although they have not joined this leader. Their
    /// ages can be restarted after this time.
    Missing { nodes: BTreeSet<String>, ages: usize, after: Duration },
}

/// Why no node expects a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::uru) enum NotExpected {
    /// The placement has ended: the age needs a new one.
    Over,
    /// The node does not answer.
    NoAnswer,
}
