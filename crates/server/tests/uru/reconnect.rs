//! Sessions that resume after a lost connection.

use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};
use worldwire_net::tcp;
use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{Nested, NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::{PATIENCE, Running};
use crate::player::{ANN, BOB, Player, reply, result};

/// Reconnects with a token and registers.
async fn back(shard: &Running, token: Uuid) -> Player {
    let stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
    let mut player = Player::connect_over(stream, shard, token).await;
    player.register().await;
    player
}

/// The result of requests that are made without a session.
pub(crate) async fn knows_nothing(player: &mut Player) {
    let answer = result!(player, VaultNodeFetch { node_id: 1 }, VaultNodeFetched);
    assert_eq!(answer, NetError::AuthenticationFailed);
}

pub(crate) async fn info(shard: &Running, player: u32) -> u32 {
    let template = VaultNode {
        node_type: Some(NodeType::PlayerInfo),
        uint32_1: Some(player),
        ..VaultNode::default()
    };
    shard.vault.find(template).await.unwrap()[0]
}

pub(crate) async fn is_online(shard: &Running, player: u32) -> bool {
    let info = info(shard, player).await;
    shard.vault.show(info).await.unwrap()["Int32_1"] == 1
}

async fn goes_offline(shard: &Running, player: u32) {
    let gone = async {
        while is_online(shard, player).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

/// Receives messages until one matches.
pub(crate) async fn hears(player: &mut Player, is_wanted: impl Fn(&Reply<'_>) -> bool) {
    loop {
        let heard = player.hear().await;
        if matches!(heard.message(), Message::AuthServer(reply) if is_wanted(&reply)) {
            return;
        }
    }
}

#[tokio::test]
async fn a_lost_connection_resumes_its_session() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, a) = Player::enter(&shard, ANN, "Ann").await;
    let note =
        ann.make(VaultNode { node_type: Some(NodeType::TextNote), ..VaultNode::default() }).await;
    let (mut bob, b) = Player::enter(&shard, BOB, "Bob").await;
    // The reply to this request is lost with the connection.
    let text = VaultNode { text_1: Some(TermStr::from("kept")), ..VaultNode::default() };
    let save = ask::VaultNodeSave {
        trans_id: ann.next(),
        node_id: note,
        revision_id: Uuid([9; 16]),
        node: Nested::encode_from(&text).unwrap(),
    };
    let (saved, token) = (save.trans_id, ann.token);
    ann.say(save).await;
    let is_saved = async {
        while shard.vault.show(note).await.unwrap().get("Text_1").is_none() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, is_saved).await.unwrap();
    ann.client.lose();

    // Both are in the neighbourhood, so a notice about this is sent to her while she is
    // disconnected.
    let bobs = info(&shard, b).await;
    shard.vault.set(bobs, VaultNode { int32_2: Some(7), ..VaultNode::default() }).await.unwrap();
    hears(&mut bob, |told| matches!(told, Reply::VaultNodeChanged(it) if it.node_id == bobs)).await;
    assert!(is_online(&shard, a).await);

    let mut ann = back(&shard, token).await;
    assert_ne!(ann.token, token);
    hears(&mut ann, |told| matches!(told, Reply::VaultSaveNodeReply(it) if it.trans_id == saved))
        .await;
    hears(&mut ann, |told| matches!(told, Reply::VaultNodeChanged(it) if it.node_id == bobs)).await;
    assert_eq!(ann.fetch(note).await.unwrap().text_1.unwrap().to_text(), "kept");
    assert!(!ann.refs(a).await.is_empty());

    // A token is valid once, and only for its own session.
    for worthless in [token, Uuid([1; 16])] {
        knows_nothing(&mut back(&shard, worthless).await).await;
    }
    assert!(is_online(&shard, a).await);
    shard.stop().await;
}

#[tokio::test]
async fn a_client_may_notice_a_loss_before_the_server_does() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut old, a) = Player::enter(&shard, ANN, "Ann").await;
    let mut new = back(&shard, old.token).await;
    hears(&mut new, |told| matches!(told, Reply::AcctSetPlayerReply(_))).await;
    assert!(!new.refs(a).await.is_empty());
    assert!(old.client.hear().await.is_none(), "the old connection is closed");
    assert!(is_online(&shard, a).await);

    // A login to another account leaves the session.
    let mut other = back(&shard, new.token).await;
    hears(&mut other, |told| matches!(told, Reply::VaultNodeRefsFetched(_))).await;
    let (_, logged_in) = other.log_in(BOB.0, BOB.1).await;
    assert_eq!(logged_in.result, NetError::Success);
    assert!(!is_online(&shard, a).await);
    assert_eq!(other.choose(a).await, NetError::PlayerNotFound);
    shard.stop().await;
}

#[tokio::test]
async fn a_session_is_kept_for_a_time_and_for_one_address() {
    let shard = Running::start(|_| (), |config| config.auth.reconnect_seconds = 1).await;
    let (ann, a) = Player::enter(&shard, ANN, "Ann").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(shard.address).await.unwrap();
    let mut thief = Player::connect_over(stream, &shard, ann.token).await;
    thief.register().await;
    knows_nothing(&mut thief).await;

    let token = ann.token;
    ann.client.lose();
    goes_offline(&shard, a).await;
    knows_nothing(&mut back(&shard, token).await).await;

    // A client that disconnects itself loses its session immediately.
    let mut ann = Player::connect(&shard).await;
    ann.log_in(ANN.0, ANN.1).await;
    assert_eq!(ann.choose(a).await, NetError::Success);
    let token = ann.token;
    drop(ann);
    goes_offline(&shard, a).await;
    knows_nothing(&mut back(&shard, token).await).await;
    shard.stop().await;
}

#[tokio::test]
async fn a_new_login_does_not_meet_the_old_session() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (ann, a) = Player::enter(&shard, ANN, "Ann").await;
    let token = ann.token;
    ann.client.lose();
    let mut ann = Player::connect(&shard).await;
    ann.log_in(ANN.0, ANN.1).await;
    // The server may not have noticed the lost connection yet.
    let chosen = async {
        while ann.choose(a).await != NetError::Success {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, chosen).await.unwrap();
    knows_nothing(&mut back(&shard, token).await).await;
    shard.stop().await;

    let shard = Running::start(|_| (), |config| config.auth.reconnect_seconds = 0).await;
    let mut ann = Player::connect(&shard).await;
    ann.ask(ask::ClientRegisterRequest { build_id: 918 }).await;
    reply!(ann.hear().await, ServerCaps);
    knows_nothing(&mut ann).await;
    shard.stop().await;
}
