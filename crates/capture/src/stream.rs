//! One direction of a TCP connection, reassembled.
//!
//! Sequence numbers are turned into stream offsets by their distance from the next byte expected,
//! so streams may be longer than the 32 bits of a sequence number.

use std::collections::BTreeMap;

/// Bytes of one direction: what is next, and what came too early.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of stream offset 0, once it is known.
    origin: Option<u32>,
    /// The sequence number of the next byte to deliver.
    expected: u32,
    /// The stream offset of the next byte to deliver.
    next: u64,
    /// Pieces that came too early, by stream offset; they do not overlap.
    early: BTreeMap<u64, Piece>,
    /// What `early` costs.
    held: u64,
    /// Up to where the other side has acknowledged.
    acknowledged: u64,
    /// Where the stream ends, when its FIN was seen. Never before `next`.
    end: Option<u64>,
    finished: bool,
    /// The sequence number that would follow on the last stray segment.
    stray: Option<u32>,
}

/// A piece that waits: `length` bytes of the stream, of which fewer may have been captured.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    length: u64,
}

/// What a stream may hold back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) pieces: u32,
}

/// What a stream has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery<'a> {
    Data { offset: u64, bytes: &'a [u8] },
    Gap { offset: u64, length: u64 },
}

/// Farther away than this a sequence number is no part of the stream.
const STRAY: u32 = 1 << 30;

/// A reset or a new SYN this near to the byte expected belongs to the connection as it is.
const WINDOW: u32 = 1 << 22;

/// What a piece costs beside its bytes: a bound on bytes alone would let pieces of one byte take
/// a hundred times as much memory as allowed.
const PIECE_COST: u64 = 128;

