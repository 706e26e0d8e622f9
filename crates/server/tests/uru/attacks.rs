//! Hostile clients are contained, and others do not notice.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use worldwire_core::{Bytes32, Field as _, Writer};
use worldwire_net::tcp;
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Told;
use worldwire_uru::message::gatekeeper::client as gatekeeper;
use worldwire_uru::types::{Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::{PATIENCE, Running};
use crate::log::{self, Log};
use crate::player::{ANN, BOB, Player, result};
use crate::reconnect::{info, is_online};

pub(crate) fn connect_packet(service: Service) -> Vec<u8> {
    let mut writer = Writer::new();
    ConnectPacket::new(service).encode(&mut writer).unwrap();
    writer.into_bytes()
}

/// A connection whose setup is complete, without encryption.
pub(crate) async fn set_up(shard: &Running, service: Service) -> TcpStream {
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

/// Reads until the server closes the connection. Returns whether it does so in time.
pub(crate) async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // A reset also ends the connection.
    read.is_ok()
}

/// A ping whose reply has the same size.
pub(crate) fn ping() -> Vec<u8> {
    let payload = Bytes32::new(vec![0; 60_000]);
    let ping = gatekeeper::PingRequest { trans_id: TransId(1), ping_time_ms: 0, payload };
    Message::from(gatekeeper::ClientMessage::from(ping)).to_bytes().unwrap()
}

/// A ping on a file connection. The reply consists of the same bytes.
fn file_ping() -> Vec<u8> {
    [&[12, 0, 0, 0, 0, 0, 0, 0][..], &[1, 2, 3, 4]].concat()
}

/// Checks that an honest client gets replies.
async fn answered(shard: &Running) {
    let mut client = shard.client(Service::Gatekeeper, None).await;
    let request = gatekeeper::AuthSrvIpAddressRequest { trans_id: TransId(1) };
    client.ask(gatekeeper::ClientMessage::from(request)).await;
}

#[tokio::test]
async fn malformed_setups_close_the_connection() {
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
async fn clients_of_a_trusted_proxy_count_for_their_own_addresses() {
    let limited = |config: &mut worldwire_server::uru::ShardConfig| {
        config.limits.connections_per_address = 1;
    };
    let through = async |shard: &Running, header: &str| {
        let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
        let packet = connect_packet(Service::File);
        stream.write_all(&[header.as_bytes(), &packet, &file_ping()].concat()).await.unwrap();
        stream
    };
    let answers = async |stream: &mut TcpStream| {
        let mut answer = [0; 12];
        let read = timeout(PATIENCE, stream.read_exact(&mut answer)).await;
        read.is_ok_and(|read| read.is_ok()) && answer == *file_ping()
    };
    let [ann, bob] =
        [1, 2].map(|end| format!("PROXY TCP4 192.0.2.{end} 127.0.0.1 40000 14617\r\n"));
    let shard = Running::start(
        |_| (),
        |config| {
            limited(config);
            config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        },
    )
    .await;
    let mut first = through(&shard, &ann).await;
    assert!(answers(&mut first).await);
    assert!(answers(&mut through(&shard, &bob).await).await);
    // A second connection of the same client, and a connection without a header.
    for header in [&*ann, ""] {
        assert!(is_closed(&mut through(&shard, header).await).await, "{header}");
    }
    assert!(
        answers(&mut {
            first.write_all(&file_ping()).await.unwrap();
            first
        })
        .await
    );
    shard.stop().await;

    // Only trusted proxies can name a client.
    let shard = Running::start(|_| (), limited).await;
    assert!(is_closed(&mut through(&shard, &ann).await).await);
    shard.stop().await;
}

#[tokio::test]
async fn malformed_messages_close_the_connection() {
    let shard = Running::start(|_| (), |_| ()).await;
    let long_name = [&[3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 64, 0][..], &[b'x'; 128]].concat();
    // The message announces a node of 2 MiB.
    let long_node = [25, 0, 1, 0, 0, 0, 0, 0, 32, 0];
    for (what, service, bytes) in [
        ("an unknown number", Service::Auth, &[0x77, 0x77][..]),
        ("a reserved number", Service::Auth, &[28, 0]),
        ("a number that only servers send", Service::Auth, &[0x02, 0x10, 0, 0, 0, 0]),
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

/// Every kind of invalid request gets the right result, and the connection stays open.
#[tokio::test]
async fn forbidden_requests_have_a_result() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, ann_id) = Player::enter(&shard, ANN, "Ann").await;
    let secret = ann.below(ann_id, NodeType::Folder, Some(1)).await;
    let (mut bob, bob_id) = Player::enter(&shard, BOB, "Bob").await;
    let folder = VaultNode { node_type: Some(NodeType::Folder), ..VaultNode::default() };
    let anything = || Nested::encode_from(&VaultNode::default()).unwrap();
    // The mask announces fields that are missing.
    let malformed = || Nested::new(vec![0xff; 20]);
    let broken_text = || {
        let string64_1 = Some(TermStr::from("left\0right"));
        Nested::encode_from(&VaultNode { string64_1, ..VaultNode::default() }).unwrap()
    };
    let above = bob.make(folder.clone()).await;
    let below = bob.make(folder.clone()).await;
    let revision = Uuid([1; 16]);
    macro_rules! add {
        ($parent:expr, $child:expr) => {
            result!(
                bob,
                VaultNodeAdd { parent_id: $parent, child_id: $child, owner_id: bob_id },
                VaultAddNodeReply
            )
        };
    }
    macro_rules! save {
        ($node_id:expr, $node:expr) => {
            result!(
                bob,
                VaultNodeSave { node_id: $node_id, revision_id: revision, node: $node },
                VaultSaveNodeReply
            )
        };
    }
    macro_rules! create {
        ($node:expr) => {
            result!(bob, VaultNodeCreate { node: $node }, VaultNodeCreated)
        };
    }
    macro_rules! find {
        ($node:expr) => {
            result!(bob, VaultNodeFind { node: $node }, VaultNodeFindReply)
        };
    }
    macro_rules! fetch {
        ($node_id:expr) => {
            result!(bob, VaultNodeFetch { node_id: $node_id }, VaultNodeFetched)
        };
    }
    macro_rules! refs {
        ($node_id:expr) => {
            result!(bob, VaultFetchNodeRefs { node_id: $node_id }, VaultNodeRefsFetched)
        };
    }
    let cases = [
        ("a reference", add!(above, below), NetError::Success),
        ("a cycle", add!(below, above), NetError::CircularReference),
        ("a node below itself", add!(above, above), NetError::CircularReference),
        ("a missing child", add!(above, 1), NetError::VaultNodeNotFound),
        ("below another's", add!(secret, above), NetError::VaultNodeAccessViolation),
        ("a root", add!(above, ann_id), NetError::InvalidParameter),
        ("another's node", save!(secret, anything()), NetError::VaultNodeAccessViolation),
        ("a missing node", save!(1, anything()), NetError::VaultNodeNotFound),
        ("a malformed node", save!(above, malformed()), NetError::BadServerData),
        ("a zero inside a text", save!(above, broken_text()), NetError::InvalidParameter),
        ("a malformed new node", create!(malformed()), NetError::BadServerData),
        ("a new node of no type", create!(anything()), NetError::BadServerData),
        ("an empty template", find!(anything()), NetError::InvalidParameter),
        ("a malformed template", find!(malformed()), NetError::BadServerData),
        ("a look at another's", fetch!(secret), NetError::VaultNodeAccessViolation),
        ("a look at nothing", fetch!(1), NetError::VaultNodeNotFound),
        ("another's tree", refs!(ann_id), NetError::VaultNodeAccessViolation),
        ("the tree of nothing", refs!(1), NetError::VaultNodeNotFound),
    ];
    for (what, found, wanted) in cases {
        assert_eq!(found, wanted, "{what}");
    }
    let mut stranger = Player::connect(&shard).await;
    for node_id in [secret, ann_id, 1] {
        assert_eq!(stranger.fetch(node_id).await.unwrap_err(), NetError::AuthenticationFailed);
    }
    assert!(!bob.refs(bob_id).await.is_empty());
    shard.stop().await;
}

/// With a player's account, others could join ages as that player.
#[tokio::test]
async fn other_accounts_stay_hidden() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, ann_id) = Player::enter(&shard, ANN, "Ann").await;
    let node = info(&shard, ann_id).await;
    let own = ann.fetch(node).await.unwrap();
    let (mut bob, _) = Player::enter(&shard, BOB, "Bob").await;
    let seen = bob.fetch(node).await.unwrap();
    assert!(own.creator_acct.is_some_and(|account| !account.is_zero()));
    assert_eq!(seen, VaultNode { creator_acct: Some(Uuid::ZERO), ..own });
    shard.stop().await;
}

