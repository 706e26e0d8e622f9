//! The half of a connection that sends.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    self, Bounds, CloseReason, Decision, HalfSender, Inject, Lane, Leaving, SendError, SendHalf,
    Timer, Unread,
};
use worldwire_core::{Error, Field, Result, Side, Writer};

use super::captured::CapturedExchange;
use super::config::{ClientConfig, ServerConfig};
use super::event::Unit;
use super::ping::ping;
use super::relay::{RelayState, check_message};
use crate::crypt::exchange::{SessionKey, SharedSecret};
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service};

/// The half of a [`Connection`](super::Connection) that sends. It owns everything that works
/// without the other half: the role, the ciphers, the queues, the clock.
#[derive(Debug)]
pub struct Sender {
    pub(super) half: SendHalf<Role>,
    pub(super) service: Option<Service>,
    pub(super) is_established: bool,
}

/// The role of a connection.
#[derive(Debug)]
pub enum Role {
    Client {
        config: Arc<ClientConfig>,
        shared: Option<SharedSecret>,
    },
    Server {
        config: Arc<ServerConfig>,
        seed: [u8; 7],
    },
    Observer {
        keys: Arc<KeyRing>,
        /// The client's number, once known.
        y: Option<Vec<u8>>,
        exchange: Option<Arc<CapturedExchange>>,
        /// The seed and the key of an encrypted connection, once known.
        session: Option<([u8; 7], SessionKey)>,
    },
    Relay(Box<RelayState>),
}

impl Role {
    pub(super) fn observer(keys: Arc<KeyRing>, exchange: Option<Arc<CapturedExchange>>) -> Self {
        Self::Observer { keys, y: None, exchange, session: None }
    }
}

impl connection::Role for Role {
    type Lane = Lane<Rc4>;
    type Piece = Unread<Unit>;

    fn side(&self) -> Option<Side> {
        match self {
            Self::Client { .. } => Some(Side::Client),
            Self::Server { .. } => Some(Side::Server),
            Self::Observer { .. } | Self::Relay(_) => None,
        }
    }

    fn message_time(&self) -> Option<Duration> {
        match self {
            Self::Server { config, .. } => Some(config.message_time),
            _ => None,
        }
    }

    fn replacement(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Relay(relay) => relay.made.take(),
            _ => None,
        }
    }

    fn leave(
        &mut self,
        _: Side,
        lane: &mut Lane<Rc4>,
        leaving: Leaving<Unread<Unit>>,
    ) -> Result<(), CloseReason> {
        let bytes = match leaving.decision {
            Decision::AsIs => leaving.bytes,
            Decision::Instead(bytes) => bytes.into_owned(),
            Decision::Drop => return Ok(()),
        };
        match leaving.piece {
            // Setup packets are not encrypted.
            Some(Unread { unit: Unit::Connect | Unit::Setup, .. }) => lane.out.forward(bytes),
            _ => lane.forward(bytes),
        }
        Ok(())
    }

    fn check(
        &self,
        _: &[Lane<Rc4>; 2],
        piece: &Unread<Unit>,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        match self {
            Self::Relay(relay) => relay.check(piece, decision),
            _ => Ok(()),
        }
    }
}

impl HalfSender for Sender {
    type Role = Role;
    type Message<'m> = Message<'m>;

    fn half(&self) -> &SendHalf<Role> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut SendHalf<Role> {
        &mut self.half
    }

    /// Queues a message of this side and service.
    fn queue(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        let own = match self.half.role {
            Role::Client { .. } => Side::Client,
            Role::Server { .. } => Side::Server,
            Role::Observer { .. } | Role::Relay(_) => {
                return Err(SendError::Role("a client or a server"));
            }
        };
        self.half.closing.check_open()?;
        if self.service != Some(message.service()) || message.sender() != own {
            let wanted = match self.service {
                Some(service) => format!("a message from the {own} on {}", service.name()),
                None => "a connection whose service is known".to_owned(),
            };
            let found = format!("{}.{}", message.service().name(), message.name());
            return Err(SendError::Encode(Error::value(wanted, found)));
        }
        let bytes = message.to_bytes().map_err(SendError::Encode)?;
        let lane = &mut self.half.lanes[own.other().index()];
        lane.out.check_room(bytes.len()).map_err(SendError::QueueFull)?;
        match self.is_established {
            true => lane.push(bytes),
            false => lane.out.defer(bytes),
        }
        Ok(())
    }
}

impl Sender {
    pub(super) fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        let half = SendHalf::new(role, [(); 2].map(|()| Lane::new(bounds)), now);
        Self { half, service: None, is_established: false }
    }

    /// The sender of an observer's copy.
    pub(super) fn observing(&self) -> Option<Self> {
        let Role::Observer { keys, y, exchange, session } = &self.half.role else { return None };
        let (keys, exchange) = (Arc::clone(keys), exchange.clone());
        let (y, session) = (y.clone(), session.clone());
        let role = Role::Observer { keys, y, exchange, session };
        let half = self.half.observing(role, [(); 2].map(|()| Lane::new(Bounds::default())));
        Some(Self { half, ..*self })
    }

    /// Queues a setup packet. A connection has at most two, so messages sent early must not delay
    /// them.
    pub(super) fn transmit<'d>(&mut self, to: Side, packet: &impl Field<'d>) -> Result<()> {
        let mut writer = Writer::new();
        packet.encode(&mut writer)?;
        self.half.lanes[to.index()].out.push(writer.into_bytes());
        Ok(())
    }

    /// Records that a whole message arrived, so the other side is alive.
    pub(super) fn note_message(&mut self, service: Service) {
        if let Role::Server { config, .. } = &self.half.role {
            let idle_time = match service {
                Service::Game => config.game_idle_time,
                _ => config.idle_time,
            };
            self.half.timers.start(Timer::Idle, idle_time);
            self.half.timers.stop(Timer::Message);
        }
    }

    /// Sends the client's own ping.
    pub(super) fn ping(&mut self) -> Result<()> {
        let (Some(service), Role::Client { config, .. }) = (self.service, &self.half.role) else {
            return Ok(());
        };
        match config.ping_every {
            Some(every) => self.half.timers.start(Timer::Beat, every),
            None => self.half.timers.stop(Timer::Beat),
        }
        let clock = self.half.timers.now().as_millis() % (1 << 32);
        self.queue(&ping(service, u32::try_from(clock).unwrap_or(0))).map_err(SendError::into_error)
    }
}

impl Inject for Sender {
    /// Queues a message for a side. The message is also refused while a piece waits for room in the
    /// queue to that side, and if the stream is forwarded unread.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        // The message must not overtake a setup packet that has not been forwarded yet.
        let is_setup = |piece: &Unread<Unit>| !matches!(piece.unit, Unit::Message(_));
        let forwarding = self.half.open_relay()?;
        let in_setup = forwarding.reported().is_some_and(|(_, piece)| is_setup(piece))
            || forwarding.keeps(is_setup);
        let readable = forwarding.check_readable(to.other());
        let (Some(service), true, false) = (self.service, self.is_established, in_setup) else {
            return Err(SendError::NotEstablished);
        };
        check_message(service, to.other(), message)?;
        readable?;
        self.half.fill(to.other()).map_err(SendError::QueueFull)?;
        let lane = &mut self.half.lanes[to.index()];
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        lane.push(message.to_vec());
        Ok(())
    }
}
