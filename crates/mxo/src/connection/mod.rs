//! The game channel as a state machine, without any IO: sessions, acknowledgements, RPC messages.
//!
//! A [`Connection`] fulfils the contract of [`worldwire_core::connection`], which says how to drive
//! it, in all four roles, over datagrams. What is particular to MxO:
//!
//! * Key and id of the session come from the margin channel: [`Session`]. The client says hello
//!   until the server answers. What is sent before waits.
//! * A server does not answer a hello once packets of the client came: another client at the same
//!   address needs another connection. A client reads no packets before the answer.
//! * RPC messages ([`Connection::send`](connection::Connection::send)) arrive once and in their
//!   order. Those of a lost packet are sent again in other packets.
//! * Object sections ([`Sender::send_objects`]) are not sent again. [`News::Delivered`] and
//!   [`News::Lost`] say what became of their packets, each once. "Delivered" is certain; a packet
//!   that is reported lost may arrive all the same: [`News::Late`] tells of it, if its
//!   acknowledgement arrives.
//! * Object sections have no length. What a [`Measure`] takes for one is delivered as one, and what
//!   is behind it is read on. A client or server without a measure takes everything behind the id.
//!   The machines themselves never put anything behind objects.
//! * A packet that cannot be read is a fault of its own: it closes nothing and is not
//!   acknowledged, so that its RPC messages come again.
//! * Every packet is acknowledged in some packet: after [`Common::ack_delay`] if it carries
//!   something, with the next packet or when seven wait if not.
//! * An observer reports datagrams in the order in which they came. It needs the session's key;
//!   without it there is [`News::KeysNeeded`]. A key with the session id that the hello names is
//!   the first choice; one with another id is taken only if no other opens the datagrams.
//! * A relay forwards each datagram as it came, or another packet with the same sequence word, or
//!   nothing. It cannot [`Inject`](worldwire_core::connection::Inject) packets: they would need
//!   numbers, by which the peers acknowledge each other's packets. Plain packets and packets that
//!   only acknowledge overtake [held](worldwire_core::connection::Forward::hold) ones, so that both
//!   ends stay connected.
//! * Only inputs tell the time. After something was sent,
//!   [`poll_timeout`](connection::Connection::poll_timeout) therefore asks for a
//!   [`timeout`](connection::Connection::timeout) at once: when a packet left decides when it
//!   counts as lost.
//! * UDP has no end. [`Input::End`] is for the driver to say, as after an error of the socket.
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
//! // A driver with no network: what one side sends, the other receives.
//! let mut heard = Vec::new();
//! for _ in 0..4 {
//!     while client.poll_event().is_some() {}
//!     while let Some(datagram) = client.poll_transmit(Side::Server) {
//!         server.input(now, Side::Client, Input::Datagram(&datagram));
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Received(received) = event {
//!             heard.push(received.bytes.to_vec());
//!         }
//!     }
//!     while let Some(datagram) = server.poll_transmit(Side::Client) {
//!         client.input(now, Side::Server, Input::Datagram(&datagram));
//!     }
//! }
//! assert!(heard.contains(&b"\x28hello".to_vec()));
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod backlog;
mod config;
mod endpoint;
mod event;
mod flight;
mod inbox;
mod keyring;
mod missing;
mod outbox;
mod relay;
mod sender;
mod units;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{self, CloseReason, Event, EventOf, Input, Timer};
use worldwire_core::{Error, Reader, Side};

pub use config::{ClientConfig, Common, RelayConfig, ServerConfig, Session};
pub use event::{MissingKey, News, PacketNumber, Received, Unit};
pub use sender::Sender;

use crate::crypt::KnownSession;
use crate::frame::{
    Datagram, Measure, Packet, PacketHead, Plain, RccFlags, ReceiveWindow, Sealed, SequenceNumber,
    ToTheEnd,
};
use backlog::Backlog;
use endpoint::{Endpoint, Part, Verdict};
use event::Unreported;
use inbox::Inbox;
use keyring::{Keyring, Refused};
use missing::Missing;
use relay::Relaying;
use sender::Role;

/// The furthest offset behind a gap from which reading goes on.
const MAX_OFFSET: u64 = 1 << 62;

/// A connection, seen from one of four roles; the [module](self) says what is particular to it.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    /// What each side sent, by [`Side::index`].
    streams: [Stream; 2],
    /// Observers and relays: the keys, and whether it was told that none fits.
    keys: Keyring,
    told_keys_needed: bool,
    /// Observers and relays: a packet was read.
    is_read: bool,
    /// Relays: what has come and was not read yet.
    backlog: Backlog,
    events: VecDeque<Event<Unreported, News>>,
    /// The bytes of the piece that was reported last.
    current: Vec<u8>,
}

