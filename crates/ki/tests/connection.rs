//! Two machines in a box, in virtual time, and an observer beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::{Sampler, Side};
use worldwire_ki::connection::{
    ClientConfig, CloseReason, Connection, Event, Life, ObserverKeys, ServerConfig, SessionIds,
    Timer, Unit, UnknownControl,
};
use worldwire_ki::control::{Control, KeepAlive, Opcode, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::{Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::Frame;
use worldwire_ki::message::RawMessage;

const EPOCH: Duration = Duration::from_millis(1_700_000_000_321);
const SECOND: Duration = Duration::from_secs(1);

fn message(service: u8, order: u8, payload: &[u8]) -> RawMessage<'static> {
    RawMessage { service, order, payload: payload.to_vec().into() }
}

/// One line for an event.
fn line(event: &Event<'_>) -> String {
    match event {
        Event::Received(received) => match received.unit {
            Unit::Message { service, order } => {
                format!("{} {service}/{order} {:02x?}", received.side, received.payload())
            }
            Unit::Control(_) => {
                format!("{} {:?}", received.side, received.control().unwrap().unwrap())
            }
            Unit::Empty => format!("{} empty", received.side),
        },
        Event::Ignored { message, why } => {
            format!("ignored {:02x?} because {why:?}", message.payload())
        }
        Event::Fault { side, error } => format!("fault of the {side}: {error}"),
        other => format!("{other:?}"),
    }
}

fn lines(connection: &mut Connection) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = connection.poll_event() {
        lines.push(line(&event));
    }
    lines
}

/// Only the payloads of delivered messages.
fn payloads(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some(event) = connection.poll_event() {
        if let Event::Received(received) = event
            && matches!(received.unit, Unit::Message { .. })
        {
            payloads.push(received.payload().to_vec());
        }
    }
    payloads
}

/// A client, a server, and nothing between them.
struct Pair {
    client: Connection,
    server: Connection,
    now: Duration,
    heard: [Vec<String>; 2],
}

impl Pair {
    fn new(client: ClientConfig, server: ServerConfig) -> Self {
        let now = Duration::ZERO;
        Self {
            client: Connection::client(client, now),
            server: Connection::server(server.into(), 4660, now),
            now,
            heard: Default::default(),
        }
    }

    fn established() -> Self {
        let mut pair = Self::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
        pair.pump();
        assert!(pair.client.is_established() && pair.server.is_established());
        pair.heard = Default::default();
        pair
    }

    /// Carries bytes to and fro until both are silent.
    fn pump(&mut self) {
        loop {
            self.heard[0].extend(lines(&mut self.client));
            self.heard[1].extend(lines(&mut self.server));
            let mut silent = true;
            while let Some(bytes) = self.server.poll_transmit() {
                self.client.receive(Side::Server, self.now, &bytes);
                silent = false;
            }
            while let Some(bytes) = self.client.poll_transmit() {
                self.server.receive(Side::Client, self.now, &bytes);
                silent = false;
            }
            if silent {
                return;
            }
        }
    }

    /// Lets time pass, deadline by deadline.
    fn wait(&mut self, until: Duration) -> usize {
        let mut deadlines = 0;
        loop {
            let next = [self.client.poll_timeout(), self.server.poll_timeout()];
            match next.into_iter().flatten().min() {
                Some(at) if at <= until => {
                    self.now = at;
                    deadlines += 1;
                }
                _ => return deadlines,
            }
            self.client.timeout(self.now);
            self.server.timeout(self.now);
            self.pump();
            if self.client.is_closed() || self.server.is_closed() {
                return deadlines;
            }
        }
    }
}

