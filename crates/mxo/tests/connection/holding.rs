//! A relay that holds pieces.

use std::time::Duration;

use worldwire_core::connection::{Bounds, Connection as _, Decision, Event, Forward as _};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::{Member, Pair};
use worldwire_core::{Reader, Side};
use worldwire_mxo::connection::{Connection, RelayConfig, Unit};
use worldwire_mxo::frame::{Packet, Section};

use crate::support::{SECOND, WIRE, client, known, rpc, server};

fn pair(bounds: Bounds) -> Pair<Connection> {
    let config = RelayConfig { bounds, ..RelayConfig::new(known()) };
    let relay = Connection::relay(&config, Duration::ZERO);
    let mut pair = Pair::relayed(client(), relay, server(), WIRE);
    pair.run_until(SECOND, |_, _, _| {});
    assert!(pair.client.is_established() && pair.server.is_established());
    pair
}

/// Objects, which are not sent again.
fn objects(number: u8) -> [u8; 5] {
    [0xab, 0xcd, number, 0xcd, 0xab]
}

fn replaced(packet: &[u8], number: u8) -> Vec<u8> {
    let mut packet = Packet::decode(&mut Reader::new(packet), None).unwrap().into_owned();
    for section in &mut packet.sections {
        if let Section::Objects(bytes) = section {
            *bytes = [&objects(number)[..], &[0, 0]].concat().into();
        }
    }
    packet.to_bytes().unwrap()
}

#[test]
fn a_held_message_that_is_repeated_does_not_silence_its_side() {
    let mut pair = pair(Bounds::default());
    pair.client.send(&rpc(1)).unwrap();
    let mut held = Vec::new();
    let mut heard = 0;
    for minute in 1..=60 {
        // The client acknowledges these in packets that also carry the message, so they are held.
        pair.server.send(&rpc(minute)).unwrap();
        pair.run_until(60 * minute * SECOND, |member, event, sender| match (member, event) {
            (Member::Relay, Event::Received(piece)) => {
                let is_packet = matches!(piece.unit, Unit::Packet { .. });
                if is_packet && piece.side == Side::Client && held.is_empty() {
                    held.push(sender.hold().unwrap());
                }
            }
            (Member::Client, Event::Received(piece)) => {
                heard += usize::from(matches!(piece.unit, Unit::Rpc { .. }));
            }
            (_, Event::Closed(reason)) => panic!("{member:?}: {reason}"),
            _ => {}
        });
    }
    assert_eq!(heard, 60);
    let relay = pair.relay.as_mut().unwrap();
    relay.sender().release(held[0], Decision::AsIs).unwrap();
    let mut at_server = Vec::new();
    pair.run_until(pair.now + 10 * SECOND, |member, event, _| {
        if let (Member::Server, Event::Received(piece)) = (member, event)
            && let Unit::Rpc { .. } = piece.unit
        {
            at_server.push(piece.bytes.to_vec());
        }
    });
    assert_eq!(at_server, [rpc(1).body.into_owned()]);
    assert_eq!(pair.relay.as_ref().unwrap().poll_timeout(), None, "no more pings");
}

#[test]
fn holding_keeps_its_promises() {
    check(&Family {
        pair: &pair,
        say: &|end, _, number| {
            let section = [&[3][..], &objects(number), &[0, 0]].concat();
            end.sender().send_objects(&section, None).unwrap();
        },
        number: &|_, bytes| {
            let mut found = bytes.windows(5).filter(|it| **it == objects(it[2]));
            found.next().map(|objects| objects[2])
        },
        replacement: &|_, packet, number| replaced(packet, number),
        patience: Duration::from_secs(300),
    });
}
