//! What a connection tells its driver.

use core::fmt;
use core::ops::Range;

use worldwire_core::{Error, Side};

/// What happened on a connection, in the order in which it happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'c> {
    /// Hello, a key or a message is complete.
    Received(Received<'c>),
    /// The keys are exchanged; messages may be sent.
    Established,
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
        /// What was passed over: gap, torn messages and all.
        skipped: Range<u64>,
    },
    /// A stream cannot be read any further. A client or server closes the connection; an observer
    /// gives the stream up.
    Fault {
        /// Whose stream.
        side: Side,
        /// What is wrong, with the offset in that stream.
        error: Error,
    },
    /// The connection is over. Always the last event.
    Closed(CloseReason),
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
    /// A step of the key exchange did not come in time.
    Timeout,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "closed by this side",
            Self::Remote => "closed by the other side",
            Self::Fault => "closed because of a fault",
            Self::Timeout => "the key exchange took too long",
        })
    }
}

/// What a piece of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The server's first four bytes: 01 00 00 00.
    Hello,
    /// A key of 128 bytes: the side's first or second.
    Key {
        /// 1 or 2.
        number: u8,
    },
    /// A message.
    Message {
        /// What it is, as this build numbers it.
        opcode: u16,
    },
}

/// A complete piece of a stream. The pieces tile it.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// Who sent it.
    pub side: Side,
    /// What it is.
    pub unit: Unit,
    /// Its bytes, decrypted.
    pub bytes: &'c [u8],
    /// Where its first byte stands in its side's stream.
    pub offset: u64,
}

impl Received<'_> {
    /// Its bytes in its side's stream.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }
}
