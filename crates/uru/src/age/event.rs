//! What an instance reports to the server around it.

use core::fmt;

use super::dropped::DropReason;
use super::packet::Packet;
use crate::types::{NetError, Uoid};

/// What the server around an instance has to do, or may want to know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The connection of a member is to be closed. Its messages have no effect any more; the server
    /// calls [`leave`](super::Instance::leave) as for all others.
    Close {
        /// The player.
        player_id: u32,
        /// Why.
        why: CloseReason,
    },
    /// The state of the age is to be stored: the vault's SDL node of the age.
    StoreAge {
        /// The blob.
        blob: Vec<u8>,
    },
    /// The state of an object is to be stored, or to be forgotten.
    StoreState {
        /// The object.
        object: Uoid<'static>,
        /// The name of the descriptor; with the object it is the key.
        descriptor: String,
        /// The blob; `None` when the state is not to be kept any more.
        blob: Option<Vec<u8>>,
    },
    /// A message for players who are in other ages, if at all: see
    /// [`deliver`](super::Instance::deliver).
    Route {
        /// The message.
        packet: Packet,
        /// The players.
        players: Vec<u32>,
    },
    /// A message of an administrator for the players of all other ages: see
    /// [`deliver_to_all`](super::Instance::deliver_to_all).
    RouteToAll {
        /// The message.
        packet: Packet,
    },
    /// There are more members than the age file allows.
    OverCapacity {
        /// How many there are.
        members: usize,
        /// How many there should be.
        capacity: usize,
    },
    /// A message was dropped.
    Dropped {
        /// Who sent it.
        player_id: u32,
        /// Why.
        why: DropReason,
    },
    /// Nobody was in the age for as long as it lingers. It takes no more members; everything that is
    /// to be stored was reported.
    Over,
}

/// Why a member is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Too many messages that cannot be read.
    Malformed {
        /// How many there were within a minute.
        messages: usize,
    },
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { messages } => {
                write!(f, "wanted messages that can be read, found {messages} others in a minute")
            }
        }
    }
}

/// Why a player cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinRefused {
    /// The number of the player is 0.
    NoPlayer,
    /// The player is in the age already: the server closes the other connection first.
    AlreadyJoined,
    /// The age is full.
    Full {
        /// How many players it holds.
        capacity: usize,
    },
    /// The instance is over.
    Over,
}

impl JoinRefused {
    /// The result for the `JoinAgeReply`.
    ///
    /// Unverified: that of a full age. No server refuses players for that reason, and the client has
    /// no result of that name; `ServerBusy` is the nearest.
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

impl fmt::Display for JoinRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlayer => f.write_str("wanted the number of a player, found 0"),
            Self::AlreadyJoined => f.write_str("wanted a player who is not here, found a member"),
            Self::Full { capacity } => {
                write!(f, "wanted at most {capacity} players, found one more")
            }
            Self::Over => f.write_str("wanted an age that runs, found one that is over"),
        }
    }
}

impl core::error::Error for JoinRefused {}
