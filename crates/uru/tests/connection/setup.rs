//! Setup: early messages, order, split streams, and the clients admitted.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Connection as _, SendError};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{ErrorKind, Field, Side, Writer};
use worldwire_uru::connect::{
    BUILD_ID, ConnectData, ConnectPacket, SetupPacket, SimpleNetChannel, SimpleNetData, TokenData,
};
use worldwire_uru::connection::{BuildPolicy, ClientConfig, Connection, ServerConfig};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service, table};
use worldwire_uru::types::Uuid;

use crate::ends::{
    Drive as _, KEYS, client_of, conversation, deliver, drain, line, open_config, ping,
    plain_start, sample, sent, server_of, small_messages, start,
};

#[test]
fn early_messages_wait_for_setup_in_order() {
    let latency = Duration::from_millis(150);
    for service in Service::ALL {
        for encrypted in [true, false] {
            let mut client = client_of(service, encrypted, Duration::ZERO);
            let early = small_messages(service, Side::Client);
            early.iter().for_each(|message| client.send(message).unwrap());
            let server = server_of(open_config(), Duration::ZERO);
            let conditions = Conditions { latency, ..Conditions::default() };
            let mut pair = Pair::new(client, server, conditions);
            let mut reported = Vec::new();
            for ms in 0..=600 {
                pair.run_until(Duration::from_millis(ms), |member, event, _| {
                    if member == Member::Server {
                        reported.push((ms, line(&event)));
                    }
                });
            }

            let secret = encrypted && service.is_encrypted();
            let name = service.name();
            let up = format!("established {name} encrypted={secret}");
            assert_eq!(reported.iter().filter(|(_, text)| *text == up).count(), 1, "{reported:?}");
            let setup_at = reported.iter().find(|(_, text)| *text == up).unwrap().0;
            assert_eq!(setup_at, 150);
            // The seed must arrive first, except on file connections.
            let messages_at = if service.is_encrypted() { 450 } else { 150 };
            let wanted: Vec<_> = early
                .iter()
                .map(|message| (messages_at, format!("client {name}.{}", message.name())))
                .collect();
            let found: Vec<_> = reported
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
fn a_server_may_send_before_its_seed_is_transmitted() {
    let mut server = server_of(open_config(), Duration::ZERO);
    let bytes = plain_start(Service::Auth);
    let (connect, setup) = bytes.split_at(51);
    let greeting = sample(Service::Auth, Side::Server, 3, 1);
    let refused = server.send(&greeting).unwrap_err().to_string();
    assert_eq!(
        refused,
        "wanted a connection whose service is known, found auth.ClientRegisterReply"
    );
    deliver(&mut server, Side::Client, Duration::ZERO, connect);
    server.send(&greeting).unwrap();
    assert_eq!(server.transmit(), None);
    deliver(&mut server, Side::Client, Duration::ZERO, setup);
    assert_eq!(server.transmit().unwrap(), [1, 2]);
    assert_eq!(server.transmit().unwrap(), greeting.to_bytes().unwrap());
    assert_eq!(server.transmit(), None);
}

#[test]
fn early_messages_are_bounded_and_never_dropped() {
    let big = Message::from(worldwire_uru::message::auth::client::ClientMessage::from(
        worldwire_uru::message::auth::client::PropagateBuffer {
            type_: worldwire_uru::types::ClassIndex(1),
            buffer: worldwire_core::Bytes32::new(vec![7; 1_000_000]),
        },
    ));
    let mut client = client_of(Service::Auth, false, Duration::ZERO);
    let accepted = (0..20).take_while(|_| client.send(&big).is_ok()).count();
    let error = client.send(&big).unwrap_err();
    let SendError::QueueFull(error) = error else { panic!("{error}") };
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "queued bytes", .. }), "{error}");
    sent(&mut client);
    deliver(&mut client, Side::Server, Duration::ZERO, &[1, 2]);
    assert_eq!(sent(&mut client).len(), accepted * big.to_bytes().unwrap().len());

    let mut config = open_config();
    config.bounds.queued_messages = 3;
    let mut server = server_of(config, Duration::ZERO);
    let bytes = plain_start(Service::Auth);
    let (connect, setup) = bytes.split_at(51);
    deliver(&mut server, Side::Client, Duration::ZERO, connect);
    let greeting = sample(Service::Auth, Side::Server, 3, 1);
    let accepted = (0..20).take_while(|_| server.send(&greeting).is_ok()).count();
    assert!((1..=3).contains(&accepted), "{accepted}");
    deliver(&mut server, Side::Client, Duration::ZERO, setup);
    let wanted = 2 + accepted * greeting.to_bytes().unwrap().len();
    assert_eq!(sent(&mut server).len(), wanted);
}

