//! Observers of captured datagrams.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Reader, Side};
use worldwire_mxo::connection::{ClientConfig, Connection, Session, Unit};
use worldwire_mxo::crypt::{KnownSession, SessionKey};
use worldwire_mxo::frame::{Packet, RccFlags, Section, SequenceNumber, SequenceWord};

use crate::rules::packet;
use crate::support::{
    EPOCH, MILLI, SECOND, SESSION, WIRE, client, key, known, line, lines, pair, rpc, server,
};

/// The RPC messages of one side in the packets that an observer saw, by their data.
fn said(packets: &[(Side, Vec<u8>)], side: Side) -> Vec<u32> {
    let mut said = Vec::new();
    for (from, bytes) in packets {
        let packet = Packet::decode(&mut Reader::new(bytes), Some(*from)).unwrap();
        for section in packet.sections {
            let (Section::Rpc(lists), true) = (section, *from == side) else { continue };
            let messages = lists.into_iter().flat_map(|list| list.messages);
            said.extend(
                messages.map(|message| u32::from_le_bytes(message.data().try_into().unwrap())),
            );
        }
    }
    said
}

#[test]
fn an_observer_sees_everything_that_both_sides_send() {
    let lossy = Conditions { loss: 100, duplication: 100, reordering: 200, ..WIRE };
    for conditions in [WIRE, lossy] {
        let observer = Connection::observer(known());
        let mut pair = Pair::new(client(), server(), conditions).watched_by(observer);
        let mut seen = Vec::new();
        let mut faults = Vec::new();
        for number in 0..100 {
            pair.client.send(&rpc(number)).unwrap();
            pair.server.send(&rpc(number + 1000)).unwrap();
            pair.run_until(pair.now + 10 * MILLI, |member, event, _| {
                let (Member::Observer, Event::Received(piece)) = (member, &event) else {
                    if member == Member::Observer {
                        faults.push(line(&event));
                    }
                    return;
                };
                if matches!(piece.unit, Unit::Packet { .. }) {
                    seen.push((piece.side, piece.bytes.to_vec()));
                }
            });
        }
        assert_eq!(faults, Vec::<String>::new());
        assert!(pair.observer.as_ref().unwrap().is_established());
        for (side, base) in [(Side::Client, 0), (Side::Server, 1000)] {
            let mut said = said(&seen, side);
            said.sort_unstable();
            said.dedup();
            // The last messages may still wait for lost packets.
            assert!(said.len() > 60, "{} of the {side}", said.len());
            assert_eq!(said[0], base);
        }
    }
}

#[test]
fn missing_and_repeated_datagrams_do_not_stop_an_observer() {
    let mut observer = Connection::observer(known());
    let now = Duration::ZERO;
    let [one, two] = [1, 2].map(|number| packet(number, vec![]));
    observer.input(now, Side::Client, Input::Datagram(&one));
    observer.input(now, Side::Client, Input::Datagram(&one));
    observer.input(now, Side::Client, Input::Gap(100));
    let other = Section::Other { id: 5, bytes: vec![7; 40].into() };
    let mut damaged = packet(3, vec![other]);
    damaged[50] ^= 1;
    observer.input(now, Side::Client, Input::Datagram(&damaged));
    observer.input(now, Side::Client, Input::Datagram(&two));
    observer.input(now, Side::Server, Input::Datagram(&[0, 0, 0, 0, 0, 0, 5]));
    observer.input(now, Side::Client, Input::End);
    observer.input(now, Side::Server, Input::End);
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client Packet 1 02, 0..33
    Repeated { side: Client, number: SequenceNumber(1) }
    Gap { side: Client, range: 33..133 }
    fault of the client: at byte 133: wanted a packet with a correct CRC-32, found a damaged packet
    client Packet 2 02, 214..247
    server Plain, 0..7
    Closed(Remote)
    ");
}

#[test]
fn a_gap_beyond_the_limit_closes_an_observer() {
    let mut observer = Connection::observer(known());
    let now = Duration::ZERO;
    observer.input(now, Side::Client, Input::Datagram(&packet(1, vec![])));
    observer.input(now, Side::Client, Input::Gap(u64::MAX));
    observer.input(now, Side::Client, Input::Datagram(&packet(2, vec![])));
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client Packet 1 02, 0..33
    fault of the client: at byte 33: wanted at most 4611686018427387904 (bytes of a stream), found 18446744073709551615
    Closed(Fault)
    ");
}

