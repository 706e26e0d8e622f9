//! Tests of the gatekeeper, the file service and the status page.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use worldwire_net::tcp;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::file::client as file;
use worldwire_uru::message::file::server::{FileDownloadReply, ServerMessage};
use worldwire_uru::message::gatekeeper::client as gatekeeper;
use worldwire_uru::message::gatekeeper::server as gatekeeper_server;
use worldwire_uru::types::{NetError, TransId};

use crate::client::{Client, PATIENCE, Running};

fn some_files(folder: &Path) {
    let files = folder.join("data/files");
    fs::create_dir_all(files.join("External/dat")).unwrap();
    fs::write(files.join("External/dat/page.prp"), "page ".repeat(50_000)).unwrap();
    fs::write(files.join("External/empty.txt"), "").unwrap();
    fs::write(folder.join("data/secret"), "nobody's").unwrap();
}

#[tokio::test]
async fn the_first_start_creates_missing_files() {
    let shard = Running::start(|_| (), |_| ()).await;
    let keys = fs::read(shard.folder.path().join("keys.toml")).unwrap();
    let config = fs::read_to_string(shard.folder.path().join("shard.toml")).unwrap();
    assert!(config.contains("# The address for clients"));
    let folder = shard.stop().await;
    let shard = Running::start_in(folder, |_| ()).await;
    assert_eq!(fs::read(shard.folder.path().join("keys.toml")).unwrap(), keys);
    shard.stop().await;
}

#[tokio::test]
async fn the_gatekeeper_answers_encrypted_and_plain_clients() {
    let shard = Running::start(|_| (), |config| config.public_address = "uru.example".into()).await;
    let key = shard.keys.public(ServerKind::Gatekeeper).cloned();
    for key in [key, None] {
        let mut client = shard.client(Service::Gatekeeper, key).await;
        let request = gatekeeper::FileSrvIpAddressRequest { trans_id: TransId(5), is_patcher: 1 };
        let heard = client.ask(gatekeeper::ClientMessage::from(request)).await;
        let Message::GatekeeperServer(gatekeeper_server::ServerMessage::FileSrvIpAddressReply(
            reply,
        )) = heard.message()
        else {
            panic!("{:?}", heard.message())
        };
        assert_eq!((reply.trans_id, reply.address.to_text()), (TransId(5), "uru.example".into()));
    }
    shard.stop().await;

    let encrypted = |config: &mut worldwire_server::uru::ShardConfig| {
        config.encryption = worldwire_server::uru::config::EncryptionPolicy::Require;
    };
    let shard = Running::start(|_| (), encrypted).await;
    let mut client = shard.client(Service::Gatekeeper, None).await;
    assert!(client.hear().await.is_none(), "plain connections are refused");
    shard.stop().await;
}

/// Downloads a file, with a ping in between. Returns the chunks' lengths, the bytes, and the point
/// at which the reply to the ping arrived.
async fn download(client: &mut Client, name: &str) -> (NetError, Vec<usize>, Vec<u8>) {
    let (trans_id, build_id) = (TransId(9), 0);
    let request = file::FileDownloadRequest { trans_id, filename: name.into(), build_id };
    client.say(file::ClientMessage::from(request)).await;
    let (mut chunks, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let heard = client.hear().await.unwrap();
        let Message::FileServer(ServerMessage::FileDownloadReply(reply)) = heard.message() else {
            panic!("{:?}", heard.message())
        };
        let FileDownloadReply { result, total_file_size, data, .. } = reply;
        chunks.push(data.len());
        bytes.extend_from_slice(&data);
        if bytes.len() >= total_file_size as usize {
            return (result, chunks, bytes);
        }
    }
}

#[tokio::test]
async fn files_are_listed_and_downloaded() {
    let shard = Running::start(some_files, |_| ()).await;
    let mut client = shard.client(Service::File, None).await;
    let manifest = |group: &str, build_id| {
        let request = file::ManifestRequest { trans_id: TransId(1), group: group.into(), build_id };
        file::ClientMessage::from(request)
    };
    let heard = client.ask(manifest("External", 918)).await;
    let Message::FileServer(ServerMessage::ManifestReply(reply)) = heard.message() else {
        panic!()
    };
    let listed = reply.manifest.decode::<Manifest<'_>>().unwrap();
    assert_eq!((reply.result, reply.num_files, listed.0.len()), (NetError::Success, 2, 2));
    let page = &listed.0[0];
    let (result, chunks, bytes) = download(&mut client, &page.download_name.to_text()).await;
    assert_eq!((result, chunks.len()), (NetError::Success, 1));
    assert_eq!(bytes.len(), page.compressed_size.0 as usize);
    let (result, chunks, bytes) = download(&mut client, "External\\dat\\page.prp").await;
    assert_eq!(result, NetError::Success);
    assert_eq!(bytes, "page ".repeat(50_000).as_bytes());
    assert_eq!((chunks.len(), chunks[0], chunks[7]), (8, 32 << 10, 250_000 - 7 * (32 << 10)));
    // An empty file takes one reply.
    let (result, chunks, _) = download(&mut client, "External/empty.txt").await;
    assert_eq!((result, chunks), (NetError::Success, vec![0]));
    for name in ["missing", "..\\secret", "/etc/passwd", "External", "../../shard.toml", ""] {
        let (result, ..) = download(&mut client, name).await;
        assert_eq!(result, NetError::FileNotFound, "{name}");
    }
    for (group, build, result) in [
        ("External", 917, NetError::OldBuildId),
        ("Nothing", 0, NetError::FileNotFound),
        ("../files", 0, NetError::FileNotFound),
    ] {
        let heard = client.ask(manifest(group, build)).await;
        let Message::FileServer(ServerMessage::ManifestReply(reply)) = heard.message() else {
            panic!()
        };
        assert_eq!((reply.result, reply.num_files), (result, 0), "{group}");
    }
    let request = file::BuildIdRequest { trans_id: TransId(2) };
    let heard = client.ask(file::ClientMessage::from(request)).await;
    let Message::FileServer(ServerMessage::BuildIdReply(reply)) = heard.message() else { panic!() };
    assert_eq!(reply.build_id, 918);
    shard.stop().await;
}

