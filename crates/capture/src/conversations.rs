//! Conversations: packets sorted by their two ends, and their data in order.

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use foldhash::fast::RandomState;
use worldwire_core::{Limits, Side};

use crate::event::{Closed, Event, EventKind, Opened, Owner};
use crate::fragments::Fragments;
use crate::network::{Segment, TcpFlags, Transport, segment};
use crate::reader::Packet;
use crate::stream::{Delivery, Room, Stream};
use crate::time::Timestamp;
use crate::unusable::Unusable;

/// Sorts the packets of a capture into conversations and puts their streams together again.
///
/// Packets go in in capture order; events come out at once. An event of a packet is reported before
/// the next packet goes in, so it can borrow the packet's bytes: nothing is copied as long as
/// segments come in order.
///
/// TCP: segments that were sent twice or overlap are reported once (what came first counts); segments
/// that came early wait, within [`Limits::stream_bytes`], [`Limits::stream_pieces`] and
/// [`Limits::streams_bytes`]; bytes the capture lost are reported as a gap as soon as something waits
/// behind them and the other side acknowledges them, a bound is hit, or the conversation ends. Two
/// gaps may follow each other. Checksums are not verified, since captures made on the sending
/// machine rarely have them.
///
/// A segment whose sequence number is more than 2^30 away is a stray and is ignored; when another
/// follows right on it, the stream goes on there, behind a gap. A reset counts when it is within
/// 4 MiB of what is expected. A SYN with another number begins another conversation when the old
/// one has ended or was never answered, or when it is farther away than that. What comes late for
/// a conversation that has ended is ignored.
///
/// The client is the end that sent the SYN, or got the answer to it. Where both are missing it is
/// the end with the higher port; with equal ports, the end heard of first. Of UDP, the client is
/// the end heard of first.
///
/// Memory: a piece that waits counts with its bytes and 128 more for its keeping, so that many
/// small pieces cannot take more than the limits allow. The bound over all streams may be passed
/// by one packet while it is put in place; then the conversations that have waited for longest
/// give up their gaps.
#[derive(Debug)]
pub struct Conversations {
    talks: Talks,
    fragments: Fragments,
    unusable: HashMap<Unusable, u64, RandomState>,
    cut: u64,
    last: Last,
}

/// What is said, packet by packet.
#[derive(Debug)]
struct Talks {
    limits: Limits,
    open: HashMap<Key, Talk, RandomState>,
    /// Least recently heard of first.
    quiet: BTreeSet<(u64, Key)>,
    /// Those that hold bytes back, the one that began with it first in front.
    waiting: BTreeSet<(u64, Key)>,
    count: u64,
    heard: u64,
    held: u64,
}

/// What the packet was that was taken in last.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// Of no use.
    Nobody,
    /// A part of a packet that is not complete.
    Fragment,
    /// Sent from one of these ends to the other.
    Between(Key),
}

/// Two ends and how they talk; the lower end first, so that both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    ends: [(IpAddr, u16); 2],
    datagrams: bool,
}

