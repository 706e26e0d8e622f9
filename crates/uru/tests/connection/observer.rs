//! What an observer hears, and says that it lacks.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_uru::connection::Connection;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;

use crate::ends::{Drive as _, KEYS, OTHER_KEYS, plain_start};
use crate::pair::{Cut, Heard, Talk, drain, every_message};

/// An auth conversation of a few messages; the streams, and where the client's segments begin.
fn conversation(service: Service, encrypted: bool) -> ([Vec<u8>; 2], Vec<Vec<u8>>) {
    let mut pair = Talk::new(service, encrypted, &Cut::Whole);
    let setup = pair.pair.written[0].len();
    let mut segments = vec![pair.pair.written[0].clone()];
    let mut from = setup;
    for message in every_message(service, 3) {
        let client = message.sender() == Side::Client;
        pair.say(&message);
        if client {
            segments.push(pair.pair.written[0][from..].to_vec());
            from = pair.pair.written[0].len();
        }
    }
    (pair.pair.written, segments)
}

#[test]
fn an_observer_reads_on_behind_a_gap() {
    for (service, encrypted) in
        [(Service::Auth, true), (Service::Auth, false), (Service::File, false)]
    {
        let (streams, segments) = conversation(service, encrypted);
        let mut observer = Connection::observer(Arc::new(KEYS.clone()));
        let mut heard = Vec::new();
        observer.receive(Side::Client, Duration::ZERO, &segments[0]);
        drain(&mut observer, &mut heard);
        observer.receive(Side::Server, Duration::ZERO, &streams[1]);
        drain(&mut observer, &mut heard);
        observer.receive(Side::Client, Duration::ZERO, &segments[1]);
        drain(&mut observer, &mut heard);
        // The second message is lost, and half of the third one.
        let lost = segments[2].len() + segments[3].len() / 2;
        observer.gap(Side::Client, Duration::ZERO, lost as u64);
        drain(&mut observer, &mut heard);
        heard.clear();
        let rest = &segments[3][segments[3].len() / 2..];
        observer.receive(Side::Client, Duration::ZERO, rest);
        drain(&mut observer, &mut heard);
        for segment in &segments[4..] {
            observer.receive(Side::Client, Duration::ZERO, segment);
            drain(&mut observer, &mut heard);
        }
        let at = (segments[0].len() + segments[1].len()) as u64;
        let to = at + (segments[2].len() + segments[3].len()) as u64;
        assert!(heard.contains(&Heard::Resync(Side::Client, at, to)), "{service:?} {heard:?}");
        let messages = heard.iter().filter(|heard| matches!(heard, Heard::Unit(..))).count();
        assert_eq!(messages, segments.len() - 4, "{service:?}");
        observer.end(Duration::ZERO);
        drain(&mut observer, &mut heard);
        assert!(!heard.iter().any(|heard| matches!(heard, Heard::Fault(..))), "{heard:?}");
    }
}

#[test]
fn an_observer_says_what_it_lacks() {
    let (streams, segments) = conversation(Service::Auth, true);
    let watch = |keys: &KeyRing, first: Option<u64>, take: usize| {
        let mut observer = Connection::observer(Arc::new(keys.clone()));
        let mut heard = Vec::new();
        if let Some(length) = first {
            observer.gap(Side::Client, Duration::ZERO, length);
        }
        observer.receive(Side::Client, Duration::ZERO, &segments[0]);
        observer.receive(Side::Server, Duration::ZERO, &streams[1]);
        drain(&mut observer, &mut heard);
        let client = &streams[0][segments[0].len()..];
        observer.receive(Side::Client, Duration::ZERO, &client[..take.min(client.len())]);
        drain(&mut observer, &mut heard);
        observer.end(Duration::ZERO);
        drain(&mut observer, &mut heard);
        heard
    };
    let faults = |heard: &[Heard]| -> Vec<String> {
        let texts = heard.iter().filter_map(|heard| match heard {
            Heard::Fault(_, text) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    };
    let heard = watch(&KeyRing::new(), None, usize::MAX);
    let asked = heard.iter().filter(|heard| matches!(heard, Heard::KeysNeeded(_))).count();
    assert_eq!((asked, faults(&heard).len()), (1, 0), "{heard:?}");

    let heard = watch(&OTHER_KEYS, None, usize::MAX);
    let told = faults(&heard);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("wanted the auth key of this connection"), "{told:?}");

    let told = faults(&watch(&KEYS, Some(3), usize::MAX));
    assert!(told[0].contains("wanted a message after the missing bytes"), "{told:?}");

    let told = faults(&watch(&KEYS, None, segments[1].len() - 1));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("wanted a whole message"), "{told:?}");
}

#[test]
fn an_unknown_message_of_a_file_connection_is_passed_over() {
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let mut heard = Vec::new();
    let ping = [12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let unknown = [14, 0, 0, 0, 99, 0, 0, 0, 1, 2, 3, 4, 5, 6];
    let bytes = [plain_start(Service::File), ping.into(), unknown.into(), ping.into()].concat();
    for piece in Cut::Bytes.pieces(&bytes) {
        observer.receive(Side::Client, Duration::ZERO, piece);
        drain(&mut observer, &mut heard);
    }
    let units = heard.iter().filter(|heard| matches!(heard, Heard::Unit(..))).count();
    let faults = heard.iter().filter(|heard| matches!(heard, Heard::Fault(..))).count();
    assert_eq!((units, faults), (3, 1), "{heard:?}");
}

#[test]
fn what_was_looked_through_in_vain_is_counted_over_several_gaps() {
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let mut heard = Vec::new();
    observer.receive(Side::Client, Duration::ZERO, &plain_start(Service::File));
    for junk in [&[0xff; 5][..], &[0xfe; 7]] {
        observer.gap(Side::Client, Duration::ZERO, 10);
        observer.receive(Side::Client, Duration::ZERO, junk);
        drain(&mut observer, &mut heard);
    }
    observer.end(Duration::ZERO);
    drain(&mut observer, &mut heard);
    let wanted = "found none in the 12 bytes that follow";
    let told = |heard: &Heard| matches!(heard, Heard::Fault(_, text) if text.contains(wanted));
    assert!(heard.iter().any(told), "{heard:?}");
}
