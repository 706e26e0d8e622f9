//! One direction of a TCP connection, put together again.

use std::collections::BTreeMap;

use worldwire_core::Limits;

/// Bytes of one direction: what is next, and what came too early.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of stream offset 0, once it is known.
    origin: Option<u32>,
    /// The stream offset of the next byte to deliver.
    next: u64,
    /// Pieces that came too early, by stream offset; they do not overlap.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    /// Where the stream ends, when its FIN was seen.
    end: Option<u64>,
}

/// What a stream has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery<'a> {
    Data { offset: u64, bytes: &'a [u8] },
    Gap { offset: u64, length: u64 },
}

/// Farther away than this a sequence number is no part of the stream.
const WINDOW: i64 = 1 << 30;

impl Stream {
    /// Whether the beginning is known.
    pub(crate) fn has_begun(&self) -> bool {
        self.origin.is_some()
    }

    /// The stream begins with the byte of this sequence number.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.origin = Some(sequence);
    }

    /// Whether the first byte had this sequence number; true as long as nothing is known.
    pub(crate) fn began_with(&self, sequence: u32) -> bool {
        self.origin.is_none_or(|origin| origin == sequence)
    }

    /// Whether a reset with this sequence number is meant: it is near what is expected next.
    pub(crate) fn could_reset(&self, sequence: u32) -> bool {
        self.expected().is_none_or(|expected| {
            let ahead = i64::from(sequence.wrapping_sub(expected).cast_signed());
            (-1..=1 << 24).contains(&ahead) || self.place(sequence).is_some_and(|at| at >= 0)
        })
    }

    /// The next sequence number, if the beginning is known.
    pub(crate) fn expected(&self) -> Option<u32> {
        Some(self.origin?.wrapping_add(low(self.next)))
    }

    /// Bytes held back.
    pub(crate) fn held(&self) -> usize {
        self.early_bytes
    }

    /// Whether everything up to the FIN was delivered.
    pub(crate) fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// The stream offset of a sequence number; `None` when it is too far away to be meant.
    /// Offsets before the beginning are negative.
    fn place(&self, sequence: u32) -> Option<i64> {
        let expected = self.expected()?;
        let ahead = i64::from(sequence.wrapping_sub(expected).cast_signed());
        if ahead.abs() > WINDOW {
            return None;
        }
        i64::try_from(self.next).ok()?.checked_add(ahead)
    }

    /// Takes in a segment, then delivers what is in order. `missing` bytes of it were not captured.
    pub(crate) fn segment(
        &mut self,
        sequence: u32,
        payload: &[u8],
        missing: u32,
        fin: bool,
        limits: &Limits,
        out: &mut dyn FnMut(Delivery<'_>),
    ) {
        self.origin.get_or_insert(sequence);
        let Some(place) = self.place(sequence) else {
            return;
        };
        let (start, payload) = match u64::try_from(place) {
            Ok(start) => (start, payload),
            Err(_) => {
                let before = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
                (0, payload.get(before..).unwrap_or(&[]))
            }
        };
        if fin {
            let length = payload.len() as u64 + u64::from(missing);
            self.end.get_or_insert(start + length);
        }
        let skip = self.next.saturating_sub(start);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(payload.len());
        let (start, payload) = (start + skip as u64, &payload[skip..]);
        if payload.is_empty() {
            return;
        }
        if start == self.next && self.early.is_empty() {
            // The usual case: nothing is copied.
            out(Delivery::Data { offset: start, bytes: payload });
            self.next += payload.len() as u64;
            return;
        }
        // Of bytes that come twice the first ones count.
        self.hold(start, payload);
        self.deliver(out);
        while self.early_bytes as u64 > limits.stream_bytes
            || self.early.len() as u64 > u64::from(limits.stream_pieces)
        {
            self.skip_gap(out);
        }
    }

    /// Keeps those bytes that are not there yet.
    fn hold(&mut self, start: u64, payload: &[u8]) {
        let end = start + payload.len() as u64;
        let before = self.early.range(..=start).next_back();
        let mut at = before.map_or(start, |(from, piece)| (from + piece.len() as u64).max(start));
        while at < end {
            let next =
                self.early.range(at..).next().map(|(from, piece)| (*from, piece.len() as u64));
            let until = next.map_or(end, |(from, _)| from.min(end));
            if at < until {
                let piece = payload[offset(at - start)..offset(until - start)].to_vec();
                self.early_bytes += piece.len();
                self.early.insert(at, piece);
            }
            at = match next {
                Some((from, length)) if from < end => from + length,
                _ => end,
            };
        }
    }

    /// Delivers what is in order now.
    fn deliver(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() != self.next {
                return;
            }
            let piece = entry.remove();
            self.early_bytes -= piece.len();
            out(Delivery::Data { offset: self.next, bytes: &piece });
            self.next += piece.len() as u64;
        }
    }

    /// Gives up the bytes before the first piece that is held.
    pub(crate) fn skip_gap(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        let Some((first, _)) = self.early.first_key_value() else {
            return;
        };
        let first = *first;
        if first > self.next {
            out(Delivery::Gap { offset: self.next, length: first - self.next });
            self.next = first;
        }
        self.deliver(out);
    }

    /// The other side has all bytes before this one: what is not here was lost by the capture.
    pub(crate) fn acknowledged(&mut self, sequence: u32, out: &mut dyn FnMut(Delivery<'_>)) {
        let Some(place) = self.place(sequence).and_then(|place| u64::try_from(place).ok()) else {
            return;
        };
        // The acknowledgement of a FIN counts one more.
        let place = self.end.map_or(place, |end| place.min(end));
        while self.next < place {
            match self.early.first_key_value() {
                Some((first, _)) if *first <= place => self.skip_gap(out),
                _ => {
                    out(Delivery::Gap { offset: self.next, length: place - self.next });
                    self.next = place;
                    self.deliver(out);
                }
            }
        }
    }

    /// Nothing more will come: delivers what is held, with gaps.
    pub(crate) fn flush(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while !self.early.is_empty() {
            self.skip_gap(out);
        }
        if let Some(end) = self.end
            && self.next < end
        {
            out(Delivery::Gap { offset: self.next, length: end - self.next });
            self.next = end;
        }
    }
}

