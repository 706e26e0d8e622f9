//! The relay role: datagrams in transit.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use worldwire_core::connection::{Bounds, Decision, Leaving, Outgoing, SendError};
use worldwire_core::{Error, Reader, Side, Writer};

use super::additions::{Additions, Rewritten};
use super::event::{Unit, Unread};
use super::keyring::Keyring;
use crate::crypt::{KnownSession, SessionKey, is_intact};
use crate::frame::{HEAD_BYTES, PacketHead, Plain, RccFlags, SequenceNumber, SequenceWord};

/// A datagram on its way through a relay.
#[derive(Debug)]
pub enum Passage {
    /// A plain packet, with its datagram until it is queued.
    Plain(Vec<u8>),
    /// A packet, with its datagram until it is queued.
    Packet {
        word: SequenceWord,
        /// The decrypted packet.
        plain: Vec<u8>,
        wire: Vec<u8>,
    },
    /// A repeated packet, decrypted.
    Repeated(SequenceNumber, Vec<u8>),
}

/// The state of both directions of a relay.
#[derive(Debug)]
pub struct Relay {
    pub(super) keys: Keyring,
    resets: Resets,
    /// The number of discarded additions, by receiving side.
    pub(super) discarded: [usize; 2],
    /// Which sides have sent encrypted packets.
    pub(super) heard: [bool; 2],
}

/// Resets of the sequence.
#[derive(Debug, Default)]
struct Resets {
    /// The server's last packet that asked for a reset. Copies have the same number.
    by: Option<SequenceNumber>,
    /// Whether the client has not confirmed it yet.
    is_pending: bool,
}

/// A relay's queue to one side. The other roles have no such queue.
#[derive(Debug)]
pub struct Way {
    pub(super) out: Outgoing,
    pub(super) additions: Additions,
    /// The packets that were replaced or dropped, kept because they may be repeated.
    changed: VecDeque<(SequenceNumber, Option<Vec<u8>>)>,
    /// The datagram of the last packet, unless that packet reset the sequence.
    last: Option<Vec<u8>>,
}

/// The interval between pings to the server while packets for it are held. Servers drop clients that
/// are silent for 30 s, and pings can be lost.
pub(super) const PING_EVERY: Duration = Duration::from_secs(3);
/// The maximum number of changed packets remembered. Older ones are not expected again.
const MAX_CHANGED: usize = 256;

impl Passage {
    /// What a relay remembers about the piece being reported, and whether that piece may overtake
    /// held ones.
    pub(super) fn of(piece: &mut Unread) -> (Self, bool) {
        let wire = core::mem::take(&mut piece.wire);
        match (&piece.unit, head_of(&piece.bytes)) {
            (Unit::Packet { .. }, Some(head)) => {
                let is_bare = piece.bytes.len() <= HEAD_BYTES + 1;
                let is_urgent = is_bare && !head.flags.contains(RccFlags::Reset);
                let plain = piece.bytes.clone();
                (Self::Packet { word: head.sequence, plain, wire }, is_urgent)
            }
            (unit, _) => (Self::Plain(wire), *unit == Unit::Plain),
        }
    }

    /// Takes the datagram.
    pub(super) fn take_wire(&mut self) -> Vec<u8> {
        match self {
            Self::Plain(wire) | Self::Packet { wire, .. } => core::mem::take(wire),
            Self::Repeated(..) => Vec::new(),
        }
    }
}

impl Relay {
    pub(super) fn new(sessions: Arc<[KnownSession]>) -> Self {
        let (discarded, heard) = ([0; 2], [false; 2]);
        Self { keys: Keyring::new(sessions), resets: Resets::default(), discarded, heard }
    }

    /// Handles a hello, which may start another session.
    pub(super) fn on_hello(&mut self, ways: &mut [Way; 2], is_other: bool) {
        if is_other {
            self.resets = Resets::default();
            for (way, discarded) in ways.iter_mut().zip(&mut self.discarded) {
                *discarded += way.additions.restart(None);
                way.changed.clear();
                way.last = None;
            }
        }
        ways.iter_mut().for_each(|way| way.additions.begin());
    }

    /// Checks that messages can be added.
    pub(super) fn check_open(&self) -> Result<(), SendError> {
        match self.keys.key().is_some() && !self.resets.is_pending {
            true => Ok(()),
            false => Err(SendError::NotEstablished),
        }
    }

