//! Puts received RPC messages in order.

use std::collections::BTreeMap;

#[cfg(feature = "fuzzing")]
use worldwire_core::Side;
use worldwire_core::{Error, Result};

use super::config::Common;
use super::event::Unread;
use crate::frame::{Packet, RpcList, Section};

/// The RPC messages that arrived early and the number of the next one.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    next: u64,
    early: BTreeMap<u64, Unread>,
    /// The number of bytes in the early messages.
    bytes: usize,
    /// The ranges of messages that a restart discarded; nothing else reports them.
    #[cfg(feature = "fuzzing")]
    forgotten: Vec<(Side, core::ops::Range<u64>)>,
}

/// The position of a message in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The message was received before.
    Repeated,
    /// It is the next message or a later one. The number does not wrap.
    At(u64),
}

impl Inbox {
    /// The position of the message with this number on the wire.
    pub(super) fn turn(&self, number: u16) -> Turn {
        let ahead = number.wrapping_sub(super::outbox::on_wire(self.next));
        let turn = self.next.saturating_add(ahead.into());
        if ahead >= 0x8000 || self.early.contains_key(&turn) {
            return Turn::Repeated;
        }
        Turn::At(turn)
    }

    /// Checks that all messages of a packet can be kept. Otherwise, the packet must not be
    /// acknowledged.
    pub(super) fn check(&self, packet: &Packet<'_>, config: &Common) -> Result<()> {
        let (max_ahead, max_bytes) = (config.max_ahead, config.max_ahead_bytes);
        let mut bytes = self.bytes;
        for section in &packet.sections {
            let Section::Rpc(lists) = section else { continue };
            for (number, message) in lists.iter().flat_map(RpcList::numbered) {
                let Turn::At(turn) = self.turn(number) else { continue };
                let ahead = turn - self.next;
                if ahead >= max_ahead.into() {
                    let name = "RPC messages after a missing one";
                    return Err(Error::limit(name, max_ahead.into(), ahead + 1));
                }
                bytes += message.body.len();
                // The next message is delivered immediately, whatever its length.
                if ahead > 0 && bytes > max_bytes {
                    let name = "bytes of RPC messages after a missing one";
                    return Err(Error::limit(name, max_bytes as u64, bytes as u64));
                }
            }
        }
        Ok(())
    }

    /// Stores a message until [`next`](Self::next) returns it.
    pub(super) fn put(&mut self, turn: u64, message: Unread) {
        self.bytes += message.bytes.len();
        self.early.insert(turn, message);
    }

    /// A stored message.
    pub(super) fn get_mut(&mut self, turn: u64) -> Option<&mut Unread> {
        self.early.get_mut(&turn)
    }

    /// The next message in order, if it has arrived.
    pub(super) fn next(&mut self) -> Option<Unread> {
        let message = self.early.remove(&self.next)?;
        self.next += 1;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// The stream ranges of messages that are kept or were discarded.
    #[cfg(feature = "fuzzing")]
    pub(super) fn ranges(&self) -> Vec<(Side, core::ops::Range<u64>)> {
        let early = self.early.values().map(|message| (message.side, message.range.clone()));
        self.forgotten.iter().cloned().chain(early).collect()
    }

    /// Discards everything; numbers restart at 0.
    pub(super) fn restart(&mut self) {
        *self = Self {
            #[cfg(feature = "fuzzing")]
            forgotten: self.ranges(),
            ..Self::default()
        };
    }
}
