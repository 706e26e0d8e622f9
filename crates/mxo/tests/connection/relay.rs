//! The data that a relay forwards, and how it forwards it.

use std::time::Duration;

use worldwire_core::connection::{Connection as _, Decision, Event, Forward as _, Input};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Reader, Side};
use worldwire_mxo::connection::{Connection, RelayConfig, Unit};
use worldwire_mxo::frame::{Packet, RpcMessage, Section};

use crate::rules::packet;
use crate::support::{
    MILLI, SECOND, WIRE, client, datagrams, key, line, lines, relay, rpc, server,
};

fn relayed(conditions: Conditions) -> Pair<Connection> {
    Pair::relayed(client(), relay(), server(), conditions)
}

#[test]
fn unchanged_packets_are_forwarded_as_the_same_bytes() {
    let mut pair = relayed(WIRE);
    for number in 0..90 {
        pair.client.send(&rpc(number)).unwrap();
        pair.server.send(&rpc(number)).unwrap();
        if number > 30 {
            pair.server.sender().send_objects(&[3, 2, 0, 1, 0, 0], None).unwrap();
        }
        pair.run_until(pair.now + 10 * MILLI, |_, _, _| {});
    }
    pair.run_until(pair.now + SECOND, |_, _, _| {});
    assert_eq!(pair.written, pair.arrived);
    assert!(pair.relay.as_ref().unwrap().is_established());
    assert!(pair.written[1].len() > 4000);
}

/// A copy of the packet with the data of its RPC messages inverted.
fn inverted(packet: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Packet::decode(&mut Reader::new(packet), None).unwrap().into_owned();
    let mut found = false;
    for section in &mut packet.sections {
        let Section::Rpc(lists) = section else { continue };
        for message in lists.iter_mut().flat_map(|list| &mut list.messages) {
            let data: Vec<u8> = message.data().iter().map(|byte| !byte).collect();
            *message = RpcMessage::new(message.opcode(), &data);
            found = true;
        }
    }
    found.then(|| packet.to_bytes().unwrap())
}

#[test]
fn changed_packets_keep_their_numbers_and_dropped_ones_are_resent() {
    let conditions = Conditions { loss: 100, duplication: 200, reordering: 200, ..WIRE };
    let mut pair = relayed(conditions);
    let (mut heard, mut dropped, mut faults) = (Vec::new(), 0, Vec::new());
    for number in 0..150u32 {
        pair.client.send(&rpc(number)).unwrap();
        let end = pair.now + 20 * MILLI;
        pair.run_until(end, |member, event, sender| match (member, &event) {
            (Member::Relay, Event::Received(piece)) if piece.side == Side::Client => {
                let Unit::Packet { number, .. } = piece.unit else { return };
                if number.get() % 5 == 0 {
                    dropped += 1;
                    sender.forward(Decision::Drop).unwrap();
                } else if let Some(changed) = inverted(piece.bytes) {
                    sender.forward(Decision::instead(&changed)).unwrap();
                }
            }
            (Member::Server, Event::Received(piece)) => {
                if let Unit::Rpc { .. } = piece.unit {
                    heard.push(piece.bytes.to_vec());
                }
            }
            (_, Event::Fault { .. }) => faults.push(line(&event)),
            _ => {}
        });
    }
    // The rest is being resent, and is changed, too.
    pair.run_until(pair.now + 20 * SECOND, |member, event, sender| match (member, &event) {
        (Member::Relay, Event::Received(piece)) if piece.side == Side::Client => {
            let Unit::Packet { .. } = piece.unit else { return };
            if let Some(changed) = inverted(piece.bytes) {
                sender.forward(Decision::instead(&changed)).unwrap();
            }
        }
        (Member::Server, Event::Received(piece)) => {
            if let Unit::Rpc { .. } = piece.unit {
                heard.push(piece.bytes.to_vec());
            }
        }
        _ => {}
    });
    let wanted: Vec<_> = (0..150u32).map(|number| rpc(!number).body.into_owned()).collect();
    assert_eq!(heard, wanted);
    assert!(dropped > 20 && faults.is_empty(), "{dropped} dropped, {faults:?}");
}

