//! Refused input and limits.

use std::time::Duration;

use worldwire_core::connection::{CloseReason, Connection as _, Event, SendError, Timer};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Field, Sampler, Side, Writer};
use worldwire_uru::connect::{BUILD_ID, ConnectPacket, SetupPacket};
use worldwire_uru::connection::{
    BuildPolicy, ClientConfig, Connection, Encryption, ServerConfig, Unit,
};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{auth, game};

use crate::ends::{Drive as _, KEYS, open_config, plain_start, start};
use crate::pair::{Cut, EventRecord, Talk, drain, server_fault};

#[test]
fn unsafe_numbers_are_refused() {
    let key = KEYS.private(ServerKind::Auth).unwrap();
    let mut n = key.n().to_be_bytes();
    n.reverse();
    let mut minus_one = n;
    minus_one[0] -= 1;
    let long = [1_u8; 64];
    let cases: [(&[u8], &str); 5] = [
        (&[0], "y is 0"),
        (&[1], "y is 1"),
        (&minus_one, "y is n-1"),
        (&n, "y is not below n"),
        (&[0xff; 64], "y is not below n"),
    ];
    for (y, wanted) in cases {
        let bytes = start(Service::Auth, &SetupPacket::Connect(y.to_vec().into()));
        let fault = server_fault(open_config(), &bytes).expect("refused");
        assert!(fault.contains(wanted), "{fault}");
    }
    let mut bytes = start(Service::Auth, &SetupPacket::Connect(long.to_vec().into()));
    assert_eq!(server_fault(open_config(), &bytes), None);
    // This is one byte more than a number can have.
    let at = bytes.len() - 65;
    bytes[at] = 67;
    bytes.push(1);
    let fault = server_fault(open_config(), &bytes).expect("refused");
    assert!(fault.contains("byteCount at byte 52: wanted 2 to 66, found 67"), "{fault}");
}

#[test]
fn a_short_number_is_accepted() {
    let public = KEYS.public(ServerKind::Auth).unwrap();
    let mut b = [3; 64];
    let short =
        (0..=u8::MAX).flat_map(|high| (0..=u8::MAX).map(move |low| [low, high])).find(|n| {
            b[..2].copy_from_slice(n);
            public.client_begin(&b).unwrap().0.as_bytes().len() < 64
        });
    b[..2].copy_from_slice(&short.expect("one in 256 is short"));
    let mut client = ClientConfig::new(Service::Auth, Some(public.clone()));
    client.ping_every = None;
    let mut client = Connection::client(client.into(), b, Duration::ZERO).unwrap();
    let mut server = Connection::server(open_config().into(), [5; 7], Duration::ZERO);
    while let Some(bytes) = client.transmit() {
        server.receive(Side::Client, Duration::ZERO, &bytes);
        drain(&mut server, &mut Vec::new());
    }
    while let Some(bytes) = server.transmit() {
        client.receive(Side::Server, Duration::ZERO, &bytes);
        drain(&mut client, &mut Vec::new());
    }
    assert!(client.is_established() && server.is_established());
}

