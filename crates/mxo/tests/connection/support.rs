//! Shared by the tests: connections, and events as lines of text.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, EventOf};
use worldwire_core::testing::pair::{Conditions, Pair};
use worldwire_mxo::connection::{
    ClientConfig, Connection, RelayConfig, ServerConfig, Session, Unit,
};
use worldwire_mxo::crypt::{KnownSession, SessionKey};
use worldwire_mxo::frame::RpcMessage;

pub(crate) const EPOCH: Duration = Duration::from_secs(1_248_965_312);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const SESSION: u32 = 0x1f2e_3d4c;

pub(crate) fn key() -> SessionKey {
    SessionKey::new(&[0x4b; 16])
}

pub(crate) fn session(side: Side) -> Session {
    Session::new(SESSION, key(), &[side as u8 + 1; 16])
}

pub(crate) fn client() -> Connection {
    let config = ClientConfig::new(EPOCH, 2);
    Connection::client(config, session(Side::Client), Duration::ZERO)
}

pub(crate) fn server() -> Connection {
    Connection::server(ServerConfig::new(EPOCH), session(Side::Server), Duration::ZERO)
}

/// A server that needs no acknowledgement of its first packet.
pub(crate) fn trusting() -> Connection {
    let config = ServerConfig { trusts_hellos: true, ..ServerConfig::new(EPOCH) };
    Connection::server(config, session(Side::Server), Duration::ZERO)
}

pub(crate) fn known() -> Arc<[KnownSession]> {
    Arc::new([
        KnownSession { id: None, key: SessionKey::new(&[1; 16]) },
        KnownSession { id: Some(SESSION), key: key() },
    ])
}

pub(crate) fn relay() -> Connection {
    Connection::relay(&RelayConfig::new(known()), Duration::ZERO)
}

/// A network with a delay of 40 ms.
pub(crate) const WIRE: Conditions = Conditions {
    latency: Duration::from_millis(40),
    segment: 0,
    datagrams: true,
    loss: 0,
    duplication: 0,
    reordering: 0,
    corruption: 0,
    unseen: 0,
    seed: 1,
};

pub(crate) fn pair() -> Pair<Connection> {
    Pair::new(client(), server(), WIRE)
}

/// A pair with an answered hello.
pub(crate) fn established() -> Pair<Connection> {
    let mut pair = pair();
    pair.run_until(SECOND, |_, _, _| {});
    assert!(pair.client.is_established() && pair.server.is_established());
    pair
}

pub(crate) fn rpc(number: u32) -> RpcMessage<'static> {
    RpcMessage::new(0x28, &number.to_le_bytes())
}

/// An event as one line of text.
pub(crate) fn line(event: &EventOf<'_, Connection>) -> String {
    match event {
        Event::Received(received) => {
            let unit = match &received.unit {
                Unit::Hello(hello) => format!("Hello {}", hello.character_uid),
                Unit::Plain => "Plain".into(),
                Unit::Packet { number, flags } => format!("Packet {number} {:02x}", flags.0),
                Unit::Upkeep { number, flags } => format!("Upkeep {number} {:02x}", flags.0),
                Unit::Rpc { number } => format!("Rpc {number}"),
                Unit::Section { id, number } => format!("Section {id} {number}"),
            };
            format!("{} {unit}, {:?}", received.side, received.range)
        }
        Event::Fault { side, error } => format!("fault of the {side}: {error}"),
        Event::News(news) => format!("{news:?}"),
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

/// All datagrams that a connection sends now.
pub(crate) fn datagrams(connection: &mut Connection, to: Side) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| connection.poll_transmit(to)).collect()
}
