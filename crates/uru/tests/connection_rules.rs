//! The small print of the connection machine: order, time, limits, and who is to blame.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use worldwire_core::{ErrorKind, Field, Sampler, Side, Writer};
use worldwire_uru::connect::{
    BUILD_ID, ConnectData, ConnectPacket, SetupPacket, SimpleNetData, TokenData,
};
use worldwire_uru::connection::{
    BuildPolicy, ClientConfig, CloseReason, Connection, Encryption, Event, ServerConfig, Timer,
};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service, table};
use worldwire_uru::types::Uuid;

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(1));
static OTHER_KEYS: LazyLock<KeyRing> = LazyLock::new(|| ring(2));

const SECOND: Duration = Duration::from_secs(1);

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

/// Lets everybody in and leaves the pings to the tests.
fn open_config() -> ServerConfig {
    let mut config = ServerConfig::new(KEYS.clone());
    config.encryption = Encryption::AllowPlain;
    config.answer_pings = false;
    config
}

fn client_of(service: Service, encrypted: bool, now: Duration) -> Connection {
    let key = KEYS.public(key_kind(service)).filter(|_| encrypted).cloned();
    let mut config = ClientConfig::new(service, key, [0x5a; 64]);
    config.ping_every = None;
    Connection::client(config, now).unwrap()
}

fn server_of(config: ServerConfig, now: Duration) -> Connection {
    Connection::server(Arc::new(config), [1, 2, 3, 4, 5, 6, 7], now)
}

/// One event as a line: who, what, where, and the text of faults.
fn line(event: &Event<'_>) -> String {
    match event {
        Event::Received(received) => {
            let (kind, name) = received.name();
            let range = received.range();
            let secret = if received.encrypted { " encrypted" } else { "" };
            let content = received.content().expect("what came out can be read");
            if let Some(message) = received.message() {
                assert_eq!(message.to_bytes().unwrap(), received.bytes, "{content:?}");
            }
            format!("{} {kind}.{name} {}..{}{secret}", received.side, range.start, range.end)
        }
        Event::Established { service, encrypted } => {
            format!("established {} encrypted={encrypted}", service.name())
        }
        Event::Gap { side, range } => format!("{side} gap {}..{}", range.start, range.end),
        Event::Resync { side, skipped } => {
            format!("{side} resync {}..{}", skipped.start, skipped.end)
        }
        Event::KeysNeeded { service } => format!("keys needed for {}", service.name()),
        Event::Fault { side, error } => format!("{side} fault {error}"),
        Event::Closed(reason) => format!("closed: {reason}"),
        other => panic!("{other:?}"),
    }
}

fn drain(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

fn hear(connection: &mut Connection, side: Side, now: Duration, bytes: &[u8]) -> Vec<String> {
    connection.receive(side, now, bytes);
    drain(connection)
}

fn sent(connection: &mut Connection) -> Vec<u8> {
    std::iter::from_fn(|| connection.poll_transmit()).flatten().collect()
}

fn start(service: Service, setup: &SetupPacket<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    if service.is_encrypted() {
        setup.encode(&mut writer).unwrap();
    }
    writer.into_bytes()
}

fn plain_start(service: Service) -> Vec<u8> {
    start(service, &SetupPacket::Connect(Vec::new().into()))
}

/// A server past a plain setup.
fn established(config: ServerConfig, service: Service, now: Duration) -> Connection {
    let mut server = server_of(config, now);
    hear(&mut server, Side::Client, now, &plain_start(service));
    assert!(server.is_established());
    sent(&mut server);
    server
}

fn sample(service: Service, side: Side, number: u32, seed: u64) -> Message<'static> {
    Message::sample(service, side, number, &mut Sampler::new(seed)).unwrap()
}

fn ping(service: Service) -> Message<'static> {
    sample(service, Side::Client, 0, 9)
}

/// Messages of a service that fit into few bytes.
fn small_messages(service: Service, side: Side) -> Vec<Message<'static>> {
    let infos = table(service, side).messages.iter();
    let messages = infos.map(|info| sample(service, side, info.number, 4));
    messages.filter(|message| message.to_bytes().unwrap().len() < 80).take(12).collect()
}

/// A wire that takes its time.
struct Wire {
    ends: [Connection; 2],
    latency: Duration,
    /// What is under way: when it arrives, who sent it.
    flying: VecDeque<(Duration, Side, Vec<u8>)>,
    log: Vec<(Duration, Side, String)>,
}

