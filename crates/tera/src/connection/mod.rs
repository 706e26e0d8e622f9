//! The TERA connection as a state machine without I/O. It implements the contract of
//! [`worldwire_core::connection`].
//!
//! A [`Connection`] acts as the client or the server, observes both, or relays between them.
//!
//! The server sends a hello (01 00 00 00). Then both sides exchange keys of 128 bytes: the client's
//! first, the server's first, the client's second, the server's second. After that, both directions
//! are encrypted.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_core::connection::{Connection as _, Input};
//! use worldwire_tera::connection::{Config, Connection};
//!
//! let now = Duration::ZERO;
//! let config = Arc::new(Config::default());
//! let mut server = Connection::server(Arc::clone(&config), [[1; 128], [2; 128]], now);
//! let mut client = Connection::client(config, [[3; 128], [4; 128]], now);
//!
//! // A driver without a network: each side receives the other's bytes.
//! for _ in 0..3 {
//!     while let Some(bytes) = server.poll_transmit(Side::Client) {
//!         client.input(now, Side::Server, Input::Bytes(&bytes));
//!     }
//!     while client.poll_event().is_some() {}
//!     while let Some(bytes) = client.poll_transmit(Side::Server) {
//!         server.input(now, Side::Client, Input::Bytes(&bytes));
//!     }
//!     while server.poll_event().is_some() {}
//! }
//! assert!(client.is_established() && server.is_established());
//! ```

mod config;
mod event;
mod habits;
mod relay;
mod sender;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Event, Lane, Located, Parts, Role as _, StreamMachine,
    Timer, Unread, read_up,
};
use worldwire_core::{Error, Side};

pub use config::{Config, RelayConfig};
pub use event::{News, Received, Unit};
pub use sender::Sender;

use crate::crypt::exchange::{Exchange, Key, Keys, SessionCiphers, Variant};
use relay::Relaying;
use sender::{Role, Signing};
use stream::{HELLO, Phase, Stream};

/// A connection in one of four roles.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// The stream of each side, as far as this role reads it, indexed by [`Side::index`].
    streams: [Stream; 2],
    keys: Exchange,
    /// Keys of connections whose exchange may be missing (observers).
    known: Arc<[Keys]>,
    /// Events that are not reported yet.
    events: VecDeque<Event<Unread<Unit>, News>>,
}

impl Connection {
    /// Acts as a client, which waits for the server's hello. The keys are fresh random bytes.
    #[must_use]
    pub fn client(config: Arc<Config>, keys: [Key; 2], now: Duration) -> Self {
        let (bounds, step_time) = (config.bounds, config.step_time);
        let signing = Box::new(Signing::new(&config));
        let mut connection = Self::new(Role::Client(config, signing), bounds, now);
        connection.keys.of[Side::Client.index()] = keys.into();
        connection.sender.half.timers.start(Timer::Setup, step_time);
        connection
    }

    /// Acts as a server, whose hello is ready to be sent. The keys are fresh random bytes.
    #[must_use]
    pub fn server(config: Arc<Config>, keys: [Key; 2], now: Duration) -> Self {
        let (bounds, step_time) = (config.bounds, config.step_time);
        let mut connection = Self::new(Role::Server(config), bounds, now);
        connection.keys.of[Side::Server.index()] = keys.into();
        connection.sender.half.timers.start(Timer::Setup, step_time);
        connection.sender.half.lanes[Side::Client.index()].out.push(HELLO.into());
        connection
    }

    /// Observes both sides, from the first byte. Without a variant, it is detected from the
    /// client's first message, whose opcode never changes.
    #[must_use]
    pub fn observer(variant: Option<Variant>) -> Self {
        let mut connection = Self::new(Role::Observer(variant), Bounds::default(), Duration::ZERO);
        connection.streams = connection.streams.map(Stream::watched);
        connection
    }

