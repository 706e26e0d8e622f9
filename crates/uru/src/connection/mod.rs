//! The connection as a state machine, without any IO.
//!
//! A [`Connection`] plays the client, plays the server, or watches both. Bytes, time and random
//! numbers come in as arguments; events, bytes to send and deadlines come out.
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
//! Time is a [`Duration`] since whatever moment the driver counts from; it must not run backwards.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_uru::connection::{
//!     ClientConfig, Connection, Encryption, Event, ServerConfig,
//! };
//! use worldwire_uru::file::keys::KeyRing;
//! use worldwire_uru::frame::Service;
//!
//! let now = Duration::ZERO;
//! let mut config = ServerConfig::new(KeyRing::new());
//! config.encryption = Encryption::AllowPlain;
//! let mut server = Connection::server(config.into(), [7; 7], now);
//! let mut client =
//!     Connection::client(ClientConfig::new(Service::Auth, None, [1; 64]), now)?;
//!
//! // A driver with no network: what one side sends, the other receives.
//! for _ in 0..2 {
//!     while let Some(bytes) = client.poll_transmit() {
//!         server.receive(Side::Client, now, &bytes);
//!     }
//!     while server.poll_event().is_some() {}
//!     while let Some(bytes) = server.poll_transmit() {
//!         client.receive(Side::Server, now, &bytes);
//!     }
//!     while client.poll_event().is_some() {}
//! }
//! assert_eq!(client.service(), Some(Service::Auth));
//! assert!(client.is_established() && server.is_established());
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod config;
mod event;
mod ping;
mod setup;
mod stream;

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Error, Field, Result, Side, Writer};

pub use config::{BuildPolicy, ClientConfig, Encryption, ServerConfig};
pub use event::{CloseReason, Content, Event, Received, Timer, Unit};

use crate::connect::SetupPacket;
use crate::crypt::exchange::SharedSecret;
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service};
use ping::{answer, ping};
use setup::refused;
use stream::{Attempt, Phase, Stream, Unread};

/// A connection of any service, seen from one of three roles.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    /// What each side sends, as far as this role reads it; by [`Side::index`].
    streams: [Stream; 2],
    service: Option<Service>,
    established: bool,
    closed: bool,
    events: VecDeque<Pending>,
    out: VecDeque<Vec<u8>>,
    out_bytes: usize,
    /// Encrypts what this role sends.
    cipher: Option<Rc4>,
    /// Messages that were sent before setup was over.
    early: VecDeque<Vec<u8>>,
    early_bytes: usize,
    timers: Timers,
}

/// Who a connection is.
#[derive(Debug)]
enum Role {
    Client { config: Box<ClientConfig>, shared: Option<SharedSecret> },
    Server { config: Arc<ServerConfig>, seed: [u8; 7] },
    Observer { keys: Arc<KeyRing>, y: Option<Vec<u8>> },
}

/// When something has to happen.
#[derive(Debug, Default)]
struct Timers {
    now: Duration,
    setup: Option<Duration>,
    message: Option<Duration>,
    idle: Option<Duration>,
    ping: Option<Duration>,
}

/// An event that is not told yet; messages are still in the buffer of their stream.
#[derive(Debug)]
enum Pending {
    Received { side: Side, unit: Unit, range: Range<usize>, offset: u64, encrypted: bool },
    Established { service: Service, encrypted: bool },
    Gap { side: Side, range: Range<u64> },
    Resync { side: Side, skipped: Range<u64> },
    KeysNeeded { service: Service },
    Fault { side: Side, error: Error },
    Closed(CloseReason),
}

/// The most encrypted bytes an observer keeps while it waits for the seed.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// The most a client queues: bytes.
const MOST_CLIENT_BYTES: usize = 8 << 20;
/// The most a client queues: messages, and the two packets of setup.
const MOST_CLIENT_MESSAGES: usize = 1002;

impl Connection {
    /// Plays a client: the connect packet and the setup packet are ready to be sent.
    ///
    /// # Errors
    /// Value, when the connect packet names a dead service, or the random bytes are of the one in
    /// 2^500 that make a number a server would refuse.
    pub fn client(config: ClientConfig, now: Duration) -> Result<Self> {
        let Some(service) = config.connect.service() else {
            let found = config.connect.connection_type().to_string();
            return Err(Error::value("a service that is alive", found).inside("connType"));
        };
        let setup_time = config.setup_time;
        let mut setup = None;
        let mut shared = None;
        if service.is_encrypted() {
            setup = Some(SetupPacket::Connect(match &config.key {
                None => Vec::new().into(),
                Some(key) => {
                    let (y, secret) = key.client_begin(&config.random).map_err(refused)?;
                    shared = Some(secret);
                    y.as_bytes().to_vec().into()
                }
            }));
        }
        let connect = config.connect.clone();
        let role = Role::Client { config: Box::new(config), shared };
        let phase = if service.is_encrypted() { Phase::Setup } else { Phase::Messages(service) };
        let mut connection = Self::new(role, Phase::Lost, phase, now);
        connection.service = Some(service);
        connection.transmit(&connect)?;
        match setup {
            Some(packet) => {
                connection.transmit(&packet)?;
                connection.timers.setup = Some(now + setup_time);
            }
            None => connection.establish(service, None),
        }
        Ok(connection)
    }

