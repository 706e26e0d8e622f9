//! The toy's connection machine, which fulfils the contract of `worldwire_core::connection` in four
//! roles.
//!
//! Over TCP, the server's hello names the session. Frames follow: a `u16` length and a message.
//! Over UDP, every datagram has a header with two letters, the session and a number, followed by a
//! message. The message is "encrypted" with a key that was agreed over TCP.
//!
//! A relay forwards unchanged messages byte for byte. Over UDP, it does so only until it injects a
//! message, because all later numbers are then higher.

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as Machine, Event, EventOf, Incoming, Input, Timer,
};
use worldwire_core::{Error, Side};

pub use crate::event::{News, Received, Unit};
pub use crate::sender::{Role, Sender};

use crate::event::Unread;
use crate::frame::{HEADER, LETTERS, MAGIC, Numbers, apply, frame, hello, key_in};
use crate::message::Channel;
use crate::sender::Passage;

/// The maximum number of datagrams that wait for the key.
const MAX_WAITING: usize = 256;
/// How long a client waits for the hello.
const SETUP: Duration = Duration::from_secs(10);

/// A connection in any role.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    streams: [Stream; 2],
    /// Datagrams that have not been read yet, perhaps because the key is missing.
    waiting: VecDeque<(Side, Vec<u8>)>,
    events: VecDeque<Event<Unread, News>>,
}

/// One side's stream.
#[derive(Debug, Default)]
struct Stream {
    incoming: Incoming,
    seen: Numbers,
    /// Where a gap stopped reading, if it did.
    searching: Option<u64>,
    is_lost: bool,
    is_ended: bool,
}

impl Connection {
    /// A TCP connection. A server's hello names this session.
    pub fn stream(role: Role, session: u32, bounds: Bounds) -> Self {
        let mut connection = Self::new(role, Channel::Stream, bounds);
        let sender = &mut connection.sender;
        match role {
            Role::Plays(Side::Server) => {
                sender.session = Some(session);
                let hello = [MAGIC, session.to_le_bytes()].concat();
                sender.ways[Side::Client.index()].out.push(hello);
            }
            Role::Plays(Side::Client) => sender.timers.start(Timer::Setup, SETUP),
            Role::Observer | Role::Relay => {}
        }
        connection
    }

    /// The datagrams of a session. Observers and relays can be given the key later.
    pub fn datagrams(role: Role, session: Option<(u32, [u8; 4])>, bounds: Bounds) -> Self {
        let mut connection = Self::new(role, Channel::Steps, bounds);
        connection.sender.session = session.map(|(session, _)| session);
        connection.sender.key = session.map(|(_, key)| key);
        connection
    }

