//! A relay that holds pieces.

use std::collections::HashSet;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Connection as _, Decision, Event, Forward as _, Input};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::{Member, Pair};
use worldwire_core::{Reader, Side};
use worldwire_tera::connection::{Connection, RelayConfig, Unit};
use worldwire_tera::crypt::exchange::Variant;
use worldwire_tera::frame::Header;
use worldwire_tera::integrity;

use crate::ends::{NOW, message, rough};
use crate::relay::{box_of, client_bytes, established, first, heard_by};

const OPCODE: u16 = 7;

fn numbered(number: u8) -> Vec<u8> {
    message(OPCODE, &[number; 20])
}

fn number(bytes: &[u8]) -> Option<u8> {
    let header = Header::decode(&mut Reader::new(bytes)).ok()?;
    (header.opcode == OPCODE).then(|| *bytes.last().unwrap())
}

fn pair(bounds: Bounds, integrity: HashSet<u16>) -> Pair<Connection> {
    let config = RelayConfig { bounds, integrity, ..RelayConfig::default() };
    let mut pair = box_of(Variant::From45, config, rough(1));
    pair.client.send(&first()).unwrap();
    heard_by(Member::Relay, &mut pair);
    pair
}

#[test]
fn holding_keeps_its_promises() {
    for integrity in [HashSet::new(), HashSet::from([OPCODE])] {
        check(&Family {
            pair: &|bounds| pair(bounds, integrity.clone()),
            say: &|end, _, number| end.send(&numbered(number)).unwrap(),
            number: &|_, bytes| number(bytes),
            replacement: &|_, _, number| numbered(number),
            // These ends have no keep-alives: a server gives up a silent client after two minutes.
            patience: Duration::from_secs(50),
        });
    }
}

#[test]
fn counters_follow_the_order_in_which_messages_leave() {
    let integrity = HashSet::from([OPCODE]);
    let config = RelayConfig { integrity, ..RelayConfig::default() };
    let (mut client, mut relay, mut server) = established(config);
    let mut held = Vec::new();
    for counter in 1..=4 {
        let mut signed = message(OPCODE, &[0; 20]);
        signed[4..8].copy_from_slice(&u32::to_le_bytes(counter));
        let bytes = client_bytes(&mut client, &signed);
        relay.input(NOW, Side::Client, Input::Bytes(&bytes));
        while let Some((event, sender)) = relay.poll() {
            if matches!(event, Event::Received(received) if received.bytes.len() == 24) {
                held.push(sender.hold().unwrap());
            }
        }
    }
    // The second message never leaves, so the counters of those after it are one lower.
    for (index, decision) in [(1, Decision::Drop), (3, Decision::AsIs), (2, Decision::AsIs)] {
        relay.sender().release(held[index], decision).unwrap();
        assert!(relay.poll().is_none());
        assert_eq!(relay.poll_transmit(Side::Server), None);
    }
    relay.sender().release(held[0], Decision::AsIs).unwrap();
    assert!(relay.poll().is_none());
    while let Some(bytes) = relay.poll_transmit(Side::Server) {
        server.input(NOW, Side::Client, Input::Bytes(&bytes));
    }
    let mut counters = Vec::new();
    while let Some(event) = server.poll_event() {
        if let Event::Received(received) = event {
            counters.push(integrity::header(received.bytes).unwrap().0);
        }
    }
    assert_eq!(counters, [1, 2, 3]);
}

#[test]
fn keep_alives_overtake_held_messages_in_their_own_order() {
    let (ping, pong) = (message(20, &[]), |number: u8| message(21, &[number; 20]));
    let (mut client, mut relay, mut server) = established(RelayConfig::default());
    relay.sender().set_keep_alives([Some(21), Some(20)]).unwrap();
    assert!(client.sender().set_keep_alives([None; 2]).is_err());
    let mut arrive = |relay: &mut Connection, message: &[u8], is_held: bool| {
        let bytes = client_bytes(&mut client, message);
        relay.input(NOW, Side::Client, Input::Bytes(&bytes));
        let mut held = None;
        while let Some((event, sender)) = relay.poll() {
            assert!(matches!(event, Event::Received(_)));
            held = is_held.then(|| sender.hold().unwrap());
        }
        held
    };
    let mut leave = |relay: &mut Connection| {
        while let Some(bytes) = relay.poll_transmit(Side::Server) {
            server.input(NOW, Side::Client, Input::Bytes(&bytes));
        }
        let mut heard = Vec::new();
        while let Some(event) = server.poll_event() {
            let Event::Received(received) = event else { panic!("{event:?}") };
            heard.push(received.bytes.to_vec());
        }
        heard
    };
    let first = arrive(&mut relay, &numbered(1), true).unwrap();
    // A server's keep-alive has a different opcode.
    arrive(&mut relay, &ping, false);
    arrive(&mut relay, &pong(1), false);
    assert_eq!(leave(&mut relay), [pong(1)]);
    let second = arrive(&mut relay, &pong(2), true).unwrap();
    arrive(&mut relay, &pong(3), false);
    assert!(leave(&mut relay).is_empty());
    for held in [second, first] {
        relay.sender().release(held, Decision::AsIs).unwrap();
    }
    assert!(relay.poll().is_none());
    assert_eq!(leave(&mut relay), [numbered(1), ping, pong(2), pong(3)]);
}

#[test]
fn keys_can_be_held_too() {
    let mut relay = Connection::relay(RelayConfig::default().into(), NOW);
    relay.input(NOW, Side::Server, Input::Bytes(&[1, 0, 0, 0]));
    let (event, sender) = relay.poll().unwrap();
    assert!(matches!(event, Event::Received(received) if received.unit == Unit::Hello));
    let id = sender.hold().unwrap();
    assert!(sender.release(id, Decision::Drop).is_err(), "hello has to be forwarded");
    assert!(relay.poll().is_none());
    assert_eq!(relay.poll_transmit(Side::Client), None);
    relay.sender().release(id, Decision::AsIs).unwrap();
    assert!(relay.poll().is_none());
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), [1, 0, 0, 0]);
}