/// Notices for a client that does not read are queued, and at some point its connection ends.
#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    // Honest clients make this many requests at once.
    const CHANGES: usize = 100;
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, _) = Player::enter(&shard, ANN, "Ann").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let stream = socket.connect(shard.address).await.unwrap();
    let mut bob = Player::connect_over(stream, &shard, Uuid::ZERO).await;
    bob.log_in(BOB.0, BOB.1).await;
    let bob_id = bob.create("Bob", "male").await.unwrap();
    assert_eq!(bob.choose(bob_id).await, NetError::Success);
    // Replies fill the system's buffers.
    bob.client.deafen();
    for _ in 0..120 {
        let payload = Bytes32::new(vec![0; 60_000]);
        bob.say(ask::PingRequest { ping_time_ms: 0, trans_id: TransId(1), payload }).await;
    }
    let node = info(&shard, bob_id).await;
    let start = Instant::now();
    while is_online(&shard, bob_id).await {
        assert!(start.elapsed() < PATIENCE, "more and more waits for Bob");
        let mut changes = tokio::task::JoinSet::new();
        for number in 0..CHANGES {
            let vault = shard.vault.clone();
            let int32_2 = i32::try_from(number).ok();
            let change = VaultNode { int32_2, ..VaultNode::default() };
            changes.spawn(async move { vault.set(node, change).await.unwrap() });
        }
        let mut heard = 0;
        while heard < CHANGES {
            let told = ann.hear().await;
            let Message::AuthServer(told) = told.message() else { panic!("a message of auth") };
            heard += usize::from(matches!(told, Told::VaultNodeChanged(it) if it.node_id == node));
        }
        assert_eq!(changes.join_all().await.len(), CHANGES);
    }
    drop(bob);
    shard.stop().await;
}

