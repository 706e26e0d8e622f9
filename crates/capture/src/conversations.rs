//! Conversations: who talks to whom, and what is said, in order.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use foldhash::fast::RandomState;
use worldwire_core::{Limits, Side};

use crate::fragments::Fragments;
use crate::network::{Segment, TcpFlags, Transport, Unusable, segment};
use crate::reader::Packet;
use crate::stream::{Delivery, Stream};
use crate::time::Timestamp;

/// Sorts the packets of a capture into conversations and puts their streams together again.
///
/// Packets go in in capture order; events come out at once. An event of a packet is told before
/// the next packet goes in, so it can borrow the packet's bytes: nothing is copied as long as
/// segments come in order.
///
/// TCP: segments that were sent twice or overlap are told once (what came first counts); segments
/// that came early wait, within [`Limits::stream_bytes`], [`Limits::stream_pieces`] and
/// [`Limits::streams_bytes`]; bytes the capture lost are told as a gap as soon as the other side
/// acknowledges them, a bound is hit, or the conversation ends. Segments whose sequence number is
/// more than 2^30 away are strays and are ignored. Checksums are not verified, since captures made
/// on the sending machine rarely have them.
///
/// The client is the end that sent the SYN. Where the beginning is missing it is the end with the
/// higher port, until an answer to a SYN says otherwise.
#[derive(Debug)]
pub struct Conversations {
    limits: Limits,
    open: HashMap<Key, Talk, RandomState>,
    /// Least recently heard of first.
    quiet: BTreeSet<(u64, Key)>,
    fragments: Fragments,
    count: u64,
    heard: u64,
    held: u64,
    unusable: HashMap<Unusable, u64, RandomState>,
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

/// Two ends and how they talk; the lower end first, so that both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    ends: [(IpAddr, u16); 2],
    datagrams: bool,
}

#[derive(Debug)]
struct Talk {
    number: u64,
    /// Which of the key's ends is the client.
    client: usize,
    /// By [`Side::index`].
    streams: [Stream; 2],
    heard: u64,
    last: (Timestamp, u64),
    /// Both sides are done; late packets of it are not a new conversation.
    over: bool,
}

impl Talk {
    fn side(&self, end: usize) -> Side {
        if end == self.client { Side::Client } else { Side::Server }
    }

    fn held(&self) -> u64 {
        self.streams.iter().map(|stream| stream.held() as u64).sum()
    }
}

