//! Each rule of conversations: links, IP, fragments, TCP.

use std::net::{IpAddr, SocketAddr};

use worldwire_capture::{
    Closed, Conversations, Event, EventKind, LinkType, Packet, SyntheticTcp, Timestamp, Unusable,
};
use worldwire_core::{Limits, Side};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

const C: &str = "10.0.0.1:5000";
const S: &str = "10.0.0.2:80";

/// Events as short lines: `0 C 3 "abc"` is the client's data in conversation 0, at offset 3.
struct Recorder {
    conversations: Conversations,
    lines: Vec<String>,
    packets: u64,
    seconds: i64,
    link: LinkType,
}

impl Recorder {
    fn new() -> Self {
        Self::within(&Limits::DEFAULT)
    }

    fn within(limits: &Limits) -> Self {
        let conversations = Conversations::new(limits);
        Self { conversations, lines: Vec::new(), packets: 0, seconds: 0, link: LinkType::RAW }
    }

    fn raw(&mut self, data: &[u8]) {
        let length = u32::try_from(data.len()).expect("a small packet");
        self.cut(data, length);
    }

    fn cut(&mut self, data: &[u8], original_length: u32) {
        self.packets += 1;
        let packet = Packet {
            number: self.packets,
            time: Timestamp::from_parts(self.seconds, 0),
            interface: 0,
            link: self.link,
            data,
            original_length,
            unusable: None,
            offset: 0,
        };
        let lines = &mut self.lines;
        self.conversations.push(&packet, &mut |event| lines.push(line(&event)));
    }

    /// A segment from client to server.
    fn c(&mut self, flags: u8, sequence: u32, acknowledged: u32, data: &str) {
        self.raw(&v4(C, S, &tcp(C, S, flags, sequence, acknowledged, data.as_bytes())));
    }

    /// A segment from server to client.
    fn s(&mut self, flags: u8, sequence: u32, acknowledged: u32, data: &str) {
        self.raw(&v4(S, C, &tcp(S, C, flags, sequence, acknowledged, data.as_bytes())));
    }

    fn handshake(&mut self) {
        self.c(SYN, 99, 0, "");
        self.s(SYN | ACK, 299, 100, "");
        self.c(ACK, 100, 300, "");
        assert_eq!(self.take(), [format!("0 {C} > {S}")]);
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn finish(&mut self) -> Vec<String> {
        let lines = &mut self.lines;
        self.conversations.finish(&mut |event| lines.push(line(&event)));
        assert_eq!(self.conversations.held_bytes(), 0);
        self.take()
    }
}

fn line(event: &Event<'_>) -> String {
    let letter = |side| if side == Side::Client { 'C' } else { 'S' };
    let number = event.conversation;
    match event.kind {
        EventKind::Opened(opened) => format!(
            "{number} {} > {}{}{}",
            opened.client,
            opened.server,
            if opened.datagrams { " udp" } else { "" },
            if opened.midstream { " midstream" } else { "" }
        ),
        EventKind::Data { side, offset, bytes } => {
            format!("{number} {} {offset} {:?}", letter(side), String::from_utf8_lossy(bytes))
        }
        EventKind::Gap { side, offset, length } => {
            format!("{number} {} {offset} gap {length}", letter(side))
        }
        EventKind::Datagram { side, bytes } => {
            format!("{number} {} {:?}", letter(side), String::from_utf8_lossy(bytes))
        }
        EventKind::Closed(why) => format!("{number} {why:?}"),
        _ => "unknown".to_owned(),
    }
}

fn end(text: &str) -> SocketAddr {
    text.parse().expect("an address and a port")
}

fn tcp(from: &str, to: &str, flags: u8, sequence: u32, acknowledged: u32, data: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(end(from).port().to_be_bytes());
    segment.extend(end(to).port().to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledged.to_be_bytes());
    segment.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
    segment.extend(data);
    segment
}

fn udp(from: &str, to: &str, length: u16, data: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(end(from).port().to_be_bytes());
    datagram.extend(end(to).port().to_be_bytes());
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(data);
    datagram
}

fn octets(text: &str) -> Vec<u8> {
    match end(text).ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A whole IPv4 packet; the payload's length determines the protocol.
fn v4(from: &str, to: &str, carried: &[u8]) -> Vec<u8> {
    v4_part(from, to, 6, 0, carried)
}

fn v4_part(from: &str, to: &str, protocol: u8, place: u16, carried: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + carried.len()).expect("a small packet");
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 7]);
    packet.extend(place.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(octets(from));
    packet.extend(octets(to));
    packet.extend(carried);
    packet
}