/// In as few words as there are: every packet is looked up by its key.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [(one, one_port), (other, other_port)] = self.ends;
        let ports = u64::from(one_port) << 17 | u64::from(other_port) << 1;
        state.write_u64(ports | u64::from(self.datagrams));
        match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                state.write_u64(u64::from(one.to_bits()) << 32 | u64::from(other.to_bits()));
            }
            (one, other) => {
                for address in [one, other] {
                    match address {
                        IpAddr::V4(address) => state.write_u32(address.to_bits()),
                        IpAddr::V6(address) => state.write_u128(address.to_bits()),
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
struct Talk {
    number: u64,
    /// Which of the key's ends is the client.
    client: usize,
    /// By [`Side::index`].
    streams: [Stream; 2],
    heard: u64,
    /// Since when it holds bytes back.
    waiting: Option<u64>,
    last: (Timestamp, u64),
    /// Its end was reported; late packets of it are not a new conversation.
    over: bool,
    /// An end that asked for another conversation, which may be a late packet, and its number.
    calls: Option<(usize, u32)>,
}

/// What becomes of a segment on the ends of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It belongs to it.
    Taken,
    /// It belongs to nothing.
    Ignored,
    /// It begins another one.
    Another,
}

impl Talk {
    fn side(&self, end: usize) -> Side {
        if end == self.client { Side::Client } else { Side::Server }
    }

    fn held(&self) -> u64 {
        self.streams.iter().map(Stream::held).sum()
    }

    fn fate(&self, sender: usize, segment: &Segment<'_>, head: &Head) -> Fate {
        let side = self.side(sender);
        let [own, other] = [&self.streams[side.index()], &self.streams[side.other().index()]];
        if !head.syn || head.rst {
            // Behind the end: late, or, far away, of a connection whose SYN was not captured.
            let new = !head.rst && !segment.payload.is_empty() && !own.is_plausible(head.sequence);
            return match self.over {
                false => Fate::Taken,
                true if new && own.has_begun() => Fate::Another,
                true => Fate::Ignored,
            };
        }
        let first = head.sequence.wrapping_add(1);
        if own.began_with(first) && (!self.over || own.is_fresh()) {
            // Sent again; after a refusal, too.
            return if self.over { Fate::Ignored } else { Fate::Taken };
        }
        // The other end agrees to another conversation.
        let asked = head.acknowledged.map(|number| (1 - sender, number.wrapping_sub(1)));
        let agrees = self.calls.is_some() && self.calls == asked;
        let ended = agrees || self.over || own.has_end() || other.has_end();
        let both = other.has_begun() && other.is_fresh();
        match own.has_begun() {
            _ if ended => Fate::Another,
            // The answer, or both ends call at once.
            false if head.acknowledged.is_some() || both => Fate::Taken,
            false => Fate::Another,
            true if own.is_fresh() && !other.has_begun() => Fate::Another,
            true if own.is_plausible(first) => Fate::Ignored,
            true => Fate::Another,
        }
    }

    /// Whether a reset from this side can be meant. An end that has said nothing yet gives no
    /// number to compare, but acknowledges what it refuses.
    fn could_reset(&self, side: Side, head: &Head) -> bool {
        let [own, other] = [&self.streams[side.index()], &self.streams[side.other().index()]];
        let refused =
            head.acknowledged.is_some_and(|number| other.has_begun() && other.is_plausible(number));
        if own.has_begun() { own.is_plausible(head.sequence) } else { refused }
    }
}

/// What decides about a segment in its TCP header.
#[derive(Clone, Copy, Debug)]
struct Head {
    sequence: u32,
    acknowledged: Option<u32>,
    syn: bool,
    fin: bool,
    rst: bool,
}

impl Conversations {
    /// Starts with no conversation.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let talks = Talks {
            limits: limits.clone(),
            open: HashMap::default(),
            quiet: BTreeSet::new(),
            waiting: BTreeSet::new(),
            count: 0,
            heard: 0,
            held: 0,
        };
        Self {
            talks,
            fragments: Fragments::new(limits.fragments, limits.streams_bytes),
            unusable: HashMap::default(),
            cut: 0,
            last: Last::Nobody,
        }
    }

    /// Whose the packet is that was taken in last. A packet without data has an owner too.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match self.last {
            Last::Nobody => Owner::Nobody,
            Last::Fragment => Owner::Fragment,
            Last::Between(key) => {
                let talk = self.talks.open.get(&key);
                talk.map_or(Owner::Nobody, |talk| Owner::Conversation(talk.number))
            }
        }
    }

    /// Takes in the next packet and tells what happened.
    pub fn push(&mut self, packet: &Packet<'_>, out: &mut dyn FnMut(Event<'_>)) {
        if let Some(why) = packet.unusable {
            self.last = Last::Nobody;
            *self.unusable.entry(why).or_default() += 1;
            return;
        }
        let Self { talks, fragments, .. } = self;
        let stamp = (packet.time, packet.number);
        let outcome = segment(
            packet.link,
            packet.data,
            packet.original_length,
            packet.time,
            fragments,
            |segment| talks.segment(segment, stamp, out),
        );
        self.last = match outcome {
            Ok(key) => Last::Between(key),
            Err(Unusable::Fragment) => Last::Fragment,
            Err(_) => Last::Nobody,
        };
        if let Err(why) = outcome {
            *self.unusable.entry(why).or_default() += 1;
        }
        self.cut += u64::from(packet.data.len() < packet.original_length as usize);
    }

    /// The capture is over: tells what was held back, and the end of every conversation.
    pub fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        let mut rest: Vec<(u64, Key)> =
            self.talks.open.iter().map(|(key, talk)| (talk.number, *key)).collect();
        rest.sort_unstable();
        for (_, key) in rest {
            self.talks.close(key, Closed::EndOfCapture, None, out);
        }
    }

    /// Why packets were of no use, and how many there were of each kind.
    #[must_use]
    pub fn unusable(&self) -> Vec<(Unusable, u64)> {
        let counted = |(why, count): (&Unusable, &u64)| match why {
            Unusable::Fragment => (*why, count - self.fragments.used),
            why => (*why, *count),
        };
        let mut all: Vec<_> =
            self.unusable.iter().map(counted).filter(|(_, count)| *count > 0).collect();
        all.sort_by_key(|(why, count)| (u64::MAX - count, why.to_string()));
        all
    }

    /// How many packets the capture holds the beginning of only.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Bytes held back over all conversations, with 128 for the keeping of each piece.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.talks.held
    }
}

impl Talks {
    /// Takes in a segment and returns whose it is.
    fn segment(
        &mut self,
        segment: &Segment<'_>,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) -> Key {
        let from_lower = segment.source <= segment.target;
        let ends = if from_lower {
            [segment.source, segment.target]
        } else {
            [segment.target, segment.source]
        };
        let sender = usize::from(!from_lower);
        let datagrams = matches!(segment.transport, Transport::Udp);
        self.route(ends, sender, segment, stamp, out);
        Key { ends, datagrams }
    }

