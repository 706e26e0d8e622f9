//! Refused and ignored messages, and limits.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Bounds, Connection as _, Input};
use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig, UnknownControl};
use worldwire_ki::control::{Control, KeepAlive, Opcode, SessionAccept, SessionTime};
use worldwire_ki::frame::Frame;
use worldwire_ki::schema::{Mode, Protocols};

use crate::support::{EPOCH, SECOND, Talk, lines, message, payloads};

#[test]
fn rules_are_kept() {
    let fresh = || {
        let mut server = Connection::server(ServerConfig::new(EPOCH).into(), 9, Duration::ZERO);
        server.poll_transmit(Side::Client).unwrap();
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
    let outcome = |mut server: Connection, bytes: &[u8]| {
        server.input(Duration::ZERO, Side::Client, Input::Bytes(bytes));
        lines(&mut server).into_iter().rev().take(2).rev().collect::<Vec<_>>().join("; ")
    };
    // Another session's accept, a second accept, and an offer from a client.
    insta::assert_snapshot!(outcome(fresh(), &accept(8)), @"fault of the client: sessionId at byte 0: wanted 9, found 8; Closed(Fault)");
    assert!(outcome(fresh(), &[accept(9), accept(9)].concat()).starts_with("Established"));
    insta::assert_snapshot!(outcome(fresh(), &[accept(9), accept(8)].concat()), @"fault of the client: at byte 25: SessionAccept arrived without a pending SessionOffer; Closed(Fault)");
    let offer = Connection::server(ServerConfig::new(EPOCH).into(), 1, Duration::ZERO);
    let offer = { offer }.poll_transmit(Side::Client).unwrap();
    insta::assert_snapshot!(outcome(fresh(), &offer), @"fault of the client: at byte 0: wanted a control message of the client, found SessionOffer; Closed(Fault)");
    // Bytes that are not a frame, a frame that is too long, and a body that is too short.
    insta::assert_snapshot!(outcome(fresh(), b"GET / HTTP"), @"fault of the client: magic at byte 0: wanted the start of a frame, 0d f0, found 47 45; Closed(Fault)");
    let large = [0x0d, 0xf0, 0, 0x80, 1, 0, 0x40, 0];
    insta::assert_snapshot!(outcome(fresh(), &[&accept(9)[..], &large].concat()), @"fault of the client: length at byte 33: wanted at most 4194304 (frame bytes), found 4194305; Closed(Fault)");
    insta::assert_snapshot!(outcome(fresh(), &[0x0d, 0xf0, 3, 0]), @"fault of the client: length at byte 4: wanted a body of at least 4 bytes, found 3; Closed(Fault)");
    insta::assert_snapshot!(outcome(fresh(), &[0x0d, 0xf0, 8, 0, 0, 0, 0, 0, 1, 1, 3, 0]), @"fault of the client: messages[0].length at byte 10: wanted a length of at least 4, found 3; Closed(Fault)");
    // The accept does not arrive in time.
    let mut server = fresh();
    assert_eq!(server.poll_timeout(), Some(15 * SECOND));
    server.timeout(15 * SECOND);
    assert_eq!(lines(&mut server), ["Closed(Timeout(Setup))"]);
    assert!(server.send(&message(1, 1, b"")).is_err());
    let mut client = Connection::client(ClientConfig::new(EPOCH).into(), Duration::ZERO);
    client.timeout(15 * SECOND);
    assert_eq!(lines(&mut client), ["Closed(Timeout(Setup))"]);
}

/// Over UDP, a client speaks first. Its hello is not an unknown message and has no content.
#[test]
fn clients_can_say_hello() {
    let client = |says_hello| {
        let config = ClientConfig { says_hello, ..ClientConfig::new(EPOCH) };
        Connection::client(config.into(), Duration::ZERO)
    };
    assert_eq!(client(false).poll_transmit(Side::Server), None);
    let hello = client(true).poll_transmit(Side::Server).unwrap();
    assert_eq!(hello, [0x0d, 0xf0, 5, 0, 1, 1, 0, 0, 0]);
    let config =
        ServerConfig { unknown_control: UnknownControl::Close, ..ServerConfig::new(EPOCH) };
    let mut server = Connection::server(config.clone().into(), 9, Duration::ZERO);
    server.input(Duration::ZERO, Side::Client, Input::Datagram(&hello));
    let reported = lines(&mut server);
    assert!(matches!(&reported[..], [hello] if hello.contains("UdpHello")), "{reported:?}");
    let greeter = ClientConfig { says_hello: true, ..ClientConfig::new(EPOCH) };
    let mut talk = Talk::new(greeter, config);
    talk.settle();
    assert!(talk.pair.client.is_established() && talk.pair.server.is_established());
}

/// A client that has not accepted a session can make a server keep only a few bytes.
#[test]
fn a_long_frame_before_the_accept_is_refused_by_its_length() {
    let start = || {
        let mut server = Connection::server(ServerConfig::new(EPOCH).into(), 9, Duration::ZERO);
        let mut client = Connection::client(ClientConfig::new(EPOCH).into(), Duration::ZERO);
        let offer = server.poll_transmit(Side::Client).unwrap();
        client.input(Duration::ZERO, Side::Server, Input::Bytes(&offer));
        lines(&mut client);
        (server, client.poll_transmit(Side::Server).unwrap())
    };
    let outcome = |bytes: &[u8]| {
        let (mut server, _) = start();
        server.input(Duration::ZERO, Side::Client, Input::Bytes(bytes));
        lines(&mut server).join("; ")
    };
    // A frame of 4 MiB is refused because of its length alone, in either form of the length.
    insta::assert_snapshot!(outcome(&[0x0d, 0xf0, 0, 0x80, 0, 0, 0x40, 0]), @"fault of the client: length at byte 8: wanted at most 4096 (frame bytes before the session is accepted), found 4194304; Closed(Fault)");
    insta::assert_snapshot!(outcome(&[0x0d, 0xf0, 1, 0x10]), @"fault of the client: length at byte 4: wanted at most 4096 (frame bytes before the session is accepted), found 4097; Closed(Fault)");
    assert_eq!(outcome(&[0x0d, 0xf0, 0, 0x10]), "");
    // The same size is allowed once the session is accepted, even together with the accept.
    let (mut server, accept) = start();
    let long = Frame::message(message(1, 1, &[7; 50_000])).to_bytes().unwrap();
    let accepted = [&accept[..], &long].concat();
    server.input(Duration::ZERO, Side::Client, Input::Bytes(&accepted));
    assert_eq!(payloads(&mut server).len(), 1);
    // A long frame is also allowed while a server refreshes an accepted session.
    server.refresh(10).unwrap();
    for _ in 0..2 {
        server.input(Duration::ZERO, Side::Client, Input::Bytes(&long));
    }
    let lines = lines(&mut server);
    assert!(!server.is_closed() && lines.len() == 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.ends_with("because Stale")), "{lines:?}");
}

