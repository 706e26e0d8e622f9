//! Sorts packets into conversations and reassembles their streams.

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use foldhash::fast::RandomState;
use worldwire_core::{Limits, Side};

use crate::event::{Closed, Event, EventKind, Opened, Owner};
use crate::fragments::Fragments;
use crate::network::{Segment, TcpHeader, segment};
use crate::reader::Packet;
use crate::stream::{Delivery, Room, Stream};
use crate::time::Timestamp;
use crate::unusable::Unusable;

/// Sorts a capture's packets into conversations and reassembles their streams.
///
/// Push packets in capture order. Events are reported immediately, before the next packet is
/// pushed, so they can borrow the packet's bytes: segments in order are never copied.
///
/// TCP: repeated and overlapping bytes are reported once (the first copy wins). Early segments are
/// held back, within [`Limits::stream_bytes`], [`Limits::stream_pieces`] and
/// [`Limits::streams_bytes`]. Bytes that the capture lost are reported as a gap once data after
/// them is held back and the other side acknowledges them, a limit is reached, or the conversation
/// ends. Two gaps may be adjacent. Checksums are not verified, because captures made on the sending
/// machine rarely contain them.
///
/// A segment whose sequence number is more than 2^30 away is a stray and is ignored; if another
/// segment continues it, the stream resumes there, after a gap. A reset is valid within 4 MiB of
/// the expected sequence number. A SYN with a different number starts a new conversation if the old
/// one has ended or was never answered, or if the number is farther away than that. Late packets of
/// an ended conversation are ignored.
///
/// The client is the end that sent the SYN, or received the answer to it. If the capture has
/// neither, it is the end with the higher port or, with equal ports, the end that is seen first.
/// With UDP, the client is the end that is seen first.
///
/// Memory: each held-back piece counts as its bytes plus 128 for overhead, so that many small
/// pieces cannot exceed the limits. One packet may exceed the limit over all streams while it is
/// inserted; the conversations that have waited longest then give up their gaps.
#[derive(Clone, Debug)]
pub struct Conversations {
    table: Table,
    fragments: Fragments,
    unusable: HashMap<Unusable, u64, RandomState>,
    cut: u64,
    last: LastPacket,
}

/// The state of all conversations.
#[derive(Clone, Debug)]
struct Table {
    limits: Limits,
    open: HashMap<Key, Conversation, RandomState>,
    /// The open conversations, ordered by their last packet, oldest first.
    quiet: BTreeSet<(u64, Key)>,
    /// The conversations that hold back bytes, longest wait first.
    waiting: BTreeSet<(u64, Key)>,
    count: u64,
    touched: u64,
    held: u64,
}

/// What the last packet belonged to.
#[derive(Clone, Copy, Debug)]
enum LastPacket {
    /// To no conversation.
    Unowned,
    /// An incomplete IP packet.
    Fragment,
    Between(Key),
}

/// Both ends and the transport. The lower end is first, so both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    ends: [(IpAddr, u16); 2],
    datagrams: bool,
}

/// Hashes only a few words, because every packet is looked up by its key.
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

#[derive(Clone, Debug)]
struct Conversation {
    number: u64,
    /// The index of the client's end.
    client: usize,
    /// The stream of each side, by [`Side::index`].
    streams: [Stream; 2],
    touched: u64,
    /// When it began to hold back bytes.
    waiting: Option<u64>,
    last: (Timestamp, u64),
    /// Its end was reported; late packets do not start a new conversation.
    over: bool,
    /// The end that sent a SYN for a new conversation, and its sequence number. The SYN may be a
    /// late packet.
    syn: Option<(usize, u32)>,
}

/// How a segment relates to the conversation between its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The segment belongs to the conversation.
    Taken,
    /// The segment belongs to no conversation.
    Ignored,
    /// The segment starts a new conversation.
    Another,
}

impl Conversation {
    fn side(&self, end: usize) -> Side {
        if end == self.client { Side::Client } else { Side::Server }
    }

    fn held(&self) -> u64 {
        self.streams.iter().map(Stream::held).sum()
    }

