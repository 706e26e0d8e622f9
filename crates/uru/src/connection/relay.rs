//! The relay role: reads both sides and forwards what each sends to the other.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    CloseReason, Decision, Event, Forward, HoldId, Inject, SendError, Timer,
};
use worldwire_core::{Error, Reader, Result, Side};

use super::Connection;
use super::config::RelayConfig;
use super::event::{Unit, Unread};
use super::ping::is_ping;
use super::relay_state::{RelayRandom, RelayState};
use super::sender::{Role, Sender};
use super::stream::Phase;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::frame::{Message, Service};

impl Connection {
    /// Relays between a client and a server. [`Sender`] implements [`Forward`] and [`Inject`].
    ///
    /// [`RelayKeys`](super::RelayKeys) offers two ways to relay encrypted connections. With shared
    /// keys, the relay has the private key of the service and reads the exchange like an observer,
    /// so unchanged messages are the same bytes on both sides. With separate keys, the relay
    /// answers the client as a server would and contacts the server as a client would. Plain
    /// connections and the file service need no keys and pass as the same bytes.
    ///
    /// Pings and their answers overtake [held](Forward::hold) pieces, so that both ends stay
    /// connected.
    ///
    /// A stream of another protocol passes unread, as does a stream after a fault. The relay sets
    /// no deadlines then, nor after setup.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, random: RelayRandom, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let role = Role::Relay(Box::new(RelayState::new(config, random)));
        let mut connection = Self::new(role, bounds, [Phase::Connect, Phase::Setup], now);
        connection.sender.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// Relays: handles a setup packet.
    pub(super) fn relay_set_up(
        &mut self,
        service: Service,
        side: Side,
        packet: SetupPacket<'static>,
    ) -> Result<()> {
        let Role::Relay(relay) = &mut self.sender.role else { return Ok(()) };
        match (side, packet) {
            (Side::Client, SetupPacket::Connect(y)) => {
                self.streams[side.index()].set_phase(Phase::Waiting);
                if y.is_empty() {
                    return Ok(());
                }
                let begun = relay.begin(service, y.into_owned());
                if begun.is_err() {
                    self.sender.close_for(CloseReason::Fault);
                }
                begun
            }
            (Side::Server, SetupPacket::Encrypt(seed)) => {
                let keys = match relay.agree(service, seed) {
                    Ok(keys) => keys,
                    Err(error) => {
                        if relay.is_committed() {
                            self.sender.close_for(CloseReason::Fault);
                        }
                        return Err(error);
                    }
                };
                self.establish(service, keys.as_ref().map(|[client, server]| [client, server]));
                Ok(())
            }
            (_, SetupPacket::Error(error)) => {
                Err(Error::malformed("a seed", format!("the error {error}")))
            }
            _ => Err(Error::malformed("the setup packet of this side", "that of the other")),
        }
    }

