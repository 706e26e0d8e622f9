//! Observers of connections with gaps, unknown messages and missing keys.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_uru::connection::Connection;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;

use crate::ends::{Drive as _, KEYS, OTHER_KEYS, plain_start};
use crate::pair::{Cut, EventRecord, Talk, drain, every_message};

/// A conversation of a few messages: both streams, and the client's segments.
fn conversation(service: Service, encrypted: bool) -> ([Vec<u8>; 2], Vec<Vec<u8>>) {
    let mut pair = Talk::new(service, encrypted, &Cut::Whole);
    let setup = pair.pair.written[0].len();
    let mut segments = vec![pair.pair.written[0].clone()];
    let mut from = setup;
    for message in every_message(service, 3) {
        let client = message.sender() == Side::Client;
        pair.send(&message);
        if client {
            segments.push(pair.pair.written[0][from..].to_vec());
            from = pair.pair.written[0].len();
        }
    }
    (pair.pair.written, segments)
}

#[test]
fn an_observer_resumes_after_a_gap() {
    for (service, encrypted) in
        [(Service::Auth, true), (Service::Auth, false), (Service::File, false)]
    {
        let (streams, segments) = conversation(service, encrypted);
        let mut observer = Connection::observer(Arc::new(KEYS.clone()));
        let mut events = Vec::new();
        observer.receive(Side::Client, Duration::ZERO, &segments[0]);
        drain(&mut observer, &mut events);
        observer.receive(Side::Server, Duration::ZERO, &streams[1]);
        drain(&mut observer, &mut events);
        observer.receive(Side::Client, Duration::ZERO, &segments[1]);
        drain(&mut observer, &mut events);
        // The second message and half of the third are lost.
        let lost = segments[2].len() + segments[3].len() / 2;
        observer.gap(Side::Client, Duration::ZERO, lost as u64);
        drain(&mut observer, &mut events);
        events.clear();
        let rest = &segments[3][segments[3].len() / 2..];
        observer.receive(Side::Client, Duration::ZERO, rest);
        drain(&mut observer, &mut events);
        for segment in &segments[4..] {
            observer.receive(Side::Client, Duration::ZERO, segment);
            drain(&mut observer, &mut events);
        }
        let at = (segments[0].len() + segments[1].len()) as u64;
        let to = at + (segments[2].len() + segments[3].len()) as u64;
        assert!(
            events.contains(&EventRecord::Resync(Side::Client, at, to)),
            "{service:?} {events:?}"
        );
        let messages =
            events.iter().filter(|events| matches!(events, EventRecord::Unit(..))).count();
        assert_eq!(messages, segments.len() - 4, "{service:?}");
        observer.end(Duration::ZERO);
        drain(&mut observer, &mut events);
        assert!(
            !events.iter().any(|events| matches!(events, EventRecord::Fault(..))),
            "{events:?}"
        );
    }
}

#[test]
fn an_observer_reports_missing_parts() {
    let (streams, segments) = conversation(Service::Auth, true);
    let watch = |keys: &KeyRing, first: Option<u64>, take: usize| {
        let mut observer = Connection::observer(Arc::new(keys.clone()));
        let mut events = Vec::new();
        if let Some(length) = first {
            observer.gap(Side::Client, Duration::ZERO, length);
        }
        observer.receive(Side::Client, Duration::ZERO, &segments[0]);
        observer.receive(Side::Server, Duration::ZERO, &streams[1]);
        drain(&mut observer, &mut events);
        let client = &streams[0][segments[0].len()..];
        observer.receive(Side::Client, Duration::ZERO, &client[..take.min(client.len())]);
        drain(&mut observer, &mut events);
        observer.end(Duration::ZERO);
        drain(&mut observer, &mut events);
        events
    };
    let faults = |events: &[EventRecord]| -> Vec<String> {
        let texts = events.iter().filter_map(|events| match events {
            EventRecord::Fault(_, text) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    };
    let events = watch(&KeyRing::new(), None, usize::MAX);
    let asked = events.iter().filter(|events| matches!(events, EventRecord::KeysNeeded(_))).count();
    assert_eq!((asked, faults(&events).len()), (1, 0), "{events:?}");

    let events = watch(&OTHER_KEYS, None, usize::MAX);
    let reported = faults(&events);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("another shard's keys: the auth key"), "{reported:?}");

    let reported = faults(&watch(&KEYS, Some(3), usize::MAX));
    assert!(reported[0].contains("wanted a message after the missing bytes"), "{reported:?}");

    let reported = faults(&watch(&KEYS, None, segments[1].len() - 1));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("wanted a whole message"), "{reported:?}");
}

#[test]
fn an_unknown_message_of_a_file_connection_is_skipped() {
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let mut events = Vec::new();
    let ping = [12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let unknown = [14, 0, 0, 0, 99, 0, 0, 0, 1, 2, 3, 4, 5, 6];
    let bytes = [plain_start(Service::File), ping.into(), unknown.into(), ping.into()].concat();
    for piece in Cut::Bytes.pieces(&bytes) {
        observer.receive(Side::Client, Duration::ZERO, piece);
        drain(&mut observer, &mut events);
    }
    let units = events.iter().filter(|events| matches!(events, EventRecord::Unit(..))).count();
    let faults = events.iter().filter(|events| matches!(events, EventRecord::Fault(..))).count();
    assert_eq!((units, faults), (3, 1), "{events:?}");
}

#[test]
fn unreadable_bytes_are_counted_across_several_gaps() {
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let mut events = Vec::new();
    observer.receive(Side::Client, Duration::ZERO, &plain_start(Service::File));
    for junk in [&[0xff; 5][..], &[0xfe; 7]] {
        observer.gap(Side::Client, Duration::ZERO, 10);
        observer.receive(Side::Client, Duration::ZERO, junk);
        drain(&mut observer, &mut events);
    }
    observer.end(Duration::ZERO);
    drain(&mut observer, &mut events);
    let wanted = "found no message in the 12 bytes that follow";
    let reported = |events: &EventRecord| matches!(events, EventRecord::Fault(_, text) if text.contains(wanted));
    assert!(events.iter().any(reported), "{events:?}");
}
