//! The half of a connection that sends: sessions, keep-alives, queues.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    self, Bounds, CloseReason, Decision, HalfSender, Inject, Leaving, Outgoing, Role as _,
    SendError, SendHalf, Timer,
};
use worldwire_core::{Error, Result, Side};

use super::config::{ClientConfig, Common, Life, MAX_OBSERVED_BYTES, ServerConfig, UnknownControl};
use super::event::{Ignored, News, PieceInfo, Unit};
use super::relay::{Passage, RelayState, Way, check_decision, whole_message};
use crate::control::{Control, KeepAlive, Opcode, SessionAccept, SessionOffer};
use crate::crypt::Salt;
use crate::crypt::observer::ObserverKeys;
use crate::crypto_block::CryptoBlock;
use crate::frame::Frame;
use crate::message::RawMessage;

/// The half of a [`Connection`](super::Connection) that sends. It can send replies while an event
/// borrows the other half.
#[derive(Debug)]
pub struct Sender {
    pub(super) half: SendHalf<Role>,
    pub(super) session: Session,
    /// The salt from the last session offer.
    pub(super) salt: Option<Salt>,
    /// When the session was established.
    since: Duration,
    level: u8,
    /// Client: the last message sent, until the next message from the server arrives.
    last: Option<Vec<u8>>,
}

/// The role of a connection.
#[derive(Debug)]
pub enum Role {
    Client(Arc<ClientConfig>),
    Server(Arc<ServerConfig>),
    Observer(Arc<ObserverKeys>),
    Relay(Box<RelayState>),
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// No session has been offered.
    None,
    /// Server: offered, but not yet accepted. `previous` is the stale session.
    Offered { id: u16, previous: Option<u16> },
    /// Accepted.
    Established { id: u16 },
    /// Server: the reply to the next message will be the offer of another session.
    Stale { id: u16, next: u16 },
}

/// A server's decision about a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    Deliver,
    Ignore(Ignored),
    /// The session has not been accepted yet.
    Keep,
}

impl connection::Role for Role {
    type Lane = Way;
    type Piece = Passage;

    fn side(&self) -> Option<Side> {
        match self {
            Self::Client(_) => Some(Side::Client),
            Self::Server(_) => Some(Side::Server),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }

    fn leave(
        &mut self,
        _: Side,
        way: &mut Way,
        leaving: Leaving<Passage>,
    ) -> Result<(), CloseReason> {
        way.forward(leaving);
        if way.is_broken { Err(CloseReason::Fault) } else { Ok(()) }
    }

    fn check(
        &self,
        ways: &[Way; 2],
        piece: &Passage,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        check_decision(ways, piece, decision)
    }
}

impl HalfSender for Sender {
    type Role = Role;
    type Message<'m> = RawMessage<'m>;

    fn half(&self) -> &SendHalf<Role> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut SendHalf<Role> {
        &mut self.half
    }

    /// Queues a DML message in a separate frame.
    fn queue(&mut self, message: &RawMessage<'_>) -> Result<(), SendError> {
        self.half.closing.check_open()?;
        if self.common().is_none() {
            return Err(SendError::Role("a client or a server"));
        }
        let bytes = Frame::message(message.clone()).to_bytes().map_err(SendError::Encode)?;
        self.out().check_room(bytes.len()).map_err(SendError::QueueFull)?;
        match self.is_established() {
            true => self.push_message(bytes),
            false => self.out().defer(bytes),
        }
        Ok(())
    }
}

impl Sender {
    pub(super) fn new(role: Role, now: Duration) -> Self {
        let bounds = match &role {
            Role::Client(config) => config.common.bounds,
            Role::Server(config) => config.common.bounds,
            Role::Observer(_) => Bounds::default(),
            Role::Relay(relay) => relay.config.bounds,
        };
        let is_relay = matches!(role, Role::Relay(_));
        let half = SendHalf::new(role, [(); 2].map(|()| Way::new(bounds)), now);
        let half = if is_relay { half.forwarding(bounds) } else { half };
        Self { half, session: Session::None, salt: None, since: now, level: 1, last: None }
    }

    /// The sender of an observer's copy.
    pub(super) fn observing(&self) -> Option<Self> {
        let Role::Observer(keys) = &self.half.role else { return None };
        let ways = [(); 2].map(|()| Way::new(Bounds::default()));
        let half = self.half.observing(Role::Observer(Arc::clone(keys)), ways);
        Some(Self { half, last: self.last.clone(), ..*self })
    }

