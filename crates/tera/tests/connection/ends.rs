//! Shared by the tests of connections.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, EventOf, Input, Piece as _};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_tera::connection::{Config, Connection, News, Unit};
use worldwire_tera::crypt::exchange::{Key, Variant};
use worldwire_tera::frame::CHECK_VERSION;

pub(crate) const NOW: Duration = Duration::ZERO;

/// Keys that change when they are rotated.
pub(crate) const CLIENT_KEYS: [Key; 2] = [key(1), key(2)];
pub(crate) const SERVER_KEYS: [Key; 2] = [key(3), key(4)];

const fn key(seed: u8) -> Key {
    let mut key = [seed; 128];
    key[0] = !seed;
    key[100] = seed ^ 0x55;
    key
}

pub(crate) fn message(opcode: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4).unwrap();
    [&length.to_le_bytes()[..], &opcode.to_le_bytes(), body].concat()
}

pub(crate) fn line(event: &EventOf<'_, Connection>) -> String {
    match event {
        Event::Received(received) => match received.unit {
            Unit::Message { .. } => format!("{} {:02x?}", received.side, received.bytes),
            unit => format!("{} {unit:?}", received.side),
        },
        Event::News(News::Established) => "Established".to_owned(),
        Event::Fault { side, error } => format!("fault of the {side}: {error}"),
        other => format!("{other:?}"),
    }
}

pub(crate) fn lines(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

/// A connection's reaction to a side's bytes.
pub(crate) fn hear(connection: &mut Connection, side: Side, bytes: &[u8]) -> Vec<String> {
    connection.input(NOW, side, Input::Bytes(bytes));
    lines(connection)
}

pub(crate) fn config(variant: Variant) -> Arc<Config> {
    Arc::new(Config { variant, ..Config::default() })
}

pub(crate) fn client(variant: Variant) -> Connection {
    Connection::client(config(variant), CLIENT_KEYS, NOW)
}

pub(crate) fn server(variant: Variant) -> Connection {
    Connection::server(config(variant), SERVER_KEYS, NOW)
}

/// A wire that cuts and delays.
pub(crate) fn rough(seed: u64) -> Conditions {
    let latency = Duration::from_millis(30);
    Conditions { latency, segment: 70, seed, ..Conditions::default() }
}

pub(crate) fn random_message(sampler: &mut Sampler, opcode: u16, most: u64) -> Vec<u8> {
    let length = usize::try_from(sampler.below(most)).unwrap();
    message(opcode, &sampler.bytes(length))
}

/// The pieces that both sides sent, as they were on the wire, and those that they received.
pub(crate) struct Said {
    pub(crate) pieces: Vec<(Side, Vec<u8>)>,
    pub(crate) heard: [Vec<String>; 2],
}

/// Keys are exchanged, the client sends its first message, and both sides send some more.
pub(crate) fn session(sampler: &mut Sampler, variant: Variant) -> Said {
    let mut key = || -> Key { sampler.bytes(128).try_into().unwrap() };
    let client = Connection::client(config(variant), [key(), key()], NOW);
    let server = Connection::server(config(variant), [key(), key()], NOW);
    let mut pair = Pair::new(client, server, Conditions::default());
    // The message is sent before there are keys, so it waits.
    pair.client.send(&message(CHECK_VERSION, &[1, 2, 3])).unwrap();
    let mut said = Said { pieces: Vec::new(), heard: Default::default() };
    let mut places = Vec::new();
    for round in 4..12 {
        if round > 4 {
            for connection in [&mut pair.client, &mut pair.server] {
                connection.send(&random_message(sampler, round, 700)).unwrap();
            }
        }
        pair.settle(|member, event, _| {
            let index = if member == Member::Client { 0 } else { 1 };
            said.heard[index].push(line(&event));
            if let Event::Received(received) = event {
                places.push((received.side, received.range()));
            }
        });
    }
    assert!(pair.client.is_established() && pair.server.is_established());
    assert_eq!(pair.client.poll_timeout(), None);
    assert_eq!(pair.server.poll_timeout(), Some(Duration::from_secs(120)));
    for (side, range) in places {
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
        said.pieces.push((side, pair.written[side.index()][start..end].to_vec()));
    }
    said
}
