//! Two machines in a box: client, server and observer in virtual time, over a wire that cuts the
//! stream wherever it likes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use worldwire_core::{Error, Field, Sampler, Side, Writer};
use worldwire_uru::connect::{BUILD_ID, ConnectPacket, SetupPacket};
use worldwire_uru::connection::{
    BuildPolicy, ClientConfig, CloseReason, Connection, Encryption, Event, ServerConfig, Timer,
    Unit,
};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service, table};
use worldwire_uru::message::{auth, game};

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(1));
static OTHER_KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(2));

fn ring(seed: u64) -> KeyRing {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut keys = KeyRing::new();
    for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
        keys.insert_private(PrivateKey::generate(kind, PrimeKind::Plain, &mut random));
    }
    keys
}

fn key_kind(service: Service) -> ServerKind {
    match service {
        Service::Gatekeeper => ServerKind::Gatekeeper,
        Service::Game => ServerKind::Game,
        _ => ServerKind::Auth,
    }
}

/// How the wire cuts what is sent.
#[derive(Clone, Debug)]
enum Cut {
    Whole,
    Bytes,
    Random(u64),
}

impl Cut {
    fn pieces<'b>(&self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut sampler = match self {
            Self::Whole => return vec![bytes],
            Self::Bytes => return bytes.chunks(1).collect(),
            Self::Random(seed) => Sampler::new(*seed),
        };
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let length = 1 + usize::try_from(sampler.below(40)).unwrap();
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

/// What an end heard, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Unit(Side, Unit, u64, Vec<u8>),
    Established(Service, bool),
    Gap(Side, u64, u64),
    Resync(Side, u64, u64),
    KeysNeeded(Service),
    Fault(Side, String),
    Closed(CloseReason),
}

fn drain(connection: &mut Connection, into: &mut Vec<Heard>) {
    while let Some(event) = connection.poll_event() {
        into.push(match event {
            Event::Received(received) => {
                let content = received.content().expect("what came out can be read");
                if let Some(message) = received.message() {
                    assert_eq!(message.to_bytes().unwrap(), received.bytes, "{content:?}");
                }
                Heard::Unit(received.side, received.unit, received.offset, received.bytes.to_vec())
            }
            Event::Established { service, encrypted } => Heard::Established(service, encrypted),
            Event::Gap { side, range } => Heard::Gap(side, range.start, range.end),
            Event::Resync { side, skipped } => Heard::Resync(side, skipped.start, skipped.end),
            Event::KeysNeeded { service } => Heard::KeysNeeded(service),
            Event::Fault { side, error } => Heard::Fault(side, error.to_string()),
            Event::Closed(reason) => Heard::Closed(reason),
            other => panic!("{other:?}"),
        });
    }
}

/// A client, a server, somebody who listens, and the streams that went over the wire.
struct Pair {
    ends: [Connection; 2],
    heard: [Vec<Heard>; 2],
    observer: Connection,
    overheard: Vec<Heard>,
    streams: [Vec<u8>; 2],
    cut: Cut,
    now: Duration,
}

impl Pair {
    fn new(service: Service, encrypted: bool, cut: Cut) -> Self {
        let mut server = ServerConfig::new(KEYS.clone());
        server.encryption = Encryption::AllowPlain;
        Self::with(service, encrypted, cut, server)
    }

    fn with(service: Service, encrypted: bool, cut: Cut, mut server: ServerConfig) -> Self {
        server.answer_pings = false;
        let key = KEYS.public(key_kind(service)).filter(|_| encrypted).cloned();
        let mut client = ClientConfig::new(service, key, [0x5a; 64]);
        client.ping_every = None;
        let now = Duration::from_secs(1000);
        let mut pair = Self {
            ends: [
                Connection::client(client, now).unwrap(),
                Connection::server(Arc::new(server), [1, 2, 3, 4, 5, 6, 7], now),
            ],
            heard: Default::default(),
            observer: Connection::observer(Arc::new(KEYS.clone())),
            overheard: Vec::new(),
            streams: Default::default(),
            cut,
            now,
        };
        pair.carry();
        pair
    }