    /// Plays a server. `seed` is seven fresh random bytes.
    #[must_use]
    pub fn server(config: Arc<ServerConfig>, seed: [u8; 7], now: Duration) -> Self {
        let setup = now + config.setup_time;
        let role = Role::Server { config, seed };
        let mut connection = Self::new(role, Phase::Connect, Phase::Lost, now);
        connection.timers.setup = Some(setup);
        connection
    }

    /// Watches both sides. With the private keys of the shard, encrypted connections can be read.
    #[must_use]
    pub fn observer(keys: Arc<KeyRing>) -> Self {
        let role = Role::Observer { keys, y: None };
        Self::new(role, Phase::Connect, Phase::Setup, Duration::ZERO)
    }

    fn new(role: Role, client: Phase, server: Phase, now: Duration) -> Self {
        Self {
            role,
            streams: [Stream::new(Side::Client, client), Stream::new(Side::Server, server)],
            service: None,
            established: false,
            closed: false,
            events: VecDeque::new(),
            out: VecDeque::new(),
            out_bytes: 0,
            cipher: None,
            early: VecDeque::new(),
            early_bytes: 0,
            timers: Timers { now, ..Timers::default() },
        }
    }

    /// Input: bytes that `side` sent. For an observer a call should be a segment, since messages
    /// tend to begin with one; otherwise the stream may be cut anywhere.
    pub fn receive(&mut self, side: Side, now: Duration, bytes: &[u8]) {
        self.timers.now = now;
        if !self.closed {
            let keep = self.events.iter().any(|event| matches!(event, Pending::Received { .. }));
            self.streams[side.index()].push(bytes, keep);
        }
    }

    /// Input: `length` bytes that `side` sent are missing. Only an observer can live with that.
    pub fn gap(&mut self, side: Side, now: Duration, length: u64) {
        self.timers.now = now;
        if self.closed || self.streams[side.index()].is_lost() {
            // It only counts what it does not read.
            let _ = self.streams[side.index()].skip(length);
            return;
        }
        // What was complete before the gap is told before it.
        self.advance_all();
        let stream = &mut self.streams[side.index()];
        let at = stream.offset().saturating_add(stream.unread() as u64);
        self.events.push_back(Pending::Gap { side, range: at..at.saturating_add(length) });
        let in_setup = matches!(stream.phase(), Phase::Connect | Phase::Setup | Phase::Waiting);
        let watches = matches!(self.role, Role::Observer { .. });
        let error = match stream.skip(length) {
            Ok(true) if watches => return,
            Err(error) if watches => error,
            _ => {
                let found = format!("{length} bytes missing");
                let wanted = if in_setup {
                    "the whole of connection setup"
                } else {
                    "a stream without gaps"
                };
                Error::malformed(wanted, found)
            }
        };
        self.fault(side, error.at(at));
    }

    /// Input: both sides' streams have ended.
    pub fn end(&mut self, now: Duration) {
        self.timers.now = now;
        self.advance_all();
        if self.closed {
            return;
        }
        for side in Side::BOTH {
            let stream = &self.streams[side.index()];
            let offset = stream.offset();
            let found = format!("{} bytes of one", stream.unread());
            let torn = stream.unread() > 0 && !stream.is_lost();
            let what = match stream.phase() {
                Phase::Connect => "a whole connect packet",
                Phase::Setup => "a whole setup packet",
                Phase::Waiting => "the server's seed",
                _ => "a whole message",
            };
            if torn && matches!(self.role, Role::Observer { .. }) {
                let error = Error::malformed(what, found).at(offset);
                let error = self.suspect_key(side, error);
                self.events.push_back(Pending::Fault { side, error });
            }
        }
        self.close_for(CloseReason::Remote);
    }

    /// Input: time has passed; see [`poll_timeout`](Self::poll_timeout).
    pub fn timeout(&mut self, now: Duration) {
        self.timers.now = now;
        let passed = |deadline: Option<Duration>| deadline.is_some_and(|at| at <= now);
        if passed(self.timers.setup) {
            self.close_for(CloseReason::Timeout(Timer::Setup));
        } else if passed(self.timers.message) {
            self.close_for(CloseReason::Timeout(Timer::Message));
        } else if passed(self.timers.idle) {
            self.close_for(CloseReason::Timeout(Timer::Idle));
        } else if passed(self.timers.ping) {
            self.ping();
        }
    }

