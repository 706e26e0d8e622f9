//! Sessions, from the offer to the end.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{CloseReason, Connection as _, Event, Input, Timer};
use worldwire_ki::connection::{ClientConfig, Connection, Life, ServerConfig, SessionIds};
use worldwire_ki::frame::Frame;

use crate::support::{EPOCH, SECOND, Talk, lines, message, payloads};

#[test]
fn a_session_is_offered_and_accepted() {
    let mut talk = Talk::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
    talk.client().send(&message(1, 1, b"early")).unwrap();
    assert!(!talk.server().is_established());
    assert_eq!(talk.server().access_level(), 0);
    talk.settle();
    assert_eq!(talk.server().access_level(), 1);
    assert_eq!(talk.client().salt(), talk.server().salt());
    insta::assert_snapshot!(talk.events[0].join("\n"), @r"
    server SessionOffer(SessionOffer { session_id: 4660, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 4660, previous: None }
    ");
    insta::assert_snapshot!(talk.events[1].join("\n"), @r"
    client SessionAccept(SessionAccept { reserved: 0, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, session_id: 4660, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 4660, previous: None }
    client 1/1 [65, 61, 72, 6c, 79]
    ");
}

#[test]
fn a_session_survives_a_day() {
    let mut talk = Talk::established();
    let day = Duration::from_secs(24 * 60 * 60);
    let deadlines = talk.wait(day);
    // The client sends a keep-alive every 10 seconds, and the server every 60.
    assert_eq!(deadlines, 24 * 60 * 6);
    assert!(!talk.client().is_closed() && !talk.server().is_closed());
    let asked =
        |events: &[String], what: &str| events.iter().filter(|line| line.contains(what)).count();
    assert_eq!(asked(&talk.events[1], "client KeepAlive(Client"), 24 * 60 * 6);
    assert_eq!(asked(&talk.events[0], "server KeepAliveRsp"), 24 * 60 * 6);
    assert_eq!(asked(&talk.events[0], "server KeepAlive(Server"), 24 * 60);
    assert_eq!(asked(&talk.events[1], "client KeepAliveRsp"), 24 * 60);
    let last = talk.events[0].iter().rfind(|line| line.contains("KeepAlive(Server")).unwrap();
    insta::assert_snapshot!(last, @"server KeepAlive(Server { session_id: 0, uptime_millis: 86400000 })");
}

/// Runs a server that does not respond to the client's n-th keep-alive, if given. Returns the time
/// at which the client closes.
fn client_dies(unanswered: Option<u32>, late: Duration) -> Option<Duration> {
    let mut talk = Talk::established();
    let mut asked = 0;
    while let Some(at) = talk.client().poll_timeout().filter(|at| *at < Duration::from_secs(600)) {
        talk.client().timeout(at);
        while let Some(event) = talk.client().poll_event() {
            if let Event::Closed(reason) = event {
                assert_eq!(reason, CloseReason::Timeout(Timer::KeepAlive));
                return Some(at);
            }
        }
        while let Some(bytes) = talk.client().poll_transmit(Side::Server) {
            asked += 1;
            talk.server().input(at, Side::Client, Input::Bytes(&bytes));
            lines(talk.server());
            let answer = talk.server().poll_transmit(Side::Client).unwrap();
            if unanswered != Some(asked) {
                talk.client().input(at + late, Side::Server, Input::Bytes(&answer));
            }
            lines(talk.client());
        }
    }
    None
}

#[test]
fn a_session_dies_when_an_answer_is_missing_and_only_then() {
    assert_eq!(client_dies(None, Duration::ZERO), None);
    assert_eq!(client_dies(None, 10 * SECOND - Duration::from_nanos(1)), None);
    for missing in [1, 2, 7, 58] {
        // Keep-alives are sent at 10 s, 20 s, and so on. A missing response is noticed at the next
        // deadline.
        let at = SECOND * 10 * (missing + 1);
        assert_eq!(client_dies(Some(missing), Duration::ZERO), Some(at));
    }
}

#[test]
fn a_server_notices_a_dead_client() {
    let mut talk = Talk::established();
    let mut now = Duration::ZERO;
    while let Some(at) = talk.server().poll_timeout() {
        now = at;
        talk.server().timeout(now);
    }
    assert_eq!(now, 120 * SECOND);
    assert_eq!(lines(talk.server()), ["Closed(Timeout(KeepAlive))"]);
}

#[test]
fn any_traffic_counts_as_life_if_configured() {
    for life in [Life::Answers, Life::AnyTraffic] {
        let mut config = ServerConfig::new(EPOCH);
        config.common.life = life;
        let mut talk = Talk::new(ClientConfig::new(EPOCH), config);
        talk.settle();
        let ping = Frame::message(message(1, 1, b"")).to_bytes().unwrap();
        // No keep-alive gets a response, but a message arrives every 50 seconds.
        let mut closed = false;
        for round in 1..10 {
            let now = 50 * SECOND * round;
            while let Some(at) = talk.server().poll_timeout().filter(|at| *at <= now) {
                talk.server().timeout(at);
            }
            talk.server().input(now, Side::Client, Input::Bytes(&ping));
            closed |= lines(talk.server()).iter().any(|line| line.starts_with("Closed"));
        }
        assert_eq!(closed, life == Life::Answers);
    }
}

#[test]
fn a_stale_session_is_refreshed_and_the_last_message_is_delivered_once() {
    let mut ids = SessionIds::new();
    let mut talk = Talk::established();
    talk.client().send(&message(5, 1, b"one")).unwrap();
    talk.settle();
    let next = ids.allocate().unwrap();
    talk.server().refresh(next).unwrap();
    assert!(talk.server().is_established(), "the socket stays");
    talk.client().send(&message(5, 2, b"two")).unwrap();
    talk.settle();
    insta::assert_snapshot!(talk.events[1].join("\n"), @r"
    client 5/1 [6f, 6e, 65]
    ignored [74, 77, 6f] because Stale
    client SessionAccept(SessionAccept { reserved: 0, time: SessionTime { high: 0, low: 1700000000, millis: 321 }, session_id: 1, crypto: Some(CryptoBlock([0])) })
    Established { session_id: 1, previous: Some(4660) }
    client 5/2 [74, 77, 6f]
    ");
    assert_eq!(
        talk.events[0].last().unwrap(),
        "Established { session_id: 1, previous: Some(4660) }"
    );
    assert_eq!((talk.client().session_id(), talk.server().session_id()), (Some(1), Some(1)));
    // The connection continues.
    talk.wait(Duration::from_secs(3600));
    assert!(!talk.server().is_closed());
    // Keep-alives count the time since the start of the session that they name.
    let next = ids.allocate().unwrap();
    talk.server().refresh(next).unwrap();
    talk.client().send(&message(5, 3, b"three")).unwrap();
    talk.settle();
    talk.events = Default::default();
    talk.wait(Duration::from_secs(3660));
    let alive = talk.events[0]
        .iter()
        .chain(&talk.events[1])
        .rfind(|line| line.contains("KeepAlive(Client"));
    let alive = alive.expect("the client sends keep-alives");
    assert!(alive.contains("minutes: 0") || alive.contains("minutes: 1"), "{alive}");
}

#[test]
fn a_message_that_was_answered_is_not_sent_again() {
    let mut talk = Talk::established();
    talk.client().send(&message(5, 1, b"one")).unwrap();
    talk.settle();
    talk.server().send(&message(5, 9, b"answer")).unwrap();
    talk.settle();
    talk.events = Default::default();
    // An unexpected offer.
    let mut other = Connection::server(ServerConfig::new(EPOCH).into(), 7, talk.pair.now);
    let offer = other.poll_transmit(Side::Client).unwrap();
    talk.pair.client.input(talk.pair.now, Side::Server, Input::Bytes(&offer));
    lines(talk.client());
    let accept = talk.client().poll_transmit(Side::Server).unwrap();
    assert_eq!(talk.client().poll_transmit(Side::Server), None, "only the accept");
    other.input(talk.pair.now, Side::Client, Input::Bytes(&accept));
    assert!(lines(&mut other).contains(&"Established { session_id: 7, previous: None }".into()));
}

#[test]
fn a_session_beyond_the_last_id_is_refused() {
    let mut ids = SessionIds::new();
    let config = Arc::new(ServerConfig::new(EPOCH));
    let mut sessions: Vec<Connection> = (0..65_535)
        .map(|_| Connection::server(Arc::clone(&config), ids.allocate().unwrap(), Duration::ZERO))
        .collect();
    let mut seen: Vec<u16> = sessions.iter().filter_map(Connection::session_id).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(1..=u16::MAX));
    for session in &mut sessions {
        let mut client = Connection::client(ClientConfig::new(EPOCH).into(), Duration::ZERO);
        client.input(
            Duration::ZERO,
            Side::Server,
            Input::Bytes(&session.poll_transmit(Side::Client).unwrap()),
        );
        while client.poll_event().is_some() {}
        session.input(
            Duration::ZERO,
            Side::Client,
            Input::Bytes(&client.poll_transmit(Side::Server).unwrap()),
        );
        while session.poll_event().is_some() {}
        assert!(session.is_established());
    }
    let refused = ids.allocate().unwrap_err();
    assert_eq!(refused.to_string(), "wanted at most 65535 (live sessions), found 65536");
    ids.release(sessions[4711].session_id().unwrap());
    assert_eq!(ids.allocate().ok(), sessions[4711].session_id());
}

#[test]
fn messages_before_the_accept_wait_or_are_ignored() {
    let ping = Frame::message(message(1, 1, b"x")).to_bytes().unwrap();
    let start = |config: ServerConfig| {
        let mut server = Connection::server(config.into(), 9, Duration::ZERO);
        let mut client = Connection::client(ClientConfig::new(EPOCH).into(), Duration::ZERO);
        client.input(
            Duration::ZERO,
            Side::Server,
            Input::Bytes(&server.poll_transmit(Side::Client).unwrap()),
        );
        while client.poll_event().is_some() {}
        (server, client.poll_transmit(Side::Server).unwrap())
    };
    let (mut server, accept) = start(ServerConfig::new(EPOCH));
    for _ in 0..256 {
        server.input(Duration::ZERO, Side::Client, Input::Bytes(&ping));
    }
    assert_eq!(lines(&mut server), Vec::<String>::new());
    server.input(Duration::ZERO, Side::Client, Input::Bytes(&accept));
    assert_eq!(payloads(&mut server).len(), 256);

    let (mut server, _) = start(ServerConfig::new(EPOCH));
    for _ in 0..257 {
        server.input(Duration::ZERO, Side::Client, Input::Bytes(&ping));
    }
    insta::assert_snapshot!(lines(&mut server).join("\n"), @r"
    fault of the client: at byte 3584: wanted at most 256 (messages before the session is accepted), found 257
    Closed(Fault)
    ");

    let mut config = ServerConfig::new(EPOCH);
    config.keep_early = false;
    let (mut server, accept) = start(config);
    server.input(Duration::ZERO, Side::Client, Input::Bytes(&ping));
    assert_eq!(lines(&mut server), ["ignored [78] because Early"]);
    server.input(Duration::ZERO, Side::Client, Input::Bytes(&accept));
    assert!(payloads(&mut server).is_empty());
}
