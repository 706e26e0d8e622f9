//! The relay role: datagrams in transit.

use std::collections::VecDeque;

use worldwire_core::connection::{Decision, Forwarding, HoldId, Leaving, Outgoing, SendError};
use worldwire_core::{Error, Reader, Result, Side};

use super::config::RelayConfig;
use super::event::{Unit, Unreported};
use super::keyring::Keyring;
use crate::crypt::{SessionKey, is_intact};
use crate::frame::{HEAD_BYTES, PacketHead, RccFlags, SequenceNumber, SequenceWord};

/// The state of a relay.
#[derive(Debug)]
pub(super) struct Relaying {
    forwarding: Forwarding<Passage>,
    /// By the side that sends.
    ways: [Way; 2],
}

/// A datagram on its way through a relay.
#[derive(Debug)]
enum Passage {
    /// A piece, with its datagram until it is queued.
    Piece {
        /// The sequence word of a packet.
        word: Option<SequenceWord>,
        wire: Vec<u8>,
    },
    /// A repeated packet.
    Repeated(SequenceNumber),
}

/// One direction of a relay.
#[derive(Debug)]
struct Way {
    out: Outgoing,
    /// The packets that were replaced or dropped, since they may be repeated.
    changed: VecDeque<(SequenceNumber, Option<Vec<u8>>)>,
}

/// How many changed packets are remembered. Older ones are not expected again.
const MAX_CHANGED: usize = 256;

impl Relaying {
    pub(super) fn new(config: &RelayConfig) -> Self {
        let way = || Way { out: Outgoing::new(config.bounds), changed: VecDeque::new() };
        let forwarding = Forwarding::new(config.bounds);
        Self { forwarding, ways: [way(), way()] }
    }

    /// Registers a piece that is about to be reported, so that it can be decided about.
    pub(super) fn report(&mut self, piece: &mut Unreported) {
        let (word, is_urgent) = match piece.unit {
            Unit::Packet { flags, .. } => {
                let is_bare = piece.bytes.len() <= HEAD_BYTES + 1;
                (word_of(&piece.bytes), is_bare && !flags.contains(RccFlags::Reset))
            }
            Unit::Plain => (None, true),
            _ => (None, false),
        };
        let wire = core::mem::take(&mut piece.wire);
        self.forwarding.report(piece.side, Passage::Piece { word, wire }, is_urgent);
    }

    /// Records a decision about the last piece.
    pub(super) fn decide(&mut self, decision: Decision<'_>) -> Result<(), SendError> {
        let Self { forwarding, ways } = self;
        forwarding.decide(decision, |passage, decision| Self::check(ways, passage, decision))
    }

    /// Holds the last piece.
    pub(super) fn hold(&mut self) -> Result<HoldId, SendError> {
        self.forwarding.hold()
    }

    /// Records a decision about a held piece.
    pub(super) fn release(
        &mut self,
        held: HoldId,
        decision: Decision<'_>,
    ) -> Result<(), SendError> {
        let Self { forwarding, ways } = self;
        forwarding.release(held, decision, |passage, decision| Self::check(ways, passage, decision))
    }

    /// Queues the last piece. Returns the side that sent it.
    pub(super) fn settle(&mut self) -> Option<Side> {
        self.forwarding.settle(|_, passage| match passage {
            Passage::Piece { wire, .. } => core::mem::take(wire),
            Passage::Repeated(_) => Vec::new(),
        })
    }

    /// Queues the datagrams of a side that can leave now.
    ///
    /// # Errors
    /// The limit that a datagram exceeds even in an empty queue.
    pub(super) fn fill(&mut self, from: Side, keys: &Keyring) -> Result<()> {
        let Self { forwarding, ways, .. } = self;
        forwarding.fill(from, &mut ways[from.index()], |way, leaving| way.forward(leaving, keys))
    }

    /// Queues a datagram that needs no decision: it is unreadable, or a repeat that is treated like
    /// the first copy.
    pub(super) fn pass(&mut self, side: Side, wire: Vec<u8>, number: Option<SequenceNumber>) {
        self.forwarding.pass(side, number.map(Passage::Repeated), wire);
    }

