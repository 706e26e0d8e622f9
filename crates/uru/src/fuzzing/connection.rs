//! Fuzz targets for the connection machines in all roles.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::connection::{
    Bounds, Connection as _, Event, EventOf, Inject as _, Input, Sender as _,
};
use worldwire_core::json::Style;
use worldwire_core::testing::operations::{Family, Role, Statistics, conversation, run, sampler};
use worldwire_core::testing::pair::{Conditions, Pair};
use worldwire_core::testing::{Target, render};
use worldwire_core::{Field, Limits, Side, Tree, Writer};

use super::messages;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::connection::{
    ClientConfig, Connection, Encryption, RelayConfig, RelayKeys, RelayRandom, Sender,
    ServerConfig, key_kind,
};
use crate::crypt::exchange::SessionKey;
use crate::crypt::key::{Modulus, PrivateKey, ServerKind};
use crate::crypt::rc4::Rc4;
use crate::file::keys::KeyRing;
use crate::frame::{Message, Service, table};

/// The settings selected by the first byte of an input.
#[derive(Clone, Copy)]
struct Choice(u8);

impl Choice {
    fn service(self) -> Service {
        Service::ALL[usize::from(self.0 % 4)]
    }

    /// Whether the peers encrypt, if they follow the usual setup.
    fn encrypts(self) -> bool {
        self.0 & 4 != 0 && self.service().is_encrypted()
    }

    fn bounds(self) -> Bounds {
        match self.0 & 8 {
            0 => Bounds::default(),
            _ => Bounds { queued_bytes: 2000, queued_messages: 8 },
        }
    }

    /// An option whose meaning depends on the role.
    fn extra(self) -> bool {
        self.0 & 16 != 0
    }

    fn connection(self, role: Role) -> Option<Connection> {
        let (now, bounds) = (Duration::ZERO, self.bounds());
        Some(match role {
            Role::Client => {
                let key = key_kind(self.service()).and_then(|kind| KEYS.public(kind));
                let key = key.filter(|_| self.encrypts()).cloned();
                let config = ClientConfig { bounds, ..ClientConfig::new(self.service(), key) };
                Connection::client(config.into(), SECRET, now).ok()?
            }
            Role::Server => {
                let mut config = ServerConfig { bounds, ..ServerConfig::new(KEYS.clone()) };
                config.encryption = match self.extra() {
                    false => Encryption::AllowPlain,
                    true => Encryption::Require,
                };
                Connection::server(config.into(), SEED, now)
            }
            Role::Observer => match self.extra() {
                false => Connection::observer(Arc::new(KEYS.clone())),
                true => Connection::observer_from_the_middle(Arc::new(KEYS.clone())),
            },
            Role::Relay => {
                let keys = match self.extra() {
                    false => RelayKeys::Shared(KEYS.clone()),
                    // Encrypt both hops or neither, depending on what the streams expect.
                    true if self.encrypts() => {
                        RelayKeys::Separate { own: KEYS.clone(), server: KEYS.clone() }
                    }
                    true => RelayKeys::Separate { own: KEYS.clone(), server: KeyRing::new() },
                };
                let config = RelayConfig { bounds, ..RelayConfig::new(keys) };
                let random = RelayRandom { secret: SECRET, seed: SEED };
                Connection::relay(config.into(), random, now)
            }
        })
    }
}

/// The random bytes of every client and server. Because all share them, each service has a single
/// session key, even across a relay with separate keys.
const SECRET: [u8; 64] = [3; 64];
const SEED: [u8; 7] = [7; 7];

/// The usual setup of a service: the bytes of each side, and the session key.
struct Setup {
    streams: [Vec<u8>; 2],
    key: Option<SessionKey>,
}

