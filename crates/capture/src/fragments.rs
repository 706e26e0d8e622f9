//! Reassembles fragmented IP packets.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::time::Timestamp;

/// What all fragments of a packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PieceKey {
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) identification: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) offset: usize,
    pub(crate) last: bool,
    pub(crate) bytes: &'a [u8],
    /// Bytes after `bytes` that were not captured.
    pub(crate) missing: usize,
}

/// A fully reassembled packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Its payload, up to the first byte that was not captured.
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes after that.
    pub(crate) missing: u32,
}

/// Fragments of incomplete packets. Their number and size are limited, and they expire after a
/// minute of capture time.
#[derive(Clone, Debug)]
pub(crate) struct Fragments {
    waiting: HashMap<PieceKey, Waiting, RandomState>,
    /// The incomplete packets, oldest first.
    order: BTreeMap<u64, PieceKey>,
    serial: u64,
    pieces: usize,
    bytes: u64,
    max_pieces: usize,
    max_bytes: u64,
    /// The number of earlier fragments used to complete packets.
    pub(crate) used: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    began: Timestamp,
    serial: u64,
    /// The fragments by offset, without overlaps: the captured bytes, and the fragment's full
    /// length.
    pieces: BTreeMap<usize, (Vec<u8>, usize)>,
    /// The packet's length, once the last fragment has arrived.
    length: Option<usize>,
    have: usize,
    bytes: u64,
    /// The number of fragments, including duplicates.
    count: u64,
}

const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum size of an IP packet.
const LONGEST: usize = 65_535;

impl Fragments {
    pub(crate) fn new(max_pieces: u32, max_bytes: u64) -> Self {
        Self {
            waiting: HashMap::default(),
            order: BTreeMap::new(),
            serial: 0,
            pieces: 0,
            bytes: 0,
            max_pieces: usize::try_from(max_pieces).unwrap_or(usize::MAX),
            max_bytes,
            used: 0,
        }
    }

    /// Adds a fragment. Returns the payload when it completes the packet. If bytes arrive twice,
    /// the first copy wins.
    pub(crate) fn add(&mut self, key: PieceKey, piece: Piece<'_>, now: Timestamp) -> Option<Whole> {
        let length = piece.bytes.len() + piece.missing;
        let end = piece.offset + length;
        if length == 0 || end > LONGEST {
            return None;
        }
        self.forget_old(now);
        let serial = self.serial;
        let waiting = self.waiting.entry(key).or_insert_with(|| {
            self.order.insert(serial, key);
            self.serial += 1;
            let pieces = BTreeMap::new();
            Waiting { began: now, serial, pieces, length: None, have: 0, bytes: 0, count: 0 }
        });
        waiting.count += 1;
        if piece.last {
            waiting.length.get_or_insert(end);
        }
        let before = (waiting.pieces.len(), waiting.bytes);
        waiting.insert(piece.offset, length, piece.bytes);
        self.pieces += waiting.pieces.len() - before.0;
        self.bytes += waiting.bytes - before.1;
        if waiting.length == Some(waiting.have) {
            self.used += waiting.count - 1;
            return self.remove(&key).map(Waiting::join);
        }
        while (self.pieces > self.max_pieces || self.bytes > self.max_bytes)
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = *oldest;
            self.remove(&oldest);
        }
        None
    }

    /// Drops expired fragments.
    fn forget_old(&mut self, now: Timestamp) {
        while let Some((_, key)) = self.order.first_key_value() {
            let key = *key;
            if self.waiting.get(&key).is_some_and(|oldest| now.since(oldest.began) <= PATIENCE) {
                return;
            }
            if self.remove(&key).is_none() {
                return;
            }
        }
    }

    fn remove(&mut self, key: &PieceKey) -> Option<Waiting> {
        let gone = self.waiting.remove(key)?;
        self.order.remove(&gone.serial);
        self.pieces -= gone.pieces.len();
        self.bytes -= gone.bytes;
        Some(gone)
    }
}

