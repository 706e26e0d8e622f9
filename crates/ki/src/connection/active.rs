//! What a client and a server do beyond watching: sessions, heartbeats, queues.

use std::collections::VecDeque;
use std::time::Duration;

use worldwire_core::{Error, Result, Side};

use super::config::{Common, ServerConfig, UnknownControl};
use super::event::{CloseReason, Ignored, Timer, Unit};
use super::heartbeat::{Beat, Heartbeat};
use super::session::Early;
use super::{Connection, HeldFrame, Pending, Role};
use crate::control::{Control, KeepAlive, SessionAccept, SessionOffer};
use crate::crypt::login::Salt;
use crate::crypto_block::CryptoBlock;
use crate::frame::Frame;
use crate::message::RawMessage;

/// The state of a role that talks.
#[derive(Debug)]
pub(super) struct Active {
    session: Session,
    /// When offer or accept have to be there.
    handshake: Option<Duration>,
    pub(super) heartbeat: Heartbeat,
    /// When the first session was established.
    since: Duration,
    level: u8,
    out: VecDeque<Vec<u8>>,
    out_bytes: usize,
    /// Sent before a session was established: frames of the own side.
    unsent: VecDeque<Vec<u8>>,
    unsent_bytes: usize,
    /// Client: the last message that nothing has followed from the server.
    last: Option<Vec<u8>>,
    /// Server: what came before the accept.
    early: Early,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// Client: nothing offered yet.
    None,
    /// Server: offered, not accepted. `previous` is the stale one.
    Offered { id: u16, previous: Option<u16> },
    /// Accepted.
    Established { id: u16 },
    /// Server: the next message is answered with the offer of another session.
    Stale { id: u16, next: u16 },
}

/// Why a message is not delivered, or not now.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Ignore(Ignored),
    Keep,
}

impl Active {
    pub(super) fn new(handshake: Duration) -> Self {
        Self {
            session: Session::None,
            handshake: Some(handshake),
            heartbeat: Heartbeat::default(),
            since: Duration::ZERO,
            level: 1,
            out: VecDeque::new(),
            out_bytes: 0,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            last: None,
            early: Early::default(),
        }
    }

    pub(super) fn is_established(&self) -> bool {
        matches!(self.session, Session::Established { .. } | Session::Stale { .. })
    }

    pub(super) fn access_level(&self) -> u8 {
        if self.is_established() { self.level } else { 0 }
    }

    pub(super) fn set_access_level(&mut self, level: u8) {
        self.level = level;
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.handshake.into_iter().chain(self.heartbeat.due()).min()
    }

    pub(super) fn transmit(&mut self) -> Option<Vec<u8>> {
        let bytes = self.out.pop_front()?;
        self.out_bytes -= bytes.len();
        Some(bytes)
    }

    fn queue(&mut self, bytes: Vec<u8>) {
        self.out_bytes += bytes.len();
        self.out.push_back(bytes);
    }

    fn queue_control(&mut self, control: Control<'_>, trailer: bool) {
        let mut frame = Frame::control(control);
        if !trailer {
            frame.trailer = None;
        }
        // Our own control messages are short: they always have a wire form.
        if let Ok(bytes) = frame.to_bytes() {
            self.queue(bytes);
        }
    }

    pub(super) fn send(
        &mut self,
        message: &RawMessage<'_>,
        common: &Common,
        client: bool,
    ) -> Result<()> {
        let bytes = Frame::message(message.clone()).to_bytes()?;
        let frames = self.out.len() + self.unsent.len() + 1;
        let waiting = self.out_bytes + self.unsent_bytes + bytes.len();
        if frames > common.most_queued_frames {
            let (most, asked) = (common.most_queued_frames as u64, frames as u64);
            return Err(Error::limit("queued frames", most, asked));
        }
        if waiting > common.most_queued_bytes {
            let (most, asked) = (common.most_queued_bytes as u64, waiting as u64);
            return Err(Error::limit("queued bytes", most, asked));
        }
        if !self.is_established() {
            self.unsent_bytes += bytes.len();
            self.unsent.push_back(bytes);
            return Ok(());
        }
        if client {
            self.last = Some(bytes.clone());
        }
        self.queue(bytes);
        Ok(())
    }

