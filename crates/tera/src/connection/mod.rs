//! The connection as a state machine, without any IO.
//!
//! A [`Connection`] plays the client, plays the server, or watches both. Bytes and time come in as
//! arguments; events, bytes to send and deadlines come out.
//!
//! Its methods are of four kinds:
//!
//! * **inputs**: [`receive`](Connection::receive), [`gap`](Connection::gap),
//!   [`end`](Connection::end), [`timeout`](Connection::timeout);
//! * **commands**: [`send`](Connection::send), [`close`](Connection::close);
//! * **outputs**: [`poll_event`](Connection::poll_event) and
//!   [`poll_transmit`](Connection::poll_transmit) until both say `None`, then
//!   [`poll_timeout`](Connection::poll_timeout), after every input and command;
//! * **getters**: the rest.
//!
//! The server speaks first (01 00 00 00), then keys of 128 bytes go to and fro, the client's first
//! one, the server's first one, the client's second one, the server's second one; from there on
//! both directions are encrypted.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_tera::connection::{Config, Connection};
//!
//! let now = Duration::ZERO;
//! let mut server = Connection::server(Config::new([[1; 128], [2; 128]]), now);
//! let mut client = Connection::client(Config::new([[3; 128], [4; 128]]), now);
//! for _ in 0..3 {
//!     while let Some(bytes) = server.poll_transmit() {
//!         client.receive(Side::Server, now, &bytes);
//!     }
//!     while client.poll_event().is_some() {}
//!     while let Some(bytes) = client.poll_transmit() {
//!         server.receive(Side::Client, now, &bytes);
//!     }
//!     while server.poll_event().is_some() {}
//! }
//! assert!(client.is_established() && server.is_established());
//! ```

mod event;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::{Error, Result, Side};

pub use event::{CloseReason, Event, Received, Unit};

use crate::crypt::exchange::{Key, Keys, Session, Variant};
use crate::crypt::pike::Pike;
use crate::frame::{CHECK_VERSION, HEADER_BYTES, Header};
use stream::{HELLO, Piece, Stream};

/// How the two active roles behave.
#[derive(Clone)]
pub struct Config {
    /// The keys of this side: fresh random bytes for every connection.
    pub keys: [Key; 2],
    /// By how much keys are turned. Default: patch 45 and later.
    pub variant: Variant,
    /// How long each step of the key exchange may take. Default 5 s.
    pub step_time: Duration,
    /// How many bytes may wait to be sent. Default 8 MiB.
    pub most_queued_bytes: usize,
}

impl core::fmt::Debug for Config {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Config").field("variant", &self.variant).finish_non_exhaustive()
    }
}

impl Config {
    /// The defaults, with these keys.
    #[must_use]
    pub fn new(keys: [Key; 2]) -> Self {
        Self {
            keys,
            variant: Variant::From45,
            step_time: Duration::from_secs(5),
            most_queued_bytes: 8 << 20,
        }
    }
}

/// A connection, seen from one of three roles.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// What each side sends, as far as this role reads it; by [`Side::index`].
    streams: [Stream; 2],
    /// The keys that came, by side.
    keys: [Vec<Key>; 2],
    events: VecDeque<Pending>,
    out: VecDeque<Vec<u8>>,
    /// Sent before the keys were exchanged.
    early: VecDeque<Vec<u8>>,
    queued: usize,
    /// Encrypts what this role sends.
    cipher: Option<Box<Pike>>,
    established: bool,
    closed: bool,
    deadline: Option<Duration>,
    now: Duration,
}

/// Who a connection is.
#[derive(Debug)]
enum Role {
    Client(Config),
    Server(Config),
    /// The variant, if it is known.
    Observer(Option<Variant>),
}

/// An event that is not told yet; pieces are still in the buffer of their stream.
#[derive(Debug)]
enum Pending {
    Received(Side, Piece),
    Established,
    Gap { side: Side, range: Range<u64> },
    Resync { side: Side, skipped: Range<u64> },
    Fault { side: Side, error: Error },
    Closed(CloseReason),
}

impl Connection {
    /// Plays a client: waits for the server's hello.
    #[must_use]
    pub fn client(config: Config, now: Duration) -> Self {
        let deadline = now.saturating_add(config.step_time);
        let mut connection = Self::new(Role::Client(config), now);
        connection.deadline = Some(deadline);
        connection
    }

    /// Plays a server: hello is ready to be sent.
    #[must_use]
    pub fn server(config: Config, now: Duration) -> Self {
        let deadline = now.saturating_add(config.step_time);
        let mut connection = Self::new(Role::Server(config), now);
        connection.deadline = Some(deadline);
        connection.queue(HELLO.to_vec());
        connection
    }

    /// Watches both sides, from the first byte. Without a variant the client's first message,
    /// whose opcode never changed, tells which it is.
    #[must_use]
    pub fn observer(variant: Option<Variant>) -> Self {
        Self::new(Role::Observer(variant), Duration::ZERO)
    }

