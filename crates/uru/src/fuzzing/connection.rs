//! The machines of connections, fed with anything.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::json::Style;
use worldwire_core::testing::{Target, render};
use worldwire_core::{Field, Limits, Side, Tree, Writer};

use super::messages;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::connection::{ClientConfig, Connection, Encryption, Event, ServerConfig};
use crate::crypt::key::{Modulus, PrivateKey, ServerKind};
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::Service;

/// Bytes received by a server: the first byte chooses service and encryption, then every piece has
/// its length in front.
///
/// # Panics
/// Never; the machine may close, but not break.
fn server(data: &[u8]) {
    let Some((choice, pieces)) = data.split_first() else {
        return;
    };
    let mut config = ServerConfig::new(KEYS.clone());
    config.encryption = match choice % 3 {
        0 => Encryption::AllowPlain,
        1 => Encryption::Require,
        _ => Encryption::OpenUruPlain,
    };
    let mut server = Connection::server(Arc::new(config), [7; 7], Duration::ZERO);
    feed(&mut server, Side::Client, pieces);
}

/// Bytes received by a client; the first byte chooses service and encryption.
///
/// # Panics
/// Never; the machine may close, but not break.
fn client(data: &[u8]) {
    let Some((choice, pieces)) = data.split_first() else {
        return;
    };
    let service = Service::ALL[usize::from(choice % 4)];
    let key = KEYS.public(ServerKind::Auth).filter(|_| choice & 0x80 != 0).cloned();
    let config = ClientConfig::new(service, key, [3; 64]);
    if let Ok(mut client) = Connection::client(config, Duration::ZERO) {
        feed(&mut client, Side::Server, pieces);
    }
}

fn feed(connection: &mut Connection, side: Side, mut pieces: &[u8]) {
    let mut now = Duration::ZERO;
    while let Some((length, rest)) = pieces.split_first() {
        let (piece, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        pieces = rest;
        now += Duration::from_millis(u64::from(*length));
        connection.receive(side, now, piece);
        drain(connection);
        connection.timeout(now);
        while connection.poll_transmit().is_some() {}
    }
    connection.end(now);
    drain(connection);
    assert!(connection.is_closed());
}

fn drain(connection: &mut Connection) {
    let mut next = [0; 2];
    while let Some(event) = connection.poll_event() {
        if let Event::Received(received) = event {
            let content = received.content();
            assert!(content.is_ok(), "what came out cannot be read: {content:?}");
            let next = &mut next[received.side.index()];
            assert!(received.offset >= *next, "told twice");
            *next = received.range().end;
        }
    }
}

/// Bytes that an observer sees: every operation has a byte (side, data or gap) and a length.
///
/// # Panics
/// Never.
fn observer(data: &[u8]) {
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let mut rest = data;
    while let [operation, length, tail @ ..] = rest {
        let side = if operation & 1 == 0 { Side::Client } else { Side::Server };
        if operation & 0x0e == 0x0e {
            observer.gap(side, Duration::ZERO, u64::from(*length) << (operation >> 5));
            rest = tail;
        } else {
            let (piece, tail) = tail.split_at(usize::from(*length).min(tail.len()));
            observer.receive(side, Duration::ZERO, piece);
            rest = tail;
        }
        drain(&mut observer);
    }
    observer.end(Duration::ZERO);
    drain(&mut observer);
}

/// What two ends say after a real key exchange, and whoever watches them with the key: the first
/// byte chooses the service, then every piece has a byte for its side and one for its length in
/// front. The pieces are plain here and encrypted on the way.
///
/// # Panics
/// When the one who watches hears something else than the ends do.
fn encrypted(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else {
        return;
    };
    let (service, kind) = match choice % 3 {
        0 => (Service::Gatekeeper, ServerKind::Gatekeeper),
        1 => (Service::Auth, ServerKind::Auth),
        _ => (Service::Game, ServerKind::Game),
    };
    let (random, seed, now) = ([3; 64], [7; 7], Duration::ZERO);
    let public = KEYS.public(kind).cloned();
    let begun = public.as_ref().and_then(|key| key.client_begin(&random).ok());
    let client = Connection::client(ClientConfig::new(service, public, random), now);
    let (Some((_, secret)), Ok(client)) = (begun, client) else {
        return;
    };
    let session = secret.session_key(seed);
    let server = Connection::server(Arc::new(ServerConfig::new(KEYS.clone())), seed, now);
    let mut ends = [client, server];
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let mut heard = Vec::new();
    let mut overheard = Vec::new();
    for side in Side::BOTH {
        while let Some(bytes) = ends[side.index()].poll_transmit() {
            observer.receive(side, now, &bytes);
            hear(&mut observer, &mut Vec::new());
            let other = &mut ends[side.other().index()];
            other.receive(side, now, &bytes);
            hear(other, &mut Vec::new());
        }
    }
    assert!(ends.iter().chain([&observer]).all(Connection::is_established));

    let mut ciphers = [Rc4::new(&session), Rc4::new(&session)];
    let mut good = true;
    while let [operation, length, tail @ ..] = rest {
        let side = if operation & 1 == 0 { Side::Client } else { Side::Server };
        let (piece, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        let mut piece = piece.to_vec();
        ciphers[side.index()].apply(&mut piece);
        let end = &mut ends[side.other().index()];
        end.receive(side, now, &piece);
        good &= hear(end, &mut heard);
        observer.receive(side, now, &piece);
        good &= hear(&mut observer, &mut overheard);
        while end.poll_transmit().is_some() {}
        assert_eq!(overheard, heard, "who watches hears something else");
        if !good {
            return;
        }
    }
}

/// A message that was heard: its side, its place in the stream, its bytes.
type Heard = (Side, u64, Vec<u8>);

/// Collects what was received; false when it could not be read.
fn hear(connection: &mut Connection, heard: &mut Vec<Heard>) -> bool {
    let mut good = true;
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Received(received) => {
                let tree = received.tree(Tree::new(), &Limits::DEFAULT);
                render(&tree, Style::default());
                assert!(tree.error().is_none(), "what came out cannot be read: {tree:?}");
                heard.push((received.side, received.offset, received.bytes.to_vec()));
            }
            Event::Fault { .. } => good = false,
            _ => {}
        }
    }
    good
}

