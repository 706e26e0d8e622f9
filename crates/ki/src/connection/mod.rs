//! The connection as a state machine, without any IO.
//!
//! A [`Connection`] plays the client, plays the server, or watches both. Bytes and time come in as
//! arguments; events, bytes to send and deadlines come out.
//!
//! Its methods are of four kinds:
//!
//! * **inputs**: [`receive`](Connection::receive), [`datagram`](Connection::datagram),
//!   [`gap`](Connection::gap), [`end`](Connection::end), [`timeout`](Connection::timeout);
//! * **commands**: [`send`](Connection::send), [`refresh`](Connection::refresh),
//!   [`close`](Connection::close);
//! * **outputs**: [`poll_event`](Connection::poll_event) and
//!   [`poll_transmit`](Connection::poll_transmit) until both say `None`, then
//!   [`poll_timeout`](Connection::poll_timeout), after every input and command;
//! * **getters**: the rest.
//!
//! Time is a [`Duration`] since whatever moment the driver counts from; it must not run backwards.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig, SessionIds};
//!
//! let (now, epoch) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
//! let id = SessionIds::new().allocate().unwrap();
//! let mut server = Connection::server(ServerConfig::new(epoch).into(), id, now);
//! let mut client = Connection::client(ClientConfig::new(epoch), now);
//!
//! // A driver with no network: what one side sends, the other receives.
//! for _ in 0..2 {
//!     while server.poll_event().is_some() {}
//!     while let Some(bytes) = server.poll_transmit() {
//!         client.receive(Side::Server, now, &bytes);
//!     }
//!     while client.poll_event().is_some() {}
//!     while let Some(bytes) = client.poll_transmit() {
//!         server.receive(Side::Client, now, &bytes);
//!     }
//! }
//! assert_eq!(client.session_id(), Some(id));
//! assert!(client.is_established() && server.is_established());
//! ```

mod active;
mod config;
mod event;
mod heartbeat;
mod session;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Result, Side};

pub use config::{ClientConfig, Common, Life, ServerConfig, UnknownControl};
pub use event::{CloseReason, Event, Ignored, Received, Timer, Unit};
pub use session::{MOST_SESSIONS, SessionIds};

use crate::control::Control;
use crate::crypt::login::Salt;
use crate::crypt::stream::StreamKey;
use crate::frame::{FrameHead, control_in_frame, is_control, spans};
use crate::message::RawMessage;
use active::Active;
use event::FrameSpan;
use stream::{Next, Stream};

/// A connection, seen from one of three roles.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// What each side sends, as far as this role reads it; by [`Side::index`].
    streams: [Stream; 2],
    /// The session that was offered last.
    salt: Option<Salt>,
    events: VecDeque<Pending>,
    /// The bytes of a piece that is told long after its frame came.
    told: Vec<u8>,
    now: Duration,
    closed: bool,
}

/// Who a connection is.
#[derive(Debug)]
enum Role {
    Client(Box<Active>, ClientConfig),
    Server(Box<Active>, Arc<ServerConfig>),
    Observer { keys: Arc<ObserverKeys>, handshake: bool },
}

/// What an observer may have been given to read encrypted connections with.
#[derive(Clone, Debug, Default)]
pub struct ObserverKeys {
    /// Keys with the session they belong to, if that is known.
    pub streams: Vec<(Option<u16>, StreamKey)>,
}

/// The most bytes of a frame that an observer takes.
pub const MOST_OBSERVED_BYTES: u64 = 64 << 20;

/// An event that is not told yet; pieces are still in the buffer of their stream.
#[derive(Debug)]
enum Pending {
    Received(Piece),
    Held(HeldFrame, Option<Ignored>),
    Ignored(Piece, Ignored),
    Established { session_id: u16, previous: Option<u16> },
    Gap { side: Side, range: Range<u64> },
    Resync { side: Side, skipped: Range<u64> },
    KeysNeeded { side: Side },
    Fault { side: Side, error: Error },
    Closed(CloseReason),
}

