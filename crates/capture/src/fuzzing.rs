//! The fuzz targets of captures.

use std::collections::HashMap;

use worldwire_core::testing::Target;
use worldwire_core::{Limits, Side};

use crate::{
    CaptureReader, CaptureWriter, ClassicWriter, Conversations, Event, EventKind, LinkType, Packet,
    Record, SyntheticTcp, Timestamp,
};

/// Limits small enough for a fuzzer to reach.
pub const SMALL: Limits = Limits {
    stream_bytes: 4096,
    streams_bytes: 8192,
    stream_pieces: 16,
    conversations: 8,
    fragments: 16,
    capture_block_bytes: 1 << 16,
    ..Limits::DEFAULT
};

/// Reads arbitrary bytes as a capture file and follows its packets.
///
/// # Panics
/// If the reported events are inconsistent.
pub fn reader(data: &[u8]) {
    let Ok(mut capture) = CaptureReader::new(data, &SMALL) else {
        return;
    };
    let mut watch = Watch::default();
    let mut conversations = Conversations::new(&SMALL);
    let mut number = 0;
    loop {
        match capture.next() {
            Ok(Some(Record::Packet(packet))) => {
                number += 1;
                assert_eq!(packet.number, number);
                conversations.push(&packet, &mut |event| watch.event(event));
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "more than one line: {error}");
                assert!(matches!(capture.next(), Ok(None)), "the capture continues after an error");
                break;
            }
        }
    }
    conversations.finish(&mut |event| watch.event(event));
    watch.end(&conversations);
}

/// Reads arbitrary bytes as TCP segments between two ends. Each segment has eight bytes (ends,
/// flags, sequence number, length) and a payload.
///
/// # Panics
/// If the reported events are inconsistent, or more bytes are held back than allowed.
pub fn reassembly(data: &[u8]) {
    let mut watch = Watch::default();
    let mut conversations = Conversations::new(&SMALL);
    let (mut rest, mut number) = (data, 0);
    while let [who, flags, s0, s1, s2, s3, length, acknowledge, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        number += 1;
        let packet = raw_tcp(*who, *flags, [*s3, *s2, *s1, *s0], *acknowledge, payload);
        let packet = Packet {
            number,
            time: Timestamp::from_nanos(i64::from(*acknowledge)),
            interface: 0,
            link: LinkType::RAW,
            data: &packet,
            original_length: u32::try_from(packet.len()).unwrap_or(0) + u32::from(who >> 7) * 9,
            unusable: None,
            offset: 0,
        };
        conversations.push(&packet, &mut |event| watch.event(event));
        assert!(conversations.held_bytes() <= SMALL.streams_bytes, "too many bytes are held back");
    }
    conversations.finish(&mut |event| watch.event(event));
    watch.end(&conversations);
}

