//! The sending half of a connection.

use std::time::Duration;

use worldwire_core::connection::{
    self, Bounds, CloseReason, Decision, HalfSender, Inject, Leaving, Role as _, SendError,
    SendHalf,
};
use worldwire_core::{Float, Side};

use super::endpoint::Endpoint;
use super::event::PacketNumber;
use super::keyring::Keyring;
use super::relay::{Passage, Relay, Way};
use crate::frame::RpcMessage;

/// The half of a [`Connection`](super::Connection) that sends. It can send replies while an event
/// borrows the other half.
///
/// # Additions of a relay
///
/// A relay puts additions into packets from the apparent sender, even into bare acknowledgements:
///
/// * An addition goes into the next packet with room for it, up to 1,300 bytes after the sequence
///   word. Packets with objects carry it only once it has waited for a second. Added objects
///   precede the packet's own objects, in the same section. Added RPC messages precede all objects,
///   because some receivers cannot find the objects' end. Unverified: that the game's own client
///   accepts this order; its servers sent objects first.
/// * The relay repeats that packet, unchanged, until the receiver acknowledges its number.
///   Receivers ignore packet numbers that they have already seen, so an addition arrives once. If
///   the receiver does not acknowledge the packet after four repeats, its added RPC messages also
///   go into another packet, one without RPC messages from the sender; their numbers prevent the
///   receiver from handling them twice. Once the sender has sent 1,024 more packets, the objects
///   also go into another packet and could then arrive twice.
/// * If no packet can carry an addition for 300 ms, the relay repeats the last packet in the other
///   direction, which makes a client or server acknowledge it again. While the sender's packets are
///   held, additions overtake them in its bare acknowledgements. A client or server that repeats a
///   held message sends no bare ones, so additions then wait until the message is released.
/// * When an RPC message is put into a packet, it takes the number after the last one that has left
///   the relay. The relay raises the numbers of the sender's later messages and splits a list that
///   is no longer consecutive; the packet can then exceed 1,300 bytes. All other packets keep their
///   bytes.
/// * Additions move the sender's messages further ahead of a missing one. So at most 128 added RPC
///   messages are in flight; others wait. Receivers must be able to keep 128 more messages than
///   senders send ahead, as this crate's receivers do.
/// * RPC lists after objects are found by their numbers, because a relay cannot measure objects.
///   Unverified: that objects never look like such lists.
/// * When the sequence is reset or another session begins, unacknowledged additions are discarded
///   ([`News::Discarded`](super::News::Discarded)), and numbers start at 0 again. During a reset,
///   and before the key is known, additions are refused. RPC messages are also refused if the relay
///   has seen neither the hello nor an RPC message of the sender, because their number is then
///   unknown.
/// * The [`Bounds`] limit the unacknowledged additions to each side.
#[derive(Debug)]
pub struct Sender {
    pub(super) half: SendHalf<Role>,
}

/// The role of a connection.
#[derive(Debug)]
pub enum Role {
    /// A client or a server.
    Endpoint(Box<Endpoint>),
    Observer(Box<Keyring>),
    Relay(Box<Relay>),
}

impl Role {
    /// The keys of an observer or relay.
    pub(super) fn keys(&self) -> Option<&Keyring> {
        match self {
            Self::Endpoint(_) => None,
            Self::Observer(keys) => Some(keys),
            Self::Relay(relay) => Some(&relay.keys),
        }
    }

    pub(super) fn keys_mut(&mut self) -> Option<&mut Keyring> {
        match self {
            Self::Endpoint(_) => None,
            Self::Observer(keys) => Some(keys),
            Self::Relay(relay) => Some(&mut relay.keys),
        }
    }
}

impl connection::Role for Role {
    type Lane = Way;
    type Piece = Passage;

    fn side(&self) -> Option<Side> {
        match self {
            Self::Endpoint(endpoint) => Some(endpoint.side()),
            Self::Observer(_) | Self::Relay(_) => None,
        }
    }

    fn leave(
        &mut self,
        from: Side,
        way: &mut Way,
        leaving: Leaving<Passage>,
    ) -> Result<(), CloseReason> {
        if let Self::Relay(relay) = self {
            relay.forward(from, way, leaving);
        }
        Ok(())
    }

    fn check(
        &self,
        [way, _]: &[Way; 2],
        piece: &Passage,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        way.check(piece, decision)
    }
}

impl HalfSender for Sender {
    type Role = Role;
    type Message<'m> = RpcMessage<'m>;

    fn half(&self) -> &SendHalf<Role> {
        &self.half
    }

