//! Connects a client and a server of any family over a simulated wire in virtual time, with an
//! optional relay between them and an optional observer.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::connection::{Connection, EventOf, Input};
use crate::{Sampler, Side};

/// The conditions on a wire. The default is a perfect wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The latency of every write.
    pub latency: Duration,
    /// Splits streams into segments of 1 to this many bytes; 0 keeps writes whole.
    pub segment: usize,
    /// Carries every write as a datagram.
    pub datagrams: bool,
    /// Datagrams that never arrive, per thousand.
    pub loss: u64,
    /// Datagrams that arrive twice, per thousand.
    pub duplication: u64,
    /// Datagrams that arrive up to four latencies late, per thousand.
    pub reordering: u64,
    /// Segments or datagrams with one bit inverted, per thousand.
    pub corruption: u64,
    /// Segments that the observer does not see, per thousand.
    pub unseen: u64,
    /// The seed of the random choices.
    pub seed: u64,
}

/// A connection's role in a [`Pair`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Member {
    /// The client.
    Client,
    /// The server.
    Server,
    /// The relay between them.
    Relay,
    /// The observer of the client's and the server's wires.
    Observer,
}

/// A client and a server connected by wires. A relay has a wire on either side.
#[derive(Debug)]
pub struct Pair<C> {
    /// The current time.
    pub now: Duration,
    /// The client.
    pub client: C,
    /// The server.
    pub server: C,
    /// The relay, if there is one.
    pub relay: Option<C>,
    /// The observer, if there is one.
    pub observer: Option<C>,
    /// Everything the client and the server wrote, in order.
    pub written: [Vec<u8>; 2],
    /// The bytes that arrived at the server (from the client's side) and at the client.
    pub arrived: [Vec<u8>; 2],
    wires: Vec<Wire>,
    ended: [bool; 4],
    /// The sides whose stream has ended at the relay.
    ended_at_relay: [bool; 2],
}

/// One direction between two members.
#[derive(Debug)]
struct Wire {
    from: Member,
    to: Member,
    /// The sending side, as seen by the receiver.
    side: Side,
    conditions: Conditions,
    sampler: Sampler,
    /// The bytes in transit, by arrival and number. `None` is the end of the stream.
    in_transit: BTreeMap<(Duration, u64), Option<Vec<u8>>>,
    count: u64,
    has_ended: bool,
}

impl Wire {
    fn new(from: Member, to: Member, side: Side, conditions: Conditions) -> Self {
        let seed = conditions.seed.wrapping_mul(8) + from as u64 * 2 + side.index() as u64;
        let (in_transit, sampler) = (BTreeMap::new(), Sampler::new(seed));
        Self { from, to, side, conditions, sampler, in_transit, count: 0, has_ended: false }
    }

    fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.sampler.below(1000) < in_a_thousand
    }

    fn schedule(&mut self, arrival: Duration, bytes: Option<Vec<u8>>) {
        self.count += 1;
        self.in_transit.insert((arrival, self.count), bytes);
    }

    fn next_arrival(&self) -> Option<Duration> {
        self.in_transit.first_key_value().map(|((arrival, _), _)| *arrival)
    }

    /// Ends the stream; false if it had already ended.
    fn end(&mut self, now: Duration) -> bool {
        let first = !core::mem::replace(&mut self.has_ended, true);
        if first {
            self.schedule(now + self.conditions.latency, None);
        }
        first
    }

    /// Carries a member's write and returns the segments that an observer sees.
    fn carry(&mut self, now: Duration, bytes: &[u8]) -> Vec<Vec<u8>> {
        let Conditions { latency, segment, datagrams, .. } = self.conditions;
        let mut rest = bytes;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let length = match segment {
                _ if datagrams => rest.len(),
                0 => rest.len(),
                most => 1 + usize::try_from(self.sampler.below(most as u64)).unwrap_or(0),
            };
            let (head, tail) = rest.split_at(length.min(rest.len()));
            segments.push(head.to_vec());
            rest = tail;
        }
        for sent in &segments {
            let mut sent = sent.clone();
            if self.chance(self.conditions.corruption) {
                let bit = self.sampler.below(sent.len() as u64 * 8);
                let at = usize::try_from(bit / 8).unwrap_or(0);
                sent[at] ^= 1 << (bit % 8);
            }
            let mut arrival = now + latency;
            if datagrams {
                if self.chance(self.conditions.loss) {
                    continue;
                }
                if self.chance(self.conditions.reordering) {
                    let late = self.sampler.below(4_001);
                    arrival += latency * u32::try_from(late).unwrap_or(0) / 1_000;
                }
                if self.chance(self.conditions.duplication) {
                    self.schedule(arrival + latency, Some(sent.clone()));
                }
            }
            self.schedule(arrival, Some(sent));
        }
        segments
    }
}