impl Setup {
    fn of(choice: Choice) -> &'static Self {
        static SETUPS: LazyLock<Vec<Setup>> =
            LazyLock::new(|| (0..8).map(|choice| Setup::new(Choice(choice))).collect());
        &SETUPS[usize::from(choice.0 % 8)]
    }

    fn new(choice: Choice) -> Self {
        let service = choice.service();
        let key = key_kind(service).and_then(|kind| KEYS.public(kind));
        let begun =
            key.filter(|_| choice.encrypts()).and_then(|key| key.client_begin(&SECRET).ok());
        let (y, key) = match begun {
            Some((y, secret)) => (y.as_bytes().to_vec(), Some(secret.session_key(SEED))),
            None => (Vec::new(), None),
        };
        let mut streams = [Writer::new(), Writer::new()];
        let [client, server] = &mut streams;
        let _ = ConnectPacket::new(service).encode(client);
        if service.is_encrypted() {
            let _ = SetupPacket::Connect(y.into()).encode(client);
            let _ = SetupPacket::Encrypt(key.as_ref().map(|_| SEED)).encode(server);
        }
        Self { streams: streams.map(Writer::into_bytes), key }
    }
}

/// One run: the ciphers of both sides, and the number of bytes that each side has yet to send
/// unencrypted.
struct Run {
    choice: Choice,
    role: Role,
    ciphers: Option<[Rc4; 2]>,
    left: [usize; 2],
}

impl Run {
    fn sampled(&self, side: Side, data: &[u8]) -> Option<Message<'static>> {
        let mut sampler = sampler(data);
        let service = self.choice.service();
        let infos = table(service, side).messages;
        let index = usize::try_from(sampler.below(infos.len() as u64)).unwrap_or(0);
        Message::sample(service, side, infos.get(index)?.number, &mut sampler)
    }
}

impl Family for Run {
    type Connection = Connection;

    fn bounds(&self) -> Bounds {
        self.choice.bounds()
    }

    fn message(&mut self, from: Side, data: &[u8]) -> Vec<u8> {
        // If the first byte is odd, use the rest verbatim.
        match data {
            [first, rest @ ..] if first & 1 != 0 => rest.to_vec(),
            _ => self
                .sampled(from, data)
                .and_then(|message| message.to_bytes().ok())
                .unwrap_or_default(),
        }
    }

    fn send(&mut self, sender: &mut Sender, data: &[u8]) {
        let side = if self.role == Role::Client { Side::Client } else { Side::Server };
        let _ = self.sampled(side, data).map(|message| sender.send(&message));
    }

    fn inject(&mut self, sender: &mut Sender, to: Side, data: &[u8]) {
        let _ = sender.inject(to, &self.message(to.other(), data));
    }

    fn wire(&mut self, side: Side, bytes: &mut Vec<u8>) {
        let left = &mut self.left[side.index()];
        let plain = (*left).min(bytes.len());
        *left -= plain;
        if let Some(ciphers) = &mut self.ciphers {
            ciphers[side.index()].apply(&mut bytes[plain..]);
        }
    }

    fn watch(&mut self, event: &EventOf<'_, Connection>) {
        if let Event::Received(received) = event {
            let content = received.content();
            assert!(content.is_ok(), "a reported piece cannot be decoded: {content:?}");
        }
    }
}

/// Drives a connection through the operations that follow the settings.
///
/// # Panics
/// Panics if the connection breaks its contract or reports a piece that cannot be decoded.
fn drive(role: Role, data: &[u8]) -> Statistics {
    let Some((choice, operations)) = data.split_first() else {
        return Statistics::default();
    };
    let choice = Choice(*choice);
    let Some(connection) = choice.connection(role) else {
        return Statistics::default();
    };
    let setup = Setup::of(choice);
    let left = setup.streams.each_ref().map(Vec::len);
    let ciphers = setup.key.as_ref().map(|key| [Rc4::new(key), Rc4::new(key)]);
    run(connection, operations, &mut Run { choice, role, ciphers, left })
}

fn conversations(role: Role) -> Vec<Vec<u8>> {
    let seed = |choice| {
        let service = Choice(choice).service();
        let streams = &Setup::of(Choice(choice)).streams;
        let setup = Side::BOTH.map(|side| (side, &*streams[side.index()]));
        let sides = Side::BOTH.map(|side| (side, messages(service, side).concat()));
        let round = |round: u8| {
            let pieces = sides.iter().filter_map(|(side, bytes)| {
                Some((*side, bytes.chunks(150).nth(round.into())?.to_vec()))
            });
            pieces.collect()
        };
        let after_gap = messages(service, Side::Client);
        let after_gap = &after_gap[..after_gap.len().min(4)];
        conversation(role, choice, &setup, round, after_gap)
    };
    (0..32).map(seed).collect()
}

