//! The TERA connection as a state machine without IO. It implements the contract of
//! [`worldwire_core::connection`].
//!
//! A [`Connection`] plays the client, plays the server, watches both, or stands between them.
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

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as Machine, Event, EventOf, Input, Lane, Located, Timer, Timers,
};
use worldwire_core::{Error, Side};

pub use config::{Config, RelayConfig};
pub use event::{News, Received, Unit};
pub use sender::Sender;

use crate::crypt::exchange::{Exchange, Key, Keys, SessionCiphers, Variant};
use event::Unread;
use relay::Relaying;
use sender::{Role, Signing};
use stream::{HELLO, Phase, Stream};

/// A connection in one of four roles.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// What each side sends, as far as this role reads it; by [`Side::index`].
    streams: [Stream; 2],
    keys: Exchange,
    /// Keys of connections whose exchange may be missing (observers).
    known: Arc<[Keys]>,
    /// Not reported yet.
    events: VecDeque<Event<Unread, News>>,
}

impl Connection {
    /// Plays a client: waits for the server's hello. The keys are fresh random bytes.
    #[must_use]
    pub fn client(config: Arc<Config>, keys: [Key; 2], now: Duration) -> Self {
        let (bounds, step_time) = (config.bounds, config.step_time);
        let signing = Box::new(Signing::new(&config));
        let mut connection = Self::new(Role::Client(config, signing), bounds, now);
        connection.keys.of[Side::Client.index()] = keys.into();
        connection.sender.timers.start(Timer::Setup, step_time);
        connection
    }

    /// Plays a server: hello is ready to be sent. The keys are fresh random bytes.
    #[must_use]
    pub fn server(config: Arc<Config>, keys: [Key; 2], now: Duration) -> Self {
        let (bounds, step_time) = (config.bounds, config.step_time);
        let mut connection = Self::new(Role::Server(config), bounds, now);
        connection.keys.of[Side::Server.index()] = keys.into();
        connection.sender.timers.start(Timer::Setup, step_time);
        connection.sender.lanes[Side::Client.index()].out.push(HELLO.into());
        connection
    }

    /// Watches both sides, from the first byte. Without a variant the client's first message,
    /// whose opcode never changed, tells which it is.
    #[must_use]
    pub fn observer(variant: Option<Variant>) -> Self {
        let mut connection = Self::new(Role::Observer(variant), Bounds::default(), Duration::ZERO);
        connection.streams = connection.streams.map(Stream::watched);
        connection
    }

    /// An observer also knows these keys: when bytes of the exchange are missing, those that fit
    /// open the connection.
    #[must_use]
    pub fn knowing(self, sessions: Arc<[Keys]>) -> Self {
        Self { known: sessions, ..self }
    }

    /// Stands between a client and a server. Its [`Sender`] implements
    /// [`Forward`](worldwire_core::connection::Forward) and
    /// [`Inject`](worldwire_core::connection::Inject).
    ///
    /// The keys pass through: the relay reads the exchange like an observer, decrypts each stream
    /// with one cipher state and encrypts it with another. Unchanged messages are the same bytes on
    /// both sides.
    ///
    /// Some client messages carry a [counter and a checksum](crate::integrity). Once a message has
    /// been dropped, added or changed, the relay rewrites both fields in later messages with the
    /// same opcode where they differ; all others pass untouched. For this it needs the opcodes
    /// ([`RelayConfig::integrity`], [`set_integrity`](Sender::set_integrity)) and the seed
    /// ([`set_integrity_seed`](Sender::set_integrity_seed)).
    ///
    /// TERA has no keep-alives that could overtake a
    /// [held](worldwire_core::connection::Forward::hold) piece, so every later piece waits for it.
    /// Counters and checksums follow the order in which messages leave.
    ///
    /// A stream that is not TERA's is forwarded unread, and so is the rest of a stream after a
    /// fault. The relay then has no deadlines, as it has none after the key exchange.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let relaying = Relaying::new(config);
        let mut connection = Self::new(Role::Relay(Box::new(relaying)), bounds, now);
        connection.sender.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// The four keys of the connection, once they are known.
    #[must_use]
    pub fn keys(&self) -> Option<Keys> {
        self.keys.whole()
    }

    fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        Self {
            sender: Sender::new(role, bounds, Timers::new(now)),
            streams: Side::BOTH.map(Stream::new),
            keys: Exchange::default(),
            known: Arc::default(),
            events: VecDeque::new(),
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
        let is_over = self.sender.closing.is_closed() || stream.is_ended;
        if is_over || self.sender.role.side() == Some(from) {
            return;
        }
        match input {
            Input::Bytes(bytes) => stream.push(bytes),
            Input::Datagram(_) => {
                let error = Error::malformed("a stream: TERA runs over TCP", "a datagram");
                let error = error.at(stream.incoming.end());
                self.events.push_back(Event::Fault { side: from, error });
                if !matches!(self.sender.role, Role::Observer(_)) {
                    self.sender.close_for(CloseReason::Fault);
                }
            }
            Input::Gap(length) => self.gap(from, length),
            Input::End => stream.is_ended = true,
        }
    }

