//! Cuts a packet into the pieces to deliver, with their ranges in the stream.

use core::ops::Range;

use worldwire_core::Side;

use super::event::{Unit, Unread};
use super::inbox::{Inbox, Turn};
use crate::frame::{HEAD_BYTES, Packet, Section};

/// Bytes of a datagram before the packet.
const SEALED_HEAD_BYTES: u64 = 17;

/// The pieces of a packet that can be delivered now, in order. Early RPC messages wait in the inbox
/// for the missing ones. `range` is the datagram's range in its stream; the pieces divide it
/// without gaps.
pub(super) fn deliver(
    inbox: &mut Inbox,
    side: Side,
    packet: &Packet<'_>,
    plain: &[u8],
    range: Range<u64>,
) -> Vec<Unread> {
    let number = packet.sequence.local;
    let mut cut = Cut { inbox, side, start: range.start, next: range.start, pieces: Vec::new() };
    let mut at = HEAD_BYTES + 1 + if packet.sim_time.is_some() { 4 } else { 0 };
    for section in &packet.sections {
        let id = section.id();
        match section {
            Section::Objects(bytes) | Section::Other { bytes, .. } => {
                let from = at;
                at += 1 + bytes.len();
                let bytes = plain.get(from..at).unwrap_or_default().to_vec();
                let piece = cut.piece(Unit::Section { id, number }, bytes, at);
                cut.pieces.push(Cutting::Piece(piece));
            }
            Section::Rpc(lists) => {
                at += 2;
                for list in lists {
                    at += 3;
                    for (number, message) in list.numbered() {
                        at += message.wire_bytes();
                        if let Turn::At(turn) = cut.inbox.turn(number) {
                            let bytes = message.body.to_vec();
                            let piece = cut.piece(Unit::Rpc { number }, bytes, at);
                            cut.inbox.put(turn, piece);
                            cut.pieces.push(Cutting::Rpc(turn));
                        }
                    }
                }
            }
        }
    }
    if cut.pieces.is_empty() {
        let unit = Unit::Upkeep { number, flags: packet.flags };
        let piece = cut.piece(unit, plain.to_vec(), plain.len());
        cut.pieces.push(Cutting::Piece(piece));
    }
    cut.finish(range.end)
}

/// The pieces that a datagram is cut into.
struct Cut<'i> {
    inbox: &'i mut Inbox,
    side: Side,
    /// The start of the datagram.
    start: u64,
    /// The start of the next piece.
    next: u64,
    pieces: Vec<Cutting>,
}

/// A piece or the turn of an RPC message in the inbox.
enum Cutting {
    Piece(Unread),
    Rpc(u64),
}

impl Cut<'_> {
    /// A piece that ends at this byte of the packet and starts where the previous one ends.
    fn piece(&mut self, unit: Unit, bytes: Vec<u8>, end: usize) -> Unread {
        let end = self.start.saturating_add(SEALED_HEAD_BYTES).saturating_add(end as u64);
        let range = core::mem::replace(&mut self.next, end)..end;
        Unread { side: self.side, unit, bytes, range, wire: Vec::new() }
    }

    /// Extends the last piece to the end of the datagram and collects the deliverable pieces.
    fn finish(mut self, end: u64) -> Vec<Unread> {
        match self.pieces.last_mut() {
            Some(Cutting::Piece(piece)) => piece.range.end = end,
            Some(Cutting::Rpc(turn)) => {
                if let Some(piece) = self.inbox.get_mut(*turn) {
                    piece.range.end = end;
                }
            }
            None => {}
        }
        let mut ready = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            match piece {
                Cutting::Piece(piece) => ready.push(piece),
                Cutting::Rpc(_) => ready.extend(core::iter::from_fn(|| self.inbox.next())),
            }
        }
        ready
    }
}
