//! A relay between a client and a server.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, Connection as _, Decision, Event, EventOf, Forward as _, Inject as _, Input,
    Sender as _,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side, Writer};
use worldwire_ki::connection::{
    Connection, News, ObserverKeys, RelayConfig, Sender, ServerConfig, Unit,
};
use worldwire_ki::control::{Control, Opcode, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::StreamKey;
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::{Body, Frame};
use worldwire_ki::message::RawMessage;

use crate::support::{SECOND, client, lines, message, server};

pub(crate) const KEY: StreamKey = StreamKey { key: [3; 16], nonce: [4; 16] };

pub(crate) fn relay() -> Connection {
    let keys = ObserverKeys { streams: vec![(Some(77), KEY)] };
    Connection::relay(Arc::new(RelayConfig::new(Arc::new(keys))), Duration::ZERO)
}

pub(crate) fn encoded(message: &RawMessage<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer).unwrap();
    writer.into_bytes()
}

pub(crate) fn frame(messages: &[RawMessage<'static>], trailer: Option<u8>) -> Vec<u8> {
    let body = Body::Data(messages.to_vec());
    Frame { body, trailer, ..Frame::message(message(1, 1, b"")) }.to_bytes().unwrap()
}

pub(crate) fn number(payload: &[u8]) -> u32 {
    u32::from_le_bytes(*payload.first_chunk().unwrap())
}

/// All bytes that the relay has ready for a side.
pub(crate) fn passed(relay: &mut Connection, to: Side) -> Vec<u8> {
    core::iter::from_fn(|| relay.poll_transmit(to)).collect::<Vec<_>>().concat()
}

/// Delivers bytes from a side and decides about every message.
pub(crate) fn feed(
    relay: &mut Connection,
    from: Side,
    bytes: &[u8],
    mut on: impl FnMut(&[u8], &mut Sender),
) {
    relay.input(Duration::ZERO, from, Input::Bytes(bytes));
    while let Some((event, sender)) = relay.poll() {
        match event {
            Event::Received(received) if matches!(received.unit, Unit::Message { .. }) => {
                on(received.payload(), sender);
            }
            Event::Fault { error, .. } => panic!("{error}"),
            _ => {}
        }
    }
}

/// Creates a relay with an accepted session, which may be encrypted from then on.
pub(crate) fn accepted(handshake: bool) -> Connection {
    accepted_by(relay(), handshake)
}

/// Lets a relay see an accepted session.
pub(crate) fn accepted_by(mut relay: Connection, handshake: bool) -> Connection {
    let mut offerer =
        Connection::server(ServerConfig::new(Duration::ZERO).into(), 77, Duration::ZERO);
    let offer = offerer.poll_transmit(Side::Client).unwrap();
    let block = if handshake { CryptoBlock(vec![1; 257].into()) } else { CryptoBlock::NONE };
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(block),
    }));
    let accept = accept.to_bytes().unwrap();
    for (side, bytes) in [(Side::Server, &offer), (Side::Client, &accept)] {
        feed(&mut relay, side, bytes, |_, _| ());
        assert_eq!(&passed(&mut relay, side.other()), bytes);
    }
    assert!(relay.is_established());
    relay
}

#[test]
fn unchanged_bytes_are_identical_on_both_sides() {
    for seed in 0..8 {
        let segment = [0, 1, 7, 100][usize::try_from(seed % 4).unwrap()];
        let latency = Duration::from_millis(35);
        let conditions = Conditions { latency, segment, seed, ..Conditions::default() };
        let mut pair = Pair::relayed(client(), relay(), server(), conditions);
        let mut sampler = Sampler::new(seed);
        let mut events = 0;
        for round in 1..=60u32 {
            for end in [&mut pair.client, &mut pair.server] {
                let length = usize::try_from(sampler.below(3000)).unwrap();
                end.send(&message(5, 9, &sampler.bytes(length))).unwrap();
            }
            if round == 30 {
                pair.server.refresh(5).unwrap();
                pair.server.send(&message(5, 10, &[7; 40_000])).unwrap();
            }
            pair.run_until(SECOND * round, |member, event, _| {
                assert!(!matches!(event, Event::Fault { .. } | Event::Closed(_)), "{event:?}");
                let message = matches!(&event, Event::Received(received)
                    if matches!(received.unit, Unit::Message { .. }));
                events += u32::from(message && member != Member::Relay);
            });
        }
        assert_eq!(pair.written, pair.arrived);
        // The client's message to the stale session crossed a message from the server, so the
        // client treats its message as answered.
        assert_eq!(events, 120);
        assert_eq!(pair.client.session_id(), Some(5));
    }
}

