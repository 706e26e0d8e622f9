//! Fuzz targets for connections in all roles, driven by lists of operations.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Bounds, Event, EventOf, Inject as _, Sender as _};
use worldwire_core::testing::Target;
use worldwire_core::testing::operations::{Family, Role, Statistics, conversation, run, sampler};

use crate::connection::{Config, Connection, RelayConfig, Sender, Unit};
use crate::crypt::exchange::{Key, Keys, SessionCiphers, Variant};
use crate::crypt::pike::kept;
use crate::frame::{CHECK_VERSION, Header};

pub(super) const TARGETS: &[Target] =
    worldwire_core::role_targets!("tera_connection", drive, conversations);

/// The random keys of every client and server. Sharing them yields one session per variant.
const KEYS: [[Key; 2]; 2] = [[key(1), key(2)], [key(3), key(4)]];

/// A key that rotation changes.
const fn key(seed: u8) -> Key {
    let mut key = [seed; 128];
    key[0] = !seed;
    key[100] = seed ^ 0x55;
    key
}

/// The opcodes whose messages carry a counter and checksum.
const SIGNED: [u16; 2] = [1, 2];

/// The settings selected by the first byte of an input.
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

    /// The variant, if an observer or a relay knows it beforehand.
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
                Connection::observer_knowing(self.known(), known.into())
            }
            Role::Relay => {
                let integrity = HashSet::from(SIGNED);
                let variant = self.known();
                let config = RelayConfig { variant, integrity, bounds, ..RelayConfig::default() };
                Connection::relay(config.into(), now)
            }
        }
    }

    /// The keystreams of both sides.
    fn session(self) -> &'static SessionCiphers {
        static SESSIONS: LazyLock<[SessionCiphers; 2]> = LazyLock::new(|| {
            let [client, server] = KEYS;
            let keys = Keys { client, server };
            Variant::ALL.map(|variant| SessionCiphers::new(&keys, variant))
        });
        &SESSIONS[usize::from(self.0 & 1)]
    }
}

/// The bytes that a side sends before it encrypts.
fn exchange(side: Side) -> Vec<u8> {
    let keys = KEYS[side.index()].concat();
    match side {
        Side::Client => keys,
        Side::Server => [&[1, 0, 0, 0][..], &keys].concat(),
    }
}

/// One run: the ciphers of both sides, and the number of bytes that each side still sends
/// unencrypted.
struct Run {
    bounds: Bounds,
    ciphers: SessionCiphers,
    left: [usize; 2],
}

impl Family for Run {
    type Connection = Connection;

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn message(&mut self, _: Side, data: &[u8]) -> Vec<u8> {
        made(data)
    }

    fn send(&mut self, sender: &mut Sender, data: &[u8]) {
        let _ = sender.send(&made(data));
    }

    fn inject(&mut self, sender: &mut Sender, to: Side, data: &[u8]) {
        let _ = sender.set_integrity_seed(u32::try_from(data.len()).unwrap_or(0));
        let _ = sender.inject(to, &made(data));
    }

    fn wire(&mut self, side: Side, bytes: &mut Vec<u8>) {
        let left = &mut self.left[side.index()];
        let plain = (*left).min(bytes.len());
        *left -= plain;
        let cipher = match side {
            Side::Client => &mut self.ciphers.client,
            Side::Server => &mut self.ciphers.server,
        };
        cipher.apply(&mut bytes[plain..]);
    }

    fn watch(&mut self, event: &EventOf<'_, Connection>) {
        let Event::Received(received) = event else { return };
        let length = match received.unit {
            Unit::Hello => 4,
            Unit::Key { .. } => 128,
            Unit::Message { opcode } => {
                let header = Header::whole(received.bytes).expect("a reported message is whole");
                assert_eq!(header.opcode, opcode, "another opcode");
                header.length.into()
            }
        };
        assert_eq!(received.bytes.len(), length, "the length of {:?}", received.unit);
    }
}

/// Drives a connection through the operations that follow the choice.
///
/// # Panics
/// If it breaks a promise of the contract, or reports a piece that is not whole.
fn drive(role: Role, data: &[u8]) -> Statistics {
    let Some((choice, operations)) = data.split_first() else {
        return Statistics::default();
    };
    let choice = Choice(*choice);
    kept::begin();
    let ciphers = choice.session().clone();
    let left = Side::BOTH.map(|side| exchange(side).len());
    let mut family = Run { bounds: choice.bounds(), ciphers, left };
    run(choice.connection(role), operations, &mut family)
}

/// A message made from these bytes. After an odd first byte, the rest is used verbatim.
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

fn conversations(role: Role) -> Vec<Vec<u8>> {
    let [client, server] = Side::BOTH.map(exchange);
    let mut setup = Vec::new();
    for part in 0..3 {
        let part = |bytes| <[u8]>::chunks(bytes, 128).nth(part);
        setup.extend(part(&server).map(|part| (Side::Server, part)));
        setup.extend(part(&client).map(|part| (Side::Client, part)));
    }
    let version = message(CHECK_VERSION, &[1; 9]);
    setup.push((Side::Client, &version));
    let messages = |round: u8| {
        let both =
            [message(u16::from(round % 4), &[round; 20]), message(u16::from(round % 3), &[9; 60])];
        let pieces = both.concat().chunks(50).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let of = |side| pieces.iter().map(move |piece| (side, piece.clone()));
        Side::BOTH.into_iter().flat_map(of).collect()
    };
    let after_gap = [message(3, &[1; 9])];
    (0..8).map(|choice| conversation(role, choice, &setup, messages, &after_gap)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_get_far() {
        for role in Role::ALL {
            for seed in conversations(role) {
                let seen = drive(role, &seed);
                assert!(seen.pieces >= 15, "{role:?}, choice {}: {seen:?}", seed[0]);
                assert!(seen.messages >= 10, "{role:?}, choice {}: {seen:?}", seed[0]);
                assert_eq!(seen.transmitted > 100, role != Role::Observer, "{role:?}: {seen:?}");
            }
        }
    }
}
