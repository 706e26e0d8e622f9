//! The game channel as a state machine, without any I/O: sessions, acknowledgements, RPC messages.
//!
//! A [`Connection`] implements the contract of [`worldwire_core::connection`], which explains how
//! to drive it, in all four roles, over datagrams. Specific to MxO:
//!
//! * The margin channel assigns the [`Session`], with its key and ID. The client repeats its hello
//!   until the server answers, and then its first acknowledgement until the server acknowledges a
//!   packet. Messages sent earlier wait.
//! * A server ignores a hello once the client has acknowledged a packet: a second client at the same
//!   address needs another connection. A client reads no packets before the answer.
//! * A hello can come from a forged address, which would then receive everything a server sends. So
//!   a server answers it with an empty object section, and the connection is not established until
//!   the client acknowledges one. Until then, objects are refused, RPC messages wait, and a forged
//!   address receives at most six bytes for each byte of the hello. After
//!   [`ServerConfig::confirm_time`] without another hello or packet, the connection closes.
//!   [`ServerConfig::trusts_hellos`] turns these precautions off.
//! * RPC messages ([`Connection::send`](connection::Connection::send)) arrive exactly once and in
//!   order. If a packet is lost, its messages are sent again in new packets.
//! * Object sections ([`Sender::send_objects`]) are never resent. [`News::Delivered`] or
//!   [`News::Lost`] reports the fate of each packet once. A packet reported as lost may still
//!   arrive; [`News::Late`] reports this if its acknowledgement arrives.
//! * Object sections carry no length. A [`Measure`] finds the end of each, so that later sections
//!   can be read. Without a measure, a client or server treats the rest of the packet as one
//!   section. The connections themselves never put anything after objects.
//! * An unreadable packet is a fault, but does not close the connection. It is not acknowledged, so
//!   its RPC messages are sent again.
//! * Every packet is acknowledged: after [`Common::ack_delay`] if it carries sections, otherwise
//!   with the next packet, or once seven packets are waiting.
//! * An observer reports datagrams in order of arrival. It needs the session's key; without one, it
//!   reports [`News::KeysNeeded`]. It prefers the key with the session ID from the hello, and uses
//!   another key only if that key opens the datagrams.
//! * A relay forwards each datagram unchanged, replaces it with a packet that has the same sequence
//!   word, or drops it. [`Packet::encode`](crate::frame::Packet::encode) computes the length and
//!   CRC of a replacement. Plain packets are always forwarded unchanged. Plain packets and bare
//!   acknowledgements overtake [held](connection::Forward::hold) packets. Other acknowledgements
//!   wait, and a client that repeats a held message sends no bare ones and no pings. To keep the
//!   server connected, the relay pings it every 3 s while it holds a client's packets. The server
//!   returns the pings, which the relay forwards. The relay itself returns a client's pings while
//!   it does not read what the server sends.
//! * A relay can [add](connection::Inject::inject) RPC messages and object sections, but not
//!   packets, because the sender numbers the packets. See [`Sender`](Sender#additions-of-a-relay).
//! * The connection learns the time only from inputs. After sending,
//!   [`poll_timeout`](connection::Connection::poll_timeout) therefore asks for an immediate
//!   [`timeout`](connection::Connection::timeout), which records when the packet left.
//! * UDP has no end of stream. The driver reports [`Input::End`], for example after a socket error.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_core::Side;
//! use worldwire_core::connection::{Connection as _, Event, Input};
//! use worldwire_mxo::connection::{ClientConfig, Connection, ServerConfig, Session};
//! use worldwire_mxo::crypt::SessionKey;
//! use worldwire_mxo::frame::RpcMessage;
//!
//! let (now, epoch) = (Duration::ZERO, Duration::from_secs(1_248_965_312));
//! let session = |seed| Session::new(0x1234, SessionKey::new(&[7; 16]), &seed);
//! // Real seeds are random.
//! let mut server = Connection::server(ServerConfig::new(epoch), session([1; 16]), now);
//! let mut client = Connection::client(ClientConfig::new(epoch, 2), session([2; 16]), now);
//! client.send(&RpcMessage::new(0x28, b"hello"))?;
//!
//! // A driver without a network: each side receives the other's datagrams.
//! let mut received_bytes = Vec::new();
//! for _ in 0..4 {
//!     while client.poll_event().is_some() {}
//!     while let Some(datagram) = client.poll_transmit(Side::Server) {
//!         server.input(now, Side::Client, Input::Datagram(&datagram));
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Received(received) = event {
//!             received_bytes.push(received.bytes.to_vec());
//!         }
//!     }
//!     while let Some(datagram) = server.poll_transmit(Side::Client) {
//!         client.input(now, Side::Server, Input::Datagram(&datagram));
//!     }
//! }
//! assert!(received_bytes.contains(&b"\x28hello".to_vec()));
//! # Ok::<(), worldwire_core::connection::SendError>(())
//! ```

mod additions;
mod backlog;
mod carrying;
mod config;
mod endpoint;
mod event;
mod forwarding;
mod inbox;
mod keyring;
mod outbox;
mod packets;
mod relay;
mod rpc_numbers;
mod sender;
mod sent_packets;
mod stream;
mod units;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    self, Bounds, CloseReason, Connection as _, Event, EventOf, Input, SendHalf, Timer,
};
use worldwire_core::{Error, Reader, Side};