    /// Carries everything that waits to be sent to the other end and to whoever listens.
    fn carry(&mut self) {
        loop {
            let mut quiet = true;
            for side in Side::BOTH {
                while let Some(bytes) = self.ends[side.index()].poll_transmit() {
                    quiet = false;
                    self.streams[side.index()].extend_from_slice(&bytes);
                    for piece in self.cut.pieces(&bytes) {
                        let other = side.other().index();
                        self.ends[other].receive(side, self.now, piece);
                        drain(&mut self.ends[other], &mut self.heard[other]);
                        self.observer.receive(side, self.now, piece);
                        drain(&mut self.observer, &mut self.overheard);
                    }
                }
            }
            for side in Side::BOTH {
                drain(&mut self.ends[side.index()], &mut self.heard[side.index()]);
            }
            if quiet {
                return;
            }
        }
    }

    fn say(&mut self, message: &Message<'_>) {
        self.ends[message.sender().index()].send(message).unwrap();
        self.carry();
    }
}

/// Every message of a service, by whoever sends it, made up from a seed.
fn every_message(service: Service, seed: u64) -> Vec<Message<'static>> {
    let mut sampler = Sampler::new(seed);
    let mut messages = Vec::new();
    for side in Side::BOTH {
        for info in table(service, side).messages {
            messages.push(Message::sample(service, side, info.number, &mut sampler).unwrap());
        }
    }
    messages
}

fn exchange_everything(service: Service, encrypted: bool, cut: Cut, seed: u64) {
    let mut pair = Pair::new(service, encrypted, cut);
    let established = Heard::Established(service, encrypted && service.is_encrypted());
    assert!(pair.heard.iter().all(|heard| heard.contains(&established)));
    let messages = every_message(service, seed);
    for message in &messages {
        pair.say(message);
    }
    let sent = |side| messages.iter().filter(move |message| message.sender() == side);
    for side in Side::BOTH {
        let wanted: Vec<Vec<u8>> = sent(side).map(|message| message.to_bytes().unwrap()).collect();
        let of = |heard: &[Heard]| -> Vec<Vec<u8>> {
            let bytes = heard.iter().filter_map(|heard| match heard {
                Heard::Unit(from, Unit::Message(_), _, bytes) if *from == side => {
                    Some(bytes.clone())
                }
                _ => None,
            });
            bytes.collect()
        };
        assert_eq!(of(&pair.heard[side.other().index()]), wanted);
        assert_eq!(of(&pair.overheard), wanted);
        // The observer accounts for every byte of the stream.
        let mut next = 0;
        for heard in &pair.overheard {
            if let Heard::Unit(from, _, offset, bytes) = heard
                && *from == side
            {
                assert_eq!(*offset, next);
                next += bytes.len() as u64;
            }
        }
        assert_eq!(next, pair.streams[side.index()].len() as u64);
    }
}

