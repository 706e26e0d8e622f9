//! A relay between a client and a server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Decision, Event, Forward as _, Inject as _, Input,
    SendError, Sender as _, Timer,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Field, Sampler, Side, Writer};
use worldwire_uru::connect::{ConnectData, ConnectPacket, TokenData};
use worldwire_uru::connection::{
    Connection, Encryption, RelayConfig, RelayKeys, RelayRandom, Unit,
};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};

use crate::ends::{
    Drive as _, KEYS, OTHER_KEYS, client_of, conversation, deliver, drain, line, open_config, ping,
    plain_start, sample, server_of, small_messages,
};

/// The keys of the relay and its client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keys {
    /// The client asks for a plain connection.
    Plain,
    /// The relay has the server's keys.
    Shared,
    /// The client has the relay's keys; the relay also has the server's, which differ.
    Separate,
    /// The client has the relay's keys, and the relay has none of the server's.
    ClientOnly,
    /// The client asks the relay for a plain connection, and the relay has the server's keys.
    ServerOnly,
}

const ALL_KEYS: [Keys; 5] =
    [Keys::Plain, Keys::Shared, Keys::Separate, Keys::ClientOnly, Keys::ServerOnly];

impl Keys {
    fn encrypt_client(self) -> bool {
        matches!(self, Self::Shared | Self::Separate | Self::ClientOnly)
    }

    /// Whether both hops have the same bytes.
    fn are_same(self) -> bool {
        matches!(self, Self::Plain | Self::Shared)
    }
}

pub(crate) fn relay_of(keys: RelayKeys, bounds: Bounds) -> Connection {
    let config = RelayConfig { bounds, ..RelayConfig::new(keys) };
    let random = RelayRandom { secret: [0x77; 64], seed: [9, 8, 7, 6, 5, 4, 3] };
    Connection::relay(Arc::new(config), random, Duration::ZERO)
}

/// A relay after a plain setup.
fn plain_relay(bounds: Bounds) -> Connection {
    let mut relay = relay_of(RelayKeys::Shared(KeyRing::new()), bounds);
    deliver(&mut relay, Side::Client, Duration::ZERO, &plain_start(Service::Auth));
    deliver(&mut relay, Side::Server, Duration::ZERO, &[1, 2]);
    while relay.transmit().is_some() {}
    relay
}

fn pings_of(count: usize) -> Vec<u8> {
    ping(Service::Auth).to_bytes().unwrap().repeat(count)
}

/// The public half of a ring.
fn public(ring: &KeyRing) -> KeyRing {
    let mut keys = KeyRing::new();
    for kind in ServerKind::ALL {
        if let Some(key) = ring.public(kind) {
            keys.insert_public(key.clone());
        }
    }
    keys
}

fn box_of(service: Service, keys: Keys, conditions: Conditions) -> Pair<Connection> {
    let now = Duration::ZERO;
    let client = client_of(service, keys.encrypt_client(), now);
    let mut config = open_config();
    let keys = match keys {
        Keys::Plain => RelayKeys::Shared(KeyRing::new()),
        Keys::Shared => RelayKeys::Shared(KEYS.clone()),
        Keys::Separate | Keys::ServerOnly => {
            config.keys = OTHER_KEYS.clone();
            config.encryption = Encryption::Require;
            RelayKeys::Separate { own: KEYS.clone(), server: public(&OTHER_KEYS) }
        }
        Keys::ClientOnly => {
            config.keys = KeyRing::new();
            RelayKeys::Separate { own: KEYS.clone(), server: KeyRing::new() }
        }
    };
    let relay = relay_of(keys, Bounds::default());
    Pair::relayed(client, relay, server_of(config, now), conditions)
}

fn rough(seed: u64) -> Conditions {
    let latency = Duration::from_millis(30);
    Conditions { latency, segment: 70, seed, ..Conditions::default() }
}