fn v6(from: &str, to: &str, next: u8, carried: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(carried.len()).expect("a small packet").to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(octets(from));
    packet.extend(octets(to));
    packet.extend(carried);
    packet
}

#[test]
fn a_whole_connection() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.c(ACK, 100, 300, "hello");
    recorder.s(ACK, 300, 105, "hi");
    recorder.c(FIN | ACK, 105, 302, "");
    recorder.s(FIN | ACK, 302, 106, "!");
    recorder.c(ACK, 106, 304, "");
    let expected = ["0 C 0 \"hello\"", "0 S 0 \"hi\"", "0 S 2 \"!\"", "0 Finished"];
    assert_eq!(recorder.take(), expected);
    // Late packets do not start a new conversation.
    recorder.s(FIN | ACK, 302, 106, "!");
    recorder.c(ACK, 100, 300, "hello");
    recorder.c(RST, 106, 0, "");
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn a_synthetic_connection() {
    let mut talk =
        SyntheticTcp::new("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    let mut recorder = Recorder { link: LinkType::ETHERNET, ..Recorder::new() };
    let packets = [talk.open(), talk.data(Side::Server, b"hi"), talk.close()].concat();
    for mut packet in packets {
        // Ethernet pads to 60 bytes.
        packet.resize(packet.len().max(60), 0);
        recorder.raw(&packet);
    }
    assert_eq!(recorder.take(), ["0 10.0.0.1:5000 > 10.0.0.2:80", "0 S 0 \"hi\"", "0 Finished"]);
}

#[test]
fn data_in_the_syn_comes_before_the_rest() {
    let mut recorder = Recorder::new();
    recorder.c(SYN, 99, 0, "fast");
    recorder.s(SYN | ACK, 299, 100, "");
    // The server did not accept the data in the SYN, so it is sent again.
    recorder.c(ACK, 100, 300, "faster");
    let expected = [format!("0 {C} > {S}"), "0 C 0 \"fast\"".into(), "0 C 4 \"er\"".into()];
    assert_eq!(recorder.take(), expected);
}

#[test]
fn the_client_is_guessed_without_a_syn() {
    let mut recorder = Recorder::new();
    recorder.s(ACK, 300, 100, "hi");
    assert_eq!(recorder.take(), [format!("0 {C} > {S} midstream"), "0 S 0 \"hi\"".into()]);
    // The other stream starts where the first acknowledgement points.
    recorder.c(ACK, 99, 302, "\0");
    recorder.c(ACK, 100, 302, "yes");
    assert_eq!(recorder.take(), ["0 C 0 \"yes\""]);

    let mut recorder = Recorder::new();
    let [client, server] = ["10.0.0.1:80", "10.0.0.2:5000"];
    recorder.raw(&v4(server, client, &tcp(server, client, SYN | ACK, 1, 1, b"")));
    assert_eq!(recorder.take(), [format!("0 {client} > {server}")]);
}

#[test]
fn segments_that_start_no_conversation() {
    let mut recorder = Recorder::new();
    recorder.c(ACK, 100, 300, "");
    recorder.c(RST, 100, 0, "text");
    recorder.c(FIN | ACK, 100, 300, "");
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn reordered_and_repeated_segments_are_reported_once() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.c(ACK, 103, 300, "def");
    recorder.c(ACK, 106, 300, "ghi");
    recorder.c(ACK, 103, 300, "def");
    assert_eq!(recorder.take(), [""; 0]);
    recorder.c(ACK, 100, 300, "abcdXX");
    // The first copy wins.
    assert_eq!(recorder.take(), ["0 C 0 \"abc\"", "0 C 3 \"def\"", "0 C 6 \"ghi\""]);
    recorder.c(ACK, 100, 300, "abc");
    assert_eq!(recorder.take(), [""; 0]);
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut recorder = Recorder::new();
    recorder.c(SYN, u32::MAX - 2, 0, "");
    recorder.c(ACK, 2, 0, "efg");
    recorder.c(ACK, u32::MAX - 1, 0, "abcd");
    let expected = ["0 C 0 \"abcd\"", "0 C 4 \"efg\""];
    assert_eq!(recorder.take()[1..], expected);
}

#[test]
fn acknowledged_bytes_are_not_waited_for() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.c(ACK, 103, 300, "def");
    recorder.s(ACK, 300, 106, "ok");
    assert_eq!(recorder.take(), ["0 C 0 gap 3", "0 C 3 \"def\"", "0 S 0 \"ok\""]);
}