/// Runs two ends and an observer with the key from a real key exchange. The first byte selects the
/// service. The pieces follow, each as a byte for its side, a byte for its length, and its
/// plaintext, which is encrypted before delivery.
///
/// # Panics
/// Panics if the observer does not receive the same messages as the ends.
fn encrypted(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else { return };
    let (service, kind) = match choice % 3 {
        0 => (Service::Gatekeeper, ServerKind::Gatekeeper),
        1 => (Service::Auth, ServerKind::Auth),
        _ => (Service::Game, ServerKind::Game),
    };
    let now = Duration::ZERO;
    let public = KEYS.public(kind).cloned();
    let begun = public.as_ref().and_then(|key| key.client_begin(&SECRET).ok());
    let client = Connection::client(ClientConfig::new(service, public).into(), SECRET, now);
    let (Some((_, secret)), Ok(client)) = (begun, client) else { return };
    let session = secret.session_key(SEED);
    let server = Connection::server(Arc::new(ServerConfig::new(KEYS.clone())), SEED, now);
    let mut pair = Pair::new(client, server, Conditions::default())
        .watched_by(Connection::observer(Arc::new(KEYS.clone())));
    pair.settle(|_, _, _| ());
    let Pair { client, server, observer: Some(mut observer), .. } = pair else { return };
    let mut ends = [client, server];
    let (mut received, mut observed) = (Vec::new(), Vec::new());
    assert!(ends.iter().chain([&observer]).all(|end| end.is_established()));

    let mut ciphers = [Rc4::new(&session), Rc4::new(&session)];
    let mut readable = true;
    while let [operation, length, tail @ ..] = rest {
        let side = if operation & 1 == 0 { Side::Client } else { Side::Server };
        let (piece, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        let mut piece = piece.to_vec();
        ciphers[side.index()].apply(&mut piece);
        let end = &mut ends[side.other().index()];
        end.input(now, side, Input::Bytes(&piece));
        readable &= receive(end, &mut received);
        observer.input(now, side, Input::Bytes(&piece));
        readable &= receive(&mut observer, &mut observed);
        while end.poll_transmit(side).is_some() {}
        assert_eq!(observed, received, "the observer received different messages");
        if !readable {
            return;
        }
    }
}

/// A received message: its side, its offset in the stream, its bytes.
type ReceivedMessage = (Side, u64, Vec<u8>);

/// Collects received messages; returns false if the stream could not be read.
fn receive(connection: &mut Connection, log: &mut Vec<ReceivedMessage>) -> bool {
    let mut readable = true;
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Received(piece) => {
                let tree = piece.tree(Tree::new(), &Limits::DEFAULT);
                render(&tree, Style::default());
                assert!(tree.error().is_none(), "a reported piece cannot be decoded: {tree:?}");
                log.push((piece.side, piece.offset, piece.bytes.to_vec()));
            }
            Event::Fault { .. } => readable = false,
            _ => {}
        }
    }
    readable
}

/// Fixed keys that need no prime search, sufficient for a key exchange in tests.
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

pub(super) const TARGETS: &[Target] =
    worldwire_core::role_targets!("uru_connection", drive, conversations);

pub(super) const ENCRYPTED: &[Target] = &[Target {
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
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_get_far() {
        for role in Role::ALL {
            let mut most = Statistics::default();
            for seed in conversations(role) {
                let seen = drive(role, &seed);
                let refused = role == Role::Server && seed[0] & 20 == 16 && seed[0] % 4 != 3;
                let pieces = if refused { 2 } else { 4 };
                assert!(seen.pieces >= pieces, "choice {}: {seen:?}", seed[0]);
                most.messages = most.messages.max(seen.messages);
                most.transmitted = most.transmitted.max(seen.transmitted);
            }
            assert!(most.messages >= 10, "{most:?}");
            assert_eq!(most.transmitted > 100, role != Role::Observer, "{most:?}");
        }
    }
}