    /// For servers: makes the session stale. The client's next message is ignored, and the reply is
    /// an offer of this new session. The client then sends its last message again.
    ///
    /// # Errors
    /// [`SendError::Role`], [`SendError::NotEstablished`], or, if the ID is 0 or the current
    /// session's, [`SendError::Encode`].
    pub fn refresh(&mut self, session_id: u16) -> Result<(), SendError> {
        self.half.closing.check_open()?;
        if !matches!(self.half.role, Role::Server(_)) {
            return Err(SendError::Role("a server"));
        }
        let Session::Established { id } = self.session else {
            return Err(SendError::NotEstablished);
        };
        if session_id == 0 || session_id == id {
            let error = Error::value(
                "a nonzero session ID other than the current one",
                session_id.to_string(),
            );
            return Err(SendError::Encode(error));
        }
        self.session = Session::Stale { id, next: session_id };
        Ok(())
    }

    /// For servers: sets the access level of the established session; see [`Ignored::AccessLevel`].
    pub fn set_access_level(&mut self, level: u8) {
        self.level = level;
    }

    /// The access level of the session: 0 before it is established, then 1 or the level from
    /// [`set_access_level`](Self::set_access_level).
    #[must_use]
    pub fn access_level(&self) -> u8 {
        if self.is_established() { self.level } else { 0 }
    }

    /// The ID in the last session offer.
    #[must_use]
    pub fn session_id(&self) -> Option<u16> {
        self.salt.map(|salt| salt.session_id)
    }

    /// The salt of the login's secrets, from the last session offer.
    #[must_use]
    pub fn salt(&self) -> Option<Salt> {
        self.salt
    }

    /// Whether a session has been accepted.
    #[must_use]
    pub fn is_established(&self) -> bool {
        matches!(self.session, Session::Established { .. } | Session::Stale { .. })
    }

    /// The other side, for a client or server.
    pub(super) fn peer(&self) -> Option<Side> {
        self.half.role.side().map(Side::other)
    }

    /// The queue of a client or server.
    fn out(&mut self) -> &mut Outgoing {
        let peer = self.peer().unwrap_or(Side::Client);
        &mut self.half.lanes[peer.index()].out
    }

    fn common(&self) -> Option<&Common> {
        match &self.half.role {
            Role::Client(config) => Some(&config.common),
            Role::Server(config) => Some(&config.common),
            Role::Observer(_) | Role::Relay(_) => None,
        }
    }

    /// The maximum size of a frame body in bytes.
    pub(super) fn max_frame_bytes(&self) -> u64 {
        match &self.half.role {
            Role::Client(config) => config.common.max_frame_bytes.into(),
            Role::Server(config) => config.common.max_frame_bytes.into(),
            Role::Observer(_) => MAX_OBSERVED_BYTES,
            Role::Relay(relay) => relay.config.max_frame_bytes.into(),
        }
    }

    /// Server: the maximum size of a frame body before any session is accepted.
    pub(super) fn max_early_frame_bytes(&self) -> Option<u32> {
        match (&self.half.role, self.session) {
            (Role::Server(config), Session::None | Session::Offered { previous: None, .. }) => {
                Some(config.max_early_frame_bytes)
            }
            _ => None,
        }
    }

    /// Records that bytes arrived from the other side.
    pub(super) fn on_traffic(&mut self) {
        if self.common().is_some_and(|common| common.life == Life::AnyTraffic) {
            self.half.timers.stop(Timer::KeepAlive);
        }
    }

    /// Records that a client received a message, so its own last message need not be sent again. A
    /// keep-alive is not enough, because it may have crossed that message on the wire.
    pub(super) fn on_message(&mut self) {
        self.last = None;
    }

    /// Decides what a server does with a piece from the client.
    ///
    /// # Errors
    /// Fails if a new session must be offered and a limit on the queue is exceeded.
    pub(super) fn judge(&mut self, unit: Unit) -> Result<Verdict> {
        let (Role::Server(config), Unit::Message { service, order }) = (&self.half.role, unit)
        else {
            return Ok(Verdict::Deliver);
        };
        match self.session {
            Session::Stale { id, next } => {
                let config = Arc::clone(config);
                self.offer(&config, next, Some(id))?;
                Ok(Verdict::Ignore(Ignored::Stale))
            }
            // The client sends only its last message again. Everything it sent in between belongs
            // to the stale session.
            Session::Offered { previous: Some(_), .. } => Ok(Verdict::Ignore(Ignored::Stale)),
            Session::Offered { .. } | Session::None if config.keep_early => Ok(Verdict::Keep),
            Session::Offered { .. } | Session::None => Ok(Verdict::Ignore(Ignored::Early)),
            Session::Established { .. } => {
                let protocols = config.protocols.as_ref();
                let message = protocols.and_then(|protocols| protocols.message(service, order));
                let (needed, has) = (message.map_or(0, |message| message.access_level), self.level);
                Ok(match needed > has {
                    true => Verdict::Ignore(Ignored::AccessLevel { needed, has }),
                    false => Verdict::Deliver,
                })
            }
        }
    }

