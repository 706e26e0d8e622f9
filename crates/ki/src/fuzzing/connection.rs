//! Fuzz targets for connections in all roles: streams split at arbitrary points, and lists of
//! operations.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, CloseReason, Event, EventOf, Inject as _, Sender as _};
use worldwire_core::testing::Target;
use worldwire_core::testing::operations::{
    Command, Family, Operation, Part, Role, Statistics, list, run, sampler,
};
use worldwire_core::{Side, Writer};

use super::wire::{KEY, client_streams, samples, server_streams};
use crate::connection::{
    ClientConfig, Connection, News, ObserverKeys, RelayConfig, Sender, ServerConfig,
};
use crate::control::{Control, KeepAlive, SessionAccept, SessionOffer, SessionTime};
use crate::crypt::stream::Sealer;
use crate::crypto_block::CryptoBlock;
use crate::frame::{Body, Frame};
use crate::message::RawMessage;

/// Streams: the first byte determines how the rest is split.
pub(super) const STREAMS: &[Target] = worldwire_core::role_targets!("ki_connection", feed, streams);

/// Lists of operations. A server's list begins with a byte of options.
pub(super) const OPERATIONS: &[Target] =
    worldwire_core::role_targets!("ki_operations", drive, lists);

const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// Small limits, so that lists of operations reach them.
const BOUNDS: Bounds = Bounds { queued_bytes: 4096, queued_messages: 64 };
const SESSION: u16 = 0x1234;

/// One run of a connection.
struct Run {
    bounds: Bounds,
    /// Whether all messages are reported in order. A server may skip some or keep them for later.
    is_in_order: bool,
    /// The session that a server offered last, if it refreshes sessions.
    next: Option<u16>,
    encryption: Encryption,
    forwarded: Vec<u8>,
    reason: Option<CloseReason>,
}

/// How the bytes of operations are turned into wire bytes.
enum Encryption {
    /// The bytes are sent unchanged.
    None,
    /// The client's bytes so far. An accept with a handshake starts encryption.
    Pending(Vec<u8>),
    /// Encryption has started: each side's cipher, and the number of times that it was used.
    Started(Box<[Sealer; 2]>, u8),
}

impl Run {
    fn new(encryption: Encryption) -> Self {
        let (forwarded, is_in_order) = (Vec::new(), true);
        Self { bounds: BOUNDS, is_in_order, next: None, encryption, forwarded, reason: None }
    }
}

impl Family for Run {
    type Connection = Connection;

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Some results are not messages.
    fn message(&mut self, _: Side, data: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new();
        if data.len() % 8 == 7 || made(data).encode(&mut writer).is_err() {
            return data.to_vec();
        }
        writer.into_bytes()
    }

    fn before(&mut self, sender: &mut Sender, command: Command<'_>) {
        if let (Some(next), Command::AsIs) = (&mut self.next, command) {
            *next = next.wrapping_add(1);
            let _ = sender.refresh(*next);
        }
    }

    fn send(&mut self, sender: &mut Sender, data: &[u8]) {
        let _ = sender.send(&made(data));
    }

    fn inject(&mut self, sender: &mut Sender, to: Side, data: &[u8]) {
        let _ = sender.inject(to, &self.message(to.other(), data));
    }

    fn wire(&mut self, side: Side, bytes: &mut Vec<u8>) {
        match &mut self.encryption {
            Encryption::Pending(sent) if side == Side::Client => {
                sent.extend_from_slice(bytes);
                if sent.ends_with(&accept(Some(handshake()))) {
                    let sealers = Side::BOTH.map(|side| Sealer::new(&KEY, side));
                    self.encryption = Encryption::Started(sealers.into(), 0);
                }
            }
            Encryption::Started(sealers, nonce) => {
                let plain = core::mem::take(bytes);
                sealers[side.index()].seal(&plain, bytes, || {
                    *nonce = nonce.wrapping_add(1);
                    [*nonce; 16]
                });
            }
            _ => {}
        }
    }

