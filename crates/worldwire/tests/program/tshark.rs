//! The streams of incomplete, reordered, wrapped and tunnelled captures, compared with tshark's.
//!
//! The captures are generated here. Without tshark, the test prints that it is skipped.
//! `DIFFERENCES` lists the captures that the two programs read differently, and states which one is
//! right.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use worldwire_capture::{ClassicWriter, LinkType, SyntheticTcp, Timestamp};
use worldwire_core::value::parse_hex;
use worldwire_core::{Sampler, Side};

type Packets = Vec<Vec<u8>>;

/// The captures that are read differently, and which program is right.
const DIFFERENCES: [(&str, &str); 1] = [(
    "captured after its acknowledgement",
    "tshark is: it waits for segments that were acknowledged before they were captured. Ours treats \
     them as lost, so that live output need not wait for packets that the capture lacks",
)];

/// A conversation: 24 segments from each side, alternating.
fn talk(port: u16, seed: u64) -> Packets {
    let client = format!("192.0.2.7:{port}").parse().unwrap();
    let mut talk = SyntheticTcp::new(client, "192.0.2.1:4000".parse().unwrap());
    let mut random = Sampler::new(seed);
    let mut packets = talk.open();
    for round in 0..24 {
        packets.extend(talk.data(Side::Client, &random.bytes(100 + round)));
        packets.extend(talk.data(Side::Server, &random.bytes(700 + round)));
    }
    packets.extend(talk.close());
    packets
}

fn payload(packet: &[u8]) -> usize {
    packet.len() - 54
}

fn is_server(packet: &[u8]) -> bool {
    packet[34..36] == 4000_u16.to_be_bytes()
}