#[test]
fn datagrams_stay_datagrams() {
    let mut established = 0;
    for seed in 0..12 {
        let conditions = Conditions {
            latency: Duration::from_millis(35),
            datagrams: true,
            loss: 40,
            duplication: 40,
            reordering: 100,
            seed,
            ..Conditions::default()
        };
        let mut pair = Pair::relayed(client(), relay(), server(), conditions);
        let mut sent = [0u32; 2];
        let mut events = [Vec::new(), Vec::new()];
        let mut sampler = Sampler::new(seed);
        for round in 1..=14u32 {
            for (end, sent) in [&mut pair.client, &mut pair.server].into_iter().zip(&mut sent) {
                for _ in 0..10 {
                    let rest = sampler.bytes(30);
                    end.send(&message(5, 9, &[&sent.to_le_bytes(), &rest[..]].concat())).unwrap();
                    *sent += 1;
                }
            }
            pair.run_until(SECOND * round / 2, |member, event, _| {
                let Event::Received(received) = event else { return };
                if matches!(received.unit, Unit::Message { .. }) && member != Member::Relay {
                    events[received.side.index()].push(number(received.payload()));
                }
            });
        }
        if !pair.client.is_established() || !pair.server.is_established() {
            continue;
        }
        established += 1;
        for (events, sent) in events.iter_mut().zip(sent) {
            events.sort_unstable();
            events.dedup();
            assert!(events.len() > 90 && events.iter().all(|number| *number < sent), "{events:?}");
        }
        assert!(pair.relay.is_some_and(|relay| !relay.is_closed()));
    }
    assert!(established > 6, "{established}");

    // Each datagram is forwarded as received, whatever its content.
    let mut relay = accepted(false);
    let two =
        [frame(&[message(1, 1, b"a")], Some(0)), frame(&[message(1, 2, b"b")], None)].concat();
    for datagram in [&two[..], &two[..9], b"junk", &two[..], &[&two[..], b"junk"].concat()] {
        relay.input(Duration::ZERO, Side::Client, Input::Datagram(datagram));
        lines(&mut relay);
        assert_eq!(relay.poll_transmit(Side::Server).as_deref(), Some(datagram));
        assert_eq!(relay.poll_transmit(Side::Server), None);
    }
    // One of two messages is dropped. One is injected before the datagram, and one is sent after it,
    // because the datagram has begun.
    let mut count = 0;
    relay.input(Duration::ZERO, Side::Client, Input::Datagram(&two));
    while let Some((event, sender)) = relay.poll() {
        if matches!(event, Event::Received(_)) {
            count += 1;
            sender.inject(Side::Server, &encoded(&message(3, 3, &[count]))).unwrap();
            if count == 1 {
                sender.forward(Decision::Drop).unwrap();
            }
        }
    }
    let out: Vec<_> = core::iter::from_fn(|| relay.poll_transmit(Side::Server)).collect();
    let injected = |count| frame(&[message(3, 3, &[count])], Some(0));
    assert_eq!(out, [injected(1), frame(&[message(1, 2, b"b")], None), injected(2)]);
}

/// The relay's decision about the message with this number in the long conversation.
fn plan(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761) >> 28
}

