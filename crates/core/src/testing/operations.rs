//! Drives connection machines with lists of operations, for fuzz targets. Checks every promise of
//! the contract in [`connection`](crate::connection) that can be checked from outside.

mod list;
mod seeds;
mod tiling;

use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;

use crate::Side;
use crate::connection::{
    Bounds, Connection, Decision, Event, EventOf, Forward, HoldId, Input, Piece, Sender,
};

pub use list::{Command, Operation, list, sampler};
pub use seeds::{Role, conversation};

use list::Operations;
use tiling::Tiling;

/// The family-specific parts of a run.
pub trait Family {
    /// The connection under test.
    type Connection: Connection<Sender: Forward>;

    /// The bounds of the connection.
    fn bounds(&self) -> Bounds;

    /// Makes a side's message from these bytes; see [`sampler`]. The result may be invalid.
    fn message(&mut self, from: Side, data: &[u8]) -> Vec<u8>;

    /// Sends a message made from these bytes. The connection may refuse it.
    fn send(&mut self, sender: &mut SenderOf<Self>, data: &[u8]);

    /// Injects a message made from these bytes, in families that can. The connection may refuse it.
    fn inject(&mut self, _sender: &mut SenderOf<Self>, _to: Side, _data: &[u8]) {}

    /// Receives every command before it is carried out, and may issue commands that only this
    /// family has.
    fn before(&mut self, _sender: &mut SenderOf<Self>, _command: Command<'_>) {}

    /// Converts a side's plaintext to wire bytes, by encrypting it if there is a cipher.
    fn wire(&mut self, _side: Side, _bytes: &mut Vec<u8>) {}

    /// Makes a datagram from its content.
    fn datagram(&mut self, data: &[u8]) -> Vec<u8> {
        data.to_vec()
    }

    /// Receives every event, to check promises of the family.
    fn watch(&mut self, _event: &EventOf<'_, Self::Connection>) {}

    /// Receives everything that is transmitted to a side.
    fn transmitted(&mut self, _to: Side, _bytes: &[u8]) {}

    /// Whether the pieces of a stream are reported in order and without omissions. Otherwise they
    /// must still tile the stream, together with the ranges that the next two methods return.
    fn is_in_order(&self) -> bool {
        true
    }

    /// The range of a stream that the connection skipped, if this event reports one.
    fn skipped(&self, _news: &<Self::Connection as Connection>::News) -> Option<Part> {
        None
    }

    /// The ranges that the connection keeps for later or has dropped.
    fn kept(&self, _connection: &Self::Connection) -> Vec<Part> {
        Vec::new()
    }
}

/// The sending half of a family's connection.
pub type SenderOf<F> = <<F as Family>::Connection as Connection>::Sender;

/// A range of a side's stream.
pub type Part = (Side, Range<u64>);

/// Drives `connection` through the operations that `data` encodes, ends both streams, and returns
/// statistics.
///
/// # Panics
/// If a promise is broken: [`Event::Closed`] is the last event and occurs once; a closed connection
/// does nothing; pieces tile their stream and lie within the received bytes; `queued_bytes` agrees
/// with the results of `poll_transmit` and stays within the bounds; time-outs and events are
/// finite.
pub fn run<F: Family>(connection: F::Connection, data: &[u8], family: &mut F) -> Statistics {
    let mut machine = Machine {
        connection,
        family,
        now: Duration::ZERO,
        is_lazy: false,
        on_piece: VecDeque::new(),
        held: VecDeque::new(),
        arrived: [0; 2],
        next: [0; 2],
        is_excused: [false; 2],
        tiling: Default::default(),
        is_over: false,
        is_undecided: false,
        events: 0,
        inputs: 0,
        seen: Statistics::default(),
    };
    Operations(data).for_each(|operation| machine.apply(operation));
    machine.finish()
}

/// Statistics of a [`run`], to check that seeds reach deep states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of pieces received.
    pub pieces: u64,
    /// The number of those that are messages.
    pub messages: u64,
    /// The number of faults.
    pub faults: u64,
    /// The number of bytes transmitted.
    pub transmitted: u64,
}

/// The number of bytes that a machine may queue for setup beyond the bounds on messages, for
/// example TERA's two keys.
const MAX_SETUP_BYTES: usize = 512;

/// A machine and everything known about it from outside.
struct Machine<'f, 'd, F: Family> {
    connection: F::Connection,
    family: &'f mut F,
    now: Duration,
    is_lazy: bool,
    on_piece: VecDeque<Command<'d>>,
    /// The pieces that a relay holds.
    held: VecDeque<HoldId>,
    /// The received length of each stream, including gaps.
    arrived: [u64; 2],
    /// The offset of each side's next piece.
    next: [u64; 2],
    /// Whether other bytes may precede it.
    is_excused: [bool; 2],
    tiling: [Tiling; 2],
    is_over: bool,
    /// Whether a decision may take effect at the next call.
    is_undecided: bool,
    events: u64,
    inputs: u64,
    seen: Statistics,
}

/// Carries out a command. The connection may refuse it.
fn command<F: Family>(
    family: &mut F,
    held: &mut VecDeque<HoldId>,
    sender: &mut SenderOf<F>,
    command: Command<'_>,
) {
    family.before(sender, command);
    // Messages that the other side sends must be refused.
    let mut message = |data: &[u8]| {
        let from = if data.len() & 1 == 0 { Side::Client } else { Side::Server };
        family.message(from, data)
    };
    let _ = match command {
        Command::Send(data) => return family.send(sender, data),
        Command::Inject(to, data) => return family.inject(sender, to, data),
        Command::Close => return sender.close(),
        Command::AsIs => sender.forward(Decision::AsIs),
        Command::Drop => sender.forward(Decision::Drop),
        Command::Instead(data) => sender.forward(Decision::instead(message(data))),
        Command::Hold => sender.hold().map(|id| held.push_back(id)),
        Command::Release(data) => {
            let index = data.first().map_or(0, |first| usize::from(*first));
            let Some(id) = held.remove(index % held.len().max(1)) else { return };
            let decision = match data {
                [] | [_] | [_, 0, ..] => Decision::AsIs,
                [_, 1, ..] => Decision::Drop,
                [_, _, rest @ ..] => Decision::instead(message(rest)),
            };
            let may_be_refused = decision != Decision::AsIs;
            let released = sender.release(id, decision);
            if released.is_err() && may_be_refused {
                held.push_back(id);
            }
            released
        }
    };
}

impl<'d, F: Family> Machine<'_, 'd, F> {
    fn apply(&mut self, operation: Operation<'d>) {
        self.inputs += 1;
        match operation {
            Operation::Bytes(side, bytes) => {
                let mut bytes = bytes.to_vec();
                self.family.wire(side, &mut bytes);
                self.input(side, Input::Bytes(&bytes));
            }
            Operation::Datagram(side, bytes) => {
                let bytes = self.family.datagram(bytes);
                self.input(side, Input::Datagram(&bytes));
            }
            Operation::Gap(side, length) => self.input(side, Input::Gap(length)),
            Operation::End(side) => self.input(side, Input::End),
            Operation::Wait(time) => {
                self.now = self.now.saturating_add(time);
                self.time_out();
            }
            Operation::Timeout => {
                self.now = self.connection.poll_timeout().unwrap_or(self.now).max(self.now);
                self.time_out();
            }
            Operation::Now(now) => {
                command(self.family, &mut self.held, self.connection.sender(), now);
            }
            Operation::OnPiece(later) => return self.on_piece.push_back(later),
            Operation::Poll(most) => {
                let _ = (0..most).all(|_| self.poll());
                return;
            }
            Operation::Transmit(to, most) => return self.transmit(to, usize::from(most)),
            Operation::Lazy(lazy) => self.is_lazy = lazy,
        }
        if !matches!(operation, Operation::Now(_) | Operation::Lazy(_)) {
            self.is_undecided = false;
        }
        if !self.is_lazy {
            self.drain();
        }
    }

