//! The events of a connection.

use core::ops::Range;

use worldwire_core::connection::Piece;
use worldwire_core::{Result, Side};

use crate::control::{Control, Opcode};
use crate::crypt::Salt;
use crate::frame::{FrameHead, control_in_frame};
use crate::message::HEAD_BYTES;

/// Events that only KI connections have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A session was accepted, so messages may be sent. Reported again after a refresh. Observers
    /// do not report it; relays do when the accept passes through.
    Established {
        /// The session's ID.
        session_id: u16,
        /// The session that the new one replaces. A server releases the old session's ID.
        previous: Option<u16>,
    },
    /// For observers: the stream is encrypted and no key fits. The rest of it is not read.
    KeysNeeded {
        /// The sender of the stream.
        side: Side,
        /// The session.
        session_id: Option<u16>,
    },
    /// For servers: a client's message was not delivered.
    Ignored {
        /// The kind of piece.
        unit: Unit,
        /// The reason.
        why: Ignored,
        /// The message's byte range in the client's stream; see [`Received`].
        range: Range<u64>,
        /// The message: header and payload.
        bytes: Vec<u8>,
    },
}

/// Why a server did not deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// The session is stale. The server offers a new one, and the client sends its last message
    /// again.
    Stale,
    /// The session has not been accepted yet, and the server does not keep early messages.
    Early,
    /// The session's access level is too low.
    AccessLevel {
        /// The level that the message needs.
        needed: u8,
        /// The level of the session.
        has: u8,
    },
}

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A control message: a whole frame.
    Control(Opcode),
    /// One DML message of a data frame.
    Message {
        /// The protocol.
        service: u8,
        /// The message's number in the protocol.
        order: u8,
    },
    /// A data frame without any message.
    Empty,
}

/// A complete control message or DML message. A frame's head belongs to its first message, and its
/// trailer to its last.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// The side that sent it.
    pub side: Side,
    /// The kind of piece.
    pub unit: Unit,
    /// The piece's decrypted bytes, including the frame's head if it is the frame's first piece,
    /// and the trailer if it is the last.
    pub bytes: &'c [u8],
    /// The position of the message in `bytes`: header and payload of a DML message, or a control
    /// frame's body with the trailer but without the body's header.
    pub message: Range<usize>,
    /// The piece's byte range in its side's stream. On encrypted streams, this includes tags and
    /// nonces.
    pub range: Range<u64>,
    /// Whether the piece was encrypted.
    pub encrypted: bool,
    /// The salt of the login's secrets, once a session has been offered.
    pub salt: Option<Salt>,
}

impl<'c> Received<'c> {
    /// The control message, if it is one.
    ///
    /// # Errors
    /// Fails as the decoder does, but never for a piece reported by a connection.
    pub fn control(&self) -> Result<Option<Control<'c>>> {
        match self.unit {
            Unit::Control(_) => control_in_frame(self.bytes, Some(self.side)).map(Some),
            _ => Ok(None),
        }
    }

    /// The payload of a DML message; empty for other pieces.
    #[must_use]
    pub fn payload(&self) -> &'c [u8] {
        let message = self.bytes.get(self.message.clone()).unwrap_or_default();
        match self.unit {
            Unit::Message { .. } => message.get(HEAD_BYTES..).unwrap_or_default(),
            _ => &[],
        }
    }
}

impl<'c> Piece<'c> for Received<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    fn is_message(&self) -> bool {
        matches!(self.unit, Unit::Message { .. })
    }
}

/// Everything known about a piece except its bytes, which the stream's buffer holds.
#[derive(Clone, Debug)]
pub struct PieceInfo {
    pub(super) side: Side,
    pub(super) unit: Unit,
    /// The head of the frame that the piece belongs to.
    pub(super) head: FrameHead,
    /// The position of the piece in its stream's buffer.
    pub(super) bytes: Range<usize>,
    /// See [`Received::message`].
    pub(super) message: Range<usize>,
    /// See [`Received::range`].
    pub(super) range: Range<u64>,
    pub(super) encrypted: bool,
    pub(super) salt: Option<Salt>,
    /// Whether it is the last piece of its frame.
    pub(super) is_last: bool,
    pub(super) is_datagram: bool,
}

impl PieceInfo {
    /// Whether it is the first piece of its frame and so includes the frame's head.
    pub(super) fn is_first(&self) -> bool {
        self.message.start > 0
    }

    /// The part that a relay's decision applies to, counted from the first byte of the piece.
    pub(super) fn changeable(&self) -> Range<usize> {
        match self.unit {
            Unit::Control(_) => 0..self.bytes.len(),
            Unit::Message { .. } | Unit::Empty => self.message.clone(),
        }
    }

    /// The event for this piece.
    pub(super) fn received(self, bytes: &[u8]) -> Received<'_> {
        let Self { side, unit, message, range, encrypted, salt, .. } = self;
        Received { side, unit, bytes, message, range, encrypted, salt }
    }
}

/// A piece that has not been reported yet.
#[derive(Debug)]
pub struct Unread {
    pub(super) info: PieceInfo,
    /// A copy of the piece's bytes, if the buffer may drop them before the piece is reported.
    pub(super) copy: Option<Vec<u8>>,
}