    fn relation(&self, sender: usize, segment: &Segment<'_>, head: &TcpHeader) -> Relation {
        let side = self.side(sender);
        let [own, other] = [&self.streams[side.index()], &self.streams[side.other().index()]];
        if !head.syn || head.rst {
            // After the end: late or, if far away, from a connection whose SYN was not captured.
            let new = !head.rst && !segment.payload.is_empty() && !own.is_plausible(head.sequence);
            return match self.over {
                false => Relation::Taken,
                true if new && own.has_begun() => Relation::Another,
                true => Relation::Ignored,
            };
        }
        let first = head.sequence.wrapping_add(1);
        if own.began_with(first) && (!self.over || own.is_fresh()) {
            // Retransmitted, possibly after a refusal.
            return if self.over { Relation::Ignored } else { Relation::Taken };
        }
        // The other end accepts the new conversation.
        let asked = head.acknowledged.map(|number| (1 - sender, number.wrapping_sub(1)));
        let agrees = self.syn.is_some() && self.syn == asked;
        let ended = agrees || self.over || own.has_end() || other.has_end();
        let both = other.has_begun() && other.is_fresh();
        match own.has_begun() {
            _ if ended => Relation::Another,
            // The answer, or both ends connect at the same time.
            false if head.acknowledged.is_some() || both => Relation::Taken,
            false => Relation::Another,
            true if own.is_fresh() && !other.has_begun() => Relation::Another,
            true if own.is_plausible(first) => Relation::Ignored,
            true => Relation::Another,
        }
    }

    /// Whether a reset from this side is plausible. An end that has sent nothing has no sequence
    /// number to compare, but acknowledges what it refuses.
    fn could_reset(&self, side: Side, head: &TcpHeader) -> bool {
        let [own, other] = [&self.streams[side.index()], &self.streams[side.other().index()]];
        let refused =
            head.acknowledged.is_some_and(|number| other.has_begun() && other.is_plausible(number));
        if own.has_begun() { own.is_plausible(head.sequence) } else { refused }
    }
}

impl Conversations {
    /// Starts without any conversations.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let table = Table {
            limits: limits.clone(),
            open: HashMap::default(),
            quiet: BTreeSet::new(),
            waiting: BTreeSet::new(),
            count: 0,
            touched: 0,
            held: 0,
        };
        Self {
            table,
            fragments: Fragments::new(limits.fragments, limits.streams_bytes),
            unusable: HashMap::default(),
            cut: 0,
            last: LastPacket::Unowned,
        }
    }

    /// What the last packet belongs to. A packet without data also has an owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match self.last {
            LastPacket::Unowned => Owner::Nobody,
            LastPacket::Fragment => Owner::Fragment,
            LastPacket::Between(key) => {
                let conversation = self.table.open.get(&key);
                conversation
                    .map_or(Owner::Nobody, |conversation| Owner::Conversation(conversation.number))
            }
        }
    }

    /// Handles the next packet and reports its events.
    pub fn push(&mut self, packet: &Packet<'_>, out: &mut dyn FnMut(Event<'_>)) {
        if let Some(why) = packet.unusable {
            self.last = LastPacket::Unowned;
            *self.unusable.entry(why).or_default() += 1;
            return;
        }
        let Self { table, fragments, .. } = self;
        let stamp = (packet.time, packet.number);
        let outcome = segment(
            packet.link,
            packet.data,
            packet.original_length,
            packet.time,
            fragments,
            |segment| table.segment(segment, stamp, out),
        );
        self.last = match outcome {
            Ok(key) => LastPacket::Between(key),
            Err(Unusable::Fragment) => LastPacket::Fragment,
            Err(_) => LastPacket::Unowned,
        };
        if let Err(why) = outcome {
            *self.unusable.entry(why).or_default() += 1;
        }
        self.cut += u64::from(packet.data.len() < packet.original_length as usize);
    }

    /// Ends the capture: reports what is held back, and the end of every conversation.
    pub fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        let mut rest: Vec<(u64, Key)> =
            self.table.open.iter().map(|(key, conversation)| (conversation.number, *key)).collect();
        rest.sort_unstable();
        for (_, key) in rest {
            self.table.close(key, Closed::EndOfCapture, None, out);
        }
    }

    /// The number of conversations that have begun. The next one has this number.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.table.count
    }

    /// The number of open conversations, for an estimate of the memory that a copy takes.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table.open.len()
    }

    /// The reasons why packets were unusable, and the number of packets for each.
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

    /// The number of packets that were captured only in part.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The bytes held back over all conversations, with 128 for the overhead of each piece.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.table.held
    }
}

