//! The toy's connection machine, which fulfils the contract of `worldwire_core::connection` in four
//! roles.
//!
//! Over TCP, the server's hello names the session. Frames follow: a `u16` length and a message.
//! Over UDP, every datagram has a header with two letters, the session and a number, followed by a
//! message. The message is "encrypted" with a key that was agreed over TCP.
//!
//! A relay forwards unchanged messages as the same bytes. Over UDP this ends once the relay injects
//! a message, because all later numbers are then higher.

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Connection as Machine, Decisions, Event, EventOf, Forward,
    Incoming, Input, Located, Outgoing, Piece, Relay, Sender as Sends, Timer, Timers,
};
use worldwire_core::{Error, Reader, Result, Side, Writer};

use crate::frame::{HEADER, LETTERS, MAGIC, Numbers, apply, frame, hello, key_in};
use crate::message::{Channel, Message};

/// How many datagrams can wait for the key.
const MAX_WAITING: usize = 256;
/// How long a client waits for the hello.
const SETUP: Duration = Duration::from_secs(10);

/// The role of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Is this side.
    Plays(Side),
    /// Watches both sides.
    Observer,
    /// Stands between the two sides.
    Relay,
}

/// Events that only the toy's connections report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A repeated datagram, which is ignored.
    Repeated(Side),
    /// The key for a session's datagrams, as sent over TCP.
    Key(u32, [u8; 4]),
}

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The server's hello.
    Hello,
    /// A message.
    Message(Channel),
}

impl Unit {
    /// How many bytes precede the message.
    fn head(self) -> usize {
        match self {
            Self::Hello => 0,
            Self::Message(Channel::Stream) => 2,
            Self::Message(Channel::Steps) => HEADER,
        }
    }
}

/// The hello, or a message.
#[derive(Clone, Debug)]
pub struct Received<'c> {
    /// The sender.
    pub side: Side,
    /// The kind of piece.
    pub unit: Unit,
    /// The message, decrypted.
    pub bytes: &'c [u8],
    /// The stream position of the piece, including the bytes that precede the message.
    pub offset: u64,
}

impl<'c> Piece<'c> for Received<'c> {
    fn side(&self) -> Side {
        self.side
    }

    fn bytes(&self) -> &'c [u8] {
        self.bytes
    }

    fn range(&self) -> core::ops::Range<u64> {
        self.offset..self.offset + (self.unit.head() + self.bytes.len()) as u64
    }

    fn is_message(&self) -> bool {
        self.unit != Unit::Hello
    }
}

/// A piece that was not reported or decided on yet.
#[derive(Clone, Debug)]
struct Unread {
    side: Side,
    unit: Unit,
    located: Located,
}

/// A connection in any role.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    streams: [Stream; 2],
    /// Datagrams that are not read yet, perhaps because the key is missing.
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

