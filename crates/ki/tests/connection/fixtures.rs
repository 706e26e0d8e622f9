//! Compares the frames that both sides write of their own accord with those in the vectors. Frames
//! that depend only on the session and the clock match byte for byte. Captures of encrypted
//! sessions match except for the block that only the operator's keys can produce.

use std::time::Duration;

use worldwire_core::connection::{Connection as _, Input};
use worldwire_core::json::{self, Json};
use worldwire_core::testing::hex;
use worldwire_core::{Reader, Side};
use worldwire_ki::connection::{ClientConfig, Connection, ServerConfig};
use worldwire_ki::control::{Control, Opcode};
use worldwire_ki::frame::{Body, Frame};

use crate::support::{EPOCH, lines};

/// A frame from the vectors.
fn fixture(name: &str) -> Vec<u8> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ki/frames.json"));
    let vectors = json::parse(text).unwrap();
    let frames = vectors.get("frames").and_then(Json::as_array).unwrap();
    let is_it = |frame: &&Json| frame.get("name").and_then(Json::as_str) == Some(name);
    hex(frames.iter().find(is_it).unwrap(), "hex").unwrap()
}

fn server(session_id: u16, config: ServerConfig) -> Connection {
    Connection::server(config.into(), session_id, Duration::ZERO)
}

/// The bytes that a connection wants to send.
fn sent(connection: &mut Connection, to: Side) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = connection.poll_transmit(to) {
        all.extend_from_slice(&bytes);
    }
    all
}

/// The bytes that a connection sends in response to the given ones.
fn answer(connection: &mut Connection, now: Duration, from: Side, bytes: &[u8]) -> Vec<u8> {
    connection.input(now, from, Input::Bytes(bytes));
    lines(connection);
    sent(connection, from)
}

/// A frame with the crypto block from a capture, and the captured frame, both without the last
/// byte, which is masked in captures.
fn with_block(own: &[u8], captured: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut own = Frame::decode(&mut Reader::new(own), None).unwrap();
    let masked = Frame::decode(&mut Reader::new(captured), None).unwrap();
    match (&mut own.body, masked.body) {
        (
            Body::Control(Control::SessionOffer(own)),
            Body::Control(Control::SessionOffer(masked)),
        ) => {
            own.crypto = masked.crypto;
        }
        (
            Body::Control(Control::SessionAccept(own)),
            Body::Control(Control::SessionAccept(masked)),
        ) => own.crypto = masked.crypto,
        other => panic!("{other:?}"),
    }
    let without_last = |bytes: &[u8]| bytes[..bytes.len() - 1].to_vec();
    (without_last(&own.to_bytes().unwrap()), without_last(captured))
}

#[test]
fn a_session_of_the_vectors() {
    let mut server = server(4660, ServerConfig::new(EPOCH));
    let offer = sent(&mut server, Side::Client);
    assert_eq!(offer, fixture("offer_empty_crypto"));
    let epoch = Duration::from_millis(1_700_000_001_099);
    let mut client = Connection::client(ClientConfig::new(epoch).into(), Duration::ZERO);
    let accept = answer(&mut client, Duration::ZERO, Side::Server, &offer);
    assert_eq!(accept, fixture("accept_empty_crypto"));
    assert_eq!(answer(&mut server, Duration::ZERO, Side::Client, &accept), b"");
    // A response repeats the keep-alive.
    let wanted = fixture("server_keep_alive_rsp");
    let mut alive = wanted.clone();
    alive[5] = Opcode::KeepAlive.0;
    assert_eq!(answer(&mut server, Duration::from_secs(1), Side::Client, &alive), wanted);
}

#[test]
fn keep_alives_of_the_vectors() {
    let every = Duration::from_millis(123_456_789);
    let mut config = ServerConfig::new(EPOCH);
    config.common.keep_alive_every = every;
    let mut server = server(4660, config);
    sent(&mut server, Side::Client);
    answer(&mut server, Duration::ZERO, Side::Client, &fixture("accept_empty_crypto"));
    server.timeout(every);
    assert_eq!(sent(&mut server, Side::Client), fixture("server_keep_alive"));

    let mut config = ClientConfig::new(EPOCH);
    config.common.keep_alive_every = Duration::from_millis(11 * 60_000 + 14_097);
    let every = config.common.keep_alive_every;
    let mut client = Connection::client(config.into(), Duration::ZERO);
    answer(&mut client, Duration::ZERO, Side::Server, &fixture("offer_empty_crypto"));
    client.timeout(every);
    assert_eq!(sent(&mut client, Side::Server), fixture("client_keep_alive_no_trailer"));
}

#[test]
fn captured_sessions() {
    let (offer, accept) = (fixture("offer_capture_masked"), fixture("accept_capture_masked"));
    let epoch = Duration::from_millis(1_639_851_252_276);
    let own = sent(&mut server(1419, ServerConfig::new(epoch)), Side::Client);
    let (own_offer, captured) = with_block(&own, &offer);
    assert_eq!(own_offer, captured);
    let epoch = Duration::from_millis(1_639_851_231_288);
    let mut client = Connection::client(ClientConfig::new(epoch).into(), Duration::ZERO);
    let own = answer(&mut client, Duration::ZERO, Side::Server, &offer);
    let (own_accept, captured) = with_block(&own, &accept);
    assert_eq!(own_accept, captured);
}
