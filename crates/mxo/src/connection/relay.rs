//! The relay: what passes from one side to the other.

use core::ops::Range;
use std::collections::VecDeque;

use worldwire_core::connection::{self, Decision, Decisions, Forward, Outgoing};
use worldwire_core::{Error, Reader, Result, Side};

use super::config::RelayConfig;
use super::event::{Unit, Unreported};
use super::keyring::Keyring;
use super::sender::{Role, Sender};
use crate::crypt::SessionKey;
use crate::frame::{PacketHead, SequenceNumber, SequenceWord, is_whole};

/// The state of a relay.
#[derive(Debug)]
pub(super) struct Relaying {
    decisions: Decisions,
    piece: Option<Passing>,
    /// By the side that sends.
    ways: [Way; 2],
    /// A packet was read.
    pub(super) is_established: bool,
}

/// The piece that is being decided about.
#[derive(Debug)]
struct Passing {
    side: Side,
    /// The sequence word of a packet.
    word: Option<SequenceWord>,
    wire: Vec<u8>,
    range: Range<u64>,
}

/// What goes from one side to the other.
#[derive(Debug)]
struct Way {
    out: Outgoing,
    /// What became of packets that did not go on unchanged; they may come again.
    changed: VecDeque<(SequenceNumber, Option<Vec<u8>>)>,
}

/// How many changed packets are remembered: older ones come again no more.
const MAX_CHANGED: usize = 256;

impl Relaying {
    pub(super) fn new(config: &RelayConfig) -> Self {
        let way = || Way { out: Outgoing::new(config.bounds), changed: VecDeque::new() };
        Self {
            decisions: Decisions::default(),
            piece: None,
            ways: [way(), way()],
            is_established: false,
        }
    }

    /// A piece is reported, and can be decided about.
    pub(super) fn ask(&mut self, piece: &mut Unreported) {
        let word = match piece.unit {
            Unit::Packet { .. } => word_of(&piece.bytes),
            _ => None,
        };
        let wire = core::mem::take(&mut piece.wire);
        let (side, range) = (piece.side, piece.range.clone());
        self.piece = Some(Passing { side, word, wire, range });
        self.decisions.ask();
    }

    /// Carries out what was decided about the piece that was reported last.
    ///
    /// # Errors
    /// The limits on what is queued, and whose piece it is.
    pub(super) fn settle(&mut self, keys: &Keyring) -> Result<(), (Side, Error)> {
        let Some(decision) = self.decisions.take() else { return Ok(()) };
        let Some(Passing { side, word, wire, range }) = self.piece.take() else {
            return Ok(());
        };
        let way = &mut self.ways[side.index()];
        let made = match decision {
            Decision::AsIs => return way.push(Some(wire)).map_err(|error| (side, error)),
            Decision::Drop => None,
            Decision::Instead(packet) => keys.key().map(|key| seal_instead(key, &wire, &packet)),
        };
        if let Some(word) = word {
            way.remember(word.local, made.clone());
        }
        way.push(made).map_err(|error| (side, error.at(range.start)))
    }

    /// A datagram goes on without being decided about: it cannot be read, or it came before. Then
    /// it fares as it did the first time.
    ///
    /// # Errors
    /// The limits on what is queued.
    pub(super) fn pass(
        &mut self,
        side: Side,
        wire: Vec<u8>,
        number: Option<SequenceNumber>,
    ) -> Result<()> {
        let way = &mut self.ways[side.index()];
        let known = way.changed.iter().find(|(changed, _)| Some(*changed) == number);
        let made = known.map_or(Some(wire), |(_, made)| made.clone());
        way.push(made)
    }

    pub(super) fn pop(&mut self, to: Side) -> Option<Vec<u8>> {
        self.ways[to.other().index()].out.pop()
    }

    /// How many bytes are queued for a side.
    pub(super) fn queued_bytes(&self, to: Side) -> usize {
        self.ways[to.other().index()].out.bytes()
    }

    fn decide(&mut self, decision: Forward<'_>) -> Result<()> {
        // What is refused leaves the piece as it is.
        self.decisions.decide(Forward::AsIs)?;
        let Some(piece) = &self.piece else { return Ok(()) };
        match (piece.word, decision) {
            (_, Forward::AsIs) => return Ok(()),
            (None, _) => {
                return Err(Error::value("a plain packet unchanged", "one changed or dropped"));
            }
            (Some(word), Forward::Instead(packet)) => {
                if !is_whole(packet) || word_of(packet) != Some(word) {
                    let found = format!("{} bytes that are something else", packet.len());
                    let wanted = "a whole packet with the sequence word of the one it replaces";
                    return Err(Error::value(wanted, found));
                }
                let length = crate::crypt::sealed_bytes(packet.len());
                self.ways[piece.side.index()].out.check_room(length)?;
            }
            (Some(_), Forward::Drop) => {}
        }
        self.decisions.decide(decision)
    }
}

impl Way {
    fn push(&mut self, datagram: Option<Vec<u8>>) -> Result<()> {
        if let Some(datagram) = datagram {
            self.out.check_room(datagram.len())?;
            self.out.push(datagram);
        }
        Ok(())
    }

    fn remember(&mut self, number: SequenceNumber, made: Option<Vec<u8>>) {
        self.changed.retain(|(changed, _)| *changed != number);
        if self.changed.len() >= MAX_CHANGED {
            self.changed.pop_front();
        }
        self.changed.push_back((number, made));
    }
}

/// Encrypts what goes on instead of a datagram. With its vector, whoever taps both wires would
/// learn where they differ first; the forward cipher makes one of it that nobody can foresee.
fn seal_instead(key: &SessionKey, wire: &[u8], packet: &[u8]) -> Vec<u8> {
    let iv = wire.get(1..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    key.seal_datagram(&key.seal_block(&iv), packet)
}

/// The sequence word of a packet, if it is one.
fn word_of(packet: &[u8]) -> Option<SequenceWord> {
    PacketHead::decode(&mut Reader::new(packet)).ok().map(|head| head.sequence)
}

impl connection::Relay for Sender {
    /// Decides about the datagram that was received last. What goes on instead is a packet with
    /// the sequence word of the original: [`Packet::encode`](crate::frame::Packet::encode) makes
    /// its length and CRC. Plain packets go on unchanged.
    fn forward(&mut self, decision: Forward<'_>) -> Result<()> {
        match &mut self.role {
            Role::Relay(relay) => relay.decide(decision),
            _ => Err(Error::value("a relay", "another role")),
        }
    }

    /// Is refused: a packet of the relay's own would need a number, and the numbers are the
    /// peers' own. Both sides acknowledge each other's packets by them.
    fn inject(&mut self, _: Side, _: &[u8]) -> Result<()> {
        self.closing.check_open()?;
        let found = match self.role {
            Role::Relay(_) => "one of the relay's own, whose number the peers do not know",
            _ => return Err(Error::value("a relay", "another role")),
        };
        Err(Error::value("a packet of one of the peers", found))
    }
}