fn sequence(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

/// Corrects the lengths of a packet after its payload was replaced.
fn resize(mut packet: Vec<u8>) -> Vec<u8> {
    let length = u16::try_from(packet.len() - 14).unwrap();
    packet[16..18].copy_from_slice(&length.to_be_bytes());
    checksum(&mut packet[14..34]);
    packet
}

fn checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    let sum = !u16::try_from(sum).unwrap();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The positions of the server's segments.
fn server_data(packets: &[Vec<u8>]) -> Vec<usize> {
    (0..packets.len()).filter(|at| is_server(&packets[*at]) && payload(&packets[*at]) > 0).collect()
}

/// Inserts headers between Ethernet and IP.
fn inside(packets: Packets, kind: [u8; 2], header: impl Fn(&[u8]) -> Vec<u8>) -> Packets {
    let wrap =
        |packet: Vec<u8>| [&packet[..12], &kind, &header(&packet[14..]), &packet[14..]].concat();
    packets.into_iter().map(wrap).collect()
}

/// An IPv4 header around a payload of a protocol.
fn ip(protocol: u8, length: usize) -> Vec<u8> {
    let total = u16::try_from(20 + length).unwrap().to_be_bytes();
    let mut header = vec![0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    header.extend([198, 51, 100, 1, 198, 51, 100, 2]);
    checksum(&mut header);
    header
}

/// Cuts IP packets in three, the last part first.
fn fragmented(packets: Packets) -> Packets {
    let mut out = Vec::new();
    for (number, packet) in (1_u16..).zip(packets) {
        let body = &packet[34..];
        if body.len() < 300 {
            out.push(packet);
            continue;
        }
        let parts = [(0, 96), (96, 200), (200, body.len())];
        for (from, to) in parts.into_iter().rev() {
            let mut part = [&packet[..34], &body[from..to]].concat();
            part[18..20].copy_from_slice(&number.to_be_bytes());
            let more = if to < body.len() { 0x2000 } else { 0 };
            let offset = u16::try_from(from / 8).unwrap() | more;
            part[20..22].copy_from_slice(&offset.to_be_bytes());
            out.push(resize(part));
        }
    }
    out
}

/// Shifts a side's sequence numbers, so that they wrap around.
fn wrapped(mut packets: Packets) -> Packets {
    let first = [false, true].map(|server| {
        sequence(packets.iter().find(|packet| is_server(packet) == server).unwrap(), 38)
    });
    for packet in &mut packets {
        for (at, own) in [(38, is_server(packet)), (42, !is_server(packet))] {
            if at == 42 && packet[47] & 16 == 0 {
                continue;
            }
            let shift = (u32::MAX - 900).wrapping_sub(first[usize::from(own)]);
            let number = sequence(packet, at).wrapping_add(shift);
            packet[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
    }
    packets
}

fn torture() -> Vec<(&'static str, Packets)> {
    let whole = || talk(40_000, 1);
    let places = server_data(&whole());
    let changed = |change: &dyn Fn(&mut Packets)| {
        let mut packets = whole();
        change(&mut packets);
        packets
    };
    let gre = |inner: &[u8]| [ip(47, 4 + inner.len()), vec![0, 0, 8, 0]].concat();
    let ppp = |inner: &[u8]| {
        let length = u16::try_from(inner.len() + 2).unwrap().to_be_bytes();
        vec![0x11, 0, 0, 7, length[0], length[1], 0, 0x21]
    };
    vec![
        ("unchanged", whole()),
        (
            "reordered",
            changed(&|packets| {
                for two in places.chunks_exact(2) {
                    let later = packets.remove(two[1]);
                    packets.insert(two[0], later);
                }
            }),
        ),
        (
            "captured after its acknowledgement",
            changed(&|packets| places.chunks_exact(2).for_each(|two| packets.swap(two[0], two[1]))),
        ),
        (
            "sent again",
            changed(&|packets| {
                for at in places.iter().rev().step_by(3) {
                    let again = packets[*at].clone();
                    packets.insert(at + 3, again);
                }
            }),
        ),
        (
            "overlapping",
            changed(&|packets| {
                for two in places.windows(2).rev().step_by(4) {
                    // The second half of one segment, with all of the next.
                    let (one, next) = (packets[two[0]].clone(), packets[two[1]].clone());
                    let half = payload(&one) / 2;
                    let mut both = [&one[..54], &one[54 + half..], &next[54..]].concat();
                    let number = sequence(&one, 38).wrapping_add(u32::try_from(half).unwrap());
                    both[38..42].copy_from_slice(&number.to_be_bytes());
                    packets.insert(two[1] + 1, resize(both));
                }
            }),
        ),
        (
            "overlapping with other bytes",
            changed(&|packets| {
                for at in places.iter().rev().step_by(5) {
                    let mut again = packets[*at].clone();
                    again[54..].fill(b'!');
                    packets.insert(at + 1, again);
                }
            }),
        ),
        ("past 2^32", wrapped(whole())),
        ("without a handshake", changed(&|packets| drop(packets.drain(..3)))),
        ("without an end", changed(&|packets| packets.truncate(packets.len() - 3))),
        (
            "with a gap",
            changed(&|packets| {
                packets.remove(places[9]);
            }),
        ),
        ("the same ports again", [whole(), wrapped(talk(40_000, 2))].concat()),
        ("two at a time", {
            let (one, other) = (whole(), talk(40_001, 3));
            one.into_iter().zip(other).flat_map(|(one, other)| [one, other]).collect()
        }),
        ("in fragments", fragmented(whole())),
        ("VLAN", inside(whole(), [0x81, 0], |_| vec![0, 9, 8, 0])),
        ("PPPoE", inside(whole(), [0x88, 0x64], ppp)),
        ("GRE", inside(whole(), [8, 0], gre)),
        ("IP in IP", inside(whole(), [8, 0], |inner| ip(4, inner.len()))),
    ]
}

fn write(folder: &Path, packets: &[Vec<u8>]) -> PathBuf {
    let mut writer = ClassicWriter::new(Vec::new(), LinkType::ETHERNET).unwrap();
    for (number, data) in (0..).zip(packets) {
        let length = u32::try_from(data.len()).unwrap();
        writer.packet(Timestamp::from_parts(1_700_000_000 + number, 0), data, length).unwrap();
    }
    let file = folder.join("torture.pcap");
    std::fs::write(&file, writer.into_inner()).unwrap();
    file
}

/// The data of both sides according to tshark, which lists the first sender first.
fn theirs(file: &Path, stream: usize) -> [Vec<u8>; 2] {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-q", "-z", &format!("follow,tcp,raw,{stream}")]);
    let output = command.stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut sides = [Vec::new(), Vec::new()];
    let lines = text.lines().skip_while(|line| !line.starts_with("Node 1")).skip(1);
    for line in lines.take_while(|line| !line.starts_with("===")) {
        sides[usize::from(line.starts_with('\t'))].extend(parse_hex(line.trim()).unwrap());
    }
    sides
}

/// The data of both sides according to worldwire; `None` if there is no such conversation.
fn ours(file: &Path, stream: usize) -> Option<[Vec<u8>; 2]> {
    let side = |side: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["follow", "--wire", "--raw", side, "--stream", &stream.to_string()]);
        let output = command.arg(file).output().unwrap();
        let is_missing = String::from_utf8_lossy(&output.stderr).contains("no conversation");
        (!is_missing).then_some(output.stdout)
    };
    Some([side("client")?, side("server")?])
}

#[test]
fn streams_match_tshark() {
    let has_tshark = Command::new("tshark").arg("-v").stdout(Stdio::null()).status();
    if !has_tshark.is_ok_and(|status| status.success()) {
        let line = b"SKIPPED: the comparison with tshark, because it is not installed\n";
        // Bypasses the test harness, which hides the output of passing tests.
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut different = Vec::new();
    for (name, packets) in torture() {
        let file = write(folder.path(), &packets);
        for stream in 0..3 {
            let Some(own) = ours(&file, stream) else {
                assert!(theirs(&file, stream).concat().is_empty(), "{name}: one more, {stream}");
                break;
            };
            assert!(!own.concat().is_empty(), "{name} {stream}");
            let lengths = own.each_ref().map(Vec::len);
            let other = theirs(&file, stream);
            let their_lengths = other.each_ref().map(Vec::len);
            println!("{name} {stream}: {lengths:?}, {their_lengths:?}");
            if own != other {
                different.push(name);
            }
        }
    }
    assert_eq!(different, DIFFERENCES.map(|(name, _)| name));
}

/// Checks that the decoded streams equal the original ones, without tshark.
#[test]
fn streams_match_the_original_data() {
    let whole = talk(40_000, 1);
    let said = [false, true].map(|server| {
        let own = whole.iter().filter(|packet| is_server(packet) == server);
        own.flat_map(|packet| packet[54..].to_vec()).collect::<Vec<u8>>()
    });
    let folder = tempfile::tempdir().unwrap();
    for (name, packets) in torture() {
        let file = write(folder.path(), &packets);
        let own = ours(&file, 0).unwrap();
        if DIFFERENCES.iter().any(|(different, _)| *different == name) {
            continue;
        }
        if name == "with a gap" {
            let mark = b"[709 bytes missing in capture file]\0";
            assert!(own[1].windows(mark.len()).any(|part| part == mark), "{name}");
            assert_eq!(own[1].len(), said[1].len() - 709 + mark.len());
        } else {
            assert!(own == said, "{name}");
        }
    }
}
