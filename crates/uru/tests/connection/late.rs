//! Connections whose connect packet was not captured.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::Connection;
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::frame::Service;

use crate::ends::{Drive as _, KEYS, OTHER_KEYS, conversation, deliver, drain};

const NOW: Duration = Duration::ZERO;

fn connect_bytes(service: Service) -> usize {
    use worldwire_core::{Field as _, Writer};
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    writer.into_bytes().len()
}

/// The events of an observer if these bytes of the client's stream are missing.
fn watch(
    mut observer: Connection,
    streams: &[Vec<u8>; 2],
    missing: std::ops::Range<usize>,
) -> Vec<String> {
    let mut events = deliver(&mut observer, Side::Client, NOW, &streams[0][..missing.start]);
    if !missing.is_empty() {
        observer.gap(Side::Client, NOW, missing.len() as u64);
    }
    // Deliver setup first, then the rest, since messages usually begin with a segment.
    let setup = connect_bytes(Service::Auth).max(missing.end) + 66;
    let first = setup.min(streams[0].len());
    events.extend(deliver(&mut observer, Side::Client, NOW, &streams[0][missing.end..first]));
    events.extend(deliver(&mut observer, Side::Server, NOW, &streams[1]));
    events.extend(deliver(&mut observer, Side::Client, NOW, &streams[0][first..]));
    observer.end(NOW);
    events.extend(drain(&mut observer));
    events
}

fn messages(events: &[String], service: Service) -> Vec<&str> {
    let name = format!(" {}.", service.name());
    let mut lines: Vec<_> =
        events.iter().map(String::as_str).filter(|line| line.contains(&name)).collect();
    // Sort by side, because the order in which the sides are read varies.
    lines.sort_by_key(|line| line.starts_with("server"));
    lines
}

#[test]
fn later_bytes_identify_the_service_without_a_connect_packet() {
    for (service, encrypted) in [
        (Service::Gatekeeper, true),
        (Service::Auth, true),
        (Service::Game, true),
        (Service::Auth, false),
        (Service::File, false),
    ] {
        let streams = conversation(service, encrypted);
        let observer = || Connection::observer(Arc::new(KEYS.clone()));
        let whole = watch(observer(), &streams, 0..0);
        let length = connect_bytes(service);
        for missing in [0..length, 0..length - 9, 20..25, 1..length] {
            let events = watch(observer(), &streams, missing.clone());
            let what = format!("{service:?} {encrypted} {missing:?}: {events:?}");
            assert_eq!(messages(&events, service), messages(&whole, service), "{what}");
            assert!(!events.iter().any(|line| line.contains("fault")), "{what}");
            let gap = format!("client gap {}..{}", missing.start, missing.end);
            assert!(events.contains(&gap), "{what}");
        }
    }
}

#[test]
fn a_capture_may_begin_after_the_connect_packet() {
    for (service, encrypted) in
        [(Service::Auth, true), (Service::Game, true), (Service::File, false)]
    {
        let mut streams = conversation(service, encrypted);
        let observer = || Connection::observer_from_the_middle(Arc::new(KEYS.clone()));
        let count = |events: &[String]| messages(events, service).len();
        let whole = count(&watch(observer(), &streams, 0..0));
        assert!(whole > 5, "{service:?}");
        streams[0].drain(..connect_bytes(service));
        let events = watch(observer(), &streams, 0..0);
        assert_eq!(count(&events), whole, "{service:?} {events:?}");
    }
}

#[test]
fn a_late_connection_without_the_right_key_is_reported() {
    let streams = conversation(Service::Game, true);
    let missing = 0..connect_bytes(Service::Game);
    for (keys, wanted) in [
        (KeyRing::new(), "keys needed for something"),
        (OTHER_KEYS.clone(), "another shard's keys: none of them decrypts this connection"),
    ] {
        let events = watch(Connection::observer(Arc::new(keys)), &streams, missing.clone());
        let reported = events.iter().filter(|line| line.contains(wanted)).count();
        assert_eq!(reported, 1, "{events:?}");
        assert!(messages(&events, Service::Game).is_empty());
    }
    // A capture that contains only one side and ends right after it.
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    observer.gap(Side::Client, NOW, missing.len() as u64);
    let mut events = deliver(&mut observer, Side::Server, NOW, &streams[1]);
    observer.end(NOW);
    events.extend(drain(&mut observer));
    assert!(events.iter().any(|line| line.contains("fault")), "{events:?}");
}

/// Reading with the server's secret yields a key that opens only this connection.
#[test]
fn the_key_of_a_session_opens_it_without_the_servers() {
    for service in [Service::Gatekeeper, Service::Auth, Service::Game] {
        let streams = conversation(service, true);
        let mut observer = Connection::observer(Arc::new(KEYS.clone()));
        assert!(observer.opened_with().is_none());
        deliver(&mut observer, Side::Client, NOW, &streams[0]);
        deliver(&mut observer, Side::Server, NOW, &streams[1]);
        let ring = observer.opened_with().expect("it is encrypted");
        let mut ring = KeyRing::parse(&ring.format(KeyFileFormat::Toml)).unwrap();
        let whole = watch(Connection::observer(Arc::new(KEYS.clone())), &streams, 0..0);
        let opened = watch(Connection::observer(Arc::new(ring.clone())), &streams, 0..0);
        assert_eq!(opened, whole);
        // The ring also identifies the service, even without the client's packets.
        let missing = 0..connect_bytes(service);
        let late = watch(Connection::observer(Arc::new(ring.clone())), &streams, missing);
        assert_eq!(messages(&late, service), messages(&whole, service));
        // The ring opens no other connection, and contains none of the server's secrets.
        assert!(ring.private(worldwire_uru::crypt::key::ServerKind::Auth).is_none());
        ring.insert_session(service, [0; 7], SessionKey::new([1; 7]));
        assert!(ring.format(KeyFileFormat::TomlPublic).is_empty());
    }
    let wrong = "[[uru.session]]\nservice = \"auht\"\nseed = \"00\"\nkee = \"\"\n\
                 [[uru.session]]\nservice = \"auth\"\n";
    let errors = KeyRing::parse(wrong).unwrap_err().to_string();
    assert_eq!(
        errors,
        "line 2, column 11: uru.session.service: wanted \"gatekeeper\", \"auth\" or \"game\"\n\
         line 3, column 8: uru.session.seed: wanted 14 hexadecimal digits in quotes\n\
         line 4, column 1: uru.session.kee: unknown key; use one of service, seed, key\n\
         line 5, column 1: uru.session: wanted service, seed and key"
    );
}