    /// Server: offers a session.
    pub(super) fn offer(&mut self, config: &ServerConfig, id: u16, now: Duration) -> Salt {
        let previous = match self.session {
            Session::Stale { id, .. } => Some(id),
            _ => None,
        };
        let time = config.common.clock(now);
        let crypto = config.offer_crypto_block.then_some(CryptoBlock::NONE);
        let offer = SessionOffer { session_id: id, time, crypto };
        let salt = Salt::from(&offer);
        self.queue_control(Control::SessionOffer(offer), true);
        self.session = Session::Offered { id, previous };
        self.handshake = Some(now.saturating_add(config.accept_time));
        salt
    }

    pub(super) fn refresh(&mut self, next: u16) -> Result<()> {
        let Session::Established { id } = self.session else {
            return Err(Error::value("an established session", "none"));
        };
        if next == 0 || next == id {
            return Err(Error::value("another session id", next.to_string()));
        }
        self.session = Session::Stale { id, next };
        Ok(())
    }

    /// Client: something followed on the last message, so it need not be sent again. Keep-alives
    /// prove nothing: they may have crossed it on the way.
    pub(super) fn answered(&mut self) {
        self.last = None;
    }

    fn establish(&mut self, id: u16, common: &Common, now: Duration) {
        if !self.is_established() && self.heartbeat.due().is_none() {
            self.since = now;
        }
        self.session = Session::Established { id };
        self.handshake = None;
        self.heartbeat.begin(now, common.keep_alive_every, common.life);
    }

    /// What was sent before there was a session goes out.
    fn flush(&mut self, client: bool) {
        self.unsent_bytes = 0;
        for bytes in core::mem::take(&mut self.unsent) {
            if client {
                self.last = Some(bytes.clone());
            }
            self.queue(bytes);
        }
    }
}

impl Connection {
    /// Why a message of the client is not delivered, if it is not.
    pub(super) fn refusal(&mut self, service: u8, order: u8) -> Option<Refusal> {
        let now = self.now;
        let Role::Server(active, config) = &mut self.role else {
            return None;
        };
        match active.session {
            Session::Stale { next, .. } => {
                self.salt = Some(active.offer(config, next, now));
                Some(Refusal::Ignore(Ignored::Stale))
            }
            // The client sends only its last message again; what it sent in between is of the
            // stale session.
            Session::Offered { previous: Some(_), .. } => Some(Refusal::Ignore(Ignored::Stale)),
            Session::Offered { .. } | Session::None => Some(match config.keep_early {
                true => Refusal::Keep,
                false => Refusal::Ignore(Ignored::Early),
            }),
            Session::Established { .. } => {
                let protocols = config.protocols.as_ref()?;
                let needed = protocols.message(service, order)?.access_level;
                let has = active.access_level();
                let enough = needed <= has;
                (!enough).then_some(Refusal::Ignore(Ignored::AccessLevel { needed, has }))
            }
        }
    }

    /// Keeps a message that came before the accept.
    pub(super) fn keep(&mut self, frame: HeldFrame) {
        let Role::Server(active, config) = &mut self.role else {
            return;
        };
        let (side, at) = (frame.piece.side, frame.piece.range.start);
        if !active.early.push(frame, config.most_early_frames, config.most_early_bytes) {
            let error = Error::limit(
                "messages before the session is accepted",
                config.most_early_frames as u64,
                config.most_early_frames as u64 + 1,
            );
            self.fault(side, error.at(at));
        }
    }

    /// A control message came.
    pub(super) fn on_control(&mut self, side: Side, control: &Control<'_>) -> Result<()> {
        match control {
            Control::SessionOffer(offer) => self.on_offer(side, offer),
            Control::SessionAccept(accept) => self.on_accept(side, accept),
            Control::KeepAlive(alive) => {
                if let Some(active) = self.active() {
                    let answer = Control::KeepAliveRsp(Some(*alive));
                    active.queue_control(answer, true);
                }
                Ok(())
            }
            Control::KeepAliveRsp(_) => {
                if let Some(active) = self.active() {
                    active.heartbeat.answered();
                }
                Ok(())
            }
            Control::Other { opcode, .. } => match &self.role {
                Role::Server(_, config) if config.unknown_control == UnknownControl::Close => {
                    Err(Error::malformed("a known control message", opcode.to_string()))
                }
                _ => Ok(()),
            },
        }
    }

