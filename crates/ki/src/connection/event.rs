//! What a connection reports.

use core::ops::Range;

use worldwire_core::connection::Piece;
use worldwire_core::{Result, Side};

use crate::control::{Control, Opcode};
use crate::crypt::login::Salt;
use crate::frame::{FrameHead, control_in_frame};
use crate::message::HEAD_BYTES;

/// What only connections of this family report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A session is accepted: messages may be sent. Again after a refresh. Observers do not report
    /// it; a relay does, when the accept passes through.
    Established {
        /// Its id.
        session_id: u16,
        /// The session it takes the place of; a server gives that id back.
        previous: Option<u16>,
    },
    /// The connection is encrypted and no key fits (observers). The stream is given up.
    KeysNeeded {
        /// Whose stream.
        side: Side,
        /// The session.
        session_id: Option<u16>,
    },
    /// A client's message was not delivered (servers).
    Ignored {
        /// What it is.
        unit: Unit,
        /// Why.
        why: Ignored,
        /// The bytes of the client's stream that it takes up; see [`Received`].
        range: Range<u64>,
        /// The message: header and payload.
        bytes: Vec<u8>,
    },
}

/// Why a message was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// The session is stale: the client is offered a new one and sends its last message again.
    Stale,
    /// The session is not accepted yet, and nothing is kept.
    Early,
    /// The session may not send it.
    AccessLevel {
        /// What the message needs.
        needed: u8,
        /// What the session has.
        has: u8,
    },
}

/// What a piece of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A control message: a whole frame.
    Control(Opcode),
    /// A DML message: one of those in a data frame.
    Message {
        /// The protocol.
        service: u8,
        /// The message in it.
        order: u8,
    },
    /// A data frame without any message.
    Empty,
}

/// A complete control message or DML message. The head of a frame belongs to its first message,
/// the trailer to its last.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// Who sent it.
    pub side: Side,
    /// What it is.
    pub unit: Unit,
    /// Its bytes, decrypted, with the frame's head if it is the first of a frame and the trailer
    /// if it is the last.
    pub bytes: &'c [u8],
    /// Where in the bytes the message stands: for DML messages their header and payload, for
    /// control messages the frame's body without its header, with the trailer.
    pub message: Range<usize>,
    /// Its bytes in its side's stream. On encrypted streams tags and nonces count.
    pub range: Range<u64>,
    /// Whether it was encrypted.
    pub encrypted: bool,
    /// What the login's secrets hang on, once a session was offered.
    pub salt: Option<Salt>,
}

impl<'c> Received<'c> {
    /// The control message, if it is one.
    ///
    /// # Errors
    /// Those of the decoder. There are none on pieces that a connection reported.
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
pub(super) struct PieceInfo {
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
pub(super) struct Unreported {
    pub(super) info: PieceInfo,
    /// A copy of its bytes, if the buffer may drop them before the piece is reported.
    pub(super) copy: Option<Vec<u8>>,
}
