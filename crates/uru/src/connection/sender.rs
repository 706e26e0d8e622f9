//! The half of a connection that sends.

use std::sync::Arc;

use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Lane, SendError, Sender as Sends, Timer, Timers,
};
use worldwire_core::{Error, Field, Result, Side, Writer};

use super::captured::CapturedExchange;
use super::config::{ClientConfig, ServerConfig};
use super::ping::ping;
use super::relay_state::RelayState;
use crate::crypt::exchange::SharedSecret;
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service};

/// The half of a [`Connection`](super::Connection) that sends. It owns everything that works
/// without the other half: the role, the ciphers, the queues, the clock.
#[derive(Debug)]
pub struct Sender {
    pub(super) role: Role,
    pub(super) service: Option<Service>,
    pub(super) is_established: bool,
    /// The lanes to both sides; by [`Side::index`].
    pub(super) lanes: [Lane<Rc4>; 2],
    pub(super) timers: Timers,
    pub(super) closing: Closing,
}

/// The role of a connection.
#[derive(Debug)]
pub(super) enum Role {
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
    },
    Relay(Box<RelayState>),
}

impl Role {
    /// The side that a client or server represents.
    pub(super) fn side(&self) -> Option<Side> {
        match self {
            Self::Client { .. } => Some(Side::Client),
            Self::Server { .. } => Some(Side::Server),
            Self::Observer { .. } | Self::Relay(_) => None,
        }
    }
}

impl Sender {
    pub(super) fn new(role: Role, bounds: Bounds, timers: Timers) -> Self {
        let lanes = [(); 2].map(|()| Lane::new(bounds));
        let closing = Closing::default();
        Self { role, service: None, is_established: false, lanes, timers, closing }
    }

    /// Queues a setup packet. A connection has at most two, so messages sent early must not delay
    /// them.
    pub(super) fn transmit<'d>(&mut self, to: Side, packet: &impl Field<'d>) -> Result<()> {
        let mut writer = Writer::new();
        packet.encode(&mut writer)?;
        self.lanes[to.index()].out.push(writer.into_bytes());
        Ok(())
    }

    pub(super) fn close_for(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// Notes that a whole message arrived, so the other side is alive.
    pub(super) fn note_message(&mut self, service: Service) {
        if let Role::Server { config, .. } = &self.role {
            let idle_time = match service {
                Service::Game => config.game_idle_time,
                _ => config.idle_time,
            };
            self.timers.start(Timer::Idle, idle_time);
            self.timers.stop(Timer::Message);
        }
    }

    /// Starts the deadline of a message that has begun; clears it otherwise.
    pub(super) fn watch_message(&mut self, has_begun: bool) {
        if let Role::Server { config, .. } = &self.role {
            match has_begun && self.is_established {
                true => self.timers.start_once(Timer::Message, config.message_time),
                false => self.timers.stop(Timer::Message),
            }
        }
    }

    /// Sends the client's own ping.
    ///
    /// # Errors
    /// Those of [`send`](Sends::send).
    pub(super) fn ping(&mut self) -> Result<()> {
        let (Some(service), Role::Client { config, .. }) = (self.service, &self.role) else {
            return Ok(());
        };
        match config.ping_every {
            Some(every) => self.timers.start(Timer::Beat, every),
            None => self.timers.stop(Timer::Beat),
        }
        let clock = self.timers.now().as_millis() % (1 << 32);
        self.send(&ping(service, u32::try_from(clock).unwrap_or(0))).map_err(SendError::into_error)
    }
}

impl Sends for Sender {
    type Message<'m> = Message<'m>;

    /// Queues a message of this side and service.
    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        let own = match self.role {
            Role::Client { .. } => Side::Client,
            Role::Server { .. } => Side::Server,
            Role::Observer { .. } | Role::Relay(_) => {
                return Err(SendError::Role("a client or a server"));
            }
        };
        self.closing.check_open()?;
        if self.service != Some(message.service()) || message.sender() != own {
            let wanted = match self.service {
                Some(service) => format!("a message of the {own} on {}", service.name()),
                None => "a connection whose service is known".to_owned(),
            };
            let found = format!("{}.{}", message.service().name(), message.name());
            return Err(SendError::Encode(Error::value(wanted, found)));
        }
        let bytes = message.to_bytes().map_err(SendError::Encode)?;
        let lane = &mut self.lanes[own.other().index()];
        lane.out.check_room(bytes.len()).map_err(SendError::QueueFull)?;
        match self.is_established {
            true => lane.push(bytes),
            false => lane.out.defer(bytes),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.close_for(CloseReason::Local);
    }
}
