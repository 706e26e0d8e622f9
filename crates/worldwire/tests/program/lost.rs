//! Measures how much of your captures can be decoded when segments are lost.
//!
//! `WORLDWIRE_LOST` names a directory with captures, and a key file (`.toml` or `.ini`) where one
//! is needed. One segment in a hundred is removed, once as captured, and once with each side's
//! consecutive data cut into segments of 536, 1448 and 4000 bytes. The output must match that of
//! the complete capture; the share of unaffected messages that are decoded is printed, and must be
//! at least 95 %.
//!
//! The segments with the key exchange are kept, because nothing can be decrypted without them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use worldwire_capture::{CaptureReader, ClassicWriter, LinkType, Record, SyntheticTcp, Timestamp};
use worldwire_core::{Limits, Side};

/// The data of one side of a conversation, in capture order.
struct Said {
    ends: [SocketAddrV4; 2],
    from: Side,
    bytes: Vec<u8>,
}

/// The payload of TCP over IPv4 over Ethernet, by conversation.
fn said(capture: &Path) -> Vec<Said> {
    let file = std::fs::read(capture).unwrap();
    let mut reader = CaptureReader::new(&file[..], &Limits::DEFAULT).unwrap();
    let (mut all, mut next) = (Vec::new(), BTreeMap::new());
    while let Some(record) = reader.next().unwrap() {
        let Record::Packet(packet) = record else { continue };
        let ip = &packet.data[14..];
        if ip[0] >> 4 != 4 || ip[9] != 6 {
            continue;
        }
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = &ip[usize::from(ip[0] & 15) * 4..length];
        let address = |at: usize| <[u8; 4]>::try_from(&ip[at..at + 4]).unwrap();
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let [from, to] =
            [(12, 0), (16, 2)].map(|(host, at)| SocketAddrV4::new(address(host).into(), port(at)));
        let number = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let bytes = &tcp[usize::from(tcp[12] >> 4) * 4..];
        if tcp[13] & 2 != 0 {
            next.insert((from, to), number.wrapping_add(1));
            continue;
        }
        // Retransmissions are identical.
        let Some(next) = next.get_mut(&(from, to)).filter(|next| **next == number) else {
            continue;
        };
        *next = next.wrapping_add(u32::try_from(bytes.len()).unwrap());
        let is_client = from.port() > to.port();
        let (ends, from) =
            if is_client { ([from, to], Side::Client) } else { ([to, from], Side::Server) };
        if !bytes.is_empty() {
            all.push(Said { ends, from, bytes: bytes.to_vec() });
        }
    }
    all
}

/// Joins consecutive data of one side and cuts it into new segments.
fn cut(all: &[Said], most: usize) -> Vec<Said> {
    let mut joined: Vec<Said> = Vec::new();
    let mut last: BTreeMap<[SocketAddrV4; 2], usize> = BTreeMap::new();
    for Said { ends, from, bytes } in all {
        match last.get(ends).map(|at| &mut joined[*at]).filter(|said| said.from == *from) {
            Some(said) => said.bytes.extend(bytes),
            None => {
                last.insert(*ends, joined.len());
                joined.push(Said { ends: *ends, from: *from, bytes: bytes.clone() });
            }
        }
    }
    let pieces = |said: &Said| {
        let (ends, from) = (said.ends, said.from);
        let bytes = said.bytes.chunks(most).map(<[u8]>::to_vec);
        bytes.map(|bytes| Said { ends, from, bytes }).collect::<Vec<_>>()
    };
    joined.iter().flat_map(pieces).collect()
}

/// A message from a JSON line: its conversation, sender and position, and the rest of the line.
type Message = ((u64, bool), Range<u64>, String);