impl Wire {
    fn new(client: Connection, server: Connection, latency: Duration) -> Self {
        Self { ends: [client, server], latency, flying: VecDeque::new(), log: Vec::new() }
    }

    /// Lets time pass until nothing is under way.
    fn settle(&mut self, mut now: Duration) {
        loop {
            for side in Side::BOTH {
                let end = &mut self.ends[side.index()];
                for text in drain(end) {
                    self.log.push((now, side, text));
                }
                while let Some(bytes) = end.poll_transmit() {
                    self.flying.push_back((now + self.latency, side, bytes));
                }
            }
            let Some((arrival, side, bytes)) = self.flying.pop_front() else {
                return;
            };
            now = arrival;
            self.ends[side.other().index()].receive(side, now, &bytes);
        }
    }

    fn heard_by(&self, side: Side) -> Vec<(u128, &str)> {
        let heard = self.log.iter().filter(|(_, who, _)| *who == side);
        heard.map(|(at, _, text)| (at.as_millis(), text.as_str())).collect()
    }
}

#[test]
fn what_is_said_early_waits_for_setup_and_keeps_its_order() {
    let latency = Duration::from_millis(150);
    for service in Service::ALL {
        for encrypted in [true, false] {
            let mut client = client_of(service, encrypted, Duration::ZERO);
            let early = small_messages(service, Side::Client);
            early.iter().for_each(|message| client.send(message).unwrap());
            let server = server_of(open_config(), Duration::ZERO);
            let mut wire = Wire::new(client, server, latency);
            wire.settle(Duration::ZERO);

            let secret = encrypted && service.is_encrypted();
            let name = service.name();
            let up = format!("established {name} encrypted={secret}");
            let told = wire.heard_by(Side::Server);
            assert_eq!(told.iter().filter(|(_, text)| *text == up).count(), 1, "{told:?}");
            let setup_at = told.iter().find(|(_, text)| *text == up).unwrap().0;
            assert_eq!(setup_at, 150);
            // The seed has to come back first, except where there is none.
            let messages_at = if service.is_encrypted() { 450 } else { 150 };
            let wanted: Vec<_> = early
                .iter()
                .map(|message| (messages_at, format!("client {name}.{}", message.name())))
                .collect();
            let found: Vec<_> = told
                .iter()
                .filter(|(_, text)| text.starts_with(&format!("client {name}.")))
                .map(|(at, text)| {
                    assert_eq!(text.ends_with(" encrypted"), secret, "{text}");
                    (*at, text.split(' ').take(2).collect::<Vec<_>>().join(" "))
                })
                .collect();
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn a_server_may_speak_before_the_seed_is_out() {
    let mut server = server_of(open_config(), Duration::ZERO);
    let bytes = plain_start(Service::Auth);
    let (connect, setup) = bytes.split_at(51);
    let greeting = sample(Service::Auth, Side::Server, 3, 1);
    let refused = server.send(&greeting).unwrap_err().to_string();
    assert_eq!(
        refused,
        "wanted a connection whose service is known, found auth.ClientRegisterReply"
    );
    hear(&mut server, Side::Client, Duration::ZERO, connect);
    server.send(&greeting).unwrap();
    assert_eq!(server.poll_transmit(), None);
    hear(&mut server, Side::Client, Duration::ZERO, setup);
    assert_eq!(server.poll_transmit().unwrap(), [1, 2]);
    assert_eq!(server.poll_transmit().unwrap(), greeting.to_bytes().unwrap());
    assert_eq!(server.poll_transmit(), None);
}

#[test]
fn what_is_said_early_is_bounded_and_never_dropped() {
    let big = Message::from(worldwire_uru::message::auth::client::ClientMessage::from(
        worldwire_uru::message::auth::client::PropagateBuffer {
            type_: worldwire_uru::types::ClassIndex(1),
            buffer: worldwire_core::Bytes32::new(vec![7; 1_000_000]),
        },
    ));
    let mut client = client_of(Service::Auth, false, Duration::ZERO);
    let accepted = (0..20).take_while(|_| client.send(&big).is_ok()).count();
    let error = client.send(&big).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "queued bytes", .. }), "{error}");
    sent(&mut client);
    hear(&mut client, Side::Server, Duration::ZERO, &[1, 2]);
    assert_eq!(sent(&mut client).len(), accepted * big.to_bytes().unwrap().len());

    let mut config = open_config();
    config.most_queued_messages = 3;
    let mut server = server_of(config, Duration::ZERO);
    let bytes = plain_start(Service::Auth);
    let (connect, setup) = bytes.split_at(51);
    hear(&mut server, Side::Client, Duration::ZERO, connect);
    let greeting = sample(Service::Auth, Side::Server, 3, 1);
    let accepted = (0..20).take_while(|_| server.send(&greeting).is_ok()).count();
    assert!((1..=3).contains(&accepted), "{accepted}");
    hear(&mut server, Side::Client, Duration::ZERO, setup);
    let wanted = 2 + accepted * greeting.to_bytes().unwrap().len();
    assert_eq!(sent(&mut server).len(), wanted);
}

