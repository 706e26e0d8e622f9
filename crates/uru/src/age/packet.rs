//! What goes to members: net messages that all receivers share.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use worldwire_core::{Bytes32, Error, Field, Result, Writer};

use crate::message::game::server::PropagateBuffer;
use crate::net_message::NetMessage;
use crate::types::ClassIndex;

/// The most bytes of a net message.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// A net message that goes to members. A clone of it shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Arc<[u8]>,
    class: ClassIndex,
    importance: Importance,
}

/// Whether a message may be left out of the queue of a client that reads too slowly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Importance {
    /// It must arrive.
    Kept,
    /// Voice: left out first.
    Voice,
    /// Where something moves: left out when a newer one of the same object is there.
    Position(Position),
}

/// Of which object a position is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Where the name of the object stands in the message.
    pub(super) object: Range<usize>,
    /// Stands for the descriptor of the state.
    pub(super) descriptor: u64,
}

impl Packet {
    /// A message that must arrive.
    pub(super) fn kept(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::new(bytes, Importance::Kept)
    }

    pub(super) fn new(bytes: impl Into<Arc<[u8]>>, importance: Importance) -> Self {
        let bytes = bytes.into();
        let class = bytes.first_chunk().map_or(0, |class| u16::from_le_bytes(*class).into());
        Self { bytes, class: ClassIndex(class), importance }
    }

    /// A message that the server makes.
    pub(super) fn of<'m>(message: impl Into<NetMessage<'m>>) -> Result<Self> {
        let mut writer = Writer::new();
        message.into().encode(&mut writer)?;
        Ok(Self::kept(writer.into_bytes()))
    }

    /// The bytes of the net message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, shared.
    #[must_use]
    pub fn share(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> ClassIndex {
        self.class
    }

    /// Whether it may be left out.
    #[must_use]
    pub fn importance(&self) -> &Importance {
        &self.importance
    }

    /// The message of the game connection that carries it.
    #[must_use]
    pub fn message(&self) -> PropagateBuffer<'_> {
        PropagateBuffer { type_: self.class, buffer: Bytes32::new(&*self.bytes) }
    }

    /// The net message.
    ///
    /// # Errors
    /// None for what an instance made.
    pub fn decode(&self) -> Result<NetMessage<'_>> {
        let mut reader = worldwire_core::Reader::new(&self.bytes);
        let message = NetMessage::decode(&mut reader, "").map_err(Error::closed)?;
        reader.end()?;
        Ok(message)
    }

    /// What tells the positions of one object from those of others.
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
    /// The player.
    pub to: u32,
    /// The message.
    pub packet: Packet,
}
