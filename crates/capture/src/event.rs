//! Events of conversations.

use std::net::SocketAddr;

use worldwire_core::Side;

use crate::time::Timestamp;

/// What the last packet belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// No conversation: the packet was unusable or ignored.
    #[default]
    Nobody,
    /// An incomplete IP packet, whose conversation is not known yet.
    Fragment,
    /// The conversation with this number.
    Conversation(u64),
}

/// An event of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The conversation's number, from 0 in the order of first packets.
    pub conversation: u64,
    /// When the packet that caused the event was captured.
    pub time: Timestamp,
    /// The number of that packet.
    pub packet: u64,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The conversation started. Always the first event.
    Opened(Opened),
    /// The next bytes of one side's TCP stream. Each byte is reported once.
    Data {
        /// The sender.
        side: Side,
        /// The position in the sender's stream.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Bytes of one side's TCP stream that the capture lost.
    Gap {
        /// The sender.
        side: Side,
        /// The position in the sender's stream.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// One side sent a UDP datagram.
    Datagram {
        /// The sender.
        side: Side,
        /// The captured bytes.
        bytes: &'a [u8],
    },
    /// The conversation ended. Always the last event.
    Closed(Closed),
}

/// The two ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The end that opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Whether it uses UDP rather than TCP.
    pub datagrams: bool,
    /// Whether the capture lacks its beginning (TCP only).
    pub midstream: bool,
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closed {
    /// Both sides sent a FIN.
    Finished,
    /// One side sent a reset.
    Reset,
    /// The same ends started a new conversation.
    Reused,
    /// The table was full, and this conversation had been idle longest.
    Evicted,
    /// The capture ended.
    EndOfCapture,
}
