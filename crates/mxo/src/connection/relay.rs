//! The relay role: datagrams in transit.

use core::time::Duration;
use std::collections::VecDeque;

use worldwire_core::connection::{Bounds, Decision, Leaving, Outgoing, SendError};
use worldwire_core::{Error, Reader, Writer};

use super::event::{Unit, Unread};
use super::keyring::Keyring;
use crate::crypt::{SessionKey, is_intact};
use crate::frame::{HEAD_BYTES, PacketHead, Plain, RccFlags, SequenceNumber, SequenceWord};

/// A datagram on its way through a relay.
#[derive(Debug)]
pub enum Passage {
    /// A piece, with its datagram until it is queued.
    Piece {
        /// The sequence word of a packet.
        word: Option<SequenceWord>,
        wire: Vec<u8>,
    },
    /// A repeated packet.
    Repeated(SequenceNumber),
}

/// A relay's queue to one side. The other roles use none.
#[derive(Debug)]
pub struct Way {
    pub(super) out: Outgoing,
    /// The packets that were replaced or dropped, since they may be repeated.
    changed: VecDeque<(SequenceNumber, Option<Vec<u8>>)>,
}

/// The interval between pings to the server while packets for it are held. Servers drop clients that
/// are silent for 30 s, and pings can be lost.
pub(super) const PING_EVERY: Duration = Duration::from_secs(3);
/// How many changed packets are remembered. Older ones are not expected again.
const MAX_CHANGED: usize = 256;

/// What a relay remembers about a piece that is reported now, and whether it may overtake held
/// ones.
pub(super) fn in_transit(piece: &mut Unread) -> (Passage, bool) {
    let (word, is_urgent) = match piece.unit {
        Unit::Packet { flags, .. } => {
            let is_bare = piece.bytes.len() <= HEAD_BYTES + 1;
            (word_of(&piece.bytes), is_bare && !flags.contains(RccFlags::Reset))
        }
        Unit::Plain => (None, true),
        _ => (None, false),
    };
    (Passage::Piece { word, wire: core::mem::take(&mut piece.wire) }, is_urgent)
}

impl AsRef<Outgoing> for Way {
    fn as_ref(&self) -> &Outgoing {
        &self.out
    }
}

impl AsMut<Outgoing> for Way {
    fn as_mut(&mut self) -> &mut Outgoing {
        &mut self.out
    }
}

impl Way {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { out: Outgoing::new(bounds), changed: VecDeque::new() }
    }

    /// Shows a side that the other one is alive, if there is room.
    pub(super) fn ping(&mut self, ping: &Plain<'_>) {
        let mut writer = Writer::new();
        if ping.encode(&mut writer).is_ok() {
            let ping = writer.into_bytes();
            if self.out.check_room(ping.len()).is_ok() {
                self.out.push(ping);
            }
        }
    }

    /// Checks that a piece may be dropped or replaced as decided. Both directions have the same
    /// bounds.
    pub(super) fn check(
        &self,
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
                self.out.check_fits(length).map_err(SendError::QueueFull)
            }
            (Passage::Piece { word: Some(_), .. }, Decision::Drop) => Ok(()),
        }
    }

    /// Queues a datagram that leaves the relay.
    pub(super) fn forward(&mut self, leaving: Leaving<Passage>, keys: &Keyring) {
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

/// Encrypts the replacement of a datagram. Reusing the initialisation vector would show an
/// eavesdropper on both wires where the packets first differ, so the vector is encrypted to get an
/// unpredictable one.
fn seal_instead(key: &SessionKey, wire: &[u8], packet: &[u8]) -> Vec<u8> {
    let iv = wire.get(1..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    key.seal_datagram(&key.seal_block(&iv), packet)
}

/// The sequence word of a packet, if it is one.
fn word_of(packet: &[u8]) -> Option<SequenceWord> {
    PacketHead::decode(&mut Reader::new(packet)).ok().map(|head| head.sequence)
}
