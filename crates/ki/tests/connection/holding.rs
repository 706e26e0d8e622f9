//! A relay that holds pieces.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    Bounds, Connection as _, Decision, Event, Forward as _, Inject as _, Input,
};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::{Conditions, Pair};
use worldwire_ki::connection::{Connection, RelayConfig, Unit};
use worldwire_ki::control::{Control, KeepAlive};
use worldwire_ki::crypt::stream::Opener;
use worldwire_ki::frame::Frame;

use crate::encrypted_relay::sealed;
use crate::relay::{KEY, accepted, encoded, feed, frame, number, passed};
use crate::support::{client, message, server};

fn pair(bounds: Bounds) -> Pair<Connection> {
    let config = RelayConfig { bounds, ..RelayConfig::new(Arc::default()) };
    let relay = Connection::relay(Arc::new(config), Duration::ZERO);
    let latency = Duration::from_millis(20);
    let conditions = Conditions { latency, segment: 9, seed: 1, ..Conditions::default() };
    let mut pair = Pair::relayed(client(), relay, server(), conditions);
    pair.settle(|_, _, _| {});
    assert!(pair.client.is_established() && pair.server.is_established());
    pair
}

#[test]
fn held_pieces_follow_the_contract() {
    check(&Family {
        pair: &pair,
        say: &|end, _, number| end.send(&message(5, 9, &[number; 3])).unwrap(),
        number: &|_, bytes| {
            let mut messages = bytes.windows(7).filter(|it| it.starts_with(&[5, 9, 7, 0]));
            messages.next().map(|message| message[4])
        },
        replacement: &|_, _, number| encoded(&message(5, 9, &[number; 3])),
        patience: Duration::from_secs(3600),
    });
}

#[test]
fn the_messages_of_a_frame_leave_together_and_keep_alives_overtake_them() {
    let mut relay = accepted(false);
    let three = [message(1, 1, b"one"), message(1, 2, b"two"), message(1, 3, b"three")];
    let alive = Control::KeepAlive(KeepAlive::Client { session_id: 77, millis: 1, minutes: 2 });
    let alive = Frame::control(alive).to_bytes().unwrap();
    let hold_two = |relay: &mut Connection| {
        let mut held = None;
        feed(relay, Side::Client, &frame(&three, Some(0)), |payload, sender| {
            if payload == b"two" {
                held = Some(sender.hold().unwrap());
            }
        });
        held.unwrap()
    };
    let held = hold_two(&mut relay);
    assert_eq!(passed(&mut relay, Side::Server), b"");
    feed(&mut relay, Side::Client, &alive, |_, _| ());
    assert_eq!(passed(&mut relay, Side::Server), alive);
    relay.sender().inject(Side::Server, &encoded(&message(9, 9, b"more"))).unwrap();
    assert_eq!(passed(&mut relay, Side::Server), frame(&[message(9, 9, b"more")], Some(0)));
    relay.sender().release(held, Decision::AsIs).unwrap();
    assert!(relay.poll().is_none());
    assert_eq!(passed(&mut relay, Side::Server), frame(&three, Some(0)));
    let held = hold_two(&mut relay);
    relay.sender().release(held, Decision::Drop).unwrap();
    assert!(relay.poll().is_none());
    let wanted = frame(&[three[0].clone(), three[2].clone()], Some(0));
    assert_eq!(passed(&mut relay, Side::Server), wanted);
}

#[test]
fn an_injected_message_leaves_before_the_one_that_caused_it() {
    let more = frame(&[message(9, 9, b"more")], Some(0));
    for is_held in [false, true] {
        let mut relay = accepted(false);
        let one = frame(&[message(1, 1, b"one")], Some(0));
        let mut held = None;
        feed(&mut relay, Side::Client, &one, |_, sender| {
            sender.inject(Side::Server, &encoded(&message(9, 9, b"more"))).unwrap();
            held = is_held.then(|| sender.hold().unwrap());
        });
        let Some(held) = held else {
            assert_eq!(passed(&mut relay, Side::Server), [more.clone(), one].concat());
            continue;
        };
        assert_eq!(passed(&mut relay, Side::Server), more, "it does not wait");
        relay.sender().release(held, Decision::AsIs).unwrap();
        assert!(relay.poll().is_none());
        assert_eq!(passed(&mut relay, Side::Server), one);
    }
}

