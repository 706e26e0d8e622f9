//! The role that stands between a client and a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Decision, Event, Forward, Forwarding, Relay, Timer,
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
    /// The messages of the client that carry counter and checksum.
    integrity: HashSet<u16>,
    resigner: Resigner,
    pub(super) forwarding: Forwarding<Unread>,
}

impl Relaying {
    pub(super) fn variant(&self) -> Option<Variant> {
        self.config.variant
    }

    /// From here on checksums are made with this seed.
    pub(super) fn set_seed(&mut self, iv: u32) {
        self.resigner.set_seed(iv);
    }

    pub(super) fn set_integrity(&mut self, opcodes: HashSet<u16>) {
        self.integrity = opcodes;
    }

    /// Whether a message of a side carries counter and checksum.
    fn signs(&self, side: Side, message: &[u8]) -> bool {
        side == Side::Client && signs(&self.integrity, message)
    }

    /// What goes on of a message, with counter and checksum as the server expects them.
    fn outcome(&mut self, side: Side, original: &[u8], decision: Decision) -> Option<Vec<u8>> {
        let was_signed = self.signs(side, original);
        match decision {
            Decision::Instead(mut bytes) if bytes != original => {
                let is_signed = self.signs(side, &bytes);
                if was_signed && is_signed && opcode(original) == opcode(&bytes) {
                    self.resigner.change(original, &mut bytes);
                    return Some(bytes);
                }
                if was_signed {
                    self.resigner.drop(original);
                }
                if is_signed {
                    self.resigner.add(&mut bytes);
                }
                Some(bytes)
            }
            Decision::AsIs | Decision::Instead(_) => {
                let mut bytes = original.to_vec();
                if was_signed {
                    self.resigner.pass(&mut bytes);
                }
                Some(bytes)
            }
            Decision::Drop => {
                if was_signed {
                    self.resigner.drop(original);
                }
                None
            }
        }
    }
}

/// Checks that bytes are exactly one message of a side.
fn check(integrity: &HashSet<u16>, side: Side, message: &[u8]) -> Result<()> {
    Header::whole(message).map_err(|error| Error::value("one whole message", error.to_string()))?;
    if side == Side::Client && signs(integrity, message) {
        check_signed(message)?;
    }
    Ok(())
}

fn opcode(message: &[u8]) -> Option<u16> {
    let [_, _, low, high] = *message.first_chunk()?;
    Some(u16::from_le_bytes([low, high]))
}

