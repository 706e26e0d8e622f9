//! The Uru connection as a state machine without IO. It follows the contract of
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
mod relay_state;
mod sender;
mod setup;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as Machine, Event, EventOf, Input, SendError, Sender as _,
    Timer, Timers,
};
use worldwire_core::{Error, Result, Side};

pub use captured::CapturedExchange;
#[cfg(feature = "fuzzing")]
pub(crate) use config::key_kind;
pub use config::{BuildPolicy, ClientConfig, Encryption, RelayConfig, RelayKeys, ServerConfig};
pub use event::{Content, News, Received, Unit};
pub use relay_state::RelayRandom;
pub use sender::Sender;

use crate::connect::SetupPacket;
use crate::crypt::exchange::SessionKey;
use crate::file::keys::KeyRing;
use crate::frame::Service;
use config::refused;
use event::Unread;
use late::Candidate;
use ping::answer;
use sender::Role;
use stream::{Attempt, Phase, Stream};

/// A connection to any service, in one of four roles.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// The streams of both sides, as far as this role reads them; by [`Side::index`].
    streams: [Stream; 2],
    /// Observer: the seed and the key of an encrypted connection.
    session: Option<([u8; 7], SessionKey)>,
    /// The services it may belong to, while the connect packet is missing and only messages can
    /// decide.
    candidates: Vec<Candidate>,
    /// Events not reported yet. Pieces are still in the buffer of their stream.
    events: VecDeque<Event<Unread, News>>,
}

/// The most encrypted bytes that an observer or relay keeps while it waits for the seed.
const MAX_WAITING_BYTES: usize = 1 << 20;

