//! The role that stands between a client and a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Decision, Event, Forward, Forwarding, HoldId, Inject, Leaving, SendError,
    Timer,
};
use worldwire_core::{Error, Result, Side};

use super::config::{check_signed, signs};
use super::sender::Role;
use super::{Connection, Sender, Unit, Unread};
use crate::crypt::exchange::Variant;
use crate::frame::Header;
use crate::integrity::Resigner;

/// How a relay behaves.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// By how much keys are turned. Without a variant the client's first message tells, as it does
    /// an observer. Default: none.
    pub variant: Option<Variant>,
    /// The opcodes of the client messages that carry counter and checksum; see
    /// [`integrity`](crate::integrity). Whoever learns them later says so with
    /// [`set_integrity`](Sender::set_integrity). Default: none.
    pub integrity: HashSet<u16>,
    /// How much may be queued for each side.
    pub bounds: Bounds,
    /// How long the whole key exchange may take. Default 20 s: longer than the ends wait.
    pub setup_time: Duration,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            variant: None,
            integrity: HashSet::new(),
            bounds: Bounds::default(),
            setup_time: Duration::from_secs(20),
        }
    }
}

/// What a relay knows beside its streams.
#[derive(Debug)]
pub(super) struct Relaying {
    config: Arc<RelayConfig>,
    signatures: Signatures,
    pub(super) forwarding: Forwarding<Unread>,
}

/// The counters and checksums of the client's messages.
#[derive(Debug)]
struct Signatures {
    /// The messages of the client that carry counter and checksum.
    opcodes: HashSet<u16>,
    resigner: Resigner,
}

impl Relaying {
    pub(super) fn variant(&self) -> Option<Variant> {
        self.config.variant
    }

    /// Sets the seed of all later checksums.
    pub(super) fn set_seed(&mut self, iv: u32) {
        self.signatures.resigner.set_seed(iv);
    }

    pub(super) fn set_integrity(&mut self, opcodes: HashSet<u16>) {
        self.signatures.opcodes = opcodes;
    }
}

impl Signatures {
    /// Whether a message of a side carries counter and checksum.
    fn signs(&self, side: Side, message: &[u8]) -> bool {
        side == Side::Client && signs(&self.opcodes, message)
    }

    /// What is forwarded of a message, with counter and checksum as the server expects them.
    fn outcome(
        &mut self,
        side: Side,
        original: Vec<u8>,
        decision: Decision<'_>,
    ) -> Option<Vec<u8>> {
        let was_signed = self.signs(side, &original);
        match decision {
            Decision::Instead(bytes) if *bytes != original => {
                let mut bytes = bytes.into_owned();
                let is_signed = self.signs(side, &bytes);
                if was_signed && is_signed && opcode(&original) == opcode(&bytes) {
                    self.resigner.change(&original, &mut bytes);
                    return Some(bytes);
                }
                if was_signed {
                    self.resigner.drop(&original);
                }
                if is_signed {
                    self.resigner.add(&mut bytes);
                }
                Some(bytes)
            }
            Decision::AsIs | Decision::Instead(_) => {
                let mut bytes = original;
                if was_signed {
                    self.resigner.pass(&mut bytes);
                }
                Some(bytes)
            }
            Decision::Drop => {
                if was_signed {
                    self.resigner.drop(&original);
                }
                None
            }
        }
    }
}

/// Checks that a piece may be dropped or changed into these bytes.
fn check_decision(
    signatures: &Signatures,
    piece: &Unread,
    decision: &Decision<'_>,
) -> Result<(), SendError> {
    match (piece.unit, decision) {
        (Unit::Message { .. }, Decision::Instead(bytes)) => check(signatures, piece.side, bytes),
        (Unit::Message { .. }, _) => Ok(()),
        (Unit::Hello, _) => Err(SendError::Unchangeable("hello")),
        (Unit::Key { .. }, _) => Err(SendError::Unchangeable("a key")),
    }
}

/// Checks that bytes are exactly one message of a side.
fn check(signatures: &Signatures, side: Side, message: &[u8]) -> Result<(), SendError> {
    let refused = |error: Error| Error::value("one whole message", error.to_string());
    Header::whole(message).map_err(refused).map_err(SendError::Encode)?;
    if signatures.signs(side, message) {
        check_signed(message).map_err(SendError::Encode)?;
    }
    Ok(())
}

fn opcode(message: &[u8]) -> Option<u16> {
    let [_, _, low, high] = *message.first_chunk()?;
    Some(u16::from_le_bytes([low, high]))
}