impl Stream {
    /// The stream begins with the byte of this sequence number.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.origin = Some(sequence);
        self.expected = sequence;
    }

    /// Takes in a segment, then delivers what is in order. `missing` bytes behind the payload were
    /// not captured.
    pub(crate) fn segment(
        &mut self,
        sequence: u32,
        payload: &[u8],
        missing: u32,
        fin: bool,
        room: Room,
        out: &mut dyn FnMut(Delivery<'_>),
    ) {
        if self.origin.is_none() {
            self.begin(sequence);
        }
        let total = payload.len() as u64 + u64::from(missing);
        if self.finished || !self.near(sequence, total, out) {
            return;
        }
        let ahead = self.ahead(sequence);
        // How many bytes at the start were delivered already.
        let late = u64::from(if ahead < 0 { ahead.unsigned_abs() } else { 0 });
        let start = self.next + u64::from(ahead.max(0).unsigned_abs());
        if fin && late <= total {
            self.end.get_or_insert(start + (total - late));
        }
        if late < total {
            let payload = payload.get(position(late)..).unwrap_or_default();
            self.take(start, payload, total - late, room, out);
        }
        self.deliver(out);
    }

    /// The other side has all bytes before this one. A hole before them was lost by the capture:
    /// nobody will send it again. A hole with nothing behind it is left until something comes,
    /// since the capture may have seen the acknowledgment before the data.
    pub(crate) fn acknowledge(&mut self, sequence: u32, out: &mut dyn FnMut(Delivery<'_>)) {
        let ahead = self.ahead(sequence);
        if ahead <= 0 || ahead.unsigned_abs() > STRAY {
            return;
        }
        self.acknowledged = self.acknowledged.max(self.next + u64::from(ahead.unsigned_abs()));
        while let Some(hole_end) = self.hole_end()
            && hole_end <= self.acknowledged
        {
            self.give_up(hole_end, out);
        }
    }

    /// The side says that it has sent all bytes before this one: what is missing of them is named at
    /// the end.
    pub(crate) fn sent(&mut self, sequence: u32) {
        let ahead = self.ahead(sequence);
        if ahead > 0 && ahead.unsigned_abs() <= WINDOW {
            let until = self.next + u64::from(ahead.unsigned_abs());
            self.acknowledged = self.acknowledged.max(until);
        }
    }

    /// Delivers all that is held, with gaps. The stream goes on behind it.
    pub(crate) fn release(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while let Some((first, _)) = self.early.first_key_value() {
            self.give_up(*first, out);
        }
    }

    /// Nothing more will come: delivers what is held, and names what is known to be missing.
    pub(crate) fn flush(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while let Some(hole_end) = self.hole_end() {
            self.give_up(hole_end, out);
        }
        // One byte alone may be the number of a FIN that was not captured.
        if !self.finished && self.acknowledged > self.next + 1 {
            self.give_up(self.acknowledged, out);
        }
    }

    /// Whether the beginning is known.
    pub(crate) const fn has_begun(&self) -> bool {
        self.origin.is_some()
    }

    /// Whether the first byte had this sequence number.
    pub(crate) fn began_with(&self, sequence: u32) -> bool {
        self.origin == Some(sequence)
    }

    /// Whether nothing of it was seen but its beginning.
    pub(crate) fn is_fresh(&self) -> bool {
        self.next == 0 && self.early.is_empty() && self.end.is_none()
    }

    /// Whether its FIN was seen, with or without all that is before it.
    pub(crate) const fn has_end(&self) -> bool {
        self.finished || self.end.is_some()
    }

    /// Whether everything up to the FIN was delivered.
    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether a sequence number is within any window that the sender may have in use.
    pub(crate) fn is_plausible(&self, sequence: u32) -> bool {
        self.ahead(sequence).unsigned_abs() <= WINDOW
    }

    /// What the pieces held back cost: their bytes and their keeping.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// How far a sequence number is ahead of the next byte.
    fn ahead(&self, sequence: u32) -> i32 {
        sequence.wrapping_sub(self.expected).cast_signed()
    }

    /// Whether a segment belongs to the stream. One that is too far away does not, unless it
    /// follows on another such segment: then the capture has lost more than it can tell, and the
    /// stream goes on there behind a gap whose length is only right within 4 GiB.
    fn near(&mut self, sequence: u32, total: u64, out: &mut dyn FnMut(Delivery<'_>)) -> bool {
        if self.ahead(sequence).unsigned_abs() <= STRAY {
            self.stray = None;
            return true;
        }
        if total == 0 {
            return false;
        }
        if self.stray != Some(sequence) {
            self.stray = Some(sequence.wrapping_add(low(total)));
            return false;
        }
        self.stray = None;
        self.release(out);
        self.end = None;
        let jump = u64::from(sequence.wrapping_sub(self.expected));
        self.give_up(self.next + jump, out);
        true
    }

    /// Takes in `total` bytes at `start`, of which `payload` was captured. Of bytes that come
    /// twice those count that were delivered or held first.
    fn take(
        &mut self,
        start: u64,
        payload: &[u8],
        total: u64,
        room: Room,
        out: &mut dyn FnMut(Delivery<'_>),
    ) {
        let (end, captured) = (start + total, start + payload.len() as u64);
        let mut at = start;
        // What was given up or delivered on the way may reach behind `at`.
        loop {
            at = at.max(self.next);
            if at >= end || self.finished {
                return;
            }
            let fresh = payload.get(position(at - start)..).unwrap_or_default();
            if at == self.next {
                let until = self.first_early().min(end);
                self.say(fresh.get(..position(until - at)).unwrap_or(fresh), out);
                // What was not captured of it: no use to wait for that.
                self.give_up(until, out);
                continue;
            }
            // Inside of a piece that is held?
            let covered = self.early.range(..=at).next_back().map(|(at, piece)| at + piece.length);
            if let Some(covered) = covered.filter(|covered| *covered > at) {
                if at >= captured {
                    return;
                }
                at = covered;
                continue;
            }
            let following = self.early.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
            // A tail that was not captured reaches to the next piece at most: so the work for a
            // segment follows the bytes that are there.
            let until = following.min(end);
            let fresh = fresh.get(..position(until - at)).unwrap_or(fresh);
            let cost = fresh.len() as u64 + PIECE_COST;
            let hole_end = self.first_early().min(at);
            let full =
                self.held + cost > room.bytes || self.early.len() as u64 >= u64::from(room.pieces);
            if full || hole_end <= self.acknowledged {
                self.give_up(hole_end, out);
                continue;
            }
            self.early.insert(at, Piece { bytes: fresh.to_vec(), length: until - at });
            self.held += cost;
            if until >= captured {
                return;
            }
            at = until;
        }
    }

    /// Delivers what is in order now.
    fn deliver(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        loop {
            match self.end {
                Some(end) if end == self.next => {
                    self.finished = true;
                    self.early.clear();
                    self.held = 0;
                    return;
                }
                // Data behind the FIN: it was none.
                Some(end) if end < self.next => self.end = None,
                _ => {}
            }
            let Some(first) = self.early.first_entry().filter(|first| *first.key() <= self.next)
            else {
                return;
            };
            let (start, piece) = first.remove_entry();
            self.held -= piece.bytes.len() as u64 + PIECE_COST;
            let late = self.next - start;
            self.say(piece.bytes.get(position(late)..).unwrap_or_default(), out);
            self.lose((start + piece.length).saturating_sub(self.next), out);
        }
    }

    /// Gives up the bytes up to `until` and delivers what follows.
    fn give_up(&mut self, until: u64, out: &mut dyn FnMut(Delivery<'_>)) {
        self.lose(until.saturating_sub(self.next), out);
        self.deliver(out);
    }

    fn say(&mut self, bytes: &[u8], out: &mut dyn FnMut(Delivery<'_>)) {
        if !bytes.is_empty() {
            out(Delivery::Data { offset: self.next, bytes });
            self.advance(bytes.len() as u64);
        }
    }

    fn lose(&mut self, length: u64, out: &mut dyn FnMut(Delivery<'_>)) {
        if length > 0 {
            out(Delivery::Gap { offset: self.next, length });
            self.advance(length);
        }
    }

    fn advance(&mut self, length: u64) {
        self.next += length;
        self.expected = self.expected.wrapping_add(low(length));
    }

    fn first_early(&self) -> u64 {
        self.early.first_key_value().map_or(u64::MAX, |(first, _)| *first)
    }

    /// Where the hole ends that holds the stream up, if there is one.
    fn hole_end(&self) -> Option<u64> {
        if self.finished {
            return None;
        }
        match (self.early.first_key_value(), self.end) {
            (Some((first, _)), Some(end)) => Some(end.min(*first)),
            (Some((first, _)), None) => Some(*first),
            (None, end) => end,
        }
    }
}

/// The low half of an offset: sequence numbers wrap around.
#[expect(clippy::cast_possible_truncation, reason = "wrapping is what sequence numbers do")]
const fn low(offset: u64) -> u32 {
    offset as u32
}

/// A distance inside a segment.
fn position(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { bytes: 1 << 20, pieces: 100 };
    const ISN: u32 = 0xffff_fffe;

    /// A stream whose deliveries are checked to be in order and without overlap.
    struct Told {
        stream: Stream,
        next: u64,
        bytes: Vec<u8>,
        gaps: Vec<(u64, u64)>,
    }

    impl Told {
        fn new() -> Self {
            let mut stream = Stream::default();
            stream.begin(ISN);
            Self { stream, next: 0, bytes: Vec::new(), gaps: Vec::new() }
        }

        fn with(&mut self, act: impl FnOnce(&mut Stream, &mut dyn FnMut(Delivery<'_>))) {
            let Self { stream, next, bytes, gaps } = self;
            act(stream, &mut |delivery| match delivery {
                Delivery::Data { offset, bytes: data } => {
                    assert!(!data.is_empty());
                    assert_eq!(offset, *next);
                    *next += data.len() as u64;
                    bytes.extend_from_slice(data);
                }
                Delivery::Gap { offset, length } => {
                    assert_eq!(offset, *next);
                    *next += length;
                    gaps.push((offset, length));
                }
            });
        }

        fn segment(&mut self, at: u32, data: &[u8], missing: u32, fin: bool, room: Room) {
            let sequence = ISN.wrapping_add(at);
            self.with(|stream, out| stream.segment(sequence, data, missing, fin, room, out));
            assert!(stream_fits(&self.stream, room));
        }

        fn data(&mut self, at: u32, data: &[u8]) {
            self.segment(at, data, 0, false, ROOM);
        }

        fn acknowledge(&mut self, at: u32) {
            self.with(|stream, out| stream.acknowledge(ISN.wrapping_add(at), out));
        }

        fn flush(&mut self) {
            self.with(|stream, out| stream.flush(out));
            assert_eq!((self.stream.held(), self.stream.early.len()), (0, 0));
        }
    }

    fn stream_fits(stream: &Stream, room: Room) -> bool {
        let cost = |piece: &Piece| piece.bytes.len() as u64 + PIECE_COST;
        let held: u64 = stream.early.values().map(cost).sum();
        held == stream.held && held <= room.bytes && stream.early.len() <= room.pieces as usize
    }

    fn run(segments: &[(u32, &[u8])], room: Room) -> (Vec<u8>, Vec<(u64, u64)>) {
        let mut told = Told::new();
        for (at, data) in segments {
            told.segment(*at, data, 0, false, room);
        }
        told.flush();
        (told.bytes, told.gaps)
    }

    #[test]
    fn reordered_repeated_and_overlapping_segments_give_the_stream() {
        assert_eq!(run(&[(0, b"ab"), (4, b"ef"), (2, b"cd")], ROOM), (b"abcdef".to_vec(), vec![]));
        assert_eq!(run(&[(0, b"ab"), (0, b"xy"), (1, b"xcd")], ROOM), (b"abcd".to_vec(), vec![]));
        let overlapping: &[(u32, &[u8])] = &[(3, b"d"), (5, b"f"), (1, b"bxcxexg"), (0, b"a")];
        assert_eq!(run(overlapping, ROOM).0, b"abxdxfxg".to_vec());
    }

    #[test]
    fn holes_are_named() {
        let (bytes, gaps) = run(&[(0, b"ab"), (4, b"ef")], ROOM);
        assert_eq!((bytes, gaps), (b"abef".to_vec(), vec![(2, 2)]));
    }

    #[test]
    fn a_full_stream_gives_up_its_first_hole() {
        for room in [Room { bytes: 2 * PIECE_COST + 5, ..ROOM }, Room { pieces: 2, ..ROOM }] {
            let told = run(&[(2, b"cd"), (6, b"gh"), (9, b"j"), (4, b"ef"), (8, b"i")], room);
            assert_eq!(told, (b"cdefghij".to_vec(), vec![(0, 2)]));
        }
        // No room at all: nothing is held.
        let told = run(&[(2, b"cd"), (6, b"gh"), (4, b"ef")], Room { bytes: 0, pieces: 0 });
        assert_eq!(told, (b"cdgh".to_vec(), vec![(0, 2), (4, 2)]));
    }

    #[test]
    fn small_pieces_cost_what_they_cost() {
        let mut told = Told::new();
        let room = Room { bytes: 1000, pieces: u32::MAX };
        for at in 0..10_000 {
            told.segment(1 + at * 2, b"x", 0, false, room);
        }
        assert!(told.stream.early.len() < 8);
    }

    #[test]
    fn acknowledged_holes_are_not_waited_for() {
        let mut told = Told::new();
        told.data(4, b"ef");
        told.data(8, b"ij");
        told.acknowledge(3);
        assert_eq!(told.next, 0);
        told.acknowledge(4);
        assert_eq!((told.next, &told.gaps[..]), (6, &[(0, 4)][..]));
        // The acknowledgment may come first, and then what it proves to be a hole.
        told.acknowledge(20);
        told.data(20, b"u");
        assert_eq!((told.next, told.gaps.len()), (21, 3));
    }

    #[test]
    fn data_that_is_captured_behind_its_acknowledgment_is_not_lost() {
        let mut told = Told::new();
        told.acknowledge(4);
        told.data(0, b"ab");
        told.data(2, b"cd");
        told.flush();
        assert_eq!((told.bytes, told.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn what_was_acknowledged_and_never_came_is_named_at_the_end() {
        let mut told = Told::new();
        told.acknowledge(9);
        told.flush();
        assert_eq!(told.gaps, [(0, 9)]);
        // One byte may be a FIN.
        let mut told = Told::new();
        told.data(0, b"ab");
        told.acknowledge(3);
        told.flush();
        assert_eq!(told.gaps, []);
    }

    #[test]
    fn a_fin_counts_when_it_is_reached() {
        let mut told = Told::new();
        told.segment(2, b"cd", 0, true, ROOM);
        assert!(told.stream.has_end() && !told.stream.is_finished());
        told.data(0, b"ab");
        assert!(told.stream.is_finished());
        told.data(4, b"ef");
        told.segment(0, b"abcdef", 0, true, ROOM);
        told.flush();
        assert_eq!((told.bytes, told.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn a_fin_of_the_past_counts_nothing() {
        let mut told = Told::new();
        told.data(0, b"abcd");
        told.segment(0, b"ab", 0, true, ROOM);
        assert!(!told.stream.has_end());
        // One in the future that data runs over was none either.
        told.segment(6, b"", 0, true, ROOM);
        told.data(4, b"efgh");
        assert!(!told.stream.has_end());
        told.segment(4, b"efgh", 0, true, ROOM);
        assert!(told.stream.is_finished());
        assert_eq!(told.bytes, b"abcdefgh");
    }

    #[test]
    fn a_lost_tail_before_a_fin_is_a_gap() {
        let mut told = Told::new();
        told.segment(4, b"", 0, true, ROOM);
        told.acknowledge(5);
        assert_eq!(told.gaps, [(0, 4)]);
        assert!(told.stream.is_finished());
    }

    #[test]
    fn what_was_not_captured_is_a_gap() {
        let mut told = Told::new();
        told.segment(0, b"ab", 3, false, ROOM);
        assert_eq!((told.next, &told.gaps[..]), (5, &[(2, 3)][..]));
        // Out of order as well, up to the next piece.
        told.data(12, b"m");
        told.segment(8, b"i", 6, false, ROOM);
        told.data(5, b"fgh");
        told.flush();
        assert_eq!(told.bytes, b"abfghim");
        assert_eq!(told.gaps, [(2, 3), (9, 3)]);
        // Retransmitted, the tail of the tail.
        let mut told = Told::new();
        told.data(0, b"abc");
        told.segment(0, b"a", 4, true, ROOM);
        assert_eq!(told.gaps, [(3, 2)]);
        assert!(told.stream.is_finished());
    }

    #[test]
    fn keep_alive_and_window_probes_change_nothing() {
        let mut told = Told::new();
        told.data(0, b"ab");
        told.data(1, b"\0");
        told.data(1, b"");
        told.data(2, b"c");
        told.data(2, b"cd");
        assert_eq!((told.bytes, told.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn strays_far_away_are_ignored() {
        let (bytes, gaps) = run(&[(0, b"ab"), (1 << 31, b"xx"), (2, b"c")], ROOM);
        assert_eq!((bytes, gaps), (b"abc".to_vec(), vec![]));
    }

    #[test]
    fn two_strays_in_a_row_are_the_stream() {
        let far = 1 << 31;
        let (bytes, gaps) = run(&[(0, b"ab"), (far, b"xx"), (far + 2, b"yy"), (2, b"c")], ROOM);
        assert_eq!((bytes, gaps), (b"abyy".to_vec(), vec![(2, u64::from(far))]));
        let apart: &[(u32, &[u8])] = &[(far, b"xx"), (0, b"ab"), (far + 2, b"yy")];
        assert_eq!(run(apart, ROOM), (b"ab".to_vec(), vec![]));
    }

    #[test]
    fn streams_are_longer_than_sequence_numbers() {
        let mut told = Told::new();
        let block = vec![0; 1 << 16];
        let room = ROOM;
        let mut count = 0_u64;
        let mut stream = Stream::default();
        for _ in 0..(1 << 17) {
            let sequence = low(stream.next);
            stream.segment(sequence, &block, 0, false, room, &mut |_| count += 1);
        }
        assert_eq!((stream.next, count), (1 << 33, 1 << 17));
        told.flush();
    }
}
