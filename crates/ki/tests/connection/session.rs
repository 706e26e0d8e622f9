//! Sessions from the offer to the end.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_ki::connection::{
    ClientConfig, CloseReason, Connection, Event, Life, ServerConfig, SessionIds, Timer,
};
use worldwire_ki::frame::Frame;

use crate::pair::{EPOCH, Pair, SECOND, lines, message, payloads};

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
