//! The half that sends.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    self, CloseReason, Closing, Decision, Forward, HoldId, SendError, Timers,
};

use super::endpoint::Endpoint;
use super::event::PacketNumber;
use super::relay::Relaying;
use crate::frame::{RpcMessage, SimTime};

/// The half of a [`Connection`](super::Connection) that sends. It can answer while an event borrows
/// the other half.
#[derive(Debug)]
pub struct Sender {
    pub(super) role: Role,
    pub(super) timers: Timers,
    pub(super) closing: Closing,
}

/// The role of a connection.
#[derive(Debug)]
pub(super) enum Role {
    /// A client or a server.
    Endpoint(Box<Endpoint>),
    Observer,
    Relay(Box<Relaying>),
}

impl Sender {
    pub(super) fn new(role: Role, now: Duration) -> Self {
        Self { role, timers: Timers::new(now), closing: Closing::default() }
    }

    /// Sends an object section (clients and servers). `section` is the bytes after the id,
    /// including the terminator; `sim_time` is sent with it. Returns the number of its packet,
    /// which carries nothing else. Delivery is not guaranteed:
    /// [`News::Delivered`](super::News::Delivered) or [`News::Lost`](super::News::Lost) reports
    /// the outcome later.
    ///
    /// # Errors
    /// [`SendError::Encode`], if it does not fit into a packet; [`SendError::QueueFull`], if too
    /// much is queued or unacknowledged: retry after the next delivery or loss. Also
    /// [`SendError::NotEstablished`], [`SendError::Role`] and [`SendError::Closed`].
    pub fn send_objects(
        &mut self,
        section: &[u8],
        sim_time: Option<SimTime>,
    ) -> Result<PacketNumber, SendError> {
        self.closing.check_open()?;
        self.endpoint()?.send_objects(section, sim_time)
    }

    /// Asks the client to reset the sequence, as when it changes worlds (servers). Unacknowledged
    /// object packets count as lost. Unacknowledged RPC messages are discarded, and their numbers
    /// restart at 0. Later messages wait until the client has answered:
    /// [`News::Reset`](super::News::Reset).
    ///
    /// Packet numbers do not restart. Unverified: that RPC message numbers do.
    ///
    /// # Errors
    /// [`SendError::Role`], [`SendError::NotEstablished`] and [`SendError::Closed`].
    pub fn reset(&mut self) -> Result<(), SendError> {
        self.closing.check_open()?;
        self.endpoint()?.reset()
    }

    /// How many bytes of RPC messages are not acknowledged.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> usize {
        match &self.role {
            Role::Endpoint(endpoint) => endpoint.unacknowledged_bytes(),
            Role::Observer | Role::Relay(_) => 0,
        }
    }

    /// The side whose datagrams a client or server reads.
    pub(super) fn peer(&self) -> Option<Side> {
        match &self.role {
            Role::Endpoint(endpoint) => Some(endpoint.side().other()),
            Role::Observer | Role::Relay(_) => None,
        }
    }

    fn endpoint(&mut self) -> Result<&mut Endpoint, SendError> {
        match &mut self.role {
            Role::Endpoint(endpoint) => Ok(endpoint),
            Role::Observer | Role::Relay(_) => Err(NO_ENDPOINT),
        }
    }

    fn relay(&mut self) -> Result<&mut Relaying, SendError> {
        match &mut self.role {
            Role::Relay(relay) => Ok(relay),
            Role::Endpoint(_) | Role::Observer => Err(SendError::Role("a relay")),
        }
    }
}

const NO_ENDPOINT: SendError = SendError::Role("a client or a server");

impl connection::Sender for Sender {
    type Message<'m> = RpcMessage<'m>;

    /// Queues an RPC message. It arrives exactly once, after those sent before it.
    fn send(&mut self, message: &RpcMessage<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Role::Endpoint(endpoint) = &mut self.role else { return Err(NO_ENDPOINT) };
        endpoint.send_rpc(message, &self.timers)
    }

    fn close(&mut self) {
        self.closing.close(CloseReason::Local);
    }
}

impl Forward for Sender {
    /// Decides about the last datagram. A replacement is a packet with the sequence word of the
    /// original; [`Packet::encode`](crate::frame::Packet::encode) computes its length and CRC.
    /// Plain packets are always forwarded unchanged.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        self.relay()?.decide(decision)
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        self.relay()?.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        self.relay()?.release(held, decision)
    }
}
