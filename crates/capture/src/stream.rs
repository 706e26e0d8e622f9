//! Reassembles one direction of a TCP connection.
//!
//! Sequence numbers become stream offsets by their distance from the next expected byte, so a
//! stream can be longer than 32-bit sequence numbers allow.

use std::collections::BTreeMap;

/// One direction: the position of the next byte, and the early pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of stream offset 0, once it is known.
    origin: Option<u32>,
    /// The sequence number of the next byte to deliver.
    expected: u32,
    /// The stream offset of the next byte to deliver.
    next: u64,
    /// Early pieces, by stream offset, without overlaps.
    early: BTreeMap<u64, Piece>,
    /// The accounted size of `early`.
    held: u64,
    /// The stream offset up to which the other side has acknowledged bytes.
    acknowledged: u64,
    /// Where the stream ends, once its FIN was seen. Never before `next`.
    end: Option<u64>,
    finished: bool,
    /// The sequence number that would continue the last stray segment.
    stray: Option<u32>,
}

/// An early piece: `length` bytes of the stream, which may not all have been captured.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Vec<u8>,
    length: u64,
}

/// The amount that a stream may hold back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) pieces: u32,
}

/// What a stream reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery<'a> {
    Data { offset: u64, bytes: &'a [u8] },
    Gap { offset: u64, length: u64 },
}

/// A sequence number farther away than this is not part of the stream.
const STRAY: u32 = 1 << 30;

/// A reset or new SYN within this distance of the expected byte belongs to the current connection.
const WINDOW: u32 = 1 << 22;

/// The overhead accounted for each piece. Without it, one-byte pieces could take a hundred times
/// the allowed memory.
const PIECE_COST: u64 = 128;

