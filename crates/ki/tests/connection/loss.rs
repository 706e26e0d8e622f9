//! Measures how much of a capture with lost segments can be read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::{Sampler, Side};
use worldwire_ki::connection::{Connection, ObserverKeys};
use worldwire_ki::control::{Control, KeepAlive, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::{Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::Frame;

use crate::support::{message, server};

const KEY: StreamKey = StreamKey { key: [3; 16], nonce: [4; 16] };

/// A frame of an ordinary connection: mostly small, sometimes large, occasionally a keep-alive.
fn frame(random: &mut Sampler) -> Vec<u8> {
    let frame = match random.below(40) {
        0 => Frame::control(Control::KeepAlive(KeepAlive::Server {
            session_id: 0,
            uptime_millis: 60_000,
        })),
        1 => Frame::message(message(5, 1, &random.bytes(3000))),
        kind => {
            let length = random.length(200);
            let payload = match kind % 3 {
                0 => random.bytes(length),
                1 => vec![0; length],
                // Bytes that look like the start of a frame.
                _ => [0x0d, 0xf0, 9, 0, 0, 0, 0, 0, 5, 1, 4, 0].repeat(length / 12 + 1),
            };
            Frame::message(message(5, 1 + kind.to_le_bytes()[0], &payload))
        }
    };
    frame.to_bytes().unwrap()
}

/// An observer of an established session.
fn observer(is_sealed: bool) -> (Connection, [u64; 2]) {
    let keys = ObserverKeys { streams: vec![(Some(4660), KEY)] };
    let mut observer = Connection::observer(Arc::new(keys));
    let offer = server().poll_transmit(Side::Client).unwrap();
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 4660,
        crypto: is_sealed.then(|| CryptoBlock(vec![1; 257].into())),
    }));
    let accept = accept.to_bytes().unwrap();
    observer.input(Duration::ZERO, Side::Server, Input::Bytes(&offer));
    observer.input(Duration::ZERO, Side::Client, Input::Bytes(&accept));
    while observer.poll_event().is_some() {}
    (observer, [accept.len() as u64, offer.len() as u64])
}

/// The share of completely captured messages that is reported.
fn share(side: Side, is_sealed: bool, segment: usize, seed: u8) -> f64 {
    let mut random = Sampler::sized(seed.into(), 3000);
    let (mut observer, begins) = observer(is_sealed);
    let skip = begins[side.index()];
    let (mut plain, mut borders) = (Vec::new(), BTreeSet::new());
    let chunk_bytes = match side {
        Side::Client => 4096,
        Side::Server => 65_536,
    };
    let wire = |plain: usize| {
        let rests = if is_sealed { plain / chunk_bytes * 32 } else { 0 };
        skip + (plain + rests) as u64
    };
    for _ in 0..3000 {
        let from = plain.len();
        plain.extend(frame(&mut random));
        borders.insert((wire(from), wire(plain.len())));
    }
    let mut stream = plain;
    if is_sealed {
        let mut sealed = Vec::new();
        Sealer::new(&KEY, side)
            .seal(&stream, &mut sealed, || [random.below(256).to_le_bytes()[0]; 16]);
        stream = sealed;
    }
    // One segment in a hundred is lost.
    let mut lost: Vec<(u64, u64)> = Vec::new();
    let (mut read, mut at) = (0, skip);
    for (index, bytes) in stream.chunks(segment).enumerate() {
        let end = at + bytes.len() as u64;
        if index % 100 == 30 + usize::from(seed) * 7 {
            lost.push((at, end));
            observer.input(Duration::ZERO, side, Input::Gap(bytes.len() as u64));
        } else {
            observer.input(Duration::ZERO, side, Input::Bytes(bytes));
        }
        at = end;
        while let Some(event) = observer.poll_event() {
            match event {
                Event::Received(received) => {
                    let range = (received.range.start, received.range.end);
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
fn nearly_all_messages_between_lost_segments_are_read_and_none_is_invented() {
    for side in Side::BOTH {
        for is_sealed in [false, true] {
            for segment in [536, 1448, 4000] {
                let shares: Vec<f64> =
                    (0..2).map(|seed| share(side, is_sealed, segment, seed)).collect();
                println!("{side} encrypted={is_sealed} {segment}: {shares:.4?}");
                assert!(shares.iter().all(|share| *share >= 0.95), "{side} {segment} {shares:?}");
            }
        }
    }
}
