//! What the toy's connections report.

use worldwire_core::Side;
use worldwire_core::connection::{Located, Piece};

use crate::frame::HEADER;
use crate::message::Channel;

/// Events that only the toy's connections report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A repeated datagram, which is ignored.
    Repeated(Side),
    /// The key for a session's datagrams, as sent over TCP.
    Key(u32, [u8; 4]),
}

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The server's hello.
    Hello,
    /// A message.
    Message(Channel),
}

impl Unit {
    /// The number of bytes that precede the message.
    pub fn head(self) -> usize {
        match self {
            Self::Hello => 0,
            Self::Message(Channel::Stream) => 2,
            Self::Message(Channel::Steps) => HEADER,
        }
    }
}

/// The hello, or a message.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// The sender.
    pub side: Side,
    /// The kind of piece.
    pub unit: Unit,
    /// The message, decrypted.
    pub bytes: &'c [u8],
    /// The stream position of the piece, including the bytes that precede the message.
    pub offset: u64,
}

impl<'c> Piece<'c> for Received<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    fn range(&self) -> core::ops::Range<u64> {
        self.offset..self.offset + (self.unit.head() + self.bytes.len()) as u64
    }

    fn is_message(&self) -> bool {
        self.unit != Unit::Hello
    }
}

/// A piece that has not been reported or decided on yet.
#[derive(Clone, Debug)]
pub struct Unread {
    pub side: Side,
    pub unit: Unit,
    pub located: Located,
}