#[test]
fn ten_thousand_messages_with_edits_drops_and_injections() {
    let latency = Duration::from_millis(20);
    let conditions = Conditions { latency, segment: 64, seed: 3, ..Conditions::default() };
    let mut pair = Pair::relayed(client(), relay(), server(), conditions);
    let mut sent = [0u32; 2];
    let mut wanted = [Vec::new(), Vec::new()];
    let mut events = [Vec::new(), Vec::new()];
    let mut on = |member: Member, event: EventOf<'_, Connection>, sender: &mut Sender| {
        let Event::Received(received) = event else {
            assert!(matches!(event, Event::News(_)), "{event:?}");
            // The server ignores only messages to the stale session.
            let Event::News(News::Ignored { bytes, .. }) = event else { return };
            assert_eq!(number(&bytes[4..]), 1_000_000);
            return;
        };
        let Unit::Message { order, .. } = received.unit else { return };
        let (side, value) = (received.side, number(received.payload()));
        if member != Member::Relay {
            events[side.index()].push((order, value));
            return;
        }
        match plan(value) {
            0 | 1 if value < 1_000_000 => sender.forward(Decision::Drop).unwrap(),
            2 | 3 if value < 1_000_000 => {
                let other = encoded(&message(8, 2, &(value ^ 0xffff).to_le_bytes()));
                sender.forward(Decision::instead(&other)).unwrap();
                wanted[side.index()].push((2, value ^ 0xffff));
            }
            4 if value < 1_000_000 => {
                wanted[side.index()].push((3, value));
                wanted[side.index()].push((1, value));
                sender
                    .inject(side.other(), &encoded(&message(8, 3, &value.to_le_bytes())))
                    .unwrap();
            }
            _ => wanted[side.index()].push((order, value)),
        }
    };
    for round in 1..=250u32 {
        for (end, sent) in [&mut pair.client, &mut pair.server].into_iter().zip(&mut sent) {
            for _ in 0..20 {
                end.send(&message(8, 1, &sent.to_le_bytes())).unwrap();
                *sent += 1;
            }
        }
        pair.run_until(SECOND * round, &mut on);
        if round == 120 {
            // The message to the stale session is ignored, and the client sends it again.
            pair.server.refresh(9).unwrap();
            pair.client.send(&message(8, 1, &1_000_000u32.to_le_bytes())).unwrap();
            pair.run_until(SECOND * round + SECOND / 2, &mut on);
        }
    }
    pair.run_until(SECOND * 251, &mut on);
    // The relay received that message twice.
    let twice = wanted[0].iter().position(|item| *item == (1, 1_000_000)).unwrap();
    wanted[0].remove(twice);
    assert_eq!(sent, [5000, 5000]);
    assert_eq!(events, wanted);
    assert!(events.iter().all(|events| events.len() > 4000 && events.len() != 5000));
    assert_eq!((pair.client.session_id(), pair.server.session_id()), (Some(9), Some(9)));
    assert!(!pair.client.is_closed() && !pair.server.is_closed());
    // The connection continues, including keep-alives.
    pair.run_until(SECOND * 3600, |_, event, _| assert!(!matches!(event, Event::Closed(_))));
}

#[test]
fn a_frame_of_several_messages_is_rebuilt() {
    let all = [message(1, 1, b"one"), message(1, 2, b"two"), message(1, 3, b"three")];
    let long = message(9, 9, &[9; 40_000]);
    let play = |bytes: &[u8], decide: &dyn Fn(&[u8]) -> Decision<'static>| {
        let mut relay = accepted(false);
        feed(&mut relay, Side::Client, bytes, |payload, sender| {
            sender.forward(decide(payload)).unwrap();
        });
        passed(&mut relay, Side::Server)
    };
    let other: &'static [u8] = Box::leak(encoded(&message(7, 7, b"another")).into_boxed_slice());
    for trailer in [None, Some(0), Some(0x55)] {
        let original = frame(&all, trailer);
        assert_eq!(play(&original, &|_| Decision::AsIs), original);
        let edit = |payload: &[u8]| match payload {
            b"two" => Decision::instead(other),
            _ => Decision::AsIs,
        };
        let wanted = frame(&[all[0].clone(), message(7, 7, b"another"), all[2].clone()], trailer);
        assert_eq!(play(&original, &edit), wanted);
        let drop = |payload: &[u8]| match payload {
            b"two" => Decision::AsIs,
            _ => Decision::Drop,
        };
        assert_eq!(play(&original, &drop), frame(&all[1..2], trailer));
        assert_eq!(play(&original, &|_| Decision::Drop), b"");
        // A long frame takes the short form if it shrinks; a deliberate long form is kept.
        let original = frame(&[all[0].clone(), long.clone()], trailer);
        let shorten = |payload: &[u8]| match payload {
            b"one" => Decision::AsIs,
            _ => Decision::Drop,
        };
        assert_eq!(play(&original, &shorten), frame(&all[..1], trailer));
    }
    let form = worldwire_ki::frame::FrameForm::Large { marker: 0x9000 };
    let large = |messages: &[RawMessage<'static>]| {
        let body = Body::Data(messages.to_vec());
        Frame { form, body, ..Frame::message(message(1, 1, b"")) }.to_bytes().unwrap()
    };
    let shorten = |payload: &[u8]| if payload == b"two" { Decision::Drop } else { Decision::AsIs };
    assert_eq!(play(&large(&all[..2]), &shorten), large(&all[..1]));
    // Frames without messages are forwarded too.
    let empty = frame(&[], Some(0));
    assert_eq!(play(&empty, &|_| Decision::Drop), empty);
}