    fn half_mut(&mut self) -> &mut SendHalf<Role> {
        &mut self.half
    }

    /// Queues an RPC message. It arrives exactly once, after those sent before it.
    fn queue(&mut self, message: &RpcMessage<'_>) -> Result<(), SendError> {
        self.half.closing.check_open()?;
        let SendHalf { role: Role::Endpoint(endpoint), timers, .. } = &mut self.half else {
            return Err(NO_ENDPOINT);
        };
        endpoint.send_rpc(message, timers)
    }
}

impl Inject for Sender {
    /// Adds the contents of a packet: RPC messages, and optionally an object section at the end.
    /// The packet's header and the numbers of its lists are ignored.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.half.open_relay()?;
        let SendHalf { role: Role::Relay(relay), lanes, .. } = &mut self.half else {
            return Err(SendError::Role("a relay"));
        };
        relay.check_open()?;
        lanes[to.index()].additions.add(message)
    }
}

impl Sender {
    pub(super) fn new(role: Role, bounds: Bounds, now: Duration) -> Self {
        Self { half: SendHalf::new(role, [(); 2].map(|()| Way::new(bounds)), now) }
    }

    /// The sender of an observer's copy.
    pub(super) fn observing(&self) -> Option<Self> {
        let Role::Observer(keys) = &self.half.role else { return None };
        let ways = [(); 2].map(|()| Way::new(Bounds::default()));
        Some(Self { half: self.half.observing(Role::Observer(keys.clone()), ways) })
    }

    /// Sends an object section (clients and servers), from its ID 3 to its end marker `00 00`, as
    /// [`Replicator::poll`](crate::replicator::Replicator::poll) composes it. `sim_time` is sent
    /// with it. Returns the number of its packet, which carries nothing else. Delivery is not
    /// guaranteed: [`News::Delivered`](super::News::Delivered) or
    /// [`News::Lost`](super::News::Lost) reports the outcome later.
    ///
    /// # Errors
    /// [`SendError::Encode`] if this is not a section or does not fit into a packet.
    /// [`SendError::QueueFull`] if too much is queued or unacknowledged; retry after the next
    /// delivery or loss. [`SendError::NotEstablished`], on a server also until the client has
    /// acknowledged something. [`SendError::Role`] and [`SendError::Closed`].
    pub fn send_objects(
        &mut self,
        section: &[u8],
        sim_time: Option<Float>,
    ) -> Result<PacketNumber, SendError> {
        self.half.closing.check_open()?;
        self.endpoint()?.send_objects(section, sim_time)
    }

    /// Sends the simulation time with the next packet that begins with RPC messages (clients and
    /// servers). Servers send it with [`LoadWorld`](crate::rpc::LoadWorld).
    ///
    /// # Errors
    /// [`SendError::Role`].
    pub fn set_sim_time(&mut self, time: Float) -> Result<(), SendError> {
        self.endpoint()?.set_sim_time(time);
        Ok(())
    }

    /// Asks the client to reset the sequence, for example when it changes worlds (servers).
    /// Unacknowledged object packets count as lost. Unacknowledged RPC messages are discarded, and
    /// their numbers restart at 0. Later messages wait until the client has answered:
    /// [`News::Reset`](super::News::Reset).
    ///
    /// Packet numbers do not restart. Unverified: that RPC message numbers do.
    ///
    /// # Errors
    /// [`SendError::Role`], [`SendError::NotEstablished`] and [`SendError::Closed`].
    pub fn reset(&mut self) -> Result<(), SendError> {
        self.half.closing.check_open()?;
        self.endpoint()?.reset()
    }

    /// Whether the other side has acknowledged a packet, which proves that it receives packets sent
    /// to its address (clients and servers).
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        match &self.half.role {
            Role::Endpoint(endpoint) => endpoint.is_confirmed(),
            Role::Observer(_) | Role::Relay(_) => false,
        }
    }

    /// The number of unacknowledged bytes of RPC messages.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        match &self.half.role {
            Role::Endpoint(endpoint) => endpoint.unacknowledged_bytes(),
            Role::Observer(_) | Role::Relay(_) => 0,
        }
    }

    /// The side whose datagrams a client or server reads.
    pub(super) fn peer(&self) -> Option<Side> {
        self.half.role.side().map(Side::other)
    }

    fn endpoint(&mut self) -> Result<&mut Endpoint, SendError> {
        match &mut self.half.role {
            Role::Endpoint(endpoint) => Ok(endpoint),
            Role::Observer(_) | Role::Relay(_) => Err(NO_ENDPOINT),
        }
    }
}

const NO_ENDPOINT: SendError = SendError::Role("a client or a server");
