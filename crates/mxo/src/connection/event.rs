//! Events and pieces.

use core::fmt;
use core::ops::Range;

use worldwire_core::Side;
use worldwire_core::connection::Piece;

use crate::frame::{Hello, RccFlags, SequenceNumber};

/// Events specific to MxO.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// Messages may now be sent: the server has answered the hello, or the client has acknowledged
    /// a packet. Observers do not report this.
    Established,
    /// An object packet arrived (clients and servers). Each packet is reported once, as delivered
    /// or lost; a lost one can be [late](Self::Late) afterwards.
    Delivered(PacketNumber),
    /// An object packet counts as lost: later packets were acknowledged, an acknowledgement took
    /// too long, the sequence was reset, or the connection has ended.
    Lost(PacketNumber),
    /// The acknowledgement of a packet reported as lost arrived. Whether the packet itself arrived
    /// before or after later ones is unknown. Reported at most once per packet, and not after 2,048
    /// later packets or a reset.
    Late(PacketNumber),
    /// The sequence was reset at the server's request (clients and servers). Unacknowledged RPC
    /// messages and all views are discarded.
    Reset,
    /// A packet was repeated (observers and relays). The copy takes up no bytes of the stream.
    Repeated {
        /// The side that sent it.
        side: Side,
        /// Its number.
        number: SequenceNumber,
    },
    /// Packets are missing or unreadable (observers and relays). Each is reported once, when it is
    /// too old to arrive or the stream ends.
    Missing {
        /// The side that sent them.
        side: Side,
        /// The number of the first.
        first: SequenceNumber,
        /// The number of the last; equal to `first` for a single packet.
        last: SequenceNumber,
    },
    /// No key opens the datagrams (observers). They are skipped. Reported once per session.
    KeysNeeded {
        /// The side that sent the first of them.
        side: Side,
        /// Why the key is missing.
        missing: MissingKey,
    },
    /// A relay discarded messages that it had added but that were not acknowledged, because the
    /// sequence was reset or another session began.
    Discarded {
        /// The side that should have received them.
        to: Side,
        /// The number of discarded RPC messages and object sections.
        messages: usize,
    },
    /// The key that opens the datagrams was given for a session other than the one in the hello
    /// (observers and relays). It is used anyway: either the hello is damaged, or the ID in the key
    /// file is wrong.
    OtherSession {
        /// The session given with the key.
        id: u32,
        /// The session in the hello.
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
        /// The number of keys that were given.
        keys: usize,
    },
}

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven => f.write_str("no key was given"),
            Self::NoneFits { keys: 1 } => f.write_str("the given key does not decrypt it"),
            Self::NoneFits { keys } => write!(f, "none of the {keys} given keys decrypts it"),
        }
    }
}

/// The number of an object packet, by which the replicator identifies its contents. It does not
/// wrap; [`sequence`](Self::sequence) is the number on the wire.
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

/// The kind of a piece.
///
/// Observers and relays report whole datagrams: `Hello`, `Plain`, `Packet`. Clients and servers
/// report the contents of packets, with RPC messages once and in order.
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
    /// A packet with nothing to deliver: it only acknowledges other packets or repeats RPC
    /// messages.
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
    /// A section, starting with its ID: 3 for objects, or an unknown ID.
    Section {
        /// The ID.
        id: u8,
        /// The number of its packet.
        number: SequenceNumber,
    },
}

/// A complete piece of a side's stream. A datagram's header belongs to its first piece, and its
/// padding to the last.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// The side that sent it.
    pub side: Side,
    /// Its kind.
    pub unit: Unit,
    /// Its bytes, decrypted.
    pub bytes: &'c [u8],
    /// Its range in the stream of its side's datagrams.
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

/// A piece that has not been reported yet.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) side: Side,
    pub(super) unit: Unit,
    pub(super) bytes: Vec<u8>,
    pub(super) range: Range<u64>,
    /// The datagram, for a relay.
    pub(super) wire: Vec<u8>,
}
