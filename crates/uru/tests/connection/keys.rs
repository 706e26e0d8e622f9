//! Observers with and without the right keys.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::Connection as _;
use worldwire_uru::connection::{Connection, OTHER_KEYS as OTHER_KEYS_HINT};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;

use crate::ends::{
    Drive as _, KEYS, OTHER_KEYS, SECOND, client_of, conversation, deliver, drain, established,
    open_config, ping, plain_start, sample, sent, server_of, small_messages,
};

/// An observer with these keys that has read both streams, and its events.
fn watch(keys: &KeyRing, streams: &[Vec<u8>; 2]) -> (Connection, Vec<String>) {
    let mut observer = Connection::observer(Arc::new(keys.clone()));
    let mut events = deliver(&mut observer, Side::Client, Duration::ZERO, &streams[0]);
    events.extend(deliver(&mut observer, Side::Server, Duration::ZERO, &streams[1]));
    (observer, events)
}

#[test]
fn an_observer_without_the_right_key_reports_it_once() {
    let streams = conversation(Service::Auth, true);
    for (keys, wanted) in [
        (&KeyRing::new(), "keys needed for auth"),
        (&*OTHER_KEYS, "another shard's keys: the auth key does not decrypt this connection"),
    ] {
        let (mut observer, events) = watch(keys, &streams);
        let reported: Vec<_> = events.iter().filter(|line| line.contains(wanted)).collect();
        assert_eq!(reported.len(), 1, "{events:?}");
        assert!(std::ptr::eq(reported[0], events.last().unwrap()), "{events:?}");
        // Both streams are given up, whatever arrives later.
        let ping = ping(Service::Auth).to_bytes().unwrap();
        for side in Side::BOTH {
            assert!(deliver(&mut observer, side, Duration::ZERO, &ping).is_empty());
            observer.gap(side, Duration::ZERO, 10);
            assert!(deliver(&mut observer, side, Duration::ZERO, &ping).is_empty());
        }
        observer.end(Duration::ZERO);
        assert_eq!(drain(&mut observer), ["closed: closed by the other side"]);
    }
}

#[test]
fn a_client_suspects_its_keys_until_it_has_read_a_message() {
    for encrypted in [true, false] {
        let mut client = client_of(Service::Auth, encrypted, Duration::ZERO);
        let mut server = server_of(open_config(), Duration::ZERO);
        assert_eq!(client.closing_hint(), None);
        deliver(&mut server, Side::Client, Duration::ZERO, &sent(&mut client));
        deliver(&mut client, Side::Server, Duration::ZERO, &sent(&mut server));
        assert!(client.is_established());
        assert_eq!(client.closing_hint(), encrypted.then_some(OTHER_KEYS_HINT));
        assert_eq!(server.closing_hint(), None);
        server.send(&sample(Service::Auth, Side::Server, 3, 1)).unwrap();
        deliver(&mut client, Side::Server, Duration::ZERO, &sent(&mut server));
        assert_eq!(client.closing_hint(), None);
    }
}

#[test]
fn an_observer_needs_the_whole_key_exchange() {
    let streams = conversation(Service::Auth, true);
    for (side, before) in [(Side::Client, 60), (Side::Server, 0)] {
        let mut observer = Connection::observer(Arc::new(KEYS.clone()));
        let mut events = Vec::new();
        if side == Side::Server {
            events.extend(deliver(&mut observer, Side::Client, Duration::ZERO, &streams[0]));
        }
        let stream = &streams[side.index()];
        events.extend(deliver(&mut observer, side, Duration::ZERO, &stream[..before]));
        observer.gap(side, Duration::ZERO, 5);
        events.extend(drain(&mut observer));
        events.extend(deliver(&mut observer, side, Duration::ZERO, &stream[before + 5..]));
        let rest = &streams[side.other().index()];
        events.extend(deliver(&mut observer, side.other(), Duration::ZERO, rest));
        observer.end(Duration::ZERO);
        events.extend(drain(&mut observer));
        let gap = format!("{side} gap {before}..{}", before + 5);
        let fault = format!(
            "{side} fault at byte {before}: wanted a complete connection setup, found a gap of 5 \
             bytes"
        );
        let tail = [gap, fault, "closed: closed by the other side".to_owned()];
        assert_eq!(events[events.len() - 3..], tail, "{events:?}");
    }
}

