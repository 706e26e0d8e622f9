//! Every message arrives, however the stream is split.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_uru::connection::{ClientConfig, Connection, Encryption, ServerConfig, Unit};
use worldwire_uru::frame::Service;

use crate::ends::{Drive as _, KEYS, line, open_config, ping, plain_start, sample, server_of};
use crate::pair::{Cut, EventRecord, Talk, drain, every_message};

fn exchange_everything(service: Service, encrypted: bool, cut: Cut, seed: u64) {
    let mut pair = Talk::new(service, encrypted, &cut);
    let established = EventRecord::Established(service, encrypted && service.is_encrypted());
    assert!(pair.events.iter().all(|events| events.contains(&established)));
    let messages = every_message(service, seed);
    for message in &messages {
        pair.send(message);
    }
    let sent = |side| messages.iter().filter(move |message| message.sender() == side);
    for side in Side::BOTH {
        let wanted: Vec<Vec<u8>> = sent(side).map(|message| message.to_bytes().unwrap()).collect();
        let of = |events: &[EventRecord]| -> Vec<Vec<u8>> {
            let bytes = events.iter().filter_map(|events| match events {
                EventRecord::Unit(from, Unit::Message(_), _, bytes) if *from == side => {
                    Some(bytes.clone())
                }
                _ => None,
            });
            bytes.collect()
        };
        assert_eq!(of(&pair.events[side.other().index()]), wanted);
        assert_eq!(of(&pair.observed), wanted);
        // The observer accounts for every byte of the stream.
        let mut next = 0;
        for events in &pair.observed {
            if let EventRecord::Unit(from, _, offset, bytes) = events
                && *from == side
            {
                assert_eq!(*offset, next);
                next += bytes.len() as u64;
            }
        }
        assert_eq!(next, pair.pair.written[side.index()].len() as u64);
    }
}

#[test]
fn every_message_of_every_service_arrives() {
    for service in Service::ALL {
        for encrypted in [true, false] {
            for cut in [Cut::Whole, Cut::Bytes, Cut::Random(7)] {
                exchange_everything(service, encrypted, cut, 42);
            }
        }
    }
}

#[test]
fn answers_leave_while_the_client_is_read() {
    // The server replies to every request before it reads the next.
    let mut server = server_of(open_config(), Duration::ZERO);
    let pings = ping(Service::Auth).to_bytes().unwrap().repeat(3);
    let bytes = [plain_start(Service::Auth), pings].concat();
    server.input(Duration::ZERO, Side::Client, Input::Bytes(&bytes));
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    let mut lines = Vec::new();
    while let Some((event, sender)) = server.poll() {
        lines.push(line(&event));
        if let Event::Received(received) = event
            && received.message().is_some()
        {
            sender.send(&reply).unwrap();
            if lines.len() == 5 {
                sender.close();
                assert!(sender.send(&reply).is_err());
            }
        }
    }
    assert_eq!(lines.last().unwrap(), "closed: closed by this side");
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(server.poll_transmit(Side::Client).unwrap(), [1, 2]);
    for _ in 0..2 {
        assert_eq!(server.poll_transmit(Side::Client).unwrap(), reply.to_bytes().unwrap());
    }
    assert_eq!(server.transmit(), None);
    assert_eq!(server.poll_transmit(Side::Server), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_messages_arrive_in_any_segments(seed: u64, cut: u64, service in 0..4_usize) {
        exchange_everything(Service::ALL[service], seed % 2 == 0, Cut::Random(cut), seed);
    }

    #[test]
    fn segment_sizes_make_no_difference(seed: u64, cut: u64) {
        let mut pair = Talk::new(Service::Auth, true, &Cut::Whole);
        for message in every_message(Service::Auth, seed) {
            pair.send(&message);
        }
        let run = |cut: Cut| {
            let mut observer = Connection::observer(Arc::new(KEYS.clone()));
            let mut events = Vec::new();
            for side in Side::BOTH {
                for piece in cut.pieces(&pair.pair.written[side.index()]) {
                    observer.receive(side, Duration::ZERO, piece);
                    drain(&mut observer, &mut events);
                }
            }
            observer.end(Duration::ZERO);
            drain(&mut observer, &mut events);
            events
        };
        let whole = run(Cut::Whole);
        prop_assert!(!whole.iter().any(|events| matches!(events, EventRecord::Fault(..))));
        prop_assert_eq!(&run(Cut::Bytes), &whole);
        prop_assert_eq!(&run(Cut::Random(cut)), &whole);
    }

    #[test]
    fn no_input_can_break_a_machine(
        seed: u64,
        role in 0..3_usize,
        setup: bool,
        noise in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut connection = match role {
            0 => {
                let client = ClientConfig::new(Service::Auth, None);
                Connection::client(client.into(), [1; 64], Duration::ZERO).unwrap()
            }
            1 => {
                let mut config = ServerConfig::new(KEYS.clone());
                config.encryption = Encryption::AllowPlain;
                Connection::server(config.into(), [0; 7], Duration::ZERO)
            }
            _ => Connection::observer(Arc::new(KEYS.clone())),
        };
        let side = if role == 0 { Side::Server } else { Side::Client };
        if setup {
            let good = if role == 0 { vec![1, 2] } else { plain_start(Service::Auth) };
            connection.receive(side, Duration::ZERO, &good);
        }
        let mut events = Vec::new();
        for piece in Cut::Random(seed).pieces(&noise) {
            connection.receive(side, Duration::ZERO, piece);
            drain(&mut connection, &mut events);
        }
        connection.end(Duration::ZERO);
        drain(&mut connection, &mut events);
        prop_assert!(events.iter().any(|events| matches!(events, EventRecord::Closed(_))));
    }
}
