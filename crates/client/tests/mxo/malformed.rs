//! Sends the malformed inputs of the conformance vectors, and wrong or replayed secrets, to running
//! servers and clients.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use worldwire_client::mxo::{LoginError, log_in};
use worldwire_core::json::Json;
use worldwire_core::testing::hex;
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Channel, TcpFrame};
use worldwire_mxo::login::{LoginStatus, MarginClientMessage};
use worldwire_net::End;

use crate::log::Log;
use crate::raw::RawChannel;
use crate::server::{PASSWORD, PATIENCE, Server, until};

/// A request for the server's key, which is answered with a key reply.
const KEY_REQUEST: [u8; 9] = [6, 0xd9, 0x21, 7, 0, 4, 0, 0, 0];
/// A message with an unknown opcode.
const UNKNOWN: [u8; 3] = [0x77, 1, 2];

/// The names, senders and bodies of the malformed inputs on these channels.
fn inputs(channels: &[&str]) -> Vec<(String, String, Vec<u8>, Json)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mxo-login/malformed.json");
    let json: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = json["vectors"].as_array().unwrap();
    assert_eq!(cases.len(), 29);
    let is_wanted = |case: &&Json| channels.contains(&case["channel"].as_str().unwrap());
    let input = |case: &Json| {
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        (text("id"), text("direction"), hex(case, "body").unwrap(), case.clone())
    };
    cases.iter().filter(is_wanted).map(input).collect()
}

/// Waits until a server has counted this many faults.
async fn counts(server: &Server, channel: &str, faults: u64) {
    let metric = format!("connections_faults_total{{server=\"{channel}\"}}");
    until("the faults are counted", async || server.metric(&metric).await == faults).await;
}