/// Keys that need no search for primes: fixed numbers, good enough to exchange secrets with noise.
pub(super) static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let mut keys = KeyRing::new();
    let (mut n, mut a) = ([0xc5; 64], [0x36; 64]);
    (n[0], n[63], a[0]) = (0xd1, 0x8b, 0x5f);
    for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
        if let Ok(n) = Modulus::from_be_bytes(&n)
            && let Ok(key) = PrivateKey::new(kind, n, &a)
        {
            keys.insert_private(key);
        }
    }
    keys
});

/// Streams of whole connections, cut into pieces with their length in front.
fn streams(first: &[u8], side: Side, operation: Option<u8>) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for service in Service::ALL {
        let mut stream = Writer::new();
        let _ = ConnectPacket::new(service).encode(&mut stream);
        if side == Side::Server {
            stream = Writer::new();
        }
        if service.is_encrypted() {
            let setup = match side {
                Side::Client => SetupPacket::Connect(Vec::new().into()),
                Side::Server => SetupPacket::Encrypt(None),
            };
            let _ = setup.encode(&mut stream);
        }
        for bytes in messages(service, side) {
            stream.bytes(&bytes);
        }
        let bytes = stream.into_bytes();
        let cut = bytes.get(..3000).unwrap_or(&bytes);
        let mut seed = first.to_vec();
        for piece in cut.chunks(100) {
            seed.extend(operation);
            seed.push(u8::try_from(piece.len()).unwrap_or(0));
            seed.extend_from_slice(piece);
        }
        seeds.push(seed);
    }
    seeds
}

pub(super) static TARGETS: &[Target] = &[
    Target {
        name: "uru_connection_client",
        run: client,
        seeds: || {
            let mut seeds = streams(&[0], Side::Server, None);
            for (choice, seed) in (0..).zip(&mut seeds) {
                seed[0] = choice;
            }
            seeds
        },
    },
    Target {
        name: "uru_connection_server",
        run: server,
        seeds: || streams(&[0], Side::Client, None),
    },
    Target {
        name: "uru_connection_observer",
        run: observer,
        seeds: || {
            let mut seeds = streams(&[], Side::Client, Some(0));
            for (seed, tail) in seeds.iter_mut().zip(streams(&[], Side::Server, Some(1))) {
                seed.extend(tail);
            }
            seeds
        },
    },
    Target {
        name: "uru_connection_encrypted",
        run: encrypted,
        seeds: || {
            let sides = Side::BOTH.map(|side| {
                let operation = if side == Side::Client { 0 } else { 1 };
                (0_u8..).zip([Service::Gatekeeper, Service::Auth, Service::Game]).map(
                    move |(choice, service)| {
                        let mut seed = vec![choice];
                        for piece in messages(service, side).concat().chunks(200) {
                            seed.extend([operation, u8::try_from(piece.len()).unwrap_or(0)]);
                            seed.extend(piece);
                        }
                        seed
                    },
                )
            });
            sides.into_iter().flatten().collect()
        },
    },
];