    fn watch(&mut self, event: &EventOf<'_, Connection>) {
        match event {
            Event::Received(received) => {
                received.control().expect("it was already decoded");
                assert!(received.payload().len() <= received.bytes.len());
            }
            Event::News(News::Ignored { range, bytes, .. }) => {
                assert!(bytes.len() as u64 <= range.end - range.start);
            }
            Event::Closed(reason) => self.reason = Some(*reason),
            _ => {}
        }
    }

    fn transmitted(&mut self, _: Side, bytes: &[u8]) {
        self.forwarded.extend_from_slice(bytes);
    }

    fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    fn skipped(&self, news: &News) -> Option<Part> {
        match news {
            News::Ignored { range, .. } => Some((Side::Client, range.clone())),
            _ => None,
        }
    }

    fn kept(&self, connection: &Connection) -> Vec<Part> {
        connection.early_ranges()
    }
}

fn keys(session: Option<u16>) -> Arc<ObserverKeys> {
    Arc::new(ObserverKeys { streams: vec![(session, KEY)] })
}

/// Runs a connection on its peer's stream, and an observer or a relay on each side's.
///
/// # Panics
/// Panics if the connection breaks its contract or if a relay changes bytes. Unless a key is
/// missing, a relay forwards all bytes, readable or not.
fn feed(role: Role, data: &[u8]) {
    let Some((cut, data)) = data.split_first() else { return };
    let play = |connection: Connection, operations: Vec<u8>| {
        let mut family = Run::new(Encryption::None);
        (family.bounds, family.is_in_order) = (Bounds::default(), role != Role::Server);
        run(connection, &operations, &mut family);
        family
    };
    let pieces = |side, first: &[Operation<'_>]| {
        let parts = data.chunks(usize::from(*cut).max(1));
        let operations = parts.flat_map(|part| [Operation::Bytes(side, part), SECOND]);
        list(&first.iter().copied().chain(operations).collect::<Vec<_>>())
    };
    let (now, keys) = (Duration::ZERO, keys(None));
    match role {
        Role::Client => {
            let client = Connection::client(ClientConfig::new(EPOCH).into(), now);
            play(client, pieces(Side::Server, &[Operation::Now(Command::Send(b"early"))]));
        }
        Role::Server => {
            let server = Connection::server(ServerConfig::new(EPOCH).into(), SESSION, now);
            play(server, pieces(Side::Client, &[]));
        }
        Role::Observer => {
            play(Connection::observer(keys.clone()), pieces(Side::Client, &[]));
            let late = Connection::observer_from_the_middle(keys.clone());
            play(late, pieces(Side::Server, &[]));
            let datagram = |(index, part)| {
                let gap = (index % 5 == 4).then_some(Operation::Gap(Side::Client, 10));
                [Operation::Datagram(Side::BOTH[index % 2], part)].into_iter().chain(gap)
            };
            let operations: Vec<_> = data.chunks(40).enumerate().flat_map(datagram).collect();
            play(Connection::observer(keys), list(&operations));
        }
        Role::Relay => {
            for side in Side::BOTH {
                let relay = Connection::relay(RelayConfig::new(keys.clone()).into(), now);
                let Run { forwarded, reason, .. } = play(relay, pieces(side, &[]));
                assert!(data.starts_with(&forwarded), "bytes changed");
                if reason == Some(CloseReason::Remote) {
                    assert_eq!(data.len(), forwarded.len(), "bytes were not forwarded");
                }
            }
        }
    }
}

fn streams(role: Role) -> Vec<Vec<u8>> {
    if role == Role::Client { server_streams() } else { client_streams() }
}