/// The datagrams of a side.
#[derive(Debug, Default)]
struct Stream {
    /// How many bytes came, without packets that came again.
    end: u64,
    ended: bool,
    /// Observers and relays: which packets came, and the vector of the last that reset them.
    window: ReceiveWindow,
    reset_by: Option<[u8; 16]>,
    /// Observers and relays: which packets did not.
    missing: Missing,
    /// Observers: from where on nothing could be read for want of a key.
    unread: Option<u64>,
}

impl Connection {
    /// Plays a client: says hello.
    #[must_use]
    pub fn client(config: ClientConfig, session: Session, now: Duration) -> Self {
        Self::endpoint(Part::Client(config), session, now)
    }

    /// Plays a server: waits for the client's hello.
    #[must_use]
    pub fn server(config: ServerConfig, session: Session, now: Duration) -> Self {
        Self::endpoint(Part::Server(config), session, now)
    }

    /// Watches both sides of a connection whose key is one of these.
    #[must_use]
    pub fn observer(sessions: Arc<[KnownSession]>) -> Self {
        Self::new(Role::Observer, sessions, Duration::ZERO)
    }

    /// Stands between a client and a server whose key is one of these. It passes on datagrams in
    /// the order in which they came, and those that came again as it did the first time. It has no
    /// time-outs. A datagram that needs a key which is not known closes it.
    #[must_use]
    pub fn relay(config: &RelayConfig, now: Duration) -> Self {
        let relay = Role::Relay(Box::new(Relaying::new(config)));
        Self::new(relay, Arc::clone(&config.sessions), now)
    }

    /// The sessions whose keys opened datagrams, for an observer or a relay.
    #[must_use]
    pub fn opened_with(&self) -> Vec<KnownSession> {
        self.keys.opened().collect()
    }

    /// The same client or server with something that finds the end of object sections.
    #[must_use]
    pub fn measuring(mut self, measure: Box<dyn Measure>) -> Self {
        if let Role::Endpoint(endpoint) = &mut self.sender.role {
            endpoint.measure = measure;
        }
        self
    }

    /// The bytes of the stream whose messages came too early and are kept (clients and servers).
    #[cfg(feature = "fuzzing")]
    pub(crate) fn early_ranges(&self) -> Vec<(Side, core::ops::Range<u64>)> {
        match &self.sender.role {
            Role::Endpoint(endpoint) => endpoint.inbox.ranges(),
            Role::Observer | Role::Relay(_) => Vec::new(),
        }
    }

    fn endpoint(part: Part, session: Session, now: Duration) -> Self {
        let endpoint = Endpoint::new(part, session, Box::new(ToTheEnd));
        let mut connection = Self::new(Role::Endpoint(Box::new(endpoint)), Arc::default(), now);
        if let Role::Endpoint(endpoint) = &mut connection.sender.role {
            endpoint.start(&mut connection.sender.timers);
        }
        connection
    }