/// The bytes of the messages that a member received.
fn received_by(member: Member, pair: &mut Pair<Connection>) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    pair.settle(|who, event, _| match event {
        Event::Received(received) if who == member && matches!(received.unit, Unit::Message(_)) => {
            events.push(received.bytes.to_vec());
        }
        Event::Fault { .. } | Event::Closed(_) => panic!("{who:?}: {event:?}"),
        _ => {}
    });
    events
}

#[test]
fn unchanged_messages_arrive_as_the_same_bytes() {
    for service in Service::ALL {
        for keys in ALL_KEYS {
            let mut pair = box_of(service, keys, rough(1));
            small_messages(service, Side::Client)
                .iter()
                .for_each(|message| pair.client.send(message).unwrap());
            received_by(Member::Relay, &mut pair);
            for side in Side::BOTH {
                for message in small_messages(service, side) {
                    match side {
                        Side::Client => pair.client.send(&message).unwrap(),
                        Side::Server => pair.server.send(&message).unwrap(),
                    }
                }
            }
            let events = received_by(Member::Client, &mut pair);
            let wanted = small_messages(service, Side::Server);
            let wanted: Vec<_> = wanted.iter().map(|message| message.to_bytes().unwrap()).collect();
            assert_eq!(events, wanted, "{service:?} {keys:?}");
            // Two key exchanges yield two keystreams.
            let same = keys.are_same() || !service.is_encrypted();
            assert_eq!(pair.written == pair.arrived, same, "{service:?} {keys:?}");
            for end in [&pair.client, &pair.server, pair.relay.as_ref().unwrap()] {
                assert!(end.is_established() && !end.is_closed());
                assert_eq!(end.service(), Some(service));
            }
        }
    }
}

/// Ten thousand messages in both directions, a third of them changed, dropped, or accompanied by an
/// injected one.
fn edit_a_lot(service: Service, keys: Keys) {
    let mut pair = box_of(service, keys, rough(7));
    received_by(Member::Relay, &mut pair);
    let samples = Side::BOTH.map(|side| small_messages(service, side));
    let mut sampler = Sampler::new(3);
    let mut pick = |side: Side| {
        let samples = &samples[side.index()];
        let index = sampler.below(samples.len() as u64);
        samples[usize::try_from(index).unwrap()].clone()
    };
    let mut chance = Sampler::new(5);
    // The expected messages, by sender.
    let mut wanted: [VecDeque<Vec<u8>>; 2] = Default::default();
    let (mut relayed, mut arrived) = (0, 0);
    for round in 0..100 {
        for side in Side::BOTH {
            for _ in 0..50 {
                let message = pick(side);
                match side {
                    Side::Client => pair.client.send(&message).unwrap(),
                    Side::Server => pair.server.send(&message).unwrap(),
                }
            }
        }
        pair.settle(|member, event, sender| {
            let received = match event {
                Event::Received(received) => received,
                other => panic!("{member:?}: {other:?}"),
            };
            let side = received.side;
            if member != Member::Relay {
                arrived += 1;
                let bytes = wanted[side.index()].pop_front();
                assert_eq!(bytes.as_deref(), Some(received.bytes), "round {round}");
                return;
            }
            relayed += 1;
            let other = pick(side).to_bytes().unwrap();
            match chance.below(9) {
                0 => sender.forward(Decision::Drop).unwrap(),
                1 => {
                    sender.forward(Decision::instead(&other)).unwrap();
                    wanted[side.index()].push_back(other);
                }
                2 => {
                    // Inject a message ahead of the piece, which has not been forwarded yet, and
                    // one back to the piece's sender.
                    sender.inject(side.other(), &other).unwrap();
                    wanted[side.index()].extend([other, received.bytes.to_vec()]);
                    let back = pick(side.other()).to_bytes().unwrap();
                    sender.inject(side, &back).unwrap();
                    wanted[side.other().index()].push_back(back);
                }
                _ => wanted[side.index()].push_back(received.bytes.to_vec()),
            }
        });
        assert!(wanted.iter().all(VecDeque::is_empty), "round {round}");
    }
    assert_eq!(relayed, 10_000);
    assert!(arrived > 10_000, "{arrived}");
}