#[test]
fn a_torn_end_is_reported_for_both_streams() {
    let mut streams = conversation(Service::Auth, true);
    let lengths = [streams[0].len(), streams[1].len()];
    streams[0].pop();
    streams[1].pop();
    let (mut observer, events) = watch(&KEYS, &streams);
    assert!(!events.iter().any(|line| line.contains("fault")), "{events:?}");
    let next = |side: Side| {
        let last = events.iter().rfind(|line| line.starts_with(side.name())).unwrap();
        let range = last.split(' ').find(|word| word.contains("..")).unwrap();
        range.split_once("..").unwrap().1.parse::<usize>().unwrap()
    };
    observer.end(Duration::ZERO);
    let wanted: Vec<String> = Side::BOTH
        .into_iter()
        .map(|side| {
            let (at, end) = (next(side), lengths[side.index()] - 1);
            let found = format!("{} bytes of one", end - at);
            format!("{side} fault at byte {at}: wanted a whole message, found {found}")
        })
        .chain(["closed: closed by the other side".to_owned()])
        .collect();
    assert_eq!(drain(&mut observer), wanted);
}

#[test]
fn an_observer_follows_every_kind_of_setup() {
    // Plain connections need no keys.
    let plain = conversation(Service::Auth, false);
    let (_, events) = watch(&KeyRing::new(), &plain);
    assert!(events.contains(&"established auth encrypted=false".to_owned()), "{events:?}");
    assert!(events.iter().filter(|line| line.contains(" auth.")).count() > 10);
    // An error instead of a seed ends setup for observers too.
    let streams = [plain_start(Service::Auth), vec![2, 6, 20, 0, 0, 0]];
    let (_, events) = watch(&KEYS, &streams);
    let fault = "server fault at byte 0: wanted a seed, found the error AuthenticationFailed (20)";
    assert_eq!(events.last().unwrap(), fault);
    // If the capture lists the server's side first, its bytes wait for the client's.
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let secret = conversation(Service::Auth, true);
    assert!(deliver(&mut observer, Side::Server, Duration::ZERO, &secret[1]).is_empty());
    let late = deliver(&mut observer, Side::Client, Duration::ZERO, &secret[0]);
    let (_, early) = watch(&KEYS, &secret);
    let of = |lines: &[String], side: Side| -> Vec<String> {
        lines.iter().filter(|line| line.starts_with(side.name())).cloned().collect()
    };
    for side in Side::BOTH {
        assert_eq!(of(&late, side), of(&early, side));
    }
}

#[test]
fn a_gap_keeps_the_keystream_in_step() {
    for encrypted in [true, false] {
        let mut client = client_of(Service::Auth, encrypted, Duration::ZERO);
        let mut server = server_of(open_config(), Duration::ZERO);
        let first = sent(&mut client);
        deliver(&mut server, Side::Client, Duration::ZERO, &first);
        let seed = sent(&mut server);
        deliver(&mut client, Side::Server, Duration::ZERO, &seed);
        let segments: Vec<Vec<u8>> = small_messages(Service::Auth, Side::Client)
            .iter()
            .map(|message| {
                client.send(message).unwrap();
                sent(&mut client)
            })
            .collect();
        let setup = first.len();
        let ends: Vec<usize> = segments
            .iter()
            .scan(setup, |end, segment| {
                *end += segment.len();
                Some(*end)
            })
            .collect();
        // Every run of lost segments that starts at the second segment or later.
        for lost in 1..segments.len() - 1 {
            let (mut observer, _) = watch(&KEYS, &[first.clone(), seed.clone()]);
            deliver(&mut observer, Side::Client, Duration::ZERO, &segments[0]);
            let missing: usize = segments[1..=lost].iter().map(Vec::len).sum();
            observer.gap(Side::Client, Duration::ZERO, missing as u64);
            let mut events = drain(&mut observer);
            for segment in &segments[lost + 1..] {
                events.extend(deliver(&mut observer, Side::Client, Duration::ZERO, segment));
            }
            let (from, to) = (ends[0], ends[lost]);
            assert_eq!(events[0], format!("client gap {from}..{to}"));
            let resync = events.iter().position(|line| line.starts_with("client resync"));
            let line = &events[resync.expect("reading continues")];
            assert!(line.starts_with(&format!("client resync {from}..")), "{line}");
            let begins = format!("{}..", ends.last().unwrap() - segments.last().unwrap().len());
            assert!(events.last().unwrap().contains(&begins), "{events:?}");
        }
    }
    // On a file connection, the length of every message is evidence too.
    let ping = ping(Service::File).to_bytes().unwrap();
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let begin = [plain_start(Service::File), ping.clone()].concat();
    deliver(&mut observer, Side::Client, Duration::ZERO, &begin);
    observer.gap(Side::Client, Duration::ZERO, 1 << 40);
    let at = begin.len() as u64;
    let end = at + (1 << 40);
    let mut events = drain(&mut observer);
    events.extend(deliver(&mut observer, Side::Client, Duration::ZERO, &ping));
    let length = ping.len() as u64;
    assert_eq!(
        events,
        [
            format!("client gap {at}..{end}"),
            format!("client resync {at}..{end}"),
            format!("client file.PingRequest {end}..{}", end + length),
        ]
    );
}