    /// Like [`observer`](Self::observer), with the keys of some connections. If bytes of the key
    /// exchange are missing, the keys that decrypt the client's first message are used.
    #[must_use]
    pub fn observer_knowing(variant: Option<Variant>, sessions: Arc<[Keys]>) -> Self {
        Self { known: sessions, ..Self::observer(variant) }
    }

    /// Relays between a client and a server. Its [`Sender`] implements
    /// [`Forward`](worldwire_core::connection::Forward) and
    /// [`Inject`](worldwire_core::connection::Inject).
    ///
    /// The keys pass through: the relay reads the exchange like an observer, decrypts each stream
    /// with one cipher state and encrypts it with another. Unchanged messages have the same bytes
    /// on both sides.
    ///
    /// Some client messages carry a [counter and a checksum](crate::integrity). Once a message has
    /// been dropped, added or changed, the relay rewrites both fields in later messages with the
    /// same opcode where they differ; all others pass untouched. For this it needs the opcodes
    /// ([`RelayConfig::integrity`], [`set_integrity`](Sender::set_integrity)) and the seed
    /// ([`set_integrity_seed`](Sender::set_integrity_seed)).
    ///
    /// The opcodes of keep-alives change with every build. Those that the relay
    /// [knows](Sender::set_keep_alives) overtake
    /// [held](worldwire_core::connection::Forward::hold) pieces; every other piece waits. Counters
    /// and checksums follow the order in which messages are sent.
    ///
    /// A message may be dropped or replaced; the hello and the keys are always forwarded unchanged.
    /// The relay fills in the counter and checksum of replacements, so any values will do.
    ///
    /// A stream that is not TERA's is forwarded unread, and so is the rest of a stream after a
    /// fault. The relay then has no deadlines, just as after the key exchange.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let role = Role::Relay(Box::new(Relaying::new(config)));
        let mut connection = Self::new(role, bounds, now);
        connection.sender.half = connection.sender.half.forwarding(bounds);
        connection.sender.half.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// The four keys of the connection, once they are known.
    #[must_use]
    pub fn keys(&self) -> Option<Keys> {
        self.keys.whole()
    }

    fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        Self {
            sender: Sender::new(role, bounds, now),
            streams: Side::BOTH.map(Stream::new),
            keys: Exchange::default(),
            known: Arc::default(),
            events: VecDeque::new(),
        }
    }
}

impl StreamMachine for Connection {
    const PROTOCOL: &'static str = "TERA";

