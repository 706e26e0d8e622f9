//! Commands to running ages.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use worldwire_uru::age::{Packet, Player};
use worldwire_uru::types::{ClassIndex, NetError};

use super::outbox::Outbox;
use super::pace::Effort;

/// A command to a running age.
#[derive(Debug)]
pub(super) enum Command {
    Join(Arrival),
    Message {
        player: u32,
        serial: u64,
        class: ClassIndex,
        bytes: Vec<u8>,
        /// Held until the message is handled.
        turn: OwnedSemaphorePermit,
    },
    /// A message for the game manager.
    GameManager {
        player: u32,
        serial: u64,
        bytes: Vec<u8>,
        /// Held until the message is handled.
        turn: OwnedSemaphorePermit,
    },
    /// Note that the client is still connected.
    Heard {
        player: u32,
    },
    Leave {
        player: u32,
        serial: u64,
    },
    /// Remove the player, if it still uses this connection.
    Kick {
        player: u32,
        serial: u64,
    },
    Deliver {
        packet: Packet,
        players: Vec<u32>,
    },
    DeliverToAll {
        packet: Packet,
    },
    Stop,
}

/// A player's request to join.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) player: Player,
    /// The serial number of the membership.
    pub(super) serial: u64,
    pub(super) auth: u64,
    pub(super) outbox: Arc<Outbox>,
    pub(super) effort: Arc<Effort>,
    pub(super) reply: oneshot::Sender<Result<(), NetError>>,
}