    fn new(role: Role, now: Duration) -> Self {
        Self {
            role,
            streams: Side::BOTH.map(Stream::new),
            keys: Default::default(),
            events: VecDeque::new(),
            out: VecDeque::new(),
            early: VecDeque::new(),
            queued: 0,
            cipher: None,
            established: false,
            closed: false,
            deadline: None,
            now,
        }
    }

    /// Input: bytes that `side` sent. For an observer a call should be a segment, since messages
    /// tend to begin with one; otherwise the stream may be cut anywhere.
    pub fn receive(&mut self, side: Side, now: Duration, bytes: &[u8]) {
        self.now = now;
        if self.closed || bytes.is_empty() {
            return;
        }
        if let Some(skipped) = self.streams[side.index()].push(bytes) {
            self.events.push_back(Pending::Resync { side, skipped });
        }
        self.agree(false);
    }

    /// Input: `length` bytes that `side` sent are missing. Only an observer can live with that,
    /// and only behind the keys.
    pub fn gap(&mut self, side: Side, now: Duration, length: u64) {
        self.now = now;
        if self.closed || self.streams[side.index()].is_lost() {
            if let Err(error) = self.streams[side.index()].skip(length)
                && !self.closed
            {
                let at = self.streams[side.index()].position();
                self.fault(side, error.at(at));
            }
            return;
        }
        self.agree(true);
        self.advance_all();
        let stream = &mut self.streams[side.index()];
        let at = stream.position().saturating_add(stream.unread() as u64);
        self.events.push_back(Pending::Gap { side, range: at..at.saturating_add(length) });
        let watches = matches!(self.role, Role::Observer(_));
        let error = match stream.skip(length) {
            Ok(true) if watches => return,
            Err(error) if watches => error,
            outcome => {
                let readable = !matches!(outcome, Ok(false));
                let wanted =
                    if readable { "a stream without gaps" } else { "the whole key exchange" };
                Error::malformed(wanted, format!("{length} bytes missing"))
            }
        };
        self.fault(side, error.at(at));
    }