/// The sending half.
#[derive(Debug)]
pub struct Sender {
    role: Role,
    channel: Channel,
    session: Option<u32>,
    key: Option<[u8; 4]>,
    /// Output queues, by recipient.
    out: [Outgoing; 2],
    /// By recipient: the number of the next datagram, and how many datagrams the relay has
    /// injected.
    next: [u16; 2],
    own: [u16; 2],
    passes: [bool; 2],
    piece: Option<(Unread, Option<u16>)>,
    decisions: Decisions,
    timers: Timers,
    closing: Closing,
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
                sender.out[Side::Client.index()].push(hello);
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
        let sender = Sender {
            role,
            channel,
            session: None,
            key: None,
            out: [Outgoing::new(bounds), Outgoing::new(bounds)],
            next: [0; 2],
            own: [0; 2],
            passes: [false; 2],
            piece: None,
            decisions: Decisions::default(),
            timers: Timers::default(),
            closing: Closing::default(),
        };
        Self {
            sender,
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

    /// Carries out the decision about the last piece.
    fn settle(&mut self) {
        let Some((piece, number)) = self.sender.piece.take() else { return };
        let Unread { side, unit, located } = piece;
        let message = located.range.start + unit.head()..located.range.end;
        let bytes = || self.streams[side.index()].incoming.bytes(message).to_vec();
        if let Some(Some(bytes)) = self.sender.decisions.settle(bytes)
            && let Err(error) = self.sender.put(side.other(), unit, &bytes, number)
        {
            self.fault(side, error.at(located.offset));
        }
    }

    /// Reports a protocol violation.
    fn fault(&mut self, side: Side, error: Error) {
        let is_limit = matches!(error.kind(), worldwire_core::ErrorKind::Limit { .. });
        self.events.push_back(Event::Fault { side, error });
        match self.sender.role {
            Role::Relay if !is_limit => self.sender.passes[side.index()] = true,
            Role::Plays(_) | Role::Relay => self.sender.end(CloseReason::Fault),
            Role::Observer => {}
        }
        self.streams[side.index()].is_lost = self.sender.channel == Channel::Stream;
    }

    /// Reads the next piece of a stream. Returns false if there is none.
    fn advance(&mut self, side: Side) -> bool {
        let sender = &mut self.sender;
        let stream = &mut self.streams[side.index()];
        if stream.is_lost {
            let rest = stream.incoming.unread().to_vec();
            stream.incoming.drop_unread();
            if sender.passes[side.index()]
                && !rest.is_empty()
                && let Err(error) = sender.out[side.other().index()].append(&rest)
            {
                self.fault(side, error);
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
            sender.release();
        }
        if let Some((session, key)) = key {
            self.events.push_back(Event::News(News::Key(session, key)));
        }
        true
    }

    /// Reads a waiting datagram. Returns false if there is none, or no key.
    fn next_datagram(&mut self) -> bool {
        let Some(key) = self.sender.key else { return false };
        let Some((side, mut datagram)) = self.waiting.pop_front() else { return false };
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
            let out = &mut sender.out[side.other().index()];
            if out.check_room(datagram.len()).is_ok() {
                out.push(datagram.to_vec());
            }
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
        if self.streams.iter().all(|stream| stream.is_ended) {
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
            self.sender.piece = Some((piece.clone(), Some(number)));
            self.sender.decisions.ask();
        }
        let event = event.map(|Unread { side, unit, located }| {
            let message = located.range.start + unit.head()..located.range.end;
            let bytes = self.streams[side.index()].incoming.bytes(message);
            Received { side, unit, bytes, offset: located.offset }
        });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.settle();
        self.sender.out[to.index()].pop()
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
        self.sender.out[to.index()].bytes()
    }
}

impl Sender {
    fn is_established(&self) -> bool {
        match self.channel {
            Channel::Stream => self.session.is_some(),
            Channel::Steps => self.key.is_some() && self.session.is_some(),
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// Queues messages that were sent before the hello.
    fn release(&mut self) {
        for to in Side::BOTH {
            while let Some(message) = self.out[to.index()].release() {
                self.out[to.index()].push(message);
            }
        }
    }

    /// Queues a message in wire format. `number` is the number of a forwarded datagram.
    fn put(&mut self, to: Side, unit: Unit, message: &[u8], number: Option<u16>) -> Result<()> {
        let mut wire = Writer::new();
        match unit {
            Unit::Hello => wire.bytes(message),
            Unit::Message(Channel::Stream) => {
                let length = u16::try_from(message.len()).map_err(|_| {
                    Error::limit("bytes of a message", u16::MAX.into(), message.len() as u64)
                })?;
                wire.u16(length);
                wire.bytes(message);
            }
            Unit::Message(Channel::Steps) => {
                let own = self.own[to.index()];
                let number = match number {
                    Some(number) => number.wrapping_add(own),
                    None => self.next[to.index()],
                };
                self.next[to.index()] = number.wrapping_add(1);
                wire.bytes(&LETTERS);
                wire.u32(self.session.unwrap_or(0));
                wire.u16(number);
                let mut message = message.to_vec();
                apply(self.key.unwrap_or_default(), &mut message);
                wire.bytes(&message);
            }
        }
        let out = &mut self.out[to.index()];
        out.check_room(wire.as_bytes().len())?;
        match unit {
            Unit::Message(Channel::Stream) if self.session.is_none() => out.hold(wire.into_bytes()),
            _ => out.push(wire.into_bytes()),
        }
        Ok(())
    }

    /// Checks that the bytes are exactly one message of a side.
    fn check(&self, side: Side, message: &[u8]) -> Result<()> {
        let mut reader = Reader::new(message);
        let read = Message::decode(self.channel, side, &mut reader).and_then(|_| reader.end());
        read.map_err(|error| Error::value("one whole message", error.to_string()))
    }

    fn relays(&self) -> Result<()> {
        self.closing.check_open()?;
        match self.role {
            Role::Relay => Ok(()),
            _ => Err(Error::value("a relay", "another role")),
        }
    }
}

impl Sends for Sender {
    type Message<'m> = Message<'m>;

    fn send(&mut self, message: &Message<'_>) -> Result<()> {
        self.closing.check_open()?;
        let Role::Plays(own) = self.role else {
            return Err(Error::value("a client or a server", "another role"));
        };
        let bytes = message.to_bytes()?;
        self.check(own, &bytes)?;
        self.put(own.other(), Unit::Message(self.channel), &bytes, None)
    }

    fn close(&mut self) {
        self.end(CloseReason::Local);
    }
}

impl Relay for Sender {
    fn forward(&mut self, decision: Forward<'_>) -> Result<()> {
        self.relays()?;
        let checked = match (&self.piece, decision) {
            (_, Forward::AsIs) | (None, _) => Ok(()),
            (Some((piece, _)), _) if piece.unit == Unit::Hello => {
                Err(Error::value("a hello that is forwarded unchanged", "another decision"))
            }
            (Some((piece, _)), Forward::Instead(bytes)) => self.check(piece.side, bytes),
            (Some(_), Forward::Drop) => Ok(()),
        };
        let decided = self.decisions.decide(if checked.is_ok() { decision } else { Forward::AsIs });
        checked.and(decided)
    }

    fn inject(&mut self, to: Side, message: &[u8]) -> Result<()> {
        self.relays()?;
        let in_setup = self.piece.as_ref().is_some_and(|piece| piece.0.unit == Unit::Hello);
        if !self.is_established() || in_setup || self.passes[to.other().index()] {
            return Err(Error::value("a stream that can be read", "another one"));
        }
        self.check(to.other(), message)?;
        self.put(to, Unit::Message(self.channel), message, None)?;
        self.own[to.index()] = self.own[to.index()].wrapping_add(1);
        Ok(())
    }
}