#[test]
fn edits_drops_and_injections_leave_both_ends_in_step() {
    for keys in ALL_KEYS {
        edit_a_lot(Service::Auth, keys);
    }
    edit_a_lot(Service::Game, Keys::Separate);
    edit_a_lot(Service::File, Keys::Plain);
}

#[test]
fn a_stream_is_forwarded_unread_after_a_fault() {
    for keys in ALL_KEYS {
        let mut pair = box_of(Service::Auth, keys, rough(2));
        received_by(Member::Relay, &mut pair);
        let now = pair.now;
        let (mut client, mut relay) = (pair.client, pair.relay.take().unwrap());
        // An invalid message, encrypted with the client's keystream.
        client.send(&ping(Service::Auth)).unwrap();
        let mut torn = client.transmit().unwrap();
        torn[0] ^= 4;
        relay.input(now, Side::Client, Input::Bytes(&torn));
        let lines = drain(&mut relay);
        let fault = match keys {
            Keys::Plain | Keys::ServerOnly => "client fault auth.AcctSetEulaVersion",
            _ => "client fault at byte",
        };
        assert!(lines[0].starts_with(fault) && lines.len() == 1, "{lines:?}");
        let passed = relay.poll_transmit(Side::Server).unwrap();
        assert_eq!(passed == torn, keys.are_same(), "{keys:?}");
        let mut server = pair.server;
        let lines = deliver(&mut server, Side::Client, now, &passed);
        assert!(lines[0].contains("auth.AcctSetEulaVersion"), "{lines:?}");
        // The other direction is still read, and later messages are forwarded as well.
        let more = client_bytes(&mut client, &ping(Service::Auth));
        relay.input(now, Side::Client, Input::Bytes(&more));
        assert!(drain(&mut relay).is_empty());
        assert_eq!(relay.poll_transmit(Side::Server).unwrap().len(), more.len());
        let error = relay.sender().inject(Side::Server, &ping(Service::Auth).to_bytes().unwrap());
        assert_eq!(error, Err(SendError::Unread));
        assert!(relay.is_established() && !relay.is_closed());
    }
}

fn client_bytes(client: &mut Connection, message: &Message<'_>) -> Vec<u8> {
    client.send(message).unwrap();
    client.transmit().unwrap()
}

#[test]
fn the_ends_continue_over_a_relay_with_the_wrong_keys() {
    // A shard with the same services and different keys, so the relay cannot decrypt anything.
    let client = client_of(Service::Auth, true, Duration::ZERO);
    let relay = relay_of(RelayKeys::Shared(OTHER_KEYS.clone()), Bounds::default());
    let server = server_of(open_config(), Duration::ZERO);
    let mut pair = Pair::relayed(client, relay, server, rough(4));
    let mut faults = Vec::new();
    let mut events = [Vec::new(), Vec::new()];
    for round in 0..20 {
        for side in Side::BOTH {
            for message in small_messages(Service::Auth, side) {
                match side {
                    Side::Client => pair.client.send(&message).unwrap(),
                    Side::Server if round == 0 => break,
                    Side::Server => pair.server.send(&message).unwrap(),
                }
            }
        }
        pair.settle(|member, event, _| match (member, &event) {
            (Member::Relay, Event::Fault { .. }) => faults.push(line(&event)),
            (Member::Client | Member::Server, Event::Received(received)) => {
                events[received.side.index()].push(received.bytes.to_vec());
            }
            (Member::Client | Member::Server, Event::Fault { .. } | Event::Closed(_)) => {
                panic!("{member:?}: {event:?}")
            }
            _ => {}
        });
    }
    assert!(faults[0].contains("another shard's keys: the auth key"), "{faults:?}");
    assert_eq!(pair.written, pair.arrived);
    let each = small_messages(Service::Auth, Side::Client).len();
    assert_eq!(events[0].len(), 2 + 20 * each);
}