#[test]
fn a_truncated_packet_leaves_a_gap() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    let whole = v4(C, S, &tcp(C, S, ACK, 100, 300, b"abcdef"));
    recorder.cut(&whole[..43], 46);
    // The options of the next packet are truncated as well.
    let mut segment = tcp(C, S, ACK | FIN, 106, 300, b"\x01\x01\x01\x01ghi");
    segment[12] = 0x60;
    recorder.cut(&v4(C, S, &segment)[..42], 47);
    let expected = ["0 C 0 \"abc\"", "0 C 3 gap 3", "0 C 6 gap 3"];
    assert_eq!(recorder.take(), expected);
    recorder.s(ACK | FIN, 300, 110, "");
    assert_eq!(recorder.take(), ["0 Finished"]);
}

#[test]
fn a_length_of_zero_means_everything_captured() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    let mut packet = v4(C, S, &tcp(C, S, ACK, 100, 300, b"abcdef"));
    packet[2..4].fill(0);
    recorder.raw(&packet);
    assert_eq!(recorder.take(), ["0 C 0 \"abcdef\""]);
}

#[test]
fn a_reset_releases_held_data_and_closes() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.c(ACK, 103, 300, "def");
    // Implausible: far outside the window, or unrelated.
    recorder.c(RST, 0x4000_0000, 0, "");
    recorder.s(RST, 0, 0, "");
    // This reset is 300 before the expected number, which is near enough.
    assert_eq!(recorder.take(), ["0 C 0 gap 3", "0 C 3 \"def\"", "0 Reset"]);
    recorder.c(ACK, 106, 300, "late");
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn a_refused_connection() {
    let mut recorder = Recorder::new();
    for _ in 0..2 {
        recorder.c(SYN, 99, 0, "");
        recorder.s(RST | ACK, 0, 100, "");
    }
    assert_eq!(recorder.take(), [format!("0 {C} > {S}"), "0 Reset".into()]);
    // A reset that acknowledges a different number refuses another SYN.
    recorder.c(SYN, 5_000_000, 0, "");
    recorder.s(RST | ACK, 0, 0x4000_0000, "");
    assert_eq!(recorder.finish(), [format!("1 {C} > {S}"), "1 EndOfCapture".into()]);
}

#[test]
fn ports_are_reused() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.c(SYN, 99, 0, "");
    recorder.c(SYN, 200, 0, "");
    assert_eq!(recorder.take(), [""; 0], "a retransmission, and a stray inside the window");
    recorder.c(ACK, 103, 300, "def");
    recorder.c(SYN, 0x5000_0000, 0, "");
    let expected = ["0 C 0 gap 3".into(), "0 C 3 \"def\"".into(), "0 Reused".into()];
    assert_eq!(recorder.take(), [&expected[..], &[format!("1 {C} > {S}")]].concat());
    // Never answered: any other number is a new attempt.
    recorder.c(SYN, 0x5000_0001, 0, "");
    assert_eq!(recorder.take(), ["1 Reused".to_owned(), format!("2 {C} > {S}")]);
    recorder.s(SYN | ACK, 7, 0x5000_0002, "");
    recorder.c(FIN | ACK, 0x5000_0002, 8, "");
    recorder.s(FIN | ACK, 8, 0x5000_0003, "");
    assert_eq!(recorder.take(), ["2 Finished"]);
    // After the end: any other number from either side, or data far away.
    recorder.s(SYN, 9, 0, "");
    assert_eq!(recorder.take(), [format!("3 {S} > {C}")]);
    recorder.s(RST, 10, 0, "");
    recorder.s(ACK, 0x7000_0000, 1, "again");
    let expected = [format!("4 {C} > {S} midstream"), "4 S 0 \"again\"".into()];
    assert_eq!(recorder.take(), [&["3 Reset".to_owned()], &expected[..]].concat());
}