    type News = News;
    type Received<'c> = Received<'c>;
    type Unread = Unread<Unit>;
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
        let stream = &mut self.streams[side.index()];
        if let Some(skipped) = stream.pass_torn() {
            self.events.push_back(Event::Resync { side, skipped });
            return true;
        }
        if matches!(stream.phase, Phase::Waiting)
            && self.agree(self.streams[Side::Client.index()].incoming.is_ended)
        {
            return true;
        }
        let stream = &mut self.streams[side.index()];
        if let Some(skipped) = stream.search() {
            if !skipped.is_empty() {
                self.events.push_back(Event::Resync { side, skipped });
            }
            return true;
        }
        match stream.next() {
            Ok(None) => return false,
            Ok(Some((unit, located))) => {
                let encrypted = matches!(unit, Unit::Message { .. });
                match encrypted {
                    true => self.sender.note_activity(),
                    false => self.exchange(side, unit, &located),
                }
                self.events.push_back(Event::Received(Unread { side, unit, located, encrypted }));
            }
            Err(error) => {
                let error = self.explained(side, error);
                self.fault(side, error);
            }
        }
        true
    }

    fn push(&mut self, from: Side, bytes: &[u8]) {
        self.streams[from.index()].push(bytes);
    }

    fn gap(&mut self, side: Side, length: u64) {
        let watches = matches!(self.sender.half.role, Role::Observer(_));
        // Report what was complete before the gap.
        self.agree(true);
        if !read_up(self) {
            return;
        }
        let stream = &mut self.streams[side.index()];
        let at = stream.incoming.end();
        if !matches!(stream.phase, Phase::Searching(_) | Phase::Lost) {
            self.events.push_back(Event::Gap { side, range: at..at.saturating_add(length) });
        }
        let wanted = "a stream without gaps";
        let is_known = watches
            && !self.known.is_empty()
            && stream.is_exchanging()
            && !stream.lacks_hello(length);
        let skipped = if is_known { stream.tear(length) } else { stream.skip(length) };
        let error = match skipped {
            Ok(()) if watches => return,
            Ok(()) => Error::malformed(wanted, format!("a gap of {length} bytes")),
            Err(error) => error,
        };
        self.fault(side, error.at(at));
        if watches {
            self.streams[side.index()].set_phase(Phase::Lost);
        } else {
            self.sender.half.close_for(CloseReason::Fault);
        }
    }

    fn conclude(&mut self, all_ended: bool) -> bool {
        let mut is_torn = false;
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let may_continue = matches!(stream.phase, Phase::Waiting) && !all_ended;
            if stream.incoming.is_ended
                && !may_continue
                && !self.is_paused(side)
                && let Some(error) = stream.torn()
            {
                self.fault(side, error);
                if matches!(self.sender.half.role, Role::Observer(_)) {
                    self.streams[side.index()].set_phase(Phase::Lost);
                }
                is_torn = true;
            }
        }
        is_torn
    }

    fn in_transit(&self, unread: &Unread<Unit>) -> (Side, Unread<Unit>, bool) {
        let is_urgent = match &self.sender.half.role {
            Role::Relay(relay) if relay.is_keep_alive(unread) => {
                // Keep-alives stay in order among themselves, and so do their counters.
                let forwarding = self.sender.half.forwarding.as_ref();
                let is_before =
                    |it: &Unread<Unit>| it.side == unread.side && relay.is_keep_alive(it);
                !forwarding.is_some_and(|forwarding| forwarding.keeps(is_before))
            }
            _ => false,
        };
        (unread.side, unread.clone(), is_urgent)
    }

    fn range(piece: &Unread<Unit>) -> Range<usize> {
        piece.located.range.clone()
    }

    #[inline]
    fn received(unread: Unread<Unit>, streams: &mut [Stream; 2]) -> Received<'_> {
        let Unread { side, unit, located, .. } = unread;
        let bytes = streams[side.index()].incoming.bytes(located.range);
        Received { side, unit, bytes, offset: located.offset }
    }

    fn is_established(&self) -> bool {
        self.sender.is_established
    }

    fn copy(&self) -> Option<Self> {
        let sender = self.sender.observing().filter(|_| self.events.is_empty())?;
        let (streams, keys) = (self.streams.clone(), self.keys.clone());
        Some(Self {
            sender,
            streams,
            keys,
            known: Arc::clone(&self.known),
            events: VecDeque::new(),
        })
    }
}

/// The key exchange, and faults.
impl Connection {
    /// Handles a step of the key exchange: stores a key and, in an active role, replies.
    fn exchange(&mut self, side: Side, unit: Unit, located: &Located) {
        let mut received = 0;
        if let Unit::Key { number } = unit {
            let incoming = &self.streams[side.index()].incoming;
            let key = incoming.bytes(located.range.clone()).first_chunk();
            self.keys.of[side.index()].extend(key);
            received = usize::from(number);
        }
        let (Some(own), Some(config)) =
            (self.sender.half.role.side(), self.sender.half.role.config())
        else {
            return;
        };
        self.sender.half.timers.start(Timer::Setup, config.step_time);
        // The client replies to the hello with its first key, and each side replies to a key with
        // its own next one.
        let answer = match own {
            Side::Client => Some(received),
            Side::Server => received.checked_sub(1),
        };
        if let Some(key) = answer.and_then(|index| self.keys.of[own.index()].get(index)) {
            self.sender.half.lanes[own.other().index()].out.push(key.to_vec());
        }
    }