#[test]
fn setup_is_told_in_order() {
    let mut client = client_of(Service::Game, true, Duration::ZERO);
    let mut server = server_of(open_config(), Duration::ZERO);
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let to_server = sent(&mut client);
    let y = to_server.len() - 67 - 2;
    assert!((1..=64).contains(&y));
    let told = hear(&mut server, Side::Client, Duration::ZERO, &to_server);
    let connect = "client connect.CliToGame 0..67".to_owned();
    let setup = format!("client setup.Connect 67..{}", 69 + y);
    let up = "established game encrypted=true".to_owned();
    assert_eq!(told, [connect.clone(), setup.clone(), up.clone()]);
    let watched = hear(&mut observer, Side::Client, Duration::ZERO, &to_server);
    assert_eq!(watched, [connect, setup]);
    let to_client = sent(&mut server);
    assert_eq!(to_client, [1, 9, 1, 2, 3, 4, 5, 6, 7]);
    let seed = "server setup.Encrypt 0..9".to_owned();
    let told = hear(&mut client, Side::Server, Duration::ZERO, &to_client);
    assert_eq!(told, [seed.clone(), up.clone()]);
    let watched = hear(&mut observer, Side::Server, Duration::ZERO, &to_client);
    assert_eq!(watched, [seed, up]);
}

/// The streams of a conversation, by side.
fn conversation(service: Service, encrypted: bool) -> [Vec<u8>; 2] {
    let mut client = client_of(service, encrypted, Duration::ZERO);
    let mut server = server_of(open_config(), Duration::ZERO);
    let mut streams = [sent(&mut client), Vec::new()];
    hear(&mut server, Side::Client, Duration::ZERO, &streams[0]);
    streams[1] = sent(&mut server);
    hear(&mut client, Side::Server, Duration::ZERO, &streams[1]);
    for message in small_messages(service, Side::Client) {
        client.send(&message).unwrap();
    }
    for message in small_messages(service, Side::Server) {
        server.send(&message).unwrap();
    }
    streams[0].extend(sent(&mut client));
    streams[1].extend(sent(&mut server));
    streams
}

#[test]
fn no_cut_changes_what_is_heard() {
    for service in Service::ALL {
        for encrypted in [false, true] {
            let streams = conversation(service, encrypted);
            // An exchange costs time, so only some of the cuts behind it are tried.
            let step = if encrypted && service.is_encrypted() { 7 } else { 1 };
            for side in Side::BOTH {
                let stream = &streams[side.index()];
                let run = |cut: usize| {
                    let mut end = match side {
                        Side::Client => server_of(open_config(), Duration::ZERO),
                        Side::Server => client_of(service, encrypted, Duration::ZERO),
                    };
                    let mut heard = hear(&mut end, side, Duration::ZERO, &stream[..cut]);
                    heard.extend(hear(&mut end, side, Duration::ZERO, &stream[cut..]));
                    end.end(Duration::ZERO);
                    heard.extend(drain(&mut end));
                    heard
                };
                let whole = run(stream.len());
                assert!(whole.len() > 4, "{whole:?}");
                assert_eq!(whole.last().unwrap(), "closed: closed by the other side");
                for cut in (0..stream.len()).step_by(step) {
                    assert_eq!(run(cut), whole, "{service:?} {side} cut at {cut}");
                }
            }
            let watch = |side: Side, cut: usize| {
                let mut observer = Connection::observer(Arc::new(KEYS.clone()));
                let mut heard = Vec::new();
                for from in Side::BOTH {
                    let stream = &streams[from.index()];
                    let (head, tail) = stream.split_at(if from == side { cut } else { 0 });
                    heard.extend(hear(&mut observer, from, Duration::ZERO, head));
                    heard.extend(hear(&mut observer, from, Duration::ZERO, tail));
                }
                observer.end(Duration::ZERO);
                heard.extend(drain(&mut observer));
                heard
            };
            let whole = watch(Side::Client, 0);
            assert!(!whole.iter().any(|line| line.contains("fault")), "{whole:?}");
            for side in Side::BOTH {
                for cut in (0..=streams[side.index()].len()).step_by(step) {
                    assert_eq!(watch(side, cut), whole, "{service:?} {side} cut at {cut}");
                }
            }
        }
    }
}

