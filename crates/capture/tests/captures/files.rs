//! Capture files of every format, and files that are not captures.

use std::io::Write;

use worldwire_capture::{CaptureReader, CaptureWriter, LinkType, Record, SecretsKind, Timestamp};
use worldwire_core::Limits;

/// Integers in either byte order.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

fn classic(order: Order, magic: u32, fraction: u32) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend([order.u16(2), order.u16(4)].concat());
    file.extend([0; 8]);
    file.extend(order.u32(65_535));
    file.extend(order.u32(101));
    for number in [7, fraction, 3, 10] {
        file.extend(order.u32(number));
    }
    file.extend(b"abc");
    file
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12).unwrap();
    let mut block = [order.u32(kind), order.u32(length)].concat();
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(order.u32(length));
    block
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = order.u16(code).to_vec();
    option.extend(order.u16(u16::try_from(value.len()).unwrap()));
    option.extend(value);
    option.resize(4 + value.len().next_multiple_of(4), 0);
    option
}

fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1a2b_3c4d).to_vec();
    body.extend([order.u16(1), order.u16(0)].concat());
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

fn interface(order: Order, link: u16, options: &[u8]) -> Vec<u8> {
    let mut body = order.u16(link).to_vec();
    body.extend([0; 6]);
    body.extend(options);
    block(order, 1, &body)
}

fn enhanced(order: Order, interface: u32, ticks: u64, data: &[u8], options: &[u8]) -> Vec<u8> {
    let [high, low] = [ticks >> 32, ticks & 0xffff_ffff].map(|half| u32::try_from(half).unwrap());
    let length = u32::try_from(data.len()).unwrap();
    let mut body = Vec::new();
    for number in [interface, high, low, length, length + 5] {
        body.extend(order.u32(number));
    }
    body.extend(data);
    body.resize(20 + data.len().next_multiple_of(4), 0);
    body.extend(options);
    block(order, 6, &body)
}

/// The records of a file, abbreviated, and the error at its end.
fn read(file: &[u8]) -> (Vec<String>, Option<String>) {
    let mut records = Vec::new();
    let mut reader = match CaptureReader::new(file, &Limits::DEFAULT) {
        Ok(reader) => reader,
        Err(error) => return (records, Some(error.to_string())),
    };
    loop {
        match reader.next() {
            Ok(Some(Record::Packet(packet))) => records.push(format!(
                "{} {} if{} {} {} of {}",
                packet.number,
                packet.time,
                packet.interface,
                packet.link.0,
                String::from_utf8_lossy(packet.data),
                packet.original_length,
            )),
            Ok(Some(Record::Secrets { kind, data, .. })) => {
                records.push(format!("secrets {:x} {}", kind.0, String::from_utf8_lossy(data)));
            }
            Ok(Some(other)) => panic!("{other:?}"),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error.to_string())),
        }
    }
}

fn good(file: &[u8]) -> Vec<String> {
    let (records, error) = read(file);
    assert_eq!(error, None);
    records
}

#[test]
fn classic_files_of_both_orders_and_resolutions() {
    for big in [false, true] {
        let order = Order(big);
        let micro = good(&classic(order, 0xa1b2_c3d4, 5));
        assert_eq!(micro, ["1 7.000005000 if0 101 abc of 10"]);
        let nano = good(&classic(order, 0xa1b2_3c4d, 5));
        assert_eq!(nano, ["1 7.000000005 if0 101 abc of 10"]);
    }
}

#[test]
fn sections_and_interfaces_have_their_own_parameters() {
    let (little, big) = (Order(false), Order(true));
    let mut file = section(little);
    file.extend(interface(little, 101, &[]));
    file.extend(interface(little, 1, &option(little, 9, &[9])));
    // Ticks of 2^-10 seconds, shifted by a day.
    let shifted = [option(little, 9, &[0x8a]), option(little, 14, &86_400_i64.to_le_bytes())];
    file.extend(interface(little, 228, &shifted.concat()));
    file.extend(enhanced(little, 0, 1_500_000, b"one", &[]));
    file.extend(enhanced(little, 1, 1_500_000_000, b"two", &option(little, 1, b"said")));
    file.extend(enhanced(little, 2, 1536, b"three", &[]));
    file.extend(block(little, 0xbad_f00d, b"nobody knows"));
    file.extend(section(big));
    file.extend(interface(big, 113, &[]));
    file.extend(enhanced(big, 0, 2_000_001, b"four", &[]));
    let records = good(&file);
    assert_eq!(
        records,
        [
            "1 1.500000000 if0 101 one of 8",
            "2 1.500000000 if1 1 two of 8",
            "3 86401.500000000 if2 228 three of 10",
            "4 2.000001000 if3 113 four of 9",
        ]
    );
}

