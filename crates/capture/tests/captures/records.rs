//! Records of truncated, compressed, damaged and chunked capture files.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use worldwire_capture::{
    CaptureError, CaptureReader, CaptureWriter, ClassicWriter, Conversations, LinkType, Record,
    SecretsKind, Timestamp, Unusable, fuzzing,
};
use worldwire_core::Limits;

/// Every record as a line, and the error at the end.
fn lines(input: impl Read) -> (String, Option<CaptureError>) {
    lines_within(input, &Limits::DEFAULT)
}

fn lines_within(input: impl Read, limits: &Limits) -> (String, Option<CaptureError>) {
    let mut text = String::new();
    let mut reader = match CaptureReader::new(input, limits) {
        Ok(reader) => reader,
        Err(error) => return (text, Some(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => writeln!(text, "{}", line(&record)).expect("memory"),
            Ok(None) => return (text, None),
            Err(error) => {
                assert!(matches!(reader.next(), Ok(None)), "nothing after an error");
                return (text, Some(error));
            }
        }
    }
}

fn line(record: &Record<'_>) -> String {
    match record {
        Record::Packet(packet) => format!(
            "{} {} {}:{} {:?}/{} @{}",
            packet.number,
            packet.time,
            packet.interface,
            packet.link.0,
            String::from_utf8_lossy(packet.data),
            packet.original_length,
            packet.offset
        ),
        Record::Secrets { kind, data, offset } => {
            format!("secrets {:#x} {:?} @{offset}", kind.0, String::from_utf8_lossy(data))
        }
        _ => "unknown".to_owned(),
    }
}

fn error(input: impl Read) -> String {
    lines(input).1.map_or_else(String::new, |error| error.to_string())
}

/// A file of 32-bit words in one byte order.
fn words(big: bool, words: &[u32]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| if big { word.to_be_bytes() } else { word.to_le_bytes() })
        .collect()
}

/// A block with both lengths.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12).expect("a small block");
    [words(big, &[kind, length]), body.to_vec(), words(big, &[length])].concat()
}

fn section(big: bool) -> Vec<u8> {
    let version = if big { 0x0001_0000 } else { 1 };
    block(big, 0x0A0D_0D0A, &words(big, &[0x1A2B_3C4D, version, u32::MAX, u32::MAX]))
}

/// An interface with one option of eight bytes.
fn interface(big: bool, link: u16, code: u16, value: &[u8]) -> Vec<u8> {
    let half = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let length = u16::try_from(value.len()).expect("a small option");
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    let body = [&half(link)[..], &[0; 6], &half(code), &half(length), value, &padding].concat();
    block(big, 1, &body)
}