impl<C: Connection> Pair<C> {
    /// Connects a client and a server.
    pub fn new(client: C, server: C, conditions: Conditions) -> Self {
        let wires = Side::BOTH.map(|side| {
            let (from, to) = (member(side), member(side.other()));
            Wire::new(from, to, side, conditions)
        });
        Self::over(client, server, None, wires.into())
    }

    /// Connects a client and a server through a relay.
    pub fn relayed(client: C, relay: C, server: C, conditions: Conditions) -> Self {
        let wires = Side::BOTH.into_iter().flat_map(|side| {
            [
                Wire::new(member(side), Member::Relay, side, conditions),
                Wire::new(Member::Relay, member(side.other()), side, conditions),
            ]
        });
        Self::over(client, server, Some(relay), wires.collect())
    }

    fn over(client: C, server: C, relay: Option<C>, wires: Vec<Wire>) -> Self {
        Self {
            now: Duration::ZERO,
            client,
            server,
            relay,
            observer: None,
            written: Default::default(),
            arrived: Default::default(),
            wires,
            ended: [false; 4],
            ended_at_relay: [false; 2],
        }
    }

    /// Adds an observer. It receives the segments that the client and the server write, and a gap
    /// for each one it misses.
    #[must_use]
    pub fn watched_by(mut self, observer: C) -> Self {
        self.observer = Some(observer);
        self
    }

    /// A member, if present.
    pub fn member(&mut self, member: Member) -> Option<&mut C> {
        match member {
            Member::Client => Some(&mut self.client),
            Member::Server => Some(&mut self.server),
            Member::Relay => self.relay.as_mut(),
            Member::Observer => self.observer.as_mut(),
        }
    }