#[test]
fn a_stream_of_another_protocol_passes() {
    let mut relay = relay_of(RelayKeys::Shared(KEYS.clone()), Bounds::default());
    let lines = deliver(&mut relay, Side::Client, Duration::ZERO, b"GET / HTTP/1.1\r\n\r\n");
    assert!(lines[0].contains("connType at byte 0"), "{lines:?}");
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), b"GET / HTTP/1.1\r\n\r\n");
    assert!(deliver(&mut relay, Side::Server, Duration::ZERO, b"HTTP/1.1 404\r\n").is_empty());
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), b"HTTP/1.1 404\r\n");
    assert_eq!(relay.poll_timeout(), None);
    relay.end(Duration::ZERO);
    assert_eq!(drain(&mut relay), ["closed: closed by the other side"]);
}

#[test]
fn each_side_ends_separately() {
    let ping = ping(Service::Auth).to_bytes().unwrap();
    for torn in [false, true] {
        let mut relay = plain_relay(Bounds::default());
        let cut = if torn { &ping[..3] } else { &ping[..] };
        relay.input(Duration::ZERO, Side::Client, Input::Bytes(cut));
        relay.input(Duration::ZERO, Side::Client, Input::End);
        let lines = drain(&mut relay);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].contains("wanted a whole message, found 3 bytes of one"), torn);
        assert_eq!(relay.poll_transmit(Side::Server).unwrap(), cut);
        assert!(deliver(&mut relay, Side::Client, Duration::ZERO, &ping).is_empty());
        // The other direction is still open.
        let reply = sample(Service::Auth, Side::Server, 3, 1).to_bytes().unwrap();
        assert_eq!(deliver(&mut relay, Side::Server, Duration::ZERO, &reply).len(), 1);
        assert_eq!(relay.poll_transmit(Side::Client).unwrap(), reply);
        relay.input(Duration::ZERO, Side::Server, Input::End);
        assert_eq!(drain(&mut relay), ["closed: closed by the other side"]);
    }
    // The client hangs up, the relay forwards the end, and the server and the relay close.
    for keys in ALL_KEYS {
        let mut pair = box_of(Service::Game, keys, rough(6));
        received_by(Member::Relay, &mut pair);
        pair.client.send(&sample(Service::Game, Side::Client, 0, 4)).unwrap();
        pair.client.close();
        let mut closed = Vec::new();
        let mut events = 0;
        pair.settle(|member, event, _| match event {
            Event::Closed(reason) => closed.push((member, reason)),
            Event::Received(_) => events += 1,
            other => panic!("{member:?}: {other:?}"),
        });
        let remote = |member| (member, CloseReason::Remote);
        let local = (Member::Client, CloseReason::Local);
        assert_eq!(closed, [local, remote(Member::Server), remote(Member::Relay)]);
        assert_eq!(events, 2);
    }
}

