//! Targets for connections in every role: bytes split anywhere, and lists of operations.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Connection as _, Event, Input};
use worldwire_core::testing::Target;

use super::wire::{KEY, client_streams, server_streams};
use crate::connection::{ClientConfig, Connection, ObserverKeys, RelayConfig, ServerConfig};
use crate::message::RawMessage;

/// The targets of this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_connection_client", run: client, seeds: server_streams },
    Target { name: "ki_connection_server", run: server, seeds: client_streams },
    Target { name: "ki_connection_observer", run: observer, seeds: client_streams },
    Target { name: "ki_connection_relay", run: relay, seeds: client_streams },
];

const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// The first byte determines how the rest is split. Returns the forwarded bytes and how the
/// connection ended.
fn feed(mut connection: Connection, side: Side, data: &[u8]) -> (Vec<u8>, Option<CloseReason>) {
    let mut passed = Vec::new();
    let Some((cut, data)) = data.split_first() else { return (passed, None) };
    let mut read = 0;
    for (index, piece) in data.chunks(usize::from(*cut).max(1)).enumerate() {
        let now = Duration::from_secs(index as u64);
        connection.input(now, side, Input::Bytes(piece));
        while let Some(event) = connection.poll_event() {
            let Event::Received(received) = event else { continue };
            if received.side == side && !received.encrypted {
                // Postponed messages follow the accept that released them.
                read = received.range.end.max(read);
                assert!(read <= data.len() as u64, "read beyond the input");
            }
            received.control().expect("it was already decoded");
            assert!(received.payload().len() <= received.bytes.len());
        }
        while let Some(bytes) = connection.poll_transmit(side.other()) {
            passed.extend(bytes);
        }
        while connection.poll_transmit(side).is_some() {}
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.timeout(now);
        }
    }
    for side in Side::BOTH {
        connection.input(Duration::from_secs(100_000), side, Input::End);
    }
    let mut reason = None;
    while let Some(event) = connection.poll_event() {
        assert_eq!(reason, None, "an event after the end");
        if let Event::Closed(why) = event {
            reason = Some(why);
        }
    }
    while let Some(bytes) = connection.poll_transmit(side.other()) {
        passed.extend(bytes);
    }
    (passed, reason)
}

fn client(data: &[u8]) {
    let mut client = Connection::client(Arc::new(ClientConfig::new(EPOCH)), Duration::ZERO);
    let message = RawMessage { service: 1, order: 1, payload: b"early"[..].into() };
    client.send(&message).expect("the queue has room");
    feed(client, Side::Server, data);
}

fn server(data: &[u8]) {
    let config = Arc::new(ServerConfig::new(EPOCH));
    feed(Connection::server(config, 0x1234, Duration::ZERO), Side::Client, data);
}

fn keys() -> Arc<ObserverKeys> {
    Arc::new(ObserverKeys { streams: vec![(None, KEY)] })
}

fn observer(data: &[u8]) {
    feed(Connection::observer(keys()), Side::Client, data);
    feed(Connection::observer_from_the_middle(keys()), Side::Server, data);
    let mut datagrams = Connection::observer(keys());
    for (index, piece) in data.chunks(40).enumerate() {
        let side = Side::BOTH[index % 2];
        datagrams.input(Duration::ZERO, side, Input::Datagram(piece));
        if index % 5 == 4 {
            datagrams.input(Duration::ZERO, Side::Client, Input::Gap(10));
        }
    }
    while datagrams.poll_event().is_some() {}
}

/// If nothing is changed, the same bytes come out, readable or not; only a missing key ends it
/// early.
fn relay(data: &[u8]) {
    for side in Side::BOTH {
        let relay = Connection::relay(Arc::new(RelayConfig::new(keys())), Duration::ZERO);
        let (passed, reason) = feed(relay, side, data);
        let data = data.get(1..).unwrap_or_default();
        assert!(data.starts_with(&passed), "bytes changed");
        if reason == Some(CloseReason::Remote) {
            assert_eq!(data.len(), passed.len(), "bytes were not forwarded");
        }
    }
}
