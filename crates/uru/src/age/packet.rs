//! Net messages for members, shared by all receivers.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use worldwire_core::{Bytes32, Error, Field, Result};

use crate::message::game::server::PropagateBuffer;
use crate::net_message::NetMessage;
use crate::types::{ClassIndex, encoded};

/// The maximum size of a net message in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// A net message for members. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Arc<[u8]>,
    class: ClassIndex,
    importance: Importance,
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
        Self { bytes, class: ClassIndex(class), importance }
    }

    /// A message created by the server.
    ///
    /// # Errors
    /// If the message cannot be encoded, or is longer than a client accepts.
    pub fn of<'m>(message: impl Into<NetMessage<'m>>) -> Result<Self> {
        encoded(&message.into()).map(Self::kept)
    }

    /// The encoded net message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded net message, shared.
    #[must_use]
    pub fn share(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The class of the message.
    #[must_use]
    pub fn class(&self) -> ClassIndex {
        self.class
    }

    /// Whether the message may be discarded.
    #[must_use]
    pub fn importance(&self) -> &Importance {
        &self.importance
    }

    /// The message of the game connection that carries it.
    #[must_use]
    pub fn message(&self) -> PropagateBuffer<'_> {
        PropagateBuffer { type_: self.class, buffer: Bytes32::new(&*self.bytes) }
    }

    /// Decodes the net message.
    pub fn decode(&self) -> Result<NetMessage<'_>> {
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
        write!(f, "Packet({}, {} bytes)", self.class, self.bytes.len())
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