    /// Runs until nothing is in transit. Deadlines that pass meanwhile are handled; time does not
    /// advance to later ones.
    pub fn settle(&mut self, mut on: impl FnMut(Member, EventOf<'_, C>, &mut C::Sender)) {
        self.drain(&mut on);
        while let Some(arrival) = self.next_arrival() {
            self.step(arrival, &mut on);
        }
    }

    /// Runs until this time: delivers everything that arrives and handles every deadline that
    /// passes by then.
    ///
    /// # Panics
    /// If a member asks for endless time-outs.
    pub fn run_until(
        &mut self,
        end: Duration,
        mut on: impl FnMut(Member, EventOf<'_, C>, &mut C::Sender),
    ) {
        self.drain(&mut on);
        let mut idle = 0;
        loop {
            let deadline = MEMBERS
                .iter()
                .filter_map(|member| self.member(*member).and_then(|member| member.poll_timeout()));
            let next = deadline.min().into_iter().chain(self.next_arrival()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            idle = if next > self.now { 0 } else { idle + 1 };
            assert!(idle < 10_000, "endless time-outs at {:?}", self.now);
            self.step(next, &mut on);
        }
        self.now = self.now.max(end);
    }

    fn next_arrival(&self) -> Option<Duration> {
        self.wires.iter().filter_map(Wire::next_arrival).min()
    }

    /// Advances the time: delivers the bytes due by then and handles deadlines.
    fn step(&mut self, to: Duration, on: &mut impl FnMut(Member, EventOf<'_, C>, &mut C::Sender)) {
        self.now = self.now.max(to);
        let now = self.now;
        for member in MEMBERS {
            if let Some(connection) = self.member(member)
                && connection.poll_timeout().is_some_and(|at| at <= now)
            {
                connection.timeout(now);
            }
        }
        self.drain(on);
        for index in 0..self.wires.len() {
            while let Some(wire) = self.wires.get_mut(index)
                && wire.next_arrival().is_some_and(|arrival| arrival <= now)
                && let Some((_, bytes)) = wire.in_transit.pop_first()
            {
                let (to, side, datagrams) = (wire.to, wire.side, wire.conditions.datagrams);
                if to != Member::Relay
                    && let Some(bytes) = &bytes
                {
                    self.arrived[side.index()].extend_from_slice(bytes);
                }
                if to == Member::Relay && bytes.is_none() {
                    self.ended_at_relay[side.index()] = true;
                }
                let Some(connection) = self.member(to) else { continue };
                match &bytes {
                    None => connection.input(now, side, Input::End),
                    Some(bytes) if datagrams => {
                        connection.input(now, side, Input::Datagram(bytes));
                    }
                    Some(bytes) => connection.input(now, side, Input::Bytes(bytes)),
                }
                self.drain(on);
            }
        }
    }

    /// Reports all events and sends all queued bytes, until none are left.
    fn drain(&mut self, on: &mut impl FnMut(Member, EventOf<'_, C>, &mut C::Sender)) {
        let mut moved = true;
        while core::mem::take(&mut moved) {
            for member in MEMBERS {
                let Some(connection) = self.member(member) else { continue };
                while let Some((event, sender)) = connection.poll() {
                    moved = true;
                    on(member, event, sender);
                }
                moved |= self.transmit(member);
            }
        }
    }

    fn transmit(&mut self, member: Member) -> bool {
        let mut moved = false;
        for index in 0..self.wires.len() {
            let (from, side) = (self.wires[index].from, self.wires[index].side);
            if from != member {
                continue;
            }
            let now = self.now;
            while let Some(bytes) =
                self.member(member).and_then(|member| member.poll_transmit(side.other()))
            {
                moved = true;
                let segments = self.wires[index].carry(now, &bytes);
                if from != Member::Relay {
                    self.written[side.index()].extend_from_slice(&bytes);
                    self.observe(index, side, &segments);
                }
            }
        }
        if member == Member::Relay && !moved {
            moved = self.forward_ends();
        }
        let closed = self.member(member).is_some_and(|member| member.is_closed());
        if closed && !core::mem::replace(&mut self.ended[member as usize], true) {
            moved = true;
            let now = self.now;
            for wire in self.wires.iter_mut().filter(|wire| wire.from == member) {
                wire.end(now);
            }
            let side = match member {
                Member::Client => Some(Side::Client),
                Member::Server => Some(Side::Server),
                Member::Relay | Member::Observer => None,
            };
            if let (Some(side), Some(observer)) = (side, &mut self.observer) {
                observer.input(now, side, Input::End);
            }
        }
        moved
    }

    /// Ends the relay's outgoing wires for streams that have ended, once all of their bytes are on
    /// the wire, as a driver does with the halves of its sockets. Returns whether it ended any.
    fn forward_ends(&mut self) -> bool {
        let (now, ended, relay) = (self.now, self.ended_at_relay, &self.relay);
        let keeps = |side| relay.as_ref().is_some_and(|relay| relay.kept_bytes(side) > 0);
        let is_due = |wire: &&mut Wire| {
            wire.from == Member::Relay && ended[wire.side.index()] && !keeps(wire.side)
        };
        self.wires.iter_mut().filter(is_due).filter_map(|wire| wire.end(now).then_some(())).count()
            > 0
    }

    fn observe(&mut self, wire: usize, side: Side, segments: &[Vec<u8>]) {
        let now = self.now;
        let Some(observer) = &mut self.observer else { return };
        let wire = &mut self.wires[wire];
        for segment in segments {
            let unseen = wire.conditions.unseen;
            let missed = wire.chance(unseen);
            let input = match wire.conditions.datagrams {
                _ if missed => Input::Gap(segment.len() as u64),
                true => Input::Datagram(segment),
                false => Input::Bytes(segment),
            };
            observer.input(now, side, input);
        }
    }
}

const MEMBERS: [Member; 4] = [Member::Client, Member::Relay, Member::Server, Member::Observer];

fn member(side: Side) -> Member {
    match side {
        Side::Client => Member::Client,
        Side::Server => Member::Server,
    }
}