#[test]
fn unknown_control_messages_are_ignored_or_not() {
    let hello = Control::Other { opcode: Opcode(7), body: (&b"abc"[..]).into() };
    let hello = Frame { trailer: None, ..Frame::control(hello) }.to_bytes().unwrap();
    for (rule, wanted) in [(UnknownControl::Ignore, 1), (UnknownControl::Close, 3)] {
        let config = ServerConfig { unknown_control: rule, ..ServerConfig::new(EPOCH) };
        let mut server = Connection::server(config.into(), 9, Duration::ZERO);
        server.input(Duration::ZERO, Side::Client, Input::Bytes(&hello));
        let lines = lines(&mut server);
        assert_eq!(lines.len(), wanted, "{lines:?}");
    }
}

/// Definitions of three messages: one without a required level, one for level 1 and one for a
/// higher level.
fn levels() -> Protocols {
    let message = |name: &str, level: u8| {
        format!(
            "<{name}><RECORD><_MsgAccessLvl TYPE=\"UBYT\" NOXFER=\"TRUE\">{level}</_MsgAccessLvl>\
             </RECORD></{name}>"
        )
    };
    let text = format!(
        "<M><_ProtocolInfo><RECORD><ServiceID TYPE=\"UBYT\">200</ServiceID></RECORD>\
         </_ProtocolInfo>{}{}{}</M>",
        message("MSG_A", 0),
        message("MSG_B", 1),
        message("MSG_C", 2)
    );
    let mut protocols = Protocols::new();
    protocols.add("levels.xml", text.as_bytes(), Mode::Lenient);
    assert_eq!(protocols.message(200, 3).unwrap().access_level, 2);
    protocols
}