    /// Command: sends a message. Before setup is over it waits.
    ///
    /// # Errors
    /// Value, for a message of another service or side, one that cannot be encoded, or on a closed
    /// connection; the limit on what may wait to be sent, after which the connection should be
    /// closed, since its other end does not read.
    pub fn send(&mut self, message: &Message<'_>) -> Result<()> {
        let sender = match self.role {
            Role::Client { .. } => Side::Client,
            Role::Server { .. } => Side::Server,
            Role::Observer { .. } => {
                return Err(Error::value("a client or a server", "an observer"));
            }
        };
        if self.closed {
            return Err(Error::value("an open connection", "a closed one"));
        }
        if self.service != Some(message.service()) || message.sender() != sender {
            let wanted = match self.service {
                Some(service) => format!("a message of the {sender} on {}", service.name()),
                None => "a connection whose service is known".to_owned(),
            };
            let found = format!("{}.{}", message.service().name(), message.name());
            return Err(Error::value(wanted, found));
        }
        let bytes = message.to_bytes()?;
        self.check_room(bytes.len())?;
        if self.established {
            self.queue(bytes);
        } else {
            self.early_bytes += bytes.len();
            self.early.push_back(bytes);
        }
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
            Pending::Received { side, unit, range, offset, encrypted } => {
                let bytes = self.streams[side.index()].bytes(range);
                Event::Received(Received { side, unit, bytes, offset, encrypted })
            }
            Pending::Established { service, encrypted } => {
                Event::Established { service, encrypted }
            }
            Pending::Gap { side, range } => Event::Gap { side, range },
            Pending::Resync { side, skipped } => Event::Resync { side, skipped },
            Pending::KeysNeeded { service } => Event::KeysNeeded { service },
            Pending::Fault { side, error } => Event::Fault { side, error },
            Pending::Closed(reason) => Event::Closed(reason),
        })
    }

    /// Output: the next bytes to send, to be handed to the network in one write.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        let bytes = self.out.pop_front()?;
        self.out_bytes -= bytes.len();
        Some(bytes)
    }

    /// Output: when to call [`timeout`](Self::timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let Timers { setup, message, idle, ping, .. } = self.timers;
        [setup, message, idle, ping].into_iter().flatten().min()
    }

    /// What the connection is for, once that is known.
    #[must_use]
    pub fn service(&self) -> Option<Service> {
        self.service
    }

    /// Whether setup is over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many bytes wait to be sent.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.out_bytes
    }
}

/// Reading.
impl Connection {
    /// Reads until something happens or nothing more can be read.
    fn advance(&mut self) {
        while self.events.is_empty() && self.advance_either() {}
        if !self.closed {
            self.watch_message();
        }
    }

    /// Reads all that can be read.
    fn advance_all(&mut self) {
        while self.advance_either() {}
    }

    /// Reads one unit of either side; false when there is none.
    fn advance_either(&mut self) -> bool {
        !self.closed && (self.advance_side(Side::Client) || self.advance_side(Side::Server))
    }

    /// Reads one unit of one side; false when there is none.
    fn advance_side(&mut self, side: Side) -> bool {
        let stream = &mut self.streams[side.index()];
        match *stream.phase() {
            Phase::Connect => {
                let attempt = stream.connect_packet();
                self.settle(side, Unit::Connect, attempt, Self::connected)
            }
            Phase::Setup => {
                // The server's packet means nothing before those of the client, which a capture
                // may have in another order.
                let client = self.streams[Side::Client.index()].phase();
                let early = matches!(client, Phase::Connect | Phase::Setup);
                if side == Side::Server && (self.service.is_none() || early) {
                    return self.wait(side);
                }
                let attempt = self.streams[side.index()].setup_packet();
                self.settle(side, Unit::Setup, attempt, Self::set_up)
            }
            Phase::Waiting => self.wait(side),
            Phase::Messages(service) => {
                let answer_pings = match &self.role {
                    Role::Server { config, .. } => config.answer_pings,
                    _ => false,
                };
                let attempt = stream
                    .message(service, |message| answer_pings.then(|| answer(message)).flatten());
                self.settle(side, Unit::Message(service), attempt, |connection, _, pong| {
                    connection.heard(service);
                    pong.map_or(Ok(()), |pong| connection.send(&pong))
                })
            }
            Phase::Searching(..) => match stream.search() {
                Some(skipped) => {
                    self.events.push_back(Pending::Resync { side, skipped });
                    true
                }
                None => false,
            },
            Phase::Lost => false,
        }
    }

