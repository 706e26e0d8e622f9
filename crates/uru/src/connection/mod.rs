//! The Uru connection as a state machine without I/O. It follows the contract of
//! [`worldwire_core::connection`].
//!
//! A [`Connection`] acts as the client or the server, observes both, or relays between them. Each
//! TCP connection has its own machine. The connect packet names the service.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_core::connection::{Connection as _, Input};
//! use worldwire_uru::connection::{ClientConfig, Connection, Encryption, ServerConfig};
//! use worldwire_uru::file::keys::KeyRing;
//! use worldwire_uru::frame::Service;
//!
//! let now = Duration::ZERO;
//! let mut config = ServerConfig::new(KeyRing::new());
//! config.encryption = Encryption::AllowPlain;
//! let mut server = Connection::server(config.into(), [7; 7], now);
//! let config = ClientConfig::new(Service::Auth, None);
//! let mut client = Connection::client(config.into(), [1; 64], now)?;
//!
//! // A driver without a network: each side receives the other's bytes.
//! for _ in 0..2 {
//!     while let Some(bytes) = client.poll_transmit(Side::Server) {
//!         server.input(now, Side::Client, Input::Bytes(&bytes));
//!     }
//!     while server.poll_event().is_some() {}
//!     while let Some(bytes) = server.poll_transmit(Side::Client) {
//!         client.input(now, Side::Server, Input::Bytes(&bytes));
//!     }
//!     while client.poll_event().is_some() {}
//! }
//! assert_eq!(client.service(), Some(Service::Auth));
//! assert!(client.is_established() && server.is_established());
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod captured;
mod config;
mod event;
mod late;
mod ping;
mod relay;
mod sender;
mod setup;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Event, Parts, SendError, Sender as _, StreamMachine,
    Timer, Unread, read_up,
};
use worldwire_core::{Error, Result, Side};

pub use captured::CapturedExchange;
#[cfg(feature = "fuzzing")]
pub(crate) use config::key_kind;
pub use config::{BuildPolicy, ClientConfig, Encryption, RelayConfig, RelayKeys, ServerConfig};
pub use event::{Content, News, Received, Unit};
pub use relay::RelayRandom;
pub use sender::Sender;

use crate::connect::SetupPacket;
use crate::file::keys::KeyRing;
use crate::frame::Service;
use config::refused;
use late::Candidate;
use ping::{answer, is_ping};
use relay::RelayState;
use sender::Role;
use setup::PLAIN;
use stream::{Attempt, Phase, Stream};

/// A connection to any service, in one of four roles.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// The streams of both sides, as far as this role reads them, indexed by [`Side::index`].
    streams: [Stream; 2],
    /// The services that the connection may belong to if the connect packet is missing and only the
    /// messages can show which one it is.
    candidates: Vec<Candidate>,
    /// Events not reported yet. Pieces are still in the buffer of their stream.
    events: VecDeque<Event<Unread<Unit>, News>>,
}

/// The hint for a client whose encrypted connection ends before it has read a message. The key
/// exchange succeeds with any key, but with a wrong one, each side reads noise afterwards.
pub const OTHER_KEYS: &str = "the keys may be those of another shard: check that the keys belong \
                              to this server, and that the server accepts the client's build";

/// The maximum number of encrypted bytes that an observer or relay keeps while it waits for the
/// seed.
const MAX_WAITING_BYTES: usize = 1 << 20;

impl Connection {
    /// Acts as a client and queues the connect packet and setup packet at once. `random` holds
    /// fresh random bytes for the client's secret.
    ///
    /// # Errors
    /// `Value` if the connect packet names a discontinued service. `Malformed` if the random bytes
    /// yield a number that servers refuse, for example if they are all zero; draw new ones in that
    /// case.
    pub fn client(config: Arc<ClientConfig>, random: [u8; 64], now: Duration) -> Result<Self> {
        let Some(service) = config.connect.service() else {
            let found = config.connect.connection_type().to_string();
            return Err(Error::value("a service that is still in use", found).inside("connType"));
        };
        let mut shared = None;
        let y = match config.key.as_ref().filter(|_| service.is_encrypted()) {
            None => Vec::new(),
            Some(key) => {
                let (y, secret) = key.client_begin(&random).map_err(refused)?;
                shared = Some(secret);
                y.as_bytes().to_vec()
            }
        };
        let phase = if service.is_encrypted() { Phase::Setup } else { Phase::Messages(service) };
        let role = Role::Client { config: Arc::clone(&config), shared };
        let mut connection = Self::new(role, config.bounds, [Phase::Lost, phase], now);
        let sender = &mut connection.sender;
        sender.service = Some(service);
        sender.transmit(Side::Server, &config.connect)?;
        if service.is_encrypted() {
            sender.transmit(Side::Server, &SetupPacket::Connect(y.into()))?;
            sender.half.timers.start(Timer::Setup, config.setup_time);
        } else {
            connection.establish(service, PLAIN);
        }
        Ok(connection)
    }