pub use config::{ClientConfig, Common, RelayConfig, ServerConfig, Session};
pub use event::{MissingKey, News, PacketNumber, Received, Unit};
pub use sender::Sender;

use crate::crypt::KnownSession;
use crate::frame::{Datagram, Measure, Plain};
use backlog::Backlog;
use endpoint::{Endpoint, Part};
use event::Unread;
use keyring::Keyring;
use relay::{Passage, Relay};
use sender::Role;
use stream::Stream;

/// The highest stream offset at which reading can continue after a gap.
const MAX_OFFSET: u64 = 1 << 62;

/// A connection in one of the four roles; see the [module](self) for details specific to MxO.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// The stream of each side, by [`Side::index`].
    streams: [Stream; 2],
    /// Observers and relays: whether the lack of a key has been reported.
    has_reported_keys: bool,
    /// Observers and relays: whether a packet has been read.
    is_read: bool,
    /// Relays: input that has not been read yet.
    backlog: Backlog,
    events: VecDeque<Event<Unread, News>>,
    /// The bytes of the last reported piece.
    current: Vec<u8>,
}

impl Connection {
    /// Acts as a client, which sends the first hello.
    #[must_use]
    pub fn client(config: ClientConfig, session: Session, now: Duration) -> Self {
        Self::endpoint(Part::Client(config), session, now)
    }

    /// Acts as a server, which waits for the client's hello.
    #[must_use]
    pub fn server(config: ServerConfig, session: Session, now: Duration) -> Self {
        Self::endpoint(Part::Server(config), session, now)
    }

    /// Lets a client or server find the end of object sections with this measure.
    #[must_use]
    pub fn measuring(mut self, measure: Box<dyn Measure>) -> Self {
        if let Role::Endpoint(endpoint) = &mut self.sender.half.role {
            endpoint.measure = measure;
        }
        self
    }

    /// Observes both sides of a connection whose key is one of these.
    #[must_use]
    pub fn observer(sessions: Arc<[KnownSession]>) -> Self {
        let keys = Keyring::new(sessions);
        Self::new(Role::Observer(Box::new(keys)), Bounds::default(), Duration::ZERO)
    }

    /// Relays between a client and a server whose key is one of these. It forwards datagrams in
    /// order of arrival and treats every copy of a repeated datagram like the first. It closes if
    /// it is not [confirmed](Self::is_confirmed) in time, and sends pings to the server while it
    /// holds a client's packets. Datagrams that no known key opens are forwarded unread.
    #[must_use]
    pub fn relay(config: &RelayConfig, now: Duration) -> Self {
        let relay = Relay::new(Arc::clone(&config.sessions));
        let mut connection = Self::new(Role::Relay(Box::new(relay)), config.bounds, now);
        connection.sender.half = connection.sender.half.forwarding(config.bounds);
        connection.sender.half.timers.start(Timer::Setup, config.setup_time);
        connection
    }

    /// The sessions whose keys opened datagrams, for an observer or a relay.
    #[must_use]
    pub fn opened_with(&self) -> Vec<KnownSession> {
        self.sender.half.role.keys().map(|keys| keys.opened().collect()).unwrap_or_default()
    }