/// The bytes of a head with this number.
fn head(service: Service, number: u32) -> Vec<u8> {
    if service == Service::File {
        return [8_u32.to_le_bytes(), number.to_le_bytes()].concat();
    }
    u16::try_from(number).unwrap().to_le_bytes().to_vec()
}

#[test]
fn numbers_of_nobody_and_of_the_other_side_are_refused() {
    for service in Service::ALL {
        for side in Side::BOTH {
            let own = table(service, side);
            let other = table(service, side.other()).messages.iter();
            let known = |number: &u32| own.messages.iter().any(|info| info.number == *number);
            let reserved = own.reserved.iter().map(|row| row.0);
            let wrong: Vec<u32> = other
                .map(|info| info.number)
                .chain(reserved)
                .chain([99, 0x1234, 0xffff])
                .filter(|number| !known(number))
                .collect();
            assert!(wrong.len() >= 3);
            for number in wrong {
                let (mut end, setup) = match side {
                    Side::Client => {
                        (server_of(open_config(), Duration::ZERO), plain_start(service))
                    }
                    Side::Server if service.is_encrypted() => {
                        (client_of(service, false, Duration::ZERO), vec![1, 2])
                    }
                    Side::Server => (client_of(service, false, Duration::ZERO), Vec::new()),
                };
                let mut heard = hear(&mut end, side, Duration::ZERO, &setup);
                heard.extend(hear(&mut end, side, Duration::ZERO, &head(service, number)));
                let at = setup.len() + if service == Service::File { 4 } else { 0 };
                let name = own.reserved.iter().find(|row| row.0 == number).map(|row| row.1);
                let (about, found) = match name {
                    Some(name) => (
                        format!("{}.{name}", service.name()),
                        format!("{number} ({name}, whose fields nobody knows)"),
                    ),
                    None => {
                        let about = format!("{} message from the {side}", service.name());
                        (about, number.to_string())
                    }
                };
                let wanted = format!(
                    "{side} fault {about}: fields at byte {at}: \
                     wanted a message number that a {side} sends, found {found}"
                );
                let tail = [wanted, "closed: closed because of a fault".to_owned()];
                assert_eq!(heard[heard.len() - 2..], tail);
                assert_eq!(end.poll_timeout(), None);
                let more = ping(service).to_bytes().unwrap();
                assert!(hear(&mut end, side, Duration::ZERO, &more).is_empty());
            }
        }
    }
}

#[test]
fn a_server_chooses_whom_to_serve() {
    let packet = |change: fn(&mut ConnectPacket)| {
        let mut packet = ConnectPacket::new(Service::Auth);
        change(&mut packet);
        let mut writer = Writer::new();
        packet.encode(&mut writer).unwrap();
        writer.into_bytes()
    };
    let told = |config: ServerConfig, bytes: &[u8]| {
        let mut server = server_of(config, Duration::ZERO);
        let heard = hear(&mut server, Side::Client, Duration::ZERO, bytes);
        assert!(heard[0].starts_with("client connect."), "{heard:?}");
        heard.get(1).cloned()
    };
    let fault = |text: &str| Some(format!("client fault at byte 0: {text}"));
    let same: fn(&mut ConnectPacket) = |_| {};
    let newer: fn(&mut ConnectPacket) = |packet| packet.build_id = BUILD_ID + 1;
    let newest: fn(&mut ConnectPacket) = |packet| packet.build_id = 0;
    assert_eq!(told(open_config(), &packet(same)), None);
    assert_eq!(told(open_config(), &packet(newer)), fault("wanted an admitted build, found 919"));
    assert_eq!(told(open_config(), &packet(newest)), None);
    let any = ServerConfig { builds: BuildPolicy::Any, ..open_config() };
    assert_eq!(told(any, &packet(newer)), None);
    // A file connection says 0 and is let in whatever it says.
    let mut file = ConnectPacket::new(Service::File);
    file.build_id = 7;
    let mut writer = Writer::new();
    file.encode(&mut writer).unwrap();
    let heard = told(open_config(), writer.as_bytes());
    assert_eq!(heard.as_deref(), Some("established file encrypted=false"));

    let product = ServerConfig { product: Some(Uuid::ZERO), ..open_config() };
    assert_eq!(
        told(product, &packet(same)),
        fault("wanted the shard's product id, found ea489821-6c35-4bd0-9dae-bb17c585e680")
    );
    let game = ServerConfig { services: vec![Service::Game], ..open_config() };
    assert_eq!(told(game, &packet(same)), fault("wanted a service that is served, found auth"));
    let dead: [fn(&mut ConnectPacket); 2] = [
        |packet| packet.data = ConnectData::Csr,
        |packet| packet.data = ConnectData::SimpleNet(SimpleNetData { channel: 1 }),
    ];
    for (dead, name) in dead.into_iter().zip(["CliToCsr (20)", "SimpleNet (21)"]) {
        let wanted = format!("wanted a connection type that is served, found {name}");
        assert_eq!(told(open_config(), &packet(dead)), fault(&wanted));
    }
    // A key that is not there is the server's own fault, and named.
    let mut keyless = open_config();
    keyless.keys = KeyRing::new();
    let mut server = server_of(keyless, Duration::ZERO);
    let bytes = start(Service::Auth, &SetupPacket::Connect(vec![5; 64].into()));
    let heard = hear(&mut server, Side::Client, Duration::ZERO, &bytes);
    let wanted = "client fault at byte 51: wanted a key for auth, found none in the configuration";
    assert_eq!(heard[2], wanted);
}