#[test]
fn a_missing_key_closes_the_connection_and_is_named() {
    let mut gatekeeper = KeyRing::new();
    gatekeeper.insert_private(KEYS.private(ServerKind::Gatekeeper).unwrap().clone());
    let wanted = "wanted a key for auth, found none in the configuration";
    let separate = |own: &KeyRing, server: &KeyRing| RelayKeys::Separate {
        own: own.clone(),
        server: server.clone(),
    };
    for keys in [RelayKeys::Shared(gatekeeper.clone()), separate(&gatekeeper, &KEYS)] {
        let mut relay = relay_of(keys, Bounds::default());
        let streams = conversation(Service::Auth, true);
        let lines = deliver(&mut relay, Side::Client, Duration::ZERO, &streams[0]);
        assert_eq!(lines[2], format!("client fault at byte 51: {wanted}"));
        assert_eq!(lines[3..], ["closed: closed because of a fault"]);
        assert_eq!(relay.poll_timeout(), None);
        // The connect packet was forwarded, but the key exchange was not.
        assert_eq!(relay.poll_transmit(Side::Server).unwrap(), streams[0][..51]);
        assert_eq!(relay.transmit(), None);
        // File connections and plain connections need no key.
        for service in [Service::File, Service::Auth] {
            let mut relay = relay_of(RelayKeys::Shared(KeyRing::new()), Bounds::default());
            for (side, stream) in Side::BOTH.into_iter().zip(conversation(service, false)) {
                deliver(&mut relay, side, Duration::ZERO, &stream);
            }
            assert!(relay.is_established());
        }
    }
    // A relay with separate keys that has answered the client requires a seed.
    let keys = separate(&KEYS, &public(&KEYS));
    for (answer, wanted) in [
        (&[1, 2][..], "wanted a seed of 7 bytes, found no seed"),
        (&[2, 6, 20, 0, 0, 0], "wanted a seed, found the error AuthenticationFailed (20)"),
        (&[7, 2], "setup packet"),
    ] {
        let mut relay = relay_of(keys.clone(), Bounds::default());
        let streams = conversation(Service::Auth, true);
        deliver(&mut relay, Side::Client, Duration::ZERO, &streams[0]);
        let lines = deliver(&mut relay, Side::Server, Duration::ZERO, answer);
        let [.., fault, closed] = &lines[..] else { panic!("{lines:?}") };
        assert!(fault.contains(wanted), "{lines:?}");
        assert_eq!(closed, "closed: closed because of a fault");
        assert_eq!(relay.poll_transmit(Side::Client), None);
    }
}

#[test]
fn a_slow_side_delays_only_its_own_direction() {
    let length = ping(Service::Auth).to_bytes().unwrap().len();
    let bounds = Bounds { queued_messages: 4, ..Bounds::default() };
    let mut relay = plain_relay(bounds);
    let pings = pings_of(50);
    // Four messages are queued; the fifth is read and waits for room.
    assert_eq!(deliver(&mut relay, Side::Client, Duration::ZERO, &pings).len(), 5);
    assert_eq!(relay.queued_bytes(Side::Server), 4 * length);
    let reply = sample(Service::Auth, Side::Server, 3, 1).to_bytes().unwrap();
    assert_eq!(deliver(&mut relay, Side::Server, Duration::ZERO, &reply).len(), 1);
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), reply);
    // An injected message would overtake the waiting piece.
    let error = relay.sender().inject(Side::Server, &pings[..length]).unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 4 (queued messages), found 5");
    let (mut reported, mut written) = (5, Vec::new());
    while written.len() < pings.len() {
        written.extend(relay.poll_transmit(Side::Server).expect("more is to come"));
        reported += drain(&mut relay).len();
        assert!(relay.queued_bytes(Side::Server) <= 4 * length);
    }
    assert_eq!((written, reported), (pings, 50));

    // A small message that would fit does not overtake a waiting piece either.
    let small = &pings_of(1)[..];
    let messages = small_messages(Service::Auth, Side::Client);
    let big = messages.iter().map(|message| message.to_bytes().unwrap());
    let big = big.max_by_key(Vec::len).unwrap();
    let bounds = Bounds { queued_bytes: 2 * big.len() - 1, ..Bounds::default() };
    assert!(big.len() + small.len() < 2 * big.len());
    let mut relay = plain_relay(bounds);
    assert_eq!(deliver(&mut relay, Side::Client, Duration::ZERO, &big.repeat(2)).len(), 2);
    assert!(relay.sender().inject(Side::Server, small).is_err());
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), big);
    assert!(drain(&mut relay).is_empty());
    relay.sender().inject(Side::Server, small).unwrap();
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), big);
}