#[test]
fn both_ends_may_connect_simultaneously() {
    let mut recorder = Recorder::new();
    recorder.c(SYN, 99, 0, "");
    recorder.s(SYN, 299, 0, "");
    recorder.c(SYN | ACK, 99, 300, "");
    recorder.s(SYN | ACK, 299, 100, "");
    recorder.s(ACK, 300, 100, "hi");
    assert_eq!(recorder.take(), [format!("0 {C} > {S}"), "0 S 0 \"hi\"".into()]);
}

#[test]
fn the_capture_ends_with_open_conversations() {
    let mut recorder = Recorder::new();
    recorder.handshake();
    recorder.s(ACK, 303, 100, "def");
    recorder.s(FIN | ACK, 310, 100, "");
    let expected = ["0 S 0 gap 3", "0 S 3 \"def\"", "0 S 6 gap 4", "0 EndOfCapture"];
    assert_eq!(recorder.finish(), expected);
}

#[test]
fn the_quietest_conversation_is_closed() {
    let mut recorder = Recorder::within(&Limits { conversations: 2, ..Limits::DEFAULT });
    let [one, two, three] = ["10.0.0.1:1001", "10.0.0.1:1002", "10.0.0.1:1003"];
    let say = |recorder: &mut Recorder, from: &str, sequence: u32| {
        recorder.raw(&v4(from, S, &tcp(from, S, ACK, sequence, 0, b"x")));
    };
    say(&mut recorder, one, 1);
    say(&mut recorder, two, 1);
    say(&mut recorder, one, 2);
    recorder.take();
    say(&mut recorder, three, 1);
    let expected = ["1 Evicted".into(), format!("2 {three} > {S} midstream"), "2 C 0 \"x\"".into()];
    assert_eq!(recorder.take(), expected);
    assert_eq!(recorder.finish(), ["0 EndOfCapture", "2 EndOfCapture"]);
}

#[test]
fn the_longest_waiting_conversation_gives_up_first() {
    let mut recorder = Recorder::within(&Limits { streams_bytes: 300, ..Limits::DEFAULT });
    let ends = ["10.0.0.1:1001", "10.0.0.1:1002", "10.0.0.1:1003"];
    for from in ends {
        recorder.raw(&v4(from, S, &tcp(from, S, SYN, 0, 0, b"")));
    }
    recorder.take();
    for from in ends {
        recorder.raw(&v4(from, S, &tcp(from, S, ACK, 9, 0, b"held")));
        assert!(recorder.conversations.held_bytes() <= 300);
    }
    assert_eq!(recorder.take(), ["0 C 0 gap 8", "0 C 8 \"held\""]);
}

#[test]
fn many_waiting_conversations_are_cheap() {
    let limits = Limits { streams_bytes: 10_000, ..Limits::DEFAULT };
    let mut recorder = Recorder::within(&limits);
    for number in 0..60_000_u32 {
        let from = SocketAddr::new([10, 1, 0, 1].into(), 1024 + u16::try_from(number).unwrap());
        let from = from.to_string();
        recorder.raw(&v4(&from, S, &tcp(&from, S, SYN, 0, 0, b"")));
        recorder.raw(&v4(&from, S, &tcp(&from, S, ACK, 9, 0, b"held")));
        assert!(recorder.conversations.held_bytes() <= 10_000);
    }
}

#[test]
fn datagrams_are_reported_by_side() {
    let mut recorder = Recorder::new();
    recorder.raw(&v4_part(C, S, 17, 0, &udp(C, S, 10, b"hi padding")));
    recorder.raw(&v4_part(S, C, 17, 0, &udp(S, C, 0, b"ho")));
    let expected = [format!("0 {C} > {S} udp"), "0 C \"hi\"".into(), "0 S \"ho\"".into()];
    assert_eq!(recorder.take(), expected);
    assert_eq!(recorder.finish(), ["0 EndOfCapture"]);
}

