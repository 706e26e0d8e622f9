//! What happens on conversations.

use std::net::SocketAddr;

use worldwire_core::Side;

use crate::time::Timestamp;

/// Whose the last packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's: it was of no use, or followed on nothing.
    #[default]
    Nobody,
    /// A part of an IP packet, which does not tell whose it is.
    Fragment,
    /// That of the conversation with this number.
    Conversation(u64),
}

/// Something that happened on a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Which conversation, counted from 0 in the order of first packets.
    pub conversation: u64,
    /// When the packet was captured that brought it about.
    pub time: Timestamp,
    /// That packet's number.
    pub packet: u64,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened on a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// It began; always the first event.
    Opened(Opened),
    /// A side said something: the next bytes of its TCP stream, each told exactly once.
    Data {
        /// Who.
        side: Side,
        /// Where in the side's stream.
        offset: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// Bytes of a side's TCP stream that the capture lost.
    Gap {
        /// Whose.
        side: Side,
        /// Where in the side's stream.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// A side sent a UDP datagram.
    Datagram {
        /// Who.
        side: Side,
        /// What was captured of it.
        bytes: &'a [u8],
    },
    /// It ended; always the last event.
    Closed(Closed),
}

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The end that began.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Whether it is UDP; otherwise it is TCP.
    pub datagrams: bool,
    /// Whether its beginning is missing in the capture (TCP only).
    pub midstream: bool,
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Closed {
    /// Both sides said that they were done.
    Finished,
    /// One side broke it off.
    Reset,
    /// The same two ends began another one.
    Reused,
    /// It was quiet for longest when there was no room for another one.
    Evicted,
    /// The capture is over.
    EndOfCapture,
}
