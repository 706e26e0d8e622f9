//! Clients and servers, and short functions to drive them manually.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use worldwire_core::connection::Piece as _;
use worldwire_core::connection::{Connection as _, Event, EventOf, Input};
use worldwire_core::{Field, Sampler, Side, Writer};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::connection::{ClientConfig, Connection, Encryption, News, ServerConfig};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service, table};

pub(crate) static KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(1));
pub(crate) static OTHER_KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(2));

pub(crate) const SECOND: Duration = Duration::from_secs(1);

fn ring(seed: u64) -> KeyRing {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut keys = KeyRing::new();
    for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
        keys.insert_private(PrivateKey::generate(kind, PrimeKind::Plain, &mut random));
    }
    keys
}

pub(crate) fn key_kind(service: Service) -> ServerKind {
    match service {
        Service::Gatekeeper => ServerKind::Gatekeeper,
        Service::Game => ServerKind::Game,
        _ => ServerKind::Auth,
    }
}

/// Admits every client and leaves the pings to the tests.
pub(crate) fn open_config() -> ServerConfig {
    let mut config = ServerConfig::new(KEYS.clone());
    config.encryption = Encryption::AllowPlain;
    config.answer_pings = false;
    config
}

pub(crate) fn client_of(service: Service, encrypted: bool, now: Duration) -> Connection {
    let key = KEYS.public(key_kind(service)).filter(|_| encrypted).cloned();
    let mut config = ClientConfig::new(service, key);
    config.ping_every = None;
    Connection::client(config.into(), [0x5a; 64], now).unwrap()
}

pub(crate) fn server_of(config: ServerConfig, now: Duration) -> Connection {
    Connection::server(Arc::new(config), [1, 2, 3, 4, 5, 6, 7], now)
}

/// Short notations for inputs and outputs.
pub(crate) trait Drive {
    fn receive(&mut self, side: Side, now: Duration, bytes: &[u8]);
    fn gap(&mut self, side: Side, now: Duration, length: u64);
    fn end(&mut self, now: Duration);
    fn transmit(&mut self) -> Option<Vec<u8>>;
}

impl Drive for Connection {
    fn receive(&mut self, side: Side, now: Duration, bytes: &[u8]) {
        self.input(now, side, Input::Bytes(bytes));
    }

    fn gap(&mut self, side: Side, now: Duration, length: u64) {
        self.input(now, side, Input::Gap(length));
    }

    /// Ends both streams.
    fn end(&mut self, now: Duration) {
        Side::BOTH.into_iter().for_each(|side| self.input(now, side, Input::End));
    }

    /// The next bytes to transmit to either side.
    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.poll_transmit(Side::Client).or_else(|| self.poll_transmit(Side::Server))
    }
}

/// Formats an event as a line: side, piece, offset, or the text of a fault.
pub(crate) fn line(event: &EventOf<'_, Connection>) -> String {
    match event {
        Event::Received(received) => {
            let (kind, name) = received.name();
            let range = received.range();
            let secret = if received.encrypted { " encrypted" } else { "" };
            let content = received.content().expect("a reported piece can be decoded");
            if let Some(message) = received.message() {
                assert_eq!(message.to_bytes().unwrap(), received.bytes, "{content:?}");
            }
            format!("{} {kind}.{name} {}..{}{secret}", received.side, range.start, range.end)
        }
        Event::News(News::Established { service, encrypted }) => {
            format!("established {} encrypted={encrypted}", service.name())
        }
        Event::Gap { side, range } => format!("{side} gap {}..{}", range.start, range.end),
        Event::Resync { side, skipped } => {
            format!("{side} resync {}..{}", skipped.start, skipped.end)
        }
        Event::News(News::KeysNeeded { service }) => {
            format!("keys needed for {}", service.map_or("something", Service::name))
        }
        Event::Fault { side, error } => format!("{side} fault {error}"),
        Event::Closed(reason) => format!("closed: {reason}"),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn drain(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

pub(crate) fn deliver(
    connection: &mut Connection,
    side: Side,
    now: Duration,
    bytes: &[u8],
) -> Vec<String> {
    connection.receive(side, now, bytes);
    drain(connection)
}

pub(crate) fn sent(connection: &mut Connection) -> Vec<u8> {
    std::iter::from_fn(|| connection.transmit()).flatten().collect()
}

pub(crate) fn start(service: Service, setup: &SetupPacket<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    if service.is_encrypted() {
        setup.encode(&mut writer).unwrap();
    }
    writer.into_bytes()
}

/// The connect packet and the request for a plain connection.
pub(crate) fn plain_start(service: Service) -> Vec<u8> {
    start(service, &SetupPacket::Connect(Vec::new().into()))
}

/// A server after a plain setup.
pub(crate) fn established(config: ServerConfig, service: Service, now: Duration) -> Connection {
    let mut server = server_of(config, now);
    deliver(&mut server, Side::Client, now, &plain_start(service));
    assert!(server.is_established());
    sent(&mut server);
    server
}

pub(crate) fn sample(service: Service, side: Side, number: u32, seed: u64) -> Message<'static> {
    Message::sample(service, side, number, &mut Sampler::new(seed)).unwrap()
}

pub(crate) fn ping(service: Service) -> Message<'static> {
    sample(service, Side::Client, 0, 9)
}

/// A service's messages that fit into a few bytes.
pub(crate) fn small_messages(service: Service, side: Side) -> Vec<Message<'static>> {
    let infos = table(service, side).messages.iter();
    let messages = infos.map(|info| sample(service, side, info.number, 4));
    messages.filter(|message| message.to_bytes().unwrap().len() < 80).take(12).collect()
}

/// The streams of a conversation, by side.
pub(crate) fn conversation(service: Service, encrypted: bool) -> [Vec<u8>; 2] {
    let mut client = client_of(service, encrypted, Duration::ZERO);
    let mut server = server_of(open_config(), Duration::ZERO);
    let mut streams = [sent(&mut client), Vec::new()];
    deliver(&mut server, Side::Client, Duration::ZERO, &streams[0]);
    streams[1] = sent(&mut server);
    deliver(&mut client, Side::Server, Duration::ZERO, &streams[1]);
    for message in small_messages(service, Side::Client) {
        client.send(&message).unwrap();
    }
    for message in small_messages(service, Side::Server) {
        server.send(&message).unwrap();
    }
    streams[0].extend(sent(&mut client));
    streams[1].extend(sent(&mut server));
    streams
}