    /// Acts as a server. `random` holds fresh random bytes: the seed sent to the client.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, random: [u8; 7], now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let role = Role::Server { config, seed: random };
        let mut connection = Self::new(role, bounds, [Phase::Connect, Phase::Lost], now);
        connection.sender.half.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// Observes both sides. Reading encrypted connections requires the shard's private keys.
    #[must_use]
    pub fn observer(keys: Arc<KeyRing>) -> Self {
        let role = Role::observer(keys, None);
        Self::new(role, Bounds::default(), [Phase::Connect, Phase::Setup], Duration::ZERO)
    }

    /// Relays between a client and a server. [`Sender`] implements
    /// [`Forward`](worldwire_core::connection::Forward) and
    /// [`Inject`](worldwire_core::connection::Inject).
    ///
    /// A message may be dropped, or replaced by another for the same service and side. A connect
    /// packet may be replaced by another for the same service. Setup packets are forwarded
    /// unchanged, or replaced by the relay's own.
    ///
    /// [`RelayKeys`] offers two ways to relay encrypted connections. With shared
    /// keys, the relay has the private key of the service and reads the exchange like an observer,
    /// so unchanged messages have the same bytes on both sides. With separate keys, the relay
    /// answers the client as a server would and contacts the server as a client would, so one hop
    /// can be encrypted and the other plain. Plain connections and the file service need no keys
    /// and are forwarded byte for byte.
    ///
    /// Pings and their replies overtake [held](worldwire_core::connection::Forward::hold) pieces,
    /// so that both ends stay connected.
    ///
    /// A stream of another protocol is forwarded unread, as is a stream after a fault. In both
    /// cases, and after setup, the relay sets no deadlines.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, random: RelayRandom, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let role = Role::Relay(Box::new(RelayState::new(config, random)));
        let mut connection = Self::new(role, bounds, [Phase::Connect, Phase::Setup], now);
        connection.sender.half = connection.sender.half.forwarding(bounds);
        connection.sender.half.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// Observes both sides. The key exchange was computed in advance with the same keys; if it does
    /// not match the packets that arrive, the observer computes its own.
    #[must_use]
    pub fn observer_expecting(keys: Arc<KeyRing>, computed: Arc<CapturedExchange>) -> Self {
        let role = Role::observer(keys, Some(computed));
        Self::new(role, Bounds::default(), [Phase::Connect, Phase::Setup], Duration::ZERO)
    }

