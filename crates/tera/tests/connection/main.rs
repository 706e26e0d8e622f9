//! Two machines in a box, in virtual time, and an observer beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::{Sampler, Side};
use worldwire_tera::connection::{CloseReason, Config, Connection, Event, Unit};
use worldwire_tera::crypt::exchange::Variant;
use worldwire_tera::frame::CHECK_VERSION;

const NOW: Duration = Duration::ZERO;

fn message(opcode: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4).unwrap();
    [&length.to_le_bytes()[..], &opcode.to_le_bytes(), body].concat()
}

fn line(event: &Event<'_>) -> String {
    match event {
        Event::Received(received) => match received.unit {
            Unit::Message { .. } => format!("{} {:02x?}", received.side, received.bytes),
            unit => format!("{} {unit:?}", received.side),
        },
        Event::Fault { side, error } => format!("fault of the {side}: {error}"),
        other => format!("{other:?}"),
    }
}

fn lines(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

/// What both sides say, piece by piece, and what they hear.
struct Said {
    pieces: Vec<(Side, Vec<u8>)>,
    heard: [Vec<String>; 2],
}

fn session(sampler: &mut Sampler, variant: Variant) -> Said {
    let key = |sampler: &mut Sampler| sampler.bytes(128).try_into().unwrap();
    let config =
        |sampler: &mut Sampler| Config { variant, ..Config::new([key(sampler), key(sampler)]) };
    let mut client = Connection::client(config(sampler), NOW);
    let mut server = Connection::server(config(sampler), NOW);
    // Sent before there are keys: it waits.
    client.send(&message(CHECK_VERSION, &[1, 2, 3])).unwrap();
    let mut said = Said { pieces: Vec::new(), heard: Default::default() };
    for round in 0..12 {
        if round > 4 {
            for connection in [&mut client, &mut server] {
                let length = usize::try_from(sampler.below(700)).unwrap();
                let body = sampler.bytes(length);
                connection.send(&message(round, &body)).unwrap();
            }
        }
        while let Some(bytes) = server.poll_transmit() {
            client.receive(Side::Server, NOW, &bytes);
            said.pieces.push((Side::Server, bytes));
        }
        said.heard[0].extend(lines(&mut client));
        while let Some(bytes) = client.poll_transmit() {
            server.receive(Side::Client, NOW, &bytes);
            said.pieces.push((Side::Client, bytes));
        }
        said.heard[1].extend(lines(&mut server));
    }
    assert!(client.is_established() && server.is_established());
    assert_eq!((client.poll_timeout(), server.poll_timeout()), (None, None));
    said
}

fn observe(said: &Said, variant: Option<Variant>, size: usize) -> [Vec<String>; 2] {
    let mut observer = Connection::observer(variant);
    let mut heard = [Vec::new(), Vec::new()];
    let mut read = [0, 0];
    for (side, bytes) in &said.pieces {
        for piece in bytes.chunks(size) {
            observer.receive(*side, NOW, piece);
            while let Some(event) = observer.poll_event() {
                match &event {
                    Event::Received(received) => {
                        let index = received.side.index();
                        assert_eq!(received.offset, read[index], "the pieces tile the stream");
                        read[index] = received.range().end;
                        heard[index].push(line(&event));
                    }
                    Event::Established => {}
                    _ => panic!("{}", line(&event)),
                }
            }
        }
    }
    observer.end(NOW);
    assert_eq!(lines(&mut observer), ["Closed(Remote)"]);
    heard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn an_observer_hears_what_both_sides_hear(seed in any::<u64>(), size in 1..2000usize) {
        for variant in Variant::ALL {
            let said = session(&mut Sampler::new(seed), variant);
            let [client, server] = observe(&said, None, size);
            let of = |heard: &[String]| -> Vec<String> {
                heard.iter().filter(|line| *line != "Established").cloned().collect()
            };
            prop_assert_eq!(&of(&said.heard[1]), &client);
            prop_assert_eq!(&of(&said.heard[0]), &server);
            prop_assert_eq!(observe(&said, Some(variant), 1), [client, server]);
        }
    }

    #[test]
    fn a_gap_loses_only_what_it_touches(seed in any::<u64>(), lost in 6..18usize) {
        let said = session(&mut Sampler::new(seed), Variant::From45);
        prop_assume!(lost < said.pieces.len());
        let hear = |skip: Option<usize>| {
            let mut observer = Connection::observer(None);
            let mut heard = Vec::new();
            for (index, (side, bytes)) in said.pieces.iter().enumerate() {
                match skip {
                    Some(skip) if skip == index => observer.gap(*side, NOW, bytes.len() as u64),
                    _ => observer.receive(*side, NOW, bytes),
                }
                let told = lines(&mut observer);
                if index != lost {
                    heard.extend(told);
                }
            }
            heard
        };
        let note = |line: &String| line.starts_with("Gap") || line.starts_with("Resync");
        let mut with = hear(Some(lost));
        with.retain(|line| !note(line));
        prop_assert_eq!(with, hear(None));
    }
}

#[test]
fn rules_are_kept() {
    let config = || Config::new([[1; 128], [2; 128]]);
    let mut client = Connection::client(config(), NOW);
    client.receive(Side::Server, NOW, &[1, 0, 2]);
    insta::assert_snapshot!(lines(&mut client).join("\n"), @r"
    fault of the server: at byte 0: wanted hello, 01 00 00 00, found 01 00 02
    Closed(Fault)
    ");
    let mut client = Connection::client(config(), NOW);
    assert_eq!(client.poll_timeout(), Some(Duration::from_secs(5)));
    client.receive(Side::Server, Duration::from_secs(4), &[1, 0, 0, 0]);
    lines(&mut client);
    assert_eq!(client.poll_timeout(), Some(Duration::from_secs(9)));
    client.timeout(Duration::from_secs(9));
    assert_eq!(lines(&mut client), ["Closed(Timeout)"]);
    let error = client.send(&[4, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "wanted an open connection, found a closed one");

    let mut server = Connection::server(config(), NOW);
    let error = server.send(&[5, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "wanted a message of 5 bytes, found 4 bytes");
    let error = server.send(&[3, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "length at byte 0: wanted a length of at least 4, found 3");
    server.close();
    assert_eq!(server.poll_transmit().as_deref(), Some(&[1, 0, 0, 0][..]));
    let event = server.poll_event();
    assert!(matches!(event, Some(Event::Closed(CloseReason::Local))));
}

#[test]
fn a_length_of_zero_ends_a_stream() {
    let said = session(&mut Sampler::new(1), Variant::From45);
    let mut observer = Connection::observer(None);
    for (side, bytes) in &said.pieces {
        // A changed length: the keystream goes on, the messages do not.
        let mut bytes = bytes.clone();
        if *side == Side::Client && bytes.len() == 7 {
            bytes[0] ^= 7;
        }
        observer.receive(*side, NOW, &bytes);
    }
    let heard = lines(&mut observer);
    let fault = heard.iter().find(|line| line.starts_with("fault")).unwrap();
    insta::assert_snapshot!(fault, @"fault of the client: length at byte 256: wanted a length of at least 4, found 0");
    assert!(heard.iter().any(|line| line.starts_with("server [")), "the other side goes on");
}

#[test]
fn a_torn_exchange_cannot_be_read() {
    let said = session(&mut Sampler::new(2), Variant::From45);
    let mut observer = Connection::observer(None);
    observer.receive(Side::Server, NOW, &said.pieces[0].1);
    observer.gap(Side::Client, NOW, 28);
    observer.receive(Side::Client, NOW, &said.pieces[1].1[28..]);
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    server Hello
    Gap { side: Client, range: 0..28 }
    fault of the client: at byte 0: wanted the whole key exchange, found 28 bytes missing
    ");
}

/// Keystream is passed over for what a capture may have lost, not for what a segment claims.
#[test]
fn a_forged_gap_costs_no_keystream() {
    let said = session(&mut Sampler::new(3), Variant::From45);
    let mut observer = Connection::observer(None);
    let mut came = 0;
    for (side, bytes) in &said.pieces {
        observer.receive(*side, NOW, bytes);
        came += if *side == Side::Client { bytes.len() as u64 } else { 0 };
    }
    lines(&mut observer);
    // What it may be grows with what came.
    observer.gap(Side::Client, NOW, 16 * came);
    observer.gap(Side::Client, NOW, 1 << 20);
    assert_eq!(lines(&mut observer).len(), 1, "one gap");
    observer.gap(Side::Client, NOW, (1 << 30) - 2);
    let heard = lines(&mut observer);
    let wanted = "wanted at most 0 (keystream for missing bytes), found 1073741822";
    assert!(heard.len() == 1 && heard[0].ends_with(wanted), "{heard:?}");
    observer.gap(Side::Client, NOW, u64::MAX);
    observer.gap(Side::Client, NOW, u64::MAX);
    observer.receive(Side::Client, NOW, &[1, 2, 3]);
    observer.gap(Side::Server, NOW, u64::MAX);
    let heard = lines(&mut observer);
    assert!(heard.len() == 2 && heard[1].contains("keystream for missing bytes"), "{heard:?}");
}

/// Without the other side's keys nothing can be read, so not everything is kept.
#[test]
fn only_so_much_waits_for_the_keys() {
    let said = session(&mut Sampler::new(4), Variant::From45);
    let mut observer = Connection::observer(None);
    for (side, bytes) in said.pieces.iter().filter(|(side, _)| *side == Side::Server) {
        observer.receive(*side, NOW, bytes);
    }
    lines(&mut observer);
    let mut heard = Vec::new();
    for _ in 0..300 {
        observer.receive(Side::Server, NOW, &[7; 4096]);
        heard.extend(lines(&mut observer));
    }
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(
        heard[0].contains("wanted at most 1048576 (bytes before the key exchange)"),
        "{heard:?}"
    );
}
