//! Time-outs, silence and queue limits.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{Bounds, CloseReason, Connection as _, SendError, Timer};
use worldwire_core::testing::pair::{Conditions, Member, Pair};
use worldwire_core::{Error, Side};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{ClientConfig, Connection, ServerConfig};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;

use crate::ends::{
    Drive as _, SECOND, client_of, deliver, drain, established, line, open_config, ping, sample,
    sent, server_of,
};

#[test]
fn a_client_waits_ten_seconds_for_setup() {
    for encrypted in [true, false] {
        let mut client = client_of(Service::Auth, encrypted, SECOND);
        assert_eq!(client.poll_timeout(), Some(SECOND * 11));
        deliver(&mut client, Side::Server, SECOND * 5, &[1]);
        client.timeout(SECOND * 11 - Duration::from_nanos(1));
        assert!(drain(&mut client).is_empty());
        client.timeout(SECOND * 11);
        assert_eq!(drain(&mut client), ["closed: connection setup took too long"]);
        assert_eq!(client.poll_timeout(), None);
        assert!(client.is_closed() && !client.is_established());
    }
    // A file connection has no setup to wait for.
    assert_eq!(client_of(Service::File, false, SECOND).poll_timeout(), None);
}

#[test]
fn a_message_may_take_thirty_seconds() {
    let bytes = ping(Service::Auth).to_bytes().unwrap();
    let at = |second: u32| SECOND * second;
    let mut server = established(open_config(), Service::Auth, Duration::ZERO);
    assert_eq!(server.poll_timeout(), Some(at(45)));
    // In time: one byte per second, the last at 20 s.
    for (second, byte) in (1..).zip(&bytes[..9]) {
        assert!(deliver(&mut server, Side::Client, at(second), &[*byte]).is_empty());
        assert_eq!(server.poll_timeout(), Some(at(31)));
    }
    let events = deliver(&mut server, Side::Client, at(20), &bytes[9..]);
    assert_eq!(events.len(), 1);
    assert_eq!(server.poll_timeout(), Some(at(65)));
    // If one segment holds the end of a message and the start of the next, the deadline restarts.
    deliver(&mut server, Side::Client, at(21), &bytes[..5]);
    assert_eq!(server.poll_timeout(), Some(at(51)));
    let both = [&bytes[5..], &bytes[..3]].concat();
    assert_eq!(deliver(&mut server, Side::Client, at(40), &both).len(), 1);
    assert_eq!(server.poll_timeout(), Some(at(70)));
    // Too late, although a byte arrived every second.
    for second in 41..70 {
        let byte = bytes.get(second as usize - 38).copied();
        if second < 46 {
            deliver(&mut server, Side::Client, at(second), &[byte.unwrap_or(0)]);
        }
        server.timeout(at(second));
        assert!(!server.is_closed(), "at {second} s");
    }
    server.timeout(at(70));
    assert_eq!(drain(&mut server), [format!("closed: {}", CloseReason::Timeout(Timer::Message))]);
}

#[test]
fn only_whole_messages_count_against_silence() {
    for (service, patience) in
        [(Service::Gatekeeper, 45), (Service::Auth, 45), (Service::File, 45), (Service::Game, 120)]
    {
        let mut server = established(open_config(), service, SECOND);
        assert_eq!(server.poll_timeout(), Some(SECOND * (1 + patience)));
        let bytes = ping(service).to_bytes().unwrap();
        deliver(&mut server, Side::Client, SECOND * 31, &bytes);
        assert_eq!(server.poll_timeout(), Some(SECOND * (31 + patience)));
        server.timeout(SECOND * (31 + patience));
        assert_eq!(drain(&mut server), ["closed: silent for too long"]);
        assert_eq!(server.poll_timeout(), None);
    }
}

#[test]
fn pings_of_every_service_are_returned_unchanged() {
    for service in Service::ALL {
        let mut server =
            established(ServerConfig { answer_pings: true, ..open_config() }, service, SECOND);
        let request = ping(service).to_bytes().unwrap();
        deliver(&mut server, Side::Client, SECOND, &request);
        assert_eq!(sent(&mut server), request, "{service:?}");
        // The driver may reply to pings itself.
        let mut server = established(open_config(), service, SECOND);
        deliver(&mut server, Side::Client, SECOND, &request);
        assert_eq!(server.transmit(), None);
    }
}