impl Connection {
    /// Acts as a client and queues the connect packet and setup packet at once. `random` holds
    /// fresh random bytes for the client's secret.
    ///
    /// # Errors
    /// Value, if the connect packet names a discontinued service. Malformed, if the random bytes
    /// yield a number that servers refuse, as zeros do; draw new ones then.
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
            sender.timers.start(Timer::Setup, config.setup_time);
        } else {
            connection.establish(service, None);
        }
        Ok(connection)
    }

    /// Acts as a server. `random` holds fresh random bytes: the seed sent to the client.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, random: [u8; 7], now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let role = Role::Server { config, seed: random };
        let mut connection = Self::new(role, bounds, [Phase::Connect, Phase::Lost], now);
        connection.sender.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// Observes both sides. Reading encrypted connections takes the shard's private keys.
    #[must_use]
    pub fn observer(keys: Arc<KeyRing>) -> Self {
        let role = Role::Observer { keys, y: None, exchange: None };
        Self::new(role, Bounds::default(), [Phase::Connect, Phase::Setup], Duration::ZERO)
    }

    /// Gives an observer a key exchange computed in advance with the same keys. If it does not
    /// match the packets that arrive, the observer computes its own.
    pub fn expect(&mut self, computed: Arc<CapturedExchange>) {
        if let Role::Observer { exchange, .. } = &mut self.sender.role {
            *exchange = Some(computed);
        }
    }

    fn new(role: Role, bounds: Bounds, phases: [Phase; 2], now: Duration) -> Self {
        let [client, server] = phases;
        Self {
            sender: Sender::new(role, bounds, Timers::new(now)),
            streams: [Stream::new(Side::Client, client), Stream::new(Side::Server, server)],
            session: None,
            candidates: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// The connection's service, once known.
    #[must_use]
    pub fn service(&self) -> Option<Service> {
        self.sender.service
    }

    /// For an observer of an encrypted connection: the server's seed and the session key, once
    /// known. [`KeyRing::insert_session`] uses them to make the connection readable without the
    /// server's key.
    #[must_use]
    pub fn session(&self) -> Option<(&[u8; 7], &SessionKey)> {
        self.session.as_ref().map(|(seed, key)| (seed, key))
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
            || self.sender.role.side() == Some(from)
        {
            return;
        }
        match input {
            Input::Bytes(bytes) => {
                if self.events.is_empty() {
                    stream.incoming.forget();
                }
                stream.push(bytes);
            }
            Input::Datagram(_) => {
                let error = Error::malformed("a stream: Uru runs over TCP", "a datagram");
                let error = error.at(stream.incoming.end());
                self.events.push_back(Event::Fault { side: from, error });
                if !matches!(self.sender.role, Role::Observer { .. }) {
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
        match self.sender.timers.passed() {
            Some(Timer::Beat) => {
                if let Err(error) = self.sender.ping() {
                    self.fault(Side::Client, error);
                }
            }
            Some(timer) => self.sender.close_for(CloseReason::Timeout(timer)),
            None => {}
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
        if let Event::Received(unread) = &event {
            self.report(&unread.clone());
        }
        let event = event.map(|Unread { side, unit, located, encrypted }| {
            let bytes = self.streams[side.index()].incoming.bytes(located.range);
            Received { side, unit, bytes, offset: located.offset, encrypted }
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
    /// Reads until there is an event or nothing more can be read.
    fn advance(&mut self) {
        while self.events.is_empty() && (self.advance_either() || self.finish()) {}
        if !self.is_closed() {
            let has_begun = !self.streams[Side::Client.index()].incoming.unread().is_empty();
            self.sender.watch_message(has_begun);
        }
    }

    /// Reads one unit of either side; false if there is none.
    fn advance_either(&mut self) -> bool {
        !self.is_closed() && Side::BOTH.into_iter().any(|side| self.advance_side(side))
    }

    /// Reads one unit of one side; false if there is none.
    fn advance_side(&mut self, side: Side) -> bool {
        if self.is_paused(side) {
            return self.is_flooded(side);
        }
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
                let answer_pings = match &self.sender.role {
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
            Phase::Passing => self.forward_unread(side),
            Phase::Waiting | Phase::Lost => false,
        }
    }

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

    /// Limits the bytes that accumulate until more arrives from the other side.
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

    /// Turns the error of an unreadable first message into one about a wrong key.
    fn suspect_key(&self, side: Side, error: Error) -> Error {
        let stream = &self.streams[side.index()];
        let nothing_read = self.streams.iter().all(|stream| stream.messages == 0);
        if stream.is_encrypted() && nothing_read {
            let service = self.service().map_or("", Service::name);
            let at = error.offset().unwrap_or(0);
            let found = format!("a different key: the decrypted bytes are not a message ({error})");
            return Error::malformed(format!("the {service} key of this connection"), found).at(at);
        }
        error
    }

    /// Handles missing bytes, after which only an observer can continue.
    fn gap(&mut self, side: Side, length: u64) {
        let watches = matches!(self.sender.role, Role::Observer { .. });
        if self.streams[side.index()].is_lost() {
            self.streams[side.index()].incoming.skip(length);
            return;
        }
        // Report everything that was complete before the gap first.
        while self.advance_either() || self.identify_service(true) {}
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
                    (true, _) => "the whole of connection setup",
                    (false, true) => "a shorter gap",
                    (false, false) => "a stream without gaps",
                };
                Error::malformed(wanted, format!("{length} bytes missing"))
            }
        };
        self.fault(side, error.at(at));
        if !watches {
            self.sender.close_for(CloseReason::Fault);
        }
    }

    /// Handles streams that have ended, once nothing more can be read. False if nothing changed.
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
        if all_ended && self.identify_service(true) {
            return true;
        }
        let mut is_torn = false;
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let may_continue = !stream.is_ended || (self.is_waiting(side) && !all_ended);
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
                if !established || self.streams[side.index()].is_ended {
                    self.give_up(side);
                }
            }
        } else if all_ended && Side::BOTH.into_iter().all(|side| self.kept_bytes(side) == 0) {
            self.sender.close_for(CloseReason::Remote);
        }
        is_torn
    }

    /// Handles a fault: an observer or relay gives up the stream, a client or server the
    /// connection.
    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Event::Fault { side, error });
        let has_messages = self.streams.iter().any(|stream| stream.messages > 0);
        match self.sender.role {
            Role::Client { .. } | Role::Server { .. } => self.sender.close_for(CloseReason::Fault),
            Role::Observer { .. } if has_messages => self.streams[side.index()].pass_over(),
            Role::Relay(_) if self.sender.is_established => self.give_up(side),
            Role::Relay(ref relay) if relay.is_committed() => {
                self.sender.close_for(CloseReason::Fault);
            }
            // A wrong key or an unreadable setup affects both directions.
            Role::Observer { .. } | Role::Relay(_) => {
                Side::BOTH.into_iter().for_each(|side| self.give_up(side));
            }
        }
    }

    /// Stops reading a stream.
    fn give_up(&mut self, side: Side) {
        let phase = match &mut self.sender.role {
            Role::Relay(relay) => {
                self.sender.timers.stop(Timer::Setup);
                relay.pass(side)
            }
            _ => Phase::Lost,
        };
        self.streams[side.index()].set_phase(phase);
    }
}