#[test]
fn a_client_cannot_begin_with_what_nobody_serves() {
    let mut config = ClientConfig::new(Service::Auth, None, [1; 64]);
    config.connect.data = ConnectData::Csr;
    let error = Connection::client(config, Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "connType: wanted a service that is alive, found CliToCsr (20)");
    let key = KEYS.public(ServerKind::Auth).cloned();
    let config = ClientConfig::new(Service::Auth, key, [0; 64]);
    let error = Connection::client(config, Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("y is 1"), "{error}");
    // The token of a reconnect goes out as it is given.
    let mut config = ClientConfig::new(Service::Auth, None, [1; 64]);
    config.connect.data = ConnectData::Auth(TokenData { token: Uuid([9; 16]) });
    let mut client = Connection::client(config, Duration::ZERO).unwrap();
    assert_eq!(sent(&mut client)[35..51], [9; 16]);
}

#[test]
fn a_client_waits_ten_seconds_for_setup() {
    for encrypted in [true, false] {
        let mut client = client_of(Service::Auth, encrypted, SECOND);
        assert_eq!(client.poll_timeout(), Some(SECOND * 11));
        hear(&mut client, Side::Server, SECOND * 5, &[1]);
        client.timeout(SECOND * 11 - Duration::from_nanos(1));
        assert!(drain(&mut client).is_empty());
        client.timeout(SECOND * 11);
        assert_eq!(drain(&mut client), ["closed: setup took too long"]);
        assert_eq!(client.poll_timeout(), None);
        assert!(client.is_closed() && !client.is_established());
    }
    // A file connection has no setup to wait for.
    assert_eq!(client_of(Service::File, false, SECOND).poll_timeout(), None);
}

#[test]
fn a_message_may_dribble_for_thirty_seconds() {
    let bytes = ping(Service::Auth).to_bytes().unwrap();
    let at = |second: u32| SECOND * second;
    let mut server = established(open_config(), Service::Auth, Duration::ZERO);
    assert_eq!(server.poll_timeout(), Some(at(45)));
    // In time: a byte a second, the last at 20 s.
    for (second, byte) in (1..).zip(&bytes[..9]) {
        assert!(hear(&mut server, Side::Client, at(second), &[*byte]).is_empty());
        assert_eq!(server.poll_timeout(), Some(at(31)));
    }
    let heard = hear(&mut server, Side::Client, at(20), &bytes[9..]);
    assert_eq!(heard.len(), 1);
    assert_eq!(server.poll_timeout(), Some(at(65)));
    // The end of one message and the start of the next in one piece: the clock starts anew.
    hear(&mut server, Side::Client, at(21), &bytes[..5]);
    assert_eq!(server.poll_timeout(), Some(at(51)));
    let both = [&bytes[5..], &bytes[..3]].concat();
    assert_eq!(hear(&mut server, Side::Client, at(40), &both).len(), 1);
    assert_eq!(server.poll_timeout(), Some(at(70)));
    // Too late, although something came every second.
    for second in 41..70 {
        let byte = bytes.get(second as usize - 38).copied();
        if second < 46 {
            hear(&mut server, Side::Client, at(second), &[byte.unwrap_or(0)]);
        }
        server.timeout(at(second));
        assert!(!server.is_closed(), "at {second} s");
    }
    server.timeout(at(70));
    assert_eq!(drain(&mut server), [format!("closed: {}", CloseReason::Timeout(Timer::Message))]);
}