    /// Queues a datagram that leaves the relay.
    pub(super) fn forward(&mut self, from: Side, way: &mut Way, leaving: Leaving<Passage>) {
        let Leaving { piece, bytes: wire, decision, .. } = leaving;
        let datagram = match (piece, self.keys.key()) {
            (Some(Passage::Packet { word, plain, .. }), Some(key)) => {
                let packet = match &decision {
                    Decision::AsIs => &plain,
                    Decision::Instead(packet) => &**packet,
                    Decision::Drop => return way.remember(word.local, None),
                };
                let Some(head) = head_of(packet) else { return way.out.forward(wire) };
                let resets = self.resets.note(from, &head);
                if resets {
                    let discarded = way.additions.restart(Some(word.local));
                    self.discarded[from.other().index()] += discarded;
                }
                let seal = |packet: &[u8]| seal_instead(key, &wire, packet);
                let datagram = match way.additions.leave(&head, packet, seal) {
                    Rewritten::AsIs if decision == Decision::AsIs => {
                        way.forget(word.local);
                        wire
                    }
                    rewritten => {
                        let made = match rewritten {
                            Rewritten::AsIs => Some(seal(packet)),
                            Rewritten::Instead(datagram) => Some(datagram),
                            Rewritten::TooLong => None,
                        };
                        way.remember(word.local, made.clone());
                        let Some(datagram) = made else { return };
                        datagram
                    }
                };
                if !head.flags.contains(RccFlags::Reset) {
                    way.last = Some(datagram.clone());
                }
                datagram
            }
            (Some(Passage::Repeated(number, plain)), Some(key)) => {
                match way.changed.iter().find(|(changed, _)| *changed == number) {
                    Some((_, None)) => return,
                    Some((_, Some(made))) => made.clone(),
                    // The packet may have been forgotten in the meantime.
                    None => match way.additions.translated(number, &plain) {
                        Some(packet) => seal_instead(key, &wire, &packet),
                        None => wire,
                    },
                }
            }
            _ => wire,
        };
        way.out.forward(datagram);
    }
}

impl Resets {
    /// Handles an outgoing packet. Returns whether its sender numbers RPC messages from 0 again.
    fn note(&mut self, from: Side, head: &PacketHead) -> bool {
        if !head.flags.contains(RccFlags::Reset) {
            return false;
        }
        match from {
            Side::Server => {
                let is_new = self.by.replace(head.sequence.local) != Some(head.sequence.local);
                self.is_pending |= is_new;
                is_new
            }
            // A client confirms every copy, but starts over only once.
            Side::Client => core::mem::take(&mut self.is_pending),
        }
    }
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
        let (out, additions) = (Outgoing::new(bounds), Additions::new(bounds));
        Self { out, additions, changed: VecDeque::new(), last: None }
    }

    /// Shows a side that the other side is alive, if there is room.
    pub(super) fn ping(&mut self, ping: &Plain<'_>) {
        let mut writer = Writer::new();
        if ping.encode(&mut writer).is_ok() {
            self.push(writer.into_bytes());
        }
    }

    /// Repeats the packets whose additions were not acknowledged in time.
    pub(super) fn repeat_carriers(&mut self) {
        for datagram in self.additions.time_out() {
            self.push(datagram);
        }
    }

    /// Repeats the last packet, so that its receiver acknowledges it again.
    ///
    /// Unverified: that the game's own client and servers also do so. This project's do.
    pub(super) fn repeat_last(&mut self) {
        if let Some(last) = self.last.clone() {
            self.push(last);
        }
    }

    /// Queues one of the relay's own datagrams if there is room. It is repeated later in any case.
    fn push(&mut self, datagram: Vec<u8>) {
        if self.out.check_room(datagram.len()).is_ok() {
            self.out.push(datagram);
        }
    }

    /// Checks that a piece may be dropped or replaced as requested. Both directions have the same
    /// bounds.
    pub(super) fn check(
        &self,
        passage: &Passage,
        decision: &Decision<'_>,
    ) -> Result<(), SendError> {
        match (passage, decision) {
            (Passage::Plain(_), Decision::Drop | Decision::Instead(_)) => {
                Err(SendError::Unchangeable("a plain packet"))
            }
            (Passage::Packet { word, .. }, Decision::Instead(packet)) => {
                let found = head_of(packet).map(|head| head.sequence);
                if !is_intact(packet) || found != Some(*word) {
                    let found = format!("{} bytes that are not one", packet.len());
                    let wanted = "a whole packet with the sequence word of the one it replaces";
                    return Err(SendError::Encode(Error::value(wanted, found)));
                }
                let length = crate::crypt::sealed_bytes(packet.len());
                self.out.check_fits(length).map_err(SendError::QueueFull)
            }
            _ => Ok(()),
        }
    }

    /// Records what was sent in place of a packet.
    fn remember(&mut self, number: SequenceNumber, made: Option<Vec<u8>>) {
        self.forget(number);
        if self.changed.len() >= MAX_CHANGED {
            self.changed.pop_front();
        }
        self.changed.push_back((number, made));
    }

    /// Forgets a packet of the previous round with this number.
    fn forget(&mut self, number: SequenceNumber) {
        self.changed.retain(|(changed, _)| *changed != number);
    }
}

/// Encrypts the replacement of a datagram. Reusing the initialisation vector would show an
/// eavesdropper on both wires where the packets first differ, so the vector is encrypted to produce
/// an unpredictable one.
fn seal_instead(key: &SessionKey, wire: &[u8], packet: &[u8]) -> Vec<u8> {
    let iv = wire.get(1..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    key.seal_datagram(&key.seal_block(&iv), packet)
}

/// The packet header of a datagram, if the datagram is a packet.
fn head_of(packet: &[u8]) -> Option<PacketHead> {
    PacketHead::decode(&mut Reader::new(packet)).ok()
}
