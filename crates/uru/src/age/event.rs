//! Events that an instance reports to its server.

use core::fmt;

use super::dropped::DropReason;
use super::packet::Packet;
use crate::types::{NetError, Uoid};

/// A request to the server or a report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Close a member's connection. Its messages no longer have any effect; the server calls
    /// [`leave`](super::Instance::leave) as usual.
    Close {
        /// The player.
        player_id: u32,
        /// The reason.
        why: CloseReason,
    },
    /// Store the state of the age in the vault, in the age's SDL node.
    StoreAge {
        /// The blob.
        blob: Vec<u8>,
    },
    /// Store or delete the state of an object.
    StoreState {
        /// The object.
        object: Uoid<'static>,
        /// The name of the descriptor. Object and name form the key.
        descriptor: String,
        /// The blob; `None` to delete the state.
        blob: Option<Vec<u8>>,
    },
    /// A message for players who may be in other ages; pass it to
    /// [`deliver`](super::Instance::deliver).
    Route {
        /// The message.
        packet: Packet,
        /// The addressees.
        players: Vec<u32>,
    },
    /// An administrator's message for the players of all other ages; pass it to
    /// [`deliver_to_all`](super::Instance::deliver_to_all).
    RouteToAll {
        /// The message.
        packet: Packet,
    },
    /// More members joined than the age file allows.
    OverCapacity {
        /// The number of members.
        members: usize,
        /// The number that the age file allows.
        capacity: usize,
    },
    /// A message was dropped.
    Dropped {
        /// The sender.
        player_id: u32,
        /// The reason.
        why: DropReason,
    },
    /// The instance has been empty for its linger time. It accepts no more members, and has
    /// reported everything that must be stored.
    Over,
}

/// Why a member's connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Too many malformed messages.
    Malformed {
        /// The number of malformed messages within a minute.
        messages: usize,
    },
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { messages } => {
                write!(f, "{messages} malformed messages within a minute")
            }
        }
    }
}

/// Why a player cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinRefused {
    /// The player's KI number is 0.
    #[error("player 0 does not exist")]
    NoPlayer,
    /// The player is already in the age; the server must close the other connection first.
    #[error("the player is already in the age")]
    AlreadyJoined,
    /// The age is full.
    #[error("the age is full; it holds {capacity} players")]
    Full {
        /// The number of players it holds.
        capacity: usize,
    },
    /// The instance has ended.
    #[error("the instance has ended")]
    Over,
}

impl JoinRefused {
    /// The result code for the `JoinAgeReply`.
    ///
    /// Unverified: the code for a full age. No server refuses players for that reason, and the
    /// client has no matching code; `ServerBusy` is the closest.
    #[must_use]
    pub const fn result(self) -> NetError {
        match self {
            Self::NoPlayer => NetError::InvalidParameter,
            Self::AlreadyJoined => NetError::LoggedInElsewhere,
            Self::Full { .. } => NetError::ServerBusy,
            Self::Over => NetError::AgeNotFound,
        }
    }
}