#[test]
fn a_driver_that_ignores_a_pause_meets_a_limit() {
    let bounds = Bounds { queued_bytes: 200, ..Bounds::default() };
    let mut relay = plain_relay(bounds);
    let pings = pings_of(15);
    let lines = (0..9).map(|_| deliver(&mut relay, Side::Client, Duration::ZERO, &pings));
    let lines = lines.collect::<Vec<_>>().concat();
    let [.., fault, closed] = &lines[..] else { panic!("{lines:?}") };
    assert!(
        fault.contains("wanted at most 200 (bytes waiting while the queue is full), found"),
        "{fault}"
    );
    assert_eq!(closed, "closed: closed because of a fault");
    // This message can never fit.
    let mut relay = relay_of(RelayKeys::Shared(KeyRing::new()), bounds);
    let streams = conversation(Service::File, false);
    deliver(&mut relay, Side::Client, Duration::ZERO, &streams[0][..43]);
    while relay.transmit().is_some() {}
    let big = sample(Service::File, Side::Client, 20, 4).to_bytes().unwrap();
    assert!(big.len() > 200);
    let lines = deliver(&mut relay, Side::Client, Duration::ZERO, &big);
    let wanted = format!("wanted at most 200 (queued bytes), found {}", big.len());
    assert!(lines[1].contains(&wanted), "{lines:?}");
    assert_eq!(lines[2], "closed: closed because of a fault");
}

#[test]
fn a_datagram_is_refused_in_every_role() {
    let keys = Arc::new(KEYS.clone());
    let roles = [
        (client_of(Service::Auth, false, Duration::ZERO), Side::Server),
        (server_of(open_config(), Duration::ZERO), Side::Client),
        (relay_of(RelayKeys::Shared(KEYS.clone()), Bounds::default()), Side::Client),
        (Connection::observer(keys), Side::Client),
    ];
    for (mut end, side) in roles {
        end.input(Duration::ZERO, side, Input::Datagram(&[1, 2, 3]));
        let lines = drain(&mut end);
        let fault = "at byte 0: wanted a TCP stream, found a datagram; Uru runs over TCP only";
        assert_eq!(lines[0], format!("{side} fault {fault}"));
        assert_eq!(end.is_closed(), lines.len() == 2);
    }
}

#[test]
fn decisions_are_checked() {
    let mut relay = relay_of(RelayKeys::Shared(KEYS.clone()), Bounds::default());
    let text = |outcome: Result<(), SendError>| outcome.unwrap_err().to_string();
    assert!(
        text(relay.sender().forward(Decision::Drop)).contains("no piece is waiting for a decision")
    );
    let packet = |service: Service, token: u8| {
        let mut packet = ConnectPacket::new(service);
        packet.build_id = u32::from(token);
        if service == Service::Auth {
            let token = worldwire_uru::types::Uuid([token; 16]);
            packet.data = ConnectData::Auth(TokenData { token });
        }
        let mut writer = Writer::new();
        packet.encode(&mut writer).unwrap();
        writer.into_bytes()
    };
    let stream = plain_start(Service::Auth);
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&stream));
    let (event, sender) = relay.poll().unwrap();
    assert!(matches!(event, Event::Received(_)));
    assert!(text(sender.forward(Decision::Drop)).contains("a connect packet of this service must"));
    let other = packet(Service::Game, 1);
    let error = text(sender.forward(Decision::instead(&other)));
    assert_eq!(error, "wanted a connect packet of the same service, found CliToGame (11)");
    assert!(sender.forward(Decision::instead(&stream)).is_err());
    let changed = packet(Service::Auth, 9);
    sender.forward(Decision::instead(&changed)).unwrap();
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), changed);
    let (_, sender) = relay.poll().unwrap();
    for decision in [Decision::Drop, Decision::instead(&[0, 2])] {
        assert!(
            text(sender.forward(decision)).contains("a setup packet must be forwarded unchanged")
        );
    }
    let ping = ping(Service::Auth).to_bytes().unwrap();
    let early = text(sender.inject(Side::Server, &ping));
    assert!(early.starts_with("setup is not complete"), "{early}");
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), [0, 2]);
    // The server's packet is forwarded before messages injected after it.
    relay.input(Duration::ZERO, Side::Server, Input::Bytes(&[1, 2]));
    let (_, sender) = relay.poll().unwrap();
    assert!(sender.inject(Side::Server, &ping).is_err());
    let (event, sender) = relay.poll().unwrap();
    assert_eq!(line(&event), "established auth encrypted=false");
    sender.inject(Side::Server, &ping).unwrap();
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), [1, 2]);
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), ping);
    // The same holds for the connect packet of a file connection, its only setup packet.
    let mut file = relay_of(RelayKeys::Shared(KeyRing::new()), Bounds::default());
    file.input(Duration::ZERO, Side::Client, Input::Bytes(&plain_start(Service::File)));
    let first = crate::ends::ping(Service::File).to_bytes().unwrap();
    let (_, sender) = file.poll().unwrap();
    assert!(sender.inject(Side::Server, &first).is_err());
    let (_, sender) = file.poll().unwrap();
    sender.inject(Side::Server, &first).unwrap();
    assert_eq!(file.poll_transmit(Side::Server).unwrap(), plain_start(Service::File));
    assert_eq!(file.poll_transmit(Side::Server).unwrap(), first);
    // A message for the other direction, a truncated one, and two at once are refused.
    relay.input(Duration::ZERO, Side::Client, Input::Bytes(&ping));
    let (_, sender) = relay.poll().unwrap();
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    let wrong = [reply.to_bytes().unwrap(), ping[1..].to_vec(), ping.repeat(2), Vec::new()];
    for wrong in &wrong[1..] {
        let error = text(sender.forward(Decision::instead(wrong)));
        assert!(error.contains("one whole message from the client on auth"), "{error}");
        assert!(sender.inject(Side::Server, wrong).is_err());
    }
    assert!(sender.inject(Side::Client, &ping[..4]).is_err());
    let error = sender.send(&reply).unwrap_err().to_string();
    assert_eq!(error, "only a client or a server can do this");
    // A refused decision leaves the piece unchanged.
    assert_eq!(relay.poll_transmit(Side::Server).unwrap(), ping);
    relay.close();
    assert!(relay.sender().inject(Side::Server, &ping).is_err());
    let mut client = client_of(Service::Auth, false, Duration::ZERO);
    assert!(text(client.sender().forward(Decision::AsIs)).contains("only a relay can do this"));
}