/// Runs a connection on a list of operations. An accept with a handshake starts encryption on both
/// sides, except when the connection is a server, which ignores some messages and keeps others for
/// later.
///
/// # Panics
/// Panics if the connection breaks its contract.
fn drive(role: Role, data: &[u8]) -> Statistics {
    let (now, keys) = (Duration::ZERO, keys(Some(SESSION)));
    let mut family = Run::new(Encryption::Pending(Vec::new()));
    let connection = match role {
        Role::Client => {
            let mut config = ClientConfig::new(EPOCH);
            config.common.bounds = BOUNDS;
            Connection::client(config.into(), now)
        }
        Role::Server => {
            let (rule, data) = data.split_first().unwrap_or((&0, data));
            let mut config = ServerConfig { keep_early: rule & 1 == 0, ..ServerConfig::new(EPOCH) };
            (config.max_early_frames, config.max_early_bytes) = (8, 512);
            config.common.bounds = BOUNDS;
            family = Run::new(Encryption::None);
            (family.is_in_order, family.next) = (false, (rule & 2 != 0).then_some(SESSION));
            return run(Connection::server(config.into(), SESSION, now), data, &mut family);
        }
        Role::Observer => Connection::observer(keys),
        Role::Relay => {
            let config = RelayConfig { bounds: BOUNDS, ..RelayConfig::new(keys) };
            Connection::relay(config.into(), now)
        }
    };
    run(connection, data, &mut family)
}

fn made(data: &[u8]) -> RawMessage<'static> {
    let mut sampler = sampler(data);
    let length = usize::try_from(sampler.below(300)).unwrap_or(0);
    RawMessage { service: 5, order: 1, payload: sampler.bytes(length).into() }
}

/// A crypto block with which an accept starts encryption.
fn handshake() -> CryptoBlock<'static> {
    CryptoBlock(vec![9; 257].into())
}

const TIME: SessionTime = SessionTime::new(1_700_000_000, 321);

fn bytes(frame: &Frame<'_>) -> Vec<u8> {
    frame.to_bytes().unwrap_or_default()
}

fn offer(session_id: u16) -> Vec<u8> {
    let crypto = Some(CryptoBlock::NONE);
    bytes(&Frame::control(Control::SessionOffer(SessionOffer { session_id, time: TIME, crypto })))
}

fn accept(crypto: Option<CryptoBlock<'_>>) -> Vec<u8> {
    let (reserved, time, session_id) = (0, TIME, SESSION);
    let accept = SessionAccept { reserved, time, session_id, crypto };
    bytes(&Frame::control(Control::SessionAccept(accept)))
}

fn frame(messages: u8) -> Vec<u8> {
    let message = |order| RawMessage { service: 5, order, payload: vec![order; 20].into() };
    let body = Body::Data((1..=messages).map(message).collect());
    bytes(&Frame { body, ..Frame::message(message(1)) })
}

fn alive() -> Vec<u8> {
    let alive = KeepAlive::Client { session_id: SESSION, millis: 1, minutes: 2 };
    bytes(&Frame::control(Control::KeepAlive(alive)))
}

const SECOND: Operation<'_> = Operation::Wait(Duration::from_secs(1));

fn lists(role: Role) -> Vec<Vec<u8>> {
    match role {
        Role::Client => client_lists(),
        Role::Server => server_lists(),
        Role::Observer => observer_lists(),
        Role::Relay => relay_lists(),
    }
}

fn client_lists() -> Vec<Vec<u8>> {
    let (offer, next, frame, alive) = (offer(SESSION), offer(9), frame(3), alive());
    vec![list(&[
        Operation::Now(Command::Send(b"early")),
        Operation::Bytes(Side::Server, &offer),
        Operation::OnPiece(Command::Send(b"answer")),
        Operation::Bytes(Side::Server, &frame),
        Operation::Wait(Duration::from_secs(10)),
        Operation::Bytes(Side::Server, &alive),
        Operation::Now(Command::Send(b"last")),
        Operation::Lazy(true),
        Operation::Bytes(Side::Server, &next),
        Operation::Poll(2),
        Operation::Transmit(Side::Server, 1),
        Operation::Timeout,
        Operation::Datagram(Side::Server, &frame),
    ])]
}