    /// Handles a control message and returns the session that it establishes.
    pub(super) fn on_control(&mut self, side: Side, control: &Control<'_>) -> Result<Option<News>> {
        if let (Control::SessionOffer(offer), Side::Server) = (control, side) {
            self.salt = Some(Salt::from(offer));
        }
        let wrong = |name: &'static str| {
            Err(Error::malformed(format!("a control message of the {side}"), name))
        };
        match (control, &self.half.role) {
            (Control::SessionAccept(accept), Role::Relay(_)) => Ok(self.on_relayed(side, accept)),
            (Control::SessionAccept(accept), Role::Observer(_)) => {
                self.on_relayed(side, accept);
                Ok(None)
            }
            (_, Role::Observer(_) | Role::Relay(_)) => Ok(None),
            (Control::SessionOffer(offer), Role::Client(config)) => {
                let config = Arc::clone(config);
                self.on_offer(&config, offer).map(Some)
            }
            (Control::SessionOffer(_), _) => wrong("SessionOffer"),
            (Control::SessionAccept(accept), Role::Server(_)) => self.on_accept(accept),
            (Control::SessionAccept(_), _) => wrong("SessionAccept"),
            (Control::KeepAlive(alive), _) => {
                self.queue_control(Control::KeepAliveRsp(Some(*alive)), true).map(|()| None)
            }
            (Control::KeepAliveRsp(_), _) => {
                self.half.timers.stop(Timer::KeepAlive);
                Ok(None)
            }
            (Control::Other { opcode, .. }, Role::Server(config))
                if config.unknown_control == UnknownControl::Close
                    && *opcode != Opcode::UdpHello =>
            {
                Err(Error::malformed("a known control message", opcode.to_string()))
            }
            (Control::Other { .. }, _) => Ok(None),
        }
    }

    /// Handles an accept that an observer or a relay sees.
    fn on_relayed(&mut self, side: Side, accept: &SessionAccept<'_>) -> Option<News> {
        let session_id = self.session_id().filter(|id| *id == accept.session_id)?;
        let previous = match self.session {
            Session::Established { id } => Some(id),
            _ => None,
        };
        if side != Side::Client || previous == Some(session_id) {
            return None;
        }
        self.session = Session::Established { id: session_id };
        Some(News::Established { session_id, previous })
    }

    /// Sends a keep-alive. The response must arrive before the next one is due.
    pub(super) fn beat(&mut self) -> Result<()> {
        let Some(common) = self.common() else { return Ok(()) };
        let (now, every) = (self.half.timers.now(), common.keep_alive_every);
        let due = self.half.timers.get(Timer::Beat).unwrap_or(now).saturating_add(every);
        // Even if the driver is late, several keep-alives are not sent at once.
        let next = if due > now { due } else { now.saturating_add(every) };
        self.half.timers.set(Timer::Beat, next);
        self.half.timers.set(Timer::KeepAlive, next);
        let (alive, trailer) = match &self.half.role {
            Role::Client(config) => {
                let alive = client_alive(self.salt, now.saturating_sub(self.since));
                (alive, config.keep_alive_trailer)
            }
            Role::Server(config) => (server_alive(now.saturating_sub(config.started)), true),
            Role::Observer(_) | Role::Relay(_) => return Ok(()),
        };
        self.queue_control(Control::KeepAlive(alive), trailer)
    }

    /// Client: announces itself to the server, over UDP.
    pub(super) fn hello(&mut self) -> Result<()> {
        self.queue_control(Control::Other { opcode: Opcode::UdpHello, body: (&[]).into() }, true)
    }

    /// Server: offers a session.
    pub(super) fn offer(
        &mut self,
        config: &ServerConfig,
        id: u16,
        previous: Option<u16>,
    ) -> Result<()> {
        let time = config.common.clock(self.half.timers.now());
        let crypto = config.offer_crypto_block.then_some(CryptoBlock::NONE);
        let offer = SessionOffer { session_id: id, time, crypto };
        let salt = Salt::from(&offer);
        let bytes = Frame::control(Control::SessionOffer(offer)).to_bytes()?;
        if previous.is_some() {
            self.out().check_room(bytes.len())?;
        }
        self.out().push(bytes);
        self.salt = Some(salt);
        self.session = Session::Offered { id, previous };
        self.half.timers.start(Timer::Setup, config.accept_time);
        Ok(())
    }

