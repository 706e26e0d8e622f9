//! Clients that return through another process of a cluster: a front, or the leader.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::time::{sleep, timeout};
use worldwire_net::tcp;
use worldwire_server::uru::{ShardConfig, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;

use crate::client::{ACCOUNTS, PATIENCE, Running};
use crate::cluster::Bus;
use crate::player::{ANN, BOB, Player};
use crate::postgres::Database;
use crate::reconnect::{hears, info, is_online, knows_nothing};
use crate::takeover::{self, NAMES, Process};
use crate::traveller::Traveller;

/// How long a client may wait until its session continues after its front has failed.
const FRONT_LIMIT: Duration = Duration::from_secs(3);
/// How long a client may wait until its session continues after the leader has failed.
const LEADER_LIMIT: Duration = Duration::from_millis(3_500);

/// Reconnects with a token and registers.
async fn back(shard: &Running, token: Uuid) -> Player {
    let stream = tcp::dial(shard.address, PATIENCE).await.unwrap();
    let mut player = Player::connect_over(stream, shard, token).await;
    player.register().await;
    player
}

/// Fetches a player's PlayerInfo. Only clients with a player receive it.
async fn sees(player: &mut Player, id: u32) {
    player.say(ask::VaultFetchNodeRefs { trans_id: player.next(), node_id: id }).await;
    let is_found = |told: &Reply<'_>| {
        matches!(told, Reply::VaultNodeRefsFetched(it)
            if it.result == NetError::Success && !it.refs.0.is_empty())
    };
    hears(player, is_found).await;
}

/// Checks that the connection ends without a `KickedOff` message.
async fn is_closed(player: &mut Player) {
    while let Some(heard) = player.client.hear().await {
        let message = heard.message();
        assert!(!matches!(message, Message::AuthServer(Reply::KickedOff(_))), "{message:?}");
    }
}