    fn input(&mut self, side: Side, input: Input<'_>) {
        let length = match input {
            Input::Bytes(bytes) | Input::Datagram(bytes) => bytes.len() as u64,
            Input::Gap(length) => length,
            Input::End => 0,
        };
        let arrived = &mut self.arrived[side.index()];
        *arrived = arrived.saturating_add(length);
        self.connection.input(self.now, side, input);
    }

    /// Handles passed deadlines, as a driver would, until the next one lies in the future.
    fn time_out(&mut self) {
        for _ in 0..16 {
            self.connection.timeout(self.now);
            if self.connection.poll_timeout().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("endless time-outs at {:?}", self.now);
    }

    fn drain(&mut self) {
        // Transmitting makes room, so a relay may continue.
        let mut moved = true;
        while core::mem::take(&mut moved) {
            while self.poll() {
                moved = true;
            }
            for side in Side::BOTH {
                let before = self.seen.transmitted;
                self.transmit(side, usize::MAX);
                moved |= self.seen.transmitted > before;
            }
        }
    }

    /// Polls for one event; false if there is none.
    fn poll(&mut self) -> bool {
        self.is_undecided = false;
        let Some((event, sender)) = self.connection.poll() else { return false };
        assert!(!self.is_over, "{event:?} after Closed");
        self.family.watch(&event);
        self.events += 1;
        let all = self.arrived.iter().fold(0, |all: u64, arrived| all.saturating_add(*arrived));
        let most = all.saturating_add(self.inputs.saturating_mul(8)).saturating_add(64);
        assert!(self.events <= most, "endless events: {event:?}");
        let mut is_piece = false;
        let mut is_closed = false;
        match &event {
            Event::Received(piece) => {
                is_piece = true;
                let (side, range) = (piece.side(), piece.range());
                let (next, arrived) = (self.next[side.index()], self.arrived[side.index()]);
                let is_excused = core::mem::take(&mut self.is_excused[side.index()]);
                let tiles = range.start == next || (is_excused && range.start > next);
                assert!(tiles || !self.family.is_in_order(), "{event:?} does not begin at {next}");
                assert!(range.start < range.end, "{event:?} has an empty range");
                assert!(range.end <= arrived, "{event:?} ends after byte {arrived}");
                assert!(!piece.bytes().is_empty(), "{event:?} has no bytes");
                self.next[side.index()] = range.end;
                self.tiling[side.index()].cover(range);
                self.seen.pieces += 1;
                self.seen.messages += u64::from(piece.is_message());
            }
            Event::Gap { side, range } => {
                let arrived = self.arrived[side.index()];
                assert!(range.start <= range.end && range.end <= arrived, "{event:?}");
                self.tiling[side.index()].excuse(range.clone());
                self.is_excused[side.index()] = true;
            }
            Event::Resync { side, skipped } => {
                let next = &mut self.next[side.index()];
                assert!(skipped.start <= skipped.end, "{event:?} has a reversed range");
                assert!(skipped.end >= *next, "{event:?} ends before {next}");
                *next = skipped.end;
                self.tiling[side.index()].excuse(skipped.clone());
                self.is_excused[side.index()] = false;
            }
            Event::Fault { side, error } => {
                let at = error.offset().unwrap_or(0);
                let tiling = &mut self.tiling[side.index()];
                tiling.excuse(at..at);
                // Offsets in a separate layer are not stream offsets.
                tiling.excuse(tiling.end()..self.arrived[side.index()]);
                self.is_excused[side.index()] = true;
                self.seen.faults += 1;
            }
            Event::Closed(_) => is_closed = true,
            Event::News(news) => {
                if let Some((side, range)) = self.family.skipped(news) {
                    self.tiling[side.index()].cover(range);
                }
            }
        }
        if is_piece && let Some(later) = self.on_piece.pop_front() {
            command(self.family, &mut self.held, sender, later);
        }
        drop(event);
        self.is_undecided = is_piece;
        if is_closed {
            self.is_over = true;
            assert!(self.connection.is_closed(), "Closed was reported for an open connection");
            assert_eq!(self.connection.poll_timeout(), None, "a closed connection has a deadline");
        }
        true
    }

    fn transmit(&mut self, to: Side, most: usize) {
        for _ in 0..most {
            let before = self.connection.queued_bytes(to);
            let written = self.connection.poll_transmit(to);
            let after = self.connection.queued_bytes(to);
            let length = written.as_ref().map_or(0, Vec::len);
            self.family.transmitted(to, written.as_deref().unwrap_or_default());
            // A decision about a piece may have queued more.
            if !core::mem::take(&mut self.is_undecided) {
                assert_eq!(before, after + length, "queued bytes before and after a write");
            }
            let bound = self.family.bounds().queued_bytes.saturating_add(MAX_SETUP_BYTES);
            assert!(before.max(after) <= bound, "{before} bytes are queued; the bound is {bound}");
            self.seen.transmitted += length as u64;
            if written.is_none() {
                let waits = !self.connection.is_established() || self.connection.is_closed();
                assert!(after == 0 || waits, "{after} bytes are queued but none are written");
                return;
            }
        }
    }

    fn finish(mut self) -> Statistics {
        self.is_lazy = false;
        for side in Side::BOTH {
            self.apply(Operation::End(side));
        }
        // Held pieces keep the streams open.
        let mut releases = self.inputs;
        while Side::BOTH.into_iter().any(|side| self.connection.kept_bytes(side) > 0) {
            if self.connection.is_closed() || releases == 0 {
                break;
            }
            releases -= 1;
            self.apply(Operation::Now(Command::Release(&[0])));
        }
        assert!(
            self.connection.is_closed(),
            "the connection is open after both streams have ended"
        );
        assert!(self.is_over, "the connection closed without reporting it");
        for side in Side::BOTH {
            self.apply(Operation::Bytes(side, &[0; 16]));
        }
        self.apply(Operation::Wait(Duration::from_secs(1 << 20)));
        if !self.family.is_in_order() {
            for (side, range) in self.family.kept(&self.connection) {
                self.tiling[side.index()].cover(range);
            }
            self.tiling.iter_mut().for_each(Tiling::check);
        }
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;
    use crate::Error;
    use crate::connection::{CloseReason, Closing, Outgoing, SendError};

    /// A test family that echoes single-byte messages and can break promises.
    #[derive(Debug, Default)]
    struct Echo {
        sender: EchoSender,
        heard: VecDeque<u8>,
        offset: u64,
        breaks: Option<Promise>,
    }

    #[derive(Debug, Default)]
    struct EchoSender {
        out: Outgoing,
        closing: Closing,
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Promise {
        ClosedOnce,
        Tiling,
        QueuedBytes,
        Ending,
    }

    #[derive(Debug)]
    struct Heard([u8; 1], Range<u64>);

    impl<'c> Piece<'c> for Heard {
        fn side(&self) -> Side {
            Side::Client
        }

        fn bytes(&self) -> &'c [u8] {
            &[0]
        }

        fn range(&self) -> Range<u64> {
            self.1.clone()
        }

        fn is_message(&self) -> bool {
            self.0 != [0]
        }
    }

    impl Sender for EchoSender {
        type Message<'m> = [u8];

        fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
            self.closing.check_open()?;
            self.out.check_room(message.len()).map_err(SendError::QueueFull)?;
            self.out.push(message.to_vec());
            Ok(())
        }

        fn close(&mut self) {
            self.closing.close(CloseReason::Local);
        }
    }

    impl Forward for EchoSender {
        fn forward(&mut self, _: Decision<'_>) -> Result<(), SendError> {
            Err(SendError::Role("a relay"))
        }

        fn hold(&mut self) -> Result<HoldId, SendError> {
            Err(SendError::Role("a relay"))
        }

        fn release(&mut self, _: HoldId, _: Decision<'_>) -> Result<(), SendError> {
            Err(SendError::Role("a relay"))
        }
    }

    impl Connection for Echo {
        type News = Error;
        type Received<'c> = Heard;
        type Sender = EchoSender;

        fn input(&mut self, _: Duration, from: Side, input: Input<'_>) {
            match input {
                _ if self.sender.closing.is_closed() => {}
                Input::Bytes(bytes) if from == Side::Client => self.heard.extend(bytes),
                Input::End if from == Side::Client && self.breaks != Some(Promise::Ending) => {
                    self.sender.closing.close(CloseReason::Remote);
                }
                _ => {}
            }
        }

        fn timeout(&mut self, _: Duration) {}

        fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut EchoSender)> {
            if let Some(heard) = self.heard.pop_front() {
                let range = self.offset..self.offset + 1;
                self.offset = range.end + u64::from(self.breaks == Some(Promise::Tiling));
                return Some((Event::Received(Heard([heard], range)), &mut self.sender));
            }
            if self.breaks == Some(Promise::ClosedOnce) && self.is_closed() {
                return Some((Event::Closed(CloseReason::Local), &mut self.sender));
            }
            Some((Event::Closed(self.sender.closing.report()?), &mut self.sender))
        }

        fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
            if to == Side::Server { None } else { self.sender.out.pop() }
        }

