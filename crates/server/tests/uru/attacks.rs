//! Peers that break the rules: harmless to all others.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use worldwire_core::{Field as _, Writer};
use worldwire_net::tcp;
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client as auth;
use worldwire_uru::message::file::client as file;
use worldwire_uru::message::gatekeeper::client as gatekeeper;
use worldwire_uru::types::TransId;

use crate::client::{PATIENCE, Running};

fn connect_packet(service: Service) -> Vec<u8> {
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    writer.into_bytes()
}

/// A connection whose setup is complete, without encryption.
async fn set_up(shard: &Running, service: Service) -> TcpStream {
    let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
    stream.write_all(&connect_packet(service)).await.unwrap();
    if service != Service::File {
        stream.write_all(&[0, 2]).await.unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [1, 2]);
    }
    stream
}

/// Reads until the server closes the connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // A reset is an end, too.
    read.is_ok()
}

/// How long an honest client waits for an answer.
async fn answered(shard: &Running) -> Duration {
    let start = Instant::now();
    let mut client = shard.client(Service::Gatekeeper, None).await;
    let request = gatekeeper::AuthSrvIpAddressRequest { trans_id: TransId(1) };
    client.ask(gatekeeper::ClientMessage::from(request)).await;
    start.elapsed()
}

#[tokio::test]
async fn broken_setups_are_closed_at_once() {
    let shard = Running::start(|_| (), |_| ()).await;
    let auth = connect_packet(Service::Auth);
    let with = |at: usize, byte: u8| {
        let mut packet = auth.clone();
        packet[at] = byte;
        packet
    };
    let y = |number: &[u8]| {
        let length = u8::try_from(number.len() + 2).unwrap();
        [&auth, &[0, length][..], number].concat()
    };
    let modulus = shard.keys.public(worldwire_uru::crypt::key::ServerKind::Auth).unwrap().n();
    let mut n: Vec<u8> = modulus.to_be_bytes().into();
    n.reverse();
    let mut n_less_1 = n.clone();
    n_less_1[0] -= 1;
    for (what, bytes) in [
        ("an unknown service", with(0, 99)),
        ("a dead one", with(0, 20)),
        ("a long header", with(1, 32)),
        ("data of another length", with(31, 21)),
        ("another build", with(3, 1)),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec()),
        ("y of 0", y(&[0; 64])),
        ("y of 1", y(&[1])),
        ("y of n - 1", y(&n_less_1)),
        ("y of n", y(&n)),
        ("a long y", y(&[7; 65])),
    ] {
        let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
        let start = Instant::now();
        stream.write_all(&bytes).await.unwrap();
        assert!(is_closed(&mut stream).await, "{what}");
        assert!(start.elapsed() < Duration::from_secs(5), "{what}");
    }
    answered(&shard).await;
    shard.stop().await;
}

#[tokio::test]
async fn broken_messages_are_closed_at_once() {
    let shard = Running::start(|_| (), |_| ()).await;
    let long_name = [&[3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 64, 0][..], &[b'x'; 128]].concat();
    // It promises two MiB of a node.
    let long_node = [25, 0, 1, 0, 0, 0, 0, 0, 32, 0];
    for (what, service, bytes) in [
        ("an unknown number", Service::Auth, &[0x77, 0x77][..]),
        ("a reserved number", Service::Auth, &[28, 0]),
        ("a name that is too long", Service::Auth, &long_name),
        ("a node that is too long", Service::Auth, &long_node),
        ("an unknown number", Service::Gatekeeper, &[3, 0]),
        ("a count that is too short", Service::File, &[7, 0, 0, 0, 0, 0, 0, 0]),
        ("a count of another message", Service::File, &[13, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 0]),
        ("a long message", Service::File, &[0, 0, 16, 0, 20, 0, 0, 0]),
    ] {
        let mut stream = set_up(&shard, service).await;
        stream.write_all(bytes).await.unwrap();
        assert!(is_closed(&mut stream).await, "{what}");
    }
    answered(&shard).await;
    shard.stop().await;
}

#[tokio::test]
async fn peers_that_do_not_read_and_torn_messages_delay_nobody() {
    let files = |folder: &std::path::Path| {
        std::fs::create_dir_all(folder.join("data/files")).unwrap();
        std::fs::write(folder.join("data/files/big"), vec![1; 16 << 20]).unwrap();
    };
    let many = |config: &mut worldwire_server::uru::ShardConfig| {
        config.limits.connections_per_address = 1000;
    };
    let shard = Running::start(files, many).await;
    let mut peers = Vec::new();
    let (trans_id, build_id) = (TransId(1), 0);
    let request = file::FileDownloadRequest { trans_id, filename: "big".into(), build_id };
    let download = Message::from(file::ClientMessage::from(request)).to_bytes().unwrap();
    let ping = gatekeeper::PingRequest {
        trans_id,
        ping_time_ms: 0,
        payload: worldwire_core::Bytes32::new(vec![0; 60_000]),
    };
    let ping = Message::from(gatekeeper::ClientMessage::from(ping)).to_bytes().unwrap();
    let torn =
        Message::from(auth::ClientMessage::from(auth::VaultNodeFetch { trans_id, node_id: 1 }));
    let torn = torn.to_bytes().unwrap();
    for _ in 0..20 {
        // Downloads, and answers, that nobody takes.
        let mut stream = set_up(&shard, Service::File).await;
        stream.write_all(&download).await.unwrap();
        peers.push(stream);
        let mut stream = set_up(&shard, Service::Gatekeeper).await;
        let flood = async { while stream.write_all(&ping).await.is_ok() {} };
        assert!(timeout(Duration::from_millis(20), flood).await.is_err());
        peers.push(stream);
        let mut stream = set_up(&shard, Service::Auth).await;
        stream.write_all(&torn[..torn.len() - 1]).await.unwrap();
        peers.push(stream);
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(answered(&shard).await);
    }
    times.sort();
    assert!(times[18] < Duration::from_secs(1), "{times:?}");
    drop(peers);
    shard.stop().await;
}