    fn new(role: Role, sessions: Arc<[KnownSession]>, now: Duration) -> Self {
        Self {
            sender: Sender::new(role, now),
            streams: Default::default(),
            keys: Keyring::new(sessions),
            told_keys_needed: false,
            is_read: false,
            backlog: Backlog::default(),
            events: VecDeque::new(),
            current: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<Unreported, News>) {
        self.events.push_back(event);
    }

    /// What is wrong with a datagram, which goes on if this is a relay.
    fn fault(&mut self, side: Side, error: Error, at: u64, wire: &[u8]) {
        self.event(Event::Fault { side, error: error.based(at).at(at) });
        self.pass(side, wire, None);
    }

    fn pass(&mut self, side: Side, wire: &[u8], number: Option<SequenceNumber>) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.pass(side, wire.to_vec(), number);
            self.fill(side);
        }
    }

    /// What is wrong ends the connection.
    fn refuse(&mut self, side: Side, error: Error) {
        self.event(Event::Fault { side, error });
        self.sender.closing.close(CloseReason::Fault);
    }

    /// A datagram came.
    fn on_datagram(&mut self, side: Side, wire: &[u8]) {
        match Datagram::decode(&mut Reader::new(wire)).map_err(Error::closed) {
            Err(error) => {
                let at = self.take(side, wire.len());
                self.fault(side, error, at, wire);
            }
            Ok(Datagram::Plain(plain)) => self.on_plain(side, &plain, wire),
            Ok(Datagram::Sealed(sealed)) => match self.sender.role {
                Role::Endpoint(_) => self.on_own_packet(side, &sealed, wire),
                Role::Observer | Role::Relay(_) => self.on_watched_packet(side, &sealed, wire),
            },
        }
    }

    /// The datagram takes up its bytes of the stream; returns where it begins.
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
                if self.keys.on_hello(hello) {
                    // Another session: its numbers begin anew.
                    Side::BOTH.into_iter().for_each(|side| self.tell_missing(side, true));
                    self.streams.iter_mut().for_each(Stream::forget_packets);
                    self.told_keys_needed = false;
                }
                Unit::Hello(hello.clone())
            }
            _ => Unit::Plain,
        };
        if let Role::Endpoint(endpoint) = &mut self.sender.role
            && let Err(error) = endpoint.on_plain(plain, &mut self.sender.timers)
        {
            return self.fault(side, error, start, wire);
        }
        let end = self.streams[side.index()].end;
        self.receive(Unreported {
            side,
            unit,
            bytes: wire.to_vec(),
            range: start..end,
            wire: self.wire(wire),
        });
    }

    /// A relay keeps datagrams until they are decided about.
    fn wire(&self, wire: &[u8]) -> Vec<u8> {
        if matches!(self.sender.role, Role::Relay(_)) { wire.to_vec() } else { Vec::new() }
    }

    fn receive(&mut self, piece: Unreported) {
        self.event(Event::Received(piece));
    }

    /// A packet for this client or server.
    fn on_own_packet(&mut self, side: Side, sealed: &Sealed<'_>, wire: &[u8]) {
        let Role::Endpoint(endpoint) = &mut self.sender.role else { return };
        let timers = &mut self.sender.timers;
        let opened = endpoint.session.key.open(&sealed.iv, &sealed.cipher).map_err(Error::from);
        let judged = opened.and_then(|plain| {
            let head = PacketHead::decode(&mut Reader::new(&plain)).map_err(Error::closed)?;
            Ok((endpoint.judge(&head, &sealed.iv, timers), head, plain))
        });
        let (head, plain) = match judged {
            Ok((Verdict::Ignore, ..)) => return,
            Ok((Verdict::Read, head, plain)) => (head, plain),
            Err(error) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error, at, wire);
            }
        };
        let measure = &mut endpoint.measure;
        let read = Packet::decode_measured(&mut Reader::new(&plain), Some(side), &mut |bytes| {
            measure.objects(side, bytes)
        });
        let checked = read.map_err(Error::closed).and_then(|packet| {
            // A client begins anew with the packet that says so.
            let begins_anew = side == Side::Server && head.flags.contains(RccFlags::Reset);
            let (own, new) = (&endpoint.inbox, Inbox::default());
            let inbox = if begins_anew { &new } else { own };
            inbox.check(&packet, endpoint.common())?;
            Ok(packet)
        });
        let packet = match checked {
            Ok(packet) => packet,
            Err(error) => {
                let at = self.take(side, wire.len());
                // What is too much has no place in the packet.
                let has_place = error.offset().is_some();
                let error = if has_place { error.in_layer("decrypted") } else { error };
                return self.fault(side, error, at, wire);
            }
        };
        let asks = !packet.sections.is_empty();
        if !endpoint.accept(&head, &sealed.iv, asks, timers) {
            return;
        }
        let stream = &mut self.streams[side.index()];
        let start = stream.end;
        stream.end = start.saturating_add(wire.len() as u64);
        let pieces = units::deliver(&mut endpoint.inbox, side, &packet, &plain, start..stream.end);
        self.flush_news();
        for piece in pieces {
            self.receive(piece);
        }
    }

    /// A packet that is watched.
    fn on_watched_packet(&mut self, side: Side, sealed: &Sealed<'_>, wire: &[u8]) {
        let plain = match self.keys.open(&sealed.iv, &sealed.cipher) {
            Ok(plain) => plain,
            Err(Refused::NoKey(missing)) => return self.on_missing_key(side, missing, wire),
            Err(Refused::Damaged(error)) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error, at, wire);
            }
        };
        if let Some((id, named)) = self.keys.contradiction() {
            self.event(Event::News(News::OtherSession { id, named }));
        }
        let head = match PacketHead::decode(&mut Reader::new(&plain)).map_err(Error::closed) {
            Ok(head) => head,
            Err(error) => {
                let at = self.take(side, wire.len());
                return self.fault(side, error.in_layer("decrypted"), at, wire);
            }
        };
        Side::BOTH.into_iter().for_each(|side| self.resync(side));
        self.told_keys_needed = false;
        self.is_read = true;
        let number = head.sequence.local;
        if self.streams[side.index()].is_reset_by(&head, &sealed.iv) {
            self.tell_missing(side, true);
        }
        if !self.streams[side.index()].note(&head, &sealed.iv) {
            self.event(Event::News(News::Repeated { side, number }));
            return self.pass(side, wire, Some(number));
        }
        self.tell_missing(side, false);
        let start = self.take(side, wire.len());
        let range = start..self.streams[side.index()].end;
        let unit = Unit::Packet { number, flags: head.flags };
        let wire = self.wire(wire);
        self.receive(Unreported { side, unit, bytes: plain, range, wire });
    }

    /// Reports packets that come no more.
    fn tell_missing(&mut self, side: Side, is_over: bool) {
        while let Some((first, last)) = self.streams[side.index()].missing.lost(is_over) {
            self.event(Event::News(News::Missing { side, first, last }));
        }
    }

    /// No key fits, and none has.
    fn on_missing_key(&mut self, side: Side, missing: MissingKey, wire: &[u8]) {
        let start = self.take(side, wire.len());
        if matches!(self.sender.role, Role::Relay(_)) {
            let error = Error::malformed("the key of the session", missing.to_string());
            return self.refuse(side, error.at(start));
        }
        self.streams[side.index()].unread.get_or_insert(start);
        if !core::mem::replace(&mut self.told_keys_needed, true) {
            self.event(Event::News(News::KeysNeeded { side, missing }));
        }
    }

    /// Reading goes on behind what needed a key that was not there.
    fn resync(&mut self, side: Side) {
        let stream = &mut self.streams[side.index()];
        if let Some(start) = stream.unread.take() {
            let skipped = start..stream.end;
            self.event(Event::Resync { side, skipped });
        }
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

    /// What a client or server has to say of its own packets.
    fn flush_news(&mut self) {
        if let Role::Endpoint(endpoint) = &mut self.sender.role {
            self.events.extend(endpoint.news.drain(..).map(Event::News));
        }
    }

    /// The driver tells the time.
    fn tell(&mut self, now: Duration) {
        self.sender.timers.set_now(now);
        if let Role::Endpoint(endpoint) = &mut self.sender.role {
            endpoint.tell(self.sender.timers.now());
        }
        self.settle();
    }

    /// Relays: carries out the decision about the last piece, and fills the queues up.
    #[inline]
    fn settle(&mut self) {
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Relays: carries out the decision about the last piece.
    fn settle_piece(&mut self) {
        if let Role::Relay(relay) = &mut self.sender.role
            && let Some(from) = relay.settle()
        {
            self.fill(from);
        }
    }

    /// Relays: queues what a side sent and may leave now.
    fn fill(&mut self, from: Side) {
        if let Role::Relay(relay) = &mut self.sender.role
            && !self.sender.closing.is_closed()
            && let Err(error) = relay.fill(from, &self.keys)
        {
            self.refuse(from, error.at(self.streams[from.index()].end));
        }
    }

    /// Something came from a side.
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
                self.tell_missing(from, true);
                self.streams[from.index()].ended = true;
            }
        }
    }

    /// Relays: reads what has come, unless it has to wait until what was read before has left.
    /// False when there is nothing to read.
    fn read_on(&mut self) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        if self.sender.closing.is_closed() {
            return false;
        }
        if let Some((from, arrival)) = self.backlog.pop(|side| !relay.is_paused(side)) {
            self.arrive(from, arrival.as_input());
            return true;
        }
        for side in Side::BOTH {
            if let Err(error) = relay.check_unread(self.backlog.bytes(side)) {
                self.refuse(side, error.at(self.streams[side.index()].end));
                return true;
            }
        }
        false
    }

    /// Everything that came was reported: streams that have ended are over.
    fn finish(&mut self) {
        let is_over = match self.sender.peer() {
            Some(peer) => self.streams[peer.index()].ended,
            None => {
                let kept = Side::BOTH.map(|side| connection::Connection::kept_bytes(self, side));
                self.streams.iter().all(|stream| stream.ended) && kept == [0, 0]
            }
        };
        if is_over {
            self.sender.closing.close(CloseReason::Remote);
        }
    }
}