#[test]
fn faults_name_the_violated_rule() {
    let connect = ConnectPacket::new(Service::Auth);
    let mut bytes = Writer::new();
    connect.encode(&mut bytes).unwrap();
    let good = bytes.into_bytes();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let mut strict = open_config();
    strict.builds = BuildPolicy::Exact(BUILD_ID + 1);
    let auth = |tail: &[u8]| [plain_start(Service::Auth), tail.to_vec()].concat();
    let mut long_name = vec![3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 64, 0];
    long_name.extend([b'a', 0].repeat(64));
    let cases: [(ServerConfig, Vec<u8>, &str); 10] = [
        (open_config(), with(0, 99), "connType at byte 0: wanted a connection type"),
        (open_config(), with(1, 32), "headerBytes at byte 1: wanted 31, found 32"),
        (open_config(), with(31, 21), "dataBytes at byte 31: wanted 20, found 21"),
        (strict, good.clone(), "wanted a build that this server admits, found 918"),
        (
            ServerConfig::new(KEYS.clone()),
            plain_start(Service::Auth),
            "wanted an encrypted connection, found a request for a plain one",
        ),
        (open_config(), auth(&[0xff, 0xff]), "wanted the number of a client message"),
        (open_config(), auth(&[4, 0]), "auth.AcctSetEulaVersion"),
        (
            open_config(),
            auth(&long_name),
            "auth.AcctLoginRequest: fields.accountName at byte 63: wanted at most 63 (UTF-16 \
             units of this string), found 64",
        ),
        (
            open_config(),
            auth(&[25, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
            "auth.VaultNodeCreate: fields.node at byte 59: \
             wanted at most 1048576 (units of this field), found 4294967295",
        ),
        (
            open_config(),
            [plain_start(Service::File), vec![12, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 7]].concat(),
            "",
        ),
    ];
    for (config, bytes, wanted) in cases {
        let fault = server_fault(config, &bytes);
        if wanted.is_empty() {
            assert_eq!(fault, None);
        } else {
            let fault = fault.unwrap_or_default();
            assert!(fault.contains(wanted), "wanted {wanted}\n found {fault}");
        }
    }
    let csr = [&[20, 31, 0][..], &good[3..31], &[4, 0, 0, 0]].concat();
    let fault = server_fault(open_config(), &csr).unwrap_or_default();
    assert!(fault.contains("wanted a connection type that this server accepts"), "{fault}");
}

#[test]
fn a_client_with_a_key_requires_a_seed() {
    let key = KEYS.public(ServerKind::Auth).cloned();
    for (answer, wanted) in [
        (&[1, 2][..], "wanted a seed of 7 bytes, found no seed"),
        (&[1, 8, 0, 0, 0, 0, 0, 0], "byteCount at byte 1: wanted 2 or 9, found 8"),
        (&[2, 6, 20, 0, 0, 0], "wanted a seed, found the error AuthenticationFailed (20)"),
        (&[0, 2], "wanted this side's setup packet"),
    ] {
        let config = ClientConfig::new(Service::Auth, key.clone());
        let mut client = Connection::client(config.into(), [7; 64], Duration::ZERO).unwrap();
        client.receive(Side::Server, Duration::ZERO, answer);
        let mut events = Vec::new();
        drain(&mut client, &mut events);
        let named = events.iter().any(|events| match events {
            EventRecord::Fault(Side::Server, text) => text.contains(wanted),
            _ => false,
        });
        assert!(named, "{wanted}: {events:?}");
    }
}

#[test]
fn openuru_is_unencrypted_after_the_exchange() {
    let mut config = open_config();
    config.encryption = Encryption::OpenUruPlain;
    let mut server = Connection::server(config.into(), [5; 7], Duration::ZERO);
    let y = SetupPacket::Connect(vec![5; 64].into());
    let mut bytes = start(Service::Auth, &y);
    bytes.extend([1, 0, 0x96, 3, 0, 0]);
    server.receive(Side::Client, Duration::ZERO, &bytes);
    let mut events = Vec::new();
    drain(&mut server, &mut events);
    assert_eq!(server.transmit().unwrap(), [1, 9, 5, 5, 5, 5, 5, 5, 5]);
    assert!(events.contains(&EventRecord::Established(Service::Auth, false)), "{events:?}");
    assert!(
        matches!(events.last(), Some(EventRecord::Unit(_, Unit::Message(_), ..))),
        "{events:?}"
    );
}

#[test]
fn deadlines_close_connections() {
    let second = Duration::from_secs(1);
    let start = |bytes: &[u8]| {
        let mut server = Connection::server(open_config().into(), [5; 7], second);
        server.receive(Side::Client, second, bytes);
        drain(&mut server, &mut Vec::new());
        server
    };
    let ends = |mut server: Connection, after: u64, timer: Timer| {
        let deadline = server.poll_timeout().unwrap();
        assert_eq!(deadline, second * (u32::try_from(after).unwrap() + 1));
        server.timeout(deadline - Duration::from_millis(1));
        assert!(!server.is_closed());
        server.timeout(deadline);
        let mut events = Vec::new();
        drain(&mut server, &mut events);
        assert_eq!(events, [EventRecord::Closed(CloseReason::Timeout(timer))]);
        assert_eq!(server.poll_timeout(), None);
    };
    ends(start(&[]), 10, Timer::Setup);
    ends(start(&plain_start(Service::Auth)[..50]), 10, Timer::Setup);
    ends(start(&plain_start(Service::Auth)), 45, Timer::Idle);
    ends(start(&plain_start(Service::File)), 45, Timer::Idle);
    ends(start(&plain_start(Service::Game)), 120, Timer::Idle);
    // A message that has begun must end in time, even if its bytes keep arriving.
    let begun = [plain_start(Service::Auth), vec![1, 0, 0x96]].concat();
    let mut server = start(&begun);
    server.receive(Side::Client, second * 20, &[3]);
    drain(&mut server, &mut Vec::new());
    ends(server, 30, Timer::Message);
}

#[test]
fn pings_keep_a_connection_alive_for_a_day() {
    let config = ServerConfig { answer_pings: true, ..open_config() };
    let server = Connection::server(config.into(), [5; 7], Duration::ZERO);
    let config = ClientConfig::new(Service::Auth, None);
    let client = Connection::client(config.into(), [1; 64], Duration::ZERO).unwrap();
    let mut pair = Pair::new(client, server, Conditions::default());
    let mut pongs = 0;
    // Stop just before the end of the day, when another ping would be due.
    let day = Duration::from_secs(24 * 60 * 60) - Duration::from_millis(1);
    pair.run_until(day, |member, event, _| match event {
        Event::Received(received) if member == Member::Client => {
            pongs += u32::from(received.name() == ("auth", "PingReply"));
        }
        Event::Fault { .. } | Event::Closed(_) => panic!("{member:?}: {event:?}"),
        _ => {}
    });
    let Pair { client, mut server, .. } = pair;
    assert!(!client.is_closed() && !server.is_closed());
    assert!(client.poll_timeout().is_some() && server.poll_timeout().is_some());
    assert_eq!(pongs, 24 * 60 * 2);
    // If the client is gone, the server does not wait forever.
    let deadline = server.poll_timeout().unwrap();
    server.timeout(deadline);
    assert!(server.is_closed());
}

#[test]
fn sending_is_checked_and_bounded() {
    let ping = |service| {
        let mut sampler = Sampler::new(1);
        Message::sample(service, Side::Client, 0, &mut sampler).unwrap()
    };
    let text = |error: SendError| error.to_string();
    let mut talk = Talk::new(Service::Auth, true, &Cut::Whole);
    let (client, server) = (&mut talk.pair.client, &mut talk.pair.server);
    let error = text(client.send(&ping(Service::Game)).unwrap_err());
    assert_eq!(error, "wanted a message from the client on auth, found game.PingRequest");
    assert!(server.send(&ping(Service::Auth)).is_err());
    let big = auth::server::VaultNodeFetched {
        trans_id: worldwire_uru::types::TransId(1),
        result: worldwire_uru::types::NetError::Success,
        node: worldwire_uru::types::Nested::new(vec![0; 1_048_576]),
    };
    let big = auth::server::ServerMessage::from(big).into();
    let refused = (0..20).find_map(|_| server.send(&big).err()).expect("8 MiB are full");
    assert!(text(refused).contains("queued bytes"));
    let small =
        game::client::ClientMessage::PingRequest(game::client::PingRequest { ping_time_ms: 1 });
    let config = ClientConfig::new(Service::Game, None);
    let mut early = Connection::client(config.into(), [1; 64], Duration::ZERO).unwrap();
    let small = Message::from(small);
    let refused = (0..2000).find_map(|_| early.send(&small).err()).expect("1000 are full");
    assert!(text(refused).contains("queued messages"));
    early.close();
    assert!(text(early.send(&small).unwrap_err()).contains("is closed"));
}