#[test]
fn session_control_messages_cannot_be_changed() {
    let mut relay = relay();
    let error = relay.sender().inject(Side::Client, &encoded(&message(1, 1, b"x"))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "setup is not complete; wait until the connection is established"
    );
    let offer = server().poll_transmit(Side::Client).unwrap();
    relay.input(Duration::ZERO, Side::Server, Input::Bytes(&offer));
    let (event, sender) = relay.poll().unwrap();
    assert!(matches!(event, Event::Received(_)));
    for decision in [Decision::Drop, Decision::instead(&offer)] {
        let error = sender.forward(decision).unwrap_err().to_string();
        let wanted = "a control message of the session must be forwarded unchanged";
        assert_eq!(error, wanted);
    }
    assert_eq!(passed(&mut relay, Side::Client), offer, "it is forwarded");
    assert!(relay.sender().forward(Decision::Drop).is_err(), "it has left");

    let mut relay = accepted(false);
    let bytes = frame(&[message(1, 1, b"x")], Some(0));
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&bytes));
    let (_, sender) = relay.poll().unwrap();
    for wrong in [&b""[..], b"xyz", &bytes, &[encoded(&message(1, 1, b"x")), vec![0]].concat()] {
        assert!(sender.forward(Decision::instead(wrong)).is_err());
        assert!(sender.inject(Side::Client, wrong).is_err());
    }
    assert!(sender.send(&message(1, 1, b"x")).is_err());
    assert_eq!(passed(&mut relay, Side::Server), bytes);

    // Unknown control messages may be changed.
    let unknown = |opcode, body: &'static [u8]| {
        Frame::control(Control::Other { opcode: Opcode(opcode), body: body.into() }).to_bytes()
    };
    let (bytes, other) = (unknown(7, b"abc").unwrap(), unknown(9, b"").unwrap());
    for (decision, wanted) in [(Decision::Drop, &[][..]), (Decision::instead(&other), &other)] {
        relay.input(Duration::ZERO, Side::Client, Input::Bytes(&bytes));
        let (_, sender) = relay.poll().unwrap();
        assert!(sender.forward(Decision::instead(&offer)).is_err());
        sender.forward(decision).unwrap();
        assert_eq!(passed(&mut relay, Side::Server), wanted);
    }
    for end in [&mut client(), &mut server()] {
        assert!(end.sender().forward(Decision::AsIs).is_err());
        assert!(end.sender().inject(Side::Client, &encoded(&message(1, 1, b""))).is_err());
    }
}

#[test]
fn both_directions_continue_after_a_fault() {
    let mut relay = accepted(false);
    // This message claims to be longer than its frame. The ends may nevertheless be able to read
    // it.
    let odd = [0x0d, 0xf0, 9, 0, 0, 0, 0, 0, 1, 1, 99, 0, 0];
    let good = frame(&[message(1, 1, b"good")], Some(0));
    let stream = [&good[..], &odd, &good, b"no frame at all"].concat();
    for piece in stream.chunks(5) {
        relay.input(Duration::ZERO, Side::Server, Input::Bytes(piece));
    }
    let reported = lines(&mut relay);
    assert_eq!(reported.len(), 2, "{reported:?}");
    insta::assert_snapshot!(reported[1], @"fault of the server: messages[0].payload at byte 57: wanted 95 bytes, found 1");
    assert_eq!(passed(&mut relay, Side::Client), stream);
    let error = relay.sender().inject(Side::Client, &encoded(&message(1, 1, b"x"))).unwrap_err();
    assert_eq!(error.to_string(), "this stream has been forwarded unread since a fault");
    // The other direction is still read.
    feed(&mut relay, Side::Client, &good, |_, sender| sender.forward(Decision::Drop).unwrap());
    assert_eq!(passed(&mut relay, Side::Server), b"");
    // Each side ends separately.
    relay.input(Duration::ZERO, Side::Server, Input::End);
    assert!(lines(&mut relay).is_empty() && !relay.is_closed());
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&good[..5]));
    relay.input(Duration::ZERO, Side::Client, Input::End);
    let reported = lines(&mut relay);
    assert!(reported[0].starts_with("fault of the client: at byte "), "{reported:?}");
    assert_eq!(reported[1], "Closed(Remote)");
    assert_eq!(passed(&mut relay, Side::Server), &good[..5]);
}