impl Stream {
    /// Another session begins.
    fn forget_packets(&mut self) {
        (self.window, self.reset_by) = (ReceiveWindow::default(), None);
        self.missing = Missing::default();
    }

    /// Whether a packet begins the numbers again. Where is not known, so its vector tells it from
    /// others.
    fn is_reset_by(&self, head: &PacketHead, iv: &[u8; 16]) -> bool {
        head.flags.contains(RccFlags::Reset) && self.reset_by != Some(*iv)
    }

    /// Whether a packet that is watched is new.
    fn note(&mut self, head: &PacketHead, iv: &[u8; 16]) -> bool {
        let (number, time) = (head.sequence.local, head.time);
        if !head.flags.contains(RccFlags::Reset) {
            let comes_again = self.window.contains(number) && !self.missing.is_later(time);
            if !comes_again && self.missing.is_behind_a_hole(number, time) {
                // The window goes back no further than the hole.
                self.window = ReceiveWindow::default();
            }
            let is_new = self.window.note(number);
            if is_new {
                self.missing.note(number, time);
            }
            return is_new;
        }
        if !self.is_reset_by(head, iv) {
            return false;
        }
        self.reset_by = Some(*iv);
        (self.window, self.missing) = Default::default();
        self.missing.note(number, time);
        self.window.note(number)
    }
}

