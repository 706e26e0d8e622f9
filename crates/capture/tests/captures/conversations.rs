//! Reordering, loss and fragmentation, and the streams that must result.

use std::net::SocketAddrV4;

use proptest::prelude::*;
use worldwire_capture::{
    CaptureReader, Closed, Conversations, EventKind, LinkType, Packet, Record, SyntheticTcp,
    Timestamp,
};
use worldwire_core::{Limits, Sampler, Side};

fn ends() -> (SocketAddrV4, SocketAddrV4) {
    ("192.0.2.1:49152".parse().unwrap(), "192.0.2.2:14617".parse().unwrap())
}

/// The events of a capture.
#[derive(Debug, Default, PartialEq)]
struct Recorder {
    /// Each side's bytes, without gaps.
    bytes: [Vec<u8>; 2],
    /// Each side's gaps.
    gaps: [Vec<(u64, u64)>; 2],
    opened: Vec<(bool, bool)>,
    closed: Vec<Closed>,
    client_port: Vec<u16>,
}

fn run(packets: &[(LinkType, Vec<u8>)], limits: &Limits) -> Recorder {
    let mut recorder = Recorder::default();
    let mut conversations = Conversations::new(limits);
    let mut take = |kind: EventKind<'_>| match kind {
        EventKind::Opened(opened) => {
            recorder.opened.push((opened.datagrams, opened.midstream));
            recorder.client_port.push(opened.client.port());
        }
        EventKind::Data { side, bytes, .. } | EventKind::Datagram { side, bytes } => {
            recorder.bytes[side.index()].extend_from_slice(bytes);
        }
        EventKind::Gap { side, offset, length } => {
            recorder.gaps[side.index()].push((offset, length))
        }
        EventKind::Closed(why) => recorder.closed.push(why),
        _ => {}
    };
    for (number, (link, data)) in (1..).zip(packets) {
        let packet = Packet {
            number,
            time: Timestamp::from_parts(i64::try_from(number).unwrap(), 0),
            interface: 0,
            link: *link,
            data,
            original_length: u32::try_from(data.len()).unwrap(),
            unusable: None,
            offset: 0,
        };
        conversations.push(&packet, &mut |event| take(event.kind));
        assert!(conversations.held_bytes() <= limits.streams_bytes);
    }
    conversations.finish(&mut |event| take(event.kind));
    recorder
}

fn ethernet(packets: Vec<Vec<u8>>) -> Vec<(LinkType, Vec<u8>)> {
    packets.into_iter().map(|packet| (LinkType::ETHERNET, packet)).collect()
}

/// Only the data packets of one side, without the other's acknowledgements.
fn segments(talk: &mut SyntheticTcp, side: Side, payload: &[u8], size: usize) -> Vec<Vec<u8>> {
    payload.chunks(size).map(|piece| talk.data(side, piece).swap_remove(0)).collect()
}

#[test]
fn a_whole_conversation() {
    let (client, server) = ends();
    let mut talk = SyntheticTcp::new(client, server);
    let mut packets = talk.open();
    packets.extend(talk.data(Side::Client, b"question"));
    packets.extend(talk.data(Side::Server, &[9; 4000]));
    packets.extend(talk.close());
    let recorder = run(&ethernet(packets), &Limits::DEFAULT);
    assert_eq!(recorder.bytes, [b"question".to_vec(), vec![9; 4000]]);
    assert_eq!((recorder.opened, recorder.closed), (vec![(false, false)], vec![Closed::Finished]));
    assert_eq!(recorder.gaps, [vec![], vec![]]);
}