/// The messages that the program reads from the segments, without the lost ones.
fn messages(all: &[Said], lost: &BTreeSet<usize>, keys: &[String]) -> Vec<Message> {
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::ETHERNET).unwrap();
    let mut put = |packets: Vec<Vec<u8>>| {
        for packet in packets {
            let length = u32::try_from(packet.len()).unwrap();
            writer.packet(Timestamp::from_parts(1_700_000_000, 0), &packet, length).unwrap();
        }
    };
    let mut wires: BTreeMap<[SocketAddrV4; 2], SyntheticTcp> = BTreeMap::new();
    for (index, said) in all.iter().enumerate() {
        let wire = wires.entry(said.ends).or_insert_with(|| {
            let [client, server] = said.ends;
            let mut wire = SyntheticTcp::new(client, server);
            put(wire.open());
            wire
        });
        let sent = wire.data(said.from, &said.bytes);
        if !lost.contains(&index) {
            put(sent);
        }
    }
    wires.values_mut().for_each(|wire| put(wire.close()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lost.pcap");
    std::fs::write(&file, writer.into_inner()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output =
        command.arg("dissect").arg(&file).args(keys).args(["--json", "-q"]).output().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!lost.is_empty())));
    let out = String::from_utf8(output.stdout).unwrap();
    let notes = ["opened", "gap", "resync", "warning", "problem"];
    let message = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let range = line["range"].clone();
        let place = (line["stream"].as_u64().unwrap(), line["from"] == "client");
        // These fields depend on lost packets: known players, and the packet that completes a
        // message.
        let members = line.as_object_mut().unwrap();
        for key in ["time", "packet", "players", "remarks"] {
            members.remove(key);
        }
        let is_note = notes.iter().any(|note| line["name"] == *note);
        let range = range[0].as_u64().unwrap()..range[1].as_u64().unwrap();
        (!is_note).then(|| (place, range, line.to_string()))
    };
    out.lines().filter_map(message).collect()
}

/// The number of unaffected messages that are decoded, and the total number of unaffected messages.
fn measure(all: &[Said], keys: &[String]) -> (usize, usize) {
    let whole = messages(all, &BTreeSet::new(), keys);
    let known: BTreeSet<&str> = whole.iter().map(|(_, _, line)| &**line).collect();
    // The position of each segment, and whether it is among the first of its side.
    let (mut streams, mut at) = (Vec::new(), BTreeMap::new());
    let mut places = Vec::new();
    for Said { ends, from, bytes } in all {
        if !streams.contains(ends) {
            streams.push(*ends);
        }
        let stream = streams.iter().position(|it| it == ends).unwrap() as u64;
        let place = (stream, *from == Side::Client);
        let at = at.entry(place).or_insert(0);
        places.push((place, *at..*at + bytes.len() as u64));
        *at += bytes.len() as u64;
    }
    /// The bytes of a stream that can contain the key exchange.
    const SETUP: u64 = 120;
    let (mut read, mut there) = (0, 0);
    for phase in (0..100).step_by(7) {
        let is_lost = |index: &usize| index % 100 == phase && places[*index].1.start >= SETUP;
        let lost: BTreeSet<usize> = (0..all.len()).filter(is_lost).collect();
        if lost.is_empty() {
            continue;
        }
        let found = messages(all, &lost, keys);
        for (_, _, line) in &found {
            assert!(known.contains(&**line), "made up without {lost:?}: {line}");
        }
        let is_hit = |(place, range, _): &&Message| {
            lost.iter().any(|index| {
                let (of, gone) = &places[*index];
                of == place && range.start < gone.end && gone.start < range.end
            })
        };
        let hit = whole.iter().filter(is_hit).count();
        read += found.len();
        there += whole.len() - hit;
    }
    (read, there)
}

#[test]
fn captures_with_lost_segments_are_decoded() {
    let Some(folder) = std::env::var_os("WORLDWIRE_LOST").map(PathBuf::from) else {
        println!("WORLDWIRE_LOST names no folder: nothing to read");
        return;
    };
    let files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    let is = |path: &Path, kinds: &[&str]| {
        path.extension().is_some_and(|own| kinds.iter().any(|kind| own == *kind))
    };
    let keys = files.iter().find(|path| is(path, &["toml", "ini"]));
    let keys: Vec<String> = keys
        .map_or_else(Vec::new, |keys| vec!["--keys".to_owned(), keys.to_str().unwrap().to_owned()]);
    let mut captures: Vec<&PathBuf> =
        files.iter().filter(|path| is(path, &["pcap", "pcapng"])).collect();
    captures.sort();
    assert!(!captures.is_empty(), "no captures in {}", folder.display());
    for capture in captures {
        let all = said(capture);
        let name = capture.file_name().unwrap().to_string_lossy();
        for most in [None, Some(536), Some(1448), Some(4000)] {
            let anew = most.map(|most| cut(&all, most));
            let segments = anew.as_ref().unwrap_or(&all);
            let (read, there) = measure(segments, &keys);
            let cut = most.map_or_else(|| "as captured".to_owned(), |most| format!("{most} bytes"));
            println!("{name}, {cut}, {} segments: {read} of {there} messages", segments.len());
            assert!(read * 100 >= there * 95, "{name} {cut}: {read} of {there}");
        }
    }
}