#[test]
fn setup_is_reported_in_order() {
    let mut client = client_of(Service::Game, true, Duration::ZERO);
    let mut server = server_of(open_config(), Duration::ZERO);
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let to_server = sent(&mut client);
    let y = to_server.len() - 67 - 2;
    assert!((1..=64).contains(&y));
    let reported = deliver(&mut server, Side::Client, Duration::ZERO, &to_server);
    let connect = "client connect.CliToGame 0..67".to_owned();
    let setup = format!("client setup.Connect 67..{}", 69 + y);
    let up = "established game encrypted=true".to_owned();
    assert_eq!(reported, [connect.clone(), setup.clone(), up.clone()]);
    let watched = deliver(&mut observer, Side::Client, Duration::ZERO, &to_server);
    assert_eq!(watched, [connect, setup]);
    let to_client = sent(&mut server);
    assert_eq!(to_client, [1, 9, 1, 2, 3, 4, 5, 6, 7]);
    let seed = "server setup.Encrypt 0..9".to_owned();
    let reported = deliver(&mut client, Side::Server, Duration::ZERO, &to_client);
    assert_eq!(reported, [seed.clone(), up.clone()]);
    let watched = deliver(&mut observer, Side::Server, Duration::ZERO, &to_client);
    assert_eq!(watched, [seed, up]);
}