impl Stream {
    /// Starts the stream at this sequence number.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.origin = Some(sequence);
        self.expected = sequence;
    }

    /// Handles a segment, then delivers what is in order. `missing` bytes after the payload were
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
        // The number of leading bytes that were already delivered.
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

    /// The other side has received all bytes before this one, so missing bytes before it were lost
    /// by the capture and will not be retransmitted. A gap with nothing after it is left open,
    /// because the capture may have recorded the acknowledgement before the data.
    pub(crate) fn acknowledge(&mut self, sequence: u32, out: &mut dyn FnMut(Delivery<'_>)) {
        let ahead = self.ahead(sequence);
        if ahead <= 0 || ahead.unsigned_abs() > STRAY {
            return;
        }
        self.acknowledged = self.acknowledged.max(self.next + u64::from(ahead.unsigned_abs()));
        while let Some(gap_end) = self.gap_end()
            && gap_end <= self.acknowledged
        {
            self.give_up(gap_end, out);
        }
    }

    /// This side claims to have sent all bytes before this one. Missing ones are reported at the
    /// end.
    pub(crate) fn sent(&mut self, sequence: u32) {
        let ahead = self.ahead(sequence);
        if ahead > 0 && ahead.unsigned_abs() <= WINDOW {
            let until = self.next + u64::from(ahead.unsigned_abs());
            self.acknowledged = self.acknowledged.max(until);
        }
    }

    /// Delivers everything held back, with gaps. The stream continues after it.
    pub(crate) fn release(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while let Some((first, _)) = self.early.first_key_value() {
            self.give_up(*first, out);
        }
    }

    /// The end of the stream: delivers what is held back and reports what is known to be missing.
    pub(crate) fn flush(&mut self, out: &mut dyn FnMut(Delivery<'_>)) {
        while let Some(gap_end) = self.gap_end() {
            self.give_up(gap_end, out);
        }
        // A single missing byte may be the sequence number of a FIN that was not captured.
        if !self.finished && self.acknowledged > self.next + 1 {
            self.give_up(self.acknowledged, out);
        }
    }

    /// Whether the start of the stream is known.
    pub(crate) const fn has_begun(&self) -> bool {
        self.origin.is_some()
    }

    /// Whether the stream started with this sequence number.
    pub(crate) fn began_with(&self, sequence: u32) -> bool {
        self.origin == Some(sequence)
    }

    /// Whether only the start of the stream was seen.
    pub(crate) fn is_fresh(&self) -> bool {
        self.next == 0 && self.early.is_empty() && self.end.is_none()
    }

    /// Whether a FIN was seen, even if bytes before it are missing.
    pub(crate) const fn has_end(&self) -> bool {
        self.finished || self.end.is_some()
    }

    /// Whether everything up to the FIN was delivered.
    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether a sequence number lies within any window that the sender may be using.
    pub(crate) fn is_plausible(&self, sequence: u32) -> bool {
        self.ahead(sequence).unsigned_abs() <= WINDOW
    }

    /// The accounted size of the pieces held back.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// The distance of a sequence number ahead of the next byte.
    fn ahead(&self, sequence: u32) -> i32 {
        sequence.wrapping_sub(self.expected).cast_signed()
    }

    /// Whether a segment belongs to the stream. A distant segment does not, unless it continues
    /// another such segment: then the capture has lost a large part, and the stream resumes there
    /// after a gap whose length is correct only modulo 4 GiB.
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

    /// Inserts `total` bytes at `start`. Only `payload` was captured. If bytes arrive twice,
    /// the first copy wins.
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
        // Giving up and delivering may have moved past `at`.
        loop {
            at = at.max(self.next);
            if at >= end || self.finished {
                return;
            }
            let fresh = payload.get(position(at - start)..).unwrap_or_default();
            if at == self.next {
                let until = self.first_early().min(end);
                self.report(fresh.get(..position(until - at)).unwrap_or(fresh), out);
                // The rest was not captured, so it will not arrive.
                self.give_up(until, out);
                continue;
            }
            // Inside a piece that is held back?
            let covered = self.early.range(..=at).next_back().map(|(at, piece)| at + piece.length);
            if let Some(covered) = covered.filter(|covered| *covered > at) {
                if at >= captured {
                    return;
                }
                at = covered;
                continue;
            }
            let following = self.early.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
            // A tail that was not captured ends at the next piece, so the work for a segment is
            // bounded by the bytes it contains.
            let until = following.min(end);
            let fresh = fresh.get(..position(until - at)).unwrap_or(fresh);
            let cost = fresh.len() as u64 + PIECE_COST;
            let gap_end = self.first_early().min(at);
            let full =
                self.held + cost > room.bytes || self.early.len() as u64 >= u64::from(room.pieces);
            if full || gap_end <= self.acknowledged {
                self.give_up(gap_end, out);
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
                // Data after the FIN: it was not the end.
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
            self.report(piece.bytes.get(position(late)..).unwrap_or_default(), out);
            self.report_gap((start + piece.length).saturating_sub(self.next), out);
        }
    }

    /// Gives up the bytes before `until` and delivers what follows.
    fn give_up(&mut self, until: u64, out: &mut dyn FnMut(Delivery<'_>)) {
        self.report_gap(until.saturating_sub(self.next), out);
        self.deliver(out);
    }

    fn report(&mut self, bytes: &[u8], out: &mut dyn FnMut(Delivery<'_>)) {
        if !bytes.is_empty() {
            out(Delivery::Data { offset: self.next, bytes });
            self.advance(bytes.len() as u64);
        }
    }

    fn report_gap(&mut self, length: u64, out: &mut dyn FnMut(Delivery<'_>)) {
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

    /// The end of the gap that blocks the stream, if there is one.
    fn gap_end(&self) -> Option<u64> {
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
    struct Recorder {
        stream: Stream,
        next: u64,
        bytes: Vec<u8>,
        gaps: Vec<(u64, u64)>,
    }

    impl Recorder {
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
        let mut recorder = Recorder::new();
        for (at, data) in segments {
            recorder.segment(*at, data, 0, false, room);
        }
        recorder.flush();
        (recorder.bytes, recorder.gaps)
    }

    #[test]
    fn reordered_repeated_and_overlapping_segments_are_reassembled() {
        assert_eq!(run(&[(0, b"ab"), (4, b"ef"), (2, b"cd")], ROOM), (b"abcdef".to_vec(), vec![]));
        assert_eq!(run(&[(0, b"ab"), (0, b"xy"), (1, b"xcd")], ROOM), (b"abcd".to_vec(), vec![]));
        let overlapping: &[(u32, &[u8])] = &[(3, b"d"), (5, b"f"), (1, b"bxcxexg"), (0, b"a")];
        assert_eq!(run(overlapping, ROOM).0, b"abxdxfxg".to_vec());
    }

    #[test]
    fn gaps_are_reported() {
        let (bytes, gaps) = run(&[(0, b"ab"), (4, b"ef")], ROOM);
        assert_eq!((bytes, gaps), (b"abef".to_vec(), vec![(2, 2)]));
    }

    #[test]
    fn a_full_stream_gives_up_its_first_gap() {
        for room in [Room { bytes: 2 * PIECE_COST + 5, ..ROOM }, Room { pieces: 2, ..ROOM }] {
            let recorder = run(&[(2, b"cd"), (6, b"gh"), (9, b"j"), (4, b"ef"), (8, b"i")], room);
            assert_eq!(recorder, (b"cdefghij".to_vec(), vec![(0, 2)]));
        }
        // Without any room, nothing is held back.
        let recorder = run(&[(2, b"cd"), (6, b"gh"), (4, b"ef")], Room { bytes: 0, pieces: 0 });
        assert_eq!(recorder, (b"cdgh".to_vec(), vec![(0, 2), (4, 2)]));
    }

    #[test]
    fn small_pieces_are_accounted_with_their_overhead() {
        let mut recorder = Recorder::new();
        let room = Room { bytes: 1000, pieces: u32::MAX };
        for at in 0..10_000 {
            recorder.segment(1 + at * 2, b"x", 0, false, room);
        }
        assert!(recorder.stream.early.len() < 8);
    }

    #[test]
    fn acknowledged_gaps_are_reported_immediately() {
        let mut recorder = Recorder::new();
        recorder.data(4, b"ef");
        recorder.data(8, b"ij");
        recorder.acknowledge(3);
        assert_eq!(recorder.next, 0);
        recorder.acknowledge(4);
        assert_eq!((recorder.next, &recorder.gaps[..]), (6, &[(0, 4)][..]));
        // The acknowledgement may come first, before the segment that reveals the gap.
        recorder.acknowledge(20);
        recorder.data(20, b"u");
        assert_eq!((recorder.next, recorder.gaps.len()), (21, 3));
    }

    #[test]
    fn data_captured_after_its_acknowledgement_is_not_lost() {
        let mut recorder = Recorder::new();
        recorder.acknowledge(4);
        recorder.data(0, b"ab");
        recorder.data(2, b"cd");
        recorder.flush();
        assert_eq!((recorder.bytes, recorder.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn acknowledged_but_missing_bytes_are_reported_at_the_end() {
        let mut recorder = Recorder::new();
        recorder.acknowledge(9);
        recorder.flush();
        assert_eq!(recorder.gaps, [(0, 9)]);
        // A single byte may be a FIN.
        let mut recorder = Recorder::new();
        recorder.data(0, b"ab");
        recorder.acknowledge(3);
        recorder.flush();
        assert_eq!(recorder.gaps, []);
    }

    #[test]
    fn a_fin_takes_effect_when_it_is_reached() {
        let mut recorder = Recorder::new();
        recorder.segment(2, b"cd", 0, true, ROOM);
        assert!(recorder.stream.has_end() && !recorder.stream.is_finished());
        recorder.data(0, b"ab");
        assert!(recorder.stream.is_finished());
        recorder.data(4, b"ef");
        recorder.segment(0, b"abcdef", 0, true, ROOM);
        recorder.flush();
        assert_eq!((recorder.bytes, recorder.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn a_fin_in_the_past_is_ignored() {
        let mut recorder = Recorder::new();
        recorder.data(0, b"abcd");
        recorder.segment(0, b"ab", 0, true, ROOM);
        assert!(!recorder.stream.has_end());
        // A later FIN is ignored, too, if data follows its position.
        recorder.segment(6, b"", 0, true, ROOM);
        recorder.data(4, b"efgh");
        assert!(!recorder.stream.has_end());
        recorder.segment(4, b"efgh", 0, true, ROOM);
        assert!(recorder.stream.is_finished());
        assert_eq!(recorder.bytes, b"abcdefgh");
    }

    #[test]
    fn a_lost_tail_before_a_fin_is_a_gap() {
        let mut recorder = Recorder::new();
        recorder.segment(4, b"", 0, true, ROOM);
        recorder.acknowledge(5);
        assert_eq!(recorder.gaps, [(0, 4)]);
        assert!(recorder.stream.is_finished());
    }

    #[test]
    fn bytes_that_were_not_captured_are_a_gap() {
        let mut recorder = Recorder::new();
        recorder.segment(0, b"ab", 3, false, ROOM);
        assert_eq!((recorder.next, &recorder.gaps[..]), (5, &[(2, 3)][..]));
        // The missing bytes are also a gap in an early segment, up to the next piece.
        recorder.data(12, b"m");
        recorder.segment(8, b"i", 6, false, ROOM);
        recorder.data(5, b"fgh");
        recorder.flush();
        assert_eq!(recorder.bytes, b"abfghim");
        assert_eq!(recorder.gaps, [(2, 3), (9, 3)]);
        // A retransmission without the last part of the missing tail.
        let mut recorder = Recorder::new();
        recorder.data(0, b"abc");
        recorder.segment(0, b"a", 4, true, ROOM);
        assert_eq!(recorder.gaps, [(3, 2)]);
        assert!(recorder.stream.is_finished());
    }

    #[test]
    fn keep_alive_and_window_probes_change_nothing() {
        let mut recorder = Recorder::new();
        recorder.data(0, b"ab");
        recorder.data(1, b"\0");
        recorder.data(1, b"");
        recorder.data(2, b"c");
        recorder.data(2, b"cd");
        assert_eq!((recorder.bytes, recorder.gaps), (b"abcd".to_vec(), vec![]));
    }

    #[test]
    fn strays_far_away_are_ignored() {
        let (bytes, gaps) = run(&[(0, b"ab"), (1 << 31, b"xx"), (2, b"c")], ROOM);
        assert_eq!((bytes, gaps), (b"abc".to_vec(), vec![]));
    }

    #[test]
    fn two_consecutive_strays_resume_the_stream() {
        let far = 1 << 31;
        let (bytes, gaps) = run(&[(0, b"ab"), (far, b"xx"), (far + 2, b"yy"), (2, b"c")], ROOM);
        assert_eq!((bytes, gaps), (b"abyy".to_vec(), vec![(2, u64::from(far))]));
        let apart: &[(u32, &[u8])] = &[(far, b"xx"), (0, b"ab"), (far + 2, b"yy")];
        assert_eq!(run(apart, ROOM), (b"ab".to_vec(), vec![]));
    }

    #[test]
    fn streams_can_be_longer_than_sequence_numbers_allow() {
        let mut recorder = Recorder::new();
        let block = vec![0; 1 << 16];
        let room = ROOM;
        let mut count = 0_u64;
        let mut stream = Stream::default();
        for _ in 0..(1 << 17) {
            let sequence = low(stream.next);
            stream.segment(sequence, &block, 0, false, room, &mut |_| count += 1);
        }
        assert_eq!((stream.next, count), (1 << 33, 1 << 17));
        recorder.flush();
    }
}