    /// Observers and relays: adds a session learnt elsewhere if it is the one named in the last
    /// hello.
    pub fn add_session(&mut self, session: &KnownSession) {
        if let Some(keys) = self.sender.half.role.keys_mut() {
            keys.add(session);
        }
    }

    /// Relays: whether both sides have sent encrypted packets. This proves that the client's
    /// address is genuine, because servers send encrypted packets only after a hello, and only
    /// their receiver can answer them.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        match &self.sender.half.role {
            Role::Relay(relay) => relay.heard == [true; 2],
            Role::Endpoint(_) | Role::Observer(_) => true,
        }
    }

    /// The ranges of messages that arrived early and are kept (clients and servers).
    #[cfg(feature = "fuzzing")]
    pub(crate) fn early_ranges(&self) -> Vec<(Side, core::ops::Range<u64>)> {
        match &self.sender.half.role {
            Role::Endpoint(endpoint) => endpoint.inbox.ranges(),
            Role::Observer(_) | Role::Relay(_) => Vec::new(),
        }
    }

    fn endpoint(part: Part, session: Session, now: Duration) -> Self {
        let endpoint = Endpoint::new(part, session);
        let mut connection = Self::new(Role::Endpoint(Box::new(endpoint)), Bounds::default(), now);
        if let Role::Endpoint(endpoint) = &mut connection.sender.half.role {
            endpoint.start(&mut connection.sender.half.timers);
        }
        connection
    }

    fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        Self {
            sender: Sender::new(role, bounds, now),
            streams: Default::default(),
            has_reported_keys: false,
            is_read: false,
            backlog: Backlog::default(),
            events: VecDeque::new(),
            current: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<Unread, News>) {
        self.events.push_back(event);
    }

    /// Reports a bad datagram. A relay forwards it anyway.
    fn fault(&mut self, side: Side, error: Error, at: u64, wire: &[u8]) {
        self.event(Event::Fault { side, error: error.based(at).at(at) });
        self.pass(side, wire, None);
    }

    /// Reports a fault and closes the connection.
    fn refuse(&mut self, side: Side, error: Error) {
        self.event(Event::Fault { side, error });
        self.sender.half.close_for(CloseReason::Fault);
    }

    fn on_datagram(&mut self, side: Side, wire: &[u8]) {
        match Datagram::decode(&mut Reader::new(wire)).map_err(Error::closed) {
            Err(error) => {
                let at = self.take(side, wire.len());
                self.fault(side, error, at, wire);
            }
            Ok(Datagram::Plain(plain)) => self.on_plain(side, &plain, wire),
            Ok(Datagram::Sealed(sealed)) => match self.sender.half.role {
                Role::Endpoint(_) => self.on_own_packet(side, &sealed, wire),
                Role::Observer(_) | Role::Relay(_) => {
                    self.on_watched_packet(side, &sealed, wire);
                }
            },
        }
    }

    /// Adds a datagram to the stream. Returns its start offset.
    fn take(&mut self, side: Side, length: usize) -> u64 {
        let end = &mut self.streams[side.index()].end;
        let start = *end;
        *end = end.saturating_add(length as u64);
        start
    }

    fn on_plain(&mut self, side: Side, plain: &Plain<'_>, wire: &[u8]) {
        self.resync(side);
        let start = self.take(side, wire.len());
        let unit = match plain {
            Plain::Hello(hello) => {
                let SendHalf { role, lanes, .. } = &mut self.sender.half;
                let is_other = role.keys_mut().is_some_and(|keys| keys.on_hello(hello));
                if let Role::Relay(relay) = role {
                    relay.on_hello(lanes, is_other);
                }
                if is_other {
                    // A new session restarts the sequence numbers.
                    Side::BOTH.into_iter().for_each(|side| self.report_missing(side, true));
                    self.streams.iter_mut().for_each(Stream::forget_packets);
                    self.has_reported_keys = false;
                }
                Unit::Hello(hello.clone())
            }
            _ => Unit::Plain,
        };
        if matches!(plain, Plain::Ping(_)) && side == Side::Client && self.is_paused(Side::Server) {
            // The server's echo is not read.
            self.sender.half.lanes[side.index()].ping(plain);
        }
        if let Role::Endpoint(endpoint) = &mut self.sender.half.role
            && let Err(error) = endpoint.on_plain(plain, &mut self.sender.half.timers)
        {
            return self.fault(side, error, start, wire);
        }
        let end = self.streams[side.index()].end;
        self.receive(Unread {
            side,
            unit,
            bytes: wire.to_vec(),
            range: start..end,
            wire: self.wire(wire),
        });
    }

    /// The datagram itself, which only a relay keeps.
    fn wire(&self, wire: &[u8]) -> Vec<u8> {
        if matches!(self.sender.half.role, Role::Relay(_)) { wire.to_vec() } else { Vec::new() }
    }

    fn receive(&mut self, piece: Unread) {
        self.event(Event::Received(piece));
    }

    fn on_gap(&mut self, side: Side, length: u64) {
        let stream = &mut self.streams[side.index()];
        let range = stream.end..stream.end.saturating_add(length);
        if range.end > MAX_OFFSET {
            let error = Error::limit("bytes of a stream", MAX_OFFSET, range.end);
            return self.refuse(side, error.at(range.start));
        }
        stream.end = range.end;
        if stream.unread.is_none() {
            self.event(Event::Gap { side, range });
        }
    }

    /// Queues a client's or server's reports about its own packets, and a relay's reports about
    /// additions.
    fn flush_news(&mut self) {
        match &mut self.sender.half.role {
            Role::Endpoint(endpoint) => {
                self.events.extend(endpoint.news.drain(..).map(Event::News));
            }
            Role::Relay(relay) => {
                for to in Side::BOTH {
                    let messages = core::mem::take(&mut relay.discarded[to.index()]);
                    if messages > 0 {
                        let news = News::Discarded { to, messages };
                        self.events.push_back(Event::News(news));
                    }
                }
            }
            Role::Observer(_) => {}
        }
    }

    /// Takes the time from the driver.
    fn set_now(&mut self, now: Duration) {
        self.sender.half.timers.set_now(now);
        let SendHalf { role, lanes, timers, .. } = &mut self.sender.half;
        if let Role::Endpoint(endpoint) = role {
            endpoint.set_now(timers.now());
        }
        lanes.iter_mut().for_each(|way| way.additions.set_now(timers.now()));
        self.settle();
    }

    /// Handles an input.
    fn arrive(&mut self, from: Side, input: Input<'_>) {
        if self.streams[from.index()].ended {
            return;
        }
        match input {
            Input::Bytes([]) | Input::Datagram([]) => {}
            Input::Datagram(bytes) => self.on_datagram(from, bytes),
            Input::Bytes(bytes) => {
                let at = self.take(from, bytes.len());
                let error = Error::malformed("datagrams", "a stream").at(0);
                self.fault(from, error, at, bytes);
            }
            Input::Gap(length) => self.on_gap(from, length),
            Input::End => {
                self.report_missing(from, true);
                self.streams[from.index()].ended = true;
            }
        }
    }

    /// Closes the connection if its streams have ended and everything has been reported.
    fn finish(&mut self) {
        let is_over = match self.sender.peer() {
            Some(peer) => self.streams[peer.index()].ended,
            None => {
                let kept = Side::BOTH.map(|side| connection::Connection::kept_bytes(self, side));
                self.streams.iter().all(|stream| stream.ended) && kept == [0, 0]
            }
        };
        if is_over {
            self.sender.half.close_for(CloseReason::Remote);
        }
    }
}