fn server_lists() -> Vec<Vec<u8>> {
    let (accept, frame, alive) = (accept(Some(CryptoBlock::NONE)), frame(3), alive());
    let talk = list(&[
        Operation::Bytes(Side::Client, &frame),
        Operation::Bytes(Side::Client, &accept),
        Operation::OnPiece(Command::AsIs),
        Operation::OnPiece(Command::Send(b"answer")),
        Operation::Bytes(Side::Client, &frame),
        Operation::Lazy(true),
        Operation::Bytes(Side::Client, &alive),
        Operation::Timeout,
        Operation::Lazy(false),
        Operation::Bytes(Side::Client, &frame),
    ]);
    (0..4).map(|rule| [&[rule], &talk[..]].concat()).collect()
}

fn observer_lists() -> Vec<Vec<u8>> {
    let samples: Vec<(Side, Vec<u8>)> = samples()
        .iter()
        .map(|(side, frame)| (*side, bytes(frame)))
        .filter(|(_, bytes)| bytes.len() < 1000)
        .collect();
    let mut all: Vec<_> = samples.iter().map(|(side, b)| Operation::Bytes(*side, b)).collect();
    let mut datagrams: Vec<_> =
        samples.iter().map(|(side, b)| Operation::Datagram(*side, b)).collect();
    all.insert(2, Operation::Gap(Side::Server, 100));
    datagrams.insert(2, Operation::Gap(Side::Server, 100));
    [vec![list(&all), list(&datagrams)], relay_lists()].concat()
}

fn relay_lists() -> Vec<Vec<u8>> {
    let (offer, frame, alive) = (offer(SESSION), frame(3), alive());
    let blocks = [CryptoBlock::NONE, handshake()];
    let talk = |block: &CryptoBlock<'static>| {
        let accept = accept(Some(block.clone()));
        let long = frame.repeat(30);
        list(&[
            Operation::Bytes(Side::Server, &offer),
            Operation::Bytes(Side::Client, &accept),
            Operation::Bytes(Side::Client, &long),
            Operation::Bytes(Side::Server, &alive),
            Operation::OnPiece(Command::Drop),
            Operation::OnPiece(Command::Instead(b"other")),
            Operation::OnPiece(Command::Inject(Side::Server, b"more")),
            Operation::OnPiece(Command::AsIs),
            Operation::OnPiece(Command::Hold),
            Operation::OnPiece(Command::Hold),
            Operation::Bytes(Side::Client, &frame),
            Operation::Bytes(Side::Client, &alive),
            Operation::Now(Command::Inject(Side::Server, b"before")),
            Operation::Now(Command::Release(&[1, 1])),
            Operation::Now(Command::Release(&[0, 2, 6])),
            Operation::OnPiece(Command::Hold),
            Operation::Bytes(Side::Server, &frame),
            Operation::Lazy(true),
            Operation::Bytes(Side::Client, &long),
            Operation::Now(Command::Inject(Side::Client, b"hello")),
            Operation::Poll(9),
            Operation::Transmit(Side::Server, 3),
            Operation::End(Side::Server),
            Operation::Lazy(false),
            Operation::Datagram(Side::Client, &frame),
        ])
    };
    blocks.iter().map(talk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_reach_deep_states() {
        let messages = |role| -> Vec<u64> {
            lists(role).iter().map(|seed| drive(role, seed).messages).collect()
        };
        assert_eq!(messages(Role::Client), [6]);
        assert_eq!(messages(Role::Server), [9, 6, 4, 1]);
        assert_eq!(messages(Role::Relay), [189, 189]);
        assert!(messages(Role::Observer).iter().all(|messages| *messages > 0));
    }
}
