//! The relay role: reads both sides and forwards what each sends to the other.

use core::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{CloseReason, Decision, Forward, HoldId, Inject, SendError};
use worldwire_core::{Error, Side};

use super::Connection;
use super::config::RelayConfig;
use super::event::{PieceInfo, Unit};
use super::relay_state::{Passage, RelayState, check_decision};
use super::sender::{Role, Sender};
use super::stream::FrameSpan;
use crate::control::Opcode;

impl Connection {
    /// Relays between a client and a server; see [`Forward`].
    #[must_use]
    pub fn relay(config: Arc<RelayConfig>, now: Duration) -> Self {
        let mut connection = Self::new(Role::Relay(Box::new(RelayState::new(config))), now);
        connection.streams.iter_mut().for_each(|stream| stream.nonces = Some(Vec::new()));
        connection
    }

    /// Relays: carries out the decision about the last piece and fills the queues.
    #[inline]
    pub(super) fn settle(&mut self) {
        if matches!(self.sender.role, Role::Relay(_)) {
            self.settle_piece();
            Side::BOTH.into_iter().for_each(|from| self.fill(from));
        }
    }

    /// Relays: carries out the decision about the last piece.
    pub(super) fn settle_piece(&mut self) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let streams = &self.streams;
        let settled = relay.forwarding.settle(|side, passage| match passage {
            Passage::Piece(piece) => streams[side.index()].bytes(piece.bytes.clone()).to_vec(),
            _ => Vec::new(),
        });
        if let Some(from) = settled {
            self.fill(from);
        }
    }

    /// Queues everything from a side that may leave now.
    fn fill(&mut self, from: Side) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        if self.sender.closing.is_closed() {
            return;
        }
        let filled = relay.fill(from);
        if relay.ways[from.index()].is_broken {
            self.sender.closing.close(CloseReason::Fault);
        }
        if let Err(error) = filled {
            self.refuse(from, error.at(self.streams[from.index()].position()));
        }
    }

    /// Queues an entry that needs no decision.
    fn pass(&mut self, side: Side, passage: Passage, bytes: Vec<u8>) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.forwarding.pass(side, Some(passage), bytes);
            self.fill(side);
        }
    }

    /// Closes the connection and returns true if too much of a paused stream has arrived.
    pub(super) fn is_flooded(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &self.sender.role else { return false };
        let stream = &self.streams[side.index()];
        let checked = relay.forwarding.check_unread(stream.waiting_bytes());
        let at = stream.position();
        checked.map_err(|error| self.refuse(side, error.at(at))).is_err()
    }

    /// Relays: notes input from a side.
    pub(super) fn on_relayed_input(&mut self, side: Side, is_datagram: bool) {
        if let Role::Relay(relay) = &mut self.sender.role {
            relay.is_datagrams |= is_datagram;
            relay.on_nonces(side, &mut self.streams[side.index()]);
        }
    }

    /// Relays: opens a stream that turns out to be encrypted, or closes the connection if no key
    /// fits.
    pub(super) fn open_relayed(&mut self, side: Side) {
        let session_id = self.sender.session_id();
        let stream = &mut self.streams[side.index()];
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let config = Arc::clone(&relay.config);
        let Some(key) = stream.open(config.keys.for_session(session_id)) else {
            let session = session_id.map_or(String::new(), |id| format!(" of session {id}"));
            let wanted = format!("the AES key and first nonce{session}");
            let error = Error::malformed(wanted, "an encrypted stream and no key that fits");
            let error = error.at(stream.position());
            return self.refuse(side, error);
        };
        relay.encrypt(side, key);
        relay.on_nonces(side, stream);
    }

    /// Forwards a frame that cannot be read unchanged.
    pub(super) fn pass_frame(&mut self, side: Side, span: &FrameSpan) {
        let stream = &self.streams[side.index()];
        let passage = Passage::Unread { is_datagram: stream.is_datagram() };
        let bytes = stream.bytes(span.range.clone()).to_vec();
        self.pass(side, passage, bytes);
    }

    /// Forwards everything after a fault unread: the rest of the datagram, or the rest of the
    /// stream.
    pub(super) fn pass_unread(&mut self, side: Side, datagram: Option<Range<usize>>) {
        let Role::Relay(relay) = &mut self.sender.role else { return };
        let Some(range) = datagram else {
            relay.ways[side.index()].is_raw = true;
            return;
        };
        let bytes = self.streams[side.index()].bytes(range).to_vec();
        self.pass(side, Passage::Unread { is_datagram: true }, bytes);
    }

    /// Forwards received bytes of a stream that is no longer read.
    pub(super) fn pass_raw(&mut self, side: Side) -> bool {
        let Role::Relay(relay) = &mut self.sender.role else { return false };
        if !relay.ways[side.index()].is_raw {
            return false;
        }
        let max = relay.forwarding.max_raw_bytes();
        let stream = &mut self.streams[side.index()];
        let range = stream.take(max);
        let bytes = stream.bytes(range).to_vec();
        let is_empty = bytes.is_empty();
        if !is_empty {
            self.pass(side, Passage::Unread { is_datagram: false }, bytes);
        }
        !is_empty
    }

    /// Forwards the end of a datagram.
    pub(super) fn pass_datagram(&mut self, side: Side) {
        self.pass(side, Passage::DatagramEnd, Vec::new());
    }

    /// Forwards bytes that cannot be decrypted as they were on the wire. `false` if the connection
    /// cannot continue, because bytes are missing or earlier ones were changed.
    pub(super) fn pass_wire(&mut self, side: Side, wire: Option<Vec<u8>>) -> bool {
        let stream = &mut self.streams[side.index()];
        if !matches!(self.sender.role, Role::Relay(_)) {
            return true;
        }
        // The remaining decrypted bytes go first.
        let range = stream.take(usize::MAX);
        let rest = stream.bytes(range).to_vec();
        stream.close_cipher();
        self.pass(side, Passage::Unread { is_datagram: false }, rest);
        let Some(wire) = wire else { return false };
        self.pass(side, Passage::Sealed, wire);
        matches!(&self.sender.role, Role::Relay(relay) if !relay.ways[side.index()].is_broken)
    }

    /// Forwards the incomplete tag and nonce at the end of a stream.
    pub(super) fn pass_end(&mut self, side: Side) {
        let rest = self.streams[side.index()].torn_tag().to_vec();
        if !rest.is_empty() {
            self.pass(side, Passage::Torn, rest);
        }
    }
}