    fn timeout(&mut self, now: Duration) {
        self.sender.timers.set_now(now);
        self.settle();
        if let Some(timer) = self.sender.timers.passed() {
            self.sender.close_for(CloseReason::Timeout(timer));
        }
    }

    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Sender)> {
        self.settle();
        if self.events.is_empty() {
            self.advance();
        }
        let Some(event) = self.events.pop_front() else {
            return Some((Event::Closed(self.sender.closing.report()?), &mut self.sender));
        };
        if let (Event::Received(unread), Role::Relay(relay)) = (&event, &mut self.sender.role) {
            relay.forwarding.report(unread.side, unread.clone(), false);
        }
        let event = event.map(|Unread { side, unit, located }| {
            let bytes = self.streams[side.index()].incoming.bytes(located.range);
            Received { side, unit, bytes, offset: located.offset }
        });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.settle_piece();
        self.sender.lanes[to.index()].out.pop()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.sender.timers.next()
    }

    fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    fn is_established(&self) -> bool {
        self.sender.is_established
    }

    fn is_closed(&self) -> bool {
        self.sender.closing.is_closed()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        self.sender.lanes[to.index()].out.bytes()
    }

    fn is_paused(&self, from: Side) -> bool {
        self.sender.is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.sender.kept_bytes(from)
    }
}