impl Waiting {
    /// Inserts the bytes that are still missing.
    fn insert(&mut self, offset: usize, length: usize, bytes: &[u8]) {
        let end = offset + length;
        let mut at = self
            .pieces
            .range(..=offset)
            .next_back()
            .map_or(offset, |(from, (_, length))| (from + length).max(offset));
        while at < end {
            let next = self.pieces.range(at..).next().map(|(from, (_, length))| (*from, *length));
            let until = next.map_or(end, |(from, _)| from.min(end));
            if at < until {
                let captured = bytes.get(at - offset..).unwrap_or_default();
                let captured = captured.get(..until - at).unwrap_or(captured).to_vec();
                self.bytes += captured.len() as u64;
                self.pieces.insert(at, (captured, until - at));
                self.have += until - at;
            }
            at = match next {
                Some((from, length)) if from < end => from + length,
                _ => end,
            };
        }
    }

    fn join(self) -> Whole {
        let mut bytes = Vec::with_capacity(self.have);
        for (piece, length) in self.pieces.into_values() {
            bytes.extend_from_slice(&piece);
            if piece.len() < length {
                break;
            }
        }
        // Both are below 2^16.
        let missing = u32::try_from(self.have - bytes.len()).unwrap_or(0);
        Whole { bytes, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: PieceKey = PieceKey {
        source: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        target: IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        protocol: 17,
        identification: 7,
    };

    fn piece(offset: usize, bytes: &[u8], last: bool) -> Piece<'_> {
        Piece { offset, last, bytes, missing: 0 }
    }

    #[test]
    fn fragments_may_be_reordered_and_duplicated() {
        let mut fragments = Fragments::new(100, 1000);
        let now = Timestamp::default();
        assert_eq!(fragments.add(KEY, piece(16, b"cc", true), now), None);
        assert_eq!(fragments.add(KEY, piece(0, b"aaaaaaaa", false), now), None);
        assert_eq!(fragments.add(KEY, piece(0, b"xxxxxxxx", false), now), None);
        let whole = fragments.add(KEY, piece(4, b"yyyybbbbbbbb", false), now).unwrap();
        assert_eq!((&whole.bytes[..], whole.missing), (&b"aaaaaaaabbbbbbbbcc"[..], 0));
        assert_eq!((fragments.pieces, fragments.bytes, fragments.order.len()), (0, 0, 0));
    }

    #[test]
    fn excess_fragments_are_dropped() {
        for mut fragments in [Fragments::new(2, 1000), Fragments::new(100, 16)] {
            let key = |identification| PieceKey { identification, ..KEY };
            for id in 0..10 {
                fragments.add(key(id), piece(0, b"aaaaaaaa", false), Timestamp::default());
                assert!(fragments.pieces <= 2);
            }
            assert_eq!((fragments.waiting.len(), fragments.order.len()), (2, 2));
        }
    }

    #[test]
    fn old_fragments_are_dropped() {
        let mut fragments = Fragments::new(100, 1000);
        let key = |identification| PieceKey { identification, ..KEY };
        fragments.add(key(1), piece(0, b"aaaaaaaa", false), Timestamp::default());
        fragments.add(key(2), piece(0, b"aaaaaaaa", false), Timestamp::from_parts(60, 0));
        assert_eq!(fragments.pieces, 2);
        let late = Timestamp::from_parts(60, 1);
        assert_eq!(fragments.add(key(1), piece(8, b"b", true), late), None);
        assert_eq!(fragments.pieces, 2);
        assert!(fragments.add(key(2), piece(8, b"b", true), late).is_some());
    }

    #[test]
    fn whole_packets_leave_nothing_behind() {
        let mut fragments = Fragments::new(100, 1000);
        let key = |identification| PieceKey { identification, ..KEY };
        fragments.add(key(0), piece(0, b"aaaaaaaa", false), Timestamp::default());
        for id in 1..100 {
            fragments.add(key(id), piece(0, b"aaaaaaaa", false), Timestamp::default());
            assert!(fragments.add(key(id), piece(8, b"b", true), Timestamp::default()).is_some());
        }
        assert_eq!((fragments.waiting.len(), fragments.order.len()), (1, 1));
    }

    #[test]
    fn bytes_that_were_not_captured_end_the_payload() {
        let mut fragments = Fragments::new(100, 1000);
        let now = Timestamp::default();
        let cut = Piece { missing: 6, ..piece(0, b"aa", false) };
        fragments.add(KEY, cut, now);
        let whole = fragments.add(KEY, piece(8, b"bb", true), now).unwrap();
        assert_eq!((&whole.bytes[..], whole.missing), (&b"aa"[..], 8));
    }
}