#[test]
fn splits_do_not_change_the_events() {
    for service in Service::ALL {
        for encrypted in [false, true] {
            let streams = conversation(service, encrypted);
            // A key exchange takes time, so only some of the splits after it are tried.
            let step = if encrypted && service.is_encrypted() { 7 } else { 1 };
            for side in Side::BOTH {
                let stream = &streams[side.index()];
                let run = |cut: usize| {
                    let mut end = match side {
                        Side::Client => server_of(open_config(), Duration::ZERO),
                        Side::Server => client_of(service, encrypted, Duration::ZERO),
                    };
                    let mut events = deliver(&mut end, side, Duration::ZERO, &stream[..cut]);
                    events.extend(deliver(&mut end, side, Duration::ZERO, &stream[cut..]));
                    end.end(Duration::ZERO);
                    events.extend(drain(&mut end));
                    events
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
                let mut events = Vec::new();
                for from in Side::BOTH {
                    let stream = &streams[from.index()];
                    let (head, tail) = stream.split_at(if from == side { cut } else { 0 });
                    events.extend(deliver(&mut observer, from, Duration::ZERO, head));
                    events.extend(deliver(&mut observer, from, Duration::ZERO, tail));
                }
                observer.end(Duration::ZERO);
                events.extend(drain(&mut observer));
                events
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

/// The bytes of a message header with this number.
fn head(service: Service, number: u32) -> Vec<u8> {
    if service == Service::File {
        return [8_u32.to_le_bytes(), number.to_le_bytes()].concat();
    }
    u16::try_from(number).unwrap().to_le_bytes().to_vec()
}

#[test]
fn unknown_numbers_and_those_of_the_other_side_are_refused() {
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
                let mut events = deliver(&mut end, side, Duration::ZERO, &setup);
                events.extend(deliver(&mut end, side, Duration::ZERO, &head(service, number)));
                let at = setup.len() + if service == Service::File { 4 } else { 0 };
                let name = own.reserved.iter().find(|row| row.0 == number).map(|row| row.1);
                let (about, found) = match name {
                    Some(name) => (
                        format!("{}.{name}", service.name()),
                        format!("{number} ({name}), which is reserved: its layout is unknown"),
                    ),
                    None => {
                        let about = format!("{} message from the {side}", service.name());
                        (about, number.to_string())
                    }
                };
                let wanted = format!(
                    "{side} fault {about}: fields at byte {at}: \
                     wanted the number of a {side} message, found {found}"
                );
                let tail = [wanted, "closed: closed because of a fault".to_owned()];
                assert_eq!(events[events.len() - 2..], tail);
                assert_eq!(end.poll_timeout(), None);
                let more = ping(service).to_bytes().unwrap();
                assert!(deliver(&mut end, side, Duration::ZERO, &more).is_empty());
            }
        }
    }
}

#[test]
fn a_server_checks_service_build_and_product() {
    let packet = |change: fn(&mut ConnectPacket)| {
        let mut packet = ConnectPacket::new(Service::Auth);
        change(&mut packet);
        let mut writer = Writer::new();
        packet.encode(&mut writer).unwrap();
        writer.into_bytes()
    };
    let reported = |config: ServerConfig, bytes: &[u8]| {
        let mut server = server_of(config, Duration::ZERO);
        let events = deliver(&mut server, Side::Client, Duration::ZERO, bytes);
        assert!(events[0].starts_with("client connect."), "{events:?}");
        events.get(1).cloned()
    };
    let fault = |text: &str| Some(format!("client fault at byte 0: {text}"));
    let same: fn(&mut ConnectPacket) = |_| {};
    let newer: fn(&mut ConnectPacket) = |packet| packet.build_id = BUILD_ID + 1;
    let newest: fn(&mut ConnectPacket) = |packet| packet.build_id = 0;
    assert_eq!(reported(open_config(), &packet(same)), None);
    assert_eq!(
        reported(open_config(), &packet(newer)),
        fault("wanted a build that this server admits, found 919")
    );
    assert_eq!(reported(open_config(), &packet(newest)), None);
    let any = ServerConfig { builds: BuildPolicy::Any, ..open_config() };
    assert_eq!(reported(any, &packet(newer)), None);
    // A file connection sends build 0 and is admitted with any build.
    let mut file = ConnectPacket::new(Service::File);
    file.build_id = 7;
    let mut writer = Writer::new();
    file.encode(&mut writer).unwrap();
    let events = reported(open_config(), writer.as_bytes());
    assert_eq!(events.as_deref(), Some("established file encrypted=false"));

    let product = ServerConfig { product: Some(Uuid::ZERO), ..open_config() };
    assert_eq!(
        reported(product, &packet(same)),
        fault("wanted the shard's product id, found ea489821-6c35-4bd0-9dae-bb17c585e680")
    );
    let game = ServerConfig { services: vec![Service::Game], ..open_config() };
    assert_eq!(
        reported(game, &packet(same)),
        fault("wanted a service that this server offers, found auth")
    );
    let dead: [fn(&mut ConnectPacket); 2] = [
        |packet| packet.data = ConnectData::Csr,
        |packet| {
            packet.data = ConnectData::SimpleNet(SimpleNetData { channel: SimpleNetChannel::Csr })
        },
    ];
    for (dead, name) in dead.into_iter().zip(["CliToCsr (20)", "SimpleNet (21)"]) {
        let wanted = format!("wanted a connection type that this server accepts, found {name}");
        assert_eq!(reported(open_config(), &packet(dead)), fault(&wanted));
    }
    // A missing key is the server's own fault, and the error names it.
    let mut keyless = open_config();
    keyless.keys = KeyRing::new();
    let mut server = server_of(keyless, Duration::ZERO);
    let bytes = start(Service::Auth, &SetupPacket::Connect(vec![5; 64].into()));
    let events = deliver(&mut server, Side::Client, Duration::ZERO, &bytes);
    let wanted = "client fault at byte 51: wanted a key for auth, found none in the configuration";
    assert_eq!(events[2], wanted);
}

#[test]
fn a_client_cannot_connect_to_a_discontinued_service() {
    let mut config = ClientConfig::new(Service::Auth, None);
    config.connect.data = ConnectData::Csr;
    let error = Connection::client(config.into(), [1; 64], Duration::ZERO).unwrap_err();
    assert_eq!(
        error.to_string(),
        "connType: wanted a service that is still in use, found CliToCsr (20)"
    );
    let key = KEYS.public(ServerKind::Auth).cloned();
    let config = ClientConfig::new(Service::Auth, key);
    let error = Connection::client(config.into(), [0; 64], Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("y is 1"), "{error}");
    // The token for reconnecting is sent unchanged.
    let mut config = ClientConfig::new(Service::Auth, None);
    config.connect.data = ConnectData::Auth(TokenData { token: Uuid([9; 16]) });
    let mut client = Connection::client(config.into(), [1; 64], Duration::ZERO).unwrap();
    assert_eq!(sent(&mut client)[35..51], [9; 16]);
}
