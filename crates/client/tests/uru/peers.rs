//! Servers that violate the protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use worldwire_client::uru::{Auth, ClientError, Shard};
use worldwire_core::Bytes32;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_net::{Accept, Application, Flow, Options, Peer, Stop, tcp};
use worldwire_uru::connection::{Connection, Encryption, Sender, ServerConfig};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server::{
    ClientRegisterReply, FileDownloadChunk, PublicAgeList, ServerMessage as Reply,
    VaultNodeChanged, VaultNodeRefsFetched, VaultSaveNodeReply,
};
use worldwire_uru::types::{NetError, Uuid};

use crate::shard::Running;

/// The length of the file that [`Odd`] sends.
const BYTES: u32 = 6000;

/// A server that sends wrong replies.
#[derive(Clone)]
struct Odd;

impl Accept for Odd {
    type Connection = Connection;
    type Application = Self;

    fn accept(&self, _: Peer, now: Duration) -> (Connection, Self) {
        let mut config = ServerConfig::new(KeyRing::new());
        config.encryption = Encryption::AllowPlain;
        config.bounds.queued_messages = 10_000;
        (Connection::server(config.into(), [7; 7], now), self.clone())
    }
}

impl Application<Connection> for Odd {
    type Notice = std::convert::Infallible;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        let Event::Received(received) = event else { return Flow::Continue(()) };
        let result = NetError::Success;
        let mut say = |reply: Reply<'static>| sender.send(&Message::from(reply)).unwrap();
        match received.message() {
            // Sends more notifications than the client queues.
            Some(Message::AuthClient(Ask::ClientRegisterRequest(_))) => {
                for node_id in 0..5000 {
                    say(VaultNodeChanged { node_id, revision_id: Uuid::ZERO }.into());
                }
                say(ClientRegisterReply { server_challenge: 1 }.into());
            }
            // Sends a file byte by byte, without waiting for acknowledgements.
            Some(Message::AuthClient(Ask::FileDownloadRequest(asked))) => {
                for chunk_offset in 0..BYTES {
                    let chunk = FileDownloadChunk {
                        trans_id: asked.trans_id,
                        result,
                        total_file_size: BYTES,
                        chunk_offset,
                        chunk: Bytes32::new(vec![7]),
                    };
                    say(chunk.into());
                }
            }
            // Like dirtsand, this server sends the message number of a different reply that has the
            // same fields.
            Some(Message::AuthClient(Ask::VaultNodeRemove(asked))) => {
                say(VaultSaveNodeReply { trans_id: asked.trans_id, result }.into());
            }
            Some(Message::AuthClient(Ask::GetPublicAgeList(asked))) => {
                let refs = Vec::new().into();
                say(VaultNodeRefsFetched { trans_id: asked.trans_id, result, refs }.into());
            }
            // A reply to a request that nobody made, then no reply.
            Some(Message::AuthClient(Ask::VaultNodeFetch(asked))) => {
                let trans_id = worldwire_uru::types::TransId(asked.trans_id.0 + 1);
                say(PublicAgeList { trans_id, result, ages: Vec::new().into() }.into());
            }
            _ => {}
        }
        Flow::Continue(())
    }
}

async fn odd() -> (Shard, Stop) {
    let stop = Stop::new();
    let listener = tcp::Listener::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(listener.serve(Arc::new(Odd), stop.signal()));
    (at(address), stop)
}

fn at(address: SocketAddr) -> Shard {
    let mut shard = Shard::new("127.0.0.1");
    (shard.port, shard.patience) = (address.port(), Duration::from_secs(30));
    shard
}

#[tokio::test]
async fn replies_are_matched_by_their_transaction() {
    let (mut shard, _stop) = odd().await;
    shard.patience = Duration::from_millis(300);
    let (auth, _) = Auth::connect(&shard).await.unwrap();
    auth.remove_node(1, 2).await.unwrap();
    let error = auth.public_ages("city").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "GetPublicAgeList: the server sent VaultNodeRefsFetched instead of the reply"
    );
    let error = auth.fetch_node(1).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { request: "VaultNodeFetch" }), "{error}");
    auth.link().ping().await.unwrap();
}

