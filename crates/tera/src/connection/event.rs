//! What a connection reports to its driver.

use core::ops::Range;

use worldwire_core::Side;
use worldwire_core::connection::Piece;

/// What only connections of TERA report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// The keys are exchanged; messages may be sent.
    Established,
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
#[derive(Clone, Copy, Debug)]
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

impl<'c> Piece<'c> for Received<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    /// Encryption does not change lengths.
    fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes.len() as u64)
    }

    fn is_message(&self) -> bool {
        matches!(self.unit, Unit::Message { .. })
    }
}