/// An IPv4 packet with a TCP segment; a few bits select the two ends.
fn raw_tcp(who: u8, flags: u8, sequence: [u8; 4], acknowledge: u8, payload: &[u8]) -> Vec<u8> {
    let mut ends = [(10, 1000 + u16::from(who >> 1 & 7)), (1, 80)];
    if who & 1 != 0 {
        ends.reverse();
    }
    let [(from, from_port), (to, to_port)] = ends;
    let total = u16::try_from(40 + payload.len()).unwrap_or(40);
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
    packet.extend(from_port.to_be_bytes());
    packet.extend(to_port.to_be_bytes());
    packet.extend(sequence);
    packet.extend(u32::from(acknowledge).to_be_bytes());
    packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

/// Checks the events: every gap in a stream is reported, and nothing is reported twice.
#[derive(Debug, Default)]
struct Watch {
    open: HashMap<u64, [u64; 2]>,
    opened: u64,
    closed: u64,
}

impl Watch {
    fn event(&mut self, event: Event<'_>) {
        let mut next = |side: Side, offset: u64, length: u64| {
            let Some(streams) = self.open.get_mut(&event.conversation) else {
                panic!("conversation {} is not open", event.conversation);
            };
            assert_eq!(streams[side.index()], offset, "bytes were skipped or reported twice");
            assert!(length > 0, "an empty event");
            streams[side.index()] += length;
        };
        match event.kind {
            EventKind::Opened(_) => {
                assert_eq!(event.conversation, self.opened, "numbers are not consecutive");
                self.opened += 1;
                assert!(self.open.insert(event.conversation, [0; 2]).is_none());
            }
            EventKind::Data { side, offset, bytes } => next(side, offset, bytes.len() as u64),
            EventKind::Gap { side, offset, length } => next(side, offset, length),
            EventKind::Datagram { .. } => {
                assert!(self.open.contains_key(&event.conversation));
            }
            EventKind::Closed(_) => {
                assert!(self.open.remove(&event.conversation).is_some(), "closed twice");
                self.closed += 1;
            }
        }
    }

    fn end(&self, conversations: &Conversations) {
        assert_eq!(self.opened, self.closed, "a conversation did not end");
        assert_eq!(conversations.held_bytes(), 0, "bytes are still held back");
    }
}

/// Small captures of each format.
fn captures() -> Vec<Vec<u8>> {
    let ends = ("192.0.2.1:49152".parse(), "192.0.2.2:14617".parse());
    let (Ok(client), Ok(server)) = ends else {
        return Vec::new();
    };
    let mut talk = SyntheticTcp::new(client, server);
    let mut packets = talk.open();
    packets.extend(talk.data(Side::Client, b"hello"));
    packets.extend(talk.data(Side::Server, &[7; 3000]));
    packets.extend(talk.close());
    let mut seeds = Vec::new();
    for link in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL, LinkType::NULL] {
        let frames: Vec<Vec<u8>> = packets.iter().map(|packet| relink(packet, link)).collect();
        let mut file = Vec::new();
        if let Ok(mut writer) = ClassicWriter::new(&mut file, link) {
            for frame in &frames {
                let _ = writer.packet(Timestamp::from_parts(1, 0), frame, length(frame));
            }
        }
        seeds.push(file);
        let mut file = Vec::new();
        if let Ok(mut writer) = CaptureWriter::new(&mut file, &["a comment"]) {
            let interface = writer.interface(link).unwrap_or(0);
            let _ = writer.secrets(crate::SecretsKind::WORLDWIRE, b"secret");
            for frame in &frames {
                let time = Timestamp::from_parts(1, 5);
                let _ = writer.packet(interface, time, frame, length(frame));
            }
        }
        seeds.push(file);
    }
    seeds
}

fn length(frame: &[u8]) -> u32 {
    u32::try_from(frame.len()).unwrap_or(0)
}

/// The same packet with a different link type.
fn relink(ethernet: &[u8], link: LinkType) -> Vec<u8> {
    let ip = ethernet.get(14..).unwrap_or(&[]);
    match link {
        LinkType::ETHERNET => ethernet.to_vec(),
        LinkType::LINUX_SLL => [&[0; 14][..], &[8, 0], ip].concat(),
        LinkType::NULL => [&[2, 0, 0, 0][..], ip].concat(),
        _ => ip.to_vec(),
    }
}

/// Segments in order, late and repeated, with all flags.
fn segments() -> Vec<Vec<u8>> {
    let segment = |who: u8, flags: u8, sequence: u32, payload: &[u8]| {
        let mut bytes = vec![who, flags];
        bytes.extend(sequence.to_le_bytes());
        bytes.push(u8::try_from(payload.len()).unwrap_or(0));
        bytes.push(3);
        bytes.extend_from_slice(payload);
        bytes
    };
    let start = [segment(0, 2, 99, &[]), segment(1, 18, 49, &[]), segment(0, 16, 100, &[])];
    let tails = [
        vec![segment(0, 24, 100, b"ab"), segment(1, 24, 50, b"xyz"), segment(0, 17, 102, &[])],
        vec![segment(0, 24, 104, b"ef"), segment(0, 24, 100, b"abcd"), segment(0, 24, 100, b"a")],
        vec![segment(0, 24, 110, b"late"), segment(1, 4, 50, &[]), segment(0, 2, 7, &[])],
        vec![segment(0x80, 24, 100, b"cut"), segment(1, 17, 50, b"bye"), segment(0, 17, 112, &[])],
    ];
    tails.into_iter().map(|tail| [start.concat(), tail.concat()].concat()).collect()
}

/// All targets of this crate.
pub static TARGETS: &[Target] = &[
    Target { name: "capture_reader", run: reader, seeds: captures },
    Target { name: "capture_reassembly", run: reassembly, seeds: segments },
];
