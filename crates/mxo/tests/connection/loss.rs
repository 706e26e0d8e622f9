//! Networks that lose, repeat, reorder and damage datagrams.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, EventOf};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_mxo::connection::{Connection, News, PacketNumber, Unit};
use worldwire_mxo::frame::RpcMessage;

use crate::support::{MILLI, SECOND, WIRE, client, relay, rpc, server};

/// The messages and objects that one side sent and received.
#[derive(Default)]
struct Account {
    /// The number of RPC messages sent, and the number received, each once and in order.
    sent: u32,
    heard: u32,
    /// The outcome of each packet with objects.
    fates: BTreeMap<PacketNumber, Option<bool>>,
    /// The objects received from the other side, by their content.
    came: BTreeSet<u64>,
    established: u32,
    resets: u32,
    /// Packets that were reported lost and then arrived.
    late: BTreeSet<PacketNumber>,
}

struct Talk {
    pair: Pair<Connection>,
    /// The accounts, by side.
    accounts: [Account; 2],
}

impl Talk {
    fn new(conditions: Conditions) -> Self {
        let pair = Pair::new(client(), server(), conditions);
        Self { pair, accounts: Default::default() }
    }

    fn run_for(&mut self, time: Duration) {
        let accounts = &mut self.accounts;
        self.pair.run_until(self.pair.now + time, |member, event, _| {
            let side = if member == Member::Client { Side::Client } else { Side::Server };
            accounts[side.index()].hear(&event);
        });
    }

    /// Each side sends RPC messages and, if requested, objects.
    fn say(&mut self, messages: u32, objects: bool) {
        for side in Side::BOTH {
            let account = &mut self.accounts[side.index()];
            let connection = match side {
                Side::Client => &mut self.pair.client,
                Side::Server => &mut self.pair.server,
            };
            for _ in 0..messages {
                account.sent += u32::from(connection.send(&rpc(account.sent)).is_ok());
            }
            if objects && connection.is_established() {
                // The content is a running number, which identifies the packet.
                let said = account.fates.len() as u64;
                let section = [&[3], &said.to_le_bytes()[..], &[0, 0]].concat();
                if let Ok(number) = connection.sender().send_objects(&section, None) {
                    assert_eq!(account.fates.insert(number, None), None, "{number} twice");
                }
            }
        }
    }

    /// Checks that every message arrived, that every packet has one outcome, and that packets
    /// reported as delivered did arrive. Returns the numbers of delivered and lost packets.
    fn check(&self) -> (usize, usize) {
        let (mut delivered, mut lost) = (0, 0);
        for side in Side::BOTH {
            let (own, peer) = (&self.accounts[side.index()], &self.accounts[side.other().index()]);
            assert_eq!(own.sent, peer.heard, "messages of the {side}");
            assert_eq!(own.established, 1);
            for (index, (number, fate)) in own.fates.iter().enumerate() {
                let came = peer.came.contains(&(index as u64));
                match fate.unwrap_or_else(|| panic!("packet {number} of the {side} has no outcome"))
                {
                    true => assert!(came, "packet {number} of the {side} did not arrive"),
                    false => lost += 1,
                }
                delivered += usize::from(*fate == Some(true));
            }
        }
        (delivered, lost)
    }
}