    fn on_offer(&mut self, config: &ClientConfig, offer: &SessionOffer<'_>) -> Result<News> {
        let previous = match self.session {
            Session::Established { id } => Some(id),
            _ => None,
        };
        let crypto = offer.crypto.is_some() && config.accept_crypto_block;
        let accept = Frame::control(Control::SessionAccept(SessionAccept {
            reserved: 0,
            time: config.common.clock(self.half.timers.now()),
            session_id: offer.session_id,
            crypto: crypto.then_some(CryptoBlock::NONE),
        }));
        let accept = accept.to_bytes()?;
        // Messages deferred until the first accept may fill the queue.
        if previous.is_some() {
            let last = self.last.as_ref().map_or(0, Vec::len);
            self.out().check_room(accept.len().saturating_add(last))?;
        }
        self.out().push(accept);
        if previous.is_some()
            && let Some(last) = self.last.take()
        {
            self.out().push(last);
        }
        self.establish(offer.session_id);
        Ok(News::Established { session_id: offer.session_id, previous })
    }

    fn on_accept(&mut self, accept: &SessionAccept<'_>) -> Result<Option<News>> {
        let (session_id, previous) = match self.session {
            Session::Offered { id, previous } => (id, previous),
            // The client accepted twice.
            Session::Established { id } if id == accept.session_id => return Ok(None),
            _ => {
                return Err(Error::malformed(
                    "",
                    "SessionAccept arrived without a pending SessionOffer",
                ));
            }
        };
        if accept.session_id != session_id {
            let error = Error::malformed(session_id.to_string(), accept.session_id.to_string());
            return Err(error.inside("sessionId"));
        }
        self.establish(session_id);
        Ok(Some(News::Established { session_id, previous }))
    }

    /// Establishes a session and sends the deferred messages.
    fn establish(&mut self, id: u16) {
        self.since = self.half.timers.now();
        self.session = Session::Established { id };
        self.half.timers.stop(Timer::Setup);
        if let Some(every) = self.common().map(|common| common.keep_alive_every) {
            self.half.timers.start_once(Timer::Beat, every);
        }
        while let Some(message) = self.out().release_deferred() {
            self.push_message(message);
        }
    }

    fn push_message(&mut self, message: Vec<u8>) {
        if matches!(self.half.role, Role::Client(_)) {
            self.last = Some(message.clone());
        }
        self.out().push(message);
    }

    fn queue_control(&mut self, control: Control<'_>, trailer: bool) -> Result<()> {
        let mut frame = Frame::control(control);
        frame.trailer = trailer.then_some(0);
        let bytes = frame.to_bytes()?;
        self.out().check_room(bytes.len())?;
        self.out().push(bytes);
        Ok(())
    }
}

impl Inject for Sender {
    /// Sends a message, as [`RawMessage`] encodes it, in a separate frame. Frames and datagrams are
    /// forwarded whole: a message injected within one is sent after it, unless a piece of that side
    /// is already held. A message injected into a stale session is lost: the server ignores it, and
    /// the client sends only its own last message again.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        let is_established = self.is_established();
        let forwarding = self.half.open_relay()?;
        // A held offer or accept must leave first.
        let is_control = |passage: &Passage| {
            matches!(passage, Passage::Piece(PieceInfo { unit: Unit::Control(opcode), .. })
                if matches!(*opcode, Opcode::SessionOffer | Opcode::SessionAccept))
        };
        if !is_established || forwarding.keeps(is_control) {
            return Err(SendError::NotEstablished);
        }
        let frame = Frame::message(whole_message(message)?).to_bytes();
        let frame = frame.map_err(SendError::Encode)?;
        let from = to.other();
        forwarding.check_readable(from)?;
        self.half.lanes[to.index()].check_readable()?;
        self.half.fill(from).map_err(SendError::QueueFull)?;
        let forwarding = self.half.open_relay()?;
        let is_inside = forwarding.reported().is_some_and(|(side, passage)| {
            let begins = matches!(passage, Passage::Piece(piece) if piece.is_first());
            side == from && !begins
        });
        let is_holding = forwarding.is_holding(from);
        let SendHalf { role: Role::Relay(relay), lanes, .. } = &mut self.half else {
            return Ok(());
        };
        lanes[to.index()].inject(frame, (is_inside, is_holding), relay.is_datagrams)
    }
}

/// A client's keep-alive: milliseconds within the minute, and minutes, which wrap after 45 days.
/// Unverified: the meaning of the retail client's milliseconds, which can exceed 999.
#[expect(clippy::cast_possible_truncation, reason = "the wire has 16 bits for either")]
fn client_alive(salt: Option<Salt>, since: Duration) -> KeepAlive {
    KeepAlive::Client {
        session_id: salt.map_or(0, |salt| salt.session_id),
        millis: (since.as_millis() % 60_000) as u16,
        minutes: (since.as_secs() / 60) as u16,
    }
}

/// A server's keep-alive: milliseconds since the server started, which wrap after 49 days.
#[expect(clippy::cast_possible_truncation, reason = "the wire has 32 bits for it")]
fn server_alive(uptime: Duration) -> KeepAlive {
    KeepAlive::Server { session_id: 0, uptime_millis: uptime.as_millis() as u32 }
}