#[tokio::test]
async fn pings_are_answered_between_chunks() {
    let big = |folder: &Path| {
        fs::create_dir_all(folder.join("data/files")).unwrap();
        fs::write(folder.join("data/files/big"), vec![1; 8 << 20]).unwrap();
    };
    let shard = Running::start(big, |_| ()).await;
    let mut client = shard.client(Service::File, None).await;
    let request =
        file::FileDownloadRequest { trans_id: TransId(1), filename: "big".into(), build_id: 0 };
    client.say(file::ClientMessage::from(request)).await;
    client.say(file::ClientMessage::from(file::BuildIdRequest { trans_id: TransId(2) })).await;
    let (mut chunks, mut answered_after) = (0, None);
    while chunks < 256 {
        match client.hear().await.unwrap().message() {
            Message::FileServer(ServerMessage::FileDownloadReply(_)) => chunks += 1,
            Message::FileServer(ServerMessage::BuildIdReply(_)) => answered_after = Some(chunks),
            other => panic!("{other:?}"),
        }
    }
    assert!(answered_after.unwrap() < 256);
    shard.stop().await;
}

pub(crate) async fn http(shard: &Running, request: &str) -> String {
    exchange(shard.status, request).await
}

/// A page, with the head of the response.
pub(crate) async fn get(status: SocketAddr, page: &str) -> String {
    exchange(status, &format!("GET {page} HTTP/1.0\r\nHost: localhost\r\n\r\n")).await
}

async fn exchange(status: SocketAddr, request: &str) -> String {
    let mut stream = tcp::dial(status, PATIENCE).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap().unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn the_status_page_answers_launchers_and_operators() {
    let welcome = |config: &mut worldwire_server::uru::ShardConfig| {
        config.welcome = "Sh\u{f3}rah \"all\"".into();
    };
    let shard = Running::start(|_| (), welcome).await;
    let mut silent = tcp::dial(shard.status, PATIENCE).await.unwrap();
    silent.write_all(b"GET /status HT").await.unwrap();

    let get = |path: &str| format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let status = http(&shard, &get("/status")).await;
    assert!(status.starts_with("HTTP/1.0 200 OK"), "{status}");
    let open = "\"online\":true,\"open\":true,\"role\":\"active\",\
                \"welcome\":\"Sh\u{f3}rah \\\"all\\\"\"";
    assert!(
        status.contains(open)
            && status.contains("\"games\":[]")
            && status.contains("\"database\":\"ok\""),
        "{status}"
    );
    let agent = "GET /welcome HTTP/1.1\r\nHost: localhost\r\nUser-Agent: UruClient/1.0\r\n\
                 Connection: close\r\n\r\n";
    assert!(http(&shard, agent).await.ends_with("Sh\u{fffd}rah \"all\""));
    let post = "POST /serverstatus/moulbeta.php HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi";
    assert!(http(&shard, post).await.contains("200 OK"));
    let head = "HEAD /serverstatus/moullive.php HTTP/1.0\r\n\r\n";
    assert!(http(&shard, head).await.ends_with("\r\n\r\n"));
    assert!(http(&shard, &get("/")).await.starts_with("HTTP/1.0 404"));
    assert!(http(&shard, &get("/health")).await.ends_with("\r\n\r\nok\n"));
    let _client = shard.client(Service::File, None).await;
    let metrics = http(&shard, &get("/metrics")).await;
    for line in [
        "worldwire_active 1\n",
        "worldwire_connections 1\n",
        "worldwire_database_up 1\n",
        "# TYPE worldwire_connections_accepted_total counter\n",
        "worldwire_service_connections{service=\"file\"} 1\n",
        "worldwire_ages 0\n",
        "worldwire_open 1\n",
        "worldwire_players_in_ages 0\n",
        "worldwire_age_messages_total 0\n",
        "worldwire_age_deliveries_total 0\n",
        "worldwire_dropped_messages_total{reason=\"unsafe\"} 0\n",
        "worldwire_games{game=\"Heek\"} 0\n",
        "worldwire_refused_game_messages_total{reason=\"unknown-game\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    shard.vault.restrict(true, false).await.unwrap();
    assert!(http(&shard, &get("/status")).await.contains("\"open\":false"));
    assert!(http(&shard, &get("/metrics")).await.contains("worldwire_open 0\n"));
    shard.stop().await;
}