        fn poll_timeout(&self) -> Option<Duration> {
            None
        }

        fn sender(&mut self) -> &mut EchoSender {
            &mut self.sender
        }

        fn is_established(&self) -> bool {
            true
        }

        fn is_closed(&self) -> bool {
            self.sender.closing.is_closed()
        }

        fn queued_bytes(&self, to: Side) -> usize {
            let wrong = usize::from(self.breaks == Some(Promise::QueuedBytes));
            if to == Side::Server { 0 } else { self.sender.out.bytes() << wrong }
        }
    }

    struct EchoFamily;

    impl Family for EchoFamily {
        type Connection = Echo;

        fn bounds(&self) -> Bounds {
            Bounds::default()
        }

        fn message(&mut self, _: Side, data: &[u8]) -> Vec<u8> {
            data.to_vec()
        }

        fn send(&mut self, sender: &mut EchoSender, data: &[u8]) {
            let _ = sender.send(data);
        }

        fn wire(&mut self, _: Side, bytes: &mut Vec<u8>) {
            bytes.iter_mut().for_each(|byte| *byte ^= 1);
        }
    }

    fn play(breaks: Option<Promise>, operations: &[Operation<'_>]) -> Statistics {
        let sender = EchoSender { out: Outgoing::new(Bounds::default()), ..EchoSender::default() };
        let connection = Echo { sender, breaks, ..Echo::default() };
        run(connection, &list(operations), &mut EchoFamily)
    }

    const TALK: [Operation<'static>; 4] = [
        Operation::OnPiece(Command::Send(b"twelve bytes")),
        Operation::Bytes(Side::Client, &[1, 2, 3]),
        Operation::Now(Command::Send(b"five.")),
        Operation::Wait(Duration::from_secs(1)),
    ];

    #[test]
    fn a_machine_that_follows_the_contract_passes() {
        let seen = Statistics { pieces: 3, messages: 2, faults: 0, transmitted: 17 };
        assert_eq!(play(None, &TALK), seen);
        let lazy = [&[Operation::Lazy(true)], &TALK[..], &[Operation::Poll(1)]].concat();
        assert_eq!(play(None, &lazy), seen);
        let closed = [Operation::Now(Command::Close), TALK[1]];
        assert_eq!(play(None, &closed), Statistics::default());
    }

    #[test]
    #[should_panic(expected = "after Closed")]
    fn closed_is_reported_once() {
        play(Some(Promise::ClosedOnce), &TALK);
    }

    #[test]
    #[should_panic(expected = "does not begin at 1")]
    fn pieces_tile() {
        play(Some(Promise::Tiling), &TALK);
    }

    #[test]
    #[should_panic(expected = "queued bytes before and after a write")]
    fn queued_bytes_agree() {
        play(Some(Promise::QueuedBytes), &TALK);
    }

    #[test]
    #[should_panic(expected = "the connection is open after both streams have ended")]
    fn streams_end() {
        play(Some(Promise::Ending), &TALK);
    }
}