    fn route(
        &mut self,
        ends: [(IpAddr, u16); 2],
        sender: usize,
        segment: &Segment<'_>,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
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
                let head = Head {
                    sequence,
                    acknowledged,
                    syn: flags.has(TcpFlags::SYN),
                    fin: flags.has(TcpFlags::FIN),
                    rst: flags.has(TcpFlags::RST),
                };
                self.tcp(key, sender, segment, &head, stamp, out);
            }
        }
    }

    fn tcp(
        &mut self,
        key: Key,
        sender: usize,
        segment: &Segment<'_>,
        head: &Head,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let worth = !segment.payload.is_empty() || segment.missing > 0;
        let fate = self.open.get(&key).map(|talk| talk.fate(sender, segment, head));
        match fate {
            Some(Fate::Ignored) => {
                let calls = head.syn && head.acknowledged.is_none();
                if let Some(talk) = self.open.get_mut(&key).filter(|_| calls) {
                    talk.calls = Some((sender, head.sequence));
                }
                return;
            }
            Some(Fate::Another) => self.close(key, Closed::Reused, Some(stamp), out),
            Some(Fate::Taken) | None => {}
        }
        if fate != Some(Fate::Taken) {
            if head.rst || !(head.syn || worth) {
                // Nothing to follow.
                return;
            }
            let ports = key.ends.map(|(_, port)| port);
            let client = match (head.syn, head.acknowledged) {
                (true, None) => sender,
                (true, Some(_)) => 1 - sender,
                _ if ports[0] == ports[1] => sender,
                // The higher port is more likely the client's.
                _ => usize::from(ports[1] > ports[0]),
            };
            self.open(key, client, !head.syn, stamp, out);
        }
        let room = Room { bytes: self.limits.stream_bytes, pieces: self.limits.stream_pieces };
        let Some(talk) = self.hear(key, stamp) else {
            return;
        };
        let (number, side) = (talk.number, talk.side(sender));
        let before = talk.held();
        if head.rst {
            if talk.could_reset(side, head) {
                talk.streams[side.index()].sent(head.sequence);
                if let Some(acknowledged) = head.acknowledged {
                    talk.streams[side.other().index()].sent(acknowledged);
                }
                talk.end(Closed::Reset, stamp, out);
            }
        } else {
            let stream = &mut talk.streams[side.other().index()];
            if let Some(acknowledged) = head.acknowledged {
                if !stream.has_begun() {
                    stream.begin(acknowledged);
                }
                stream.acknowledge(acknowledged, &mut |delivery| {
                    tell(out, number, stamp, kind(side.other(), delivery));
                });
            }
            let stream = &mut talk.streams[side.index()];
            let first = head.sequence.wrapping_add(u32::from(head.syn));
            if head.syn && !stream.has_begun() {
                stream.begin(first);
            }
            if worth || head.fin {
                let (payload, missing) = (segment.payload, segment.missing);
                stream.segment(first, payload, missing, head.fin, room, &mut |delivery| {
                    tell(out, number, stamp, kind(side, delivery));
                });
            }
            talk.end_if_finished(stamp, out);
        }
        if before == 0 && talk.held() == 0 {
            return;
        }
        self.recount(key, before);
        self.relieve(stamp, out);
    }

    /// Notes what a conversation holds back now that it has changed.
    fn recount(&mut self, key: Key, before: u64) {
        let Some(talk) = self.open.get_mut(&key) else {
            return;
        };
        let held = talk.held();
        self.held = (self.held + held).saturating_sub(before);
        match talk.waiting {
            None if held > 0 => {
                talk.waiting = Some(self.heard);
                self.waiting.insert((self.heard, key));
            }
            Some(since) if held == 0 => {
                talk.waiting = None;
                self.waiting.remove(&(since, key));
            }
            _ => {}
        }
    }

    /// Lets the conversations that have held back bytes for longest give up their gaps while there
    /// are too many bytes over all.
    fn relieve(&mut self, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        while self.held > self.limits.streams_bytes
            && let Some((_, key)) = self.waiting.first().copied()
            && let Some(talk) = self.open.get_mut(&key)
        {
            let (number, before) = (talk.number, talk.held());
            for side in Side::BOTH {
                talk.streams[side.index()].release(&mut |delivery| {
                    tell(out, number, stamp, kind(side, delivery));
                });
            }
            talk.end_if_finished(stamp, out);
            self.recount(key, before);
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
            waiting: None,
            last: stamp,
            over: false,
            calls: None,
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
        if let Some(since) = talk.waiting {
            self.waiting.remove(&(since, key));
        }
        self.held = self.held.saturating_sub(talk.held());
        let stamp = stamp.unwrap_or(talk.last);
        talk.end(why, stamp, out);
    }
}

impl Talk {
    /// Reports what is held back and the end, unless that was reported before.
    fn end(&mut self, why: Closed, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        self.over = true;
        let number = self.number;
        for side in Side::BOTH {
            self.streams[side.index()].flush(&mut |delivery| {
                tell(out, number, stamp, kind(side, delivery));
            });
        }
        tell(out, number, stamp, EventKind::Closed(why));
    }

    fn end_if_finished(&mut self, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        if self.streams.iter().all(Stream::is_finished) {
            self.end(Closed::Finished, stamp, out);
        }
    }
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