    /// Bytes pile up until the other side says something; only so many.
    fn wait(&mut self, side: Side) -> bool {
        let stream = &self.streams[side.index()];
        let (unread, offset) = (stream.unread(), stream.offset());
        if unread > MOST_WAITING_BYTES {
            let limit = MOST_WAITING_BYTES as u64;
            let error = Error::limit("bytes before the key exchange", limit, unread as u64);
            self.fault(side, error.at(offset));
        }
        false
    }

    /// Tells of what was read, then lets `then` act on it.
    fn settle<R>(
        &mut self,
        side: Side,
        unit: Unit,
        attempt: Attempt<R>,
        then: impl FnOnce(&mut Self, Side, R) -> Result<()>,
    ) -> bool {
        match attempt {
            Ok(None) => false,
            Ok(Some((value, Unread { range, offset }))) => {
                let encrypted =
                    matches!(unit, Unit::Message(_)) && self.streams[side.index()].is_encrypted();
                self.events.push_back(Pending::Received { side, unit, range, offset, encrypted });
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

    /// A first message that makes no sense means that the key is not the right one.
    fn suspect_key(&self, side: Side, error: Error) -> Error {
        let stream = &self.streams[side.index()];
        let nothing_read = self.streams.iter().all(|stream| stream.messages == 0);
        if stream.is_encrypted() && nothing_read {
            let service = self.service.map_or("", Service::name);
            let at = error.offset().unwrap_or(0);
            let found = format!("another one: what it decrypts is no message ({error})");
            return Error::malformed(format!("the {service} key of this connection"), found).at(at);
        }
        error
    }
}

/// Writing, and the clock.
impl Connection {
    fn transmit<'d>(&mut self, packet: &impl Field<'d>) -> Result<()> {
        let mut writer = Writer::new();
        packet.encode(&mut writer)?;
        self.out_bytes += writer.len();
        self.out.push_back(writer.into_bytes());
        Ok(())
    }

    /// Whether a message of this length may wait behind those that wait already.
    fn check_room(&self, length: usize) -> Result<()> {
        let (most_bytes, most_messages) = match &self.role {
            Role::Server { config, .. } => (config.most_queued_bytes, config.most_queued_messages),
            _ => (MOST_CLIENT_BYTES, MOST_CLIENT_MESSAGES),
        };
        let waiting = self.out.len() + self.early.len();
        if waiting >= most_messages {
            let asked = waiting as u64 + 1;
            return Err(Error::limit("queued messages", most_messages as u64, asked));
        }
        let asked = self.out_bytes + self.early_bytes + length;
        if asked > most_bytes {
            return Err(Error::limit("queued bytes", most_bytes as u64, asked as u64));
        }
        Ok(())
    }

    fn queue(&mut self, mut bytes: Vec<u8>) {
        if let Some(cipher) = &mut self.cipher {
            cipher.apply(&mut bytes);
        }
        self.out_bytes += bytes.len();
        self.out.push_back(bytes);
    }

    /// A whole message came: the other side is alive.
    fn heard(&mut self, service: Service) {
        if let Role::Server { config, .. } = &self.role {
            let patience = match service {
                Service::Game => config.game_idle_time,
                _ => config.idle_time,
            };
            self.timers.idle = Some(self.timers.now + patience);
            self.timers.message = None;
        }
    }

    /// A message has begun and must end in time.
    fn watch_message(&mut self) {
        let Role::Server { config, .. } = &self.role else {
            return;
        };
        let begun = self.established && self.streams[Side::Client.index()].unread() > 0;
        self.timers.message = match self.timers.message {
            _ if !begun => None,
            None => Some(self.timers.now + config.message_time),
            set => set,
        };
    }

    fn ping(&mut self) {
        let (Some(service), Role::Client { config, .. }) = (self.service, &self.role) else {
            return;
        };
        self.timers.ping = config.ping_every.map(|every| self.timers.now + every);
        let clock = u32::try_from(self.timers.now.as_millis() % (1 << 32)).unwrap_or(0);
        let ping = ping(service, clock);
        if let Err(error) = self.send(&ping) {
            self.fault(Side::Client, error);
        }
    }

    /// The rules were broken: an observer gives the stream up, an active role the connection.
    fn fault(&mut self, side: Side, error: Error) {
        self.events.push_back(Pending::Fault { side, error });
        if !matches!(self.role, Role::Observer { .. }) {
            self.close_for(CloseReason::Fault);
            return;
        }
        if self.streams.iter().any(|stream| stream.messages > 0) {
            self.streams[side.index()].pass_over();
        } else {
            // A wrong key, or a setup that cannot be read, spoils both directions.
            self.streams.iter_mut().for_each(|stream| stream.set_phase(Phase::Lost));
        }
    }

    fn close_for(&mut self, reason: CloseReason) {
        if !self.closed {
            self.closed = true;
            self.timers = Timers { now: self.timers.now, ..Timers::default() };
            self.events.push_back(Pending::Closed(reason));
        }
    }
}