    /// Relays: records that a piece was reported and can be decided about.
    #[inline]
    pub(super) fn report(&mut self, piece: &Unread) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let is_urgent = match piece.unit {
            Unit::Message(service) => {
                let incoming = &self.streams[piece.side.index()].incoming;
                is_ping(service, incoming.bytes(piece.located.range.clone()))
            }
            Unit::Connect | Unit::Setup => false,
        };
        relay.forwarding.report(piece.side, piece.clone(), is_urgent);
    }

    /// Carries out the decision about the last piece and fills the queues. Other roles also call
    /// this for every input and event, so it must cost them nothing.
    #[inline]
    pub(super) fn settle(&mut self) {
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let RelayState { made, forwarding, .. } = &mut **relay;
        let streams = &self.streams;
        let settled = forwarding.settle(|side, Unread { located, .. }| {
            let original = || streams[side.index()].incoming.bytes(located.range.clone()).to_vec();
            made.take().unwrap_or_else(original)
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues everything from a side that may leave now.
    fn fill(&mut self, from: Side) {
        if let Err(error) = self.sender.fill(from) {
            self.refuse(from, error);
        }
    }

    /// Closes the connection because a stream exceeds the relay's limits.
    fn refuse(&mut self, side: Side, error: Error) {
        let error = error.at(self.streams[side.index()].incoming.offset());
        self.events.push_back(Event::Fault { side, error });
        self.sender.close_for(CloseReason::Fault);
    }

    /// Closes the connection and returns true if too much of a paused stream has arrived.
    pub(super) fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let unread = self.streams[side.index()].incoming.unread().len();
        let checked = relay.forwarding.check_unread(unread);
        checked.map_err(|error| self.refuse(side, error)).is_err()
    }

    /// Forwards bytes that cannot be read; false if there are none.
    pub(super) fn forward_unread(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        let bytes = self.streams[side.index()].take(relay.forwarding.max_raw_bytes());
        if bytes.is_empty() {
            return false;
        }
        relay.forwarding.pass(side, None, bytes);
        self.fill(side);
        true
    }
}

impl Sender {
    /// Queues everything from a side that may leave now.
    ///
    /// # Errors
    /// The limit that a piece exceeds even in an empty queue.
    fn fill(&mut self, from: Side) -> Result<()> {
        let Role::Relay(relay) = &mut self.role else { return Ok(()) };
        if self.closing.is_closed() {
            return Ok(());
        }
        let lane = &mut self.lanes[from.other().index()];
        relay.forwarding.fill(from, lane, |lane, leaving| {
            let bytes = match leaving.decision {
                Decision::AsIs => leaving.bytes,
                Decision::Instead(bytes) => bytes.into_owned(),
                Decision::Drop => return,
            };
            match leaving.piece {
                // Setup packets are not encrypted.
                Some(Unread { encrypted: false, .. }) => lane.out.forward(bytes),
                _ => lane.forward(bytes),
            }
        })
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
}

impl Forward for Sender {
    /// Decides about the piece received last. A message may be dropped or replaced by another one
    /// of its service and side. A connect packet may be replaced by another one of its service.
    /// Setup packets are forwarded unchanged, or replaced by the relay's own.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let (service, relay) = (self.service, relay_state(&mut self.role)?);
        relay.forwarding.decide(decision, |piece, decision| check(piece, service, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        relay_state(&mut self.role)?.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let (service, relay) = (self.service, relay_state(&mut self.role)?);
        relay.forwarding.release(held, decision, |piece, decision| check(piece, service, decision))
    }
}

impl Inject for Sender {
    /// Queues a message for a side. It is also refused while a piece waits for room in the queue to
    /// that side, and if the stream is forwarded unread.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let (service, relay) = (self.service, relay_state(&mut self.role)?);
        // It must not overtake a setup packet that has not been forwarded yet.
        let is_setup = |piece: &Unread| !matches!(piece.unit, Unit::Message(_));
        let forwarding = &relay.forwarding;
        let in_setup = forwarding.reported().is_some_and(|(_, piece)| is_setup(piece))
            || forwarding.keeps(is_setup);
        let (Some(service), true, false) = (service, self.is_established, in_setup) else {
            return Err(SendError::NotEstablished);
        };
        check_message(service, to.other(), message)?;
        relay.forwarding.check_readable(to.other())?;
        self.fill(to.other()).map_err(SendError::QueueFull)?;
        let lane = &mut self.lanes[to.index()];
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        lane.push(message.to_vec());
        Ok(())
    }
}

fn relay_state(role: &mut Role) -> Result<&mut RelayState, SendError> {
    match role {
        Role::Relay(relay) => Ok(relay),
        _ => Err(SendError::Role("a relay")),
    }
}

/// Checks that a piece may be dropped or replaced.
fn check(
    piece: &Unread,
    service: Option<Service>,
    decision: &Decision<'_>,
) -> Result<(), SendError> {
    match (piece.unit, decision) {
        (Unit::Message(service), Decision::Instead(bytes)) => {
            check_message(service, piece.side, bytes)
        }
        (Unit::Connect, Decision::Instead(bytes)) => {
            let mut reader = Reader::new(bytes);
            let packet = ConnectPacket::decode_fields(&mut reader)
                .and_then(|packet| reader.end().map(|()| packet));
            match packet {
                Ok(packet) if packet.service() == service => Ok(()),
                Ok(packet) => {
                    let wanted = "a connect packet of the same service";
                    let error = Error::value(wanted, packet.connection_type().to_string());
                    Err(SendError::Encode(error))
                }
                Err(error) => {
                    Err(SendError::Encode(Error::value("one connect packet", error.to_string())))
                }
            }
        }
        (Unit::Connect, Decision::Drop) => {
            Err(SendError::Unchangeable("a connect packet of this service"))
        }
        (Unit::Setup, _) => Err(SendError::Unchangeable("a setup packet")),
        (Unit::Message(_), _) | (_, Decision::AsIs) => Ok(()),
    }
}

/// Checks that the bytes are exactly one message.
fn check_message(service: Service, side: Side, bytes: &[u8]) -> Result<(), SendError> {
    let mut reader = Reader::new(bytes);
    let outcome = Message::decode(service, side, &mut reader).and_then(|_| reader.end());
    outcome.map_err(|error| {
        let wanted = format!("one whole message of the {side} on {}", service.name());
        SendError::Encode(Error::value(wanted, error.to_string()))
    })
}
