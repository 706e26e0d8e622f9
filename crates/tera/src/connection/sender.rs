//! The half of a connection that sends.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    self, Bounds, CloseReason, Decision, HalfSender, Inject, Lane, Leaving, SendError, SendHalf,
    Timer, Unread,
};

use super::config::{Config, check_signed, signs};
use super::event::Unit;
use super::relay::Relaying;
use crate::crypt::exchange::Variant;
use crate::crypt::pike::Pike;
use crate::frame::Header;
use crate::integrity::Signer;

/// The half of a [`Connection`](super::Connection) that sends. It owns the role, the ciphers, the
/// queues and the clock, so it can answer while an event borrows the other half.
#[derive(Debug)]
pub struct Sender {
    pub(super) half: SendHalf<Role>,
    pub(super) is_established: bool,
}

/// The role of a connection.
#[derive(Debug)]
pub enum Role {
    Client(Arc<Config>, Box<Signing>),
    Server(Arc<Config>),
    /// The variant, if the caller knows it.
    Observer(Option<Variant>),
    Relay(Box<Relaying>),
}

/// A client's counters and checksums.
#[derive(Debug)]
pub struct Signing {
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
    /// The settings of a client or server.
    pub(super) fn config(&self) -> Option<&Config> {
        match self {
            Self::Client(config, _) | Self::Server(config) => Some(config),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }
}

impl Sender {
    pub(super) fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        let half = SendHalf::new(role, [(); 2].map(|()| Lane::new(bounds)), now);
        Self { half, is_established: false }
    }

    /// The sender of an observer's copy.
    pub(super) fn observing(&self) -> Option<Self> {
        let Role::Observer(variant) = self.half.role else { return None };
        let lanes = [(); 2].map(|()| Lane::new(Bounds::default()));
        let half = self.half.observing(Role::Observer(variant), lanes);
        Some(Self { half, is_established: self.is_established })
    }

    /// Sets the seed of the checksums (`iv`), for clients and relays. From patch 93 on, the server
    /// sends it in `S_LOGIN_ACCOUNT_INFO`. Without a seed, as in patch 92, the checksum is 0.
    ///
    /// Unverified: the checksum itself; see [`integrity`](crate::integrity).
    ///
    /// # Errors
    /// [`SendError::Role`] for a server or an observer.
    pub fn set_integrity_seed(&mut self, iv: u32) -> Result<(), SendError> {
        match &mut self.half.role {
            Role::Client(_, signing) => signing.signer.iv = Some(iv),
            Role::Relay(relay) => relay.set_seed(iv),
            _ => return Err(SendError::Role("a client or a relay")),
        }
        Ok(())
    }

    /// Sets the opcodes of the client messages that carry a counter and checksum, for clients and
    /// relays. They replace [those in the configuration](Config::integrity). A relay knows the
    /// build, and so the opcodes, only after the client's first message:
    /// [`Packets::integrity`](crate::packet::Packets::integrity) lists them.
    ///
    /// # Errors
    /// [`SendError::Role`] for a server or an observer.
    pub fn set_integrity(&mut self, opcodes: HashSet<u16>) -> Result<(), SendError> {
        match &mut self.half.role {
            Role::Client(_, signing) => signing.opcodes = opcodes,
            Role::Relay(relay) => relay.set_integrity(opcodes),
            _ => return Err(SendError::Role("a client or a relay")),
        }
        Ok(())
    }

    /// Sets the opcodes of the keep-alives of each side, by [`Side::index`]. In a relay, these
    /// messages overtake held pieces, so that the ends stay connected. A relay knows the build, and
    /// so the opcodes, only after the client's first message.
    ///
    /// # Errors
    /// [`SendError::Role`] for roles other than a relay.
    pub fn set_keep_alives(&mut self, opcodes: [Option<u16>; 2]) -> Result<(), SendError> {
        match &mut self.half.role {
            Role::Relay(relay) => relay.set_keep_alives(opcodes),
            _ => return Err(SendError::Role("a relay")),
        }
        Ok(())
    }

    /// Restarts the idle timer: a whole message arrived, or the key exchange is complete.
    pub(super) fn note_activity(&mut self) {
        self.half.timers.stop(Timer::Message);
        if let Role::Server(config) = &self.half.role
            && let Some(idle_time) = config.idle_time
        {
            self.half.timers.start(Timer::Idle, idle_time);
        }
    }
}

impl connection::Role for Role {
    type Lane = Lane<Box<Pike>>;
    type Piece = Unread<Unit>;

    fn side(&self) -> Option<Side> {
        match self {
            Self::Client(..) => Some(Side::Client),
            Self::Server(_) => Some(Side::Server),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }

    fn message_time(&self) -> Option<Duration> {
        self.config().map(|config| config.message_time)
    }

    fn leave(
        &mut self,
        from: Side,
        lane: &mut Self::Lane,
        leaving: Leaving<Unread<Unit>>,
    ) -> Result<(), CloseReason> {
        if let Self::Relay(relay) = self {
            relay.leave(from, lane, leaving);
        }
        Ok(())
    }

    fn check(
        &self,
        _: &[Self::Lane; 2],
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
    type Message<'m> = [u8];

    fn half(&self) -> &SendHalf<Role> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut SendHalf<Role> {
        &mut self.half
    }

    /// Queues a whole message, with its header. A client fills in the counter and checksum of
    /// messages that carry them; see [`Config::integrity`].
    fn queue(&mut self, message: &[u8]) -> Result<(), SendError> {
        let to = match &self.half.role {
            Role::Client(..) => Side::Server,
            Role::Server(_) => Side::Client,
            Role::Observer(_) | Role::Relay(_) => {
                return Err(SendError::Role("a client or a server"));
            }
        };
        self.half.closing.check_open()?;
        Header::whole(message).map_err(SendError::Encode)?;
        let SendHalf { role, lanes, .. } = &mut self.half;
        let lane = &mut lanes[to.index()];
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        let mut message = message.to_vec();
        if let Role::Client(_, signing) = role
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
}

impl Inject for Sender {
    /// Queues a message for a side and fills in its counter and checksum. Also fails while a piece
    /// waits for room in the queue to that side, and if that stream is forwarded unread.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        let side = to.other();
        let forwarding = self.half.open_relay()?;
        // The message must not overtake the hello or a key.
        let in_setup = forwarding.keeps(|piece| !matches!(piece.unit, Unit::Message { .. }));
        let readable = forwarding.check_readable(side);
        if let Role::Relay(relay) = &self.half.role {
            relay.check_injected(side, message)?;
        }
        if !self.is_established || in_setup {
            return Err(SendError::NotEstablished);
        }
        // Counters must leave in the order in which they are assigned.
        self.half.fill(side).map_err(SendError::QueueFull)?;
        readable?;
        let SendHalf { role: Role::Relay(relay), lanes, .. } = &mut self.half else {
            return Ok(());
        };
        relay.inject(side, message, &mut lanes[to.index()])
    }
}