#[test]
fn every_link_type_is_followed_to_ip() {
    let packet = v4(C, S, &tcp(C, S, SYN, 1, 0, b"x"));
    let loopback = |family: [u8; 4]| (LinkType::NULL, family.to_vec());
    let ethernet = |tail: &[u8]| (LinkType::ETHERNET, [&[0xEE; 12], tail].concat());
    let heads = [
        ethernet(&[8, 0]),
        ethernet(&[0x81, 0, 0, 7, 8, 0]),
        ethernet(&[0x88, 0xA8, 0, 7, 0x81, 0, 0, 8, 8, 0]),
        // A PPPoE session, with its length; MPLS labels.
        ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 43, 0, 0x21]),
        ethernet(&[0x81, 0, 0, 7, 0x88, 0x47, 0, 1, 0x10, 64, 0, 1, 0x11, 64]),
        (LinkType::LINUX_SLL, [&[0; 14][..], &[8, 0]].concat()),
        (LinkType::LINUX_SLL2, [&[8, 0][..], &[0; 18]].concat()),
        loopback([2, 0, 0, 0]),
        loopback([0, 0, 0, 2]),
        (LinkType::LOOP, vec![0, 0, 0, 2]),
        (LinkType::RAW, vec![]),
        (LinkType::RAW_BSD, vec![]),
        (LinkType::RAW_OPENBSD, vec![]),
        (LinkType::IPV4, vec![]),
    ];
    for (link, head) in heads {
        let mut recorder = Recorder { link, ..Recorder::new() };
        let data = [&head[..], &packet].concat();
        recorder.raw(&data);
        assert_eq!(recorder.take().len(), 2, "{link}");
        // However it is truncated, it is never mistaken for something else.
        for length in 0..data.len() - 1 {
            let mut recorder = Recorder { link, ..Recorder::new() };
            recorder.raw(&data[..length]);
            assert!(recorder.take().iter().all(|line| !line.contains('"')), "{link} {length}");
        }
    }
}

#[test]
fn unusable_packets_are_counted() {
    let mut recorder = Recorder { link: LinkType(147), ..Recorder::new() };
    recorder.raw(b"anything");
    recorder.raw(b"anything");
    recorder.link = LinkType::ETHERNET;
    recorder.raw(&[&[0xEE; 12][..], &[8, 6], b"arp"].concat());
    let unusable = recorder.conversations.unusable();
    assert_eq!(unusable, [(Unusable::Link(LinkType(147)), 2), (Unusable::NotIp(0x0806), 1)]);
    assert_eq!(unusable[0].0.to_string(), "link type 147 is not supported");
    assert_eq!(unusable[1].0.to_string(), "not IP but ARP");
    let mut recorder = Recorder { link: LinkType::RAW, ..Recorder::new() };
    for protocol in [1, 50, 99] {
        recorder.raw(&v4_part(C, S, protocol, 0, &[0; 40]));
    }
    recorder.cut(&v4(C, S, &[0; 40])[..30], 60);
    recorder.raw(&v4(C, S, &[0; 40])[..30]);
    // The last of three fragments completes a packet; another packet stays incomplete.
    let datagram = udp(C, S, 28, b"twenty bytes of data");
    for (place, part) in
        [(0x2000, &datagram[..8]), (0x2001, &datagram[8..16]), (2, &datagram[16..])]
    {
        recorder.raw(&v4_part(C, S, 17, place, part));
    }
    recorder.raw(&v4_part(S, C, 17, 0x2000, &datagram[..8]));
    let unusable = recorder.conversations.unusable();
    let unusable: Vec<_> = unusable.iter().map(|(why, count)| format!("{count} {why}")).collect();
    let expected = [
        "1 belonging to an incomplete fragmented packet",
        "1 cut off inside a header by the capture",
        "1 encrypted (IPsec)",
        "1 neither TCP nor UDP but ICMP",
        "1 neither TCP nor UDP but IP protocol 99",
        "1 with an invalid header",
    ];
    assert_eq!((&unusable[..], recorder.conversations.cut()), (&expected.map(String::from)[..], 1));
}