#[test]
fn silence_ends_a_connection_and_only_whole_messages_break_it() {
    for (service, patience) in
        [(Service::Gatekeeper, 45), (Service::Auth, 45), (Service::File, 45), (Service::Game, 120)]
    {
        let mut server = established(open_config(), service, SECOND);
        assert_eq!(server.poll_timeout(), Some(SECOND * (1 + patience)));
        let bytes = ping(service).to_bytes().unwrap();
        hear(&mut server, Side::Client, SECOND * 31, &bytes);
        assert_eq!(server.poll_timeout(), Some(SECOND * (31 + patience)));
        server.timeout(SECOND * (31 + patience));
        assert_eq!(drain(&mut server), ["closed: silent for too long"]);
        assert_eq!(server.poll_timeout(), None);
    }
}

#[test]
fn pings_of_every_service_come_back_as_they_were() {
    for service in Service::ALL {
        let mut server =
            established(ServerConfig { answer_pings: true, ..open_config() }, service, SECOND);
        let request = ping(service).to_bytes().unwrap();
        hear(&mut server, Side::Client, SECOND, &request);
        assert_eq!(sent(&mut server), request, "{service:?}");
        // The driver may want to do it itself.
        let mut server = established(open_config(), service, SECOND);
        hear(&mut server, Side::Client, SECOND, &request);
        assert_eq!(server.poll_transmit(), None);
    }
}

#[test]
fn a_silent_client_stays_for_a_day_on_every_service() {
    for service in Service::ALL {
        let mut config = ClientConfig::new(service, None, [1; 64]);
        config.connect = ConnectPacket::new(service);
        let client = Connection::client(config, Duration::ZERO).unwrap();
        let server =
            server_of(ServerConfig { answer_pings: true, ..open_config() }, Duration::ZERO);
        let mut wire = Wire::new(client, server, Duration::from_millis(40));
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(24 * 60 * 60) {
            wire.settle(now);
            let timeouts = wire.ends.iter().filter_map(Connection::poll_timeout);
            now = now.max(timeouts.min().expect("somebody waits for something"));
            wire.ends.iter_mut().for_each(|end| end.timeout(now));
            assert!(wire.ends.iter().all(|end| !end.is_closed()), "{service:?} at {now:?}");
            wire.log.retain(|(_, side, _)| *side == Side::Client);
        }
        let pong = format!("server {}.PingReply", service.name());
        let pongs = wire.log.iter().filter(|(_, _, text)| text.starts_with(&pong)).count();
        assert!((2878..=2882).contains(&pongs), "{service:?} {pongs}");
    }
}

#[test]
fn what_waits_to_be_sent_is_bounded_by_name() {
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    let length = reply.to_bytes().unwrap().len();
    let config = ServerConfig { most_queued_messages: 3, ..open_config() };
    let mut server = established(config, Service::Auth, SECOND);
    for _ in 0..3 {
        server.send(&reply).unwrap();
    }
    let error = server.send(&reply).unwrap_err();
    let wanted = ErrorKind::Limit { name: "queued messages", limit: 3, asked: 4 };
    assert_eq!(error.kind(), wanted);
    assert_eq!(server.queued_bytes(), 3 * length);
    // Room comes back as bytes go out, and nothing was lost or torn.
    assert_eq!(server.poll_transmit().unwrap(), reply.to_bytes().unwrap());
    server.send(&reply).unwrap();
    assert_eq!(sent(&mut server), reply.to_bytes().unwrap().repeat(3));
    assert_eq!(server.queued_bytes(), 0);

    let config = ServerConfig { most_queued_bytes: 2 * length, ..open_config() };
    let mut server = established(config, Service::Auth, SECOND);
    server.send(&reply).unwrap();
    server.send(&reply).unwrap();
    let limit = 2 * length as u64;
    let wanted = ErrorKind::Limit { name: "queued bytes", limit, asked: 3 * length as u64 };
    assert_eq!(server.send(&reply).unwrap_err().kind(), wanted);
    assert!(!server.is_closed());
}