#[tokio::test]
async fn a_file_in_small_pieces_arrives() {
    let (shard, _stop) = odd().await;
    let (auth, _) = Auth::connect(&shard).await.unwrap();
    let download = timeout(Duration::from_secs(10), auth.secure_file("x", BYTES));
    assert_eq!(download.await.expect("an end").unwrap(), vec![7; BYTES as usize]);
}

#[tokio::test]
async fn notifications_can_be_dropped_but_kept_ones_must_be_read() {
    let (shard, _stop) = odd().await;
    let (auth, notifications) = Auth::connect(&shard).await.unwrap();
    drop(notifications);
    assert_eq!(auth.register().await.unwrap(), 1);
    let (auth, mut notifications) = Auth::connect(&shard).await.unwrap();
    let error = auth.register().await.unwrap_err();
    assert_eq!(error.to_string(), "too many notifications are waiting to be read");
    assert!(notifications.next().await.is_some(), "earlier notifications are still there");
}

#[tokio::test]
async fn a_silent_server_times_out() {
    // The server accepts the connection and then sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut shard = at(silent.local_addr().unwrap());
    shard.patience = Duration::from_millis(200);
    let error = Auth::connect(&shard).await.unwrap_err();
    assert!(matches!(error, ClientError::Setup { service: "auth", .. }), "{error}");
    let address = silent.local_addr().unwrap();
    let wanted = format!("the server at {address} does not respond like an Uru auth server: ");
    assert!(error.to_string().starts_with(&wanted), "{error}");
    drop(silent);
    let error = Auth::connect(&shard).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to the auth server at 127.0.0.1:"), "{error}");
    assert!(!error.contains("os error"), "{error}");
    assert!(
        error.ends_with("check that the shard is running, and check its address and port"),
        "{error}"
    );
    // A name that is too long is never looked up in the DNS.
    shard.auth = Some(format!("{}.example", "x".repeat(64)));
    let error = Auth::connect(&shard).await.unwrap_err();
    assert!(matches!(error, ClientError::HostNotFound { service: "auth", .. }), "{error}");
}

#[tokio::test]
async fn other_servers_are_recognised() {
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = other.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer).await;
            // Closing the socket while there are unread bytes could discard the reply.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let error = Auth::connect(&at(address)).await.unwrap_err().to_string();
    let wanted = format!("the server at {address} does not respond like an Uru auth server: ");
    assert!(error.starts_with(&wanted), "{error}");
    assert!(error.ends_with("; check the address and port"), "{error}");
    serving.abort();
}

#[tokio::test]
async fn another_key_or_build_is_refused() {
    let [one, other] = [Running::start(|_| ()).await, Running::start(|_| ()).await];
    let mut shard = one.shard.clone();
    shard.keys = other.shard.keys.clone();
    // The key exchange itself works with any key, but the other side then decrypts noise.
    if let Ok((auth, _)) = Auth::connect(&shard).await {
        let error = auth.register().await.unwrap_err();
        assert!(matches!(error, ClientError::Closed { .. }), "{error}");
        let error = error.to_string();
        let is_said = ["the keys may be those of another shard", "these are another shard's keys"];
        assert!(is_said.iter().any(|hint| error.contains(hint)), "{error}");
    }
    let mut shard = one.shard.clone();
    shard.build = 5;
    let error = Auth::connect(&shard).await.unwrap_err().to_string();
    let address = one.shard.host(Service::Auth).unwrap();
    assert_eq!(
        error,
        format!(
            "the auth server at {}:{} closed the connection during setup: closed by the other side; \
             check that it is an Uru server, that server.ini has its keys, and that it accepts the \
             client's build. If it is a proxy, check that the server behind it is running",
            address.0, address.1
        )
    );
    for running in [one, other] {
        running.stop().await;
    }
}