    fn on_offer(&mut self, side: Side, offer: &SessionOffer<'_>) -> Result<()> {
        let now = self.now;
        let Role::Client(active, config) = &mut self.role else {
            return Err(Error::malformed(format!("what a {side} sends"), "SessionOffer"));
        };
        let previous = match active.session {
            Session::Established { id } => Some(id),
            _ => None,
        };
        let crypto = offer.crypto.is_some() && config.accept_crypto_block;
        let accept = SessionAccept {
            reserved: 0,
            time: config.common.clock(now),
            session_id: offer.session_id,
            crypto: crypto.then_some(CryptoBlock::NONE),
        };
        active.queue_control(Control::SessionAccept(accept), true);
        active.establish(offer.session_id, &config.common, now);
        if previous.is_some()
            && let Some(last) = active.last.take()
        {
            active.queue(last);
        }
        active.flush(true);
        let session_id = offer.session_id;
        self.events.push_back(Pending::Established { session_id, previous });
        Ok(())
    }

    fn on_accept(&mut self, side: Side, accept: &SessionAccept<'_>) -> Result<()> {
        let now = self.now;
        let Role::Server(active, config) = &mut self.role else {
            return Err(Error::malformed(format!("what a {side} sends"), "SessionAccept"));
        };
        let (id, previous) = match active.session {
            Session::Offered { id, previous } => (id, previous),
            // Said twice.
            Session::Established { id } if id == accept.session_id => return Ok(()),
            _ => return Err(Error::malformed("no accept without an offer", "SessionAccept")),
        };
        if accept.session_id != id {
            let error = Error::malformed(id.to_string(), accept.session_id.to_string());
            return Err(error.inside("sessionId"));
        }
        active.establish(id, &config.common, now);
        active.flush(false);
        let held = active.early.take();
        self.events.push_back(Pending::Established { session_id: id, previous });
        for frame in held {
            let refused = match frame.piece.unit {
                Unit::Message { service, order } => self.refusal(service, order),
                _ => None,
            };
            let why = match refused {
                Some(Refusal::Ignore(why)) => Some(why),
                Some(Refusal::Keep) | None => None,
            };
            self.events.push_back(Pending::Held(frame, why));
        }
        Ok(())
    }

    /// Time has passed: what is due is done. Returns why the connection ends, if it does.
    pub(super) fn on_timeout(&mut self) -> Option<CloseReason> {
        let now = self.now;
        let (active, common, timer, trailer) = match &mut self.role {
            Role::Client(active, config) => {
                (active, &config.common, Timer::Offer, config.keep_alive_trailer)
            }
            Role::Server(active, config) => (active, &config.common, Timer::Accept, true),
            Role::Observer { .. } => return None,
        };
        if active.handshake.is_some_and(|at| at <= now) {
            return Some(CloseReason::Timeout(timer));
        }
        match active.heartbeat.beat(now, common.keep_alive_every) {
            Beat::Nothing => {}
            Beat::Dead => return Some(CloseReason::Timeout(Timer::KeepAlive)),
            Beat::Ask => {
                let alive = match &self.role {
                    Role::Server(_, config) => server_alive(now.saturating_sub(config.started)),
                    _ => client_alive(self.salt, now.saturating_sub(self.since())),
                };
                if let Some(active) = self.active() {
                    active.queue_control(Control::KeepAlive(alive), trailer);
                }
            }
        }
        None
    }

    fn since(&self) -> Duration {
        match &self.role {
            Role::Client(active, _) | Role::Server(active, _) => active.since,
            Role::Observer { .. } => Duration::ZERO,
        }
    }
}

/// Milliseconds within the minute, and minutes; the minutes wrap after 45 days.
/// Unverified: what the retail client's milliseconds count; they go beyond 999.
#[expect(clippy::cast_possible_truncation, reason = "the wire has 16 bits for either")]
fn client_alive(salt: Option<Salt>, since: Duration) -> KeepAlive {
    KeepAlive::Client {
        session_id: salt.map_or(0, |salt| salt.session_id),
        millis: (since.as_millis() % 60_000) as u16,
        minutes: (since.as_secs() / 60) as u16,
    }
}

/// Milliseconds since the server was started; they wrap after 49 days.
#[expect(clippy::cast_possible_truncation, reason = "the wire has 32 bits for it")]
fn server_alive(uptime: Duration) -> KeepAlive {
    KeepAlive::Server { session_id: 0, uptime_millis: uptime.as_millis() as u32 }
}