fn enhanced(big: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("a small packet");
    let (high, low) = ((ticks >> 32) as u32, u32::try_from(ticks & 0xFFFF_FFFF).expect("low"));
    let padding = vec![0; data.len().next_multiple_of(4) - data.len()];
    let head = words(big, &[interface, high, low, length, length + 1]);
    block(big, 6, &[head, data.to_vec(), padding].concat())
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

/// The two formats.
#[derive(Clone, Copy)]
enum Format {
    Pcap,
    Pcapng,
}

/// A file of either format with every kind of record.
fn sample(format: Format) -> Vec<u8> {
    let mut file = Vec::new();
    match format {
        Format::Pcap => {
            let mut writer = ClassicWriter::new(&mut file, LinkType::ETHERNET).expect("memory");
            for (nanos, data) in (0..).zip(["abc", "abcd", "abcde", "abcdef"]) {
                let time = Timestamp::from_parts(1_700_000_000, nanos);
                writer.packet(time, data.as_bytes(), 7).expect("memory");
            }
        }
        Format::Pcapng => {
            let mut writer = CaptureWriter::new(&mut file, &["made", "by hand"]).expect("memory");
            writer.secrets(SecretsKind::WORLDWIRE, b"[[ki.stream]]").expect("memory");
            let first = writer.interface(LinkType::ETHERNET).expect("memory");
            let second = writer.interface(LinkType::RAW).expect("memory");
            let time = Timestamp::from_parts(1_700_000_000, 5);
            writer.packet(first, time, b"abc", 3).expect("memory");
            writer.packet(second, time, b"", 1).expect("memory");
            writer.packet(second, time, b"abcdefgh", 8).expect("memory");
        }
    }
    file
}

#[test]
fn every_classic_magic_in_both_orders() {
    for (magic, header, time) in [
        (0xA1B2_C3D4, 4, "12.000005000"),
        (0xA1B2_3C4D, 4, "12.000000005"),
        (0xA1B2_CD34, 6, "12.000005000"),
    ] {
        for big in [false, true] {
            // The upper half describes the frame check sequence, not the link type.
            let version = if big { 0x0002_0004 } else { 0x0004_0002 };
            let mut file = words(big, &[magic, version, 0, 0, 65_535, 0x1400_0065]);
            let record = words(big, &[12, 5, 3, 9, 0, 0]);
            file.extend(&record[..header * 4]);
            file.extend(b"abc");
            let (text, error) = lines(&file[..]);
            assert!(error.is_none());
            assert_eq!(text, format!("1 {time} 0:101 \"abc\"/9 @24\n"), "{magic:x} {big}");
        }
    }
}

#[test]
fn the_first_comment_on_a_section_is_kept() {
    let long = "é".repeat(1_000);
    for (comments, kept) in [
        (&[][..], None),
        (&["", "second"], Some(String::new())),
        (&["first", "second"], Some("first".to_owned())),
        (&[&*long], Some("é".repeat(128))),
    ] {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, comments).unwrap();
        let interface = writer.interface(LinkType::ETHERNET).unwrap();
        writer.packet(interface, Timestamp::from_nanos(0), &[1], 1).unwrap();
        let mut reader = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
        assert_eq!(reader.comment(), None, "nothing was read yet");
        reader.next().unwrap().unwrap();
        assert_eq!(reader.comment(), kept.as_deref());
    }
}

