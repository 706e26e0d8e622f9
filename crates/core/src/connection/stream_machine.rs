//! The machine of connections over two byte streams, without the parts that only one family has.

use core::fmt::Debug;
use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;

use super::{
    CloseReason, Connection, Event, EventOf, HalfSender, Incoming, Input, Located,
    MAX_FORKED_BYTES, Outgoing, Piece, Role, SendHalf, Timer,
};
use crate::{Error, Side};

/// A connection over two byte streams. A family supplies its phases, key exchanges and checks; the
/// machine reads, reports, forwards, pauses and finishes, and implements [`Connection`].
pub trait StreamMachine: Sized {
    /// The protocol's name, for errors.
    const PROTOCOL: &'static str;

    /// Events that only this family has.
    type News: Debug;
    /// A piece, as reported.
    type Received<'c>: Piece<'c> + Debug;
    /// A piece that waits to be reported.
    type Unread;
    /// The half that sends.
    type Sender: HalfSender;
    /// One direction.
    type Stream: ReadStream;

    /// The sender and the streams.
    fn parts(&self) -> (&Self::Sender, &[Self::Stream; 2]);

    /// The parts that the machine works on.
    fn parts_mut(&mut self) -> Parts<'_, Self>;

    /// Reads one unit of a side and queues its events; false if there is none.
    fn read(&mut self, side: Side) -> bool;

    /// Continues a unit that is reported in several pieces; false if there is none.
    fn read_rest(&mut self) -> bool {
        false
    }

    /// Adds bytes from the wire.
    fn push(&mut self, from: Side, bytes: &[u8]);

    /// Handles a datagram, which is a fault unless the family has datagrams.
    fn push_datagram(&mut self, from: Side, _: &[u8]) {
        let Parts { sender, streams, events } = self.parts_mut();
        let hint = format!("{} runs over TCP only", Self::PROTOCOL);
        let error = Error::malformed("a TCP stream", "a datagram").hint(hint);
        let error = error.at(streams[from.index()].incoming().end());
        events.push_back(Event::Fault { side: from, error });
        let half = sender.half_mut();
        if half.role.side().is_some() || half.forwarding.is_some() {
            half.close_for(CloseReason::Fault);
        }
    }

    /// Handles missing bytes.
    fn gap(&mut self, side: Side, length: u64);

    /// Reports what is wrong with streams that have ended, once nothing more can be read. Returns
    /// whether anything changed. Observers and relays only.
    fn conclude(&mut self, all_ended: bool) -> bool;

    /// Sends the keep-alive that is due.
    fn beat(&mut self) {}

    /// Returns a piece that may be reported and keeps or drops any other.
    #[inline]
    fn admit(&mut self, unread: Self::Unread) -> Option<Self::Unread> {
        Some(unread)
    }

    /// Relays: what to remember about a piece that is reported now, the side that sent it, and
    /// whether it may overtake held pieces.
    fn in_transit(&self, unread: &Self::Unread) -> (Side, PieceOf<Self>, bool);

    /// Relays: the position of a piece in the buffer of its stream.
    fn range(piece: &PieceOf<Self>) -> Range<usize>;

    /// The piece to report, with its bytes.
    fn received(unread: Self::Unread, streams: &mut [Self::Stream; 2]) -> Self::Received<'_>;

    /// See [`Connection::is_established`].
    fn is_established(&self) -> bool;

    /// Copies an observer without events; see [`Connection::fork`]. `None` otherwise.
    fn copy(&self) -> Option<Self> {
        None
    }
}

/// One direction of a [`StreamMachine`].
pub trait ReadStream: Debug {
    /// The received bytes.
    fn incoming(&self) -> &Incoming;

    /// The received bytes.
    fn incoming_mut(&mut self) -> &mut Incoming;

    /// The number of received bytes that were not read.
    fn waiting_bytes(&self) -> usize {
        self.incoming().unread().len()
    }

    /// The offset of the first unread byte.
    fn position(&self) -> u64 {
        self.incoming().offset()
    }
}

/// A piece in transit through a relay.
pub type PieceOf<M> = <<<M as StreamMachine>::Sender as HalfSender>::Role as Role>::Piece;

/// A piece in the buffer of its stream that waits to be reported.
#[derive(Clone, Debug)]
pub struct Unread<U> {
    /// The side that sent it.
    pub side: Side,
    /// Its kind.
    pub unit: U,
    /// Its bytes.
    pub located: Located,
    /// Whether it was encrypted.
    pub encrypted: bool,
}

