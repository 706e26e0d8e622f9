//! Framing, encryption, limits and deadlines.

use std::time::Duration;

use proptest::prelude::*;
use worldwire_core::connection::{CloseReason, Connection as _, Event, Input, Timer};
use worldwire_core::testing::pair::Conditions;
use worldwire_core::{Side, Writer};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Channel, MarginText, TcpFrame};
use worldwire_mxo::login::{
    CertChallengeResponse, GetPublicKeyRequest, LoginConnection, LoginMessage, MarginClientMessage,
};

use super::support::{Margin, NOW, auth_config, client_config, connections, log_in, send, ticket};

fn frame(body: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    TcpFrame::of(body).encode(&mut writer).unwrap();
    writer.into_bytes()
}

fn server(channel: Channel) -> LoginConnection {
    connections(channel, Conditions::default()).server
}

/// The bodies and the fault that result from these bytes.
fn read(connection: &mut LoginConnection, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
    connection.input(Duration::ZERO, Side::Client, Input::Bytes(bytes));
    let (mut bodies, mut fault) = (Vec::new(), None);
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Received(received) => bodies.push(received.bytes.to_vec()),
            Event::Fault { error, .. } => fault = Some(error.to_string()),
            _ => {}
        }
    }
    (bodies, fault)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// L-27: framing does not depend on how the stream is split.
    #[test]
    fn a_login_succeeds_whatever_the_chunks(seed: u64) {
        let conditions = Conditions { seed, segment: 1 + usize::try_from(seed % 50).unwrap(), ..Conditions::default() };
        let end = log_in(auth_config(), client_config("neo", "zion"), conditions);
        prop_assert!(end.outcome.unwrap().is_ok());
        let mut margin = Margin::new(ticket(), None, conditions);
        margin.run();
        prop_assert!(margin.client.is_open());
    }
}

#[test]
fn several_frames_and_torn_frames_are_read() {
    let request = [6, 1, 0, 0, 0, 4, 0, 0, 0];
    let stream = [frame(&request), frame(&request)].concat();
    let mut connection = server(Channel::Auth);
    assert_eq!(read(&mut connection, &stream).0.len(), 2);
    let mut connection = server(Channel::Auth);
    let bodies: usize = stream.iter().map(|byte| read(&mut connection, &[*byte]).0.len()).sum();
    assert_eq!(bodies, 2);
}

/// L-28: a body over the limit is refused before it arrives.
#[test]
fn long_and_empty_bodies_are_refused() {
    let refused = |bytes: &[u8]| read(&mut server(Channel::Auth), bytes).1.unwrap();
    assert_eq!(
        refused(&[0x90, 0x01]),
        "length at byte 0: wanted at most 4096 (bytes of a message), found 4097"
    );
    assert_eq!(refused(&[0]), "length at byte 0: wanted a body of at least 1 byte, found none");
    assert_eq!(
        refused(&frame(&[6, 1, 2])),
        "GetPublicKeyRequest: clientVersion at byte 2: wanted 4 bytes, found 2"
    );
}

/// L-26: opcodes without a known layout are reported and do not close the connection.
#[test]
fn unknown_opcodes_do_not_close_the_connection() {
    let mut connection = server(Channel::Auth);
    let stream = [frame(&[0x35]), frame(&[0x77, 1, 2])].concat();
    let (bodies, fault) = read(&mut connection, &stream);
    assert_eq!((bodies.len(), fault), (2, None));
    assert!(!connection.is_closed());
}

/// L-06: encryption depends on the state, not on the bytes.
#[test]
fn messages_are_plain_before_the_key_and_encrypted_after_it() {
    let key = SessionKey::new(&[5; 16]);
    let body = [&[3][..], &[0; 16]].concat();
    let sealed = MarginText { time: NOW, body: body.clone().into() }.seal(&key, &[1; 16]).unwrap();
    let mut wire = Writer::new();
    sealed.encode(&mut wire).unwrap();
    // Messages are plain before the key is set, even one that is always sent encrypted.
    assert_eq!(read(&mut server(Channel::Margin), &frame(&body)).0, std::slice::from_ref(&body));
    let mut connection = server(Channel::Margin);
    connection.set_key(key.clone());
    assert_eq!(read(&mut connection, wire.as_bytes()).0, std::slice::from_ref(&body));
    // 03 03 00 would be a plain message to servers that look at the bytes.
    let plain = [&[3, 3, 0][..], &[0; 14]].concat();
    for bytes in [frame(&plain), frame(&body), frame(&[1])] {
        let mut connection = server(Channel::Margin);
        connection.set_key(key.clone());
        let (bodies, fault) = read(&mut connection, &bytes);
        assert!(bodies.is_empty() && fault.is_some() && connection.is_closed());
    }
    let mut damaged = wire.into_bytes();
    *damaged.last_mut().unwrap() ^= 1;
    let mut connection = server(Channel::Margin);
    connection.set_key(key);
    assert!(read(&mut connection, &damaged).1.is_some());
}

/// L-12: the limit is 10 s for the first message, then 60 s for each, and none while the game runs.
#[test]
fn silent_clients_are_closed() {
    let mut pair = connections(Channel::Margin, Conditions::default());
    let mut closed = None;
    pair.run_until(Duration::from_secs(11), |_, event, _| {
        if let Event::Closed(reason) = event {
            closed = closed.or(Some(reason));
        }
    });
    assert_eq!(closed, Some(CloseReason::Timeout(Timer::Setup)));
    let mut margin = Margin::open();
    margin.run_for(Duration::from_secs(59));
    assert_eq!(margin.closed, None);
    margin.run_for(Duration::from_secs(2));
    assert_eq!(margin.closed, Some(CloseReason::Timeout(Timer::Idle)));
    let mut margin = Margin::open();
    margin.pair.server.sender().set_idle_time(None);
    margin.pair.client.sender().set_idle_time(None);
    margin.run_for(Duration::from_secs(100_000));
    assert_eq!(margin.closed, None);
}

#[test]
fn a_side_sends_only_its_own_messages() {
    let mut pair = connections(Channel::Auth, Conditions::default());
    let request = GetPublicKeyRequest { client_version: 1, key_id: 4 };
    send(&mut pair.client, LoginMessage::AuthClient(request.clone().into()));
    assert!(pair.server.send(&LoginMessage::AuthClient(request.into())).is_err());
    let response = MarginClientMessage::from(CertChallengeResponse { challenge: [0; 16] });
    assert!(pair.client.send(&LoginMessage::MarginClient(Box::new(response))).is_err());
}