#[test]
fn messages_above_the_access_level_are_ignored() {
    let protocols = Some(Arc::new(levels()));
    let config = ServerConfig { protocols, ..ServerConfig::new(EPOCH) };
    let mut talk = Talk::new(ClientConfig::new(EPOCH), config);
    assert_eq!(talk.server().access_level(), 0);
    talk.settle();
    // A new session has level 1.
    assert_eq!(talk.server().access_level(), 1);
    talk.events = Default::default();
    for order in 1..=3 {
        talk.client().send(&message(200, order, &[order])).unwrap();
    }
    // The definitions do not include service 9.
    talk.client().send(&message(9, 9, &[9])).unwrap();
    talk.settle();
    let refused = "ignored [03] because AccessLevel { needed: 2, has: 1 }";
    assert_eq!(
        talk.events[1],
        ["client 200/1 [01]", "client 200/2 [02]", refused, "client 9/9 [09]"]
    );
    talk.events = Default::default();
    talk.server().set_access_level(2);
    talk.client().send(&message(200, 3, &[3])).unwrap();
    talk.settle();
    assert_eq!(talk.events[1], ["client 200/3 [03]"]);
}

#[test]
fn the_queue_is_bounded() {
    let mut config = ClientConfig::new(EPOCH);
    config.common.bounds = Bounds { queued_messages: 3, queued_bytes: 64 };
    let mut talk = Talk::new(config.clone(), ServerConfig::new(EPOCH));
    talk.settle();
    for _ in 0..3 {
        talk.client().send(&message(1, 1, b"")).unwrap();
    }
    let error = talk.client().send(&message(1, 1, b"")).unwrap_err().to_string();
    assert_eq!(error, "wanted at most 3 (queued messages), found 4");
    let mut talk = Talk::new(config, ServerConfig::new(EPOCH));
    talk.settle();
    let error = talk.client().send(&message(1, 1, &[0; 64])).unwrap_err().to_string();
    assert!(error.starts_with("wanted at most 64 (queued bytes), found "), "{error}");
    // Refused messages do not count towards the limit.
    talk.client().send(&message(1, 1, b"")).unwrap();
    talk.events = Default::default();
    talk.settle();
    assert_eq!(talk.events[1].len(), 1);
}

#[test]
fn a_peer_that_asks_without_reading_is_closed() {
    let ask = |alive| Frame::control(Control::KeepAlive(alive)).to_bytes().unwrap();
    let by_client = ask(KeepAlive::Client { session_id: 4660, millis: 1, minutes: 2 });
    let by_server = ask(KeepAlive::Server { session_id: 0, uptime_millis: 3 });
    let mut talk = Talk::established();
    for (end, from, question) in [
        (&mut talk.pair.server, Side::Client, by_client),
        (&mut talk.pair.client, Side::Server, by_server),
    ] {
        // Keep-alives get responses as long as the queue has room for them.
        end.input(SECOND, from, Input::Bytes(&question.repeat(1024)));
        assert_eq!(lines(end).len(), 1024);
        assert_eq!(core::iter::from_fn(|| end.poll_transmit(from)).count(), 1024);
        // Send half a million keep-alives from a peer that reads nothing.
        end.input(SECOND, from, Input::Bytes(&question.repeat(500_000)));
        let reported = lines(end);
        assert_eq!(reported.len(), 1025 + 2);
        let fault = reported[1025].split_once(": ").unwrap().1;
        assert!(fault.ends_with("wanted at most 1024 (queued messages), found 1025"), "{fault}");
        assert_eq!(reported[1026], "Closed(Fault)");
        assert!(end.queued_bytes(from) < 20_000);
    }
    // Messages deferred until the first accept may fill the queue. The accept is still sent.
    let mut talk = Talk::new(ClientConfig::new(EPOCH), ServerConfig::new(EPOCH));
    for _ in 0..1024 {
        talk.client().send(&message(1, 1, b"")).unwrap();
    }
    talk.settle();
    assert!(talk.client().is_established());
    // An end that reads nothing does not receive keep-alives forever either.
    let mut config = ServerConfig::new(EPOCH);
    config.common.bounds.queued_messages = 2;
    let mut talk = Talk::new(ClientConfig::new(EPOCH), config);
    talk.settle();
    for _ in 0..2 {
        talk.server().send(&message(1, 1, b"")).unwrap();
    }
    talk.server().timeout(60 * SECOND);
    insta::assert_snapshot!(lines(talk.server()).join("\n"), @r"
    fault of the client: wanted at most 2 (queued messages), found 3
    Closed(Fault)
    ");
}