impl Forward for Sender {
    /// Decides about the piece received last. The replacement for a message is a message as
    /// [`RawMessage`](crate::message::RawMessage) encodes it. The replacement for an unknown
    /// control message is a frame with another unknown control message.
    fn forward(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let RelayState { forwarding, ways, .. } = relay_state(&mut self.role)?;
        let way = forwarding.reported().map(|(side, _)| &ways[side.index()]);
        let Some(way) = way else { return forwarding.decide(decision, |_, _| Ok(())) };
        forwarding.decide(decision, |piece, decision| check_decision(way, piece, decision))
    }

    fn hold(&mut self) -> Result<HoldId, SendError> {
        self.closing.check_open()?;
        relay_state(&mut self.role)?.forwarding.hold()
    }

    fn release(&mut self, held: HoldId, decision: Decision<'_>) -> Result<(), SendError> {
        self.closing.check_open()?;
        let RelayState { forwarding, ways, .. } = relay_state(&mut self.role)?;
        // Both directions have the same bounds.
        let [way, _] = ways;
        forwarding.release(held, decision, |piece, decision| check_decision(way, piece, decision))
    }
}

impl Inject for Sender {
    /// Sends a message, as [`RawMessage`](crate::message::RawMessage) encodes it, in a separate
    /// frame. A message injected into a stale session is lost: the server ignores it, and the
    /// client sends only its own last message again.
    fn inject(&mut self, to: Side, message: &[u8]) -> Result<(), SendError> {
        self.closing.check_open()?;
        let is_established = self.is_established();
        let relay = relay_state(&mut self.role)?;
        // A held offer or accept must leave first.
        let is_control = |passage: &Passage| {
            matches!(passage, Passage::Piece(PieceInfo { unit: Unit::Control(opcode), .. })
                if matches!(*opcode, Opcode::SessionOffer | Opcode::SessionAccept))
        };
        if !is_established || relay.forwarding.keeps(is_control) {
            return Err(SendError::NotEstablished);
        }
        relay.inject(to, message)
    }
}

fn relay_state(role: &mut Role) -> Result<&mut RelayState, SendError> {
    match role {
        Role::Relay(relay) => Ok(relay),
        _ => Err(SendError::Role("a relay")),
    }
}