#[test]
fn every_link_type_yields_the_same_bytes() {
    let (client, server) = ends();
    let mut talk = SyntheticTcp::new(client, server);
    let mut packets = talk.open();
    packets.extend(talk.data(Side::Client, b"hello"));
    let vlan = |ip: &[u8]| [&[0; 12][..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], ip].concat();
    let cooked2 = |ip: &[u8]| [&[8, 0][..], &[0; 18], ip].concat();
    let padded = |ip: &[u8]| [&[0; 12][..], &[8, 0], ip, &[0xee; 20]].concat();
    type Form<'f> = &'f dyn Fn(&[u8]) -> Vec<u8>;
    let forms: [(LinkType, Form<'_>); 9] = [
        (LinkType::ETHERNET, &padded),
        (LinkType::ETHERNET, &vlan),
        (LinkType::LINUX_SLL, &|ip| [&[0; 14][..], &[8, 0], ip].concat()),
        (LinkType::LINUX_SLL2, &cooked2),
        (LinkType::NULL, &|ip| [&[2, 0, 0, 0][..], ip].concat()),
        (LinkType::NULL, &|ip| [&[0, 0, 0, 2][..], ip].concat()),
        (LinkType::LOOP, &|ip| [&[0, 0, 0, 2][..], ip].concat()),
        (LinkType::RAW, &|ip| ip.to_vec()),
        (LinkType::IPV4, &|ip| ip.to_vec()),
    ];
    for (link, form) in forms {
        let packets: Vec<_> = packets.iter().map(|packet| (link, form(&packet[14..]))).collect();
        assert_eq!(run(&packets, &Limits::DEFAULT).bytes[0], b"hello", "{link}");
    }
}

/// Moves a segment to IPv6, after extension headers, whole or in fragments.
fn over_ipv6(ethernet: &[u8], fragment_size: Option<usize>) -> Vec<Vec<u8>> {
    let tcp = &ethernet[34..];
    let header = |next: u8, length: usize| {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend(u16::try_from(length).unwrap().to_be_bytes());
        header.extend([next, 64]);
        let (low, high) = ([0x20, 1, 0xd, 0xb8], [0; 11]);
        let from_client = ethernet[29] == 1;
        for end in if from_client { [1, 2] } else { [2, 1] } {
            header.extend(low);
            header.extend(high);
            header.push(end);
        }
        header
    };
    let hop_by_hop = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    match fragment_size {
        None => {
            let body = [&hop_by_hop(60)[..], &hop_by_hop(6), tcp].concat();
            vec![[header(0, body.len()), body].concat()]
        }
        Some(size) => {
            let mut packets = Vec::new();
            for (index, piece) in tcp.chunks(size).enumerate() {
                let more = u16::from((index + 1) * size < tcp.len());
                let place = u16::try_from(index * size).unwrap() | more;
                let mut body = hop_by_hop(44);
                body.extend([6, 0]);
                body.extend(place.to_be_bytes());
                body.extend(&ethernet[38..42]);
                body.extend(piece);
                packets.push([header(0, body.len()), body].concat());
            }
            packets.reverse();
            packets
        }
    }
}

#[test]
fn ipv6_with_extension_headers_and_fragments() {
    let (client, server) = ends();
    for size in [None, Some(8), Some(16)] {
        let mut talk = SyntheticTcp::new(client, server);
        let mut packets = talk.open();
        packets.extend(talk.data(Side::Client, b"a longer question than before"));
        let packets: Vec<_> = packets
            .iter()
            .flat_map(|packet| over_ipv6(packet, size))
            .map(|packet| (LinkType::RAW, packet))
            .collect();
        let recorder = run(&packets, &Limits::DEFAULT);
        assert_eq!(recorder.bytes[0], b"a longer question than before", "{size:?}");
    }
}

#[test]
fn udp_datagrams_are_reported_one_by_one() {
    let datagram = |from: u8, payload: &[u8]| {
        let mut packet = vec![0x45, 0];
        packet.extend(u16::try_from(28 + payload.len()).unwrap().to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        packet.extend(if from == 1 {
            [10, 0, 0, 1, 10, 0, 0, 2]
        } else {
            [10, 0, 0, 2, 10, 0, 0, 1]
        });
        packet.extend(if from == 1 { [0x10, 0, 0, 53] } else { [0, 53, 0x10, 0] });
        packet.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
        packet.extend([0, 0]);
        packet.extend_from_slice(payload);
        (LinkType::RAW, packet)
    };
    let recorder = run(&[datagram(1, b"ask"), datagram(2, b"tell")], &Limits::DEFAULT);
    assert_eq!(recorder.bytes, [b"ask".to_vec(), b"tell".to_vec()]);
    assert_eq!(
        (recorder.opened, recorder.closed),
        (vec![(true, false)], vec![Closed::EndOfCapture])
    );
}

#[test]
fn a_capture_that_starts_midstream_is_marked() {
    let (client, server) = ends();
    let mut talk = SyntheticTcp::new(client, server);
    talk.open();
    talk.data(Side::Client, b"lost");
    let mut packets = talk.data(Side::Server, b"answer");
    packets.extend(talk.data(Side::Client, b"question"));
    let recorder = run(&ethernet(packets), &Limits::DEFAULT);
    assert_eq!(recorder.bytes, [b"question".to_vec(), b"answer".to_vec()]);
    assert_eq!((recorder.opened, recorder.client_port), (vec![(false, true)], vec![49_152]));
}

#[test]
fn acknowledged_bytes_are_not_waited_for() {
    let (client, server) = ends();
    let mut talk = SyntheticTcp::new(client, server);
    let mut packets = talk.open();
    talk.data(Side::Client, b"lost");
    packets.extend(talk.data(Side::Server, b"heard you"));
    packets.extend(talk.data(Side::Client, b"next"));
    let recorder = run(&ethernet(packets), &Limits::DEFAULT);
    assert_eq!(recorder.bytes[0], b"next");
    assert_eq!(recorder.gaps[0], [(0, 4)]);
}

#[test]
fn resets_and_reused_ports_start_new_conversations() {
    let (client, server) = ends();
    let mut first = SyntheticTcp::new(client, server);
    let mut packets = first.open();
    packets.extend(first.data(Side::Client, b"one"));
    let mut reset = first.data(Side::Client, b"x").remove(0);
    reset.truncate(54);
    reset[16..18].copy_from_slice(&40_u16.to_be_bytes());
    reset[47] = 4;
    packets.push(reset);
    let mut second = SyntheticTcp::new(client, server);
    packets.extend(second.open());
    packets.extend(second.data(Side::Client, b"two"));
    let recorder = run(&ethernet(packets), &Limits::DEFAULT);
    assert_eq!(recorder.bytes[0], b"onetwo");
    assert_eq!(recorder.closed, [Closed::Reset, Closed::EndOfCapture]);
    assert_eq!(recorder.opened, [(false, false), (false, false)]);
}

#[test]
fn the_quietest_conversation_is_evicted() {
    let limits = Limits { conversations: 4, ..Limits::DEFAULT };
    let mut packets = Vec::new();
    for port in 0..10 {
        let (mut client, server) = ends();
        client.set_port(50_000 + port);
        packets.extend(SyntheticTcp::new(client, server).open());
    }
    let recorder = run(&ethernet(packets), &limits);
    assert_eq!(recorder.opened.len(), 10);
    assert_eq!(recorder.closed.iter().filter(|why| **why == Closed::Evicted).count(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Segments in any order, repeated, and merged with their neighbours.
    #[test]
    fn reordering_and_repeating_change_nothing(
        payload in proptest::collection::vec(any::<u8>(), 1..3000),
        size in 1..200_usize,
        seed: u64,
    ) {
        let (client, server) = ends();
        let mut talk = SyntheticTcp::new(client, server);
        let opening = talk.open();
        let mut again = talk.clone();
        let mut data = segments(&mut talk, Side::Client, &payload, size);
        // Other segment boundaries: overlaps with the same bytes.
        data.extend(segments(&mut again, Side::Client, &payload, size + 7));
        let mut sampler = Sampler::new(seed);
        for at in (1..data.len()).rev() {
            let other = usize::try_from(sampler.below(at as u64 + 1)).unwrap();
            data.swap(at, other);
        }
        let mut packets = opening;
        packets.extend(data);
        let recorder = run(&ethernet(packets), &Limits::DEFAULT);
        prop_assert_eq!(&recorder.bytes[0], &payload);
        prop_assert_eq!(&recorder.gaps[0], &vec![]);
    }

    /// Every dropped segment is a reported gap, and all other bytes are delivered.
    #[test]
    fn dropped_segments_are_reported_as_gaps(
        pieces in 2..60_usize,
        drops in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let payload: Vec<u8> = (0..pieces * 10).map(|at| at.to_le_bytes()[0]).collect();
        let (client, server) = ends();
        let mut talk = SyntheticTcp::new(client, server);
        let mut packets = talk.open();
        let mut kept = Vec::new();
        let mut lost = 0;
        let data = segments(&mut talk, Side::Client, &payload, 10);
        for (index, segment) in data.into_iter().enumerate() {
            if drops[index] && index + 1 < pieces {
                lost += 10;
            } else {
                kept.extend_from_slice(&payload[index * 10..index * 10 + 10]);
                packets.push(segment);
            }
        }
        let recorder = run(&ethernet(packets), &Limits::DEFAULT);
        prop_assert_eq!(&recorder.bytes[0], &kept);
        let named: u64 = recorder.gaps[0].iter().map(|gap| gap.1).sum();
        prop_assert_eq!(named, lost);
    }

    /// Reading byte by byte yields the same records.
    #[test]
    fn chunking_does_not_affect_reading(seed: u64, classic: bool, length in 0..300_usize) {
        let mut sampler = Sampler::new(seed);
        let frames: Vec<Vec<u8>> = (0..5).map(|_| sampler.bytes(length)).collect();
        let mut file = Vec::new();
        if classic {
            let mut writer = worldwire_capture::ClassicWriter::new(&mut file, LinkType::RAW).unwrap();
            for (at, frame) in (0..).zip(&frames) {
                let time = Timestamp::from_parts(at, 999_999_999);
                writer.packet(time, frame, u32::try_from(length).unwrap()).unwrap();
            }
        } else {
            let mut writer = worldwire_capture::CaptureWriter::new(&mut file, &[]).unwrap();
            let interface = writer.interface(LinkType::RAW).unwrap();
            for (at, frame) in (0..).zip(&frames) {
                let time = Timestamp::from_parts(at, 999_999_999);
                let length = u32::try_from(length).unwrap();
                writer.packet(interface, time, frame, length).unwrap();
            }
        }
        let read = |source: &mut dyn std::io::Read| {
            let mut reader = CaptureReader::new(source, &Limits::DEFAULT).unwrap();
            let mut packets = Vec::new();
            while let Some(record) = reader.next().unwrap() {
                if let Record::Packet(packet) = record {
                    packets.push((packet.number, packet.time, packet.data.to_vec()));
                }
            }
            packets
        };
        let whole = read(&mut file.as_slice());
        let wanted: Vec<_> = (0..)
            .zip(&frames)
            .map(|(at, frame)| {
                let number = u64::try_from(at).unwrap() + 1;
                (number, Timestamp::from_parts(at, 999_999_999), frame.clone())
            })
            .collect();
        prop_assert_eq!(&whole, &wanted);
        prop_assert_eq!(&read(&mut Slowly(&file)), &wanted);
    }
}

/// Yields one byte at a time.
struct Slowly<'f>(&'f [u8]);

impl std::io::Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match (self.0.split_first(), buffer.first_mut()) {
            (Some((first, rest)), Some(place)) => {
                *place = *first;
                self.0 = rest;
                Ok(1)
            }
            _ => Ok(0),
        }
    }
}
