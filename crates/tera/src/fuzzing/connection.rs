//! The machines of connections, driven by lists of operations.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Bounds, Event, Inject as _, Sender as _};
use worldwire_core::testing::Target;
use worldwire_core::testing::operations::{
    Command, Family, Held, Operation, Seen, run_watched, sampler,
};

use crate::connection::{Config, Connection, RelayConfig, Sender, Unit};
use crate::crypt::exchange::{Key, Keys, SessionCiphers, Variant};
use crate::crypt::pike::kept;
use crate::frame::{CHECK_VERSION, Header};

/// Who is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
    Observer,
    Relay,
}

/// What every client and server here takes for random: one key stream for all connections of a
/// variant.
const KEYS: [[Key; 2]; 2] = [[key(1), key(2)], [key(3), key(4)]];

/// A key that it matters to turn.
const fn key(seed: u8) -> Key {
    let mut key = [seed; 128];
    key[0] = !seed;
    key[100] = seed ^ 0x55;
    key
}

/// The opcodes whose messages carry counter and checksum.
const SIGNED: [u16; 2] = [1, 2];

/// What the first byte of an input chooses.
#[derive(Clone, Copy)]
struct Choice(u8);

impl Choice {
    fn variant(self) -> Variant {
        if self.0 & 1 == 0 { Variant::From45 } else { Variant::Before45 }
    }

    fn bounds(self) -> Bounds {
        match self.0 & 2 {
            0 => Bounds::default(),
            _ => Bounds { queued_bytes: 2000, queued_messages: 8 },
        }
    }

    /// Whether whoever reads the exchange knows the variant beforehand.
    fn known(self) -> Option<Variant> {
        (self.0 & 4 != 0).then(|| self.variant())
    }

    fn connection(self, role: Role) -> Connection {
        let (now, bounds) = (Duration::ZERO, self.bounds());
        let config = || Config { bounds, variant: self.variant(), ..Config::default() }.into();
        match role {
            Role::Client => Connection::client(config(), KEYS[0], now),
            Role::Server => Connection::server(config(), KEYS[1], now),
            Role::Observer => {
                let [client, server] = KEYS;
                let sessions = [Keys { client, server }];
                let known = if self.0 & 8 == 0 { &[][..] } else { &sessions };
                Connection::observer(self.known()).knowing(known.into())
            }
            Role::Relay => {
                let integrity = HashSet::from(SIGNED);
                let variant = self.known();
                let config = RelayConfig { variant, integrity, bounds, ..RelayConfig::default() };
                Connection::relay(config.into(), now)
            }
        }
    }

    /// The key streams of both sides.
    fn session(self) -> &'static SessionCiphers {
        static SESSIONS: LazyLock<[SessionCiphers; 2]> = LazyLock::new(|| {
            let [client, server] = KEYS;
            let keys = Keys { client, server };
            Variant::ALL.map(|variant| SessionCiphers::new(&keys, variant))
        });
        &SESSIONS[usize::from(self.0 & 1)]
    }
}

/// What a side says before it encrypts.
fn exchange(side: Side) -> Vec<u8> {
    let keys = KEYS[side.index()].concat();
    match side {
        Side::Client => keys,
        Side::Server => [&[1, 0, 0, 0][..], &keys].concat(),
    }
}

/// Drives a machine through the operations that follow the choice.
///
/// # Panics
/// When it breaks a promise of the contract, or reports a piece that is not whole.
fn drive(role: Role, data: &[u8]) -> Seen {
    let Some((choice, operations)) = data.split_first() else {
        return Seen::default();
    };
    let choice = Choice(*choice);
    kept::begin();
    let SessionCiphers { client, server } = choice.session().clone();
    let mut ciphers = [client, server];
    let mut left = Side::BOTH.map(|side| exchange(side).len());
    let mut held = Held::default();
    let mut family = Family {
        bounds: choice.bounds(),
        command: &mut |sender, what| command(sender, &mut held, what),
        wire: &mut |side, bytes| {
            let plain = left[side.index()].min(bytes.len());
            left[side.index()] -= plain;
            if let Some(secret) = bytes.get_mut(plain..) {
                ciphers[side.index()].apply(secret);
            }
        },
    };
    run_watched(choice.connection(role), operations, &mut family, |event| {
        if let Event::Received(received) = event {
            let length = match received.unit {
                Unit::Hello => 4,
                Unit::Key { .. } => 128,
                Unit::Message { opcode } => {
                    let header = Header::whole(received.bytes).expect("what came out is whole");
                    assert_eq!(header.opcode, opcode, "the opcode that it begins with");
                    header.length.into()
                }
            };
            assert_eq!(received.bytes.len(), length, "the length of {:?}", received.unit);
        }
    })
}