#[test]
fn nothing_is_injected_before_a_stream_shows_whether_it_is_encrypted() {
    let more = encoded(&message(9, 9, b"more"));
    for side in Side::BOTH {
        let mut relay = accepted(true);
        let error = relay.sender().inject(side.other(), &more).unwrap_err();
        assert_eq!(
            error.to_string(),
            "setup is not complete; wait until the connection is established"
        );
        let (frames, wire) = sealed(side, 1);
        feed(&mut relay, side, &wire, |_, _| ());
        relay.sender().inject(side.other(), &more).unwrap();
        let mut plain = Vec::new();
        let wire = passed(&mut relay, side.other());
        Opener::new(&KEY, side).open(&wire, &mut plain).unwrap();
        assert_eq!(plain, [&frames[0], &frame(&[message(9, 9, b"more")], Some(0))[..]].concat());
        // Despite the handshake, this stream is not encrypted.
        let mut relay = accepted(true);
        feed(&mut relay, side, &frames[0], |_, _| ());
        relay.sender().inject(side.other(), &more).unwrap();
    }
}

#[test]
fn keep_alives_in_datagrams_overtake_held_messages() {
    let mut relay = accepted(false);
    let [one, two] = [b"one", b"two"].map(|text| frame(&[message(1, 1, text)], Some(0)));
    let alive = Control::KeepAlive(KeepAlive::Client { session_id: 77, millis: 1, minutes: 2 });
    let alive = Frame::control(alive).to_bytes().unwrap();
    let mut held = None;
    for datagram in [[&one[..], &two].concat(), alive.clone(), [&alive[..], &one].concat()] {
        relay.input(Duration::ZERO, Side::Client, Input::Datagram(&datagram));
        while let Some((event, sender)) = relay.poll() {
            let Event::Received(received) = event else { panic!("{event:?}") };
            if received.bytes == two {
                held = Some(sender.hold().unwrap());
            }
        }
    }
    let left = |relay: &mut Connection| -> Vec<Vec<u8>> {
        core::iter::from_fn(|| relay.poll_transmit(Side::Server)).collect()
    };
    assert_eq!(left(&mut relay), [alive.clone(), alive]);
    let more = encoded(&message(9, 9, b"more"));
    relay.sender().inject(Side::Server, &more).unwrap();
    assert_eq!(left(&mut relay), [frame(&[message(9, 9, b"more")], Some(0))]);
    relay.sender().release(held.unwrap(), Decision::AsIs).unwrap();
    assert!(relay.poll().is_none());
    assert_eq!(left(&mut relay), [[&one[..], &two].concat(), one]);
}

#[test]
fn an_encrypted_stream_with_unchanged_held_pieces_keeps_its_bytes() {
    for side in Side::BOTH {
        let (_, wire) = sealed(side, 100);
        let mut relay = accepted(true);
        let (mut held, mut out) = (Vec::new(), Vec::new());
        for piece in wire.chunks(999) {
            feed(&mut relay, side, piece, |payload, sender| {
                if number(payload).is_multiple_of(7) {
                    held.push(sender.hold().unwrap());
                }
            });
            out.extend(passed(&mut relay, side.other()));
            if held.len() > 3 {
                for id in held.drain(..).rev() {
                    relay.sender().release(id, Decision::AsIs).unwrap();
                }
            }
        }
        for id in held.drain(..) {
            relay.sender().release(id, Decision::AsIs).unwrap();
        }
        relay.input(Duration::ZERO, side, Input::End);
        assert!(relay.poll().is_none());
        out.extend(passed(&mut relay, side.other()));
        assert!(out == wire, "{side}");
    }
}

#[test]
fn nothing_is_injected_before_a_held_accept() {
    let mut relay = crate::relay::relay();
    let offer = server().poll_transmit(Side::Client).unwrap();
    let mut client = client();
    client.input(Duration::ZERO, Side::Server, Input::Bytes(&offer));
    while client.poll_event().is_some() {}
    let accept = client.poll_transmit(Side::Server).unwrap();
    feed(&mut relay, Side::Server, &offer, |_, _| ());
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&accept));
    let (event, sender) = relay.poll().unwrap();
    assert!(matches!(event, Event::Received(it) if matches!(it.unit, Unit::Control(_))));
    let held = sender.hold().unwrap();
    while relay.poll_event().is_some() {}
    assert!(relay.is_established());
    let more = encoded(&message(9, 9, b"more"));
    assert!(relay.sender().inject(Side::Server, &more).is_err());
    relay.sender().release(held, Decision::AsIs).unwrap();
    assert!(relay.poll().is_none());
    relay.sender().inject(Side::Server, &more).unwrap();
    let wanted = [accept, frame(&[message(9, 9, b"more")], Some(0))].concat();
    assert_eq!(passed(&mut relay, Side::Server), wanted);
}