#[test]
fn whoever_pings_but_never_reads_is_cut_off() {
    let config = ServerConfig { most_queued_messages: 5, answer_pings: true, ..open_config() };
    let mut server = established(config, Service::Game, SECOND);
    let request = ping(Service::Game).to_bytes().unwrap();
    let heard = hear(&mut server, Side::Client, SECOND, &request.repeat(9));
    let pings = heard.iter().filter(|text| text.contains("PingRequest")).count();
    assert_eq!(pings, 6);
    assert!(heard[6].contains("wanted at most 5 (queued messages), found 6"), "{heard:?}");
    assert_eq!(heard[7], "closed: closed because of a fault");
    assert_eq!(heard.len(), 8);
}

#[test]
fn after_the_end_there_is_only_what_was_queued() {
    let mut server = established(open_config(), Service::Auth, SECOND);
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    server.send(&reply).unwrap();
    server.close();
    server.close();
    assert_eq!(server.poll_timeout(), None);
    let ping = ping(Service::Auth).to_bytes().unwrap();
    let heard = hear(&mut server, Side::Client, SECOND, &ping);
    assert_eq!(heard, ["closed: closed by this side"]);
    assert_eq!(server.send(&reply).unwrap_err().found(), "a closed one");
    assert_eq!(sent(&mut server), reply.to_bytes().unwrap());
    server.timeout(SECOND * 1000);
    server.end(SECOND * 1000);
    assert!(drain(&mut server).is_empty());
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let error = observer.send(&reply).unwrap_err().to_string();
    assert_eq!(error, "wanted a client or a server, found an observer");
}

/// What an observer with these keys tells of both streams, and of more that comes later.
fn watch(keys: &KeyRing, streams: &[Vec<u8>; 2]) -> (Connection, Vec<String>) {
    let mut observer = Connection::observer(Arc::new(keys.clone()));
    let mut heard = hear(&mut observer, Side::Client, Duration::ZERO, &streams[0]);
    heard.extend(hear(&mut observer, Side::Server, Duration::ZERO, &streams[1]));
    (observer, heard)
}

#[test]
fn an_observer_without_the_right_key_says_so_once_and_is_quiet() {
    let streams = conversation(Service::Auth, true);
    for (keys, wanted) in [
        (&KeyRing::new(), "keys needed for auth"),
        (&*OTHER_KEYS, "wanted the auth key of this connection, found another one"),
    ] {
        let (mut observer, heard) = watch(keys, &streams);
        let told: Vec<_> = heard.iter().filter(|line| line.contains(wanted)).collect();
        assert_eq!(told.len(), 1, "{heard:?}");
        assert!(std::ptr::eq(told[0], heard.last().unwrap()), "{heard:?}");
        // Both streams are given up, whatever still comes.
        let ping = ping(Service::Auth).to_bytes().unwrap();
        for side in Side::BOTH {
            assert!(hear(&mut observer, side, Duration::ZERO, &ping).is_empty());
            observer.gap(side, Duration::ZERO, 10);
            assert!(hear(&mut observer, side, Duration::ZERO, &ping).is_empty());
        }
        observer.end(Duration::ZERO);
        assert_eq!(drain(&mut observer), ["closed: closed by the other side"]);
    }
}

#[test]
fn an_observer_needs_all_of_setup() {
    let streams = conversation(Service::Auth, true);
    for (side, before) in
        [(Side::Client, 0), (Side::Client, 20), (Side::Client, 60), (Side::Server, 0)]
    {
        let mut observer = Connection::observer(Arc::new(KEYS.clone()));
        let mut heard = Vec::new();
        if side == Side::Server {
            heard.extend(hear(&mut observer, Side::Client, Duration::ZERO, &streams[0]));
        }
        let stream = &streams[side.index()];
        heard.extend(hear(&mut observer, side, Duration::ZERO, &stream[..before]));
        observer.gap(side, Duration::ZERO, 5);
        heard.extend(drain(&mut observer));
        heard.extend(hear(&mut observer, side, Duration::ZERO, &stream[before + 5..]));
        let rest = &streams[side.other().index()];
        heard.extend(hear(&mut observer, side.other(), Duration::ZERO, rest));
        observer.end(Duration::ZERO);
        heard.extend(drain(&mut observer));
        let gap = format!("{side} gap {before}..{}", before + 5);
        let fault = format!(
            "{side} fault at byte {before}: \
             wanted the whole of connection setup, found 5 bytes missing"
        );
        let tail = [gap, fault, "closed: closed by the other side".to_owned()];
        assert_eq!(heard[heard.len() - 3..], tail, "{heard:?}");
    }
}

