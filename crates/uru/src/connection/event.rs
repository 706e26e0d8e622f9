//! The events of a connection.

use core::ops::Range;

use worldwire_core::connection::Piece;
use worldwire_core::opener::Opener;
use worldwire_core::{Limits, Reader, Result, Side, Tree, TreeBuilder};

use crate::connect::{ConnectPacket, ConnectionType, SetupPacket, SetupType};
use crate::frame::{Message, Service, number, table};

/// Events that only Uru connections have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// Setup is complete, so messages may be sent.
    Established {
        /// The connection's service.
        service: Service,
        /// Whether the messages are encrypted.
        encrypted: bool,
    },
    /// For observers: the connection is encrypted and no key fits. Neither stream is read further.
    KeysNeeded {
        /// The service whose key is missing; `None` if the connect packet is missing too.
        service: Option<Service>,
    },
}

/// The kind of a piece.
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
/// The bytes are already decrypted; they are decoded again on demand.
#[derive(Clone, Copy, Debug)]
pub struct Received<'c> {
    /// The side that sent it.
    pub side: Side,
    /// The kind of piece.
    pub unit: Unit,
    /// The piece's bytes, decrypted.
    pub bytes: &'c [u8],
    /// The offset of the piece's first byte in its side's stream.
    pub offset: u64,
    /// Whether the piece was encrypted.
    pub encrypted: bool,
}

/// The decoded content of a [`Received`].
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
    /// Decodes the piece.
    ///
    /// # Errors
    /// Fails as the decoders do, but never for a piece reported by a connection.
    pub fn content(&self) -> Result<Content<'c>> {
        self.read(&mut Reader::new(self.bytes))
    }

    /// The message, if the piece is one.
    #[must_use]
    pub fn message(&self) -> Option<Message<'c>> {
        match self.content() {
            Ok(Content::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// The two parts of the full name, before and after the dot: `auth` and `AcctLoginRequest`,
    /// `connect` and `CliToAuth`, `setup` and `Encrypt`.
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

    /// The piece's tree, built in the memory of an old tree. Offsets count from the start of the
    /// stream.
    #[must_use]
    pub fn tree(&self, tree: Tree<'c>, limits: &'c Limits) -> Tree<'c> {
        self.concluded(Reader::traced_within(self.layer(), self.bytes, tree, limits))
    }

    /// Like [`tree`](Self::tree), with an [opener](worldwire_core::opener) for the formats inside
    /// fields.
    #[must_use]
    pub fn tree_opening(
        &self,
        tree: Tree<'c>,
        limits: &'c Limits,
        opener: &'c dyn Opener<'c>,
    ) -> Tree<'c> {
        let reader = Reader::traced_within(self.layer(), self.bytes, tree, limits);
        self.concluded(reader.opening(opener))
    }

    fn concluded(&self, mut reader: Reader<'c, TreeBuilder<'c>>) -> Tree<'c> {
        let outcome = self.read(&mut reader);
        let (mut tree, _) = reader.conclude(outcome);
        tree.set_base(self.offset);
        tree
    }

    fn layer(&self) -> &'static str {
        if self.encrypted { "decrypted" } else { "stream" }
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
        matches!(self.unit, Unit::Message(_))
    }
}
