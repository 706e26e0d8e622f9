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

/// A message for members: a net message, or one from the game manager. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Arc<[u8]>,
    content: Content,
}

/// The kind of message in the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// A net message, carried by a `PropagateBuffer`.
    NetMessage(Importance),
    /// A message from the game manager, carried by a `GameMgrMsg`.
    GameManager,
}

/// Whether a message may be discarded when a client reads too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Must be delivered.
    Kept,
    /// Voice: discarded first.
    Voice,
    /// The position of an object: discarded if a newer position of the same object is queued.
    Position(Position),
}

/// Identifies the object of a position message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The beginning and end of the object's uoid in the message, in 32 bits each to keep packets
    /// small, because they are copied for every receiver.
    start: u32,
    end: u32,
    /// A hash that represents the state's descriptor.
    descriptor: u64,
}

impl Position {
    /// `object` is the range of its uoid in the message. Returns `None` if no valid message is that
    /// long.
    pub(super) fn of(object: Range<usize>, descriptor: u64) -> Option<Self> {
        let (start, end) = (object.start.try_into().ok()?, object.end.try_into().ok()?);
        Some(Self { start, end, descriptor })
    }
}

impl Packet {
    /// A message that must be delivered.
    pub(super) fn kept(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::new(bytes, Importance::Kept)
    }

    pub(super) fn new(bytes: impl Into<Arc<[u8]>>, importance: Importance) -> Self {
        Self { bytes: bytes.into(), content: Content::NetMessage(importance) }
    }

    /// A message from the game manager or a game, as [`GameManager`](crate::games::GameManager)
    /// delivers it.
    #[must_use]
    pub fn of_game(bytes: Arc<[u8]>) -> Self {
        Self { bytes, content: Content::GameManager }
    }

    /// A net message created by the server.
    ///
    /// # Errors
    /// Fails if the message cannot be encoded or is longer than a client accepts.
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

    /// The class of the net message; 0 for a message from a game.
    #[must_use]
    pub fn class(&self) -> ClassIndex {
        let class = match self.content {
            Content::NetMessage(_) => self.bytes.first_chunk().copied().unwrap_or_default(),
            Content::GameManager => [0; 2],
        };
        ClassIndex(u16::from_le_bytes(class).into())
    }

    /// Whether the message may be discarded.
    #[must_use]
    pub fn importance(&self) -> &Importance {
        match &self.content {
            Content::NetMessage(importance) => importance,
            Content::GameManager => &Importance::Kept,
        }
    }

    /// The message that carries this packet on the game connection.
    #[must_use]
    pub fn message(&self) -> ServerMessage<'_> {
        let bytes = &*self.bytes;
        match self.content {
            Content::NetMessage(_) => {
                PropagateBuffer { type_: self.class(), buffer: Bytes32::new(bytes) }.into()
            }
            Content::GameManager => GameMgrMsg { buffer: Bytes32::new(bytes) }.into(),
        }
    }

    /// Decodes the net message.
    ///
    /// # Errors
    /// Fails if the message belongs to a game, whose type only the game manager knows.
    pub fn decode(&self) -> Result<NetMessage<'_>> {
        if self.content == Content::GameManager {
            return Err(Error::invalid("a game manager message, not a net message"));
        }
        let mut reader = worldwire_core::Reader::new(&self.bytes);
        let message = NetMessage::decode(&mut reader, "").map_err(Error::closed)?;
        reader.end()?;
        Ok(message)
    }

    /// The key that position messages of the same object share.
    pub(super) fn position(&self) -> Option<(&[u8], u64)> {
        match *self.importance() {
            Importance::Position(Position { start, end, descriptor }) => {
                Some((self.bytes.get(start as usize..end as usize)?, descriptor))
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.bytes.len();
        match self.content {
            Content::NetMessage(_) => write!(f, "Packet({}, {length} bytes)", self.class()),
            Content::GameManager => write!(f, "Packet(GameMgrMsg, {length} bytes)"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_small() {
        assert!(size_of::<Option<Packet>>() <= 40, "{} bytes", size_of::<Packet>());
    }
}
