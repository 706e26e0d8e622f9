//! The half of a connection that sends.

use std::collections::HashSet;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Lane, SendError, Sender as Sends, Timer, Timers,
};

use super::config::{Config, check_signed, signs};
use super::relay::Relaying;
use crate::crypt::exchange::Variant;
use crate::crypt::pike::Pike;
use crate::frame::Header;
use crate::integrity::Signer;

/// The half of a [`Connection`](super::Connection) that sends, with all that the other half need
/// not be borrowed for: the role, the ciphers, the queues, the clock.
#[derive(Debug)]
pub struct Sender {
    pub(super) role: Role,
    pub(super) is_established: bool,
    /// By the side that they lead to.
    pub(super) lanes: [Lane<Box<Pike>>; 2],
    pub(super) timers: Timers,
    pub(super) closing: Closing,
}

/// Who a connection is.
#[derive(Debug)]
pub(super) enum Role {
    Client(Arc<Config>, Box<Signing>),
    Server(Arc<Config>),
    /// The variant, if it is known.
    Observer(Option<Variant>),
    Relay(Box<Relaying>),
}

/// What a client counts and signs.
#[derive(Debug)]
pub(super) struct Signing {
    /// The messages that it does so in.
    opcodes: HashSet<u16>,
    signer: Signer,
}

impl Signing {
    /// As a client is configured.
    pub(super) fn new(config: &Config) -> Self {
        Self { opcodes: config.integrity.clone(), signer: Signer::default() }
    }
}

impl Role {
    /// The side that is played, by a client or a server.
    pub(super) fn side(&self) -> Option<Side> {
        match self {
            Self::Client(..) => Some(Side::Client),
            Self::Server(_) => Some(Side::Server),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }

    /// What a client or a server was configured with.
    pub(super) fn config(&self) -> Option<&Config> {
        match self {
            Self::Client(config, _) | Self::Server(config) => Some(config),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }
}

impl Sender {
    pub(super) fn new(role: Role, bounds: Bounds, timers: Timers) -> Self {
        let lanes = [(); 2].map(|()| Lane::new(bounds));
        Self { role, is_established: false, lanes, timers, closing: Closing::default() }
    }

    /// Clients and relays: the seed of the checksums (`iv`), which the server names in
    /// `S_LOGIN_ACCOUNT_INFO` from patch 93 on. What is signed before the seed is known, or in
    /// patch 92, has the checksum 0.
    ///
    /// Unverified: the checksum itself; see [`integrity`](crate::integrity).
    ///
    /// # Errors
    /// [`SendError::Role`], for a server or an observer.
    pub fn set_integrity_seed(&mut self, iv: u32) -> Result<(), SendError> {
        match &mut self.role {
            Role::Client(_, signing) => signing.signer.iv = Some(iv),
            Role::Relay(relay) => relay.set_seed(iv),
            _ => return Err(SendError::Role("a client or a relay")),
        }
        Ok(())
    }

    /// Clients and relays: the opcodes of the messages of the client that carry counter and
    /// checksum, from here on in place of [those of the configuration](Config::integrity). A relay
    /// learns from the client's first message which build it is, and so which messages these are;
    /// [`Packets::integrity`](crate::packet::Packets::integrity) tells them.
    ///
    /// # Errors
    /// [`SendError::Role`], for a server or an observer.
    pub fn set_integrity(&mut self, opcodes: HashSet<u16>) -> Result<(), SendError> {
        match &mut self.role {
            Role::Client(_, signing) => signing.opcodes = opcodes,
            Role::Relay(relay) => relay.set_integrity(opcodes),
            _ => return Err(SendError::Role("a client or a relay")),
        }
        Ok(())
    }

    pub(super) fn close_for(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// A whole message came, or the keys are exchanged: the other side is alive.
    pub(super) fn heard(&mut self) {
        self.timers.stop(Timer::Message);
        if let Role::Server(config) = &self.role
            && let Some(idle_time) = config.idle_time
        {
            self.timers.start(Timer::Idle, idle_time);
        }
    }

    /// A message has begun, or not, and must end in time.
    pub(super) fn watch_message(&mut self, has_begun: bool) {
        if let Some(config) = self.role.config() {
            match has_begun && self.is_established {
                true => self.timers.start_once(Timer::Message, config.message_time),
                false => self.timers.stop(Timer::Message),
            }
        }
    }
}

impl Sends for Sender {
    type Message<'m> = [u8];

    /// Queues a message, whole, with its header. A client fills in counter and checksum of those
    /// that have them; see [`Config::integrity`].
    fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let to = match &self.role {
            Role::Client(..) => Side::Server,
            Role::Server(_) => Side::Client,
            Role::Observer(_) | Role::Relay(_) => {
                return Err(SendError::Role("a client or a server"));
            }
        };
        self.closing.check_open()?;
        Header::whole(message).map_err(SendError::Encode)?;
        let lane = &mut self.lanes[to.index()];
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        let mut message = message.to_vec();
        if let Role::Client(_, signing) = &mut self.role
            && signs(&signing.opcodes, &message)
        {
            check_signed(&message).map_err(SendError::Encode)?;
            signing.signer.sign(&mut message);
        }
        match self.is_established {
            true => lane.push(message),
            false => lane.out.defer(message),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.close_for(CloseReason::Local);
    }
}