#[test]
fn problems_are_logged_once_and_secrets_never() {
    log::run_alone("attacks::log_of_wrongs");
}

#[tokio::test]
async fn log_of_wrongs() {
    let Some(log) = Log::alone() else { return };
    let shard = Running::start(|_| (), |config| config.limits.connections_per_address = 6).await;

    for _ in 0..5 {
        for bytes in [&[0x77, 0x77][..], &[28, 0]] {
            let mut stream = set_up(&shard, Service::Auth).await;
            stream.write_all(bytes).await.unwrap();
            assert!(is_closed(&mut stream).await);
        }
    }
    assert_eq!(log.count("the peer violated the protocol"), 1, "{}", log.text());
    assert_eq!(log.count("state=\"auth, connected\""), 1, "{}", log.text());
    let mut seats = Vec::new();
    for number in 0..10 {
        let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
        if number >= 6 {
            assert!(is_closed(&mut stream).await);
        }
        seats.push(stream);
    }
    assert_eq!(log.count("connections refused"), 1, "{}", log.text());
    drop(seats);
    answered_at_last(&shard).await;

    let mut ann = Player::connect(&shard).await;
    for _ in 0..5 {
        assert!(ann.log_in(BOB.0, "wrong").await.1.result.is_error());
    }
    assert_eq!(log.count("refused logins"), 1, "{}", log.text());
    // Messages that are sent too early and have no reply.
    ann.say(ask::VaultSendNode { node_id: 1, receiver_id: 1 }).await;
    assert_eq!(ann.fetch(1).await.unwrap_err(), NetError::AuthenticationFailed);
    let early = "state=\"registered\" what=\"VaultSendNode\" error=AuthenticationFailed";
    assert!(log.text().contains(early), "{}", log.text());
    shard.stop().await;

    let shard = Running::start(|_| (), |_| ()).await;
    let mut ann = Player::connect(&shard).await;
    let challenge = ann.register().await;
    let fields = login_fields(ANN.0, ANN.1, 99, challenge);
    let request = ask::AcctLoginRequest {
        trans_id: ann.next(),
        client_challenge: fields.client_challenge,
        account_name: ANN.0.into(),
        challenge_hash: fields.challenge_hash,
        auth_token: "".into(),
        os: "win".into(),
    };
    ann.ask(request).await;
    assert_eq!(log.count("logged in"), 1, "{}", log.text());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = log.text();
    for secret in [
        ANN.1.to_owned(),
        ann.token.to_string(),
        hex(&ann.token.0),
        format!("{:?}", ann.token.0),
        hex(&fields.challenge_hash),
        format!("{:?}", fields.challenge_hash),
        format!("{:?}", shard.keys.droid().unwrap().words()),
    ] {
        assert!(!text.contains(&secret), "{secret} is logged");
    }
    for statement in ["INSERT INTO", "SELECT ", "UPDATE "] {
        assert!(!text.contains(statement), "{statement} is logged");
    }
    shard.stop().await;
}

/// Slots become free once the server has noticed the closed connections.
async fn answered_at_last(shard: &Running) {
    let start = Instant::now();
    loop {
        let mut stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
        stream.write_all(&connect_packet(Service::Gatekeeper)).await.unwrap();
        stream.write_all(&[0, 2]).await.unwrap();
        let mut answer = [0; 2];
        if stream.read_exact(&mut answer).await.is_ok() {
            return;
        }
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