#[tokio::test]
async fn the_auth_server_refuses_every_malformed_input() {
    let log = Log::begin();
    let server = Server::start(|_| ()).await;
    server.add("neo").await;
    let (mut faults, mut ignored) = (0, 0);
    for (id, direction, body, _) in inputs(&["auth"]) {
        let mut raw = RawChannel::dial(server.auth, Channel::Auth).await;
        if body.is_empty() {
            raw.send_bytes(&[0]).await;
        } else {
            raw.send(&body).await;
        }
        if direction == "client" {
            assert!(raw.is_closed().await, "{id}");
            faults += 1;
            counts(&server, "auth", faults).await;
        } else {
            // Messages that only servers send are ignored if they come from a client, as are
            // unknown opcodes.
            raw.send(&UNKNOWN).await;
            raw.send(&KEY_REQUEST).await;
            assert_eq!(raw.receive().await.unwrap()[0], 7, "{id}");
            ignored += 2;
        }
    }
    assert_eq!((faults, ignored), (4, 16));
    until("they are counted", async || server.metric("messages_ignored_total").await == ignored)
        .await;
    let lines = log.with("the peer violated the protocol");
    assert!(lines.len() == 1 && lines[0].contains("state=\"auth\""), "{lines:?}");
    assert!(lines[0].contains("at least 1 byte"), "{lines:?}");
    // Other clients' blobs, and damaged blobs.
    for (id, _, blob, _) in inputs(&["rsa"]) {
        let mut raw = RawChannel::dial(server.auth, Channel::Auth).await;
        let size = u16::try_from(blob.len()).unwrap().to_le_bytes();
        raw.send(&[&[8, 4, 0, 0, 0, 1, 0, 0][..], &[0; 32], &size, &blob].concat()).await;
        assert_eq!(raw.refusal().await.status, LoginStatus::UnknownKey, "{id}");
        assert!(raw.is_closed().await, "{id}");
    }
    assert_eq!(server.metric("refused_total{reason=\"other-server-key\"}").await, 3);
    assert!(log.with("pubkey.dat").len() == 1, "{:?}", log.lines());
    server.ticket("neo").await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn the_margin_server_refuses_every_malformed_input() {
    let log = Log::begin();
    let server = Server::start(|config| config.limits.sessions_per_account = 100).await;
    let (mut margin, _) = server.newcomer("neo", "Neo").await;
    let mut faults = 0;
    for (id, direction, body, case) in inputs(&["margin", "margin-sealed"]) {
        let is_sealed = case["channel"] == "margin-sealed";
        let mut raw = if is_sealed || body[0] != 1 {
            let ticket = server.ticket("neo").await.unwrap();
            RawChannel::margin(&server, ticket, |_| ()).await.unwrap()
        } else {
            RawChannel::dial(server.margin, Channel::Margin).await
        };
        if is_sealed {
            // If the input consists of whole cipher blocks, it is encrypted again with the
            // session's key.
            let vector_key: [u8; 16] = hex(&case, "key").unwrap().try_into().unwrap();
            let iv: [u8; 16] = body[..16].try_into().unwrap();
            let plain = SessionKey::new(&vector_key).open_blocks(&iv, &body[16..]);
            let key = raw.key.take().unwrap();
            let sealed = plain.map(|plain| [&iv[..], &key.seal_blocks(&iv, &plain)].concat());
            raw.send(&sealed.unwrap_or(body)).await;
        } else {
            raw.send(&body).await;
        }
        if direction == "client" {
            assert!(raw.is_closed().await, "{id}");
            faults += 1;
            counts(&server, "margin", faults).await;
        } else {
            // These are ignored, as are unknown opcodes. The server still replies to a claim.
            raw.send(&UNKNOWN).await;
            raw.send(b"\x0a\x03\0\x03\0X2\0").await;
            assert_eq!(raw.receive().await.unwrap()[0], 0x0b, "{id}");
        }
    }
    assert_eq!(faults, 13);
    until("they are counted", async || server.metric("messages_ignored_total").await == 2).await;
    let lines = log.with("the peer violated the protocol");
    assert!(lines.len() == 1 && lines[0].contains("state=\"margin\""), "{lines:?}");
    // The first session notices nothing.
    margin.claim("Anderson").await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_client_refuses_what_no_auth_server_sends() {
    let server = Server::start(|_| ()).await;
    let replies = inputs(&["auth"]);
    let replies: Vec<_> = replies.iter().filter(|(_, from, ..)| from == "server").collect();
    assert_eq!(replies.len(), 8);
    for (id, _, body, _) in replies {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut writer = worldwire_core::Writer::new();
        TcpFrame::of(body).encode(&mut writer).unwrap();
        let replying = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(writer.as_bytes()).await.unwrap();
            stream
        });
        let outcome = log_in(address, server.login("neo", PASSWORD), PATIENCE).await;
        assert!(matches!(outcome, Err(LoginError::Ended(End::Fault { .. }))), "{id}: {outcome:?}");
        replying.await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn wrong_and_replayed_challenges_are_refused() {
    let server = Server::start(|config| config.login.delay_after_failures = false).await;
    server.add("neo").await;
    // A replayed login: its proof answers an older challenge.
    let frames = RawChannel::auth_frames(&server, "neo").await;
    let mut replay = RawChannel::dial(server.auth, Channel::Auth).await;
    for frame in &frames {
        replay.send_bytes(frame).await;
    }
    let opcodes = [replay.receive().await.unwrap()[0], replay.receive().await.unwrap()[0]];
    assert_eq!(opcodes, [7, 9]);
    assert_eq!(replay.refusal().await.status, LoginStatus::WrongPassword);
    assert!(replay.is_closed().await);
    assert_eq!(server.metric("refused_total{reason=\"wrong-proof\"}").await, 1);
    // The response contains a challenge other than the one that the server sent.
    let ticket = server.ticket("neo").await.unwrap();
    let wrong = |message: &mut MarginClientMessage<'static>| {
        if let MarginClientMessage::CertChallengeResponse(response) = message {
            response.challenge[3] ^= 1;
        }
    };
    assert!(RawChannel::margin(&server, ticket.clone(), wrong).await.is_none());
    assert_eq!(server.metric("refused_total{reason=\"wrong-challenge\"}").await, 1);
    // A replayed session: it is encrypted with an older key.
    let session = RawChannel::margin(&server, ticket, |_| ()).await.unwrap();
    let mut replay = RawChannel::dial(server.margin, Channel::Margin).await;
    for frame in &session.sent {
        replay.send_bytes(frame).await;
    }
    assert_eq!(replay.receive().await.unwrap()[0], 2);
    assert!(replay.is_closed().await);
    counts(&server, "margin", 1).await;
    // Half a message is not a message.
    let mut half = RawChannel::dial(server.margin, Channel::Margin).await;
    half.send_bytes(&session.sent[0][..100]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.ticket("neo").await.unwrap();
    drop(half);
    server.stop().await;
}