impl Account {
    fn hear(&mut self, event: &EventOf<'_, Connection>) {
        match event {
            Event::Received(received) => match received.unit {
                Unit::Rpc { .. } => {
                    let message = RpcMessage::of(received.bytes);
                    assert_eq!(message.data(), self.heard.to_le_bytes(), "out of order, or twice");
                    self.heard += 1;
                }
                // The server's probe.
                Unit::Section { id: 3, .. } if received.bytes == [3, 0, 0] => {}
                Unit::Section { id: 3, .. } => {
                    let said = received.bytes[1..9].try_into().unwrap();
                    assert!(self.came.insert(u64::from_le_bytes(said)), "objects arrived twice");
                }
                _ => {}
            },
            Event::News(News::Delivered(number)) => self.settle(*number, true),
            Event::News(News::Lost(number)) => self.settle(*number, false),
            Event::News(News::Late(number)) => {
                let was_lost = self.fates.get(number) == Some(&Some(false));
                assert!(was_lost && self.late.insert(*number), "{number} is late");
            }
            Event::News(News::Established) => self.established += 1,
            Event::News(News::Reset) => self.resets += 1,
            Event::Fault { error, .. } => {
                let text = error.to_string();
                // Only damaged datagrams cause faults.
                let damage = ["another key", "damaged", "00 or 01", "session 0x", "blocks"];
                assert!(damage.iter().any(|part| text.contains(part)), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn settle(&mut self, number: PacketNumber, arrived: bool) {
        let fate = self.fates.get_mut(&number).expect("it was sent");
        assert_eq!(fate.replace(arrived), None, "{number} has two outcomes");
    }
}

/// Exchanges messages for this many rounds of 10 ms, then waits until everything is settled.
fn talk(conditions: Conditions, rounds: u32, messages: u32) -> (Talk, (usize, usize)) {
    let mut talk = Talk::new(conditions);
    for round in 0..rounds {
        talk.say(if round % 2 == 0 { messages } else { 0 }, true);
        talk.run_for(10 * MILLI);
    }
    talk.run_for(100 * SECOND);
    assert!(!talk.pair.client.is_closed() && !talk.pair.server.is_closed());
    let fates = talk.check();
    (talk, fates)
}

#[test]
fn a_perfect_network_delivers_everything() {
    let (talk, (delivered, lost)) = talk(WIRE, 400, 3);
    assert_eq!((talk.accounts[0].sent, talk.accounts[1].sent), (600, 600));
    // No objects can be sent before the hello is answered.
    assert_eq!(lost, 0);
    assert!(delivered > 750, "{delivered}");
}

#[test]
fn a_third_of_all_datagrams_can_be_lost_in_both_directions() {
    for seed in 0..6 {
        let (talk, (delivered, lost)) = talk(Conditions { loss: 300, seed, ..WIRE }, 300, 2);
        assert_eq!(talk.accounts[0].sent, 300);
        assert!(delivered > 250 && lost > 100, "{delivered} delivered, {lost} lost");
    }
}

#[test]
fn datagrams_can_be_lost_repeated_late_and_damaged() {
    for seed in 0..6 {
        let conditions = Conditions {
            loss: 150,
            duplication: 200,
            reordering: 400,
            corruption: 80,
            seed,
            ..WIRE
        };
        let (talk, _) = talk(conditions, 300, 2);
        assert_eq!(talk.accounts[1].sent, 300);
    }
}

#[test]
fn numbers_wrap_while_packets_are_in_transit() {
    let conditions = Conditions { loss: 20, duplication: 50, reordering: 100, ..WIRE };
    let (talk, (delivered, _)) = talk(conditions, 5_000, 1);
    let highest = talk.accounts[1].fates.keys().max().unwrap();
    assert!(highest.0 > 4_096 + 1_000, "{highest}");
    assert!(delivered > 8_000, "{delivered}");
}

#[test]
fn a_reset_restarts_the_sequence_despite_losses() {
    for seed in 0..6 {
        let mut talk = Talk::new(Conditions { loss: 250, duplication: 100, seed, ..WIRE });
        for round in 0..200 {
            talk.say(1, true);
            talk.run_for(10 * MILLI);
            if round % 60 != 59 {
                continue;
            }
            talk.run_for(20 * SECOND);
            talk.check();
            // A reset discards messages in transit, so everything must be settled.
            let before = talk.accounts[0].resets;
            talk.pair.server.sender().reset().unwrap();
            assert!(!talk.pair.server.is_established());
            talk.run_for(20 * SECOND);
            assert!(talk.pair.server.is_established(), "with seed {seed}");
            assert_eq!([0, 1].map(|at| talk.accounts[at].resets), [before + 1; 2]);
        }
        talk.run_for(100 * SECOND);
        talk.check();
    }
}

#[test]
fn a_dead_network_ends_the_connection_and_settles_every_packet() {
    let mut talk = Talk::new(WIRE);
    talk.run_for(SECOND);
    talk.say(5, true);
    talk.run_for(SECOND);
    // From now on, nothing that the client sends arrives.
    for number in 0..3u8 {
        talk.pair.server.send(&rpc(5)).unwrap();
        let sender = talk.pair.server.sender();
        let sent = sender.send_objects(&[3, number, 0, 0], None).unwrap();
        talk.accounts[1].fates.insert(sent, None);
    }
    let mut events = Vec::new();
    while let Some(event) = talk.pair.server.poll_event() {
        events.push(crate::support::line(&event));
    }
    let server = &mut talk.pair.server;
    let start = talk.pair.now;
    while let Some(at) = server.poll_timeout() {
        assert!(at < start + 60 * SECOND, "it is still open");
        server.timeout(at);
        while server.poll_transmit(Side::Client).is_some() {}
        events.extend(crate::support::lines(server));
    }
    let lost = events.iter().filter(|line| line.starts_with("Lost")).count();
    assert_eq!(lost, 3, "{events:?}");
    assert_eq!(events.last().unwrap(), "Closed(Timeout(Idle))");
}

/// Establishes a connection through a relay over two wires, each of which loses 300 of every 1,000
/// datagrams. Returns the reason for failure, if any.
fn failed_setup(seed: u64) -> Option<String> {
    let conditions = Conditions { loss: 300, seed, ..WIRE };
    let mut pair = Pair::relayed(client(), relay(), server(), conditions);
    pair.client.send(&rpc(1)).unwrap();
    pair.server.send(&rpc(1)).unwrap();
    let (mut heard, mut end) = (0, None);
    while heard < 2 && end.is_none() {
        pair.run_until(pair.now + SECOND / 10, |member, event, _| match event {
            Event::Received(piece) if member != Member::Relay => {
                heard += usize::from(matches!(piece.unit, Unit::Rpc { .. }));
            }
            Event::Closed(reason) => end = Some(format!("{member:?} with seed {seed}: {reason}")),
            _ => {}
        });
    }
    end
}

#[test]
fn setup_survives_heavy_losses_on_both_sides_of_a_relay() {
    let failed: Vec<String> = (0..400).filter_map(failed_setup).collect();
    assert!(failed.is_empty(), "{} of 400: {failed:?}", failed.len());
}