fn command(sender: &mut Sender, held: &mut Held, command: Command<'_>) {
    if held.carry_out(sender, command, made) {
        return;
    }
    // Refusals are fine.
    let _ = match command {
        Command::Send(data) => sender.send(&made(data)),
        Command::Inject(to, data) => {
            let _ = sender.set_integrity_seed(u32::try_from(data.len()).unwrap_or(0));
            sender.inject(to, &made(data))
        }
        _ => Ok(()),
    };
}

/// A message made from bytes; an odd first byte asks for these very bytes.
fn made(data: &[u8]) -> Vec<u8> {
    if let [first, rest @ ..] = data
        && first & 1 != 0
    {
        return rest.to_vec();
    }
    let mut sampler = sampler(data);
    let opcode = u16::try_from(sampler.below(5)).unwrap_or(0);
    let length = usize::try_from(sampler.below(40)).unwrap_or(0);
    message(opcode, &sampler.bytes(length))
}

fn message(opcode: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4).unwrap_or(u16::MAX);
    [&length.to_le_bytes()[..], &opcode.to_le_bytes(), body].concat()
}

/// Conversations that get far, with something of everything that this role can be asked for.
fn conversations(role: Role) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for choice in 0..8 {
        let mut seed = vec![choice];
        let mut put = |operation: Operation<'_>| operation.write(&mut seed);
        put(Operation::Now(Command::Send(b"early")));
        for part in 0..3 {
            for side in [Side::Server, Side::Client] {
                if let Some(part) = exchange(side).chunks(128).nth(part) {
                    put(Operation::Bytes(side, part));
                }
            }
        }
        put(Operation::Bytes(Side::Client, &message(CHECK_VERSION, &[1; 9])));
        put(Operation::Lazy(choice % 3 == 0));
        for index in 0..8_u8 {
            put(Operation::OnPiece(Command::Send(b"answer")));
            put(Operation::OnPiece(match index % 4 {
                0 => Command::AsIs,
                1 => Command::Drop,
                2 => Command::Instead(b"other"),
                _ => Command::Inject(Side::Client, b"more"),
            }));
            put(Operation::OnPiece(Command::Hold));
            put(Operation::Now(Command::Release(&[index, index % 3, 2])));
            for side in Side::BOTH {
                let both = [
                    message(u16::from(index % 4), &[index; 20]),
                    message(u16::from(index % 3), &[9; 60]),
                ];
                both.concat().chunks(50).for_each(|piece| put(Operation::Bytes(side, piece)));
            }
            put(Operation::Poll(3));
            put(Operation::Transmit(Side::Client, 1));
            put(Operation::Now(Command::Inject(Side::Server, b"here")));
        }
        put(Operation::Lazy(false));
        if role == Role::Observer {
            put(Operation::Gap(Side::Client, 1024));
            put(Operation::Bytes(Side::Client, &message(3, &[1; 9])));
        }
        put(Operation::Timeout);
        put(Operation::End(Side::Server));
        put(Operation::Wait(Duration::from_secs(50)));
        put(Operation::Datagram(Side::Client, b"udp"));
        seeds.push(seed);
    }
    seeds
}

macro_rules! target {
    ($name:literal, $role:ident) => {
        Target {
            name: concat!("tera_connection_", $name),
            run: |data| {
                drive(Role::$role, data);
            },
            seeds: || conversations(Role::$role),
        }
    };
}

pub(super) const CLIENT: Target = target!("client", Client);
pub(super) const SERVER: Target = target!("server", Server);
pub(super) const OBSERVER: Target = target!("observer", Observer);
pub(super) const RELAY: Target = target!("relay", Relay);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_get_far() {
        for role in [Role::Client, Role::Server, Role::Observer, Role::Relay] {
            for seed in conversations(role) {
                let seen = drive(role, &seed);
                assert!(seen.pieces >= 15, "{role:?}, choice {}: {seen:?}", seed[0]);
                assert!(seen.messages >= 10, "{role:?}, choice {}: {seen:?}", seed[0]);
                assert_eq!(seen.transmitted > 100, role != Role::Observer, "{role:?}: {seen:?}");
            }
        }
    }
}
