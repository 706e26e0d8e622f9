//! What a connection tells its driver.

use core::fmt;
use core::ops::Range;

use worldwire_core::{Error, Result, Side};

use crate::control::{Control, Opcode};
use crate::crypt::login::Salt;
use crate::frame::{FrameHead, control_in_frame};

/// What happened on a connection, in the order in which it happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'c> {
    /// A control message or a DML message is complete.
    Received(Received<'c>),
    /// A session is accepted: messages may be sent. Again after a refresh.
    Established {
        /// Its id.
        session_id: u16,
        /// The session it takes the place of; a server gives that id back.
        previous: Option<u16>,
    },
    /// A message was not delivered.
    Ignored {
        /// The message.
        message: Received<'c>,
        /// Why.
        why: Ignored,
    },
    /// Bytes are missing in a stream (observers only).
    Gap {
        /// Whose stream.
        side: Side,
        /// Where, counted from the start of the stream.
        range: Range<u64>,
    },
    /// Reading goes on behind a gap; the bytes between could not be read (observers only).
    Resync {
        /// Whose stream.
        side: Side,
        /// What was passed over: gap, torn frames and all.
        skipped: Range<u64>,
    },
    /// The connection is encrypted and no key fits (observers only). The stream is given up.
    KeysNeeded {
        /// Whose stream.
        side: Side,
        /// The session.
        session_id: Option<u16>,
    },
    /// Something cannot be read. A client or server closes the connection. An observer gives the
    /// stream up; of datagrams only the one.
    Fault {
        /// Whose stream.
        side: Side,
        /// What is wrong, with the offset in that stream.
        error: Error,
    },
    /// The connection is over. Always the last event.
    Closed(CloseReason),
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

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side ended it.
    Local,
    /// The other side, or the network, ended it.
    Remote,
    /// The other side broke the rules; the fault came before.
    Fault,
    /// Something did not come in time.
    Timeout(Timer),
}

/// What ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timer {
    /// The session offer.
    Offer,
    /// The session accept.
    Accept,
    /// The answer to a keep-alive.
    KeepAlive,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "closed by this side",
            Self::Remote => "closed by the other side",
            Self::Fault => "closed because of a fault",
            Self::Timeout(Timer::Offer) => "no session was offered in time",
            Self::Timeout(Timer::Accept) => "the session was not accepted in time",
            Self::Timeout(Timer::KeepAlive) => "a keep-alive was not answered in time",
        })
    }
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

/// A complete control message or DML message. The pieces of a stream tile it: the head of a frame
/// belongs to its first message, the trailer to its last.
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
    /// Those of the decoder. There are none on pieces that a connection told.
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
            Unit::Message { .. } => message.get(4..).unwrap_or_default(),
            _ => &[],
        }
    }
}

/// A frame in a buffer, and what it consists of.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameSpan {
    pub(super) head: FrameHead,
    /// All of it.
    pub(super) start: usize,
    pub(super) end: usize,
}