impl Connection {
    /// Stands between a client and a server. [`Sender`] is its [`Relay`].
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
    /// A piece goes on when there is room for it in the queue to the other side. Until then the
    /// relay reads no more of that stream, so `poll` returns `None`, and goes on after
    /// `poll_transmit`; the other direction does not wait. A driver that reads on although nothing
    /// is written meets the limit "bytes behind a full queue". A piece that has no room even in an
    /// empty queue ends the connection with the limit that it exceeds. Closing drops a piece that
    /// is not queued yet.
    ///
    /// A stream that is not TERA's passes unread, as does one behind a fault; the relay sets no
    /// deadlines then, nor after the key exchange.
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let (bounds, setup_time) = (config.bounds, config.setup_time);
        let relaying = Relaying {
            integrity: config.integrity.clone(),
            config,
            resigner: Resigner::default(),
            forwarding: Forwarding::new(bounds.queued_bytes),
        };
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
            Side::BOTH.into_iter().for_each(|to| self.fill(to));
        }
    }

    /// Carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let Some((Unread { side, unit, located }, decision)) = relay.forwarding.settle() else {
            return;
        };
        let is_encrypted = matches!(unit, Unit::Message { .. });
        let original = self.streams[side.index()].incoming.bytes(located.range);
        let bytes = match is_encrypted {
            true => relay.outcome(side, original, decision),
            false => Some(original.to_vec()),
        };
        if let Some(bytes) = bytes {
            relay.forwarding.hold(side.other(), bytes, is_encrypted);
            self.fill(side.other());
        }
    }

    /// Queues what waits for room, if there is some now.
    fn fill(&mut self, to: Side) {
        if let Err(error) = self.sender.fill(to) {
            self.refuse(to.other(), error);
        }
    }

    /// A stream exceeds what the relay is prepared to keep.
    fn refuse(&mut self, side: Side, error: Error) {
        let error = error.at(self.streams[side.index()].incoming.offset());
        self.events.push_back(Event::Fault { side, error });
        self.sender.close_for(CloseReason::Fault);
    }

    /// Whether the next piece of a side has to wait until the queue behind it has room.
    pub(super) fn is_paused(&self, side: Side) -> bool {
        match &self.sender.role {
            Role::Relay(relay) => relay.forwarding.is_holding(side.other()),
            _ => false,
        }
    }

    /// Checks that not too much of a stream comes in while it has to wait. True when there is.
    pub(super) fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let unread = self.streams[side.index()].incoming.unread().len();
        let checked = relay.forwarding.check_unread(unread);
        checked.map_err(|error| self.refuse(side, error)).is_err()
    }

    /// Forwards what cannot be read; false when there is nothing.
    pub(super) fn pass_on(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        let bytes = self.streams[side.index()].take(relay.forwarding.max_passed());
        if bytes.is_empty() {
            return false;
        }
        relay.forwarding.hold(side.other(), bytes, self.sender.is_established);
        self.fill(side.other());
        true
    }
}

impl Sender {
    /// Queues what waits for room, if there is some now.
    ///
    /// # Errors
    /// The limit that it exceeds even in an empty queue.
    fn fill(&mut self, to: Side) -> Result<()> {
        match &mut self.role {
            Role::Relay(relay) if !self.closing.is_closed() => {
                relay.forwarding.fill(to, &mut self.lanes[to.index()])
            }
            _ => Ok(()),
        }
    }
}

impl Relay for Sender {
    /// Decides about the last piece. A message may be dropped or changed into another one; hello
    /// and keys go on unchanged. Counter and checksum need not be right: the relay fills them in.
    fn forward(&mut self, decision: Forward<'_>) -> Result<()> {
        self.closing.check_open()?;
        let relay = relaying(&mut self.role)?;
        let Relaying { integrity, forwarding, .. } = relay;
        forwarding.decide(decision, |piece| match (piece.unit, decision) {
            (Unit::Message { .. }, Forward::Instead(bytes)) => check(integrity, piece.side, bytes),
            (Unit::Message { .. }, _) => Ok(()),
            _ => Err(Error::value("hello or a key that goes on unchanged", "another decision")),
        })
    }

    /// Queues a message for a side. It is refused as well while a piece waits for room in the
    /// queue to that side, and behind a stream that goes on unread. Counter and checksum are filled
    /// in.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<()> {
        self.closing.check_open()?;
        let side = to.other();
        let relay = relaying(&mut self.role)?;
        check(&relay.integrity, side, message)?;
        if !self.is_established {
            return Err(Error::value("a connection whose setup is complete", "one in setup"));
        }
        // What was signed first goes first.
        self.fill(to)?;
        let relay = relaying(&mut self.role)?;
        let lane = &mut self.lanes[to.index()];
        relay.forwarding.check_room(to, lane, message.len())?;
        let mut message = message.to_vec();
        if relay.signs(side, &message) {
            relay.resigner.add(&mut message);
        }
        lane.push(message);
        Ok(())
    }
}

fn relaying(role: &mut Role) -> Result<&mut Relaying> {
    let found = match role {
        Role::Relay(relay) => return Ok(relay),
        Role::Client(..) => "a client",
        Role::Server(_) => "a server",
        Role::Observer(_) => "an observer",
    };
    Err(Error::value("a relay", found))
}
