//! Properties of reassembly: however the segments are damaged, the stream is the same, apart from
//! reported gaps.

use proptest::prelude::*;
use worldwire_capture::{Conversations, EventKind, LinkType, Packet, Timestamp, fuzzing};
use worldwire_core::{Limits, Side};

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// A client segment as a bare IPv4 packet.
fn packet(flags: u8, sequence: u32, data: &[u8]) -> Vec<u8> {
    let total = u16::try_from(40 + data.len()).expect("a small packet");
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend([0x20, 0, 0, 80]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    packet.extend(data);
    packet
}

/// A reassembled stream, with 0 for each missing byte, and its gaps.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reassembled {
    bytes: Vec<u8>,
    gaps: Vec<(usize, usize)>,
}

/// Reassembles packets after a SYN with the number before `first`.
fn reassemble(first: u32, packets: &[Vec<u8>], limits: &Limits) -> Reassembled {
    let mut conversations = Conversations::new(limits);
    let mut told = Reassembled::default();
    let mut hear = |kind: EventKind<'_>| match kind {
        EventKind::Data { side: Side::Client, offset, bytes } => {
            assert_eq!(offset, told.bytes.len() as u64);
            told.bytes.extend_from_slice(bytes);
        }
        EventKind::Gap { side: Side::Client, offset, length } => {
            assert_eq!(offset, told.bytes.len() as u64);
            let length = usize::try_from(length).expect("a small gap");
            told.gaps.push((told.bytes.len(), length));
            told.bytes.resize(told.bytes.len() + length, 0);
        }
        _ => {}
    };
    let syn = packet(SYN, first.wrapping_sub(1), b"");
    for (number, data) in std::iter::once(&syn).chain(packets).enumerate() {
        let packet = Packet {
            number: number as u64 + 1,
            time: Timestamp::from_nanos(0),
            interface: 0,
            link: LinkType::RAW,
            data,
            original_length: 0,
            unusable: None,
            offset: 0,
        };
        conversations.push(&packet, &mut |event| hear(event.kind));
        assert!(conversations.held_bytes() <= limits.streams_bytes);
    }
    conversations.finish(&mut |event| hear(event.kind));
    told
}

/// A stream, and the bounds of its segments: they cover all of it, parts of it repeatedly.
fn cut_stream() -> impl Strategy<Value = (Vec<u8>, Vec<(usize, usize)>)> {
    let stream = prop::collection::vec(1..=255_u8, 1..2_000);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..30);
    let more = prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..30);
    (stream, cuts, more).prop_map(|(stream, cuts, more)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut segments: Vec<(usize, usize)> =
            cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
        segments.extend(more.iter().map(|(start, length)| {
            let start = start.index(stream.len());
            (start, (start + usize::from(*length)).min(stream.len()))
        }));
        (stream, segments)
    })
}

/// Segments as packets; the last byte of the stream carries the FIN.
fn packets(stream: &[u8], segments: &[(usize, usize)], first: u32) -> Vec<Vec<u8>> {
    let one = |(start, end): &(usize, usize)| {
        let flags = if *end == stream.len() { ACK | FIN } else { ACK };
        let at = u32::try_from(*start).expect("a small stream");
        packet(flags, first.wrapping_add(at), &stream[*start..*end])
    };
    segments.iter().map(one).collect()
}

proptest! {
    #[test]
    fn reordering_duplication_and_overlaps_do_not_matter(
        (stream, segments) in cut_stream().prop_flat_map(|(stream, segments)| {
            (Just(stream), Just(segments).prop_shuffle())
        }),
        first: u32,
    ) {
        let told = reassemble(first, &packets(&stream, &segments, first), &Limits::DEFAULT);
        prop_assert_eq!(told, Reassembled { bytes: stream, gaps: vec![] });
    }

    #[test]
    fn only_dropped_bytes_are_gaps(
        (stream, segments) in cut_stream(),
        keep in prop::collection::vec(any::<bool>(), 60),
        first: u32,
    ) {
        let kept: Vec<_> =
            segments.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(cut, _)| *cut).collect();
        let mut expected = vec![0; stream.len()];
        for (start, end) in &kept {
            expected[*start..*end].copy_from_slice(&stream[*start..*end]);
        }
        // Nothing is known after the last captured byte or FIN.
        let tells = |(start, end): &&(usize, usize)| start < end || *end == stream.len();
        let last = kept.iter().filter(tells).map(|(_, end)| *end).max().unwrap_or(0);
        expected.truncate(last);
        let told = reassemble(first, &packets(&stream, &kept, first), &Limits::DEFAULT);
        prop_assert_eq!(&told.bytes, &expected);
        let missing = expected.iter().filter(|byte| **byte == 0).count();
        prop_assert_eq!(told.gaps.iter().map(|(_, length)| length).sum::<usize>(), missing);
        for (start, length) in told.gaps {
            prop_assert!(expected[start..start + length].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn narrow_limits_lose_bytes_but_never_invent_any(
        (stream, segments) in cut_stream().prop_flat_map(|(stream, segments)| {
            (Just(stream), Just(segments).prop_shuffle())
        }),
        stream_bytes in 0..2_000_u64, stream_pieces in 0..6_u32, first: u32,
    ) {
        let limits =
            Limits { stream_bytes, stream_pieces, streams_bytes: 1_500, ..Limits::DEFAULT };
        let told = reassemble(first, &packets(&stream, &segments, first), &limits);
        prop_assert_eq!(told.bytes.len(), stream.len());
        let lost = told.bytes.iter().filter(|byte| **byte == 0).count();
        prop_assert_eq!(told.gaps.iter().map(|(_, length)| length).sum::<usize>(), lost);
        for (byte, original) in told.bytes.iter().zip(&stream) {
            prop_assert!(*byte == 0 || byte == original);
        }
    }

    #[test]
    fn arbitrary_segments_keep_the_promises(data in prop::collection::vec(any::<u8>(), 0..3_000)) {
        fuzzing::reassembly(&data);
    }

    /// Short payloads and close sequence numbers, so that many of an input's segments touch or
    /// overlap.
    #[test]
    fn many_small_segments_keep_the_promises(
        segments in prop::collection::vec((any::<[u8; 4]>(), 0..12_u8), 0..200),
    ) {
        let mut data = Vec::new();
        for ([who, flags, sequence, acknowledged], length) in segments {
            // Two conversations; some bytes are not captured.
            data.extend([who & 0x83, flags & 0x17, sequence, 0, 0, 0, length, acknowledged]);
            data.resize(data.len() + usize::from(length), 0xAA);
        }
        fuzzing::reassembly(&data);
    }
}