#[test]
fn written_files_can_be_read() {
    let mut file = Vec::new();
    let mut writer = CaptureWriter::new(&mut file, &["an example"]).unwrap();
    let interface = writer.interface(LinkType::RAW).unwrap();
    writer.secrets(SecretsKind::WORLDWIRE, b"key").unwrap();
    writer.packet(interface, Timestamp::from_parts(3, 14), b"abcde", 9).unwrap();
    let records = good(&file);
    assert_eq!(records, ["secrets 57574b46 key", "1 3.000000014 if0 101 abcde of 9",]);
}

#[test]
fn gzip_with_several_members_is_recognised() {
    let file = classic(Order(false), 0xa1b2_c3d4, 5);
    let pack = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let (head, tail) = file.split_at(30);
    assert_eq!(good(&pack(&file)), good(&file));
    assert_eq!(good(&[pack(head), pack(tail)].concat()), good(&file));
    let cut = pack(&file);
    let (_, error) = read(&cut[..cut.len() - 12]);
    assert!(error.unwrap().contains("truncated at offset"));
    assert!(read(&pack(b"hello hello")).1.unwrap().contains("text compressed with gzip"));
}

#[test]
fn other_file_formats_are_named() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "the input is empty"),
        (b"hello there", "which looks like text"),
        (b"PK\x03\x04aaaa", "which looks like a zip archive"),
        (&[0x28, 0xb5, 0x2f, 0xfd, 0, 0], "which looks like zstd"),
        (&[0xd4, 0xc3, 0xb2], "not a pcap or pcapng capture"),
        (&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], "truncated at offset 0"),
    ];
    for (file, wanted) in cases {
        let (records, error) = read(file);
        let error = error.unwrap_or_default();
        assert!(records.is_empty() && error.contains(wanted), "{wanted}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_truncated_file_yields_what_precedes_the_cut() {
    let order = Order(false);
    let mut file = section(order);
    file.extend(interface(order, 101, &[]));
    file.extend(enhanced(order, 0, 1, b"one", &[]));
    let whole = file.len();
    file.extend(enhanced(order, 0, 2, b"two", &[]));
    for end in whole + 1..file.len() {
        let (records, error) = read(&file[..end]);
        assert_eq!(records.len(), 1, "cut at {end}");
        let error = error.expect("an error");
        assert!(error.contains(&format!("truncated at offset {whole}")), "{error}");
    }
    assert_eq!(read(&file).1, None);
}

#[test]
fn impossible_lengths_are_refused_before_allocating() {
    let order = Order(false);
    let mut huge = section(order);
    huge.extend([order.u32(6), order.u32(0xffff_fff0)].concat());
    huge.extend([0; 64]);
    assert!(read(&huge).1.unwrap().contains("(capture_block_bytes)"));
    let mut odd = section(order);
    odd.extend([order.u32(6), order.u32(13)].concat());
    odd.extend([0; 64]);
    assert!(read(&odd).1.is_some());
    let mut classic = classic(order, 0xa1b2_c3d4, 5);
    let at = classic.len() - 11;
    classic[at..at + 4].copy_from_slice(&order.u32(0xffff_ffff));
    assert!(read(&classic).1.is_some());
}

/// Reads every capture in a given directory to its end.
#[test]
fn captures_in_a_folder() {
    let Some(folder) = std::env::var_os("WORLDWIRE_CAPTURES") else {
        println!("WORLDWIRE_CAPTURES is not set, nothing to read");
        return;
    };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if [".pcap", ".pcapng", ".gz", ".cap"].iter().any(|ending| name.ends_with(ending)) {
            let records = good(&std::fs::read(&path).unwrap());
            println!("{name}: {} records", records.len());
        }
    }
}