/// Reading.
impl Connection {
    /// Reads until something happens or nothing more can be read.
    fn advance(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.incoming.forget());
        while self.events.is_empty() && (self.advance_either() || self.finish()) {}
        if let Some(own) = self.sender.role.side()
            && !self.is_closed()
        {
            let peer = &self.streams[own.other().index()];
            self.sender.watch_message(!peer.incoming.unread().is_empty());
        }
    }

    /// Reads one unit of either side; false when there is none.
    fn advance_either(&mut self) -> bool {
        !self.is_closed() && Side::BOTH.into_iter().any(|side| self.advance_side(side))
    }

    /// Reads one unit of one side; false when there is none.
    fn advance_side(&mut self, side: Side) -> bool {
        if self.is_paused(side) {
            return self.is_flooded(side);
        }
        if let Some(skipped) = self.streams[side.index()].pass_torn() {
            self.events.push_back(Event::Resync { side, skipped });
            return true;
        }
        let phase = &self.streams[side.index()].phase;
        if matches!(phase, Phase::Passing) {
            return self.pass_on(side);
        }
        if matches!(phase, Phase::Waiting)
            && self.agree(self.streams[Side::Client.index()].is_ended)
        {
            return true;
        }
        if let Some(skipped) = self.streams[side.index()].search() {
            if !skipped.is_empty() {
                self.events.push_back(Event::Resync { side, skipped });
            }
            return true;
        }
        match self.streams[side.index()].next() {
            Ok(None) => return false,
            Ok(Some((unit, located))) => {
                match unit {
                    Unit::Message { .. } => self.sender.note_activity(),
                    Unit::Hello | Unit::Key { .. } => self.exchange(side, unit, &located),
                }
                self.events.push_back(Event::Received(Unread { side, unit, located }));
            }
            Err(error) => self.fault(side, error),
        }
        true
    }

    /// A step of the key exchange: keys are kept, and an active role answers.
    fn exchange(&mut self, side: Side, unit: Unit, located: &Located) {
        let mut received = 0;
        if let Unit::Key { number } = unit {
            let incoming = &self.streams[side.index()].incoming;
            let key = incoming.bytes(located.range.clone()).first_chunk();
            self.keys.of[side.index()].extend(key);
            received = usize::from(number);
        }
        let (Some(own), Some(config)) = (self.sender.role.side(), self.sender.role.config()) else {
            return;
        };
        self.sender.timers.start(Timer::Setup, config.step_time);
        // The server's hello asks for the client's first key, a key of one for the next of the
        // other.
        let answer = match own {
            Side::Client => Some(received),
            Side::Server => received.checked_sub(1),
        };
        if let Some(key) = answer.and_then(|index| self.keys.of[own.index()].get(index)) {
            self.sender.lanes[own.other().index()].out.push(key.to_vec());
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
        let variant = match &self.sender.role {
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
        let own = self.sender.role.side();
        for (side, cipher) in Side::BOTH.into_iter().zip([session.client, session.server]) {
            if own != Some(side.other()) {
                self.sender.lanes[side.other().index()].cipher = Some(cipher.clone().into());
            }
            if own != Some(side) {
                self.streams[side.index()].begin(cipher);
            }
        }
        self.sender.is_established = true;
        self.sender.timers.stop(Timer::Setup);
        self.events.push_back(Event::News(News::Established));
        self.sender.note_activity();
        // The messages that waited were checked for room when they were sent.
        self.sender.lanes.iter_mut().for_each(Lane::release_deferred);
        true
    }

    /// Replaces missing bytes of the exchange with known keys: those that decrypt the client's
    /// first message, or the only ones.
    fn recall(&mut self) {
        /// How many keys are tried.
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

    /// Handles missing bytes, which only an observer survives.
    fn gap(&mut self, side: Side, length: u64) {
        let watches = matches!(self.sender.role, Role::Observer(_));
        // What was complete before the gap is reported before it.
        self.agree(true);
        while self.advance_either() {}
        if self.is_closed() {
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
            Ok(()) => Error::malformed(wanted, format!("{length} bytes missing")),
            Err(error) => error,
        };
        self.fault(side, error.at(at));
        if watches {
            self.streams[side.index()].set_phase(Phase::Lost);
        } else {
            self.sender.close_for(CloseReason::Fault);
        }
    }

    /// Handles ended streams when nothing more can be read. Returns false if there is nothing to
    /// report.
    fn finish(&mut self) -> bool {
        if self.is_closed() {
            return false;
        }
        if let Some(own) = self.sender.role.side() {
            if self.streams[own.other().index()].is_ended {
                self.sender.close_for(CloseReason::Remote);
            }
            return false;
        }
        let all_ended = self.streams.iter().all(|stream| stream.is_ended);
        let mut is_torn = false;
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let may_go_on = matches!(stream.phase, Phase::Waiting) && !all_ended;
            if stream.is_ended
                && !may_go_on
                && !self.is_paused(side)
                && let Some(error) = stream.torn()
            {
                self.fault(side, error);
                if matches!(self.sender.role, Role::Observer(_)) {
                    self.streams[side.index()].set_phase(Phase::Lost);
                }
                is_torn = true;
            }
        }
        if !is_torn && all_ended && Side::BOTH.into_iter().all(|side| self.kept_bytes(side) == 0) {
            self.sender.close_for(CloseReason::Remote);
        }
        is_torn
    }

    /// Handles a fault: an observer or relay gives up the stream, an active role the connection.
    /// Before the keys are exchanged, a relay gives up both streams.
    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Event::Fault { side, error });
        match &mut self.sender.role {
            Role::Client(..) | Role::Server(_) => self.sender.close_for(CloseReason::Fault),
            Role::Observer(_) => {
                let stream = &mut self.streams[side.index()];
                if matches!(stream.phase, Phase::Hello) && !stream.is_ended {
                    // Keys are random, so these bytes may be one.
                    stream.pass_hello();
                } else if !stream.look_on() {
                    stream.set_phase(Phase::Lost);
                }
            }
            Role::Relay(relay) => {
                let all = !self.sender.is_established;
                for side in Side::BOTH.into_iter().filter(|one| all || *one == side) {
                    relay.forwarding.set_raw(side);
                    self.streams[side.index()].set_phase(Phase::Passing);
                }
                self.sender.timers.stop(Timer::Setup);
            }
        }
    }
}

/// Relaying.
impl Connection {
    /// Carries out the decision about the last piece, and fills both queues.
    #[inline]
    fn settle(&mut self) {
        // The other roles get here with every input and event, where it must cost nothing.
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Carries out the decision about the last piece.
    fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let streams = &self.streams;
        let settled = relay.forwarding.settle(|side, Unread { located, .. }| {
            streams[side.index()].incoming.bytes(located.range.clone()).to_vec()
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues the pieces of a side that can leave now.
    fn fill(&mut self, from: Side) {
        if let Err(error) = self.sender.fill(from) {
            self.refuse(from, error);
        }
    }

    /// Closes a relay whose stream exceeds a limit.
    fn refuse(&mut self, side: Side, error: Error) {
        let error = error.at(self.streams[side.index()].incoming.offset());
        self.events.push_back(Event::Fault { side, error });
        self.sender.close_for(CloseReason::Fault);
    }

    /// Checks how much of a paused stream has arrived. Returns true, and closes the connection, if
    /// it is too much.
    fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let unread = self.streams[side.index()].incoming.unread().len();
        let checked = relay.forwarding.check_unread(unread);
        checked.map_err(|error| self.refuse(side, error)).is_err()
    }

    /// Forwards bytes of a stream that cannot be read. Returns false if there are none.
    fn pass_on(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        let bytes = self.streams[side.index()].take(relay.forwarding.max_raw_bytes());
        if bytes.is_empty() {
            return false;
        }
        relay.forwarding.pass(side, None, bytes);
        self.fill(side);
        true
    }
}