    pub(super) fn pop(&mut self, to: Side) -> Option<Vec<u8>> {
        self.ways[to.other().index()].out.pop()
    }

    /// How many bytes are queued for a side.
    pub(super) fn queued_bytes(&self, to: Side) -> usize {
        self.ways[to.other().index()].out.bytes()
    }

    pub(super) fn is_paused(&self, from: Side) -> bool {
        self.forwarding.is_paused(from, &self.ways[from.index()].out)
    }

    pub(super) fn kept_bytes(&self, from: Side) -> usize {
        self.forwarding.kept_bytes(from, &self.ways[from.index()].out)
    }

    /// Checks that not too much of a paused side has arrived.
    ///
    /// # Errors
    /// The limit "bytes behind a full queue".
    pub(super) fn check_unread(&self, unread: usize) -> Result<()> {
        self.forwarding.check_unread(unread)
    }

    /// Checks that a piece may be dropped or replaced as decided. Both directions have the same
    /// bounds.
    fn check(
        [way, _]: &[Way; 2],
        passage: &Passage,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        match (passage, decision) {
            (_, Decision::AsIs) | (Passage::Repeated(_), _) => Ok(()),
            (Passage::Piece { word: None, .. }, _) => {
                Err(SendError::Unchangeable("a plain packet"))
            }
            (Passage::Piece { word: Some(word), .. }, Decision::Instead(packet)) => {
                if !is_intact(packet) || word_of(packet) != Some(*word) {
                    let found = format!("{} bytes that are not one", packet.len());
                    let wanted = "a whole packet with the sequence word of the one it replaces";
                    return Err(SendError::Encode(Error::value(wanted, found)));
                }
                let length = crate::crypt::sealed_bytes(packet.len());
                way.out.check_fits(length).map_err(SendError::QueueFull)
            }
            (Passage::Piece { word: Some(_), .. }, Decision::Drop) => Ok(()),
        }
    }
}

impl AsMut<Outgoing> for Way {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Way {
    /// Queues a datagram that leaves the relay.
    fn forward(&mut self, leaving: Leaving<Passage>, keys: &Keyring) {
        let Leaving { piece, bytes: wire, decision, .. } = leaving;
        let made = match (piece, decision) {
            (Some(Passage::Repeated(number)), _) => {
                let known = self.changed.iter().find(|(changed, _)| *changed == number);
                known.map_or(Some(wire), |(_, made)| made.clone())
            }
            (None, _) | (_, Decision::AsIs) => Some(wire),
            (Some(Passage::Piece { word, .. }), decision) => {
                let made = match decision {
                    Decision::Instead(packet) => {
                        keys.key().map(|key| seal_instead(key, &wire, &packet))
                    }
                    Decision::AsIs | Decision::Drop => None,
                };
                if let Some(word) = word {
                    self.remember(word.local, made.clone());
                }
                made
            }
        };
        if let Some(datagram) = made {
            self.out.forward(datagram);
        }
    }

    fn remember(&mut self, number: SequenceNumber, made: Option<Vec<u8>>) {
        self.changed.retain(|(changed, _)| *changed != number);
        if self.changed.len() >= MAX_CHANGED {
            self.changed.pop_front();
        }
        self.changed.push_back((number, made));
    }
}

/// Encrypts the replacement of a datagram. Reusing the initial vector would show an eavesdropper
/// on both wires where the packets first differ, so the vector is encrypted to get an unpredictable
/// one.
fn seal_instead(key: &SessionKey, wire: &[u8], packet: &[u8]) -> Vec<u8> {
    let iv = wire.get(1..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    key.seal_datagram(&key.seal_block(&iv), packet)
}

/// The sequence word of a packet, if it is one.
fn word_of(packet: &[u8]) -> Option<SequenceWord> {
    PacketHead::decode(&mut Reader::new(packet)).ok().map(|head| head.sequence)
}