#[test]
fn missing_packets_are_reported() {
    let mut observer = Connection::observer(known());
    let now = Duration::ZERO;
    for number in [4094, 4095, 1, 0, 5, 3, 70, 69] {
        observer.input(now, Side::Server, Input::Datagram(&packet(number, vec![])));
    }
    // An earlier send time never means a newer round.
    observer.input(now, Side::Server, Input::Datagram(&sent_at(0, 2)));
    // The sequence restarts.
    let local = SequenceNumber::new(9);
    let mut other = Packet::new(1, SequenceWord { local, ..Default::default() });
    other.flags = RccFlags(RccFlags::Always.0 | RccFlags::Reset.0);
    let wire = key().seal_datagram(&[99; 16], &other.to_bytes().unwrap());
    observer.input(now, Side::Server, Input::Datagram(&wire));
    observer.input(now, Side::Server, Input::Datagram(&packet(11, vec![])));
    observer.input(now, Side::Server, Input::End);
    let told: Vec<String> =
        lines(&mut observer).into_iter().filter(|line| line.starts_with("Missing")).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    Missing { side: Server, first: SequenceNumber(2), last: SequenceNumber(2) }
    Missing { side: Server, first: SequenceNumber(4), last: SequenceNumber(4) }
    Missing { side: Server, first: SequenceNumber(6), last: SequenceNumber(68) }
    Missing { side: Server, first: SequenceNumber(10), last: SequenceNumber(10) }
    ");
}

/// A packet that was sent at this time.
fn sent_at(time: u32, number: u16) -> Vec<u8> {
    let local = SequenceNumber::new(number);
    let packet = Packet::new(time, SequenceWord { local, ..Default::default() });
    key().seal_datagram(&[7; 16], &packet.to_bytes().unwrap())
}

#[test]
fn reading_continues_after_a_long_gap() {
    // More packets are missing than the numbers can express, in the first round and in later ones.
    for (rounds, missing) in [(0, 2100), (0, 4030), (1, 2047), (1, 2100), (1, 4000)] {
        let mut observer = Connection::observer(known());
        let behind = rounds * 4096 + 19;
        for count in 1..=behind {
            let wire = sent_at(1, SequenceNumber::of(count).get());
            observer.input(Duration::ZERO, Side::Server, Input::Datagram(&wire));
        }
        lines(&mut observer);
        for count in behind + missing + 1..behind + missing + 200 {
            let wire = sent_at(2, SequenceNumber::of(count).get());
            observer.input(Duration::ZERO, Side::Server, Input::Datagram(&wire));
            observer.input(Duration::ZERO, Side::Server, Input::Datagram(&wire));
        }
        let told = lines(&mut observer);
        let count = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!((count("server Packet"), count("Repeated")), (199, 199), "{rounds} {missing}");
        let [first, last] =
            [behind + 1, behind + missing].map(|count| SequenceNumber::of(count).get());
        let gap = format!(
            "Missing {{ side: Server, first: SequenceNumber({first}), last: SequenceNumber({last}) }}"
        );
        let gaps: Vec<_> = told.iter().filter(|line| line.starts_with("Missing")).collect();
        assert_eq!(gaps, [&gap]);
    }
    // A repeated packet is not a gap, however late it is.
    let mut observer = Connection::observer(known());
    for number in (1..=300).chain(1..=300) {
        let wire = sent_at(1, number);
        observer.input(Duration::ZERO, Side::Server, Input::Datagram(&wire));
    }
    let told = lines(&mut observer);
    assert_eq!(told.iter().filter(|line| line.starts_with("Repeated")).count(), 300);
}

#[test]
fn a_missing_key_is_reported() {
    let now = Duration::ZERO;
    let wrong = KnownSession { id: Some(7), key: SessionKey::new(&[8; 16]) };
    let all = [
        (vec![], "NotGiven"),
        (vec![wrong.clone()], "NoneFits { keys: 1 }"),
        (vec![wrong.clone(); 3], "NoneFits { keys: 3 }"),
    ];
    for (known, missing) in all {
        let mut observer = Connection::observer(known.into());
        for number in 1..5 {
            let wire = packet(number, vec![]);
            observer.input(now, Side::Server, Input::Datagram(&wire));
            observer.input(now, Side::Client, Input::Datagram(&wire));
        }
        let told = format!("KeysNeeded {{ side: Server, missing: {missing} }}");
        assert_eq!(lines(&mut observer), [told]);
    }
    // Plain packets after the skipped part are still read.
    let mut observer = Connection::observer(vec![].into());
    for _ in 0..2 {
        observer.input(now, Side::Server, Input::Datagram(&packet(1, vec![])));
        observer.input(now, Side::Server, Input::Datagram(&[0, 0, 0, 0, 0, 0, 5]));
    }
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    KeysNeeded { side: Server, missing: NotGiven }
    Resync { side: Server, skipped: 0..33 }
    server Plain, 33..40
    Resync { side: Server, skipped: 40..73 }
    server Plain, 73..80
    ");
    // A damaged first datagram hides the key only until the next one.
    let keys: Arc<[KnownSession]> = [wrong, KnownSession { id: None, key: key() }].into();
    let mut observer = Connection::observer(keys);
    let mut damaged = packet(1, vec![]);
    damaged[2] ^= 0xff;
    damaged[6] ^= 0xff;
    observer.input(now, Side::Client, Input::Datagram(&damaged));
    observer.input(now, Side::Client, Input::Datagram(&packet(2, vec![])));
    assert_eq!(
        lines(&mut observer),
        [
            "KeysNeeded { side: Client, missing: NoneFits { keys: 2 } }",
            "Resync { side: Client, skipped: 0..33 }",
            "client Packet 2 02, 33..66"
        ]
    );
}

