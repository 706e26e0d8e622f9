//! Messages for members, shared by all receivers.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use worldwire_core::{Bytes32, Error, Field, Result};

use crate::message::game::server::{GameMgrMsg, PropagateBuffer, ServerMessage};
use crate::net_message::NetMessage;
use crate::types::{ClassIndex, encoded};

/// The maximum size of a net message in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// A message for members: a net message, or one of the game manager. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Arc<[u8]>,
    carrier: Carrier,
    importance: Importance,
}

/// The message of the game connection that carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    /// `PropagateBuffer`, with the class of the net message.
    PropagateBuffer(ClassIndex),
    /// `GameMgrMsg`.
    GameMgrMsg,
}

/// Whether a message may be discarded when a client reads too slowly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Must be delivered.
    Kept,
    /// Voice: discarded first.
    Voice,
    /// The position of an object: discarded if a newer one of the same object is queued.
    Position(Position),
}

/// Identifies the object of a position message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Where the object's uoid is in the message.
    pub(super) object: Range<usize>,
    /// A hash that represents the state's descriptor.
    pub(super) descriptor: u64,
}

impl Packet {
    /// A message that must be delivered.
    pub(super) fn kept(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::new(bytes, Importance::Kept)
    }

    pub(super) fn new(bytes: impl Into<Arc<[u8]>>, importance: Importance) -> Self {
        let bytes = bytes.into();
        let class = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class).into());
        let carrier = Carrier::PropagateBuffer(ClassIndex(class));
        Self { bytes, carrier, importance }
    }

    /// A message of the game manager or of a game, as
    /// [`GameManager`](crate::games::GameManager) delivers it.
    #[must_use]
    pub fn of_game(bytes: Arc<[u8]>) -> Self {
        Self { bytes, carrier: Carrier::GameMgrMsg, importance: Importance::Kept }
    }

    /// A net message created by the server.
    ///
    /// # Errors
    /// If the message cannot be encoded, or is longer than a client accepts.
    pub fn of<'m>(message: impl Into<NetMessage<'m>>) -> Result<Self> {
        encoded(&message.into()).map(Self::kept)
    }

    /// The encoded message, without its carrier.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded message, shared.
    #[must_use]
    pub fn share(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The class of the net message; 0 for a message of a game.
    #[must_use]
    pub fn class(&self) -> ClassIndex {
        match self.carrier {
            Carrier::PropagateBuffer(class) => class,
            Carrier::GameMgrMsg => ClassIndex(0),
        }
    }

    /// Whether the message may be discarded.
    #[must_use]
    pub fn importance(&self) -> &Importance {
        &self.importance
    }

    /// The message of the game connection that carries it.
    #[must_use]
    pub fn message(&self) -> ServerMessage<'_> {
        let bytes = &*self.bytes;
        match self.carrier {
            Carrier::PropagateBuffer(type_) => {
                PropagateBuffer { type_, buffer: Bytes32::new(bytes) }.into()
            }
            Carrier::GameMgrMsg => GameMgrMsg { buffer: Bytes32::new(bytes) }.into(),
        }
    }

    /// Decodes the net message.
    ///
    /// # Errors
    /// If the message belongs to a game, whose type only the game manager knows.
    pub fn decode(&self) -> Result<NetMessage<'_>> {
        if self.carrier == Carrier::GameMgrMsg {
            return Err(Error::invalid("a game manager message, not a net message"));
        }
        let mut reader = worldwire_core::Reader::new(&self.bytes);
        let message = NetMessage::decode(&mut reader, "").map_err(Error::closed)?;
        reader.end()?;
        Ok(message)
    }

    /// The key that position messages of the same object share.
    pub(super) fn position(&self) -> Option<(&[u8], u64)> {
        match &self.importance {
            Importance::Position(position) => {
                Some((self.bytes.get(position.object.clone())?, position.descriptor))
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.bytes.len();
        match self.carrier {
            Carrier::PropagateBuffer(class) => write!(f, "Packet({class}, {length} bytes)"),
            Carrier::GameMgrMsg => write!(f, "Packet(GameMgrMsg, {length} bytes)"),
        }
    }
}

/// A message for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The receiving player.
    pub to: u32,
    /// The message.
    pub packet: Packet,
}