/// A piece of a stream: see [`Received`].
#[derive(Clone, Debug)]
struct Piece {
    side: Side,
    unit: Unit,
    bytes: Range<usize>,
    message: Range<usize>,
    range: Range<u64>,
    encrypted: bool,
    salt: Option<Salt>,
}

/// A piece that waits for its session, with its bytes.
#[derive(Debug)]
struct HeldFrame {
    piece: Piece,
    bytes: Vec<u8>,
}

impl Connection {
    /// Plays a client: waits for the server's offer.
    #[must_use]
    pub fn client(config: ClientConfig, now: Duration) -> Self {
        let active = Active::new(now.saturating_add(config.offer_time));
        Self::new(Role::Client(Box::new(active), config), now)
    }

    /// Plays a server: the offer of this session is ready to be sent. `session_id` comes from
    /// [`SessionIds`], and goes back there when the connection is over.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, session_id: u16, now: Duration) -> Self {
        let mut active = Active::new(now.saturating_add(config.accept_time));
        let salt = active.offer(&config, session_id, now);
        let mut connection = Self::new(Role::Server(Box::new(active), config), now);
        connection.salt = Some(salt);
        connection
    }

    /// Watches both sides.
    #[must_use]
    pub fn observer(keys: Arc<ObserverKeys>) -> Self {
        Self::new(Role::Observer { keys, handshake: false }, Duration::ZERO)
    }

    /// Watches both sides of a connection that was there before: each is read from its first
    /// segment that begins with a frame.
    #[must_use]
    pub fn observer_from_the_middle(keys: Arc<ObserverKeys>) -> Self {
        let mut connection = Self::observer(keys);
        connection.streams.iter_mut().for_each(Stream::join);
        connection
    }

    fn new(role: Role, now: Duration) -> Self {
        Self {
            role,
            streams: Side::BOTH.map(Stream::new),
            salt: None,
            events: VecDeque::new(),
            told: Vec::new(),
            now,
            closed: false,
        }
    }

    /// Input: bytes that `side` sent. For an observer a call should be a segment, since frames
    /// tend to begin with one; otherwise the stream may be cut anywhere.
    pub fn receive(&mut self, side: Side, now: Duration, bytes: &[u8]) {
        self.now = now;
        if self.closed || bytes.is_empty() {
            return;
        }
        if let Some(active) = self.active() {
            active.heartbeat.heard();
        }
        let most = self.most_bytes();
        match self.streams[side.index()].push(bytes, most) {
            Ok(None) => {}
            Ok(Some(skipped)) => self.events.push_back(Pending::Resync { side, skipped }),
            Err(error) => {
                let stream = &self.streams[side.index()];
                let error = error.at(stream.position() + stream.unread() as u64);
                self.fault(side, error);
            }
        }
    }

    /// Input: a datagram that `side` sent: whole frames.
    pub fn datagram(&mut self, side: Side, now: Duration, bytes: &[u8]) {
        self.now = now;
        if self.closed || bytes.is_empty() {
            return;
        }
        if let Some(active) = self.active() {
            active.heartbeat.heard();
        }
        self.streams[side.index()].push_datagram(bytes);
    }

    /// Input: `length` bytes that `side` sent are missing. Only an observer can live with that.
    pub fn gap(&mut self, side: Side, now: Duration, length: u64) {
        self.now = now;
        if self.closed || self.streams[side.index()].is_lost() {
            self.streams[side.index()].skip(length);
            return;
        }
        // What was complete before the gap is told before it.
        self.advance_all();
        let stream = &mut self.streams[side.index()];
        let at = stream.position() + stream.unread() as u64;
        self.events.push_back(Pending::Gap { side, range: at..at.saturating_add(length) });
        let readable = self.streams[side.index()].skip(length);
        if !readable || !matches!(self.role, Role::Observer { .. }) {
            let wanted = if readable { "a stream" } else { "an encrypted stream" };
            let error = Error::malformed(
                format!("{wanted} without gaps"),
                format!("{length} bytes missing"),
            );
            self.fault(side, error.at(at));
        }
    }

    /// Input: both sides' streams have ended.
    pub fn end(&mut self, now: Duration) {
        self.now = now;
        self.advance_all();
        if self.closed {
            return;
        }
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let torn = stream.unread() > 0 && !stream.is_lost();
            if torn && matches!(self.role, Role::Observer { .. }) {
                let found = format!("{} bytes of one", stream.unread());
                let error = Error::malformed("a whole frame", found).at(stream.position());
                self.events.push_back(Pending::Fault { side, error });
            }
        }
        self.close_for(CloseReason::Remote);
    }

    /// Input: time has passed; see [`poll_timeout`](Self::poll_timeout).
    pub fn timeout(&mut self, now: Duration) {
        self.now = now;
        self.advance_all();
        if !self.closed
            && let Some(reason) = self.on_timeout()
        {
            self.close_for(reason);
        }
    }

    /// Command: sends a DML message, in a frame of its own. Before a session is established it
    /// waits.
    ///
    /// # Errors
    /// Value, for a message that cannot state its length, for an observer, or on a closed
    /// connection; the limit on what may wait to be sent, after which the connection should be
    /// closed, since its other end does not read.
    pub fn send(&mut self, message: &RawMessage<'_>) -> Result<()> {
        if self.closed {
            return Err(Error::value("an open connection", "a closed one"));
        }
        match &mut self.role {
            Role::Client(active, config) => active.send(message, &config.common, true),
            Role::Server(active, config) => active.send(message, &config.common, false),
            Role::Observer { .. } => Err(Error::value("a client or a server", "an observer")),
        }
    }

    /// Command: makes the session stale. The next message of the client is ignored, and answered
    /// with the offer of this session; the client then sends its last message again.
    ///
    /// # Errors
    /// Value, when this is no server, or no session is established.
    pub fn refresh(&mut self, session_id: u16) -> Result<()> {
        match &mut self.role {
            Role::Server(active, _) if !self.closed => active.refresh(session_id),
            _ => Err(Error::value("an open connection of a server", "another one")),
        }
    }

    /// Command: ends the connection. What is queued can still be sent.
    pub fn close(&mut self) {
        self.close_for(CloseReason::Local);
    }

    /// Output: what happened next. Messages borrow from the connection until the next call.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        if self.events.is_empty() {
            self.advance();
        }
        Some(match self.events.pop_front()? {
            Pending::Received(piece) => Event::Received(self.received(piece)),
            Pending::Held(held, why) => {
                self.told = held.bytes;
                let message = received(held.piece, &self.told);
                match why {
                    None => Event::Received(message),
                    Some(why) => Event::Ignored { message, why },
                }
            }
            Pending::Ignored(piece, why) => Event::Ignored { message: self.received(piece), why },
            Pending::Established { session_id, previous } => {
                Event::Established { session_id, previous }
            }
            Pending::Gap { side, range } => Event::Gap { side, range },
            Pending::Resync { side, skipped } => Event::Resync { side, skipped },
            Pending::KeysNeeded { side } => {
                Event::KeysNeeded { side, session_id: self.session_id() }
            }
            Pending::Fault { side, error } => Event::Fault { side, error },
            Pending::Closed(reason) => Event::Closed(reason),
        })
    }

    /// Output: bytes to send next; a frame, which is a datagram where datagrams are sent.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.active()?.transmit()
    }

    /// Output: when to call [`timeout`](Self::timeout), at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        match &self.role {
            Role::Client(active, _) | Role::Server(active, _) if !self.closed => active.deadline(),
            _ => None,
        }
    }

    /// Whether a session is accepted.
    #[must_use]
    pub fn is_established(&self) -> bool {
        match &self.role {
            Role::Client(active, _) | Role::Server(active, _) => active.is_established(),
            Role::Observer { .. } => false,
        }
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The id of the session that was offered last.
    #[must_use]
    pub fn session_id(&self) -> Option<u16> {
        self.salt.map(|salt| salt.session_id)
    }

    /// What the secrets of the login hang on: the session that was offered last.
    #[must_use]
    pub fn salt(&self) -> Option<Salt> {
        self.salt
    }

    /// The access level of the session: 0 before it is established, then 1 or what
    /// [`set_access_level`](Self::set_access_level) said.
    #[must_use]
    pub fn access_level(&self) -> u8 {
        match &self.role {
            Role::Client(active, _) | Role::Server(active, _) => active.access_level(),
            Role::Observer { .. } => 0,
        }
    }

    /// What an established session may send from now on.
    pub fn set_access_level(&mut self, level: u8) {
        if let Some(active) = self.active() {
            active.set_access_level(level);
        }
    }

    fn active(&mut self) -> Option<&mut Active> {
        match &mut self.role {
            Role::Client(active, _) | Role::Server(active, _) => Some(active),
            Role::Observer { .. } => None,
        }
    }

    fn most_bytes(&self) -> u64 {
        match &self.role {
            Role::Client(_, config) => config.common.most_frame_bytes.into(),
            Role::Server(_, config) => config.common.most_frame_bytes.into(),
            Role::Observer { .. } => MOST_OBSERVED_BYTES,
        }
    }

    fn received(&self, piece: Piece) -> Received<'_> {
        let bytes = self.streams[piece.side.index()].bytes(piece.bytes.clone());
        received(piece, bytes)
    }

    fn close_for(&mut self, reason: CloseReason) {
        if !core::mem::replace(&mut self.closed, true) {
            self.events.push_back(Pending::Closed(reason));
        }
    }

    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Pending::Fault { side, error });
        if matches!(self.role, Role::Observer { .. }) {
            self.streams[side.index()].give_up();
        } else {
            self.close_for(CloseReason::Fault);
        }
    }

    /// Reads on, as far as no piece waits to be told: pieces lie in the buffers.
    fn advance(&mut self) {
        for side in Side::BOTH {
            while !self.closed && self.events.is_empty() {
                if !self.advance_stream(side) {
                    break;
                }
            }
        }
    }

    /// Reads all that is there; the pieces stay in the buffers.
    fn advance_all(&mut self) {
        for side in Side::BOTH {
            while !self.closed && self.step(side) {}
        }
    }

    fn advance_stream(&mut self, side: Side) -> bool {
        self.streams[side.index()].forget();
        self.step(side)
    }

    /// Reads a frame of this side; `false` when there is none.
    fn step(&mut self, side: Side) -> bool {
        let most = self.most_bytes();
        let stream = &mut self.streams[side.index()];
        match stream.next(most) {
            Next::Wait => return false,
            Next::Frame(frame) => self.frame(side, frame),
            Next::Torn(error) => self.events.push_back(Pending::Fault { side, error }),
            Next::Fault(error) => self.fault(side, error),
            Next::Encrypted => self.encrypted(side),
        }
        true
    }

    fn encrypted(&mut self, side: Side) {
        let session = self.session_id();
        let Role::Observer { keys, .. } = &self.role else {
            let error = Error::malformed("a frame, which begins with 0d f0", "other bytes");
            return self.fault(side, error);
        };
        let of = |(id, key)| match id {
            Some(id) if session.is_some_and(|session| session != id) => None,
            _ => Some(key),
        };
        let keys = Arc::clone(keys);
        let fitting = keys.streams.iter().map(|(id, key)| (*id, key)).filter_map(of);
        if !self.streams[side.index()].open(fitting) {
            self.events.push_back(Pending::KeysNeeded { side });
            self.streams[side.index()].give_up();
        }
    }

    /// A frame is complete: its pieces are events, and what they say is done.
    fn frame(&mut self, side: Side, frame: FrameSpan) {
        let outcome = match self.head(side, frame) {
            true => self.control(side, frame),
            false => self.data(side, frame),
        };
        if let Err(error) = outcome {
            let start = self.streams[side.index()].wire(frame.start);
            let error = match error.offset() {
                Some(_) => error.based(start),
                None => error.at(start),
            };
            self.fault(side, error);
        }
    }

    fn head(&self, side: Side, frame: FrameSpan) -> bool {
        is_control(self.streams[side.index()].bytes(frame.start..frame.end), frame.head)
    }

    fn control(&mut self, side: Side, frame: FrameSpan) -> Result<()> {
        let bytes = self.streams[side.index()].bytes(frame.start..frame.end);
        let control = control_in_frame(bytes, Some(side))?.into_owned();
        if let (Control::SessionOffer(offer), Side::Server) = (&control, side) {
            self.salt = Some(Salt::from(offer));
        }
        let opcode = control.opcode();
        let message = body_start(frame.head)..frame.end - frame.start;
        self.tell(side, frame, Unit::Control(opcode), 0..frame.end - frame.start, message, None);
        match &mut self.role {
            Role::Observer { handshake, .. } => {
                if let (Control::SessionAccept(accept), Side::Client) = (&control, side) {
                    *handshake |= accept.crypto.as_ref().is_some_and(|block| block.0.len() > 1);
                    if *handshake {
                        self.streams.iter_mut().for_each(Stream::expect_encryption);
                    }
                }
                Ok(())
            }
            _ => self.on_control(side, &control),
        }
    }

    fn data(&mut self, side: Side, frame: FrameSpan) -> Result<()> {
        let length = frame.end - frame.start;
        let bytes = self.streams[side.index()].bytes(frame.start..frame.end);
        let found = spans(bytes, frame.head)?;
        let Some(last) = found.len().checked_sub(1) else {
            self.tell(side, frame, Unit::Empty, 0..length, length..length, None);
            return Ok(());
        };
        for (index, span) in found.into_iter().enumerate() {
            // The frame's head belongs to the first message, its trailer to the last.
            let start = if index == 0 { 0 } else { span.range.start };
            let end = if index == last { length } else { span.range.end };
            let why = self.refusal(span.service, span.order);
            let unit = Unit::Message { service: span.service, order: span.order };
            self.tell(side, frame, unit, start..end, span.range, why);
        }
        if let Role::Client(active, _) = &mut self.role {
            active.answered();
        }
        Ok(())
    }

    /// Queues the event of a piece; places count from the frame's first byte.
    fn tell(
        &mut self,
        side: Side,
        frame: FrameSpan,
        unit: Unit,
        bytes: Range<usize>,
        message: Range<usize>,
        why: Option<active::Refusal>,
    ) {
        let stream = &self.streams[side.index()];
        let (from, to) = (frame.start + bytes.start, frame.start + bytes.end);
        let piece = Piece {
            side,
            unit,
            bytes: from..to,
            message: message.start - bytes.start..message.end - bytes.start,
            range: stream.wire(from)..stream.wire(to),
            encrypted: stream.is_encrypted(),
            salt: self.salt,
        };
        match why {
            None => self.events.push_back(Pending::Received(piece)),
            Some(active::Refusal::Ignore(why)) => {
                self.events.push_back(Pending::Ignored(piece, why));
            }
            Some(active::Refusal::Keep) => {
                let bytes = stream.bytes(from..to).to_vec();
                self.keep(HeldFrame { piece, bytes });
            }
        }
    }
}

fn received(piece: Piece, bytes: &[u8]) -> Received<'_> {
    let Piece { side, unit, message, range, encrypted, salt, .. } = piece;
    Received { side, unit, bytes, message, range, encrypted, salt }
}

/// Where the fields of a control message begin in its frame.
fn body_start(head: FrameHead) -> usize {
    head.bytes() + crate::frame::BODY_HEAD_BYTES
}
