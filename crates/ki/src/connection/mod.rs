//! The KI connection as a state machine without I/O: sessions, keep-alives, frames.
//!
//! In all four roles, a [`Connection`] follows the contract of [`worldwire_core::connection`],
//! which describes how to drive it. Specific to KI:
//!
//! * The server speaks first and offers a session. Either side may send once the client has
//!   accepted; messages sent earlier wait.
//! * A server may [`refresh`](Sender::refresh) the session. It may also ignore messages, with
//!   [`News::Ignored`], and keep those that arrive before the accept. It reports the kept ones out
//!   of order, after [`News::Established`].
//! * Keep-alives and their responses count towards the
//!   [`Bounds`](worldwire_core::connection::Bounds): if there is no room for one, the connection
//!   closes, because the other side sends requests without reading the responses.
//! * A datagram that does not consist of whole frames is a separate fault and closes nothing.
//! * [`RelayConfig`] describes how relays behave.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_core::connection::{Connection as _, Input};
//! use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig, SessionIds};
//!
//! let (now, epoch) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
//! let id = SessionIds::new().allocate().unwrap();
//! let mut server = Connection::server(ServerConfig::new(epoch).into(), id, now);
//! let mut client = Connection::client(ClientConfig::new(epoch).into(), now);
//!
//! // A driver without a network: each side receives the other's bytes.
//! for _ in 0..2 {
//!     while server.poll_event().is_some() {}
//!     while let Some(bytes) = server.poll_transmit(Side::Client) {
//!         client.input(now, Side::Server, Input::Bytes(&bytes));
//!     }
//!     while client.poll_event().is_some() {}
//!     while let Some(bytes) = client.poll_transmit(Side::Server) {
//!         server.input(now, Side::Client, Input::Bytes(&bytes));
//!     }
//! }
//! assert_eq!(client.session_id(), Some(id));
//! assert!(client.is_established() && server.is_established());
//! ```

mod config;
mod early;
mod event;
mod passing;
mod relay;
mod sender;
mod session;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Event, Parts, ReadStream as _, SendError, StreamMachine, Timer};
use worldwire_core::{Error, Result, Side};

pub use config::{
    ClientConfig, Common, Life, MAX_OBSERVED_BYTES, RelayConfig, ServerConfig, UnknownControl,
};
pub use event::{Ignored, News, Received, Unit};
pub use sender::Sender;
pub use session::{MAX_SESSIONS, SessionIds};

use crate::control::{Control, Opcode};
use crate::crypt::Salt;
pub use crate::crypt::observer::ObserverKeys;
use crate::crypt::stream::StreamKey;
use crate::frame::{control_in_frame, is_control, span_at};
use event::{PieceInfo, Unread};
use relay::{Passage, RelayState, Way};
use sender::Role;
use stream::{BreakOff, FrameSpan, Next, Stream};

/// A connection in one of four roles; see the [module](self).
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// The streams of both sides, as far as this role reads them, indexed by [`Side::index`].
    streams: [Stream; 2],
    events: VecDeque<Event<Unread, News>>,
    /// The frame whose messages are being reported.
    reading: Option<Reading>,
    /// Server: messages that arrived before the accept, and their total size in bytes.
    early: (Vec<Unread>, usize),
    /// Observer: whether a message has been read, even if session setup was not seen.
    has_read: bool,
    /// Observer: the keys that decrypted a stream.
    opened: Vec<StreamKey>,
}

/// A frame that is being split into pieces: a data frame with messages, or a single piece.
#[derive(Debug)]
struct Reading {
    side: Side,
    span: FrameSpan,
    /// The piece, if it is the whole frame.
    unit: Option<Unit>,
    /// The offset of the next message in the frame, and the number of messages before it.
    at: usize,
    index: usize,
}

