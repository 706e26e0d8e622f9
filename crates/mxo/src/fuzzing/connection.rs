//! Targets for connections driven by lists of operations, one per role.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    Bounds, Connection as _, Event, EventOf, Inject as _, Sender as _,
};
use worldwire_core::testing::Target;
use worldwire_core::testing::operations::{
    Command, Family, Operation, Part, Role, Statistics, list, run, sampler,
};

use super::wire::packet_of;
use crate::connection::{
    ClientConfig, Connection, News, PacketNumber, RelayConfig, Sender, ServerConfig, Session,
};
use crate::crypt::{KnownSession, SessionKey};
use crate::frame::{
    Packet, Plain, RccFlags, RpcList, RpcMessage, Section, SequenceNumber, SequenceWord,
};

/// All targets in this file. A datagram that starts with 01 is built from the rest, and encrypted
/// with the session's key.
pub(super) const TARGETS: &[Target] = worldwire_core::role_targets!("mxo_operations", drive, lists);

const EPOCH: Duration = Duration::from_secs(1_248_965_312);
/// Small limits, so that lists of operations reach them.
const BOUNDS: Bounds = Bounds { queued_bytes: 4096, queued_messages: 64 };
const SESSION: u32 = 0x1f2e_3d4c;
static KEY: LazyLock<SessionKey> = LazyLock::new(|| SessionKey::new(&[0x4b; 16]));

fn session() -> Session {
    Session::new(SESSION, KEY.clone(), &[5; 16])
}

/// One run of a connection.
struct Run {
    role: Role,
    /// The packets with objects that were sent.
    sent: BTreeSet<PacketNumber>,
    /// The sent packets with objects that arrived or were lost.
    settled: BTreeSet<PacketNumber>,
}

impl Family for Run {
    type Connection = Connection;

    fn bounds(&self) -> Bounds {
        BOUNDS
    }

    fn message(&mut self, _: Side, data: &[u8]) -> Vec<u8> {
        packet_of(data)
    }

    fn send(&mut self, sender: &mut Sender, data: &[u8]) {
        let mut sampler = sampler(data);
        match data.first() {
            Some(b'o') => {
                let length = sampler.length(1400);
                let section = [&[3], &*sampler.bytes(length), &[0, 0]].concat();
                let sent = sender.send_objects(&section, None);
                let is_safe = self.role == Role::Client || sender.is_confirmed();
                assert!(sent.is_err() || is_safe, "objects for an address that may be forged");
                self.sent.extend(sent);
            }
            Some(b'r') => _ = sender.reset(),
            _ => {
                let length = usize::try_from(sampler.below(300)).unwrap_or(0);
                let _ = sender.send(&RpcMessage::new(0x28, &sampler.bytes(length)));
            }
        }
    }

    fn inject(&mut self, sender: &mut Sender, to: Side, data: &[u8]) {
        let _ = sender.inject(to, &packet_of(data));
    }

    fn datagram(&mut self, data: &[u8]) -> Vec<u8> {
        match data {
            [1, number, rest @ ..] => KEY.seal_datagram(&[*number; 16], &packet_of(rest)),
            _ => data.to_vec(),
        }
    }

    /// Checks that each packet with objects has one outcome.
    fn watch(&mut self, event: &EventOf<'_, Connection>) {
        match event {
            Event::News(News::Delivered(number) | News::Lost(number)) => {
                assert!(self.settled.insert(*number), "{number} has two outcomes");
            }
            Event::News(News::Late(number)) => {
                assert!(self.settled.contains(number), "{number} is late but was not lost");
            }
            _ => {}
        }
    }

    /// True for observers and relays. Clients and servers hold back RPC messages until the earlier
    /// ones have arrived.
    fn is_in_order(&self) -> bool {
        matches!(self.role, Role::Observer | Role::Relay)
    }

    fn kept(&self, connection: &Connection) -> Vec<Part> {
        connection.early_ranges()
    }
}

fn drive(role: Role, data: &[u8]) -> Statistics {
    let known = || Arc::from([KnownSession { id: Some(SESSION), key: KEY.clone() }]);
    let connection = match role {
        Role::Client => {
            let mut config = ClientConfig::new(EPOCH, 2);
            config.common.bounds = BOUNDS;
            Connection::client(config, session(), Duration::ZERO)
        }
        Role::Server => {
            let mut config = ServerConfig::new(EPOCH);
            config.common.bounds = BOUNDS;
            Connection::server(config, session(), Duration::ZERO)
        }
        Role::Observer => Connection::observer(known()),
        Role::Relay => {
            let config = RelayConfig { bounds: BOUNDS, ..RelayConfig::new(known()) };
            Connection::relay(&config, Duration::ZERO)
        }
    };
    let mut family = Run { role, sent: BTreeSet::new(), settled: BTreeSet::new() };
    let seen = run(connection, data, &mut family);
    assert!(family.settled.is_subset(&family.sent), "outcomes of packets that were never sent");
    seen
}

/// A packet in the form used in lists of operations: 01, a byte for the vector, and the contents.
fn operation(number: u16, flags: RccFlags, acked: u16, sections: Vec<Section<'_>>) -> Vec<u8> {
    let sequence = SequenceWord {
        acks: crate::frame::AckBits(0x7f),
        remote: SequenceNumber::new(acked),
        local: SequenceNumber::new(number),
    };
    let packet = Packet { flags, sections, ..Packet::new(1, sequence) };
    let bytes = packet.to_bytes().unwrap_or_default();
    [&[1, number.to_le_bytes()[0]], bytes.get(10..).unwrap_or_default()].concat()
}

