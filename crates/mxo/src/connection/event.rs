//! What a connection reports.

use core::fmt;
use core::ops::Range;

use worldwire_core::Side;
use worldwire_core::connection::Piece;

use crate::frame::{Hello, RccFlags, SequenceNumber};

/// What only connections of this family report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// The hello was answered: messages may be sent. Observers do not report it.
    Established,
    /// A packet with objects has arrived (clients and servers). Each packet is reported once,
    /// as delivered or as lost; a lost one may be [late](Self::Late) afterwards.
    Delivered(PacketNumber),
    /// A packet with objects has not arrived, as far as can be known: later packets were
    /// acknowledged, nothing was for too long, the sequence was reset, or the connection is over.
    Lost(PacketNumber),
    /// A packet that was reported as lost has arrived all the same, at some time: its
    /// acknowledgement has come. It may have overtaken none, or any that was sent after it. Each is
    /// reported once at the most, as long as no 2,048 packets were sent since, and the sequence was
    /// not reset.
    Late(PacketNumber),
    /// The sequence was reset, as a server asked for (clients and servers). RPC messages that were
    /// not acknowledged are gone, and so are all views.
    Reset,
    /// A packet came again (observers and relays). It takes up no bytes of the stream.
    Repeated {
        /// Who sent it.
        side: Side,
        /// Its number.
        number: SequenceNumber,
    },
    /// Packets did not come, or could not be read (observers and relays). It is reported when later
    /// ones show that they come no more, or at the end; each once.
    Missing {
        /// Who sent them.
        side: Side,
        /// The number of the first.
        first: SequenceNumber,
        /// The number of the last, which comes behind the first or is the same.
        last: SequenceNumber,
    },
    /// The datagrams are encrypted and no key fits (observers). Reported once for each session.
    /// They are passed over as long as none does.
    KeysNeeded {
        /// Who sent the first of them.
        side: Side,
        /// What there is instead of the key.
        missing: MissingKey,
    },
    /// The key that opens the datagrams was given for another session than the hello names (observers
    /// and relays). It is used: the hello is damaged, or the id in the key file is wrong.
    OtherSession {
        /// The session that the key was given for.
        id: u32,
        /// The session that the hello names.
        named: u32,
    },
}

/// Why there is no key for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// No keys were given.
    NotGiven,
    /// None of the keys opens it.
    NoneFits {
        /// How many were given.
        keys: usize,
    },
}

impl fmt::Display for MissingKey {
    /// What was found instead of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven => f.write_str("no key"),
            Self::NoneFits { keys: 1 } => f.write_str("a key that does not open it"),
            Self::NoneFits { keys } => write!(f, "{keys} keys, none of which opens it"),
        }
    }
}

/// The number of a packet with objects: the replicator's handle for what it carried. It does not
/// wrap; the number on the wire is [`sequence`](Self::sequence).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The number on the wire.
    #[must_use]
    pub fn sequence(self) -> SequenceNumber {
        SequenceNumber::of(self.0)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a piece of a stream is.
///
/// An observer and a relay report whole datagrams: `Hello`, `Plain`, `Packet`. A client and a
/// server report what is in them, RPC messages once and in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The client's hello.
    Hello(Hello),
    /// Another plain packet.
    Plain,
    /// A packet, decrypted (observers and relays).
    Packet {
        /// Its number.
        number: SequenceNumber,
        /// Its flags.
        flags: RccFlags,
    },
    /// A packet without anything to deliver: it acknowledges others, or repeats RPC messages.
    Upkeep {
        /// Its number.
        number: SequenceNumber,
        /// Its flags.
        flags: RccFlags,
    },
    /// An RPC message: opcode and data.
    Rpc {
        /// Its number.
        number: u16,
    },
    /// A section with its id: 3 for objects, or one that is not known.
    Section {
        /// The id.
        id: u8,
        /// The number of its packet.
        number: SequenceNumber,
    },
}

/// A complete piece of a side's stream. Head and padding of a datagram belong to the first and
/// the last piece that comes of it.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// Who sent it.
    pub side: Side,
    /// What it is.
    pub unit: Unit,
    /// Its bytes, decrypted.
    pub bytes: &'c [u8],
    /// The bytes of its side's datagrams that it takes up.
    pub range: Range<u64>,
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
        match &self.unit {
            Unit::Packet { .. } => self.bytes.len() > crate::frame::HEAD_BYTES + 1,
            Unit::Rpc { .. } | Unit::Section { .. } => true,
            Unit::Hello(_) | Unit::Plain | Unit::Upkeep { .. } => false,
        }
    }
}

/// A piece that is not reported yet.
#[derive(Debug)]
pub(super) struct Unreported {
    pub(super) side: Side,
    pub(super) unit: Unit,
    pub(super) bytes: Vec<u8>,
    pub(super) range: Range<u64>,
    /// The datagram, for a relay.
    pub(super) wire: Vec<u8>,
}