#[test]
fn a_repeated_packet_is_treated_like_the_first_one() {
    let now = Duration::ZERO;
    let messages = |number: u16| {
        let list = worldwire_mxo::frame::RpcList { first: number, messages: vec![rpc(7)] };
        packet(number, vec![Section::Rpc(vec![list])])
    };
    let [one, two, three] = [1, 2, 3].map(messages);
    let mut relay = relay();
    for wire in [&one, &two, &one, &three, &two, &three] {
        relay.input(now, Side::Client, Input::Datagram(wire));
    }
    let mut repeated = 0;
    while let Some((event, sender)) = relay.poll() {
        let Event::Received(piece) = event else {
            repeated += 1;
            continue;
        };
        match piece.unit {
            Unit::Packet { number, .. } if number.get() == 1 => {
                let changed = inverted(piece.bytes).unwrap();
                sender.forward(Decision::instead(&changed)).unwrap();
            }
            Unit::Packet { number, .. } if number.get() == 2 => {
                sender.forward(Decision::Drop).unwrap();
            }
            _ => {}
        }
    }
    let passed = datagrams(&mut relay, Side::Server);
    assert_eq!((repeated, passed.len()), (3, 4));
    assert_eq!((&passed[0], &passed[2], &passed[3]), (&passed[1], &three, &three));
    assert_ne!(passed[0], one);
    assert_ne!(passed[0][1..17], one[1..17], "another packet has another vector");
    let plain = key().open(passed[0][1..17].try_into().unwrap(), &passed[0][17..]).unwrap();
    assert_eq!(inverted(&plain), key().open(one[1..17].try_into().unwrap(), &one[17..]).ok());
}

#[test]
fn impossible_decisions_are_refused_by_name() {
    let now = Duration::ZERO;
    let mut relay = relay();
    let hello = client().poll_transmit(Side::Server).unwrap();
    relay.input(now, Side::Client, Input::Datagram(&hello));
    let mut refused = Vec::new();
    {
        let (_, sender) = relay.poll().unwrap();
        refused.push(sender.forward(Decision::Drop).unwrap_err().to_string());
    }
    let wire = packet(1, vec![]);
    relay.input(now, Side::Client, Input::Datagram(&wire));
    {
        let (_, sender) = relay.poll().unwrap();
        let other = packet(2, vec![]);
        let other = key().open(other[1..17].try_into().unwrap(), &other[17..]).unwrap();
        refused.push(sender.forward(Decision::instead(&other)).unwrap_err().to_string());
        refused.push(sender.forward(Decision::instead(b"no packet")).unwrap_err().to_string());
        refused.push(sender.send_objects(&[3, 0, 0], None).unwrap_err().to_string());
    }
    refused.push(relay.send(&rpc(1)).unwrap_err().to_string());
    lines(&mut relay);
    refused.push(relay.sender().forward(Decision::Drop).unwrap_err().to_string());
    insta::assert_snapshot!(refused.join("\n"), @r"
    a plain packet must be forwarded unchanged
    wanted a whole packet with the sequence word of the one it replaces, found 15 bytes that are not one
    wanted a whole packet with the sequence word of the one it replaces, found 9 bytes that are not one
    only a client or a server can do this
    only a client or a server can do this
    no piece is waiting for a decision
    ");
    assert_eq!(datagrams(&mut relay, Side::Server)[0], hello);
    // Unreadable datagrams are forwarded unchanged.
    let mut damaged = packet(3, vec![]);
    damaged[25] ^= 1;
    relay.input(now, Side::Client, Input::Datagram(&damaged));
    assert!(lines(&mut relay)[0].starts_with("fault of the client"));
    assert_eq!(datagrams(&mut relay, Side::Server), [damaged]);
    // Without the key, a relay forwards datagrams that it cannot read, and reports the missing key
    // once.
    let config = RelayConfig::new(Default::default());
    let mut blind = Connection::relay(&config, now);
    for datagram in [&hello, &wire, &wire] {
        blind.input(now, Side::Client, Input::Datagram(datagram));
    }
    blind.input(now, Side::Server, Input::Datagram(&wire));
    assert_eq!(
        lines(&mut blind),
        ["client Hello 2, 0..43", "KeysNeeded { side: Client, missing: NotGiven }"]
    );
    assert_eq!(datagrams(&mut blind, Side::Server), [hello, wire.clone(), wire.clone()]);
    assert_eq!(datagrams(&mut blind, Side::Client), [wire]);
}

#[test]
fn a_relay_closes_if_one_side_is_silent() {
    let hello = client().poll_transmit(Side::Server).unwrap();
    let wire = packet(1, vec![]);
    for answers in [&[][..], &[Side::Client], &[Side::Server], &Side::BOTH] {
        let mut relay = Connection::relay(&RelayConfig::new(Default::default()), Duration::ZERO);
        for second in 0..15 {
            let now = Duration::from_secs(second);
            relay.timeout(now);
            relay.input(now, Side::Client, Input::Datagram(&hello));
        }
        for side in answers {
            relay.input(Duration::from_secs(14), *side, Input::Datagram(&wire));
        }
        lines(&mut relay);
        relay.timeout(Duration::from_secs(15));
        lines(&mut relay);
        assert_eq!(
            (relay.is_closed(), relay.is_confirmed()),
            (answers.len() < 2, answers.len() == 2)
        );
    }
}