fn rpcs(first: u16, count: u8) -> Section<'static> {
    let messages = (0..count).map(|data| RpcMessage::new(5, &[data])).collect();
    Section::Rpc(vec![RpcList { first, messages }])
}

const ANSWER: [u8; 7] = [0, 0, 0, 0, 0, 0, 5];
const ALWAYS: RccFlags = RccFlags::Always;

/// Operations for a client or server, with its setup in `first`.
fn talk(side: Side, first: Operation<'_>) -> Vec<u8> {
    let objects = Section::Objects([1, 0, 8, 0, 0][..].into());
    let all = [
        operation(1, ALWAYS, 0, vec![rpcs(0, 3)]),
        operation(3, ALWAYS, 1, vec![rpcs(5, 1), objects]),
        operation(2, ALWAYS, 2, vec![rpcs(3, 3)]),
        operation(2, ALWAYS, 2, vec![rpcs(3, 3)]),
        operation(4, ALWAYS, 4, vec![Section::Other { id: 5, bytes: [2, 12, 0, 0][..].into() }]),
        operation(5, ALWAYS | RccFlags::Reset, 0, vec![]),
        operation(6, ALWAYS, 5, vec![rpcs(0, 1)]),
        operation(4000, ALWAYS, 9, vec![rpcs(900, 1)]),
    ];
    let own = side.other();
    let mut operations = vec![
        Operation::Now(Command::Send(b"early")),
        first,
        Operation::Now(Command::Send(b"a")),
        Operation::Now(Command::Send(b"b")),
        Operation::OnPiece(Command::Send(b"answer")),
        Operation::Timeout,
    ];
    for datagram in &all {
        operations.push(Operation::Datagram(side, datagram));
        operations.push(Operation::Wait(Duration::from_millis(60)));
        operations.push(Operation::Now(Command::Send(b"objects")));
        operations.push(Operation::Now(Command::Send(b"message")));
    }
    let answer = operation(20, ALWAYS | RccFlags::Reset, 0, vec![]);
    let after = operation(21, ALWAYS, 0, vec![rpcs(0, 2)]);
    operations.extend([
        Operation::Now(Command::Send(b"reset")),
        Operation::Wait(Duration::from_millis(600)),
        Operation::Datagram(side, &answer),
        Operation::Datagram(side, &after),
        Operation::Lazy(true),
        Operation::Now(Command::Send(b"c")),
        Operation::Transmit(own.other(), 1),
        Operation::Datagram(side, &all[0]),
        Operation::Poll(1),
        Operation::Gap(side, 100),
        Operation::Wait(Duration::from_secs(3)),
        Operation::Timeout,
        Operation::Lazy(false),
        Operation::Bytes(side, b"stream"),
        Operation::Wait(Duration::from_secs(40)),
    ]);
    list(&operations)
}

fn hello() -> Vec<u8> {
    let mut client = Connection::client(ClientConfig::new(EPOCH, 2), session(), Duration::ZERO);
    client.poll_transmit(Side::Server).unwrap_or_default()
}

fn lists(role: Role) -> Vec<Vec<u8>> {
    let hello = hello();
    match role {
        Role::Client => vec![talk(Side::Server, Operation::Datagram(Side::Server, &ANSWER))],
        Role::Server => {
            let ping = Plain::Ping(3).to_bytes().unwrap_or_default();
            let greeted = talk(Side::Client, Operation::Datagram(Side::Client, &hello));
            vec![[greeted, list(&[Operation::Datagram(Side::Client, &ping)])].concat()]
        }
        Role::Observer | Role::Relay => vec![watched(&hello)],
    }
}

/// Operations for observers and relays.
fn watched(hello: &[u8]) -> Vec<u8> {
    let [one, two, three] =
        [1, 2, 3].map(|number| operation(number, ALWAYS, number, vec![rpcs(0, 2)]));
    let reset = operation(4, ALWAYS | RccFlags::Reset, 0, vec![]);
    list(&[
        Operation::Datagram(Side::Client, hello),
        Operation::Datagram(Side::Server, &ANSWER),
        Operation::Datagram(Side::Client, &one),
        Operation::Datagram(Side::Client, &one),
        Operation::OnPiece(Command::Drop),
        Operation::OnPiece(Command::Instead(&two[2..])),
        Operation::OnPiece(Command::Inject(Side::Server, b"more")),
        Operation::Now(Command::Inject(Side::Client, &two[2..])),
        Operation::Now(Command::Inject(Side::Server, &three[2..])),
        Operation::Timeout,
        Operation::Datagram(Side::Server, &one),
        Operation::Datagram(Side::Server, &two),
        Operation::Gap(Side::Server, 40),
        Operation::Datagram(Side::Server, &three),
        Operation::Timeout,
        Operation::Timeout,
        Operation::Datagram(Side::Server, &reset),
        Operation::Datagram(Side::Server, &one),
        Operation::Datagram(Side::Server, &[1; 40]),
        Operation::OnPiece(Command::Hold),
        Operation::Datagram(Side::Client, &two),
        Operation::Now(Command::Release(&[0, 0])),
        Operation::Lazy(true),
        Operation::Datagram(Side::Client, &two),
        Operation::Datagram(Side::Client, &three),
        Operation::Poll(1),
        Operation::Transmit(Side::Server, 1),
        Operation::Bytes(Side::Client, b"stream"),
        Operation::Lazy(false),
        Operation::End(Side::Client),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let messages = |role| -> Vec<u64> {
            lists(role).iter().map(|seed| drive(role, seed).messages).collect()
        };
        assert_eq!(Role::ALL.map(messages), [[11], [10], [8], [8]]);
    }
}