    fn new(role: Role, channel: Channel, bounds: Bounds) -> Self {
        Self {
            sender: Sender::new(role, channel, bounds),
            streams: Default::default(),
            waiting: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The session whose key is missing.
    pub fn waits_for(&self) -> Option<u32> {
        let waits = !self.waiting.is_empty() && self.sender.key.is_none();
        self.sender.session.filter(|_| waits)
    }

    /// Sets the key of the session.
    pub fn set_key(&mut self, key: [u8; 4]) {
        self.sender.key = Some(key);
    }

    /// Carries out the decision about the last piece and refills the queues.
    fn settle(&mut self) {
        self.settle_piece();
        Side::BOTH.into_iter().for_each(|from| self.fill(from));
    }

    /// Carries out the decision about the last piece.
    fn settle_piece(&mut self) {
        let streams = &self.streams;
        let settled = self.sender.forwarding.settle(|side, passage| {
            let Unread { unit, located, .. } = &passage.piece;
            let message = located.range.start + unit.head()..located.range.end;
            streams[side.index()].incoming.bytes(message).to_vec()
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues a side's bytes that may leave now.
    fn fill(&mut self, from: Side) {
        if self.sender.role != Role::Relay || self.sender.closing.is_closed() {
            return;
        }
        if let Err(error) = self.sender.fill(from) {
            self.fault(from, error.at(self.streams[from.index()].incoming.offset()));
        }
    }

    /// Reports a protocol violation.
    fn fault(&mut self, side: Side, error: Error) {
        let is_limit = matches!(error.kind(), worldwire_core::ErrorKind::Limit { .. });
        self.events.push_back(Event::Fault { side, error });
        match self.sender.role {
            Role::Relay if !is_limit => self.sender.forwarding.set_raw(side),
            Role::Plays(_) | Role::Relay => self.sender.end(CloseReason::Fault),
            Role::Observer => {}
        }
        self.streams[side.index()].is_lost = self.sender.channel == Channel::Stream;
    }

    /// Reads the next piece of a stream. Returns false if there is none.
    fn advance(&mut self, side: Side) -> bool {
        let is_datagrams = self.sender.channel == Channel::Steps;
        if self.is_paused(side) && !is_datagrams {
            let stream = &self.streams[side.index()];
            let unread = stream.incoming.unread().len();
            let (checked, at) =
                (self.sender.forwarding.check_unread(unread), stream.incoming.offset());
            return checked.map_err(|error| self.fault(side, error.at(at))).is_err();
        }
        let sender = &mut self.sender;
        let stream = &mut self.streams[side.index()];
        if stream.is_lost {
            let rest = stream.incoming.unread().to_vec();
            stream.incoming.drop_unread();
            if sender.role == Role::Relay && !rest.is_empty() {
                sender.forwarding.pass(side, None, rest);
                self.fill(side);
            }
            return false;
        }
        if sender.channel == Channel::Steps {
            return self.next_datagram();
        }
        let needs_hello = side == Side::Server && sender.session.is_none();
        let attempt = match needs_hello {
            true => stream
                .incoming
                .attempt(hello)
                .map(|read| read.map(|(session, located)| (Unit::Hello, Some(session), located))),
            false => stream.incoming.attempt(frame).map(|read| {
                read.map(|((), located)| (Unit::Message(Channel::Stream), None, located))
            }),
        };
        let (unit, session, located) = match attempt {
            Ok(None) => return false,
            Ok(Some(read)) => read,
            Err(error) => {
                self.fault(side, error);
                return true;
            }
        };
        if let Some(from) = stream.searching.take() {
            self.events.push_back(Event::Resync { side, skipped: from..located.offset });
        }
        let key = key_in(side, stream.incoming.bytes(located.range.clone()));
        self.events.push_back(Event::Received(Unread { side, unit, located }));
        if session.is_some() {
            sender.session = session;
            sender.timers.stop(Timer::Setup);
            sender.release_deferred();
        }
        if let Some((session, key)) = key {
            self.events.push_back(Event::News(News::Key(session, key)));
        }
        true
    }

    /// Reads a waiting datagram. Returns false if there is none, or no key.
    fn next_datagram(&mut self) -> bool {
        let Some(key) = self.sender.key else { return false };
        let next = self.waiting.iter().position(|(side, _)| !self.is_paused(*side));
        let next = next.and_then(|index| self.waiting.remove(index));
        let Some((side, mut datagram)) = next else { return false };
        let stream = &mut self.streams[side.index()];
        let number = u16::from_le_bytes([datagram[6], datagram[7]]);
        if !stream.seen.is_new(number) {
            self.events.push_back(Event::News(News::Repeated(side)));
            return true;
        }
        apply(key, &mut datagram[HEADER..]);
        stream.incoming.push(&datagram);
        let located = stream.incoming.advance(datagram.len());
        let unit = Unit::Message(Channel::Steps);
        self.events.push_back(Event::Received(Unread { side, unit, located }));
        true
    }

    /// Takes a datagram.
    fn datagram(&mut self, side: Side, datagram: &[u8]) {
        let stream = &mut self.streams[side.index()];
        let at = stream.incoming.end();
        let session = datagram.get(2..6).and_then(|bytes| bytes.try_into().ok());
        let session = session.map(u32::from_le_bytes).filter(|_| {
            datagram.starts_with(&LETTERS)
                && datagram.len() > HEADER
                && self.sender.channel == Channel::Steps
        });
        let known = self.sender.session.or(session);
        let error = match session {
            None => Error::malformed("a datagram of the toy", "another one"),
            Some(_) if session != known => Error::malformed("this session", "another one"),
            Some(_) if self.waiting.len() == MAX_WAITING => {
                self.waiting.clear();
                Error::limit("datagrams without a key", MAX_WAITING as u64, 257)
            }
            Some(_) => {
                self.sender.session = session;
                return self.waiting.push_back((side, datagram.to_vec()));
            }
        };
        self.fault(side, error.at(at));
        let sender = &mut self.sender;
        if sender.role == Role::Relay && !sender.closing.is_closed() {
            sender.forwarding.pass(side, None, datagram.to_vec());
            self.fill(side);
        }
    }

    /// Handles missing bytes.
    fn gap(&mut self, side: Side, length: u64) {
        while self.advance(side) {}
        let stream = &mut self.streams[side.index()];
        let (from, at) = (stream.incoming.offset(), stream.incoming.end());
        if stream.is_lost {
            return stream.incoming.skip(length);
        }
        self.events.push_back(Event::Gap { side, range: at..at.saturating_add(length) });
        if self.sender.role != Role::Observer {
            self.fault(side, Error::malformed("a stream without gaps", "a gap").at(at));
            return self.sender.end(CloseReason::Fault);
        }
        stream.incoming.skip(length);
        if self.sender.channel == Channel::Stream {
            stream.searching.get_or_insert(from);
            // The missing bytes may include the hello.
            if side == Side::Server {
                self.sender.session.get_or_insert(0);
            }
        }
    }

    /// Closes the connection once both streams have ended.
    fn finish(&mut self) {
        if self.sender.closing.is_closed() {
            return;
        }
        if let Role::Plays(own) = self.sender.role {
            if self.streams[own.other().index()].is_ended {
                self.sender.end(CloseReason::Remote);
            }
            return;
        }
        for side in Side::BOTH {
            let stream = &mut self.streams[side.index()];
            let torn = stream.incoming.torn("a whole frame").filter(|_| stream.is_ended);
            if let Some(error) = torn {
                self.fault(side, error);
                self.advance(side);
            }
        }
        let kept = Side::BOTH.map(|side| self.kept_bytes(side));
        if kept == [0, 0] && self.streams.iter().all(|stream| stream.is_ended) {
            if let Some((side, _)) = self.waiting.pop_front() {
                let count = self.waiting.len() + 1;
                let session = self.sender.session.unwrap_or(0);
                let wanted = format!("the key of session {session}");
                let error = Error::malformed(wanted, format!("none for {count} datagrams"));
                self.events.push_back(Event::Fault { side, error });
            }
            self.sender.end(CloseReason::Remote);
        }
    }
}

impl Machine for Connection {
    type News = News;
    type Received<'c> = Received<'c>;
    type Sender = Sender;

    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.sender.timers.set_now(now);
        self.settle();
        let stream = &mut self.streams[from.index()];
        if self.sender.closing.is_closed()
            || stream.is_ended
            || self.sender.role == Role::Plays(from)
        {
            return;
        }
        if self.events.is_empty() {
            stream.incoming.forget();
        }
        match input {
            Input::Bytes(bytes) if self.sender.channel == Channel::Stream => {
                stream.incoming.push(bytes);
            }
            Input::Bytes(_) => {
                let error = Error::malformed("datagrams", "a stream");
                self.fault(from, error.at(self.streams[from.index()].incoming.end()));
            }
            Input::Datagram(bytes) => self.datagram(from, bytes),
            Input::Gap(length) => self.gap(from, length),
            Input::End => stream.is_ended = true,
        }
    }

    fn timeout(&mut self, now: Duration) {
        self.sender.timers.set_now(now);
        self.settle();
        if let Some(timer) = self.sender.timers.passed() {
            self.sender.end(CloseReason::Timeout(timer));
        }
    }

    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Sender)> {
        self.settle();
        if self.events.is_empty() && !self.is_closed() {
            let any = Side::BOTH.into_iter().any(|side| self.advance(side));
            if !any && self.events.is_empty() {
                self.finish();
            }
        }
        let Some(event) = self.events.pop_front() else {
            return Some((Event::Closed(self.sender.closing.report()?), &mut self.sender));
        };
        if let (Event::Received(piece), Role::Relay) = (&event, self.sender.role) {
            let incoming = &self.streams[piece.side.index()].incoming;
            let number = match incoming.bytes(piece.located.range.clone()) {
                [_, _, _, _, _, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
                _ => 0,
            };
            let (side, passage) = (piece.side, Passage { piece: piece.clone(), number });
            self.sender.forwarding.report(side, passage, false);
        }
        let event = event.map(|Unread { side, unit, located }| {
            let message = located.range.start + unit.head()..located.range.end;
            let bytes = self.streams[side.index()].incoming.bytes(message);
            Received { side, unit, bytes, offset: located.offset }
        });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.settle_piece();
        self.sender.ways[to.index()].out.pop()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.sender.timers.next()
    }

    fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    fn is_established(&self) -> bool {
        self.sender.is_established()
    }

    fn is_closed(&self) -> bool {
        self.sender.closing.is_closed()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.sender.ways[to.index()].out.bytes()
    }

    fn is_paused(&self, from: Side) -> bool {
        self.sender.forwarding.is_paused(from, &self.sender.ways[from.other().index()].out)
            && self.sender.role == Role::Relay
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.sender.forwarding.kept_bytes(from, &self.sender.ways[from.other().index()].out)
    }
}