#[test]
fn sections_interfaces_and_clocks() {
    let mut file = Vec::new();
    for big in [false, true] {
        file.extend(section(big));
        file.extend(interface(big, 1, 1, b"eth"));
        file.extend(interface(big, 101, 9, &[9]));
        // Two to the power of -10, and ten to the power of -12.
        file.extend(interface(big, 101, 9, &[0x8A]));
        file.extend(interface(big, 101, 9, &[12]));
        let hour = 3600_i64;
        let shift = if big { hour.to_be_bytes() } else { hour.to_le_bytes() };
        file.extend(interface(big, 101, 14, &shift));
        file.extend(block(big, 0x0BAD, &[7; 400]));
        for (number, ticks) in [(0, 1_000_001), (1, 7), (2, 1536), (3, 2_000), (4, 1)] {
            file.extend(enhanced(big, number, ticks, b"p"));
        }
        // A simple packet, and an obsolete one with a drop counter after its interface.
        file.extend(block(big, 3, &[words(big, &[2]), b"ab\0\0".to_vec()].concat()));
        let place = if big { [0, 1, 0, 9] } else { [1, 0, 9, 0] };
        let old = [place.to_vec(), words(big, &[0, 8, 1, 1]), b"o\0\0\0".to_vec()].concat();
        file.extend(block(big, 2, &old));
    }
    let (text, error) = lines(&file[..]);
    assert!(error.is_none(), "{error:?}");
    let told: Vec<&str> = text.lines().map(|line| line.split(" @").next().unwrap()).collect();
    let expected = [
        "1 1.000001000 0:1 \"p\"/2",
        "2 0.000000007 1:101 \"p\"/2",
        "3 1.500000000 2:101 \"p\"/2",
        "4 0.000000002 3:101 \"p\"/2",
        "5 3600.000001000 4:101 \"p\"/2",
        "6 3600.000001000 0:1 \"ab\"/2",
        "7 0.000000008 1:101 \"o\"/1",
        "8 1.000001000 5:1 \"p\"/2",
        "9 0.000000007 6:101 \"p\"/2",
        "10 1.500000000 7:101 \"p\"/2",
        "11 0.000000002 8:101 \"p\"/2",
        "12 3600.000001000 9:101 \"p\"/2",
        "13 3600.000001000 5:1 \"ab\"/2",
        "14 0.000000008 6:101 \"o\"/1",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_written_file_can_be_read() {
    let file = sample(Format::Pcapng);
    let (text, error) = lines(&file[..]);
    assert!(error.is_none());
    let told: Vec<&str> = text.lines().map(|line| line.split(" @").next().unwrap()).collect();
    let expected = [
        "secrets 0x57574b46 \"[[ki.stream]]\"",
        "1 1700000000.000000005 0:1 \"abc\"/3",
        "2 1700000000.000000005 1:101 \"\"/1",
        "3 1700000000.000000005 1:101 \"abcdefgh\"/8",
    ];
    assert_eq!(told, expected);
    assert_eq!(file, sample(Format::Pcapng), "the same calls give the same bytes");
}

#[test]
fn unrepresentable_records_are_refused() {
    let mut writer = CaptureWriter::new(Vec::new(), &[]).unwrap();
    let early = Timestamp::from_nanos(-1);
    assert!(writer.packet(0, early, b"", 0).is_err(), "interface 0 does not exist");
    writer.interface(LinkType::RAW).unwrap();
    let error = writer.packet(0, early, b"", 0).unwrap_err();
    assert!(error.to_string().contains("before 1970"), "{error}");
    assert!(CaptureWriter::new(Vec::new(), &[&"x".repeat(65_536)]).is_err());
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::RAW).unwrap();
    assert!(writer.packet(early, b"", 0).is_err());
    assert!(writer.packet(Timestamp::from_parts(1 << 32, 0), b"", 0).is_err());
    // Failed calls write nothing.
    assert_eq!(writer.into_inner().len(), 24);
}

#[test]
fn gzipped_files_are_unpacked() {
    for format in [Format::Pcap, Format::Pcapng] {
        let file = sample(format);
        let (middle, plain) = (file.len() / 2, lines(&file[..]).0);
        let members = [gzip(&file[..middle]), gzip(&file[middle..])].concat();
        for packed in [gzip(&file), members] {
            let (text, error) = lines(&packed[..]);
            assert!(error.is_none());
            assert_eq!(text, plain);
        }
    }
}

#[test]
fn a_truncated_file_yields_its_records_and_one_error() {
    for format in [Format::Pcap, Format::Pcapng] {
        let file = sample(format);
        let whole = lines(&file[..]).0;
        for end in 1..file.len() {
            let (text, error) = lines(&file[..end]);
            assert!(whole.starts_with(&text), "{end}");
            match error {
                // A cut between two records cannot be detected.
                None => assert_eq!(lines(&file[..end]).0, text),
                Some(CaptureError::Truncated { offset, wanted, found, .. }) => {
                    assert_eq!(offset + found, end as u64, "{end}");
                    assert!(wanted > found);
                }
                Some(CaptureError::NotACapture { .. }) => assert!(end < 4),
                Some(error) => panic!("{end}: {error}"),
            }
        }
    }
    let message = error(&sample(Format::Pcap)[..50]);
    assert_eq!(message, "truncated at offset 43: a packet header needs 16 bytes, but has only 7");
}

#[test]
fn a_truncated_gzip_file_is_reported() {
    // Large and incompressible, so that a good part can be unpacked.
    let mut file = Vec::new();
    let mut writer = ClassicWriter::new(&mut file, LinkType::RAW).unwrap();
    let mut noise = 1_u32;
    for number in 0..1000 {
        let data: Vec<u8> = (0..1000)
            .map(|_| {
                noise = noise.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
                noise.to_be_bytes()[0]
            })
            .collect();
        writer.packet(Timestamp::from_parts(number, 0), &data, 1000).unwrap();
    }
    let packed = gzip(&file);
    for end in [3, packed.len() / 2, packed.len() - 20, packed.len() - 1] {
        let (text, error) = lines(&packed[..end]);
        assert!(matches!(error, Some(CaptureError::Truncated { .. })), "{end}: {error:?}");
        assert!(text.lines().count() * packed.len() / 1000 + 70_000 > end, "{end}");
    }
    let mut damaged = packed.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    let (text, error) = lines(&damaged[..]);
    assert!(text.lines().count() > 900);
    assert!(matches!(error, Some(CaptureError::Gzip { .. })), "{error:?}");
}

#[test]
fn other_formats_are_refused_by_name() {
    assert_eq!(error(&b""[..]), "the input is empty");
    let text = error(&b"No.,Time,Source\n"[..]);
    let expected = "not a pcap or pcapng capture: it starts with 4e 6f 2e 2c 54 69 6d 65, which \
                    looks like text";
    assert_eq!(text, expected);
    assert!(error(&gzip(b"some text")[..]).ends_with("text compressed with gzip"));
    assert!(error(&gzip(&gzip(b"x"))[..]).contains("gzip inside gzip"));
    assert!(error(&b"PK\x03\x04rest"[..]).contains("zip archive"));
    assert!(
        error(&b"\xFF\x00\x01"[..]).contains("ff 00 01, which matches no known capture format")
    );
    assert!(matches!(lines(&gzip(b"")[..]).1, Some(CaptureError::Empty)));
}

#[test]
fn contradictory_fields_are_reported() {
    let file = |blocks: &[Vec<u8>]| [section(false), blocks.concat()].concat();
    let cases = [
        (
            words(false, &[6, 11, 0]),
            "bad packet block at offset 28: its length is less than 12 (11)",
        ),
        (
            words(false, &[9, 13, 0]),
            "bad block at offset 28: its length is not a multiple of 4 (13)",
        ),
        (words(false, &[9, 16, 0, 20]), "bad block at offset 28: its two lengths differ (16)"),
        (
            block(false, 10, &words(false, &[1, 9, 0])),
            "bad secrets block at offset 28: its secrets are longer than the block (9)",
        ),
        (
            block(false, 1, &[]),
            "bad interface description at offset 28: it is too short for its \
                                fields (12)",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(error(&file(&[bytes])[..]), message);
    }
    let mut bad = section(false);
    bad[8] = 0;
    assert!(error(&bad[..]).contains("byte-order magic is invalid"));
}

#[test]
fn an_inconsistent_packet_block_affects_only_itself() {
    let mut long = enhanced(false, 0, 5, b"long");
    long[20] = 9;
    let blocks = [
        section(false),
        interface(false, 1, 9, &[9]),
        enhanced(false, 0, 7, b"one"),
        enhanced(false, 3, 0, b"nobody"),
        long,
        // A block that is too short for its fields.
        block(false, 6, &words(false, &[0, 0])),
        block(false, 3, &words(false, &[9, 0])),
        enhanced(false, 0, 8, b"two"),
    ];
    let file = blocks.concat();
    let mut reader = CaptureReader::new(&file[..], &Limits::DEFAULT).expect("a capture");
    let mut conversations = Conversations::new(&Limits::DEFAULT);
    let mut told = Vec::new();
    while let Some(record) = reader.next().expect("no error") {
        let Record::Packet(packet) = record else { panic!("{record:?}") };
        told.push((packet.number, packet.unusable, packet.data.to_vec()));
        conversations.push(&packet, &mut |_| {});
    }
    let (nobody, block) = (Some(Unusable::Interface), Some(Unusable::Block));
    let whys: Vec<_> = told.iter().map(|(_, why, _)| *why).collect();
    assert_eq!(whys, [None, nobody, block, block, block, None]);
    assert_eq!(told.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!([&told[0].2[..], &told[5].2[..]], [b"one", b"two"]);
    assert!(told[1..5].iter().all(|(.., data)| data.is_empty()));
    let counted = conversations.unusable();
    assert!(counted.contains(&(Unusable::Interface, 1)) && counted.contains(&(Unusable::Block, 3)));
}

#[test]
fn limits_are_named() {
    let limits = Limits { capture_block_bytes: 6, ..Limits::DEFAULT };
    let (text, error) = lines_within(&sample(Format::Pcap)[..], &limits);
    assert_eq!(text.lines().count(), 4);
    assert!(error.is_none());
    let limits = Limits { capture_block_bytes: 5, ..Limits::DEFAULT };
    let (text, error) = lines_within(&sample(Format::Pcap)[..], &limits);
    assert_eq!(text.lines().count(), 3);
    let message = error.unwrap().to_string();
    assert_eq!(
        message,
        "limit exceeded at offset 84: 6 requested, 5 allowed (capture_block_bytes)"
    );
    // Skipped blocks are not limited, because they are not kept.
    let unknown = [section(false), block(false, 0x0BAD, &[0; 1000])].concat();
    let limits = Limits { capture_block_bytes: 100, ..Limits::DEFAULT };
    assert!(lines_within(&unknown[..], &limits).1.is_none());
}

/// Yields a few bytes at a time, with an interruption before each.
struct Dribble<'a> {
    rest: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn % 2 == 1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.sizes[self.turn % self.sizes.len()].min(room.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(size);
        room[..size].copy_from_slice(now);
        self.rest = rest;
        Ok(size)
    }
}

#[test]
fn a_read_error_is_reported() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    let file = sample(Format::Pcap);
    let (text, error) = lines(file.chain(Failing));
    assert_eq!(text.lines().count(), 4);
    assert_eq!(error.unwrap().to_string(), "cannot read the capture at offset 106: unplugged");
}

type Packets = Vec<(u64, Vec<u8>, u32)>;

fn packets() -> impl Strategy<Value = Packets> {
    let data = prop::collection::vec(any::<u8>(), 0..300);
    prop::collection::vec((0..1_u64 << 61, data, any::<u32>()), 0..20)
}

proptest! {
    #[test]
    fn written_files_can_be_read_back(packets in packets(), links in prop::collection::vec(any::<u16>(), 1..4)) {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, &[]).unwrap();
        for link in &links {
            writer.interface(LinkType(*link)).unwrap();
        }
        for (number, (nanos, data, length)) in packets.iter().enumerate() {
            let interface = u32::try_from(number % links.len()).unwrap();
            let time = Timestamp::from_nanos(i64::try_from(*nanos).unwrap());
            writer.packet(interface, time, data, *length).unwrap();
        }
        let mut reader = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
        for (number, (nanos, data, length)) in packets.iter().enumerate() {
            let Some(Record::Packet(packet)) = reader.next().unwrap() else { panic!("no packet") };
            prop_assert_eq!(packet.number, number as u64 + 1);
            prop_assert_eq!(packet.time.nanos().unsigned_abs(), *nanos);
            prop_assert_eq!(packet.link.0, links[number % links.len()]);
            prop_assert_eq!((packet.data, packet.original_length), (&data[..], *length));
        }
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn written_classic_files_can_be_read_back(packets in packets(), link: u16) {
        let mut file = Vec::new();
        let mut writer = ClassicWriter::new(&mut file, LinkType(link)).unwrap();
        for (nanos, data, length) in &packets {
            let time = Timestamp::from_nanos(i64::try_from(*nanos).unwrap());
            writer.packet(time, data, *length).unwrap();
        }
        let mut reader = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
        for (nanos, data, length) in &packets {
            let Some(Record::Packet(packet)) = reader.next().unwrap() else { panic!("no packet") };
            prop_assert_eq!(packet.time.nanos().unsigned_abs(), *nanos);
            prop_assert_eq!((packet.data, packet.original_length), (&data[..], *length));
        }
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn chunking_does_not_matter(
        pcapng: bool, packed: bool, cut in any::<prop::sample::Index>(),
        sizes in prop::collection::vec(1..50_usize, 1..6),
    ) {
        let mut file = sample(if pcapng { Format::Pcapng } else { Format::Pcap });
        if packed {
            file = gzip(&file);
        }
        file.truncate(cut.index(file.len()) + 1);
        let (text, error) = lines(&file[..]);
        for sizes in [sizes, vec![1]] {
            let (dribbled, other) = lines(Dribble { rest: &file, sizes, turn: 0 });
            prop_assert_eq!(&dribbled, &text);
            let shown = |error: &Option<CaptureError>| error.as_ref().map(ToString::to_string);
            prop_assert_eq!(shown(&other), shown(&error));
        }
    }

    #[test]
    fn random_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..400), head in 0..4) {
        let start = [&b""[..], &sample(Format::Pcap)[..24], &section(false), &section(true)];
        let start = start[usize::try_from(head).unwrap()];
        fuzzing::reader(&[start, &data].concat());
    }

    #[test]
    fn damaged_files_never_panic(
        pcapng: bool, packed: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = sample(if pcapng { Format::Pcapng } else { Format::Pcap });
        if packed {
            file = gzip(&file);
        }
        for (place, byte) in damage {
            let place = place.index(file.len());
            file[place] = byte;
        }
        fuzzing::reader(&file);
    }
}
