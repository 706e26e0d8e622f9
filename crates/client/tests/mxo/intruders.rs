//! Attacks on a server with logins: each is refused by name while other clients continue to play.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};
use worldwire_client::mxo::{Client, ConnectError, LoginError, Margin, Settings};
use worldwire_core::Writer;
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Hello, Plain};

use crate::server::{PATIENCE, Server, until, write_key};

/// Sends bytes to a TCP server. Returns whether it then closes the connection.
async fn is_closed_after(server: SocketAddr, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut rest = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn malformed_messages_close_the_connection() {
    let server = Server::start(|_| ()).await;
    let key_request = [9, 6, 0xd9, 0x21, 7, 0, 4, 0, 0, 0];
    let mut late = key_request.to_vec();
    late.push(0);
    late[0] = 10;
    for (name, bytes) in [
        ("an empty body", &[0][..]),
        ("a huge body", &[0xff, 0xff, 6]),
        ("a key request that is too short", &[2, 6, 0]),
        ("a key request that is too long", &late),
        ("a proof before a name", &[5, 10, 3, 0, 0, 0]),
        ("a certificate for the auth server", &[4, 8, 3, 0, 0]),
    ] {
        assert!(is_closed_after(server.auth, bytes).await, "{name}");
    }
    for (name, bytes) in [
        ("no certificate", &[3, 1, 3, 0][..]),
        ("a plain load", &[11, 15, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (
            "a challenge that was not asked for",
            &[17, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
    ] {
        assert!(is_closed_after(server.margin, bytes).await, "{name}");
    }
    // An unknown opcode is ignored, and the connection continues.
    let mut stream = TcpStream::connect(server.auth).await.unwrap();
    stream.write_all(&[&[2, 0x35, 1][..], &key_request].concat()).await.unwrap();
    let mut reply = [0; 19];
    timeout(PATIENCE, stream.read_exact(&mut reply)).await.unwrap().unwrap();
    assert_eq!(reply[..2], [18, 7]);
    drop(stream);
    let faults = "connections_faults_total{server=\"auth\"}";
    until("the faults are counted", async || server.metric(faults).await >= 4).await;
    until("it is counted", async || server.metric("messages_ignored_total").await == 1).await;
    server.stop().await;
}

#[tokio::test]
async fn torn_messages_are_put_together() {
    let server = Server::start(|_| ()).await;
    let mut stream = TcpStream::connect(server.auth).await.unwrap();
    for byte in [9, 6, 0xd9, 0x21, 7, 0, 0, 0, 0, 0] {
        stream.write_all(&[byte]).await.unwrap();
        stream.flush().await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    // The key: 406 bytes, after a length of two bytes.
    let mut reply = vec![0; 408];
    timeout(PATIENCE, stream.read_exact(&mut reply)).await.unwrap().unwrap();
    assert_eq!(reply[..3], [0x81, 0x96, 7]);
    assert_eq!(reply[20..24], [128, 0, server.public_key.modulus[0], server.public_key.modulus[1]]);
    server.stop().await;
}

#[tokio::test]
async fn floods_take_only_their_own_places() {
    let server = Server::start(|config| config.limits.connections_per_address = 3).await;
    server.add("neo").await;
    // Half-open connections from one address, which use up the limit for that address.
    let mut flood = Vec::new();
    for _ in 0..8 {
        flood.push(TcpStream::connect(server.auth).await.unwrap());
    }
    let refused = "connections_refused_total{server=\"auth\"}";
    until("the others are refused", async || server.metric(refused).await == 5).await;
    drop(flood);
    until("they are gone", async || server.metric("connections{server=\"auth\"}").await == 0).await;
    server.ticket("neo").await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn certificates_of_other_servers_are_refused() {
    let server = Server::start(|_| ()).await;
    // Another server key, signed by the same signing key.
    let folder = tempfile::tempdir().unwrap();
    write_key(folder.path(), "signing.pem");
    let other = Server::start_in(folder, |_| ()).await;
    for server in [&server, &other] {
        server.add("neo").await;
    }
    let ticket = other.ticket("neo").await.unwrap();
    let refused = Margin::connect(server.margin, ticket, PATIENCE).await;
    assert!(matches!(refused, Err(LoginError::Ended(_))), "{refused:?}");
    // One of this server's certificates, with another name in it.
    let mut ticket = server.ticket("neo").await.unwrap();
    ticket.certificate.certificate.user_id += 1;
    let refused = Margin::connect(server.margin, ticket, PATIENCE).await;
    assert!(matches!(refused, Err(LoginError::Ended(_))), "{refused:?}");
    // Somebody else's certificate, without its key.
    let mut ticket = server.ticket("neo").await.unwrap();
    ticket.key = other.ticket("neo").await.unwrap().key;
    let refused = Margin::connect(server.margin, ticket, PATIENCE).await;
    assert!(refused.is_err());
    assert_eq!(server.metric("refused_total{reason=\"certificate\"}").await, 2);
    // A ticket can be used again while it is valid, because each use starts a new session.
    let ticket = server.ticket("neo").await.unwrap();
    let first = Margin::connect(server.margin, ticket.clone(), PATIENCE).await.unwrap();
    let second = Margin::connect(server.margin, ticket, PATIENCE).await.unwrap();
    assert_ne!(first.session().1.as_bytes(), second.session().1.as_bytes());
    server.stop().await;
    other.stop().await;
}

fn hello(settings: &Settings) -> Vec<u8> {
    let mut block = [0; 16];
    block[..4].copy_from_slice(&settings.session.to_le_bytes());
    let hello = Hello {
        character_uid: settings.uid,
        unknown: 0x384,
        encrypted_session: settings.key.seal_block(&block),
    };
    let mut writer = Writer::new();
    writer.bytes(&Plain::Hello(hello).to_bytes().unwrap());
    writer.into_bytes()
}

#[tokio::test]
async fn hellos_without_a_margin_session_are_refused() {
    let server = Server::start(|_| ()).await;
    let (mut margin, id) = server.newcomer("neo", "Neo").await;
    let right = Server::settings(&margin, id);
    let short = Settings { setup_time: Duration::from_millis(300), ..right.clone() };
    let wrong = [
        ("no-margin-session", Settings { uid: id + 1, ..short.clone() }),
        ("other-session", Settings { session: right.session ^ 1, ..short.clone() }),
        ("other-session", Settings { key: SessionKey::new(&[7; 16]), ..short }),
    ];
    for (name, settings) in wrong {
        let refused = Client::connect(server.game, settings).await;
        assert!(matches!(refused, Err(ConnectError::NoAnswer(_))), "{name}: {refused:?}");
        let metric = format!("hellos_refused_total{{reason=\"{name}\"}}");
        assert!(server.metric(&metric).await > 0, "{name}");
    }
    // A replay from another address.
    let socket = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    socket.send_to(&hello(&right), server.game).await.unwrap();
    let other = "hellos_refused_total{reason=\"other-address\"}";
    until("it is refused", async || server.metric(other).await == 1).await;
    // Any other packet is discarded unread.
    for datagram in [&b""[..], b"\0", &[1; 100], &[0xff; 1_400]] {
        socket.send_to(datagram, server.game).await.unwrap();
    }
    // The player notices nothing, and the session ends with the margin connection.
    let neo = server.enter(&mut margin, id).await;
    drop(margin);
    until("it is gone", async || server.metric("players").await == 0).await;
    drop(neo);
    let late = Settings { setup_time: Duration::from_millis(300), ..right };
    assert!(Client::connect(server.game, late).await.is_err());
    server.stop().await;
}