async fn goes_offline(shard: &Running, player: u32) {
    let gone = async {
        while is_online(shard, player).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_session_continues_at_any_process() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let one = bus.front_named(&leader, "one").await;
    let two = bus.front_named(&leader, "two").await;
    let (ann, a) = Player::enter(&one, ANN, "Ann").await;
    let (mut bob, b) = Player::enter(&leader, BOB, "Bob").await;
    let (annas, bobs) = (info(&leader, a).await, info(&leader, b).await);

    // From a front that has noticed the lost connection, to another front.
    let first = ann.token;
    ann.client.lose();
    leader.vault.set(bobs, VaultNode { int32_2: Some(7), ..VaultNode::default() }).await.unwrap();
    hears(&mut bob, |told| matches!(told, Reply::VaultNodeChanged(it) if it.node_id == bobs)).await;
    let mut ann = back(&two, first).await;
    hears(&mut ann, |told| matches!(told, Reply::VaultNodeChanged(it) if it.node_id == bobs)).await;
    sees(&mut ann, a).await;
    // The token is valid once, and only for its own address.
    for place in [&one, &two, &leader] {
        knows_nothing(&mut back(place, first).await).await;
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(one.address).await.unwrap();
    let mut thief = Player::connect_over(stream, &one, ann.token).await;
    thief.register().await;
    knows_nothing(&mut thief).await;

    // From a front that has not noticed the lost connection yet, to the leader, and from there to a
    // front.
    let mut again = back(&leader, ann.token).await;
    sees(&mut again, a).await;
    is_closed(&mut ann).await;
    let mut ann = back(&one, again.token).await;
    sees(&mut ann, a).await;
    is_closed(&mut again).await;
    // To the front that already has the session.
    let token = ann.token;
    ann.client.lose();
    let mut ann = back(&one, token).await;
    sees(&mut ann, a).await;
    knows_nothing(&mut back(&two, token).await).await;
    assert!(is_online(&leader, a).await);

    // A new login elsewhere does not conflict with the old session.
    let token = ann.token;
    ann.client.lose();
    let mut ann = Player::connect(&two).await;
    ann.log_in(ANN.0, ANN.1).await;
    // The front may not have noticed the lost connection yet.
    let chosen = async {
        while ann.choose(a).await != NetError::Success {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, chosen).await.unwrap();
    for place in [&one, &leader] {
        knows_nothing(&mut back(place, token).await).await;
    }

    // A front that stops leaves its clients to the others.
    let stopping = tokio::spawn(two.stop());
    is_closed(&mut ann).await;
    let mut ann = back(&one, ann.token).await;
    sees(&mut ann, a).await;
    assert_eq!(leader.vault.show(annas).await.unwrap()["Int32_1"], 1);
    stopping.await.unwrap();

    // A client that disconnects itself loses its session immediately.
    let token = ann.token;
    drop(ann);
    goes_offline(&leader, a).await;
    knows_nothing(&mut back(&leader, token).await).await;
    one.stop().await;
    leader.stop().await;
}

#[tokio::test]
async fn players_stay_in_their_ages_while_their_sessions_move() {
    let Some(bus) = Bus::start() else { return };
    let leader = bus.leader(tempfile::tempdir().unwrap()).await;
    let one = bus.front_named(&leader, "one").await;
    let two = bus.front_named(&leader, "two").await;
    let ann = Traveller::to_fern(&one, ACCOUNTS[0], "Ann").await;
    let mut here = ann.join(&leader).await;
    let (token, player) = (ann.token, ann.player);
    ann.auth.lose();
    let mut ann = back(&two, token).await;
    sees(&mut ann, player).await;
    // The game connection belongs to the session in its new place and ends with it.
    while let Ok(heard) = timeout(Duration::from_millis(100), here.game.hear()).await {
        assert!(heard.is_some(), "the game connection has ended");
    }
    drop(ann);
    while here.game.hear().await.is_some() {}
    one.stop().await;
    two.stop().await;
    leader.stop().await;
}

/// A directory for a front in its own process.
fn front_folder(bus: &Bus, ring: &KeyRing, node: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nstatus = \"\"\n{}roles = [\"front\"]\n",
        bus.section(node)
    );
    std::fs::write(folder.path().join("shard.toml"), settings).unwrap();
    keys::save(ring, &folder.path().join("keys.toml")).unwrap();
    folder
}

#[tokio::test]
async fn clients_of_a_killed_front_continue_at_another_one() {
    let Some(bus) = Bus::start() else { return };
    let wait = |config: &mut ShardConfig| config.auth.reconnect_seconds = 1;
    let leader = bus.leader_with(tempfile::tempdir().unwrap(), wait).await;
    let folders = ["one", "two"].map(|node| front_folder(&bus, &leader.keys, node));
    let mut one = Process::start_front(&folders[0]);
    let two = Process::start_front(&folders[1]);
    let addresses = [one.address().await, two.address().await];
    let enter = async |account: (&str, &str), name: &str| {
        let mut player = Player::connect_to(addresses[0], &leader.keys).await;
        player.log_in(account.0, account.1).await;
        let id = player.create(name, "female").await.unwrap();
        assert_eq!(player.choose(id).await, NetError::Success);
        (player, id)
    };
    let (mut ann, a) = enter(ANN, "Ann").await;
    let (_bob, b) = enter(BOB, "Bob").await;

    let killed = Instant::now();
    one.child.kill().unwrap();
    is_closed(&mut ann).await;
    let mut ann = takeover::back(addresses[1], &leader.keys, ann.token).await;
    sees(&mut ann, a).await;
    let resumed = killed.elapsed();
    assert!(resumed < FRONT_LIMIT, "{resumed:?}");
    // He does not return.
    assert!(is_online(&leader, b).await);
    goes_offline(&leader, b).await;
    let expired = killed.elapsed();
    assert!(expired > Duration::from_secs(3) && expired < Duration::from_secs(8), "{expired:?}");
    assert!(is_online(&leader, a).await);
    println!("resumed after {resumed:?}, offline after {expired:?}");
    leader.stop().await;
}

/// Returns by token as soon as a front admits the client, as game clients do.
async fn returns(address: SocketAddr, ring: &KeyRing, token: Uuid) -> Player {
    let start = Instant::now();
    loop {
        let stream = tcp::dial(address, PATIENCE).await.unwrap();
        let mut client = Player::connect_with(stream, ring, token).await;
        if client.try_to_register().await {
            return client;
        }
        assert!(start.elapsed() < PATIENCE, "the front serves nobody");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn clients_of_a_front_continue_when_the_leader_is_killed() {
    let Some(bus) = Bus::start() else { return };
    let Some(database) = Database::postgres() else { return };
    let url = database.url.clone().unwrap();
    let ring = keys::generate(PrimeKind::Plain);
    let [anna, bert, ..] = takeover::found(&database).await;
    let folders = ["leader-a", "leader-b"].map(|node| {
        let folder = takeover::folder(&url, &ring);
        let file = folder.path().join("shard.toml");
        let settings = std::fs::read_to_string(&file).unwrap() + &bus.section(node);
        std::fs::write(&file, settings).unwrap();
        folder
    });
    let mut first = Process::start(&folders[0]);
    first.address().await;
    let second = Process::start(&folders[1]);
    second.says("waits").await;
    let front_folders = ["one", "two"].map(|node| front_folder(&bus, &ring, node));
    let fronts = front_folders.each_ref().map(Process::start_front);
    let addresses = [fronts[0].address().await, fronts[1].address().await];

    let mut a = takeover::enter(addresses[0], &ring, NAMES[0], anna).await;
    let annas = takeover::info(&mut a, anna).await;
    let b = takeover::enter(addresses[1], &ring, NAMES[1], bert).await;
    let killed = Instant::now();
    first.child.kill().unwrap();
    is_closed(&mut a).await;
    let closed = killed.elapsed();
    let old = a.token;
    // Anna returns through another front.
    let mut a = returns(addresses[1], &ring, old).await;
    assert!(takeover::is_online(&mut a, annas).await);
    let resumed = killed.elapsed();
    assert!(resumed < LEADER_LIMIT, "{resumed:?}");
    knows_nothing(&mut returns(addresses[0], &ring, old).await).await;
    let mut b = returns(addresses[1], &ring, b.token).await;
    sees(&mut b, bert).await;
    println!("closed after {closed:?}, resumed after {resumed:?}");
}