/// The low half of an offset: sequence numbers wrap around.
#[expect(clippy::cast_possible_truncation, reason = "wrapping is what sequence numbers do")]
const fn low(offset: u64) -> u32 {
    offset as u32
}

/// A distance inside a segment.
fn offset(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(segments: &[(u32, &[u8])], limits: &Limits) -> (Vec<u8>, Vec<(u64, u64)>) {
        let mut stream = Stream::default();
        stream.begin(0xffff_fffe);
        let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
        let mut next = 0;
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Data { offset, bytes: data } => {
                assert_eq!(offset, next);
                next += data.len() as u64;
                bytes.extend_from_slice(data);
            }
            Delivery::Gap { offset, length } => {
                assert_eq!(offset, next);
                next += length;
                gaps.push((offset, length));
            }
        };
        for (at, data) in segments {
            let sequence = 0xffff_fffe_u32.wrapping_add(*at);
            stream.segment(sequence, data, 0, false, limits, &mut take);
        }
        stream.flush(&mut take);
        assert_eq!(stream.held(), 0);
        (bytes, gaps)
    }

    #[test]
    fn reordered_repeated_and_overlapping_segments_give_the_stream() {
        let all = &Limits::DEFAULT;
        assert_eq!(run(&[(0, b"ab"), (4, b"ef"), (2, b"cd")], all), (b"abcdef".to_vec(), vec![]));
        assert_eq!(run(&[(0, b"ab"), (0, b"xy"), (1, b"xcd")], all), (b"abcd".to_vec(), vec![]));
        let overlapping: &[(u32, &[u8])] = &[(3, b"d"), (5, b"f"), (1, b"bxcxexg"), (0, b"a")];
        assert_eq!(run(overlapping, all).0, b"abxdxfxg".to_vec());
    }

    #[test]
    fn holes_are_named() {
        let (bytes, gaps) = run(&[(0, b"ab"), (4, b"ef")], &Limits::DEFAULT);
        assert_eq!((bytes, gaps), (b"abef".to_vec(), vec![(2, 2)]));
        let few = Limits { stream_bytes: 3, ..Limits::DEFAULT };
        let (bytes, gaps) = run(&[(2, b"cd"), (6, b"gh"), (4, b"ef")], &few);
        assert_eq!((bytes, gaps), (b"cdefgh".to_vec(), vec![(0, 2)]));
    }

    #[test]
    fn strays_far_away_are_ignored() {
        let (bytes, gaps) = run(&[(0, b"ab"), (1 << 31, b"xx"), (2, b"c")], &Limits::DEFAULT);
        assert_eq!((bytes, gaps), (b"abc".to_vec(), vec![]));
    }
}