impl Connection {
    /// Stands between a client and a server. [`Sender`] is its [`Forward`] and
    /// [`Inject`].
    ///
    /// The keys pass through: the relay reads the exchange like an observer, decrypts each stream
    /// with one cipher state and encrypts it with another. What nobody changed is the same bytes
    /// on both sides.
    ///
    /// Some client messages carry a [counter and a checksum](crate::integrity). Behind a message
    /// that was dropped, added or changed, the relay counts and signs those of the same opcode
    /// again, as far as they differ; all others pass untouched. It has to be told which messages
    /// they are ([`RelayConfig::integrity`], [`set_integrity`](Sender::set_integrity)) and the seed
    /// ([`set_integrity_seed`](Sender::set_integrity_seed)).
    ///
    /// TERA has no keep-alives of its own, so everything waits behind a
    /// [held](Forward::hold) piece, and counters and checksums follow the order in which messages
    /// leave.
    ///
    /// A stream that is not TERA's passes unread, as does one behind a fault; the relay sets no
    /// deadlines then, nor after the key exchange.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let signatures =
            Signatures { opcodes: config.integrity.clone(), resigner: Resigner::default() };
        let forwarding = Forwarding::new(bounds);
        let relaying = Relaying { config, signatures, forwarding };
        let mut connection = Self::new(Role::Relay(Box::new(relaying)), bounds, now);
        connection.sender.timers.start(Timer::Setup, setup_time);
        connection
    }

    /// Carries out the decision about the last piece, and fills the queues up.
    #[inline]
    pub(super) fn settle(&mut self) {
        // Other roles come here with every input and event: it has to cost nothing.
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let streams = &self.streams;
        let settled = relay.forwarding.settle(|side, Unread { located, .. }| {
            streams[side.index()].incoming.bytes(located.range.clone()).to_vec()
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues what a side sent and may leave now.
    fn fill(&mut self, from: Side) {
        if let Err(error) = self.sender.fill(from) {
            self.refuse(from, error);
        }
    }

    /// A stream exceeds what the relay is prepared to keep.
    fn refuse(&mut self, side: Side, error: Error) {
        let error = error.at(self.streams[side.index()].incoming.offset());
        self.events.push_back(Event::Fault { side, error });
        self.sender.close_for(CloseReason::Fault);
    }

    /// Checks that not too much of a paused stream has arrived. True when there is.
    pub(super) fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let unread = self.streams[side.index()].incoming.unread().len();
        let checked = relay.forwarding.check_unread(unread);
        checked.map_err(|error| self.refuse(side, error)).is_err()
    }

    /// Forwards what cannot be read; false when there is nothing.
    pub(super) fn pass_on(&mut self, side: Side) -> bool {
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
    /// Queues what a side sent and may leave now.
    ///
    /// # Errors
    /// The limit that a piece exceeds even in an empty queue.
    fn fill(&mut self, from: Side) -> Result<()> {
        let Role::Relay(relay) = &mut self.role else { return Ok(()) };
        if self.closing.is_closed() {
            return Ok(());
        }
        let Relaying { signatures, forwarding, .. } = &mut **relay;
        let lane = &mut self.lanes[from.other().index()];
        forwarding.fill(from, lane, |lane, Leaving { piece, bytes, decision, .. }| match piece {
            Some(Unread { unit: Unit::Message { .. }, .. }) => {
                if let Some(bytes) = signatures.outcome(from, bytes, decision) {
                    lane.forward(bytes);
                }
            }
            // Hello and keys are not encrypted.
            Some(_) => lane.out.forward(bytes),
            None => lane.forward(bytes),
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
    /// Decides about the last piece. A message may be dropped or changed into another one; hello
    /// and keys are forwarded unchanged. Counter and checksum need not be right: the relay fills
    /// them in.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Relaying { signatures, forwarding, .. } = relaying(&mut self.role)?;
        forwarding.decide(decision, |piece, decision| check_decision(signatures, piece, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        relaying(&mut self.role)?.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let Relaying { signatures, forwarding, .. } = relaying(&mut self.role)?;
        forwarding
            .release(held, decision, |piece, decision| check_decision(signatures, piece, decision))
    }
}

impl Inject for Sender {
    /// Queues a message for a side. It is also refused while a piece waits for room in the queue
    /// to that side, and in a stream that is forwarded unread. Counter and checksum are filled in.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let side = to.other();
        let relay = relaying(&mut self.role)?;
        check(&relay.signatures, side, message)?;
        // Held keys come first.
        let is_setup = |piece: &Unread| !matches!(piece.unit, Unit::Message { .. });
        if !self.is_established || relay.forwarding.keeps(is_setup) {
            return Err(SendError::NotEstablished);
        }
        // What was signed first is sent first.
        self.fill(side).map_err(SendError::QueueFull)?;
        let Relaying { signatures, forwarding, .. } = relaying(&mut self.role)?;
        forwarding.check_readable(side)?;
        let lane = &mut self.lanes[to.index()];
        lane.out.check_room(message.len()).map_err(SendError::QueueFull)?;
        let mut message = message.to_vec();
        if signatures.signs(side, &message) {
            signatures.resigner.add(&mut message);
        }
        lane.push(message);
        Ok(())
    }
}

fn relaying(role: &mut Role) -> Result<&mut Relaying, SendError> {
    match role {
        Role::Relay(relay) => Ok(relay),
        _ => Err(SendError::Role("a relay")),
    }
}
