//! The half of a connection that sends.

use std::collections::HashSet;
use std::sync::Arc;

use worldwire_core::connection::{
    Bounds, CloseReason, Closing, Decision, Forward, HoldId, Inject, Lane, SendError,
    Sender as Sends, Timer, Timers,
};
use worldwire_core::{Result, Side};

use super::config::{Config, check_signed, signs};
use super::relay::Relaying;
use crate::crypt::exchange::Variant;
use crate::crypt::pike::Pike;
use crate::frame::Header;
use crate::integrity::Signer;

/// The half of a [`Connection`](super::Connection) that sends. It owns the role, the ciphers, the
/// queues and the clock, so it can answer while an event borrows the other half.
#[derive(Debug)]
pub struct Sender {
    pub(super) role: Role,
    pub(super) is_established: bool,
    /// By receiving side.
    pub(super) lanes: [Lane<Box<Pike>>; 2],
    pub(super) timers: Timers,
    pub(super) closing: Closing,
}

/// The role of a connection.
#[derive(Debug)]
pub(super) enum Role {
    Client(Arc<Config>, Box<Signing>),
    Server(Arc<Config>),
    /// The variant, if the caller knows it.
    Observer(Option<Variant>),
    Relay(Box<Relaying>),
}

/// A client's counters and checksums.
#[derive(Debug)]
pub(super) struct Signing {
    /// The messages that carry them.
    opcodes: HashSet<u16>,
    signer: Signer,
}

impl Signing {
    pub(super) fn new(config: &Config) -> Self {
        Self { opcodes: config.integrity.clone(), signer: Signer::default() }
    }
}

impl Role {
    /// The side that a client or server plays.
    pub(super) fn side(&self) -> Option<Side> {
        match self {
            Self::Client(..) => Some(Side::Client),
            Self::Server(_) => Some(Side::Server),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }

    /// The settings of a client or server.
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

    /// Sets the seed of the checksums (`iv`), for clients and relays. From patch 93 on, the server
    /// sends it in `S_LOGIN_ACCOUNT_INFO`. Without a seed, as in patch 92, the checksum is 0.
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

    /// Sets the opcodes of the client messages that carry counter and checksum, for clients and
    /// relays. They replace [those in the configuration](Config::integrity). A relay knows the
    /// build, and so the opcodes, only after the client's first message:
    /// [`Packets::integrity`](crate::packet::Packets::integrity) lists them.
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

    /// Relays: queues the pieces of a side that can leave now.
    ///
    /// # Errors
    /// The limit that a piece exceeds even in an empty queue.
    pub(super) fn fill(&mut self, from: Side) -> Result<()> {
        match &mut self.role {
            Role::Relay(relay) if !self.closing.is_closed() => {
                relay.fill(from, &mut self.lanes[from.other().index()])
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_paused(&self, from: Side) -> bool {
        match &self.role {
            Role::Relay(relay) => {
                relay.forwarding.is_paused(from, &self.lanes[from.other().index()].out)
            }
            _ => false,
        }
    }

    pub(super) fn kept_bytes(&self, from: Side) -> usize {
        match &self.role {
            Role::Relay(relay) => {
                relay.forwarding.kept_bytes(from, &self.lanes[from.other().index()].out)
            }
            _ => 0,
        }
    }

    pub(super) fn close_for(&mut self, reason: CloseReason) {
        self.closing.close(reason);
        self.timers.stop_all();
    }

    /// Restarts the idle timer: a whole message arrived, or the key exchange is complete.
    pub(super) fn note_activity(&mut self) {
        self.timers.stop(Timer::Message);
        if let Role::Server(config) = &self.role
            && let Some(idle_time) = config.idle_time
        {
            self.timers.start(Timer::Idle, idle_time);
        }
    }

    /// Starts the timer of a message that has begun to arrive, or stops it.
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

    /// Queues a whole message, with its header. A client fills in counter and checksum where the
    /// message carries them; see [`Config::integrity`].
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

impl Forward for Sender {
    /// Decides about the last piece. A message may be dropped or replaced; the hello and the keys
    /// are always forwarded unchanged. The relay fills in counter and checksum, so they need not
    /// be right.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        relaying(&mut self.role)?.decide(decision)
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        relaying(&mut self.role)?.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        relaying(&mut self.role)?.release(held, decision)
    }
}

impl Inject for Sender {
    /// Queues a message for a side, and fills in its counter and checksum. Also fails while a piece
    /// waits for room in the queue to that side, and if that stream is forwarded unread.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let side = to.other();
        let relay = relaying(&mut self.role)?;
        relay.check_injected(side, message)?;
        if !self.is_established || relay.keeps_setup() {
            return Err(SendError::NotEstablished);
        }
        // Counters must leave in the order in which they are assigned.
        let lane = &mut self.lanes[to.index()];
        relay.fill(side, lane).map_err(SendError::QueueFull)?;
        relay.inject(side, message, lane)
    }
}

fn relaying(role: &mut Role) -> Result<&mut Relaying, SendError> {
    match role {
        Role::Relay(relay) => Ok(relay),
        _ => Err(SendError::Role("a relay")),
    }
}
