//! IP packets put together from fragments.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::time::Timestamp;

/// What the fragments of one packet have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PieceKey {
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) identification: u32,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) offset: usize,
    pub(crate) last: bool,
    pub(crate) bytes: &'a [u8],
}

/// Fragments that wait for the others of their packet: at most so many in all, each for at most a
/// minute of the capture's own time.
#[derive(Debug)]
pub(crate) struct Fragments {
    waiting: HashMap<PieceKey, Waiting, RandomState>,
    /// Oldest packet first; may name packets that are complete already.
    order: VecDeque<(PieceKey, Timestamp)>,
    pieces: usize,
    most: usize,
}

#[derive(Debug)]
struct Waiting {
    began: Timestamp,
    /// By offset, without overlaps.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Length of the whole, once the last fragment is there.
    length: Option<usize>,
    have: usize,
    count: usize,
}

const PATIENCE: Duration = Duration::from_secs(60);
/// No IP packet is longer.
const MOST_BYTES: usize = 65_535;

impl Fragments {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            waiting: HashMap::default(),
            order: VecDeque::new(),
            pieces: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Adds a fragment; the whole payload when it was the last one missing. Of bytes that come
    /// twice the first ones count.
    pub(crate) fn add(
        &mut self,
        key: PieceKey,
        piece: Piece<'_>,
        now: Timestamp,
    ) -> Option<Vec<u8>> {
        let end = piece.offset + piece.bytes.len();
        if piece.bytes.is_empty() || end > MOST_BYTES {
            return None;
        }
        self.forget(now);
        let waiting = self.waiting.entry(key).or_insert_with(|| {
            self.order.push_back((key, now));
            Waiting { began: now, pieces: BTreeMap::new(), length: None, have: 0, count: 0 }
        });
        if piece.last {
            waiting.length.get_or_insert(end);
        }
        waiting.count += 1;
        self.pieces += 1;
        waiting.insert(piece.offset, piece.bytes);
        if waiting.length != Some(waiting.have) {
            return None;
        }
        let whole = self.waiting.remove(&key)?;
        self.pieces -= whole.count;
        Some(whole.pieces.into_values().flatten().collect())
    }

    /// Lets go of what has waited too long, and of the oldest when there is no room.
    fn forget(&mut self, now: Timestamp) {
        while let Some((key, began)) = self.order.front().copied() {
            let old = now.since(began) > PATIENCE || self.pieces >= self.most;
            // A packet that is complete leaves its place in the row behind.
            let current = self.waiting.get(&key).is_some_and(|waiting| waiting.began == began);
            if current && !old {
                return;
            }
            self.order.pop_front();
            if current && let Some(gone) = self.waiting.remove(&key) {
                self.pieces -= gone.count;
            }
        }
    }
}

impl Waiting {
    /// Puts in those bytes that are not there yet.
    fn insert(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        let mut at = self
            .pieces
            .range(..=offset)
            .next_back()
            .map_or(offset, |(from, piece)| (from + piece.len()).max(offset));
        while at < end {
            let next = self.pieces.range(at..).next().map(|(from, piece)| (*from, piece.len()));
            let until = next.map_or(end, |(from, _)| from.min(end));
            if at < until {
                self.pieces.insert(at, bytes[at - offset..until - offset].to_vec());
                self.have += until - at;
            }
            at = match next {
                Some((from, length)) if from < end => from + length,
                _ => end,
            };
        }
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
        Piece { offset, last, bytes }
    }

    #[test]
    fn fragments_in_any_order_and_twice() {
        let mut fragments = Fragments::new(100);
        let now = Timestamp::default();
        assert_eq!(fragments.add(KEY, piece(16, b"cc", true), now), None);
        assert_eq!(fragments.add(KEY, piece(0, b"aaaaaaaa", false), now), None);
        assert_eq!(fragments.add(KEY, piece(0, b"xxxxxxxx", false), now), None);
        let whole = fragments.add(KEY, piece(4, b"yyyybbbbbbbb", false), now).unwrap();
        assert_eq!(whole, b"aaaaaaaabbbbbbbbcc");
        assert_eq!(fragments.pieces, 0);
    }

    #[test]
    fn old_and_many_fragments_are_let_go() {
        let mut fragments = Fragments::new(2);
        let key = |identification| PieceKey { identification, ..KEY };
        for id in 0..10 {
            fragments.add(key(id), piece(0, b"aaaaaaaa", false), Timestamp::default());
            assert!(fragments.pieces <= 2);
        }
        let late = Timestamp::from_parts(61, 0);
        fragments.add(key(99), piece(0, b"aaaaaaaa", false), late);
        assert_eq!(fragments.pieces, 1);
    }
}