    /// Starts to decrypt once all keys are known. `is_last` means that no more input can reveal the
    /// variant.
    fn agree(&mut self, is_last: bool) -> bool {
        if self.sender.is_established {
            return false;
        }
        if self.keys.whole().is_none() {
            self.recall();
        }
        let Some(keys) = self.keys.whole() else { return false };
        let variant = match &self.sender.half.role {
            Role::Client(config, _) | Role::Server(config) => Some(config.variant),
            Role::Observer(variant) => *variant,
            Role::Relay(relay) => relay.variant(),
        };
        let session = match variant {
            Some(variant) => SessionCiphers::new(&keys, variant),
            None => match self.streams[Side::Client.index()].sealed() {
                Some(head) => SessionCiphers::guess(&keys, head),
                None if is_last => SessionCiphers::new(&keys, Variant::default()),
                None => return false,
            },
        };
        // The last key is queued. The other side's next bytes are encrypted.
        let own = self.sender.half.role.side();
        for (side, cipher) in Side::BOTH.into_iter().zip([session.client, session.server]) {
            if own != Some(side.other()) {
                self.sender.half.lanes[side.other().index()].cipher = Some(cipher.clone().into());
            }
            if own != Some(side) {
                self.streams[side.index()].begin(cipher);
            }
        }
        self.sender.is_established = true;
        self.sender.half.timers.stop(Timer::Setup);
        self.events.push_back(Event::News(News::Established));
        self.sender.note_activity();
        // The messages that waited were checked for room when they were sent.
        self.sender.half.lanes.iter_mut().for_each(Lane::release_deferred);
        true
    }

    /// Replaces missing bytes of the exchange with known keys: those that decrypt the client's
    /// first message, or, without that message, the only known keys.
    fn recall(&mut self) {
        /// The maximum number of keys tried.
        const MAX_TRIED: usize = 256;
        if self.known.is_empty() || self.streams.iter().any(Stream::is_exchanging) {
            return;
        }
        let known = self.known.iter().take(MAX_TRIED);
        let found = match (self.streams[Side::Client.index()].sealed(), &*self.known) {
            (Some(head), _) => known
                .into_iter()
                .find(|keys| SessionCiphers::of_first_message(keys, head).is_some()),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let found = found.cloned();
        if self.streams[Side::Client.index()].sealed().is_some() {
            // Trying them is expensive, and no later input would change the result.
            self.known = Arc::default();
        }
        if let Some(Keys { client, server }) = found {
            self.keys.of = [client.to_vec(), server.to_vec()];
        }
    }

    /// Adds an explanation to an observer's error about the hello.
    fn explained(&self, side: Side, error: Error) -> Error {
        let is_observed = matches!(self.sender.half.role, Role::Observer(_));
        match self.streams[side.index()].phase {
            Phase::Hello if is_observed => error.hint(
                "if the capture begins after the key exchange, the messages cannot be decrypted, \
                 not even with exported keys",
            ),
            _ => error,
        }
    }

    /// Handles a fault: an observer or relay gives up the stream; an active role gives up the
    /// connection. Before the keys are exchanged, a relay gives up both streams.
    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Event::Fault { side, error });
        match &self.sender.half.role {
            Role::Client(..) | Role::Server(_) => self.sender.half.close_for(CloseReason::Fault),
            Role::Observer(_) => {
                let stream = &mut self.streams[side.index()];
                if matches!(stream.phase, Phase::Hello) && !stream.incoming.is_ended {
                    // Keys are random, so these bytes may be a key.
                    stream.pass_hello();
                } else if !stream.look_on() {
                    stream.set_phase(Phase::Lost);
                }
            }
            Role::Relay(_) => {
                let all = !self.sender.is_established;
                for side in Side::BOTH.into_iter().filter(|one| all || *one == side) {
                    if let Some(forwarding) = &mut self.sender.half.forwarding {
                        forwarding.set_raw(side);
                    }
                    self.streams[side.index()].set_phase(Phase::Passing);
                }
                self.sender.half.timers.stop(Timer::Setup);
            }
        }
    }
}