#[test]
fn a_session_is_offered_and_accepted() {
    let mut pair = Pair::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
    pair.client.send(&message(1, 1, b"early")).unwrap();
    assert!(!pair.server.is_established());
    assert_eq!(pair.server.access_level(), 0);
    pair.pump();
    assert_eq!(pair.server.access_level(), 1);
    assert_eq!(pair.client.salt(), pair.server.salt());
    insta::assert_snapshot!(pair.heard[0].join("\n"), @r"
    server SessionOffer(SessionOffer { session_id: 4660, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 4660, previous: None }
    ");
    insta::assert_snapshot!(pair.heard[1].join("\n"), @r"
    client SessionAccept(SessionAccept { reserved: 0, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, session_id: 4660, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 4660, previous: None }
    client 1/1 [65, 61, 72, 6c, 79]
    ");
}

#[test]
fn a_session_survives_a_day() {
    let mut pair = Pair::established();
    let day = Duration::from_secs(24 * 60 * 60);
    let deadlines = pair.wait(day);
    // The client asks every 10 seconds, the server every 60; six of the client's coincide.
    assert_eq!(deadlines, 24 * 60 * 6);
    assert!(!pair.client.is_closed() && !pair.server.is_closed());
    let asked =
        |heard: &[String], what: &str| heard.iter().filter(|line| line.contains(what)).count();
    assert_eq!(asked(&pair.heard[1], "client KeepAlive(Client"), 24 * 60 * 6);
    assert_eq!(asked(&pair.heard[0], "server KeepAliveRsp"), 24 * 60 * 6);
    assert_eq!(asked(&pair.heard[0], "server KeepAlive(Server"), 24 * 60);
    assert_eq!(asked(&pair.heard[1], "client KeepAliveRsp"), 24 * 60);
    let last = pair.heard[0].iter().rfind(|line| line.contains("KeepAlive(Server")).unwrap();
    insta::assert_snapshot!(last, @"server KeepAlive(Server { session_id: 0, uptime_millis: 86400000 })");
}

/// A server that answers, or not, the n-th keep-alive of a client; returns when the client dies.
fn client_dies(unanswered: Option<u32>, late: Duration) -> Option<Duration> {
    let mut pair = Pair::established();
    let mut asked = 0;
    while let Some(at) = pair.client.poll_timeout().filter(|at| *at < Duration::from_secs(600)) {
        pair.client.timeout(at);
        while let Some(event) = pair.client.poll_event() {
            if let Event::Closed(reason) = event {
                assert_eq!(reason, CloseReason::Timeout(Timer::KeepAlive));
                return Some(at);
            }
        }
        while let Some(bytes) = pair.client.poll_transmit() {
            asked += 1;
            pair.server.receive(Side::Client, at, &bytes);
            lines(&mut pair.server);
            let answer = pair.server.poll_transmit().unwrap();
            if unanswered != Some(asked) {
                pair.client.receive(Side::Server, at + late, &answer);
            }
            lines(&mut pair.client);
        }
    }
    None
}

#[test]
fn a_session_dies_when_an_answer_is_missing_and_only_then() {
    assert_eq!(client_dies(None, Duration::ZERO), None);
    assert_eq!(client_dies(None, 10 * SECOND - Duration::from_nanos(1)), None);
    for missing in [1, 2, 7, 58] {
        // The question goes out at 10 s, 20 s, ...; the next deadline finds it unanswered.
        let at = SECOND * 10 * (missing + 1);
        assert_eq!(client_dies(Some(missing), Duration::ZERO), Some(at));
    }
}

#[test]
fn a_server_notices_a_dead_client() {
    let mut pair = Pair::established();
    let mut now = Duration::ZERO;
    while let Some(at) = pair.server.poll_timeout() {
        now = at;
        pair.server.timeout(now);
    }
    assert_eq!(now, 120 * SECOND);
    assert_eq!(lines(&mut pair.server), ["Closed(Timeout(KeepAlive))"]);
}

#[test]
fn any_traffic_is_life_when_that_is_wanted() {
    for life in [Life::Answers, Life::AnyTraffic] {
        let mut config = ServerConfig::new(EPOCH);
        config.common.life = life;
        let mut pair = Pair::new(ClientConfig::new(EPOCH), config);
        pair.pump();
        let ping = Frame::message(message(1, 1, b"")).to_bytes().unwrap();
        // Nothing is answered, but every 50 seconds something is said.
        let mut closed = false;
        for round in 1..10 {
            let now = 50 * SECOND * round;
            while let Some(at) = pair.server.poll_timeout().filter(|at| *at <= now) {
                pair.server.timeout(at);
            }
            pair.server.receive(Side::Client, now, &ping);
            closed |= lines(&mut pair.server).iter().any(|line| line.starts_with("Closed"));
        }
        assert_eq!(closed, life == Life::Answers);
    }
}

#[test]
fn a_stale_session_is_refreshed_and_the_last_message_comes_once() {
    let mut ids = SessionIds::new();
    let mut pair = Pair::established();
    pair.client.send(&message(5, 1, b"one")).unwrap();
    pair.pump();
    let next = ids.allocate().unwrap();
    pair.server.refresh(next).unwrap();
    assert!(pair.server.is_established(), "the socket stays");
    pair.client.send(&message(5, 2, b"two")).unwrap();
    pair.pump();
    insta::assert_snapshot!(pair.heard[1].join("\n"), @r"
    client 5/1 [6f, 6e, 65]
    ignored [74, 77, 6f] because Stale
    client SessionAccept(SessionAccept { reserved: 0, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, session_id: 1, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 1, previous: Some(4660) }
    client 5/2 [74, 77, 6f]
    ");
    assert_eq!(
        pair.heard[0].last().unwrap(),
        "Established { session_id: 1, previous: Some(4660) }"
    );
    assert_eq!((pair.client.session_id(), pair.server.session_id()), (Some(1), Some(1)));
    // And it lives on.
    pair.wait(Duration::from_secs(3600));
    assert!(!pair.server.is_closed());
}

#[test]
fn a_message_that_was_answered_is_not_sent_again() {
    let mut pair = Pair::established();
    pair.client.send(&message(5, 1, b"one")).unwrap();
    pair.pump();
    pair.server.send(&message(5, 9, b"answer")).unwrap();
    pair.pump();
    pair.heard = Default::default();
    // An offer out of the blue.
    let mut other = Connection::server(ServerConfig::new(EPOCH).into(), 7, pair.now);
    let offer = other.poll_transmit().unwrap();
    pair.client.receive(Side::Server, pair.now, &offer);
    lines(&mut pair.client);
    let accept = pair.client.poll_transmit().unwrap();
    assert_eq!(pair.client.poll_transmit(), None, "only the accept");
    other.receive(Side::Client, pair.now, &accept);
    assert!(lines(&mut other).contains(&"Established { session_id: 7, previous: None }".into()));
}

#[test]
fn all_ids_live_and_the_next_is_refused() {
    let mut ids = SessionIds::new();
    let config = Arc::new(ServerConfig::new(EPOCH));
    let mut sessions: Vec<Connection> = (0..65_535)
        .map(|_| Connection::server(Arc::clone(&config), ids.allocate().unwrap(), Duration::ZERO))
        .collect();
    let mut seen: Vec<u16> = sessions.iter().filter_map(Connection::session_id).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(1..=u16::MAX));
    for session in &mut sessions {
        let mut client = Connection::client(ClientConfig::new(EPOCH), Duration::ZERO);
        client.receive(Side::Server, Duration::ZERO, &session.poll_transmit().unwrap());
        while client.poll_event().is_some() {}
        session.receive(Side::Client, Duration::ZERO, &client.poll_transmit().unwrap());
        while session.poll_event().is_some() {}
        assert!(session.is_established());
    }
    let refused = ids.allocate().unwrap_err();
    assert_eq!(refused.to_string(), "wanted at most 65535 (live sessions), found 65536");
    ids.release(sessions[4711].session_id().unwrap());
    assert_eq!(ids.allocate().ok(), sessions[4711].session_id());
}

#[test]
fn what_comes_before_the_accept_waits_or_is_ignored() {
    let ping = Frame::message(message(1, 1, b"x")).to_bytes().unwrap();
    let start = |config: ServerConfig| {
        let mut server = Connection::server(config.into(), 9, Duration::ZERO);
        let mut client = Connection::client(ClientConfig::new(EPOCH), Duration::ZERO);
        client.receive(Side::Server, Duration::ZERO, &server.poll_transmit().unwrap());
        while client.poll_event().is_some() {}
        (server, client.poll_transmit().unwrap())
    };
    let (mut server, accept) = start(ServerConfig::new(EPOCH));
    for _ in 0..256 {
        server.receive(Side::Client, Duration::ZERO, &ping);
    }
    assert_eq!(lines(&mut server), Vec::<String>::new());
    server.receive(Side::Client, Duration::ZERO, &accept);
    assert_eq!(payloads(&mut server).len(), 256);

    let (mut server, _) = start(ServerConfig::new(EPOCH));
    for _ in 0..257 {
        server.receive(Side::Client, Duration::ZERO, &ping);
    }
    insta::assert_snapshot!(lines(&mut server).join("\n"), @r"
    fault of the client: at byte 3584: wanted at most 256 (messages before the session is accepted), found 257
    Closed(Fault)
    ");

    let mut config = ServerConfig::new(EPOCH);
    config.keep_early = false;
    let (mut server, accept) = start(config);
    server.receive(Side::Client, Duration::ZERO, &ping);
    assert_eq!(lines(&mut server), ["ignored [78] because Early"]);
    server.receive(Side::Client, Duration::ZERO, &accept);
    assert!(payloads(&mut server).is_empty());
}

#[test]
fn rules_are_kept() {
    let fresh = || {
        let mut server = Connection::server(ServerConfig::new(EPOCH).into(), 9, Duration::ZERO);
        server.poll_transmit().unwrap();
        server
    };
    let accept = |id| {
        Frame::control(Control::SessionAccept(SessionAccept {
            reserved: 0,
            time: SessionTime::new(0, 0),
            session_id: id,
            crypto: None,
        }))
        .to_bytes()
        .unwrap()
    };
    let said = |mut server: Connection, bytes: &[u8]| {
        server.receive(Side::Client, Duration::ZERO, bytes);
        lines(&mut server).into_iter().rev().take(2).rev().collect::<Vec<_>>().join("; ")
    };
    // Another session's accept, a second accept, an offer of a client.
    insta::assert_snapshot!(said(fresh(), &accept(8)), @"fault of the client: sessionId at byte 0: wanted 9, found 8; Closed(Fault)");
    assert!(said(fresh(), &[accept(9), accept(9)].concat()).starts_with("Established"));
    insta::assert_snapshot!(said(fresh(), &[accept(9), accept(8)].concat()), @"fault of the client: at byte 25: wanted no accept without an offer, found SessionAccept; Closed(Fault)");
    let offer = Connection::server(ServerConfig::new(EPOCH).into(), 1, Duration::ZERO);
    let offer = { offer }.poll_transmit().unwrap();
    insta::assert_snapshot!(said(fresh(), &offer), @"fault of the client: at byte 0: wanted what a client sends, found SessionOffer; Closed(Fault)");
    // No frame, a frame that is too long, a body that is too short.
    insta::assert_snapshot!(said(fresh(), b"GET / HTTP"), @"fault of the client: magic at byte 0: wanted a frame, which begins with 0d f0, found 47 45; Closed(Fault)");
    insta::assert_snapshot!(said(fresh(), &[0x0d, 0xf0, 0, 0x80, 1, 0, 0x40, 0]), @"fault of the client: length at byte 8: wanted at most 4194304 (frame bytes), found 4194305; Closed(Fault)");
    insta::assert_snapshot!(said(fresh(), &[0x0d, 0xf0, 3, 0]), @"fault of the client: length at byte 4: wanted a body of at least 4 bytes, found 3; Closed(Fault)");
    insta::assert_snapshot!(said(fresh(), &[0x0d, 0xf0, 8, 0, 0, 0, 0, 0, 1, 1, 3, 0]), @"fault of the client: messages[0].length at byte 10: wanted a length of at least 4, found 3; Closed(Fault)");
    // No accept in time.
    let mut server = fresh();
    assert_eq!(server.poll_timeout(), Some(15 * SECOND));
    server.timeout(15 * SECOND);
    assert_eq!(lines(&mut server), ["Closed(Timeout(Accept))"]);
    assert!(server.send(&message(1, 1, b"")).is_err());
    let mut client = Connection::client(ClientConfig::new(EPOCH), Duration::ZERO);
    client.timeout(15 * SECOND);
    assert_eq!(lines(&mut client), ["Closed(Timeout(Offer))"]);
}

#[test]
fn unknown_control_messages_are_ignored_or_not() {
    let hello = Control::Other { opcode: Opcode(7), body: (&b"abc"[..]).into() };
    let hello = Frame { trailer: None, ..Frame::control(hello) }.to_bytes().unwrap();
    for (rule, wanted) in [(UnknownControl::Ignore, 1), (UnknownControl::Close, 3)] {
        let config = ServerConfig { unknown_control: rule, ..ServerConfig::new(EPOCH) };
        let mut server = Connection::server(config.into(), 9, Duration::ZERO);
        server.receive(Side::Client, Duration::ZERO, &hello);
        let lines = lines(&mut server);
        assert_eq!(lines.len(), wanted, "{lines:?}");
    }
}

/// What both sides of a session say, in order: sealed pieces of a stream.
fn session(sampler: &mut Sampler) -> Vec<(Side, Vec<u8>)> {
    let mut pair = Pair::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
    let mut said = Vec::new();
    for round in 0..20u32 {
        let now = SECOND * 7 * round;
        pair.now = now;
        pair.client.timeout(now);
        pair.server.timeout(now);
        for connection in [&mut pair.client, &mut pair.server] {
            let length = usize::try_from(sampler.below(40)).unwrap();
            let payload = sampler.bytes(length);
            connection.send(&message(5, 1 + (round % 200) as u8, &payload)).unwrap();
        }
        if round == 9 {
            pair.server.send(&message(7, 9, &sampler.bytes(40_000))).unwrap();
        }
        for _ in 0..3 {
            while let Some(bytes) = pair.server.poll_transmit() {
                pair.client.receive(Side::Server, now, &bytes);
                said.push((Side::Server, bytes));
            }
            lines(&mut pair.client);
            while let Some(bytes) = pair.client.poll_transmit() {
                pair.server.receive(Side::Client, now, &bytes);
                said.push((Side::Client, bytes));
            }
            lines(&mut pair.server);
        }
    }
    said
}

fn observe(said: &[(Side, Vec<u8>)], cut: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> [Vec<String>; 2] {
    let mut observer = Connection::observer(Arc::default());
    let mut heard = [Vec::new(), Vec::new()];
    let mut read = [0, 0];
    for (side, bytes) in said {
        for piece in cut(bytes) {
            observer.receive(*side, Duration::ZERO, &piece);
            while let Some(event) = observer.poll_event() {
                let Event::Received(received) = &event else {
                    panic!("{}", line(&event));
                };
                let index = received.side.index();
                // The pieces tile the stream.
                assert_eq!(received.range.start, read[index]);
                assert_eq!(received.range.end - received.range.start, received.bytes.len() as u64);
                read[index] = received.range.end;
                heard[index].push(line(&event));
            }
        }
    }
    for (side, read) in Side::BOTH.into_iter().zip(read) {
        let total: usize = said.iter().filter(|(by, _)| *by == side).map(|(_, b)| b.len()).sum();
        assert_eq!(read, total as u64);
    }
    observer.end(Duration::ZERO);
    assert_eq!(lines(&mut observer), ["Closed(Remote)"]);
    heard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn cuts_change_nothing(seed in any::<u64>(), size in 1..300usize) {
        let said = session(&mut Sampler::new(seed));
        let whole = observe(&said, |bytes| vec![bytes.to_vec()]);
        let cut = observe(&said, |bytes| bytes.chunks(size).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(&whole, &cut);
        let bytes = observe(&said, |bytes| bytes.chunks(1).map(<[u8]>::to_vec).collect());
        prop_assert_eq!(&whole, &bytes);
    }

    #[test]
    fn gaps_lose_only_what_they_touch(seed in any::<u64>(), lost in 1..40usize) {
        let said = session(&mut Sampler::new(seed));
        prop_assume!(lost + 1 < said.len());
        let mut observer = Connection::observer(Arc::default());
        let mut heard = Vec::new();
        for (index, (side, bytes)) in said.iter().enumerate() {
            if index == lost {
                observer.gap(*side, Duration::ZERO, bytes.len() as u64);
            } else {
                observer.receive(*side, Duration::ZERO, bytes);
            }
            heard.extend(lines(&mut observer));
        }
        let all = {
            let mut observer = Connection::observer(Arc::default());
            let mut all = Vec::new();
            for (index, (side, bytes)) in said.iter().enumerate() {
                observer.receive(*side, Duration::ZERO, bytes);
                let told = lines(&mut observer);
                if index != lost {
                    all.extend(told);
                }
            }
            all
        };
        let notes = |line: &&String| line.starts_with("Gap") || line.starts_with("Resync");
        prop_assert!(heard.iter().filter(notes).count() >= 1);
        let messages: Vec<&String> = heard.iter().filter(|line| !notes(line)).collect();
        prop_assert_eq!(messages, all.iter().collect::<Vec<_>>());
    }

    #[test]
    fn datagrams_are_frames(seed in any::<u64>()) {
        let said = session(&mut Sampler::new(seed));
        let mut stream = Connection::observer(Arc::default());
        let mut datagrams = Connection::observer(Arc::default());
        for (side, bytes) in &said {
            stream.receive(*side, Duration::ZERO, bytes);
            datagrams.datagram(*side, Duration::ZERO, bytes);
            prop_assert_eq!(lines(&mut stream), lines(&mut datagrams));
        }
    }
}

#[test]
fn a_torn_datagram_hurts_nobody_else() {
    let good = Frame::message(message(1, 1, b"good")).to_bytes().unwrap();
    let mut observer = Connection::observer(Arc::default());
    for bytes in [&good[..], &good[..9], b"junk", &good[..]] {
        observer.datagram(Side::Client, Duration::ZERO, bytes);
    }
    insta::assert_snapshot!(lines(&mut observer).join("\n"), @r"
    client 1/1 [67, 6f, 6f, 64]
    fault of the client: at byte 17: wanted a datagram of whole frames, found 9 bytes of one
    fault of the client: magic at byte 26: wanted a frame, which begins with 0d f0, found 6a 75
    client 1/1 [67, 6f, 6f, 64]
    ");
}

#[test]
fn encrypted_streams_need_a_key() {
    let key = StreamKey { key: [3; 16], nonce: [4; 16] };
    let handshake = CryptoBlock(vec![1; 257].into());
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(handshake),
    }));
    let accept = accept.to_bytes().unwrap();
    let alive = Control::KeepAlive(KeepAlive::Client { session_id: 77, millis: 1, minutes: 2 });
    let mut frames = Frame::control(alive).to_bytes().unwrap();
    for round in 0..300u32 {
        let text = format!("message {round}");
        let frame = Frame::message(message(5, 6, text.as_bytes()));
        frames.extend_from_slice(&frame.to_bytes().unwrap());
    }
    let mut sealed = Vec::new();
    Sealer::new(&key, Side::Client).seal(&frames, &mut sealed, || [9; 16]);
    assert_eq!(sealed.len(), frames.len() + 32, "one chunk is full");

    let read = |keys: Vec<(Option<u16>, StreamKey)>, size: usize| {
        let mut observer = Connection::observer(Arc::new(ObserverKeys { streams: keys }));
        let offer = Connection::server(ServerConfig::new(EPOCH).into(), 77, Duration::ZERO);
        observer.receive(Side::Server, Duration::ZERO, &{ offer }.poll_transmit().unwrap());
        observer.receive(Side::Client, Duration::ZERO, &accept);
        lines(&mut observer);
        let mut heard = Vec::new();
        let mut end = 0;
        for piece in sealed.chunks(size) {
            observer.receive(Side::Client, Duration::ZERO, piece);
            while let Some(event) = observer.poll_event() {
                if let Event::Received(received) = &event {
                    assert!(received.encrypted);
                    assert!(end == 0 || received.range.start == end);
                    end = received.range.end;
                }
                heard.push(line(&event));
            }
        }
        (heard, end)
    };
    let total = (accept.len() + sealed.len()) as u64;
    for size in [1, 100, 5000, 10_000] {
        let (heard, end) =
            read(vec![(Some(1), StreamKey { key: [1; 16], ..key }), (Some(77), key)], size);
        assert_eq!((heard.len(), end), (301, total));
        assert_eq!(heard[300], "client 5/6 [6d, 65, 73, 73, 61, 67, 65, 20, 32, 39, 39]");
    }
    for keys in [vec![], vec![(Some(78), key)], vec![(None, StreamKey { key: [1; 16], ..key })]] {
        let (heard, _) = read(keys, 1000);
        assert_eq!(heard, ["KeysNeeded { side: Client, session_id: Some(77) }"]);
    }
}
