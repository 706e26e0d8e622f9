//! The rules that clients and servers enforce, and their time-outs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Decision, Event, Forward as _, Input, Piece as _,
    Sender as _, Timer,
};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_tera::connection::{Config, Connection, RelayConfig};
use worldwire_tera::crypt::exchange::Variant;
use worldwire_tera::integrity::{Verdict, header, verify};

use crate::ends::{CLIENT_KEYS, NOW, client, hear, lines, message, rough, server};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn rules_are_kept() {
    let mut end = client(Variant::From45);
    end.input(NOW, Side::Server, Input::Bytes(&[1, 0, 2]));
    insta::assert_snapshot!(lines(&mut end).join("\n"), @r"
    fault of the server: at byte 0: wanted the hello, 01 00 00 00, found 01 00 02
    Closed(Fault)
    ");
    let mut end = client(Variant::From45);
    assert_eq!(end.poll_timeout(), Some(SECOND * 5));
    end.input(SECOND * 4, Side::Server, Input::Bytes(&[1, 0, 0, 0]));
    lines(&mut end);
    assert_eq!(end.poll_timeout(), Some(SECOND * 9));
    end.timeout(SECOND * 9);
    assert_eq!(lines(&mut end), ["Closed(Timeout(Setup))"]);
    let error = end.send(&[4, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "the connection is closed");

    let mut end = server(Variant::From45);
    let error = end.send(&[5, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "wanted a message of 5 bytes, found 4 bytes");
    let error = end.send(&[5, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "wanted a message of 4 bytes, found 3 bytes");
    let error = end.send(&[3, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "length at byte 0: wanted a length of at least 4, found 3");
    end.close();
    assert_eq!(end.poll_transmit(Side::Client).as_deref(), Some(&[1, 0, 0, 0][..]));
    let event = end.poll_event();
    assert!(matches!(event, Some(Event::Closed(CloseReason::Local))));
    let error = Connection::observer(None).send(&[4, 0, 0, 0]).unwrap_err();
    assert_eq!(error.to_string(), "only a client or a server can do this");
}

/// What a server receives from a client that counts the messages with one opcode.
#[test]
fn a_client_counts_and_signs_what_it_sends() {
    let integrity = HashSet::from([7]);
    let bounds = Bounds { queued_bytes: 500, ..Bounds::default() };
    let config = Config { integrity, bounds, ..Config::default() };
    let client = Connection::client(Arc::new(config), CLIENT_KEYS, NOW);
    let mut pair = Pair::new(client, server(Variant::From45), rough(1));
    let sealed = message(7, &[0xff; 12]);
    let plain = message(8, &[0xff; 12]);
    // The first one waits for keys; the seed is still unknown.
    pair.client.send(&sealed).unwrap();
    let error = pair.client.send(&message(7, &[1; 7])).unwrap_err().to_string();
    let wanted =
        "wanted room for a counter and checksum after the opcode, found a message of 11 bytes";
    assert_eq!(error, wanted);
    pair.client.send(&plain).unwrap();
    // There is no room for this message, so it is not counted.
    assert!(pair.client.send(&message(7, &[1; 1000])).is_err());
    let mut heard = Vec::new();
    let mut hear = |pair: &mut Pair<Connection>| {
        pair.settle(|member, event, _| match event {
            Event::Received(received) if member == Member::Server && received.is_message() => {
                heard.push(received.bytes.to_vec());
            }
            _ => {}
        });
    };
    hear(&mut pair);
    pair.client.sender().set_integrity_seed(77).unwrap();
    pair.client.send(&sealed).unwrap();
    hear(&mut pair);
    // A list that becomes known later replaces the first one.
    pair.client.sender().set_integrity(HashSet::from([8])).unwrap();
    pair.client.send(&sealed).unwrap();
    pair.client.send(&plain).unwrap();
    hear(&mut pair);
    let counts: Vec<_> = heard[..3].iter().map(|bytes| header(bytes).unwrap()).collect();
    let [(1, 0), (u32::MAX, u32::MAX), (2, _)] = counts[..] else { panic!("{counts:?}") };
    assert_eq!(verify(&heard[2], 77), Verdict::Right);
    assert_eq!(heard[1], plain);
    assert_eq!(heard[3], sealed);
    assert_eq!((header(&heard[4]).unwrap().0, verify(&heard[4], 77)), (1, Verdict::Right));
    for mut other in [server(Variant::From45), Connection::observer(None)] {
        for outcome in
            [other.sender().set_integrity_seed(77), other.sender().set_integrity(HashSet::new())]
        {
            let error = outcome.unwrap_err().to_string();
            assert!(error == "only a client or a relay can do this", "{error}");
        }
    }
}

#[test]
fn an_active_role_ends_with_its_peer() {
    let mut pair = Pair::new(client(Variant::From45), server(Variant::From45), rough(1));
    pair.settle(|_, _, _| {});
    pair.client.send(&message(7, &[1; 500])).unwrap();
    pair.client.close();
    let mut seen = Vec::new();
    pair.settle(|member, event, _| {
        seen.push((
            member,
            match event {
                Event::Closed(reason) => Some(reason),
                _ => None,
            },
        ));
    });
    let wanted = [
        (Member::Client, Some(CloseReason::Local)),
        (Member::Server, None),
        (Member::Server, Some(CloseReason::Remote)),
    ];
    assert_eq!(seen, wanted);
    // A client does not read its own side's bytes, and a gap ends the connection.
    let mut end = client(Variant::From45);
    assert!(hear(&mut end, Side::Client, &[9; 9]).is_empty());
    end.input(NOW, Side::Server, Input::Gap(4));
    let heard = lines(&mut end);
    assert_eq!(heard[0], "Gap { side: Server, range: 0..4 }");
    assert!(heard[1].ends_with("wanted the whole key exchange, found a gap of 4 bytes"));
    assert_eq!(heard[2], "Closed(Fault)");
    let mut end = pair.server;
    assert!(end.is_closed() && hear(&mut end, Side::Client, &[1; 100]).is_empty());
}

#[test]
fn who_is_silent_or_does_not_finish_is_closed() {
    let run = |idle_time: Option<Duration>, end: u64, at: &[u64], half: bool| {
        let config = Config { idle_time, ..Config::default() };
        let server = Connection::server(Arc::new(config), [[5; 128]; 2], NOW);
        let mut pair = Pair::new(client(Variant::From45), server, Conditions::default());
        pair.settle(|_, _, _| {});
        let mut closed = None;
        let mut note = |member, event: worldwire_core::connection::EventOf<'_, Connection>| {
            if let (Member::Server, Event::Closed(reason)) = (member, event) {
                closed = Some(reason);
            }
        };
        for second in at {
            pair.run_until(SECOND * u32::try_from(*second).unwrap(), |member, event, _| {
                note(member, event);
            });
            pair.client.send(&message(7, &[1; 8])).unwrap();
        }
        if half {
            pair.settle(|_, _, _| {});
            // Single bytes do not complete a message.
            let now = pair.now;
            pair.client.send(&message(7, &[1; 8])).unwrap();
            let bytes = pair.client.poll_transmit(Side::Server).unwrap();
            for (index, byte) in bytes.iter().take(4).enumerate() {
                let now = now + SECOND * u32::try_from(index).unwrap();
                pair.server.input(now, Side::Client, Input::Bytes(&[*byte]));
                while pair.server.poll_event().is_some() {}
            }
        }
        pair.run_until(SECOND * u32::try_from(end).unwrap(), |member, event, _| {
            note(member, event);
        });
        (closed, pair.server.poll_timeout())
    };
    let idle = Some(CloseReason::Timeout(Timer::Idle));
    let default = Config::default().idle_time;
    assert_eq!(run(default, 119, &[], false), (None, Some(SECOND * 120)));
    assert_eq!(run(default, 120, &[], false), (idle, None));
    // Every whole message shows that the peer is alive.
    assert_eq!(run(default, 300, &[100, 200], false), (None, Some(SECOND * 320)));
    assert_eq!(run(default, 320, &[100, 200], false), (idle, None));
    assert_eq!(run(None, 100_000, &[100], false), (None, None));
    let torn = Some(CloseReason::Timeout(Timer::Message));
    assert_eq!(run(default, 129, &[100], true), (None, Some(SECOND * 130)));
    assert_eq!(run(default, 130, &[100], true), (torn, None));
    assert_eq!(run(None, 130, &[100], true), (torn, None));
}

#[test]
fn queues_are_bounded() {
    let bounds = Bounds { queued_bytes: 100, queued_messages: 4 };
    let config = Arc::new(Config { bounds, ..Config::default() });
    let mut end = Connection::client(config, [[1; 128]; 2], NOW);
    end.send(&message(1, &[0; 90])).unwrap();
    let error = end.send(&message(1, &[0; 10])).unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 100 (queued bytes), found 108");
    for _ in 0..1 {
        end.send(&message(1, &[])).unwrap();
    }
    assert_eq!(end.queued_bytes(Side::Server), 98);
    // Messages that were sent early do not delay keys.
    let mut pair = Pair::new(end, server(Variant::From45), Conditions::default());
    let mut heard = 0;
    pair.settle(|_, event, _| {
        if let Event::Received(received) = event {
            heard += usize::from(received.is_message());
        }
    });
    assert_eq!((heard, pair.client.queued_bytes(Side::Server)), (2, 0));
    for _ in 0..4 {
        pair.client.send(&message(1, &[])).unwrap();
    }
    let error = pair.client.send(&message(1, &[])).unwrap_err();
    assert_eq!(error.to_string(), "wanted at most 4 (queued messages), found 5");
}

#[test]
fn what_is_read_can_be_answered() {
    let mut pair = Pair::new(client(Variant::From45), server(Variant::From45), rough(3));
    pair.client.send(&message(7, &[9; 9])).unwrap();
    let mut heard = Vec::new();
    pair.settle(|member, event, sender| {
        let Event::Received(received) = event else { return };
        if !received.is_message() {
            return;
        }
        heard.push(received.bytes.to_vec());
        if member == Member::Server && received.bytes.len() < 40 {
            sender
                .send(&[&[received.bytes[0] + 1, 0, 8, 0], &received.bytes[4..], &[1]].concat())
                .unwrap();
        }
        if member == Member::Client {
            sender.send(received.bytes).unwrap();
        }
    });
    // 13 bytes to the server, 14 back, and so on up to 40.
    assert_eq!(heard.len(), 2 * (40 - 13) + 1);
}

#[test]
fn a_datagram_is_refused_in_every_role() {
    let relay = Connection::relay(Arc::new(RelayConfig::default()), NOW);
    let roles = [
        (client(Variant::From45), Side::Server),
        (server(Variant::From45), Side::Client),
        (relay, Side::Client),
        (Connection::observer(None), Side::Client),
    ];
    for (mut end, side) in roles {
        end.input(NOW, side, Input::Datagram(&[1, 2, 3]));
        let heard = lines(&mut end);
        let fault = "at byte 0: wanted a TCP stream, found a datagram; TERA runs over TCP only";
        assert_eq!(heard[0], format!("fault of the {side}: {fault}"));
        assert_eq!(end.is_closed(), heard.len() == 2);
    }
    let error = client(Variant::From45).sender().forward(Decision::AsIs).unwrap_err();
    assert_eq!(error.to_string(), "only a relay can do this");
}