impl Table {
    /// Handles a segment and returns its owner.
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
        let key = Key { ends, datagrams: segment.tcp.is_none() };
        if let Some(head) = &segment.tcp {
            self.tcp(key, sender, segment, head, stamp, out);
            return key;
        }
        self.open(key, sender, false, stamp, out);
        if let Some(conversation) = self.touch(key, stamp) {
            let (number, side) = (conversation.number, conversation.side(sender));
            report(out, number, stamp, EventKind::Datagram { side, bytes: segment.payload });
        }
        key
    }

    fn tcp(
        &mut self,
        key: Key,
        sender: usize,
        segment: &Segment<'_>,
        head: &TcpHeader,
        stamp: (Timestamp, u64),
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let worth = !segment.payload.is_empty() || segment.missing > 0;
        let relation =
            self.open.get(&key).map(|conversation| conversation.relation(sender, segment, head));
        match relation {
            Some(Relation::Ignored) => {
                let syn = head.syn && head.acknowledged.is_none();
                if let Some(conversation) = self.open.get_mut(&key).filter(|_| syn) {
                    conversation.syn = Some((sender, head.sequence));
                }
                return;
            }
            Some(Relation::Another) => self.close(key, Closed::Reused, Some(stamp), out),
            Some(Relation::Taken) | None => {}
        }
        if relation != Some(Relation::Taken) {
            if head.rst || !(head.syn || worth) {
                // There is no conversation to follow.
                return;
            }
            let ports = key.ends.map(|(_, port)| port);
            let client = match (head.syn, head.acknowledged) {
                (true, None) => sender,
                (true, Some(_)) => 1 - sender,
                _ if ports[0] == ports[1] => sender,
                // The higher port is more likely to be the client's.
                _ => usize::from(ports[1] > ports[0]),
            };
            self.open(key, client, !head.syn, stamp, out);
        }
        let room = Room { bytes: self.limits.stream_bytes, pieces: self.limits.stream_pieces };
        let Some(conversation) = self.touch(key, stamp) else {
            return;
        };
        let (number, side) = (conversation.number, conversation.side(sender));
        let before = conversation.held();
        if head.rst {
            if conversation.could_reset(side, head) {
                conversation.streams[side.index()].sent(head.sequence);
                if let Some(acknowledged) = head.acknowledged {
                    conversation.streams[side.other().index()].sent(acknowledged);
                }
                conversation.end(Closed::Reset, stamp, out);
            }
        } else {
            let stream = &mut conversation.streams[side.other().index()];
            if let Some(acknowledged) = head.acknowledged {
                if !stream.has_begun() {
                    stream.begin(acknowledged);
                }
                stream.acknowledge(acknowledged, &mut to(out, number, stamp, side.other()));
            }
            let stream = &mut conversation.streams[side.index()];
            let first = head.sequence.wrapping_add(u32::from(head.syn));
            if head.syn && !stream.has_begun() {
                stream.begin(first);
            }
            if worth || head.fin {
                let (payload, missing) = (segment.payload, segment.missing);
                let out = &mut to(out, number, stamp, side);
                stream.segment(first, payload, missing, head.fin, room, out);
            }
            conversation.end_if_finished(stamp, out);
        }
        if before == 0 && conversation.held() == 0 {
            return;
        }
        self.recount(key, before);
        self.relieve(stamp, out);
    }

    /// Updates the accounting after a conversation's held-back bytes have changed.
    fn recount(&mut self, key: Key, before: u64) {
        let Some(conversation) = self.open.get_mut(&key) else {
            return;
        };
        let held = conversation.held();
        self.held = (self.held + held).saturating_sub(before);
        match conversation.waiting {
            None if held > 0 => {
                conversation.waiting = Some(self.touched);
                self.waiting.insert((self.touched, key));
            }
            Some(since) if held == 0 => {
                conversation.waiting = None;
                self.waiting.remove(&(since, key));
            }
            _ => {}
        }
    }

    /// While too many bytes are held back over all conversations, makes those that have waited
    /// longest give up their gaps.
    fn relieve(&mut self, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        while self.held > self.limits.streams_bytes
            && let Some((_, key)) = self.waiting.first().copied()
            && let Some(conversation) = self.open.get_mut(&key)
        {
            let (number, before) = (conversation.number, conversation.held());
            for side in Side::BOTH {
                conversation.streams[side.index()].release(&mut to(out, number, stamp, side));
            }
            conversation.end_if_finished(stamp, out);
            self.recount(key, before);
        }
    }

    /// Opens a conversation unless it is open. If the table is full, closes the one that has been
    /// idle longest.
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
        let conversation = Conversation {
            number,
            client,
            streams: Default::default(),
            touched: self.touched,
            waiting: None,
            last: stamp,
            over: false,
            syn: None,
        };
        self.quiet.insert((conversation.touched, key));
        self.open.insert(key, conversation);
        let [client, server] = [key.ends[client], key.ends[1 - client]];
        let opened = Opened {
            client: client.into(),
            server: server.into(),
            datagrams: key.datagrams,
            midstream,
        };
        report(out, number, stamp, EventKind::Opened(opened));
    }

    /// Marks a conversation as active now.
    fn touch(&mut self, key: Key, stamp: (Timestamp, u64)) -> Option<&mut Conversation> {
        self.touched += 1;
        let touched = self.touched;
        let crowded = self.open.len() as u64 * 2 >= u64::from(self.limits.conversations);
        let conversation = self.open.get_mut(&key)?;
        // The order matters only when a conversation may have to be closed.
        if crowded || touched - conversation.touched > 4096 {
            self.quiet.remove(&(conversation.touched, key));
            conversation.touched = touched;
            self.quiet.insert((touched, key));
        }
        conversation.last = stamp;
        Some(conversation)
    }

    fn close(
        &mut self,
        key: Key,
        why: Closed,
        stamp: Option<(Timestamp, u64)>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(mut conversation) = self.open.remove(&key) else {
            return;
        };
        self.quiet.remove(&(conversation.touched, key));
        if let Some(since) = conversation.waiting {
            self.waiting.remove(&(since, key));
        }
        self.held = self.held.saturating_sub(conversation.held());
        let stamp = stamp.unwrap_or(conversation.last);
        conversation.end(why, stamp, out);
    }
}

