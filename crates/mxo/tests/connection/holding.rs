//! A relay that holds pieces.

use std::time::Duration;

use worldwire_core::Reader;
use worldwire_core::connection::{Bounds, Connection as _};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::Pair;
use worldwire_mxo::connection::{Connection, RelayConfig};
use worldwire_mxo::frame::{Packet, Section};

use crate::support::{SECOND, WIRE, client, known, server};

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