impl Connection {
    /// Acts as a client and waits for the server's offer.
    #[must_use]
    pub fn client(config: Arc<ClientConfig>, now: Duration) -> Self {
        let (offer_time, says_hello) = (config.offer_time, config.says_hello);
        let mut connection = Self::new(Role::Client(config), now);
        connection.sender.half.timers.start(Timer::Setup, offer_time);
        if says_hello && let Err(error) = connection.sender.hello() {
            connection.parts_mut().refuse(Side::Server, error);
        }
        connection
    }

    /// Acts as a server and offers this session immediately. `session_id` comes from
    /// [`SessionIds`]; release it there when the connection has ended.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, session_id: u16, now: Duration) -> Self {
        let mut connection = Self::new(Role::Server(Arc::clone(&config)), now);
        if let Err(error) = connection.sender.offer(&config, session_id, None) {
            connection.parts_mut().refuse(Side::Client, error);
        }
        connection
    }

    /// Observes both sides.
    #[must_use]
    pub fn observer(keys: Arc<ObserverKeys>) -> Self {
        Self::new(Role::Observer(keys), Duration::ZERO)
    }

    /// Observes both sides of a connection that is already in progress. Each side is read from the
    /// first frame found.
    #[must_use]
    pub fn observer_from_the_middle(keys: Arc<ObserverKeys>) -> Self {
        let mut connection = Self::observer(keys);
        connection.streams.iter_mut().for_each(Stream::join);
        connection
    }

    /// Relays between a client and a server; see [`Forward`](worldwire_core::connection::Forward).
    /// The replacement for a message is a message as [`RawMessage`](crate::message::RawMessage)
    /// encodes it; for an unknown control message, it is a frame with another unknown control
    /// message.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let mut connection =
            Self::new(Role::Relay(Box::new(RelayState { config, is_datagrams: false })), now);
        connection.streams.iter_mut().for_each(|stream| stream.nonces = Some(Vec::new()));
        connection
    }

    /// For an observer: the session, and the keys that decrypted its streams, one for both sides or
    /// one for each.
    #[must_use]
    pub fn opened_with(&self) -> (Option<u16>, &[StreamKey]) {
        (self.sender.session_id(), &self.opened)
    }

    fn new(role: Role, now: Duration) -> Self {
        Self {
            sender: Sender::new(role, now),
            streams: Side::BOTH.map(Stream::new),
            events: VecDeque::new(),
            reading: None,
            early: (Vec::new(), 0),
            has_read: false,
            opened: Vec::new(),
        }
    }

    /// A command; see [`Sender::refresh`].
    pub fn refresh(&mut self, session_id: u16) -> Result<(), SendError> {
        self.sender.refresh(session_id)
    }

    /// A command; see [`Sender::set_access_level`].
    pub fn set_access_level(&mut self, level: u8) {
        self.sender.set_access_level(level);
    }

    /// See [`Sender::access_level`].
    #[must_use]
    pub fn access_level(&self) -> u8 {
        self.sender.access_level()
    }

    /// See [`Sender::session_id`].
    #[must_use]
    pub fn session_id(&self) -> Option<u16> {
        self.sender.session_id()
    }

    /// See [`Sender::salt`].
    #[must_use]
    pub fn salt(&self) -> Option<Salt> {
        self.sender.salt()
    }

    /// The outcome, or its default after [`refuse`](Parts::refuse).
    fn refuse_if<T: Default>(&mut self, side: Side, outcome: Result<T>) -> T {
        outcome.unwrap_or_else(|error| {
            self.parts_mut().refuse(side, error);
            T::default()
        })
    }

    /// Handles bytes from one side that cannot be read.
    fn fault(&mut self, side: Side, error: Error) {
        let stream = &mut self.streams[side.index()];
        let datagram = stream.drop_datagram();
        match &self.sender.half.role {
            Role::Client(_) | Role::Server(_) if datagram.is_none() => {
                return self.parts_mut().refuse(side, error);
            }
            Role::Observer(_) if datagram.is_none() => stream.search_on(),
            _ => {}
        }
        self.events.push_back(Event::Fault { side, error });
        self.pass_unread(side, datagram);
    }

    /// Reads everything that is complete before the buffer changes.
    fn read_up(&mut self, side: Side) {
        loop {
            while let Some(piece) = self.next_piece() {
                let piece = self.copied(piece);
                self.events.push_back(Event::Received(piece));
            }
            if !self.step(side) {
                break;
            }
        }
    }

    /// Reads the next part of a side's stream; `false` if there is none.
    fn step(&mut self, side: Side) -> bool {
        let max_early = self.sender.max_early_frame_bytes();
        match self.streams[side.index()].next(self.sender.max_frame_bytes(), max_early) {
            Next::Wait => return self.run_out(side),
            Next::Frame(frame) => self.frame(side, frame),
            Next::Datagram => self.pass(side, Passage::DatagramEnd, Vec::new()),
            Next::Encrypted => self.encrypted(side),
            Next::Resumed(skipped) if skipped.is_empty() => {}
            Next::Resumed(skipped) => {
                self.events.push_back(Event::Resync { side, skipped });
            }
            Next::Odd(error) => {
                self.events.push_back(Event::Fault { side, error });
            }
            Next::Fault(error) => self.fault(side, error),
        }
        true
    }

    /// Handles a stream whose received bytes were all read; `false` if more bytes may arrive.
    fn run_out(&mut self, side: Side) -> bool {
        let stream = &mut self.streams[side.index()];
        if let Some(BreakOff { error, wire }) = stream.break_off.take() {
            match self.pass_wire(side, wire) {
                true => self.fault(side, error),
                false => self.parts_mut().refuse(side, error),
            }
            return true;
        }
        if !stream.incoming.is_ended {
            return false;
        }
        let is_new = !stream.is_finished;
        if is_new && let Some(error) = stream.torn().filter(|_| self.sender.peer().is_none()) {
            // A relay forwards the rest; an observer gives up the stream.
            self.fault(side, error);
            if matches!(self.sender.half.role, Role::Observer(_)) {
                self.streams[side.index()].give_up();
            }
            return true;
        }
        if is_new {
            self.streams[side.index()].is_finished = true;
            self.pass_end(side);
        }
        is_new
    }

    /// Handles a stream that turns out to be encrypted.
    fn encrypted(&mut self, side: Side) {
        let session_id = self.sender.session_id();
        let stream = &mut self.streams[side.index()];
        match &mut self.sender.half.role {
            Role::Client(_) | Role::Server(_) => {
                let error = Error::malformed("the start of a frame, 0d f0", "other bytes");
                let error = error.at(stream.position());
                self.parts_mut().refuse(side, error);
            }
            Role::Observer(keys) => {
                if let Some(key) = stream.open(keys.for_session(session_id)) {
                    if !self.opened.contains(key) {
                        self.opened.push(*key);
                    }
                    return;
                }
                stream.give_up();
                let news = News::KeysNeeded { side, session_id };
                self.events.push_back(Event::News(news));
            }
            Role::Relay(_) => self.open_relayed(side),
        }
    }

    /// Handles a complete frame: acts on control messages and prepares its pieces for reporting.
    fn frame(&mut self, side: Side, span: FrameSpan) {
        let bytes = self.streams[side.index()].bytes(span.range.clone());
        let outcome = match is_control(bytes, span.head) {
            true => self.control(side, &span),
            false => self.data(side, &span),
        };
        let Err(error) = outcome else { return };
        let stream = &self.streams[side.index()];
        let start = stream.wire_of(span.range.start);
        let error = match error.offset() {
            Some(_) => error.based(start),
            None => error.at(start),
        };
        self.reading = None;
        self.pass_frame(side, &span);
        if self.sender.peer().is_some() {
            // The peer violated the protocol, even in a datagram.
            return self.parts_mut().refuse(side, error);
        }
        match &self.sender.half.role {
            // Its length was valid, so the next frame follows.
            Role::Observer(_) if !self.streams[side.index()].is_datagram() => {
                self.events.push_back(Event::Fault { side, error });
            }
            _ => self.fault(side, error),
        }
    }

    fn control(&mut self, side: Side, span: &FrameSpan) -> Result<()> {
        let bytes = self.streams[side.index()].bytes(span.range.clone());
        let control = control_in_frame(bytes, Some(side))?;
        let unit = Some(Unit::Control(control.opcode()));
        let handshake = match &control {
            Control::SessionAccept(accept) if side == Side::Client => {
                accept.crypto.as_ref().is_some_and(|block| block.0.len() > 1)
            }
            _ => false,
        };
        self.reading = Some(Reading { side, span: span.clone(), unit, at: 0, index: 0 });
        let established = self.sender.on_control(side, &control);
        if handshake && self.sender.peer().is_none() {
            self.streams.iter_mut().for_each(Stream::expect_encryption);
            self.sender.half.lanes.iter_mut().for_each(Way::expect_encryption);
        }
        // The piece is reported before its effects.
        if !matches!(established, Ok(None)) {
            let piece = self.next_piece();
            self.events.extend(piece.map(Event::Received));
        }
        if let Some(news) = established? {
            self.events.push_back(Event::News(news));
            let (early, _) = core::mem::take(&mut self.early);
            self.events.extend(early.into_iter().map(Event::Received));
        }
        Ok(())
    }

    fn data(&mut self, side: Side, span: &FrameSpan) -> Result<()> {
        let bytes = self.streams[side.index()].bytes(span.range.clone());
        let (mut at, mut count) = (span.head.body(), 0);
        // A message that does not fit invalidates the whole frame.
        while let Some(message) = span_at(bytes, span.head, at, count)? {
            (at, count) = (message.range.end, count + 1);
        }
        let unit = (count == 0).then_some(Unit::Empty);
        let at = span.head.body();
        self.reading = Some(Reading { side, span: span.clone(), unit, at, index: 0 });
        if count > 0 {
            self.has_read = true;
            self.sender.on_message();
        }
        Ok(())
    }

    /// The next piece of the current frame.
    fn next_piece(&mut self) -> Option<Unread> {
        let Reading { side, span, unit, at, index } = self.reading.take()?;
        let stream = &self.streams[side.index()];
        let frame = stream.bytes(span.range.clone());
        let (unit, message, is_last) = match unit {
            Some(Unit::Empty) => (Unit::Empty, at..at, true),
            Some(unit) => (unit, span.head.body()..frame.len(), true),
            None => {
                let message = span_at(frame, span.head, at, index).ok()??;
                let unit = Unit::Message { service: message.service, order: message.order };
                let is_last = frame.len().saturating_sub(message.range.end) <= 1;
                (unit, message.range, is_last)
            }
        };
        // The frame's head belongs to the first message, and its trailer to the last.
        let start = if index == 0 { 0 } else { message.start };
        let end = if is_last { frame.len() } else { message.end };
        let (from, to) = (span.range.start + start, span.range.start + end);
        let info = PieceInfo {
            side,
            unit,
            head: span.head,
            bytes: from..to,
            message: message.start - start..message.end - start,
            range: stream.wire_of(from)..stream.wire_of(to),
            encrypted: stream.is_encrypted(),
            salt: self.sender.salt,
            is_last,
            is_datagram: stream.is_datagram(),
        };
        if !is_last {
            let (at, index) = (message.end, index + 1);
            self.reading = Some(Reading { side, span, unit: None, at, index });
        }
        Some(Unread { info, copy: None })
    }

    /// Copies the bytes of a piece, so that the buffer may drop them.
    fn copied(&self, mut piece: Unread) -> Unread {
        let PieceInfo { side, bytes, .. } = &piece.info;
        piece.copy.get_or_insert_with(|| self.streams[side.index()].bytes(bytes.clone()).to_vec());
        piece
    }
}