#[test]
fn a_torn_end_is_told_of_both_streams() {
    let mut streams = conversation(Service::Auth, true);
    let lengths = [streams[0].len(), streams[1].len()];
    streams[0].pop();
    streams[1].pop();
    let (mut observer, heard) = watch(&KEYS, &streams);
    assert!(!heard.iter().any(|line| line.contains("fault")), "{heard:?}");
    let next = |side: Side| {
        let last = heard.iter().rfind(|line| line.starts_with(side.name())).unwrap();
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
fn an_observer_sees_what_the_ends_agreed_on() {
    // Plain connections need no keys.
    let plain = conversation(Service::Auth, false);
    let (_, heard) = watch(&KeyRing::new(), &plain);
    assert!(heard.contains(&"established auth encrypted=false".to_owned()), "{heard:?}");
    assert!(heard.iter().filter(|line| line.contains(" auth.")).count() > 10);
    // An error instead of a seed ends setup for whoever watches, too.
    let streams = [plain_start(Service::Auth), vec![2, 6, 20, 0, 0, 0]];
    let (_, heard) = watch(&KEYS, &streams);
    let fault = "server fault at byte 0: wanted a seed, found the error AuthenticationFailed (20)";
    assert_eq!(heard.last().unwrap(), fault);
    // The server's side of the capture comes first: its bytes wait for the client's.
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let secret = conversation(Service::Auth, true);
    assert!(hear(&mut observer, Side::Server, Duration::ZERO, &secret[1]).is_empty());
    let late = hear(&mut observer, Side::Client, Duration::ZERO, &secret[0]);
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
        hear(&mut server, Side::Client, Duration::ZERO, &first);
        let seed = sent(&mut server);
        hear(&mut client, Side::Server, Duration::ZERO, &seed);
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
        // Every run of lost segments from the second one on.
        for lost in 1..segments.len() - 1 {
            let (mut observer, _) = watch(&KEYS, &[first.clone(), seed.clone()]);
            hear(&mut observer, Side::Client, Duration::ZERO, &segments[0]);
            let missing: usize = segments[1..=lost].iter().map(Vec::len).sum();
            observer.gap(Side::Client, Duration::ZERO, missing as u64);
            let mut heard = drain(&mut observer);
            for segment in &segments[lost + 1..] {
                heard.extend(hear(&mut observer, Side::Client, Duration::ZERO, segment));
            }
            let (from, to) = (ends[0], ends[lost]);
            assert_eq!(heard[0], format!("client gap {from}..{to}"));
            let resync = heard.iter().position(|line| line.starts_with("client resync"));
            let line = &heard[resync.expect("reading goes on")];
            assert!(line.starts_with(&format!("client resync {from}..")), "{line}");
            let begins = format!("{}..", ends.last().unwrap() - segments.last().unwrap().len());
            assert!(heard.last().unwrap().contains(&begins), "{heard:?}");
        }
    }
    // On a file connection the count of every message tells, too.
    let ping = ping(Service::File).to_bytes().unwrap();
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let begin = [plain_start(Service::File), ping.clone()].concat();
    hear(&mut observer, Side::Client, Duration::ZERO, &begin);
    observer.gap(Side::Client, Duration::ZERO, 1 << 40);
    let at = begin.len() as u64;
    let end = at + (1 << 40);
    let mut heard = drain(&mut observer);
    heard.extend(hear(&mut observer, Side::Client, Duration::ZERO, &ping));
    let length = ping.len() as u64;
    assert_eq!(
        heard,
        [
            format!("client gap {at}..{end}"),
            format!("client resync {at}..{end}"),
            format!("client file.PingRequest {end}..{}", end + length),
        ]
    );
}

#[test]
fn only_an_observer_can_live_with_a_gap() {
    let mut server = established(open_config(), Service::Auth, SECOND);
    let ping = ping(Service::Auth).to_bytes().unwrap();
    assert_eq!(hear(&mut server, Side::Client, SECOND, &ping).len(), 1);
    server.gap(Side::Client, SECOND, 7);
    let at = 53 + ping.len();
    assert_eq!(
        drain(&mut server),
        [
            format!("client gap {at}..{}", at + 7),
            format!(
                "client fault at byte {at}: wanted a stream without gaps, found 7 bytes missing"
            ),
            "closed: closed because of a fault".to_owned(),
        ]
    );
}