    fn new(role: Role, bounds: Bounds, phases: [Phase; 2], now: Duration) -> Self {
        let [client, server] = phases;
        Self {
            sender: Sender::new(role, bounds, now),
            streams: [Stream::new(Side::Client, client), Stream::new(Side::Server, server)],
            candidates: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// The connection's service, once known.
    #[must_use]
    pub fn service(&self) -> Option<Service> {
        self.sender.service
    }

    /// The likely cause if a client's connection ends now: [`OTHER_KEYS`] if the connection is
    /// encrypted and no message from the server has been read.
    #[must_use]
    pub fn closing_hint(&self) -> Option<&'static str> {
        let server = &self.streams[Side::Server.index()];
        let is_client = matches!(self.sender.half.role, Role::Client { .. });
        (is_client && server.is_encrypted() && server.messages == 0).then_some(OTHER_KEYS)
    }

    /// The keys with which an observer or a relay decrypts the connection, once known. With this
    /// ring, the connection (for a relay, both of its hops) can be read without the server's key.
    #[must_use]
    pub fn opened_with(&self) -> Option<KeyRing> {
        let sessions = match &self.sender.half.role {
            Role::Observer { session, .. } => session.as_slice(),
            Role::Relay(relay) => &relay.sessions,
            Role::Client { .. } | Role::Server { .. } => return None,
        };
        if sessions.is_empty() {
            return None;
        }
        let mut ring = KeyRing::new();
        for (seed, key) in sessions {
            ring.insert_session(self.service()?, *seed, key.clone());
        }
        Some(ring)
    }
}

impl StreamMachine for Connection {
    const PROTOCOL: &'static str = "Uru";

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
        if self.is_waiting(side) {
            return self.identify_service(false) || self.begin_late(side) || self.wait(side);
        }
        let stream = &mut self.streams[side.index()];
        match *stream.phase() {
            Phase::Connect => {
                let attempt = stream.connect_packet();
                self.conclude(side, Unit::Connect, attempt, Self::connected)
            }
            Phase::Setup => {
                let attempt = stream.setup_packet();
                self.conclude(side, Unit::Setup, attempt, Self::set_up)
            }
            Phase::Messages(service) => {
                let answer_pings = match &self.sender.half.role {
                    Role::Server { config, .. } => config.answer_pings,
                    _ => false,
                };
                let attempt = stream
                    .message(service, |message| answer_pings.then(|| answer(message)).flatten());
                self.conclude(side, Unit::Message(service), attempt, |connection, _, pong| {
                    connection.sender.note_message(service);
                    let sent = pong.map_or(Ok(()), |pong| connection.sender.send(&pong));
                    sent.map_err(SendError::into_error)
                })
            }
            Phase::Searching(service, _) => match stream.search() {
                Some(skipped) => {
                    self.resumed_at(service);
                    if !skipped.is_empty() {
                        self.events.push_back(Event::Resync { side, skipped });
                    }
                    true
                }
                None => false,
            },
            Phase::Late => self.begin_late(side),
            Phase::Waiting | Phase::Lost | Phase::Passing => false,
        }
    }

    fn push(&mut self, from: Side, bytes: &[u8]) {
        self.streams[from.index()].push(bytes);
    }

    fn gap(&mut self, side: Side, length: u64) {
        let watches = matches!(self.sender.half.role, Role::Observer { .. });
        if self.streams[side.index()].is_lost() {
            self.streams[side.index()].incoming.skip(length);
            return;
        }
        // First report everything that was complete before the gap.
        while read_up(self) && self.identify_service(true) {}
        if self.is_closed() {
            return;
        }
        let stream = &mut self.streams[side.index()];
        let at = stream.incoming.end();
        self.events.push_back(Event::Gap { side, range: at..at.saturating_add(length) });
        if watches && self.is_late_gap(side, length) {
            return;
        }
        let stream = &mut self.streams[side.index()];
        let in_setup = matches!(stream.phase(), Phase::Connect | Phase::Setup | Phase::Waiting);
        let error = match stream.skip(length) {
            Ok(true) if watches => return,
            Err(error) if watches => error,
            _ => {
                let wanted = match (in_setup, watches) {
                    (true, _) => "a complete connection setup",
                    (false, true) => "a shorter gap",
                    (false, false) => "a stream without gaps",
                };
                Error::malformed(wanted, format!("a gap of {length} bytes"))
            }
        };
        self.fault(side, error.at(at));
        if !watches {
            self.sender.half.close_for(CloseReason::Fault);
        }
    }

    fn conclude(&mut self, all_ended: bool) -> bool {
        if all_ended && self.identify_service(true) {
            return true;
        }
        let mut is_torn = false;
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let may_continue = !stream.incoming.is_ended || (self.is_waiting(side) && !all_ended);
            if !may_continue
                && !self.is_paused(side)
                && let Some(error) = stream.torn()
            {
                let error = self.suspect_key(side, error);
                self.events.push_back(Event::Fault { side, error });
                is_torn = true;
            }
        }
        if is_torn {
            let established = self.sender.is_established;
            for side in Side::BOTH {
                if !established || self.streams[side.index()].incoming.is_ended {
                    self.give_up(side);
                }
            }
        }
        is_torn
    }

    fn beat(&mut self) {
        if let Err(error) = self.sender.ping() {
            self.fault(Side::Client, error);
        }
    }

    fn in_transit(&self, unread: &Unread<Unit>) -> (Side, Unread<Unit>, bool) {
        let Unread { side, unit, located, .. } = unread;
        let incoming = &self.streams[side.index()].incoming;
        let is_urgent = match unit {
            Unit::Message(service) => is_ping(*service, incoming.bytes(located.range.clone())),
            Unit::Connect | Unit::Setup => false,
        };
        (*side, unread.clone(), is_urgent)
    }

    fn range(piece: &Unread<Unit>) -> Range<usize> {
        piece.located.range.clone()
    }

    #[inline]
    fn received(unread: Unread<Unit>, streams: &mut [Stream; 2]) -> Received<'_> {
        let Unread { side, unit, located, encrypted } = unread;
        let bytes = streams[side.index()].incoming.bytes(located.range);
        Received { side, unit, bytes, offset: located.offset, encrypted }
    }

    fn is_established(&self) -> bool {
        self.sender.is_established
    }

    fn copy(&self) -> Option<Self> {
        let sender = self.sender.observing().filter(|_| self.events.is_empty())?;
        let (streams, candidates) = (self.streams.clone(), self.candidates.clone());
        Some(Self { sender, streams, candidates, events: VecDeque::new() })
    }
}