impl connection::Connection for Connection {
    type News = News;
    type Received<'c> = Received<'c>;
    type Sender = Sender;

    fn input(&mut self, now: Duration, from: Side, input: Input<'_>) {
        self.tell(now);
        let ignored =
            self.sender.closing.is_closed() || self.sender.peer().is_some_and(|peer| peer != from);
        if ignored {
            return;
        }
        match &self.sender.role {
            Role::Relay(_) => self.backlog.push(from, input),
            Role::Endpoint(_) | Role::Observer => self.arrive(from, input),
        }
        self.flush_news();
    }

    fn timeout(&mut self, now: Duration) {
        self.tell(now);
        let timers = &mut self.sender.timers;
        let (Role::Endpoint(endpoint), false) =
            (&mut self.sender.role, self.sender.closing.is_closed())
        else {
            return;
        };
        match timers.passed() {
            Some(timer) if timer != Timer::Beat => {
                self.sender.closing.close(CloseReason::Timeout(timer));
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
                    if !self.sender.closing.is_closed() {
                        return None;
                    }
                    if let Role::Endpoint(endpoint) = &mut self.sender.role {
                        endpoint.finish();
                    }
                    self.flush_news();
                    if self.events.is_empty() {
                        break Event::Closed(self.sender.closing.report()?);
                    }
                }
            }
        };
        if let Event::Received(piece) = &mut event {
            if let Role::Relay(relay) = &mut self.sender.role {
                relay.report(piece);
            }
            self.current = core::mem::take(&mut piece.bytes);
        }
        let bytes = &self.current;
        let event =
            event.map(|Unreported { side, unit, range, .. }| Received { side, unit, bytes, range });
        Some((event, &mut self.sender))
    }

    fn poll_transmit(&mut self, to: Side) -> Option<Vec<u8>> {
        self.settle_piece();
        let now = self.sender.timers.now();
        let peer = self.sender.peer();
        match &mut self.sender.role {
            Role::Endpoint(endpoint) if peer == Some(to) => endpoint.pop(now),
            Role::Relay(relay) => relay.pop(to),
            Role::Endpoint(_) | Role::Observer => None,
        }
    }

    fn poll_timeout(&self) -> Option<Duration> {
        if self.is_closed() {
            return None;
        }
        let own = match &self.sender.role {
            Role::Endpoint(endpoint) => endpoint.deadline(self.sender.timers.now()),
            Role::Observer | Role::Relay(_) => None,
        };
        self.sender.timers.next().into_iter().chain(own).min()
    }

    fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    fn is_established(&self) -> bool {
        match &self.sender.role {
            Role::Endpoint(endpoint) => endpoint.is_established(),
            Role::Observer | Role::Relay(_) => self.is_read,
        }
    }

    fn is_closed(&self) -> bool {
        self.sender.closing.is_closed()
    }

    fn queued_bytes(&self, to: Side) -> usize {
        match &self.sender.role {
            Role::Endpoint(endpoint) if self.sender.peer() == Some(to) => endpoint.queued_bytes(),
            Role::Relay(relay) => relay.queued_bytes(to),
            Role::Endpoint(_) | Role::Observer => 0,
        }
    }

    fn is_paused(&self, from: Side) -> bool {
        matches!(&self.sender.role, Role::Relay(relay) if relay.is_paused(from))
    }

    fn kept_bytes(&self, from: Side) -> usize {
        match &self.sender.role {
            Role::Relay(relay) => relay.kept_bytes(from),
            Role::Endpoint(_) | Role::Observer => 0,
        }
    }
}