/// The parts that all families' machines share.
#[derive(Debug)]
pub struct Parts<'m, M: StreamMachine> {
    /// The half that sends.
    pub sender: &'m mut M::Sender,
    /// The stream of each side, as far as this role reads it; by [`Side::index`].
    pub streams: &'m mut [M::Stream; 2],
    /// The events not reported yet.
    pub events: &'m mut VecDeque<Event<M::Unread, M::News>>,
}

impl<M: StreamMachine> Parts<'_, M> {
    /// Carries out the decision about the last piece and fills both queues. All roles call this for
    /// every input and event, so it must cost nothing except in relays.
    #[inline]
    pub fn settle(&mut self) {
        if self.sender.half().forwarding.is_some() {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Carries out the decision about the last piece.
    #[inline]
    pub fn settle_piece(&mut self) {
        let SendHalf { role, forwarding, .. } = self.sender.half_mut();
        let Some(forwarding) = forwarding else { return };
        let streams = &self.streams;
        let settled = forwarding.settle(|side, piece| {
            let original = || streams[side.index()].incoming().bytes(M::range(piece)).to_vec();
            role.replacement().unwrap_or_else(original)
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues everything from a side that may leave now.
    pub fn fill(&mut self, from: Side) {
        if let Err(error) = self.sender.half_mut().fill(from) {
            let at = self.streams[from.index()].position();
            self.refuse(from, error.at(at));
        }
    }

    /// Queues an entry that needs no decision; `piece` is `None` for a part of a stream that is
    /// forwarded unread.
    pub fn pass(&mut self, side: Side, piece: Option<PieceOf<M>>, bytes: Vec<u8>) {
        if let Some(forwarding) = &mut self.sender.half_mut().forwarding {
            forwarding.pass(side, piece, bytes);
            self.fill(side);
        }
    }

    /// Reports a fault and closes the connection.
    pub fn refuse(&mut self, side: Side, error: Error) {
        self.events.push_back(Event::Fault { side, error });
        self.sender.half_mut().close_for(CloseReason::Fault);
    }

    /// Closes the connection and returns true if too much of a paused stream has arrived.
    fn is_flooded(&mut self, side: Side) -> bool {
        let Some(forwarding) = &self.sender.half().forwarding else { return false };
        let stream = &self.streams[side.index()];
        let checked = forwarding.check_unread(stream.waiting_bytes());
        let at = stream.position();
        checked.map_err(|error| self.refuse(side, error.at(at))).is_err()
    }

    /// Forwards bytes of a stream that cannot be read; false if there are none.
    fn forward_unread(&mut self, side: Side) -> bool {
        let Some(forwarding) = &self.sender.half().forwarding else { return false };
        if !forwarding.is_raw(side) {
            return false;
        }
        let max = forwarding.max_raw_bytes();
        let incoming = self.streams[side.index()].incoming_mut();
        let taken = incoming.advance(incoming.unread().len().min(max));
        let bytes = incoming.bytes(taken.range).to_vec();
        if bytes.is_empty() {
            return false;
        }
        self.pass(side, None, bytes);
        true
    }
}

/// Reads everything that was complete before a gap; false if the connection is then closed.
pub fn read_up<M: StreamMachine>(machine: &mut M) -> bool {
    while read_either(machine) {}
    !machine.is_closed()
}

/// Reads until there is an event or nothing more can be read.
fn advance<M: StreamMachine>(machine: &mut M) {
    if machine.is_closed() || machine.read_rest() {
        return;
    }
    let Parts { streams, .. } = machine.parts_mut();
    streams.iter_mut().for_each(|stream| stream.incoming_mut().forget());
    while machine.parts_mut().events.is_empty() && (read_either(machine) || finish(machine)) {}
    let (sender, streams) = machine.parts();
    if let Some(own) = sender.half().role.side()
        && !machine.is_closed()
    {
        let has_begun = StreamMachine::is_established(machine)
            && !streams[own.other().index()].incoming().unread().is_empty();
        machine.parts_mut().sender.half_mut().watch_message(has_begun);
    }
}

/// Reads one unit of either side; false if there is none.
fn read_either<M: StreamMachine>(machine: &mut M) -> bool {
    !machine.is_closed() && Side::BOTH.into_iter().any(|side| read_side(machine, side))
}

/// Reads one unit of a side, unless a relay must first forward what it has read; false if nothing
/// changed.
fn read_side<M: StreamMachine>(machine: &mut M, side: Side) -> bool {
    if machine.is_paused(side) {
        return machine.parts_mut().is_flooded(side);
    }
    machine.parts_mut().forward_unread(side) || machine.read(side)
}

/// Handles streams that have ended, once nothing more can be read; false if nothing changed.
fn finish<M: StreamMachine>(machine: &mut M) -> bool {
    if machine.is_closed() {
        return false;
    }
    let (sender, streams) = machine.parts();
    let ended = Side::BOTH.map(|side| streams[side.index()].incoming().is_ended);
    let own = sender.half().role.side();
    if own.is_none() && machine.conclude(ended == [true; 2]) {
        return true;
    }
    let is_over = match own {
        Some(own) => ended[own.other().index()],
        None => Side::BOTH.into_iter().all(|side| {
            ended[side.index()] && !machine.is_paused(side) && machine.kept_bytes(side) == 0
        }),
    };
    if is_over {
        machine.parts_mut().sender.half_mut().close_for(CloseReason::Remote);
    }
    false
}

impl<M: StreamMachine> Connection for M {
    type News = M::News;
    type Received<'c>
        = M::Received<'c>
    where
        Self: 'c;
    type Sender = M::Sender;

    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        let mut parts = self.parts_mut();
        parts.sender.half_mut().timers.set_now(now);
        parts.settle();
        let half = parts.sender.half();
        let incoming = parts.streams[from.index()].incoming_mut();
        if half.closing.is_closed() || incoming.is_ended || half.role.side() == Some(from) {
            return;
        }
        match input {
            Input::Bytes(bytes) => self.push(from, bytes),
            Input::Datagram(bytes) => self.push_datagram(from, bytes),
            Input::Gap(length) => self.gap(from, length),
            Input::End => incoming.is_ended = true,
        }
    }

    fn timeout(&mut self, now: Duration) {
        let mut parts = self.parts_mut();
        parts.sender.half_mut().timers.set_now(now);
        parts.settle();
        let half = parts.sender.half_mut();
        match half.timers.passed().filter(|_| !half.closing.is_closed()) {
            Some(Timer::Beat) => self.beat(),
            Some(timer) => half.close_for(CloseReason::Timeout(timer)),
            None => {}
        }
    }

    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Self::Sender)> {
        self.parts_mut().settle();
        let event = loop {
            if self.parts_mut().events.is_empty() {
                advance(self);
            }
            match self.parts_mut().events.pop_front() {
                Some(Event::Received(unread)) => {
                    if let Some(unread) = self.admit(unread) {
                        break Event::Received(unread);
                    }
                }
                Some(event) => break event,
                None => {
                    let sender = self.parts_mut().sender;
                    let reason = sender.half_mut().closing.report()?;
                    return Some((Event::Closed(reason), sender));
                }
            }
        };
        if let Event::Received(unread) = &event
            && self.parts().0.half().forwarding.is_some()
        {
            let (side, piece, is_urgent) = self.in_transit(unread);
            if let Some(forwarding) = &mut self.parts_mut().sender.half_mut().forwarding {
                forwarding.report(side, piece, is_urgent);
            }
        }
        let Parts { sender, streams, .. } = self.parts_mut();
        Some((event.map(|unread| M::received(unread, streams)), sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        let mut parts = self.parts_mut();
        parts.settle_piece();
        parts.sender.half_mut().lanes[to.index()].as_mut().pop()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.parts().0.half().timers.next().filter(|_| !self.is_closed())
    }

    fn sender(&mut self) -> &mut Self::Sender {
        self.parts_mut().sender
    }

    fn fork(&self) -> Option<(Self, usize)> {
        /// The size of ciphers and other parts that are allocated separately.
        const PARTS: usize = 8 << 10;
        let (_, streams) = self.parts();
        let waiting: usize = streams.iter().map(ReadStream::waiting_bytes).sum();
        if waiting > MAX_FORKED_BYTES {
            return None;
        }
        // Bytes that were read can still be in the buffer.
        self.copy().map(|copy| (copy, size_of::<Self>() + 2 * waiting + PARTS))
    }

    fn is_established(&self) -> bool {
        StreamMachine::is_established(self)
    }

    fn is_closed(&self) -> bool {
        self.parts().0.half().closing.is_closed()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        let out: &Outgoing = self.parts().0.half().lanes[to.index()].as_ref();
        out.bytes()
    }

    fn is_paused(&self, from: Side) -> bool {
        self.parts().0.half().is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.parts().0.half().kept_bytes(from)
    }
}
