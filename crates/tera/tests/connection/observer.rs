//! An observer beside a client and a server.

use proptest::prelude::*;
use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Sampler, Side};
use worldwire_tera::connection::Connection;
use worldwire_tera::crypt::exchange::{Keys, Variant};
use worldwire_tera::frame::CHECK_VERSION;

use crate::ends::{NOW, Said, client, hear, line, lines, message, rough, server, session};

fn observe(said: &Said, variant: Option<Variant>, size: usize) -> [Vec<String>; 2] {
    let mut observer = Connection::observer(variant);
    let mut heard = [Vec::new(), Vec::new()];
    let mut read = [0, 0];
    for (side, bytes) in &said.pieces {
        for piece in bytes.chunks(size) {
            observer.input(NOW, *side, Input::Bytes(piece));
            while let Some(event) = observer.poll_event() {
                match &event {
                    Event::Received(received) => {
                        let index = received.side.index();
                        assert_eq!(received.offset, read[index], "the pieces tile the stream");
                        read[index] = received.range().end;
                        heard[index].push(line(&event));
                    }
                    Event::News(_) => {}
                    _ => panic!("{}", line(&event)),
                }
            }
        }
    }
    observer.input(NOW, Side::Server, Input::End);
    assert_eq!(lines(&mut observer), [""; 0], "the client may still send");
    observer.input(NOW, Side::Client, Input::End);
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
                    Some(skip) if skip == index => {
                        observer.input(NOW, *side, Input::Gap(bytes.len() as u64));
                    }
                    _ => observer.input(NOW, *side, Input::Bytes(bytes)),
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

/// A simulated connection, with segments that the observer does not see.
#[test]
fn unseen_segments_are_gaps() {
    for variant in Variant::ALL {
        let mut pair = Pair::new(client(variant), server(variant), rough(1))
            .watched_by(Connection::observer(None));
        let mut heard = [0, 0];
        pair.client.send(&message(CHECK_VERSION, &[0; 8])).unwrap();
        for round in 0..20 {
            for opcode in 0..20 {
                pair.client.send(&message(opcode, &[round; 30])).unwrap();
                pair.server.send(&message(opcode, &[round; 50])).unwrap();
            }
            pair.settle(|member, event, _| match (member, event) {
                (Member::Observer, Event::Received(received)) => {
                    heard[received.side.index()] += usize::from(received.is_message());
                }
                (_, Event::Fault { .. } | Event::Closed(_)) => panic!("{member:?}"),
                _ => {}
            });
        }
        assert_eq!(heard, [401, 400]);
    }
    // Some whole writes are missing: once the keys are known, only those are lost.
    let mut readable = 0;
    for seed in 0..10 {
        let conditions = Conditions { unseen: 100, seed, ..Conditions::default() };
        let mut pair = Pair::new(client(Variant::From45), server(Variant::From45), conditions)
            .watched_by(Connection::observer(Some(Variant::From45)));
        pair.settle(|_, _, _| {});
        let mut seen = 0;
        for opcode in 0..100 {
            pair.client.send(&message(opcode, &[7; 40])).unwrap();
            pair.settle(|member, event, _| {
                if let (Member::Observer, Event::Received(received)) = (member, event) {
                    seen += usize::from(received.is_message());
                }
            });
        }
        if pair.observer.unwrap().is_established() {
            readable += 1;
            assert!((75..100).contains(&seen), "{seen} of 100");
        }
    }
    assert!(readable > 2, "{readable} of 10");
}

#[test]
fn a_broken_length_costs_what_it_touches() {
    let said = session(&mut Sampler::new(1), Variant::From45);
    let mut observer = Connection::observer(None);
    let mut whole = Connection::observer(None);
    let mut broken = 0;
    let (mut heard, mut all) = (Vec::new(), Vec::new());
    for (side, bytes) in &said.pieces {
        all.extend(hear(&mut whole, *side, bytes));
        // A changed length leaves the keystream intact, but not the messages.
        let mut bytes = bytes.clone();
        if *side == Side::Client && bytes.len() == 7 {
            bytes[0] ^= 7;
            broken += 1;
        }
        heard.extend(hear(&mut observer, *side, &bytes));
    }
    assert_eq!(broken, 1);
    let of_server = |heard: &[String]| -> Vec<String> {
        heard.iter().filter(|line| line.starts_with("server")).cloned().collect()
    };
    assert_eq!(of_server(&heard), of_server(&all));
    let fault = heard.iter().find(|line| line.starts_with("fault")).unwrap();
    insta::assert_snapshot!(fault, @"fault of the client: length at byte 256: wanted a length of at least 4, found 0");
    // The messages after it fill their segments.
    let of_client = |heard: &[String]| heard.iter().filter(|l| l.starts_with("client [")).count();
    assert_eq!(of_client(&heard), of_client(&all) - 1);
    assert!(heard.contains(&"Resync { side: Client, skipped: 256..263 }".to_owned()));
}

/// The hello is constant: with all keys, everything after it can be read.
#[test]
fn a_hello_that_is_missing_costs_the_hello() {
    let said = session(&mut Sampler::new(9), Variant::From45);
    let hear = |change: &dyn Fn(&mut Connection)| {
        let mut observer = Connection::observer(None);
        change(&mut observer);
        let mut heard = lines(&mut observer);
        for (side, bytes) in &said.pieces[1..] {
            observer.input(NOW, *side, Input::Bytes(bytes));
            heard.extend(lines(&mut observer));
        }
        heard
    };
    assert_eq!(said.pieces[0].1.len(), 4);
    let whole = hear(&|observer| observer.input(NOW, Side::Server, Input::Bytes(&[1, 0, 0, 0])));
    let with_gap = hear(&|observer| observer.input(NOW, Side::Server, Input::Gap(4)));
    assert_eq!(with_gap[0], "Gap { side: Server, range: 0..4 }");
    assert!(with_gap[1..] == whole[1..]);
    let torn = hear(&|observer| {
        observer.input(NOW, Side::Server, Input::Bytes(&[1]));
        observer.input(NOW, Side::Server, Input::Gap(3));
    });
    assert!(torn[1..] == whole[1..]);
    // A capture that began after the hello has no gap.
    let late = hear(&|_| {});
    let fault = late.iter().find(|line| line.starts_with("fault of the server"));
    let hint = "if the capture begins after the key exchange, the messages cannot be decrypted, not \
                even with exported keys";
    assert!(fault.is_some_and(|line| line.ends_with(hint)), "{late:?}");
    let rest: Vec<_> = late.iter().filter(|line| !line.starts_with("fault")).collect();
    assert_eq!(rest.len(), whole.len() - 1);
    assert!(rest.iter().filter(|line| line.starts_with("server [")).count() > 3);
    // No other missing part of the exchange can be replaced.
    let torn = hear(&|observer| observer.input(NOW, Side::Server, Input::Gap(5)));
    let wanted = "wanted the whole key exchange, found a gap of 5 bytes";
    assert!(torn.iter().any(|line| line.ends_with(wanted)));
}

#[test]
fn a_torn_exchange_cannot_be_read() {
    let said = session(&mut Sampler::new(2), Variant::From45);
    let mut observer = Connection::observer(None);
    observer.input(NOW, Side::Server, Input::Bytes(&said.pieces[0].1));
    observer.input(NOW, Side::Client, Input::Gap(28));
    observer.input(NOW, Side::Client, Input::Bytes(&said.pieces[1].1[28..]));
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    server Hello
    Gap { side: Client, range: 0..28 }
    fault of the client: at byte 0: wanted the whole key exchange, found a gap of 28 bytes
    ");
}

/// Keys from elsewhere replace an exchange that was not captured.
#[test]
fn known_keys_make_up_for_a_torn_exchange() {
    for variant in Variant::ALL {
        let said = session(&mut Sampler::new(5), variant);
        let hear = |known: &[Keys], lost: &[usize]| {
            let mut observer = Connection::observer_knowing(None, known.into());
            let mut heard = Vec::new();
            for (index, (side, bytes)) in said.pieces.iter().enumerate() {
                let input = match lost.contains(&index) {
                    true => Input::Gap(bytes.len() as u64),
                    false => Input::Bytes(bytes),
                };
                observer.input(NOW, *side, input);
                heard.extend(lines(&mut observer));
            }
            let is_message = |line: &String| line.contains(" [");
            let mut messages: Vec<_> = heard.iter().filter(|line| is_message(line)).collect();
            messages.sort_by_key(|line| line.starts_with("server"));
            let messages: Vec<String> = messages.into_iter().cloned().collect();
            (messages, observer.keys(), heard)
        };
        let (whole, keys, _) = hear(&[], &[]);
        let keys = keys.expect("they were exchanged");
        assert!(whole.len() > 10, "{whole:?}");
        let other = Keys { client: keys.server, server: keys.client };
        for lost in [&[1][..], &[4], &[2, 3], &[0, 1, 2, 3, 4]] {
            for known in [&[keys.clone()][..], &[other.clone(), keys.clone()]] {
                let (messages, _, heard) = hear(known, lost);
                assert!(messages == whole, "{lost:?}: {heard:?}");
                assert!(!heard.iter().any(|line| line.starts_with("fault")), "{heard:?}");
            }
            let (messages, _, heard) = hear(&[], lost);
            assert!(messages.is_empty(), "{heard:?}");
        }
        // Missing parts of the messages are not read, but later ones are.
        let (messages, _, heard) = hear(std::slice::from_ref(&keys), &[3, 4, 6, 7]);
        assert!(messages.len() + 3 > whole.len(), "{heard:?}");
        // A missing hello needs no keys, even where some are known.
        assert_eq!(hear(&[other], &[0]).0, whole);
    }
}

/// Keystream is skipped for bytes that a capture may have lost, not for bytes that a segment merely
/// claims to be missing.
#[test]
fn a_forged_gap_costs_no_keystream() {
    let said = session(&mut Sampler::new(3), Variant::From45);
    let mut observer = Connection::observer(None);
    let mut came = 0;
    for (side, bytes) in &said.pieces {
        observer.input(NOW, *side, Input::Bytes(bytes));
        came += if *side == Side::Client { bytes.len() as u64 } else { 0 };
    }
    lines(&mut observer);
    // The limit grows with the received bytes.
    observer.input(NOW, Side::Client, Input::Gap(16 * came));
    observer.input(NOW, Side::Client, Input::Gap(1 << 20));
    assert_eq!(lines(&mut observer).len(), 1, "one gap");
    observer.input(NOW, Side::Client, Input::Gap((1 << 30) - 2));
    let heard = lines(&mut observer);
    let wanted = "wanted at most 0 (keystream for missing bytes), found 1073741822";
    assert!(heard.len() == 1 && heard[0].ends_with(wanted), "{heard:?}");
    observer.input(NOW, Side::Client, Input::Gap(u64::MAX));
    observer.input(NOW, Side::Client, Input::Gap(u64::MAX));
    observer.input(NOW, Side::Client, Input::Bytes(&[1, 2, 3]));
    observer.input(NOW, Side::Server, Input::Gap(u64::MAX));
    let heard = lines(&mut observer);
    assert!(heard.len() == 2 && heard[1].contains("keystream for missing bytes"), "{heard:?}");
}

/// Without the other side's keys, nothing can be read, so not everything is kept.
#[test]
fn only_so_much_waits_for_the_keys() {
    let said = session(&mut Sampler::new(4), Variant::From45);
    let mut observer = Connection::observer(None);
    for (side, bytes) in said.pieces.iter().filter(|(side, _)| *side == Side::Server) {
        observer.input(NOW, *side, Input::Bytes(bytes));
    }
    lines(&mut observer);
    let mut heard = Vec::new();
    for _ in 0..300 {
        heard.extend(hear(&mut observer, Side::Server, &[7; 4096]));
    }
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(
        heard[0].contains("wanted at most 1048576 (bytes before the key exchange)"),
        "{heard:?}"
    );
}

/// An incomplete message is reported when its side ends; both sides have to end.
#[test]
fn each_stream_ends_on_its_own() {
    let said = session(&mut Sampler::new(6), Variant::From45);
    let mut observer = Connection::observer(None);
    for (side, bytes) in &said.pieces[..10] {
        observer.input(NOW, *side, Input::Bytes(bytes));
    }
    let (side, last) = &said.pieces[10];
    observer.input(NOW, *side, Input::Bytes(&last[..3]));
    lines(&mut observer);
    observer.input(NOW, *side, Input::End);
    let heard = lines(&mut observer);
    assert!(heard.len() == 1, "{heard:?}");
    assert!(heard[0].ends_with("wanted a whole message, found 3 bytes of one"), "{heard:?}");
    assert!(hear(&mut observer, *side, &last[3..]).is_empty(), "it has ended");
    observer.input(NOW, side.other(), Input::End);
    assert_eq!(lines(&mut observer), ["Closed(Remote)"]);
    // If a client sends nothing after the keys, the variant is unknown; the current one is assumed.
    let mut observer = Connection::observer(None);
    let server = |(side, _): &&(Side, Vec<u8>)| *side == Side::Server;
    said.pieces[..5]
        .iter()
        .chain(said.pieces[6..].iter().filter(server))
        .for_each(|(side, bytes)| observer.input(NOW, *side, Input::Bytes(bytes)));
    observer.input(NOW, Side::Server, Input::End);
    assert_eq!(lines(&mut observer).len(), 5);
    observer.input(NOW, Side::Client, Input::End);
    let heard = lines(&mut observer);
    assert_eq!(heard[0], "Established");
    assert!(heard.len() > 5 && heard.last().unwrap() == "Closed(Remote)", "{heard:?}");
}
