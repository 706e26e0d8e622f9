//! Other commands understand a login server's traffic, using the keys that the server writes.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use worldwire_capture::{CaptureWriter, LinkType, SyntheticTcp, Timestamp};
use worldwire_client::ki::{Client, Settings};
use worldwire_core::Side;
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_net::Stop;
use worldwire_server::ki::realm::Privileges;
use worldwire_server::ki::{LoginServer, Start};

/// The bytes of each connection, in order.
type Tape = Arc<Mutex<Vec<Vec<(Side, Vec<u8>)>>>>;

/// Forwards connections to a server and records their bytes.
async fn record(listener: TcpListener, server: String, tape: Tape) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(&server).await.unwrap();
        let number = {
            let mut tape = tape.lock().unwrap();
            tape.push(Vec::new());
            tape.len() - 1
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(pass(Side::Client, from_client, to_server, Arc::clone(&tape), number));
        tokio::spawn(pass(Side::Server, from_server, to_client, Arc::clone(&tape), number));
    }
}

async fn pass(
    side: Side,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    tape: Tape,
    number: usize,
) {
    let mut piece = [0; 4096];
    while let Ok(count) = from.read(&mut piece).await
        && count > 0
    {
        tape.lock().unwrap()[number].push((side, piece[..count].to_vec()));
        let _ = to.write_all(&piece[..count]).await;
    }
    let _ = to.shutdown().await;
}

fn write(tape: &Tape, path: &Path) {
    let mut writer = CaptureWriter::new(File::create(path).unwrap(), &["test"]).unwrap();
    let interface = writer.interface(LinkType::ETHERNET).unwrap();
    let mut nanos = 0;
    for (number, pieces) in tape.lock().unwrap().iter().enumerate() {
        let port = 40_000 + u16::try_from(number).unwrap();
        let end = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut tcp = SyntheticTcp::new(end(port), end(12_000));
        let mut packets = tcp.open();
        for (side, bytes) in pieces {
            packets.extend(tcp.data(*side, bytes));
        }
        packets.extend(tcp.close());
        for packet in packets {
            nanos += 1000;
            let length = u32::try_from(packet.len()).unwrap();
            let time = Timestamp::from_parts(1_767_225_600, nanos);
            writer.packet(interface, time, &packet, length).unwrap();
        }
    }
}

#[tokio::test]
async fn a_capture_of_a_login_server_dissects_completely() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("login/patch")).unwrap();
    let (secrets, capture) = (folder.path().join("keys.toml"), folder.path().join("ki.pcapng"));
    let start = Start {
        change: Some(Box::new(|config| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status = String::new();
        })),
        secrets: Some(secrets.clone()),
    };
    let server = LoginServer::open(&folder.path().join("login"), start).await.unwrap();
    let (address, realm) = (server.address().unwrap().to_string(), server.realm().clone());
    let (stop, tape) = (Stop::new(), Tape::default());
    let serving = tokio::spawn(server.serve(stop.signal()));
    realm.add_account("merle", "hunter2", Privileges::default()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let recording = tokio::spawn(record(listener, address, Arc::clone(&tape)));

    let (settings, place) = (Settings::default(), format!("127.0.0.1:{port}"));
    let mut first = Client::connect(&place, &settings).await.unwrap();
    let wrong = first.log_in("merle", &password_hash("x")).await;
    assert!(wrong.is_err());
    let pass = first.log_in("merle", &password_hash("hunter2")).await.unwrap();
    first.file_list().await.unwrap();
    first.close().await;
    let mut game = Client::connect(&place, &settings).await.unwrap();
    game.ping().await.unwrap();
    game.validate(&pass).await.unwrap();
    game.wait_until_admitted().await.unwrap();
    game.create(Character::plain("Merle", "Fire", 1).as_bytes()).await.unwrap();
    realm.refresh(None).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let character = game.characters().await.unwrap().list[0].global_id();
    assert!(game.delete(1).await.is_err());
    game.servers().await.unwrap();
    let mut to = game.select(character).await.unwrap();
    to.tcp_port = port;
    let (zone, _) = Client::enter(&to, &settings).await.unwrap();
    zone.close().await;
    stop.stop();
    serving.await.unwrap().unwrap();
    recording.abort();
    write(&tape, &capture);

    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = command.arg("dissect").arg(&capture).arg("--keys").arg(&secrets).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // There are no problems, and every byte is decoded.
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for name in [
        "SessionOffer",
        "SessionAccept",
        "LOGIN.MSG_USER_AUTHEN_V3",
        "LOGIN.MSG_USER_AUTHEN_RSP",
        "LOGIN.MSG_USER_VALIDATE_RSP",
        "LOGIN.MSG_USER_ADMIT_IND",
        "LOGIN.MSG_CHARACTERINFO",
        "LOGIN.MSG_CHARACTERSELECTED",
        "PATCH.MSG_LATEST_FILE_LIST_V2",
        "GAME.MSG_ATTACH",
        "GAME.MSG_LOGINCOMPLETE",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(text.contains(pass.ck2.as_str()), "Rec1 is open: {text}");
    for word in ["_trailing", "stays closed", "problem"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}