#[test]
fn only_a_crc_proves_a_key() {
    let wrong = SessionKey::new(&[8; 16]);
    // With the wrong key, its padding and length are valid by chance.
    let mut plain = Packet::new(1, SequenceWord::default()).to_bytes().unwrap();
    plain[0] ^= 1;
    let chance = wrong.seal_datagram(&[3; 16], &plain);
    let wrong = KnownSession { id: None, key: wrong };
    let mut observer = Connection::observer([wrong].into());
    observer.input(Duration::ZERO, Side::Client, Input::Datagram(&chance));
    observer.input(Duration::ZERO, Side::Client, Input::Datagram(&packet(1, vec![])));
    assert_eq!(
        lines(&mut observer),
        ["KeysNeeded { side: Client, missing: NoneFits { keys: 1 } }"]
    );
}

#[test]
fn an_unreadable_datagram_after_readable_ones_is_damaged() {
    let mut observer = Connection::observer(known());
    let now = Duration::ZERO;
    // The first block contains the length, so this looks like a wrong key.
    let mut damaged = packet(2, vec![]);
    damaged[20] ^= 0xff;
    for wire in [packet(1, vec![]), damaged, packet(3, vec![])] {
        observer.input(now, Side::Client, Input::Datagram(&wire));
    }
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client Packet 1 02, 0..33
    fault of the client: at byte 33: wanted a datagram that the session's key decrypts, found a damaged one
    client Packet 3 02, 66..99
    ");
}

#[test]
fn the_key_of_the_session_in_the_hello_is_tried_first() {
    let now = Duration::ZERO;
    let hello = client().poll_transmit(Side::Server).unwrap();
    let other = KnownSession { id: Some(SESSION + 1), key: key() };
    let with_hello = |sessions: Vec<KnownSession>| {
        let mut observer = Connection::observer(sessions.into());
        observer.input(now, Side::Client, Input::Datagram(&hello));
        observer.input(now, Side::Client, Input::Datagram(&packet(1, vec![])));
        lines(&mut observer)[1..].to_vec()
    };
    // The hello may be damaged, so a key that opens packets is used despite it.
    let told = "OtherSession { id: 523124045, named: 523124044 }";
    let read = "client Packet 1 02, 43..76";
    assert_eq!(with_hello(vec![other.clone()]), [told, read]);
    let right = KnownSession { id: Some(SESSION), key: key() };
    let any = KnownSession { id: None, key: key() };
    assert_eq!(with_hello(vec![other.clone(), right]), [read]);
    assert_eq!(with_hello(vec![other.clone(), any]), [read]);
    // Without a hello, any key that opens packets is used.
    let mut observer = Connection::observer(vec![other].into());
    observer.input(now, Side::Client, Input::Datagram(&packet(1, vec![])));
    assert_eq!(lines(&mut observer), ["client Packet 1 02, 0..33"]);
}

#[test]
fn the_hello_selects_the_key() {
    let mut observer = Connection::observer(known());
    let hello = client().poll_transmit(Side::Server).unwrap();
    observer.input(Duration::ZERO, Side::Client, Input::Datagram(&hello));
    let mut damaged = packet(1, vec![]);
    damaged[2] ^= 0xff;
    damaged[6] ^= 0xff;
    observer.input(Duration::ZERO, Side::Client, Input::Datagram(&damaged));
    let heard = lines(&mut observer);
    assert_eq!(heard[0], "client Hello 2, 0..43");
    assert!(heard[1].starts_with("fault of the client"), "the key is known: {heard:?}");
}

#[test]
fn a_different_hello_starts_a_new_session() {
    let any = KnownSession { id: None, key: key() };
    let mut observer = Connection::observer(vec![any].into());
    let now = Duration::ZERO;
    let hello = |id| {
        let session = Session::new(id, key(), &[1; 16]);
        let config = ClientConfig::new(EPOCH, 2);
        let mut client = Connection::client(config, session, now);
        client.poll_transmit(Side::Server).unwrap()
    };
    let one = packet(1, vec![]);
    for id in [SESSION, SESSION, SESSION + 1] {
        observer.input(now, Side::Client, Input::Datagram(&hello(id)));
        observer.input(now, Side::Client, Input::Datagram(&one));
    }
    let heard = lines(&mut observer);
    let packets = heard.iter().filter(|line| line.contains("Packet 1")).count();
    let repeated = heard.iter().filter(|line| line.contains("Repeated")).count();
    assert_eq!((packets, repeated), (2, 1), "{heard:#?}");
}

#[test]
fn numbers_after_a_reset_are_not_repetitions() {
    let mut pair = pair().watched_by(Connection::observer(known()));
    let mut heard = Vec::new();
    for _ in 0..4 {
        pair.server.sender().reset().ok();
        pair.run_until(pair.now + SECOND, |member, event, _| {
            if member == Member::Observer {
                heard.push(line(&event));
            }
        });
    }
    // The server's first packet, its acknowledgement of the client's first one, and three resets.
    assert_eq!(heard.iter().filter(|line| line.contains("server Packet")).count(), 5, "{heard:#?}");
    assert!(heard.iter().all(|line| !line.contains("Repeated")), "{heard:#?}");
}
