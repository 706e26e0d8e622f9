//! The relay role: pieces in transit, and the signatures of the client's messages.

use std::collections::HashSet;
use std::sync::Arc;

use worldwire_core::connection::{Decision, Lane, Leaving, SendError, Unread};
use worldwire_core::{Error, Side};

use super::config::{RelayConfig, check_signed, signs};
use super::event::Unit;
use crate::crypt::exchange::Variant;
use crate::crypt::pike::Pike;
use crate::frame::Header;
use crate::integrity::Resigner;

/// The parts that only a relay has: its settings, and the signatures of the client's messages.
#[derive(Debug)]
pub struct Relaying {
    config: Arc<RelayConfig>,
    signatures: Signatures,
    /// The opcodes of the messages that overtake held ones, by [`Side::index`].
    keep_alives: [Option<u16>; 2],
}

/// The counters and checksums of the client's messages.
#[derive(Debug)]
struct Signatures {
    /// The client messages that carry a counter and checksum.
    opcodes: HashSet<u16>,
    resigner: Resigner,
}

impl Relaying {
    pub(super) fn new(config: Arc<RelayConfig>) -> Self {
        let signatures =
            Signatures { opcodes: config.integrity.clone(), resigner: Resigner::default() };
        Self { config, signatures, keep_alives: [None; 2] }
    }

    pub(super) fn variant(&self) -> Option<Variant> {
        self.config.variant
    }

    /// Sets the seed of all later checksums.
    pub(super) fn set_seed(&mut self, iv: u32) {
        self.signatures.resigner.set_seed(iv);
    }

    pub(super) fn set_integrity(&mut self, opcodes: HashSet<u16>) {
        self.signatures.opcodes = opcodes;
    }

    pub(super) fn set_keep_alives(&mut self, opcodes: [Option<u16>; 2]) {
        self.keep_alives = opcodes;
    }

    /// Whether a message is a keep-alive, which overtakes held ones.
    pub(super) fn is_keep_alive(&self, piece: &Unread<Unit>) -> bool {
        let known = self.keep_alives[piece.side.index()];
        matches!(piece.unit, Unit::Message { opcode } if known == Some(opcode))
    }

    /// Queues an entry that leaves now.
    pub(super) fn leave(
        &mut self,
        from: Side,
        lane: &mut Lane<Box<Pike>>,
        leaving: Leaving<Unread<Unit>>,
    ) {
        let Leaving { piece, bytes, decision, .. } = leaving;
        match piece {
            Some(Unread { unit: Unit::Message { .. }, .. }) => {
                if let Some(bytes) = self.signatures.outcome(from, bytes, decision) {
                    lane.forward(bytes);
                }
            }
            // The hello and the keys are not encrypted.
            Some(_) => lane.out.forward(bytes),
            None => lane.forward(bytes),
        }
    }

    /// Checks that a piece may be dropped or replaced as decided.
    pub(super) fn check(
        &self,
        piece: &Unread<Unit>,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        match (piece.unit, decision) {
            (Unit::Message { .. }, Decision::Instead(bytes)) => {
                self.signatures.check(piece.side, bytes)
            }
            (Unit::Message { .. }, _) => Ok(()),
            (Unit::Hello, _) => Err(SendError::Unchangeable("hello")),
            (Unit::Key { .. }, _) => Err(SendError::Unchangeable("a key")),
        }
    }

    /// Checks that an injected message is exactly one message from a side.
    pub(super) fn check_injected(&self, side: Side, message: &[u8]) -> Result<(), SendError> {
        self.signatures.check(side, message)
    }

    /// Queues a checked message. `side` is the apparent sender; `lane` leads away from it.
    pub(super) fn inject(
        &mut self,
        side: Side,
        message: &[u8],
        lane: &mut Lane<Box<Pike>>,
    ) -> Result<(), SendError> {
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        let mut message = message.to_vec();
        if self.signatures.signs(side, &message) {
            self.signatures.resigner.add(&mut message);
        }
        lane.push(message);
        Ok(())
    }
}

impl Signatures {
    /// Whether a message carries a counter and checksum.
    fn signs(&self, side: Side, message: &[u8]) -> bool {
        side == Side::Client && signs(&self.opcodes, message)
    }

    /// The bytes to forward for a message, with the counter and checksum that the server expects.
    fn outcome(
        &mut self,
        side: Side,
        original: Vec<u8>,
        decision: Decision<'_>,
    ) -> Option<Vec<u8>> {
        let was_signed = self.signs(side, &original);
        match decision {
            Decision::Instead(bytes) if *bytes != original => {
                let mut bytes = bytes.into_owned();
                let is_signed = self.signs(side, &bytes);
                if was_signed && is_signed && opcode(&original) == opcode(&bytes) {
                    self.resigner.change(&original, &mut bytes);
                    return Some(bytes);
                }
                if was_signed {
                    self.resigner.drop(&original);
                }
                if is_signed {
                    self.resigner.add(&mut bytes);
                }
                Some(bytes)
            }
            Decision::AsIs | Decision::Instead(_) => {
                let mut bytes = original;
                if was_signed {
                    self.resigner.pass(&mut bytes);
                }
                Some(bytes)
            }
            Decision::Drop => {
                if was_signed {
                    self.resigner.drop(&original);
                }
                None
            }
        }
    }

    /// Checks that bytes are exactly one message from a side.
    fn check(&self, side: Side, message: &[u8]) -> Result<(), SendError> {
        let refused = |error: Error| Error::value("one whole message", error.to_string());
        Header::whole(message).map_err(refused).map_err(SendError::Encode)?;
        if self.signs(side, message) {
            check_signed(message).map_err(SendError::Encode)?;
        }
        Ok(())
    }
}

fn opcode(message: &[u8]) -> Option<u16> {
    let [_, _, low, high] = *message.first_chunk()?;
    Some(u16::from_le_bytes([low, high]))
}