/// Reads the streams.
impl Connection {
    /// Whether the bytes of a side cannot be read until more arrives from the other side. The
    /// server's setup packet follows the client's packets, but a capture may list them in another
    /// order.
    fn is_waiting(&self, side: Side) -> bool {
        let [client, server] = self.streams.each_ref().map(Stream::phase);
        match side {
            Side::Client => matches!(client, Phase::Waiting),
            Side::Server => {
                matches!(server, Phase::Waiting)
                    || (matches!(server, Phase::Setup)
                        && matches!(client, Phase::Connect | Phase::Late | Phase::Setup))
            }
        }
    }

    /// Limits the bytes kept while waiting for the other side.
    fn wait(&mut self, side: Side) -> bool {
        let incoming = &self.streams[side.index()].incoming;
        let (unread, offset) = (incoming.unread().len(), incoming.offset());
        if unread > MAX_WAITING_BYTES {
            let limit = MAX_WAITING_BYTES as u64;
            let error = Error::limit("bytes before the key exchange", limit, unread as u64);
            self.fault(side, error.at(offset));
            return true;
        }
        false
    }

    /// Reports the unit that was read, then lets `then` act on it.
    fn conclude<R>(
        &mut self,
        side: Side,
        unit: Unit,
        attempt: Attempt<R>,
        then: impl FnOnce(&mut Self, Side, R) -> Result<()>,
    ) -> bool {
        match attempt {
            Ok(None) => false,
            Ok(Some((value, located))) => {
                let encrypted =
                    matches!(unit, Unit::Message(_)) && self.streams[side.index()].is_encrypted();
                let offset = located.offset;
                self.events.push_back(Event::Received(Unread { side, unit, located, encrypted }));
                if let Err(error) = then(self, side, value) {
                    self.fault(side, error.at(offset));
                }
                true
            }
            Err(error) => {
                let error = self.suspect_key(side, error);
                self.fault(side, error);
                true
            }
        }
    }

    /// Replaces the error for an unreadable first message with one about a wrong key.
    fn suspect_key(&self, side: Side, error: Error) -> Error {
        let stream = &self.streams[side.index()];
        let nothing_read = self.streams.iter().all(|stream| stream.messages == 0);
        if stream.is_encrypted() && nothing_read {
            let service = self.service().map_or("", Service::name);
            let at = error.offset().unwrap_or(0);
            let problem = format!(
                "these are another shard's keys: the {service} key does not decrypt this \
                 connection ({error})"
            );
            return Error::malformed("", problem).at(at);
        }
        error
    }

    /// Handles a fault: an observer or relay gives up the stream; a client or server gives up the
    /// connection.
    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Event::Fault { side, error });
        let has_messages = self.streams.iter().any(|stream| stream.messages > 0);
        match self.sender.half.role {
            Role::Client { .. } | Role::Server { .. } => {
                self.sender.half.close_for(CloseReason::Fault)
            }
            Role::Observer { .. } if has_messages => self.streams[side.index()].pass_over(),
            Role::Relay(_) if self.sender.is_established => self.give_up(side),
            Role::Relay(ref relay) if relay.is_committed() => {
                self.sender.half.close_for(CloseReason::Fault);
            }
            // A wrong key or an unreadable setup affects both directions.
            Role::Observer { .. } | Role::Relay(_) => {
                Side::BOTH.into_iter().for_each(|side| self.give_up(side));
            }
        }
    }

    /// Stops reading a stream.
    fn give_up(&mut self, side: Side) {
        let phase = match &mut self.sender.half.forwarding {
            Some(forwarding) => {
                self.sender.half.timers.stop(Timer::Setup);
                forwarding.set_raw(side);
                Phase::Passing
            }
            None => Phase::Lost,
        };
        self.streams[side.index()].set_phase(phase);
    }
}
