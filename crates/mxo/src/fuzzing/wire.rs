//! Targets for datagrams, packets and the TCP channels.

use std::sync::LazyLock;

use worldwire_core::json::Style;
use worldwire_core::testing::{Target, decode, encoded, render};
use worldwire_core::{Limits, Reader, Result, Sampler, Side, Tree, Writer};

use crate::crypt::{KeyFile, SessionKey};
use crate::frame::{
    Datagram, MarginFrame, MarginText, Packet, SequenceWord, TcpFrame, encode_head,
};

/// All targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "mxo_datagram", run: datagram, seeds: datagrams },
    Target { name: "mxo_packet", run: packet, seeds: packets },
    Target { name: "mxo_sealed", run: sealed, seeds: packets },
    Target { name: "mxo_tcp", run: tcp, seeds: frames },
    Target { name: "mxo_margin", run: margin, seeds: margins },
    Target { name: "mxo_keys", run: keys, seeds: key_files },
];

/// Decodes bytes with and without a trace. A decoded value must survive encoding and a round trip
/// through JSON.
macro_rules! keeps {
    ($data:expr, |$reader:ident| $decode:expr, |$json:ident| $from_json:expr) => {
        decode($data, &Limits::DEFAULT, Style::default(), |$reader| $decode, |$reader| $decode)
            .encodes_back(
                |value| encoded(|writer| value.encode(writer)),
                |$json| $from_json.and_then(|value| encoded(|writer| value.encode(writer))),
            )
    };
}

pub(super) use keeps;

fn datagram(data: &[u8]) {
    keeps!(data, |reader| Datagram::decode(reader), |json| Datagram::from_json(json));
}

/// The bytes are the contents of a packet, with a valid CRC and length. The first byte selects the
/// sender.
fn packet(data: &[u8]) {
    let (from, whole) = whole(data);
    keeps!(&whole, |reader| Packet::decode(reader, from), |json| Packet::from_json(json, from));
    // Whatever the measure returns, nothing is read twice.
    let mut lengths = data.iter().map(|byte| usize::from(*byte));
    let mut measure = |bytes: &[u8]| Ok(lengths.next().unwrap_or(bytes.len()));
    let measured = Packet::decode_measured(&mut Reader::new(&whole), from, &mut measure);
    if let Ok(packet) = measured {
        assert_eq!(packet.to_bytes().ok(), Some(whole));
    }
    // Used unmodified, most inputs would not be packets.
    keeps!(data, |reader| Packet::decode(reader, from), |json| Packet::from_json(json, from));
}

fn whole(data: &[u8]) -> (Option<Side>, Vec<u8>) {
    let (first, body) = data.split_first().unwrap_or((&0, data));
    let from = [None, Some(Side::Client), Some(Side::Server)];
    (from.get(usize::from(first % 3)).copied().flatten(), packet_of(body))
}

/// A packet with these contents.
pub(super) fn packet_of(body: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    // Too many bytes do not fit into a packet.
    let body = body.get(..usize::from(u16::MAX)).unwrap_or(body);
    assert_eq!(encode_head(1_248_965_312, body, &mut writer).err(), None);
    writer.into_bytes()
}

static KEYS: LazyLock<[SessionKey; 2]> =
    LazyLock::new(|| [[7; 16], [8; 16]].map(|key| SessionKey::new(&key)));

/// Decrypted data is shown in a layer; another key shows nothing.
fn sealed(data: &[u8]) {
    let (from, whole) = whole(data);
    let [key, other] = &*KEYS;
    let wire = key.seal_datagram(&[9; 16], &whole);
    let mut reader = Reader::traced("datagram", &wire, Tree::new());
    let opened = Datagram::decode_opened(&mut reader, key, from);
    let (tree, opened) = reader.conclude(opened);
    render(&tree, Style::default());
    let plain = Packet::decode(&mut Reader::new(&whole), from);
    assert_eq!(opened.is_ok(), plain.is_ok());
    let body = wire.get(17..).unwrap_or_default();
    assert_eq!(key.open(&[9; 16], body), Ok(whole));
    assert!(other.open(&[9; 16], body).is_err());
    let _ = key.open(&[9; 16], data);
    let mut reader = Reader::traced("datagram", data, Tree::new());
    let outcome = Datagram::decode_opened(&mut reader, key, from);
    render(&reader.conclude(outcome).0, Style::default());
}

/// Consecutive frames.
fn tcp(mut data: &[u8]) {
    while !data.is_empty() {
        keeps!(data, |reader| TcpFrame::decode(reader), |json| TcpFrame::from_json(json));
        let mut reader = Reader::new(data);
        let Ok(frame) = TcpFrame::decode(&mut reader) else { return };
        data = reader.rest();
        let body = &frame.body;
        keeps!(body, |reader| MarginFrame::decode(reader), |json| MarginFrame::from_json(json));
    }
}

fn margin(data: &[u8]) {
    let (_, whole) = whole(data);
    keeps!(&whole, |reader| MarginText::decode(reader), |json| MarginText::from_json(json));
    keeps!(data, |reader| MarginText::decode(reader), |json| MarginText::from_json(json));
    keeps!(data, |reader| MarginFrame::decode(reader), |json| MarginFrame::from_json(json));
}

fn keys(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match KeyFile::parse("keys.toml", text) {
        Ok(file) => assert!(file.sessions().len() <= data.len()),
        Err(errors) => assert!(!errors.is_empty() && errors.len() <= 201),
    }
}

pub(super) fn made(count: u64, make: impl Fn(&mut Sampler) -> Result<Vec<u8>>) -> Vec<Vec<u8>> {
    (0..count).filter_map(|seed| make(&mut Sampler::new(seed)).ok()).collect()
}

fn datagrams() -> Vec<Vec<u8>> {
    made(12, |sampler| encoded(|writer| Datagram::sample(sampler).encode(writer)))
}

fn packets() -> Vec<Vec<u8>> {
    let body = |packet: Packet<'_>| {
        let bytes = packet.to_bytes()?;
        Ok([&[1], bytes.get(10..).unwrap_or_default()].concat())
    };
    let mut packets = made(16, |sampler| body(Packet::sample(sampler)));
    packets.extend(body(Packet::new(1, SequenceWord::default())));
    packets
}

fn frames() -> Vec<Vec<u8>> {
    made(8, |sampler| {
        encoded(|writer| {
            TcpFrame::sample(sampler).encode(writer)?;
            let body = encoded(|writer| MarginFrame::sample(sampler).encode(writer))?;
            TcpFrame::of(&body).encode(writer)
        })
    })
}

fn margins() -> Vec<Vec<u8>> {
    made(8, |sampler| encoded(|writer| MarginFrame::sample(sampler).encode(writer)))
}

fn key_files() -> Vec<Vec<u8>> {
    let session = "[[mxo.session]]\nid = 0x12\nkey = \"000102030405060708090a0b0c0d0e0f\"\n";
    [session, "[mxo]\nsession = 1\n[mxo.other]\n", "[[mxo.session]\n"]
        .map(|text| text.as_bytes().to_vec())
        .into()
}
