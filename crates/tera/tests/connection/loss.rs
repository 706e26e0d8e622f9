//! Measures how much of a capture with lost segments can be read.

use std::collections::BTreeSet;

use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_core::{Sampler, Side};
use worldwire_tera::connection::Connection;
use worldwire_tera::crypt::exchange::{Keys, SessionCiphers, Variant};

use crate::ends::{CLIENT_KEYS, NOW, SERVER_KEYS, lines, message};

/// The messages of a build: most have a fixed length; others contain texts and lists.
struct Build {
    opcodes: Vec<(u16, usize, bool)>,
}

impl Build {
    fn new(random: &mut Sampler) -> Self {
        let opcode = |random: &mut Sampler| u16::try_from(20_000 + random.below(45_000)).unwrap();
        let kinds = (0..300).map(|_| {
            let length = usize::try_from(random.below(120)).unwrap();
            (opcode(random), length, random.below(3) == 0)
        });
        Self { opcodes: kinds.collect() }
    }

    /// A random message to send. A few opcodes make up most of the traffic.
    fn say(&self, random: &mut Sampler) -> Vec<u8> {
        let most = 1 + random.below(self.opcodes.len() as u64);
        let index = usize::try_from(random.below(most)).unwrap();
        let (opcode, length, is_list) = self.opcodes[index];
        let mut body = Vec::new();
        if is_list {
            // A list in the wire format: each element has its own offset and that of the next.
            let (count, first) = (u16::try_from(random.below(30)).unwrap(), 8_u16);
            body.extend([count.to_le_bytes(), first.to_le_bytes()].concat());
            for element in 0..count {
                let here = first + element * 24;
                let next = if element + 1 == count { 0 } else { here + 24 };
                body.extend([here.to_le_bytes(), next.to_le_bytes()].concat());
                body.extend(u32::from(element).to_le_bytes());
                body.extend(random.bytes(16));
            }
        } else if length % 2 == 0 {
            body = random.bytes(length);
            body.resize(length, 0);
        } else {
            body = vec![0; length];
        }
        message(opcode, &body)
    }
}

/// The share of messages reported, out of those captured in full.
fn share(side: Side, variant: Variant, segment: usize, seed: u8) -> f64 {
    let mut random = Sampler::new(seed.into());
    let build = Build::new(&mut random);
    let mut observer = Connection::observer(Some(variant));
    observer.input(NOW, Side::Server, Input::Bytes(&[1, 0, 0, 0]));
    for index in 0..2 {
        observer.input(NOW, Side::Client, Input::Bytes(&CLIENT_KEYS[index]));
        observer.input(NOW, Side::Server, Input::Bytes(&SERVER_KEYS[index]));
    }
    lines(&mut observer);
    let skip = if side == Side::Client { 256 } else { 260 };
    let (mut stream, mut borders) = (Vec::new(), BTreeSet::new());
    for _ in 0..8000 {
        let from = skip + stream.len() as u64;
        stream.extend(build.say(&mut random));
        borders.insert((from, skip + stream.len() as u64));
    }
    let keys = Keys { client: CLIENT_KEYS, server: SERVER_KEYS };
    let SessionCiphers { client, server } = SessionCiphers::new(&keys, variant);
    [client, server][side.index()].clone().apply(&mut stream);
    // One segment in a hundred is lost.
    let mut lost: Vec<(u64, u64)> = Vec::new();
    let (mut read, mut at) = (0, skip);
    for (index, bytes) in stream.chunks(segment).enumerate() {
        let end = at + bytes.len() as u64;
        if index % 100 == 30 + usize::from(seed) * 7 {
            lost.push((at, end));
            observer.input(NOW, side, Input::Gap(bytes.len() as u64));
        } else {
            observer.input(NOW, side, Input::Bytes(bytes));
        }
        at = end;
        while let Some(event) = observer.poll_event() {
            match event {
                Event::Received(received) => {
                    let range = (received.range().start, received.range().end);
                    assert!(borders.contains(&range), "{range:?}: {received:?}");
                    read += 1;
                }
                Event::Gap { .. } | Event::Resync { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    let is_whole = |(from, to): &&(u64, u64)| lost.iter().all(|(a, b)| to <= a || from >= b);
    let whole = borders.iter().filter(is_whole).count();
    assert!(!lost.is_empty());
    f64::from(read) / whole as f64
}

#[test]
fn nearly_all_messages_between_lost_segments_are_read_and_none_is_made_up() {
    for (side, variant) in [(Side::Client, Variant::Before45), (Side::Server, Variant::From45)] {
        for segment in [536, 1448, 4000] {
            let shares: Vec<f64> = (0..3).map(|seed| share(side, variant, segment, seed)).collect();
            println!("{side} {segment}: {shares:.4?}");
            assert!(shares.iter().all(|share| *share >= 0.95), "{side} {segment} {shares:?}");
        }
    }
}