#[test]
fn a_silent_client_stays_for_a_day_on_every_service() {
    for service in Service::ALL {
        let mut config = ClientConfig::new(service, None);
        config.connect = ConnectPacket::new(service);
        let client = Connection::client(config.into(), [1; 64], Duration::ZERO).unwrap();
        let server =
            server_of(ServerConfig { answer_pings: true, ..open_config() }, Duration::ZERO);
        let latency = Duration::from_millis(40);
        let mut pair = Pair::new(client, server, Conditions { latency, ..Conditions::default() });
        let pong = format!("server {}.PingReply", service.name());
        let mut pongs = 0;
        pair.run_until(Duration::from_secs(24 * 60 * 60), |member, event, _| {
            let text = line(&event);
            assert!(!text.contains("fault") && !text.contains("closed"), "{member:?}: {text}");
            pongs += u32::from(member == Member::Client && text.starts_with(&pong));
        });
        assert!(!pair.client.is_closed() && !pair.server.is_closed(), "{service:?}");
        assert!(pair.client.poll_timeout().is_some() && pair.server.poll_timeout().is_some());
        assert!((2878..=2882).contains(&pongs), "{service:?} {pongs}");
    }
}

fn with_bounds(bounds: Bounds) -> ServerConfig {
    ServerConfig { bounds, ..open_config() }
}

#[test]
fn the_queue_is_bounded() {
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    let length = reply.to_bytes().unwrap().len();
    let config = with_bounds(Bounds { queued_messages: 3, ..Bounds::default() });
    let mut server = established(config, Service::Auth, SECOND);
    for _ in 0..3 {
        server.send(&reply).unwrap();
    }
    let error = server.send(&reply).unwrap_err();
    assert_eq!(error, SendError::QueueFull(Error::limit("queued messages", 3, 4)));
    assert_eq!(server.queued_bytes(Side::Client), 3 * length);
    // Transmitting makes room, and no message is lost or truncated.
    assert_eq!(server.transmit().unwrap(), reply.to_bytes().unwrap());
    server.send(&reply).unwrap();
    assert_eq!(sent(&mut server), reply.to_bytes().unwrap().repeat(3));
    assert_eq!(server.queued_bytes(Side::Client), 0);

    let config = with_bounds(Bounds { queued_bytes: 2 * length, ..Bounds::default() });
    let mut server = established(config, Service::Auth, SECOND);
    server.send(&reply).unwrap();
    server.send(&reply).unwrap();
    let limit = 2 * length as u64;
    let wanted = Error::limit("queued bytes", limit, 3 * length as u64);
    assert_eq!(server.send(&reply).unwrap_err(), SendError::QueueFull(wanted));
    assert!(!server.is_closed());
}

#[test]
fn a_client_that_pings_without_reading_is_closed() {
    let config = ServerConfig {
        answer_pings: true,
        ..with_bounds(Bounds { queued_messages: 5, ..Bounds::default() })
    };
    let mut server = established(config, Service::Game, SECOND);
    let request = ping(Service::Game).to_bytes().unwrap();
    let events = deliver(&mut server, Side::Client, SECOND, &request.repeat(9));
    let pings = events.iter().filter(|text| text.contains("PingRequest")).count();
    assert_eq!(pings, 6);
    assert!(events[6].contains("wanted at most 5 (queued messages), found 6"), "{events:?}");
    assert_eq!(events[7], "closed: closed because of a fault");
    assert_eq!(events.len(), 8);
}

#[test]
fn a_closed_connection_transmits_only_queued_bytes() {
    let mut server = established(open_config(), Service::Auth, SECOND);
    let reply = sample(Service::Auth, Side::Server, 3, 1);
    server.send(&reply).unwrap();
    server.close();
    server.close();
    assert_eq!(server.poll_timeout(), None);
    let ping = ping(Service::Auth).to_bytes().unwrap();
    let events = deliver(&mut server, Side::Client, SECOND, &ping);
    assert_eq!(events, ["closed: closed by this side"]);
    assert_eq!(server.send(&reply).unwrap_err(), SendError::Closed);
    assert_eq!(sent(&mut server), reply.to_bytes().unwrap());
    server.timeout(SECOND * 1000);
    server.end(SECOND * 1000);
    assert!(drain(&mut server).is_empty());
    let mut observer = Connection::observer(Arc::new(KeyRing::new()));
    let error = observer.send(&reply).unwrap_err();
    assert_eq!(error, SendError::Role("a client or a server"));
}
