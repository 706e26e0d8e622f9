//! Fuzz targets for the connection machines in all roles.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::connection::{Bounds, Connection as _, Event, Inject as _, Input, Sender as _};
use worldwire_core::json::Style;
use worldwire_core::testing::operations::{
    Command, Family, Held, Operation, Seen, run_watched, sampler,
};
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

/// The role of the machine under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
    Observer,
    Relay,
}

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
                    true => RelayKeys::Separate { own: KEYS.clone(), server: KEYS.clone() },
                };
                let config = RelayConfig { bounds, ..RelayConfig::new(keys) };
                let random = RelayRandom { secret: SECRET, seed: SEED };
                Connection::relay(config.into(), random, now)
            }
        })
    }
}

/// The random bytes of every client and server. Sharing them yields one session key per service,
/// even over a relay with separate keys.
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

/// Drives a machine through the operations that follow the choice.
///
/// # Panics
/// If it breaks a promise of the contract, or reports a piece that cannot be decoded.
fn drive(role: Role, data: &[u8]) -> Seen {
    let Some((choice, operations)) = data.split_first() else {
        return Seen::default();
    };
    let choice = Choice(*choice);
    let Some(connection) = choice.connection(role) else {
        return Seen::default();
    };
    let setup = Setup::of(choice);
    let mut left = setup.streams.each_ref().map(Vec::len);
    let mut ciphers = setup.key.as_ref().map(|key| [Rc4::new(key), Rc4::new(key)]);
    let mut held = Held::default();
    let mut family = Family {
        bounds: choice.bounds(),
        command: &mut |sender, asked| command(choice.service(), role, sender, &mut held, asked),
        wire: &mut |side, bytes| {
            let plain = left[side.index()].min(bytes.len());
            left[side.index()] -= plain;
            if let (Some(ciphers), Some(secret)) = (&mut ciphers, bytes.get_mut(plain..)) {
                ciphers[side.index()].apply(secret);
            }
        },
    };
    run_watched(connection, operations, &mut family, |event| {
        if let Event::Received(received) = event {
            let content = received.content();
            assert!(content.is_ok(), "a reported piece cannot be decoded: {content:?}");
        }
    })
}

fn command(
    service: Service,
    role: Role,
    sender: &mut Sender,
    held: &mut Held,
    command: Command<'_>,
) {
    // After an odd first byte, the rest is used verbatim.
    let made = |side: Side, data: &[u8]| match data {
        [first, rest @ ..] if first & 1 != 0 => rest.to_vec(),
        _ => sampled(service, side, data)
            .and_then(|message| message.to_bytes().ok())
            .unwrap_or_default(),
    };
    let side = |data: &[u8]| if data.len() & 1 == 0 { Side::Client } else { Side::Server };
    if held.carry_out(sender, command, |data| made(side(data), data)) {
        return;
    }
    // The connection may refuse it.
    let _ = match command {
        Command::Send(data) => {
            let side = if role == Role::Client { Side::Client } else { Side::Server };
            let Some(message) = sampled(service, side, data) else { return };
            sender.send(&message)
        }
        Command::Inject(to, data) => sender.inject(to, &made(to.other(), data)),
        _ => Ok(()),
    };
}

fn sampled(service: Service, side: Side, data: &[u8]) -> Option<Message<'static>> {
    let mut sampler = sampler(data);
    let infos = table(service, side).messages;
    let index = usize::try_from(sampler.below(infos.len() as u64)).unwrap_or(0);
    Message::sample(service, side, infos.get(index)?.number, &mut sampler)
}

/// Conversations that reach deep states, with every command that this role accepts.
fn conversations(role: Role) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for choice in 0..32 {
        let setup = Setup::of(Choice(choice));
        let mut seed = vec![choice];
        let mut put = |operation: Operation<'_>| operation.write(&mut seed);
        put(Operation::Now(Command::Send(b"early")));
        for side in Side::BOTH {
            put(Operation::Bytes(side, &setup.streams[side.index()]));
        }
        put(Operation::Lazy(choice % 3 == 0));
        let streams = Side::BOTH.map(|side| messages(Choice(choice).service(), side).concat());
        for index in 0..8 {
            put(Operation::OnPiece(Command::Send(b"answer")));
            put(Operation::OnPiece(match index % 4 {
                0 => Command::AsIs,
                1 => Command::Drop,
                2 => Command::Instead(b"other"),
                _ => Command::Inject(Side::Client, b"more"),
            }));
            put(Operation::OnPiece(Command::Hold));
            let release = [0, u8::try_from(index % 3).unwrap_or(0), 2];
            put(Operation::Now(Command::Release(&release)));
            for side in Side::BOTH {
                if let Some(piece) = streams[side.index()].chunks(150).nth(index) {
                    put(Operation::Bytes(side, piece));
                }
            }
            put(Operation::Poll(3));
            put(Operation::Transmit(Side::Client, 1));
            put(Operation::Now(Command::Inject(Side::Server, b"here")));
        }
        put(Operation::Lazy(false));
        put(Operation::Timeout);
        if role == Role::Observer {
            put(Operation::Gap(Side::Client, 1024));
            for piece in messages(Choice(choice).service(), Side::Client).iter().take(4) {
                put(Operation::Bytes(Side::Client, piece));
            }
        }
        put(Operation::End(Side::Server));
        put(Operation::Wait(Duration::from_secs(50)));
        put(Operation::Datagram(Side::Client, b"udp"));
        seeds.push(seed);
    }
    seeds
}

/// Runs two ends and an observer with the key after a real key exchange. The first byte selects the
/// service. Each piece follows as a byte for its side, a byte for its length, and its plaintext,
/// which is encrypted before delivery.
///
/// # Panics
/// If the observer receives other messages than the ends.
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
    let client = Connection::client(ClientConfig::new(service, public).into(), random, now);
    let (Some((_, secret)), Ok(client)) = (begun, client) else {
        return;
    };
    let session = secret.session_key(seed);
    let server = Connection::server(Arc::new(ServerConfig::new(KEYS.clone())), seed, now);
    let mut ends = [client, server];
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let mut received = Vec::new();
    let mut observed = Vec::new();
    for side in Side::BOTH {
        while let Some(bytes) = ends[side.index()].poll_transmit(side.other()) {
            observer.input(now, side, Input::Bytes(&bytes));
            receive(&mut observer, &mut Vec::new());
            let other = &mut ends[side.other().index()];
            other.input(now, side, Input::Bytes(&bytes));
            receive(other, &mut Vec::new());
        }
    }
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
        assert_eq!(observed, received, "the observer received other messages");
        if !readable {
            return;
        }
    }
}

/// A received message: its side, its offset in the stream, its bytes.
type ReceivedMessage = (Side, u64, Vec<u8>);

/// Collects received messages; false if the stream could not be read.
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

pub(super) static TARGETS: &[Target] = &[
    Target {
        name: "uru_connection_client",
        run: |data| {
            drive(Role::Client, data);
        },
        seeds: || conversations(Role::Client),
    },
    Target {
        name: "uru_connection_server",
        run: |data| {
            drive(Role::Server, data);
        },
        seeds: || conversations(Role::Server),
    },
    Target {
        name: "uru_connection_observer",
        run: |data| {
            drive(Role::Observer, data);
        },
        seeds: || conversations(Role::Observer),
    },
    Target {
        name: "uru_connection_relay",
        run: |data| {
            drive(Role::Relay, data);
        },
        seeds: || conversations(Role::Relay),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_get_far() {
        for role in [Role::Client, Role::Server, Role::Observer, Role::Relay] {
            let mut most = Seen::default();
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
