//! Fuzz targets that drive connections with lists of operations, one per role.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, Event, EventOf, Inject as _, Sender as _};
use worldwire_core::testing::Target;
use worldwire_core::testing::operations::{
    Account, Command, Family, Held, Operation, Seen, run, run_out_of_order, sampler,
};
use worldwire_core::{Side, Writer};

use super::wire::{KEY, samples};
use crate::connection::{
    ClientConfig, Connection, News, ObserverKeys, RelayConfig, Sender, ServerConfig,
};
use crate::control::{Control, KeepAlive, SessionAccept, SessionOffer, SessionTime};
use crate::crypt::stream::Sealer;
use crate::crypto_block::CryptoBlock;
use crate::frame::{Body, Frame};
use crate::message::RawMessage;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "ki_operations_client",
        run: |data| {
            client(data);
        },
        seeds: client_lists,
    },
    Target {
        name: "ki_operations_server",
        run: |data| {
            server(data);
        },
        seeds: server_lists,
    },
    Target {
        name: "ki_operations_observer",
        run: |data| {
            observer(data);
        },
        seeds: observer_lists,
    },
    Target {
        name: "ki_operations_relay",
        run: |data| {
            relay(data);
        },
        seeds: relay_lists,
    },
];

const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// Small limits, so that lists of operations reach them.
const BOUNDS: Bounds = Bounds { queued_bytes: 4096, queued_messages: 64 };
const SESSION: u16 = 0x1234;

fn client(data: &[u8]) -> Seen {
    let mut config = ClientConfig::new(EPOCH);
    config.common.bounds = BOUNDS;
    drive(Connection::client(config.into(), Duration::ZERO), data)
}

/// Runs a server, which ignores some messages and keeps others for later.
fn server(data: &[u8]) -> Seen {
    let (rule, data) = data.split_first().unwrap_or((&0, data));
    let mut config = ServerConfig { keep_early: rule & 1 == 0, ..ServerConfig::new(EPOCH) };
    (config.max_early_frames, config.max_early_bytes) = (8, 512);
    config.common.bounds = BOUNDS;
    let connection = Connection::server(config.into(), SESSION, Duration::ZERO);
    let mut watch = |event: &EventOf<'_, Connection>| {
        if let Event::News(News::Ignored { range, bytes, .. }) = event {
            assert!(bytes.len() as u64 <= range.end - range.start);
        }
    };
    let refreshes = rule & 2 != 0;
    let mut next = SESSION;
    let mut command = |sender: &mut Sender, what: Command<'_>| {
        if refreshes && matches!(what, Command::AsIs) {
            next = next.wrapping_add(1);
            let _ = sender.refresh(next);
        }
        act(sender, &mut Held::default(), what);
    };
    let mut family = Family { bounds: BOUNDS, command: &mut command, wire: &mut |_, _| {} };
    let account = Account {
        passed_over: |news| match news {
            News::Ignored { range, .. } => Some((Side::Client, range.clone())),
            _ => None,
        },
        kept: Connection::early_ranges,
    };
    run_out_of_order(connection, data, &mut family, &mut watch, account)
}

fn keys() -> Arc<ObserverKeys> {
    Arc::new(ObserverKeys { streams: vec![(Some(SESSION), KEY)] })
}

fn observer(data: &[u8]) -> Seen {
    drive(Connection::observer(keys()), data)
}

fn relay(data: &[u8]) -> Seen {
    let config = RelayConfig { bounds: BOUNDS, ..RelayConfig::new(keys()) };
    drive(Connection::relay(config.into(), Duration::ZERO), data)
}

/// Runs a connection whose sides are both encrypted after an accept with a handshake.
fn drive(connection: Connection, data: &[u8]) -> Seen {
    let handshake = accept(Some(CryptoBlock(vec![9; 257].into())));
    let mut sent = Vec::new();
    let mut sealers: Option<[Sealer; 2]> = None;
    let mut nonce = 0u8;
    let mut wire = |side: Side, bytes: &mut Vec<u8>| {
        if let Some(sealers) = &mut sealers {
            let plain = core::mem::take(bytes);
            return sealers[side.index()].seal(&plain, bytes, || {
                nonce = nonce.wrapping_add(1);
                [nonce; 16]
            });
        }
        if side == Side::Client {
            sent.extend_from_slice(bytes);
            if sent.ends_with(&handshake) {
                sealers = Some(Side::BOTH.map(|side| Sealer::new(&KEY, side)));
            }
        }
    };
    let mut held = Held::default();
    let mut command = |sender: &mut Sender, what: Command<'_>| act(sender, &mut held, what);
    let mut family = Family { bounds: BOUNDS, command: &mut command, wire: &mut wire };
    run(connection, data, &mut family)
}

fn act(sender: &mut Sender, held: &mut Held, command: Command<'_>) {
    let made = |data: &[u8]| {
        let mut sampler = sampler(data);
        let length = usize::try_from(sampler.below(300)).unwrap_or(0);
        RawMessage { service: 5, order: 1, payload: sampler.bytes(length).into() }
    };
    // Some of these are not messages.
    let encoded = |data: &[u8]| {
        let mut writer = Writer::new();
        if data.len() % 8 == 7 || made(data).encode(&mut writer).is_err() {
            return data.to_vec();
        }
        writer.into_bytes()
    };
    if held.carry_out(sender, command, encoded) {
        return;
    }
    // The connection may refuse it.
    let _ = match command {
        Command::Send(data) => sender.send(&made(data)),
        Command::Inject(to, data) => sender.inject(to, &encoded(data)),
        _ => Ok(()),
    };
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

/// Encodes a list of operations, and splits bytes that are too long for one.
fn list(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut list = Vec::new();
    for operation in operations {
        match operation {
            Operation::Bytes(side, bytes) => {
                for part in bytes.chunks(200) {
                    Operation::Bytes(*side, part).write(&mut list);
                }
            }
            operation => operation.write(&mut list),
        }
    }
    list
}

const SECOND: Duration = Duration::from_secs(1);

fn client_lists() -> Vec<Vec<u8>> {
    let (offer, next, frame, alive) = (offer(SESSION), offer(9), frame(3), alive());
    vec![list(&[
        Operation::Now(Command::Send(b"early")),
        Operation::Bytes(Side::Server, &offer),
        Operation::OnPiece(Command::Send(b"answer")),
        Operation::Bytes(Side::Server, &frame),
        Operation::Wait(10 * SECOND),
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
    let blocks = [CryptoBlock::NONE, CryptoBlock(vec![9; 257].into())];
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
        let messages = |seeds: Vec<Vec<u8>>, run: fn(&[u8]) -> Seen| -> Vec<u64> {
            seeds.iter().map(|seed| run(seed).messages).collect()
        };
        assert_eq!(messages(client_lists(), client), [6]);
        assert_eq!(messages(server_lists(), server), [9, 6, 4, 1]);
        assert_eq!(messages(relay_lists(), relay), [189, 189]);
        assert!(messages(observer_lists(), observer).iter().all(|messages| *messages > 0));
    }
}