impl StreamMachine for Connection {
    const PROTOCOL: &'static str = "KI";

    type News = News;
    type Received<'c> = Received<'c>;
    type Unread = Unread;
    type Sender = Sender;
    type Stream = Stream;

    fn parts(&self) -> (&Sender, &[Stream; 2]) {
        (&self.sender, &self.streams)
    }

    fn parts_mut(&mut self) -> Parts<'_, Self> {
        let Self { sender, streams, events, .. } = self;
        Parts { sender, streams, events }
    }

    fn read(&mut self, side: Side) -> bool {
        let has_read = self.step(side);
        self.read_rest();
        has_read
    }

    fn read_rest(&mut self) -> bool {
        let piece = self.next_piece();
        self.events.extend(piece.map(Event::Received));
        !self.events.is_empty()
    }

    fn push(&mut self, from: Side, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut rest = self.streams[from.index()].push(bytes);
        while !rest.is_empty() {
            self.read_up(from);
            rest = self.streams[from.index()].push(rest);
        }
        self.sender.on_traffic();
        self.on_relayed_input(from, false);
    }

    fn push_datagram(&mut self, from: Side, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let resumed = self.streams[from.index()].push_datagram(bytes);
        self.sender.on_traffic();
        if let Some(skipped) = resumed {
            self.events.push_back(Event::Resync { side: from, skipped });
        }
        self.on_relayed_input(from, true);
    }

    fn gap(&mut self, side: Side, length: u64) {
        let index = side.index();
        if !matches!(self.sender.half.role, Role::Observer(_)) {
            let error =
                Error::malformed("a stream without gaps", format!("a gap of {length} bytes"));
            let error = error.at(self.streams[index].end());
            self.streams[index].break_off.get_or_insert(BreakOff { error, wire: None });
            return;
        }
        // First report everything that was complete before the gap.
        self.read_up(side);
        let stream = &mut self.streams[index];
        let at = stream.end();
        if !stream.is_searching() && !stream.is_over() {
            let gap = Event::Gap { side, range: at..at.saturating_add(length) };
            self.events.push_back(gap);
        }
        if let Err(error) = stream.skip(length) {
            stream.give_up();
            let error = error.at(at);
            self.events.push_back(Event::Fault { side, error });
        }
    }

    fn conclude(&mut self, _: bool) -> bool {
        false
    }

    fn beat(&mut self) {
        let outcome = self.sender.beat();
        self.refuse_if(self.sender.peer().unwrap_or(Side::Client), outcome);
    }

    fn admit(&mut self, unread: Unread) -> Option<Unread> {
        self.admit_piece(unread)
    }

    fn in_transit(&self, unread: &Unread) -> (Side, Passage, bool) {
        let piece = unread.info.clone();
        let is_urgent =
            matches!(piece.unit, Unit::Control(Opcode::KeepAlive | Opcode::KeepAliveRsp));
        (piece.side, Passage::Piece(piece), is_urgent)
    }

    fn range(piece: &Passage) -> Range<usize> {
        match piece {
            Passage::Piece(piece) => piece.bytes.clone(),
            _ => 0..0,
        }
    }

    fn received(unread: Unread, streams: &mut [Stream; 2]) -> Received<'_> {
        let Unread { info, copy } = unread;
        let stream = &mut streams[info.side.index()];
        let bytes = match copy {
            None => stream.incoming.bytes(info.bytes.clone()),
            Some(copy) => {
                stream.reported_copy = copy;
                &stream.reported_copy
            }
        };
        info.received(bytes)
    }

    fn is_established(&self) -> bool {
        let is_observer = matches!(self.sender.half.role, Role::Observer(_));
        self.sender.is_established() || (is_observer && self.has_read)
    }

    fn copy(&self) -> Option<Self> {
        let is_idle = self.events.is_empty() && self.reading.is_none() && self.early.0.is_empty();
        let sender = self.sender.observing().filter(|_| is_idle)?;
        Some(Self {
            sender,
            streams: self.streams.clone(),
            events: VecDeque::new(),
            reading: None,
            early: (Vec::new(), 0),
            has_read: self.has_read,
            opened: self.opened.clone(),
        })
    }
}