#[test]
fn tunnels_are_followed() {
    let packet = v4(C, S, &tcp(C, S, SYN, 1, 0, b"x"));
    let [from, to] = ["[fe80::1]:5000", "[fe80::2]:80"];
    let six = v6(from, to, 6, &tcp(from, to, SYN, 1, 0, b"x"));
    let outer =
        |protocol: u8, carried: &[u8]| v4_part("10.9.9.9:0", "10.8.8.8:0", protocol, 0, carried);
    let frame = [&[0xEE; 12][..], &[8, 0], &packet].concat();
    let network = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &frame].concat();
    let length = u16::try_from(network.len() + 8).expect("a small packet");
    let vxlan = udp("10.9.9.9:9", "10.8.8.8:4789", length, &network);
    let tunnels = [
        outer(4, &packet),
        outer(41, &six),
        outer(47, &[&[0, 0, 8, 0][..], &packet].concat()),
        // With checksum, key and sequence number.
        outer(47, &[&[0xB0, 0, 8, 0][..], &[1; 12], &packet].concat()),
        outer(47, &[&[0, 0, 0x65, 0x58][..], &frame].concat()),
        outer(17, &vxlan),
        v6("[fe80::9]:0", "[fe80::8]:0", 4, &packet),
        outer(4, &outer(47, &[&[0, 0, 8, 0][..], &outer(17, &vxlan)].concat())),
    ];
    for data in tunnels {
        let mut recorder = Recorder { link: LinkType::RAW, ..Recorder::new() };
        recorder.raw(&data);
        let lines = recorder.take();
        assert_eq!(lines.len(), 2, "{lines:?} {:?}", recorder.conversations.unusable());
        assert!(lines[0].contains(":80") && lines[1] == "0 C 0 \"x\"", "{lines:?}");
        for length in 0..data.len() - 1 {
            let mut recorder = Recorder { link: LinkType::RAW, ..Recorder::new() };
            recorder.raw(&data[..length]);
            assert!(recorder.take().iter().all(|line| !line.contains("\"x\"")), "{length}");
        }
    }
    // A datagram of a different protocol on VXLAN's port is left unchanged.
    let mut recorder = Recorder { link: LinkType::RAW, ..Recorder::new() };
    recorder.raw(&outer(17, &udp("10.9.9.9:9", "10.8.8.8:4789", 18, b"\x08\0\0\x01\0\0\0\0hi")));
    assert_eq!(recorder.take().len(), 2);
    let deep = (0..6).fold(packet, |inner, _| outer(4, &inner));
    recorder.raw(&deep);
    assert_eq!(recorder.conversations.unusable(), [(Unusable::Tunnels, 1)]);
}

#[test]
fn ipv6_with_extension_headers() {
    let [from, to] = ["[fe80::1]:5000", "[fe80::2]:80"];
    let segment = tcp(from, to, SYN, 1, 0, b"x");
    let chain = [
        &[43, 0, 0, 0, 0, 0, 0, 0][..],
        &[60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 0],
        &[44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 9],
        &segment,
    ];
    let mut recorder = Recorder::new();
    recorder.raw(&v6(from, to, 0, &chain.concat()));
    assert_eq!(recorder.take(), [format!("0 {from} > {to}"), "0 C 0 \"x\"".into()]);
}

#[test]
fn fragments_of_both_ip_versions() {
    let datagram = udp(C, S, 28, b"twenty bytes of data");
    let mut recorder = Recorder::new();
    recorder.raw(&v4_part(C, S, 17, 2, &datagram[16..]));
    recorder.raw(&v4_part(C, S, 17, 0x2000, &datagram[..16]));
    assert_eq!(recorder.take()[1..], ["0 C \"twenty bytes of data\""]);

    let [from, to] = ["[fe80::1]:5000", "[fe80::2]:80"];
    // The destination options are inside the fragments.
    let inner = [&[17, 0, 0, 0, 0, 0, 0, 0][..], &udp(from, to, 28, b"twenty bytes of data")];
    let inner = inner.concat();
    let mut recorder = Recorder::new();
    let part = |head: [u8; 8], data: &[u8]| v6(from, to, 44, &[&head[..], data].concat());
    recorder.raw(&part([60, 0, 0, 1, 0, 0, 0, 5], &inner[..16]));
    recorder.raw(&part([60, 0, 0, 16, 0, 0, 0, 5], &inner[16..]));
    assert_eq!(recorder.take()[1..], ["0 C \"twenty bytes of data\""]);

    // The second fragment arrives too late.
    let mut recorder = Recorder::new();
    recorder.raw(&v4_part(C, S, 17, 2, &datagram[16..]));
    recorder.seconds = 61;
    recorder.raw(&v4_part(C, S, 17, 0x2000, &datagram[..16]));
    assert_eq!(recorder.finish(), [""; 0]);
    assert_eq!(recorder.conversations.unusable(), [(Unusable::Fragment, 2)]);
}

#[test]
fn every_reason_has_its_own_name() {
    let reasons =
        [Closed::Finished, Closed::Reset, Closed::Reused, Closed::Evicted, Closed::EndOfCapture];
    let names: std::collections::BTreeSet<_> = reasons.map(|why| format!("{why:?}")).into();
    assert_eq!(names.len(), 5);
}