/// Keystream is skipped for bytes that a capture may have lost, not for just any gap that a segment
/// claims.
#[test]
fn a_forged_gap_costs_no_keystream() {
    let secret = conversation(Service::Auth, true);
    let came = secret[0].len() as u64;
    let (mut observer, _) = watch(&KEYS, &secret);
    let at = came;
    // The budget grows with the received bytes.
    observer.gap(Side::Client, Duration::ZERO, 16 * came);
    assert_eq!(drain(&mut observer), [format!("client gap {at}..{}", 17 * came)]);
    let (at, most) = (17 * came, 1 << 20);
    observer.gap(Side::Client, Duration::ZERO, (1 << 30) - 2);
    let wanted = format!(
        "client fault at byte {at}: wanted at most {most} (keystream for missing bytes), found {}",
        (1_u64 << 30) - 2
    );
    assert_eq!(drain(&mut observer), [format!("client gap {at}..{}", at + (1 << 30) - 2), wanted]);
    // The stream has been given up: nothing more is reported about it, and gaps of any size are
    // counted.
    observer.gap(Side::Client, Duration::ZERO, u64::MAX);
    observer.gap(Side::Client, Duration::ZERO, u64::MAX);
    deliver(&mut observer, Side::Client, Duration::ZERO, &[1, 2, 3]);
    // This also happens on a plain connection, where any gap may be skipped.
    let plain = conversation(Service::Auth, false);
    let (mut observer, _) = watch(&KEYS, &plain);
    for _ in 0..2 {
        observer.gap(Side::Client, Duration::ZERO, u64::MAX);
        deliver(&mut observer, Side::Client, Duration::ZERO, &plain[0]);
    }
}

#[test]
fn a_gap_that_takes_long_to_skip_ends_a_stream() {
    let streams = conversation(Service::Auth, true);
    let (mut observer, _) = watch(&KEYS, &streams);
    let (at, length) = (streams[0].len(), (1 << 26) + 1);
    observer.gap(Side::Client, Duration::ZERO, length);
    let fault = drain(&mut observer).remove(1);
    let wanted = format!("client fault at byte {at}: wanted at most ");
    assert!(
        fault.starts_with(&wanted) && fault.contains("(keystream for missing bytes)"),
        "{fault}"
    );
    let ping = ping(Service::Auth).to_bytes().unwrap();
    assert!(deliver(&mut observer, Side::Client, Duration::ZERO, &ping).is_empty());
    // Offsets in plain streams have a limit too, and exceeding it causes no overflow.
    let (mut observer, _) = watch(&KEYS, &conversation(Service::File, false));
    for _ in 0..3 {
        observer.gap(Side::Client, Duration::ZERO, u64::MAX);
        deliver(&mut observer, Side::Client, Duration::ZERO, &ping);
    }
    observer.end(Duration::ZERO);
    assert_eq!(drain(&mut observer), ["closed: closed by the other side"]);
}

#[test]
fn only_an_observer_survives_a_gap() {
    let mut server = established(open_config(), Service::Auth, SECOND);
    let ping = ping(Service::Auth).to_bytes().unwrap();
    assert_eq!(deliver(&mut server, Side::Client, SECOND, &ping).len(), 1);
    server.gap(Side::Client, SECOND, 7);
    let at = 53 + ping.len();
    assert_eq!(
        drain(&mut server),
        [
            format!("client gap {at}..{}", at + 7),
            format!(
                "client fault at byte {at}: wanted a stream without gaps, found a gap of 7 bytes"
            ),
            "closed: closed because of a fault".to_owned(),
        ]
    );
}