impl Conversations {
    /// Starts with no conversation.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            open: HashMap::default(),
            quiet: BTreeSet::new(),
            fragments: Fragments::new(limits.fragments),
            count: 0,
            heard: 0,
            held: 0,
            unusable: HashMap::default(),
        }
    }

    /// Takes in the next packet and tells what happened.
    pub fn push(&mut self, packet: &Packet<'_>, out: &mut dyn FnMut(Event<'_>)) {
        let mut fragments = core::mem::replace(&mut self.fragments, Fragments::new(0));
        let stamp = (packet.time, packet.number);
        let outcome = segment(
            packet.link,
            packet.data,
            packet.original_length,
            packet.time,
            &mut fragments,
            |segment| self.segment(segment, stamp, out),
        );
        self.fragments = fragments;
        if let Err(why) = outcome {
            *self.unusable.entry(why).or_default() += 1;
        }
    }

    /// The capture is over: tells what was held back, and the end of every conversation.
    pub fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        let mut rest: Vec<(u64, Key)> =
            self.open.iter().map(|(key, talk)| (talk.number, *key)).collect();
        rest.sort_unstable();
        for (_, key) in rest {
            self.close(key, Closed::EndOfCapture, None, out);
        }
    }

    /// Why packets were of no use, and how many there were of each kind.
    #[must_use]
    pub fn unusable(&self) -> Vec<(Unusable, u64)> {
        let mut all: Vec<_> = self.unusable.iter().map(|(why, count)| (*why, *count)).collect();
        all.sort_by_key(|(why, count)| (u64::MAX - count, why.to_string()));
        all
    }

    /// Bytes held back over all conversations.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held
    }

    fn segment(
        &mut self,
        segment: &Segment<'_>,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let from_lower = segment.source <= segment.target;
        let ends = if from_lower {
            [segment.source, segment.target]
        } else {
            [segment.target, segment.source]
        };
        let sender = usize::from(!from_lower);
        match segment.transport {
            Transport::Udp => {
                let key = Key { ends, datagrams: true };
                self.open(key, sender, false, stamp, out);
                if let Some(talk) = self.hear(key, stamp) {
                    let (number, side) = (talk.number, talk.side(sender));
                    let bytes = segment.payload;
                    tell(out, number, stamp, EventKind::Datagram { side, bytes });
                }
            }
            Transport::Tcp { sequence, acknowledged, flags } => {
                let key = Key { ends, datagrams: false };
                self.tcp(key, sender, segment, (sequence, acknowledged, flags), stamp, out);
            }
        }
    }

    fn tcp(
        &mut self,
        key: Key,
        sender: usize,
        segment: &Segment<'_>,
        (sequence, acknowledged, flags): (u32, Option<u32>, TcpFlags),
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let (syn, ack) = (flags.has(TcpFlags::SYN), flags.has(TcpFlags::ACK));
        if syn && !ack {
            // A SYN that does not repeat the one we know begins another conversation.
            let another = self.open.get(&key).is_some_and(|talk| {
                let stream = &talk.streams[talk.side(sender).index()];
                let first = sequence.wrapping_add(1);
                talk.over || talk.client != sender || !stream.began_with(first)
            });
            if another {
                self.close(key, Closed::Reused, Some(stamp), out);
            }
        }
        if !self.open.contains_key(&key) {
            let empty = segment.payload.is_empty() && segment.missing == 0;
            if flags.has(TcpFlags::RST) || (!syn && empty) {
                // Nothing to follow.
                return;
            }
            let client = match (syn, ack) {
                (true, false) => sender,
                (true, true) => 1 - sender,
                // The higher port is more likely the client's.
                _ => usize::from(key.ends[1].1 > key.ends[0].1),
            };
            self.open(key, client, !syn, stamp, out);
        }
        let limits = self.limits.clone();
        let Some(talk) = self.hear(key, stamp) else {
            return;
        };
        if talk.over {
            return;
        }
        let (number, side) = (talk.number, talk.side(sender));
        let before = talk.held();
        let [own, other] = if side == Side::Client { [0, 1] } else { [1, 0] };
        if let Some(acknowledged) = acknowledged
            && talk.streams[other].has_begun()
        {
            let mut deliver = |delivery: Delivery<'_>| {
                tell(out, number, stamp, kind(side.other(), delivery));
            };
            talk.streams[other].acknowledged(acknowledged, &mut deliver);
        }
        let mut deliver = |delivery: Delivery<'_>| tell(out, number, stamp, kind(side, delivery));
        let stream = &mut talk.streams[own];
        let first = sequence.wrapping_add(u32::from(syn));
        if syn && !stream.has_begun() {
            stream.begin(first);
        }
        let probe = is_probe(stream, first, segment);
        let fin = flags.has(TcpFlags::FIN);
        let worth = !segment.payload.is_empty() || segment.missing > 0 || fin;
        if worth && !probe && !flags.has(TcpFlags::RST) {
            stream.segment(first, segment.payload, segment.missing, fin, &limits, &mut deliver);
        }
        let reset = flags.has(TcpFlags::RST) && stream.could_reset(sequence);
        let finished = talk.streams.iter().all(Stream::is_finished);
        let after = talk.held();
        if finished {
            talk.over = true;
            tell(out, number, stamp, EventKind::Closed(Closed::Finished));
        }
        self.held = (self.held + after).saturating_sub(before);
        if reset && !finished {
            self.close(key, Closed::Reset, Some(stamp), out);
        }
        self.relieve(key, stamp, out);
    }

    /// Lets the conversations that hold back bytes give up their gaps when there are too many
    /// bytes over all: the present one first, then those that were quiet for longest.
    fn relieve(&mut self, key: Key, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        if self.held <= self.limits.streams_bytes {
            return;
        }
        let quiet: Vec<Key> =
            core::iter::once(key).chain(self.quiet.iter().map(|(_, key)| *key)).collect();
        for key in quiet {
            if self.held <= self.limits.streams_bytes {
                return;
            }
            let Some(talk) = self.open.get_mut(&key) else {
                continue;
            };
            let (number, before) = (talk.number, talk.held());
            for side in Side::BOTH {
                let mut deliver =
                    |delivery: Delivery<'_>| tell(out, number, stamp, kind(side, delivery));
                talk.streams[side.index()].skip_gap(&mut deliver);
            }
            self.held = (self.held + talk.held()).saturating_sub(before);
        }
    }

    /// Opens a conversation unless it is open; when there is no room, the one that was quiet for
    /// longest is closed.
    fn open(
        &mut self,
        key: Key,
        client: usize,
        midstream: bool,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
        if self.open.contains_key(&key) {
            return;
        }
        if self.open.len() as u64 >= u64::from(self.limits.conversations.max(1))
            && let Some((_, quietest)) = self.quiet.first().copied()
        {
            self.close(quietest, Closed::Evicted, Some(stamp), out);
        }
        let number = self.count;
        self.count += 1;
        let talk = Talk {
            number,
            client,
            streams: Default::default(),
            heard: self.heard,
            last: stamp,
            over: false,
        };
        self.quiet.insert((talk.heard, key));
        self.open.insert(key, talk);
        let [client, server] = [key.ends[client], key.ends[1 - client]];
        let opened = Opened {
            client: client.into(),
            server: server.into(),
            datagrams: key.datagrams,
            midstream,
        };
        tell(out, number, stamp, EventKind::Opened(opened));
    }

    /// Marks a conversation as heard of just now.
    fn hear(&mut self, key: Key, stamp: (Timestamp, u64)) -> Option<&mut Talk> {
        self.heard += 1;
        let heard = self.heard;
        let crowded = self.open.len() as u64 * 2 >= u64::from(self.limits.conversations);
        let talk = self.open.get_mut(&key)?;
        // The order matters only when somebody may have to go.
        if crowded || heard - talk.heard > 4096 {
            self.quiet.remove(&(talk.heard, key));
            talk.heard = heard;
            self.quiet.insert((heard, key));
        }
        talk.last = stamp;
        Some(talk)
    }

    fn close(
        &mut self,
        key: Key,
        why: Closed,
        stamp: Option<(Timestamp, u64)>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(mut talk) = self.open.remove(&key) else {
            return;
        };
        self.quiet.remove(&(talk.heard, key));
        self.held = self.held.saturating_sub(talk.held());
        if talk.over {
            return;
        }
        let stamp = stamp.unwrap_or(talk.last);
        for side in Side::BOTH {
            let mut deliver =
                |delivery: Delivery<'_>| tell(out, talk.number, stamp, kind(side, delivery));
            talk.streams[side.index()].flush(&mut deliver);
        }
        tell(out, talk.number, stamp, EventKind::Closed(why));
    }
}

/// A keep-alive repeats the byte before the next one, or none at all.
fn is_probe(stream: &Stream, sequence: u32, segment: &Segment<'_>) -> bool {
    segment.payload.len() <= 1
        && stream.expected().is_some_and(|expected| sequence == expected.wrapping_sub(1))
        && !matches!(segment.transport, Transport::Tcp { flags, .. } if flags.has(TcpFlags::FIN))
}

fn kind(side: Side, delivery: Delivery<'_>) -> EventKind<'_> {
    match delivery {
        Delivery::Data { offset, bytes } => EventKind::Data { side, offset, bytes },
        Delivery::Gap { offset, length } => EventKind::Gap { side, offset, length },
    }
}

fn tell(
    out: &mut dyn FnMut(Event<'_>),
    conversation: u64,
    (time, packet): (Timestamp, u64),
    kind: EventKind<'_>,
) {
    out(Event { conversation, time, packet, kind });
}