#[test]
fn every_message_of_every_service_goes_through() {
    for service in Service::ALL {
        for encrypted in [true, false] {
            for cut in [Cut::Whole, Cut::Bytes, Cut::Random(7)] {
                exchange_everything(service, encrypted, cut, 42);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_messages_in_any_pieces(seed: u64, cut: u64, service in 0..4_usize) {
        exchange_everything(Service::ALL[service], seed % 2 == 0, Cut::Random(cut), seed);
    }

    #[test]
    fn pieces_make_no_difference(seed: u64, cut: u64) {
        let mut pair = Pair::new(Service::Auth, true, Cut::Whole);
        for message in every_message(Service::Auth, seed) {
            pair.say(&message);
        }
        let run = |cut: Cut| {
            let mut observer = Connection::observer(Arc::new(KEYS.clone()));
            let mut heard = Vec::new();
            for side in Side::BOTH {
                for piece in cut.pieces(&pair.streams[side.index()]) {
                    observer.receive(side, Duration::ZERO, piece);
                    drain(&mut observer, &mut heard);
                }
            }
            observer.end(Duration::ZERO);
            drain(&mut observer, &mut heard);
            heard
        };
        let whole = run(Cut::Whole);
        prop_assert!(!whole.iter().any(|heard| matches!(heard, Heard::Fault(..))));
        prop_assert_eq!(&run(Cut::Bytes), &whole);
        prop_assert_eq!(&run(Cut::Random(cut)), &whole);
    }

    #[test]
    fn nothing_that_is_received_can_break_a_machine(
        seed: u64,
        role in 0..3_usize,
        setup: bool,
        noise in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut connection = match role {
            0 => {
                let client = ClientConfig::new(Service::Auth, None, [1; 64]);
                Connection::client(client, Duration::ZERO).unwrap()
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
        let mut heard = Vec::new();
        for piece in Cut::Random(seed).pieces(&noise) {
            connection.receive(side, Duration::ZERO, piece);
            drain(&mut connection, &mut heard);
        }
        connection.end(Duration::ZERO);
        drain(&mut connection, &mut heard);
        prop_assert!(heard.iter().any(|heard| matches!(heard, Heard::Closed(_))));
    }
}

/// Connect packet and the wish for a plain connection.
fn plain_start(service: Service) -> Vec<u8> {
    start_with(service, &SetupPacket::Connect(Vec::new().into()))
}

fn start_with(service: Service, setup: &SetupPacket<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    if service.is_encrypted() {
        setup.encode(&mut writer).unwrap();
    }
    writer.into_bytes()
}

/// What a server (with these settings) makes of these bytes: the fault, if any.
fn server_fault(config: ServerConfig, bytes: &[u8]) -> Option<String> {
    let mut server = Connection::server(config.into(), [9; 7], Duration::ZERO);
    server.receive(Side::Client, Duration::ZERO, bytes);
    let mut heard = Vec::new();
    drain(&mut server, &mut heard);
    let fault = heard.iter().find_map(|heard| match heard {
        Heard::Fault(Side::Client, text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(fault.is_some(), server.is_closed());
    assert_eq!(fault.is_some(), heard.contains(&Heard::Closed(CloseReason::Fault)));
    fault
}

fn open_config() -> ServerConfig {
    let mut config = ServerConfig::new(KEYS.clone());
    config.encryption = Encryption::AllowPlain;
    config
}

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
        let bytes = start_with(Service::Auth, &SetupPacket::Connect(y.to_vec().into()));
        let fault = server_fault(open_config(), &bytes).expect("refused");
        assert!(fault.contains(wanted), "{fault}");
    }
    let mut bytes = start_with(Service::Auth, &SetupPacket::Connect(long.to_vec().into()));
    assert_eq!(server_fault(open_config(), &bytes), None);
    // One byte more than a number can have.
    let at = bytes.len() - 65;
    bytes[at] = 67;
    bytes.push(1);
    let fault = server_fault(open_config(), &bytes).expect("refused");
    assert!(fault.contains("byteCount at byte 52: wanted 2 to 66, found 67"), "{fault}");
}

#[test]
fn a_short_number_is_a_number() {
    let public = KEYS.public(ServerKind::Auth).unwrap();
    let mut b = [3; 64];
    let short =
        (0..=u8::MAX).flat_map(|high| (0..=u8::MAX).map(move |low| [low, high])).find(|n| {
            b[..2].copy_from_slice(n);
            public.client_begin(&b).unwrap().0.as_bytes().len() < 64
        });
    b[..2].copy_from_slice(&short.expect("one in 256 is short"));
    let mut client = ClientConfig::new(Service::Auth, Some(public.clone()), b);
    client.ping_every = None;
    let mut client = Connection::client(client, Duration::ZERO).unwrap();
    let mut server = Connection::server(open_config().into(), [5; 7], Duration::ZERO);
    while let Some(bytes) = client.poll_transmit() {
        server.receive(Side::Client, Duration::ZERO, &bytes);
        drain(&mut server, &mut Vec::new());
    }
    while let Some(bytes) = server.poll_transmit() {
        client.receive(Side::Server, Duration::ZERO, &bytes);
        drain(&mut client, &mut Vec::new());
    }
    assert!(client.is_established() && server.is_established());
}

#[test]
fn what_breaks_the_rules_is_named() {
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
        (strict, good.clone(), "wanted an admitted build, found 918"),
        (
            ServerConfig::new(KEYS.clone()),
            plain_start(Service::Auth),
            "wanted a client that encrypts, found a wish for a plain connection",
        ),
        (open_config(), auth(&[0xff, 0xff]), "wanted a message number that a client sends"),
        (open_config(), auth(&[4, 0]), "auth.AcctSetEulaVersion"),
        (
            open_config(),
            auth(&long_name),
            "auth.AcctLoginRequest: fields.accountName at byte 63: \
             wanted at most 63 (units of this string), found 64",
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
    assert!(fault.contains("wanted a connection type that is served"), "{fault}");
}

#[test]
fn a_client_with_a_key_insists_on_a_seed() {
    let key = KEYS.public(ServerKind::Auth).cloned();
    for (answer, wanted) in [
        (&[1, 2][..], "wanted a seed of 7 bytes, found none"),
        (&[1, 8, 0, 0, 0, 0, 0, 0], "byteCount at byte 1: wanted 2 or 9, found 8"),
        (&[2, 6, 20, 0, 0, 0], "wanted a seed, found the error AuthenticationFailed (20)"),
        (&[0, 2], "wanted the setup packet of this side"),
    ] {
        let config = ClientConfig::new(Service::Auth, key.clone(), [7; 64]);
        let mut client = Connection::client(config, Duration::ZERO).unwrap();
        client.receive(Side::Server, Duration::ZERO, answer);
        let mut heard = Vec::new();
        drain(&mut client, &mut heard);
        let named = heard.iter().any(|heard| match heard {
            Heard::Fault(Side::Server, text) => text.contains(wanted),
            _ => false,
        });
        assert!(named, "{wanted}: {heard:?}");
    }
}

#[test]
fn openuru_speaks_plain_after_the_exchange() {
    let mut config = open_config();
    config.encryption = Encryption::OpenUruPlain;
    let mut server = Connection::server(config.into(), [5; 7], Duration::ZERO);
    let y = SetupPacket::Connect(vec![5; 64].into());
    let mut bytes = start_with(Service::Auth, &y);
    bytes.extend([1, 0, 0x96, 3, 0, 0]);
    server.receive(Side::Client, Duration::ZERO, &bytes);
    let mut heard = Vec::new();
    drain(&mut server, &mut heard);
    assert_eq!(server.poll_transmit().unwrap(), [1, 9, 5, 5, 5, 5, 5, 5, 5]);
    assert!(heard.contains(&Heard::Established(Service::Auth, false)), "{heard:?}");
    assert!(matches!(heard.last(), Some(Heard::Unit(_, Unit::Message(_), ..))), "{heard:?}");
}

#[test]
fn time_runs_out() {
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
        let mut heard = Vec::new();
        drain(&mut server, &mut heard);
        assert_eq!(heard, [Heard::Closed(CloseReason::Timeout(timer))]);
        assert_eq!(server.poll_timeout(), None);
    };
    ends(start(&[]), 10, Timer::Setup);
    ends(start(&plain_start(Service::Auth)[..50]), 10, Timer::Setup);
    ends(start(&plain_start(Service::Auth)), 45, Timer::Idle);
    ends(start(&plain_start(Service::File)), 45, Timer::Idle);
    ends(start(&plain_start(Service::Game)), 120, Timer::Idle);
    // A message that has begun must end in time, however it dribbles.
    let begun = [plain_start(Service::Auth), vec![1, 0, 0x96]].concat();
    let mut server = start(&begun);
    server.receive(Side::Client, second * 20, &[3]);
    drain(&mut server, &mut Vec::new());
    ends(server, 30, Timer::Message);
}

#[test]
fn pings_keep_a_connection_alive_for_a_day() {
    let mut server = Connection::server(open_config().into(), [5; 7], Duration::ZERO);
    let config = ClientConfig::new(Service::Auth, None, [1; 64]);
    let mut client = Connection::client(config, Duration::ZERO).unwrap();
    let (mut now, mut pongs) = (Duration::ZERO, 0);
    let day = Duration::from_secs(24 * 60 * 60);
    while now < day {
        loop {
            let mut quiet = true;
            while let Some(bytes) = client.poll_transmit() {
                quiet = false;
                server.receive(Side::Client, now, &bytes);
            }
            while server.poll_event().is_some() {}
            while let Some(bytes) = server.poll_transmit() {
                quiet = false;
                client.receive(Side::Server, now, &bytes);
            }
            while let Some(event) = client.poll_event() {
                if let Event::Received(received) = event
                    && received.name() == ("auth", "PingReply")
                {
                    pongs += 1;
                }
            }
            if quiet {
                break;
            }
        }
        let next = [client.poll_timeout(), server.poll_timeout()].into_iter().flatten().min();
        now = next.expect("somebody waits for something");
        client.timeout(now);
        server.timeout(now);
        assert!(!client.is_closed() && !server.is_closed(), "closed at {now:?}");
    }
    assert_eq!(pongs, 24 * 60 * 2);
    // Without the client the server does not wait for ever.
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
    let text = |error: Error| error.to_string();
    let mut pair = Pair::new(Service::Auth, true, Cut::Whole);
    let [client, server] = &mut pair.ends;
    let error = text(client.send(&ping(Service::Game)).unwrap_err());
    assert_eq!(error, "wanted a message of the client on auth, found game.PingRequest");
    assert!(server.send(&ping(Service::Auth)).is_err());
    let big = auth::server::VaultNodeFetched {
        trans_id: 1,
        result: worldwire_uru::types::NetError::Success,
        node: worldwire_uru::message::Nested::new(vec![0; 1_048_576]),
    };
    let big = auth::server::ServerMessage::from(big).into();
    let refused = (0..20).find_map(|_| server.send(&big).err()).expect("8 MiB are full");
    assert!(text(refused).contains("queued bytes"));
    let small =
        game::client::ClientMessage::PingRequest(game::client::PingRequest { ping_time_ms: 1 });
    let config = ClientConfig::new(Service::Game, None, [1; 64]);
    let mut early = Connection::client(config, Duration::ZERO).unwrap();
    let small = Message::from(small);
    let refused = (0..2000).find_map(|_| early.send(&small).err()).expect("1000 are full");
    assert!(text(refused).contains("queued messages"));
    early.close();
    assert!(text(early.send(&small).unwrap_err()).contains("a closed one"));
}

/// An auth conversation of a few messages; the streams, and where the client's segments begin.
fn conversation(service: Service, encrypted: bool) -> ([Vec<u8>; 2], Vec<Vec<u8>>) {
    let mut pair = Pair::new(service, encrypted, Cut::Whole);
    let setup = pair.streams[0].len();
    let mut segments = vec![pair.streams[0].clone()];
    let mut from = setup;
    for message in every_message(service, 3) {
        let client = message.sender() == Side::Client;
        pair.say(&message);
        if client {
            segments.push(pair.streams[0][from..].to_vec());
            from = pair.streams[0].len();
        }
    }
    (pair.streams, segments)
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
    assert!(told[0].contains("wanted the whole of connection setup"), "{told:?}");

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
