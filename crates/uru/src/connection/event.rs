//! What a connection tells its driver.

use core::fmt;
use core::ops::Range;

use worldwire_core::{Error, Limits, Reader, Result, Side, Tree};

use crate::connect::{ConnectPacket, ConnectionType, SetupPacket, SetupType};
use crate::frame::{Message, Service, number, table};

/// What happened on a connection, in the order in which it happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'c> {
    /// A connect packet, setup packet or message is complete.
    Received(Received<'c>),
    /// Setup is over; messages may be sent.
    Established {
        /// What the connection is for.
        service: Service,
        /// Whether what follows is encrypted.
        encrypted: bool,
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
        /// What was passed over: gap, torn messages and all.
        skipped: Range<u64>,
    },
    /// The connection is encrypted and there is no key for it (observers only). Both streams are
    /// given up.
    KeysNeeded {
        /// Whose key is missing.
        service: Service,
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
    /// The other side did not finish setup, a message, or anything at all in time.
    Timeout(Timer),
}

/// What ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timer {
    /// Connect packet and key exchange.
    Setup,
    /// A message that began but did not end.
    Message,
    /// Silence.
    Idle,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "closed by this side",
            Self::Remote => "closed by the other side",
            Self::Fault => "closed because of a fault",
            Self::Timeout(Timer::Setup) => "setup took too long",
            Self::Timeout(Timer::Message) => "a message took too long to arrive",
            Self::Timeout(Timer::Idle) => "silent for too long",
        })
    }
}

/// What a piece of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The connect packet.
    Connect,
    /// A setup packet.
    Setup,
    /// A message.
    Message(Service),
}

/// A complete connect packet, setup packet or message.
///
/// The bytes are plain; they are read again when somebody asks what they say.
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
    /// Whether it was encrypted.
    pub encrypted: bool,
}

/// What a [`Received`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<'c> {
    /// A connect packet.
    Connect(ConnectPacket),
    /// A setup packet.
    Setup(SetupPacket<'c>),
    /// A message.
    Message(Message<'c>),
}

impl<'c> Received<'c> {
    /// Reads it.
    ///
    /// # Errors
    /// None for what came out of a connection; those of the decoders otherwise.
    pub fn content(&self) -> Result<Content<'c>> {
        self.read(&mut Reader::new(self.bytes))
    }

    /// The message, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<Message<'c>> {
        match self.content() {
            Ok(Content::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// The kind of connection in front of the dot and the name behind it: `auth` and
    /// `AcctLoginRequest`, `connect` and `CliToAuth`, `setup` and `Encrypt`.
    #[must_use]
    pub fn name(&self) -> (&'static str, &'static str) {
        let first = i64::from(self.bytes.first().copied().unwrap_or(0));
        let (kind, name) = match self.unit {
            Unit::Connect => ("connect", ConnectionType::NAMES.name(first)),
            Unit::Setup => ("setup", SetupType::NAMES.name(first)),
            Unit::Message(service) => {
                let number = number(service, self.bytes).unwrap_or(u32::MAX);
                let names = table(service, self.side).names;
                (service.name(), names.name(i64::from(number)))
            }
        };
        (kind, name.unwrap_or("unknown"))
    }

    /// The tree of it, in the memory of an old tree. Places count from the start of the stream.
    #[must_use]
    pub fn tree(&self, tree: Tree<'c>, limits: &'c Limits) -> Tree<'c> {
        let layer = if self.encrypted { "decrypted" } else { "stream" };
        let mut reader = Reader::traced_within(layer, self.bytes, tree, limits);
        let outcome = self.read(&mut reader);
        let (mut tree, _) = reader.conclude(outcome);
        tree.set_base(self.offset);
        tree
    }

    /// The bytes of the stream that it takes up. Encryption does not change lengths.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }

    fn read<'n, T: worldwire_core::Trace<'n>>(
        &self,
        reader: &mut Reader<'c, T>,
    ) -> Result<Content<'c>> {
        let content = match self.unit {
            Unit::Connect => {
                reader.record("fields", ConnectPacket::decode_fields).map(Content::Connect)
            }
            Unit::Setup => reader.record("fields", SetupPacket::decode_fields).map(Content::Setup),
            Unit::Message(service) => {
                Message::decode(service, self.side, reader).map(Content::Message)
            }
        }?;
        reader.end()?;
        Ok(content)
    }
}