// The sending half is shared with the other families, but core's state machine for byte streams is
// not: that one finds messages in two growing buffers. Here, every input is a complete datagram,
// packet numbers decide what is late or repeated, and a relay reads both sides in order of arrival,
// because each packet acknowledges packets of the other side.
impl connection::Connection for Connection {
    type News = News;
    type Received<'c> = Received<'c>;
    type Sender = Sender;

    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.set_now(now);
        let ignored = self.sender.half.closing.is_closed()
            || self.sender.peer().is_some_and(|peer| peer != from);
        if ignored {
            return;
        }
        match &self.sender.half.role {
            Role::Relay(_) => self.backlog.push(from, input),
            Role::Endpoint(_) | Role::Observer(_) => self.arrive(from, input),
        }
        self.flush_news();
    }

    fn timeout(&mut self, now: Duration) {
        self.set_now(now);
        if matches!(self.sender.half.role, Role::Relay(_)) {
            if self.sender.half.timers.passed() == Some(Timer::Setup) {
                // Hellos can have forged addresses.
                self.sender.half.close_for(CloseReason::Timeout(Timer::Setup));
                return;
            }
            self.ping_for_held();
            return self.move_additions();
        }
        let timers = &mut self.sender.half.timers;
        let (Role::Endpoint(endpoint), false) =
            (&mut self.sender.half.role, self.sender.half.closing.is_closed())
        else {
            return;
        };
        match timers.passed() {
            Some(timer) if timer != Timer::Beat => {
                self.sender.half.close_for(CloseReason::Timeout(timer));
            }
            _ => endpoint.on_timeout(timers),
        }
        self.flush_news();
    }

    fn poll(&mut self) -> Option<(EventOf<'_, Self>, &mut Sender)> {
        self.settle();
        self.flush_news();
        let mut event = loop {
            match self.events.pop_front() {
                Some(event) => break event,
                None if self.read_on() => {}
                None => {
                    self.finish();
                    if !self.sender.half.closing.is_closed() {
                        return None;
                    }
                    if let Role::Endpoint(endpoint) = &mut self.sender.half.role {
                        endpoint.finish();
                    }
                    self.flush_news();
                    if self.events.is_empty() {
                        break Event::Closed(self.sender.half.closing.report()?);
                    }
                }
            }
        };
        if let Event::Received(piece) = &mut event {
            if let Some(forwarding) = &mut self.sender.half.forwarding {
                let side = piece.side;
                let (passage, is_urgent) = Passage::of(piece);
                forwarding.report(side, passage, is_urgent);
            }
            self.current = core::mem::take(&mut piece.bytes);
        }
        let bytes = &self.current;
        let event =
            event.map(|Unread { side, unit, range, .. }| Received { side, unit, bytes, range });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.settle_piece();
        let now = self.sender.half.timers.now();
        let peer = self.sender.peer();
        match &mut self.sender.half.role {
            Role::Endpoint(endpoint) if peer == Some(to) => endpoint.pop(now),
            _ => self.sender.half.lanes[to.index()].out.pop(),
        }
    }

    fn poll_timeout(&self) -> Option<Duration> {
        if self.is_closed() {
            return None;
        }
        let own = match &self.sender.half.role {
            Role::Endpoint(endpoint) => endpoint.deadline(self.sender.half.timers.now()),
            Role::Relay(_) => {
                let ways = self.sender.half.lanes.iter();
                ways.filter_map(|way| way.additions.deadline()).min()
            }
            Role::Observer(_) => None,
        };
        self.sender.half.timers.next().into_iter().chain(own).min()
    }

    fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    fn fork(&self) -> Option<(Self, usize)> {
        let sender = self.sender.observing().filter(|_| self.events.is_empty())?;
        let copy = Self {
            sender,
            streams: self.streams.clone(),
            has_reported_keys: self.has_reported_keys,
            is_read: self.is_read,
            backlog: Backlog::default(),
            events: VecDeque::new(),
            current: Vec::new(),
        };
        // Each direction can have a thousand runs of missing packets, though it rarely does.
        Some((copy, size_of::<Self>() + (16 << 10)))
    }

    fn is_established(&self) -> bool {
        match &self.sender.half.role {
            Role::Endpoint(endpoint) => endpoint.is_established(),
            Role::Observer(_) | Role::Relay(_) => self.is_read,
        }
    }

    fn is_closed(&self) -> bool {
        self.sender.half.closing.is_closed()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        match &self.sender.half.role {
            Role::Endpoint(endpoint) if self.sender.peer() == Some(to) => endpoint.queued_bytes(),
            _ => self.sender.half.lanes[to.index()].out.bytes(),
        }
    }

    fn is_paused(&self, from: Side) -> bool {
        self.sender.half.is_paused(from)
    }

    fn kept_bytes(&self, from: Side) -> usize {
        self.sender.half.kept_bytes(from)
    }
}