#[test]
fn setup_over_a_relay_has_a_deadline() {
    let mut relay = relay_of(RelayKeys::Shared(KEYS.clone()), Bounds::default());
    let deadline = relay.poll_timeout().unwrap();
    assert_eq!(deadline, Duration::from_secs(20));
    deliver(&mut relay, Side::Client, Duration::ZERO, &plain_start(Service::Auth)[..50]);
    relay.timeout(deadline);
    let wanted = format!("closed: {}", CloseReason::Timeout(Timer::Setup));
    assert_eq!(drain(&mut relay), [wanted]);
    // Once the connection is established, the relay leaves time-outs to the ends.
    let mut relay = relay_of(RelayKeys::Shared(KEYS.clone()), Bounds::default());
    deliver(&mut relay, Side::Client, Duration::ZERO, &plain_start(Service::File));
    assert_eq!(relay.poll_timeout(), None);
}

#[test]
fn a_relay_with_separate_keys_makes_both_setup_packets() {
    let keys = RelayKeys::Separate { own: KEYS.clone(), server: public(&OTHER_KEYS) };
    let mut relay = relay_of(keys, Bounds::default());
    let streams = conversation(Service::Auth, true);
    deliver(&mut relay, Side::Client, Duration::ZERO, &streams[0]);
    let connect = relay.poll_transmit(Side::Server).unwrap();
    assert_eq!(connect, streams[0][..51]);
    let setup = relay.poll_transmit(Side::Server).unwrap();
    assert_eq!(setup[0], 0);
    assert_ne!(setup, streams[0][51..51 + setup.len()]);
    let lines = deliver(&mut relay, Side::Server, Duration::ZERO, &[1, 9, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(lines[..2], ["server setup.Encrypt 0..9", "established auth encrypted=true"]);
    assert_eq!(relay.poll_transmit(Side::Client).unwrap(), [1, 9, 9, 8, 7, 6, 5, 4, 3]);
}