impl Conversation {
    /// Reports what is held back and the end, unless already reported.
    fn end(&mut self, why: Closed, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        if self.over {
            return;
        }
        self.over = true;
        let number = self.number;
        for side in Side::BOTH {
            self.streams[side.index()].flush(&mut to(out, number, stamp, side));
        }
        report(out, number, stamp, EventKind::Closed(why));
    }

    fn end_if_finished(&mut self, stamp: (Timestamp, u64), out: &mut dyn FnMut(Event<'_>)) {
        if self.streams.iter().all(Stream::is_finished) {
            self.end(Closed::Finished, stamp, out);
        }
    }
}

/// Reports what a side's stream delivers.
fn to(
    out: &mut dyn FnMut(Event<'_>),
    conversation: u64,
    stamp: (Timestamp, u64),
    side: Side,
) -> impl FnMut(Delivery<'_>) {
    move |delivery| {
        let kind = match delivery {
            Delivery::Data { offset, bytes } => EventKind::Data { side, offset, bytes },
            Delivery::Gap { offset, length } => EventKind::Gap { side, offset, length },
        };
        report(out, conversation, stamp, kind);
    }
}

fn report(
    out: &mut dyn FnMut(Event<'_>),
    conversation: u64,
    (time, packet): (Timestamp, u64),
    kind: EventKind<'_>,
) {
    out(Event { conversation, time, packet, kind });
}