    /// Input: both sides' streams have ended.
    pub fn end(&mut self, now: Duration) {
        self.now = now;
        self.agree(true);
        self.advance_all();
        if self.closed {
            return;
        }
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let torn = stream.unread() > 0 && !stream.is_lost() && !stream.is_over();
            if torn && matches!(self.role, Role::Observer(_)) {
                let wanted =
                    if self.established { "a whole message" } else { "the whole key exchange" };
                let found = format!("{} bytes of one", stream.unread());
                let error = Error::malformed(wanted, found).at(stream.position());
                self.events.push_back(Pending::Fault { side, error });
            }
        }
        self.close_for(CloseReason::Remote);
    }

    /// Input: time has passed; see [`poll_timeout`](Self::poll_timeout).
    pub fn timeout(&mut self, now: Duration) {
        self.now = now;
        self.advance_all();
        if self.deadline.is_some_and(|at| at <= now) {
            self.close_for(CloseReason::Timeout);
        }
    }

    /// Command: sends a message, whole, with its header. Before the keys are exchanged it waits.
    ///
    /// # Errors
    /// Value, for bytes that are not exactly one message, for an observer, or on a closed
    /// connection; the limit on what may wait to be sent.
    pub fn send(&mut self, message: &[u8]) -> Result<()> {
        let most = match &self.role {
            Role::Client(config) | Role::Server(config) => config.most_queued_bytes,
            Role::Observer(_) => return Err(Error::value("a client or a server", "an observer")),
        };
        if self.closed {
            return Err(Error::value("an open connection", "a closed one"));
        }
        let length = Header::peek(message)?.map_or(HEADER_BYTES, |header| header.length.into());
        if length != message.len() {
            let found = format!("{} bytes", message.len());
            return Err(Error::value(format!("a message of {length} bytes"), found));
        }
        if self.queued + length > most {
            let asked = (self.queued + length) as u64;
            return Err(Error::limit("queued bytes", most as u64, asked));
        }
        self.queued += length;
        self.early.push_back(message.to_vec());
        self.flush();
        Ok(())
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
            Pending::Received(side, piece) => {
                let bytes = self.streams[side.index()].bytes(piece.range);
                Event::Received(Received { side, unit: piece.unit, bytes, offset: piece.offset })
            }
            Pending::Established => Event::Established,
            Pending::Gap { side, range } => Event::Gap { side, range },
            Pending::Resync { side, skipped } => Event::Resync { side, skipped },
            Pending::Fault { side, error } => Event::Fault { side, error },
            Pending::Closed(reason) => Event::Closed(reason),
        })
    }

    /// Output: bytes to send next.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        let bytes = self.out.pop_front()?;
        self.queued -= bytes.len();
        Some(bytes)
    }

    /// Output: when to call [`timeout`](Self::timeout), at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.deadline.filter(|_| !self.closed)
    }

    /// Whether the keys are exchanged.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn queue(&mut self, bytes: Vec<u8>) {
        self.queued += bytes.len();
        self.out.push_back(bytes);
    }

    fn close_for(&mut self, reason: CloseReason) {
        if !core::mem::replace(&mut self.closed, true) {
            self.events.push_back(Pending::Closed(reason));
        }
    }

    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Pending::Fault { side, error });
        if matches!(self.role, Role::Observer(_)) {
            self.streams[side.index()].give_up();
        } else {
            self.close_for(CloseReason::Fault);
        }
    }

    /// Reads on, as far as no piece waits to be told: pieces lie in the buffers.
    fn advance(&mut self) {
        for side in Side::BOTH {
            while !self.closed && self.events.is_empty() {
                self.streams[side.index()].forget();
                if !self.step(side) {
                    break;
                }
            }
        }
    }

    /// Reads all that is there; the pieces stay in the buffers.
    fn advance_all(&mut self) {
        loop {
            let mut moved = false;
            for side in Side::BOTH {
                while !self.closed && self.step(side) {
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Reads a piece of this side; `false` when there is none.
    fn step(&mut self, side: Side) -> bool {
        match self.streams[side.index()].next() {
            Ok(None) => return false,
            Err(error) => self.fault(side, error),
            Ok(Some(piece)) => {
                let key = match piece.unit {
                    Unit::Key { .. } => self.streams[side.index()].key(&piece),
                    _ => None,
                };
                let unit = piece.unit;
                self.events.push_back(Pending::Received(side, piece));
                self.keys[side.index()].extend(key);
                self.answer(side, unit);
            }
        }
        true
    }

    /// The next step of the key exchange.
    fn answer(&mut self, side: Side, unit: Unit) {
        let (config, reply) = match (&self.role, side, unit) {
            (Role::Client(config), Side::Server, Unit::Hello) => (config, Some(0)),
            (Role::Client(config), Side::Server, Unit::Key { number: 1 }) => (config, Some(1)),
            (Role::Client(config), Side::Server, Unit::Key { .. }) => (config, None),
            (Role::Server(config), Side::Client, Unit::Key { number: 1 }) => (config, Some(0)),
            (Role::Server(config), Side::Client, Unit::Key { .. }) => (config, Some(1)),
            (Role::Observer(_), _, Unit::Key { .. }) => return self.agree(false),
            _ => return,
        };
        self.deadline = Some(self.now.saturating_add(config.step_time));
        if let Some(key) = reply.and_then(|index: usize| config.keys.get(index)) {
            let bytes = key.to_vec();
            self.queue(bytes);
        }
        self.agree(false);
    }

    /// Begins to decrypt when all keys are known. `last` when nothing more can come that would
    /// tell the variant.
    fn agree(&mut self, last: bool) {
        if self.established {
            return;
        }
        let own = |config: &Config| config.keys.to_vec();
        let [client, server] = match &self.role {
            Role::Client(config) => [own(config), self.keys[1].clone()],
            Role::Server(config) => [self.keys[0].clone(), own(config)],
            Role::Observer(_) => self.keys.clone(),
        };
        let (Ok(client), Ok(server)) = (client.try_into(), server.try_into()) else {
            return;
        };
        let keys = Keys { client, server };
        let variant = match &self.role {
            Role::Client(config) | Role::Server(config) => Some(config.variant),
            Role::Observer(Some(variant)) => Some(*variant),
            Role::Observer(None) => self.guess(&keys, last),
        };
        let Some(variant) = variant else { return };
        let Session { client, server } = Session::new(&keys, variant);
        // The last key is on its way; what comes next from the other side is encrypted.
        match &self.role {
            Role::Client(_) => {
                self.cipher = Some(Box::new(client));
                self.streams[Side::Server.index()].begin(server);
            }
            Role::Server(_) => {
                self.cipher = Some(Box::new(server));
                self.streams[Side::Client.index()].begin(client);
            }
            Role::Observer(_) => {
                self.streams[Side::Client.index()].begin(client);
                self.streams[Side::Server.index()].begin(server);
            }
        }
        self.established = true;
        self.deadline = None;
        self.events.push_back(Pending::Established);
        self.flush();
    }

    /// The variant with which the client's first message is the one that it always is.
    fn guess(&self, keys: &Keys, last: bool) -> Option<Variant> {
        let sealed = self.streams[Side::Client.index()].sealed();
        let Some(head) = sealed.first_chunk::<HEADER_BYTES>() else {
            return last.then(Variant::default);
        };
        let fits = |variant: &Variant| {
            let mut head = *head;
            Session::new(keys, *variant).client.apply(&mut head);
            let header = Header::peek(&head).ok().flatten();
            header.is_some_and(|header| header.opcode == CHECK_VERSION)
        };
        Some(Variant::ALL.into_iter().find(fits).unwrap_or_default())
    }

    /// What was sent goes out, encrypted.
    fn flush(&mut self) {
        if let (true, Some(cipher)) = (self.established, &mut self.cipher) {
            for mut message in self.early.drain(..) {
                cipher.apply(&mut message);
                self.out.push_back(message);
            }
        }
    }
}
