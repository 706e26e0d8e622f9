//! A relay of encrypted streams.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Connection as _, Decision, Event, Forward as _, Inject as _, Input,
};
use worldwire_core::{Sampler, Side};
use worldwire_ki::connection::{Connection, ObserverKeys, RelayConfig};
use worldwire_ki::crypt::stream::{Opener, Sealer};

use crate::relay::{KEY, accepted, accepted_by, encoded, feed, frame, number, passed};
use crate::support::{line, lines, message};

/// Enough frames for several chunks, and their encrypted bytes.
pub(crate) fn sealed(side: Side, count: u32) -> (Vec<Vec<u8>>, Vec<u8>) {
    let text = |number: u32| [&number.to_le_bytes()[..], &[0x20; 400]].concat();
    let frames: Vec<_> = (0..count).map(|n| frame(&[message(5, 6, &text(n))], Some(0))).collect();
    let mut wire = Vec::new();
    let mut nonce = 100;
    Sealer::new(&KEY, side).seal(&frames.concat(), &mut wire, || {
        nonce += 1;
        [nonce; 16]
    });
    (frames, wire)
}

#[test]
fn encrypted_streams_pass_unchanged_and_changed() {
    for side in Side::BOTH {
        let (frames, wire) = sealed(side, 400);
        for size in [1, 100, 4128, 10_000, wire.len()] {
            let mut relay = accepted(true);
            let mut out = Vec::new();
            for piece in wire.chunks(size) {
                feed(&mut relay, side, piece, |_, _| ());
                out.extend(passed(&mut relay, side.other()));
            }
            assert!(wire.starts_with(&out) && wire.len() - out.len() < 420, "whole frames");
            relay.input(Duration::ZERO, side, Input::End);
            lines(&mut relay);
            out.extend(passed(&mut relay, side.other()));
            assert!(out == wire, "{side} in pieces of {size}");
        }
        // Messages are dropped, changed and injected. The other end can decrypt the output.
        let mut relay = accepted(true);
        let mut wanted = Vec::new();
        let mut out = Vec::new();
        let changed = message(7, 7, &[1; 4000]);
        for piece in wire.chunks(777) {
            feed(&mut relay, side, piece, |payload, sender| {
                let number = number(payload);
                if number.is_multiple_of(50) {
                    sender.inject(side.other(), &encoded(&message(3, 3, b"hello"))).unwrap();
                    wanted.push(frame(&[message(3, 3, b"hello")], Some(0)));
                }
                match number {
                    40..45 => sender.forward(Decision::Drop).unwrap(),
                    60 | 200 => {
                        sender.forward(Decision::instead(encoded(&changed))).unwrap();
                        wanted.push(frame(core::slice::from_ref(&changed), Some(0)));
                    }
                    _ => wanted.push(frames[number as usize].clone()),
                }
            });
            out.extend(passed(&mut relay, side.other()));
        }
        let mut plain = Vec::new();
        Opener::new(&KEY, side).open(&out, &mut plain).unwrap();
        assert!(plain == wanted.concat());
        // No chunk after the first change uses a nonce of the sender.
        if side == Side::Client {
            let nonces = |bytes: &[u8]| -> Vec<Vec<u8>> {
                bytes.chunks_exact(4128).map(|chunk| chunk[4112..].to_vec()).collect()
            };
            let (theirs, ours) = (nonces(&wire), nonces(&out));
            assert!(ours.len() > 30);
            let shared = ours.iter().take_while(|nonce| theirs.contains(nonce)).count();
            assert!(shared <= 4 && ours[shared..].iter().all(|nonce| !theirs.contains(nonce)));
            let mut unique = ours.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), ours.len());
        }
    }
}

#[test]
fn the_directions_are_encrypted_independently() {
    let wires = Side::BOTH.map(|side| sealed(side, 300).1);
    for seed in 0..20 {
        let mut sampler = Sampler::new(seed);
        let mut relay = accepted(true);
        let (mut read, mut out) = ([0; 2], [Vec::new(), Vec::new()]);
        while let Some(side) =
            Side::BOTH.into_iter().find(|s| read[s.index()] < wires[s.index()].len())
        {
            // Prefer this side, which has more bytes left.
            let side = if sampler.below(3) == 0 { side.other() } else { side };
            let (wire, read) = (&wires[side.index()], &mut read[side.index()]);
            let end = (*read + 1 + sampler.length(24) * 200).min(wire.len());
            feed(&mut relay, side, &wire[*read..end], |_, _| ());
            *read = end;
            out[side.index()].extend(passed(&mut relay, side.other()));
        }
        for side in Side::BOTH {
            relay.input(Duration::ZERO, side, Input::End);
        }
        assert_eq!(lines(&mut relay), ["Closed(Remote)"]);
        for side in Side::BOTH {
            out[side.index()].extend(passed(&mut relay, side.other()));
        }
        assert!(out == wires, "seed {seed}");
    }
}

#[test]
fn a_wrong_tag_is_forwarded_while_nothing_was_changed() {
    let (_, mut wire) = sealed(Side::Client, 40);
    wire[4100] ^= 1;
    for (is_changed, size) in [(false, 1), (false, 1000), (false, 4100), (true, 1000)] {
        let mut relay = accepted(true);
        let mut out = Vec::new();
        let mut reported = Vec::new();
        for piece in wire.chunks(size) {
            relay.input(Duration::ZERO, Side::Client, Input::Bytes(piece));
            while let Some((event, sender)) = relay.poll() {
                if matches!(event, Event::Received(_)) {
                    if is_changed {
                        sender.forward(Decision::Drop).unwrap();
                    }
                } else {
                    reported.push(line(&event));
                }
            }
            out.extend(passed(&mut relay, Side::Server));
        }
        assert!(reported[0].contains("wanted the tag of an AES-GCM chunk"), "{reported:?}");
        assert_eq!(reported.get(1).map(String::as_str), is_changed.then_some("Closed(Fault)"));
        assert!(is_changed || out == wire);
    }
}

#[test]
fn an_encrypted_stream_without_its_key_is_refused() {
    let (_, wire) = sealed(Side::Server, 3);
    for streams in [vec![], vec![(Some(78), KEY)]] {
        let config = RelayConfig::new(Arc::new(ObserverKeys { streams }));
        let relay = Connection::relay(Arc::new(config), Duration::ZERO);
        let mut relay = accepted_by(relay, true);
        relay.input(Duration::ZERO, Side::Server, Input::Bytes(&wire));
        insta::allow_duplicates! {
            insta::assert_snapshot!(lines(&mut relay).join("\n"), @r"
            fault of the server: at byte 28: wanted the AES key and first nonce of session 77, found none that fits the encrypted stream
            Closed(Fault)
            ");
        }
        assert_eq!(passed(&mut relay, Side::Client), b"");
        assert!(relay.sender().inject(Side::Client, &encoded(&message(1, 1, b""))).is_err());
    }
}