#[test]
fn a_slow_side_is_bounded() {
    let bounds = Bounds { queued_bytes: 100_000, queued_messages: 1000 };
    let config = RelayConfig { bounds, ..RelayConfig::new(Arc::default()) };
    let relay = Connection::relay(Arc::new(config), Duration::ZERO);
    let mut relay = accepted_by(relay, false);
    // Injections are refused, and the connection continues.
    let big = encoded(&message(1, 1, &[0; 60_000]));
    relay.sender().inject(Side::Server, &big).unwrap();
    let error = relay.sender().inject(Side::Server, &big).unwrap_err().to_string();
    assert!(error.starts_with("wanted at most 100000 (queued bytes), found 12"), "{error}");
    assert!(!relay.is_closed());
    // Small frames are combined into a few writes, so 5,000 of them do not close the connection.
    passed(&mut relay, Side::Server);
    let small = frame(&[message(1, 1, b"")], None);
    for _ in 0..50 {
        feed(&mut relay, Side::Client, &small.repeat(100), |_, _| ());
    }
    assert_eq!(relay.queued_bytes(Side::Server), 5000 * small.len());
    // Pieces for which there is no room wait, and the relay reads no more of that stream.
    let frame = frame(&[message(1, 1, &[0; 30_000])], None);
    for _ in 0..2 {
        relay.input(Duration::ZERO, Side::Client, Input::Bytes(&frame));
    }
    assert_eq!(lines(&mut relay).len(), 2);
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&frame));
    assert!(lines(&mut relay).is_empty() && relay.is_paused(Side::Client));
    assert_eq!(relay.queued_bytes(Side::Server), 5000 * small.len() + frame.len());
    assert_eq!(relay.kept_bytes(Side::Client), frame.len());
    let error = relay.sender().inject(Side::Server, &big).unwrap_err().to_string();
    assert!(error.starts_with("wanted at most 100000 (queued bytes), found 1"), "{error}");
    // The other direction is still read.
    feed(&mut relay, Side::Server, &small, |_, _| ());
    assert_eq!(passed(&mut relay, Side::Client), small);
    let mut out = passed(&mut relay, Side::Server);
    assert_eq!(lines(&mut relay).len(), 1);
    out.extend(passed(&mut relay, Side::Server));
    assert!(out == [small.repeat(5000), frame.repeat(3)].concat());
    assert!(!relay.is_paused(Side::Client) && relay.kept_bytes(Side::Client) == 0);
}

#[test]
fn a_driver_that_ignores_a_pause_meets_a_limit() {
    let bounds = Bounds { queued_bytes: 1000, queued_messages: 1000 };
    let slow = || {
        let config = RelayConfig { bounds, ..RelayConfig::new(Arc::default()) };
        accepted_by(Connection::relay(Arc::new(config), Duration::ZERO), false)
    };
    let mut relay = slow();
    let bytes = frame(&[message(1, 1, &[0; 400])], None);
    let mut reported = Vec::new();
    for _ in 0..9 {
        relay.input(Duration::ZERO, Side::Client, Input::Bytes(&bytes));
        reported.extend(lines(&mut relay));
    }
    insta::assert_snapshot!(reported[3..].join("\n"), @r"
    fault of the client: at byte 1266: wanted at most 1000 (bytes waiting while the queue is full), found 1236
    Closed(Fault)
    ");
    assert!(relay.queued_bytes(Side::Server) <= 1000);
    // This frame can never fit.
    let mut relay = slow();
    let bytes = frame(&[message(1, 1, &[0; 2000])], None);
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&bytes));
    insta::assert_snapshot!(lines(&mut relay)[1..].join("\n"), @r"
    fault of the client: at byte 2042: wanted at most 1000 (queued bytes), found 2012
    Closed(Fault)
    ");
}
