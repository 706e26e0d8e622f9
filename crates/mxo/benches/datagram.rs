//! Encrypting, decrypting, decoding and encoding datagrams. Items are datagrams.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use worldwire_core::{Reader, Side, Tree};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{
    Datagram, Packet, RpcList, RpcMessage, Section, SequenceNumber, SequenceWord,
};

fn main() {
    divan::main();
}

const SIZES: [usize; 3] = [15, 100, 1300];

fn key() -> SessionKey {
    SessionKey::new(&[7; 16])
}

/// A packet of about this size, filled with 40-byte RPC messages.
fn packet(size: usize) -> Vec<u8> {
    let count = u16::try_from(size / 42).unwrap_or(0);
    let messages = (0..count).map(|number| RpcMessage::new(0x80b2 + number, &[9; 38])).collect();
    let lists = vec![RpcList { first: 7, messages }];
    let sections = if count == 0 { vec![] } else { vec![Section::Rpc(lists)] };
    let local = SequenceNumber::new(7);
    let sequence = SequenceWord { local, ..SequenceWord::default() };
    Packet { sections, ..Packet::new(1, sequence) }.to_bytes().unwrap_or_default()
}

fn sealed(bytes: &[u8]) -> ([u8; 16], Vec<u8>) {
    let wire = key().seal_datagram(&[3; 16], bytes);
    ([3; 16], wire.get(17..).unwrap_or_default().to_vec())
}

#[divan::bench(name = "mxo/seal", args = SIZES)]
fn seal(bencher: Bencher<'_, '_>, size: usize) {
    let (key, packet) = (key(), packet(size));
    bencher
        .counter(BytesCount::new(packet.len()))
        .counter(ItemsCount::new(1usize))
        .bench(|| key.seal_datagram(black_box(&[3; 16]), &packet));
}

#[divan::bench(name = "mxo/open", args = SIZES)]
fn open(bencher: Bencher<'_, '_>, size: usize) {
    let (key, (iv, cipher)) = (key(), sealed(&packet(size)));
    bencher
        .counter(BytesCount::new(cipher.len()))
        .counter(ItemsCount::new(1usize))
        .bench(|| key.open(&iv, black_box(&cipher)));
}

#[divan::bench(name = "mxo/packet", args = SIZES)]
fn decode(bencher: Bencher<'_, '_>, size: usize) {
    let packet = packet(size);
    bencher
        .counter(BytesCount::new(packet.len()))
        .counter(ItemsCount::new(1usize))
        .bench(|| Packet::decode(&mut Reader::new(black_box(&packet)), None).map(|p| p.time));
}

#[divan::bench(name = "mxo/open-and-decode", args = SIZES)]
fn whole(bencher: Bencher<'_, '_>, size: usize) {
    let (key, (iv, cipher)) = (key(), sealed(&packet(size)));
    bencher.counter(BytesCount::new(cipher.len())).counter(ItemsCount::new(1usize)).bench(|| {
        let plain = key.open(&iv, black_box(&cipher)).ok()?;
        Packet::decode(&mut Reader::new(&plain), None).map(|p| p.time).ok()
    });
}

#[divan::bench(name = "mxo/tree", args = SIZES)]
fn tree(bencher: Bencher<'_, '_>, size: usize) {
    let (key, wire) = (key(), key().seal_datagram(&[3; 16], &packet(size)));
    bencher.counter(BytesCount::new(wire.len())).counter(ItemsCount::new(1usize)).bench(|| {
        let mut reader = Reader::traced("datagram", black_box(&wire), Tree::new());
        let outcome = Datagram::decode_opened(&mut reader, &key, Some(Side::Server));
        reader.conclude(outcome).0.len()
    });
}
