//! Tests which games a shard announces, how clients of both kinds share an age, and how clients
//! that send too many invalid messages are removed from it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use worldwire_core::json::json;
use worldwire_server::uru::ShardConfig;
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_server::uru::config::CapsPolicy;
use worldwire_uru::frame::Message;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::manager::server::ServerMessage as Manager;
use worldwire_uru::games::{GameBody, GameType};
use worldwire_uru::message::Caps;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::NetError;

use crate::client::{ACCOUNTS, Running};
use crate::player::Player;
use crate::world::{AGE, Got, Guest, INSTANCE, Mailbox, encoded, join};

/// The games that the shard announces on a new connection.
async fn announced(shard: &Running) -> Vec<GameType> {
    let mut player = Player::connect(shard).await;
    player.say(ask::ClientRegisterRequest { build_id: 918 }).await;
    loop {
        if let Message::AuthServer(Reply::ServerCaps(caps)) = player.hear().await.message() {
            let caps: Caps = caps.caps.decode().unwrap();
            let has = |bit: u32| caps.bits.0.first().is_some_and(|word| word >> bit & 1 == 1);
            assert!(has(Caps::SCORE_LEADER_BOARDS));
            return GameType::ALL.into_iter().filter(|game| has(game.caps_bit())).collect();
        }
    }
}

#[tokio::test]
async fn exactly_the_games_that_are_on_are_announced() {
    type Switch = fn(&mut ShardConfig);
    let some: [(Switch, Vec<GameType>); 3] = [
        (|_| (), vec![]),
        (|config| config.games.heek = true, vec![GameType::Heek]),
        (crate::world::all_games, GameType::ALL.to_vec()),
    ];
    for caps in [CapsPolicy::Compatible, CapsPolicy::Always] {
        for (switch, games) in &some {
            let change = |config: &mut ShardConfig| {
                switch(config);
                config.auth.caps = caps;
            };
            let shard = Running::start(|_| (), change).await;
            assert_eq!(announced(&shard).await, *games, "{caps:?}");
            shard.stop().await;
        }
    }
}

async fn guest(shard: &Running, (account, password): (&str, &str), name: &str) -> (Guest, u32) {
    let mut auth = Player::connect(shard).await;
    let (_, reply) = auth.log_in(account, password).await;
    let id = auth.create(name, "female").await.unwrap();
    assert_eq!(auth.choose(id).await, NetError::Success);
    let mut guest = Guest::new(auth, reply.account_id, id);
    guest.link(shard.address, &shard.keys).await;
    (guest, id)
}

async fn names(guest: &mut Guest, mailbox: &mut Mailbox, count: usize) -> Vec<&'static str> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(guest.hear(mailbox).await.as_ref().map_or("", Got::name));
    }
    names
}

/// The content of a path on the status page.
async fn page(shard: &Running, path: &str) -> String {
    let mut stream = TcpStream::connect(shard.status).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// An old client asks the game manager for any game; a new one asks only for those announced.
#[tokio::test]
async fn old_and_new_clients_share_an_age() {
    let change = |config: &mut ShardConfig| {
        config.auth.temporary_ages = true;
        (config.games.var_sync, config.games.blue_spiral) = (true, true);
    };
    let shard = Running::start(|_| (), change).await;
    let games = announced(&shard).await;
    assert_eq!(games, [GameType::BlueSpiral, GameType::VarSync]);
    let (mut old, ann) = guest(&shard, ACCOUNTS[0], "Ann").await;
    let (mut new, bob) = guest(&shard, ACCOUNTS[1], "Bob").await;
    let (mut old_box, mut new_box) = (Mailbox::default(), Mailbox::default());
    // The old client's Heek table and marker game are refused, and it continues.
    for game in [GameType::Heek, GameType::Marker] {
        old.play(&encoded(1, 0, "Manager.JoinGame", join(game, 0))).await;
        let got = old.hear(&mut old_box).await.unwrap();
        match &got.body {
            GameBody::ManagerServer(Manager::GameInstance(it)) => {
                assert_eq!((got.trans_id, it.result), (1, GameResult::InitFailed));
            }
            other => panic!("{other:?}"),
        }
    }
    // Both clients join the game that the shard runs, and meet there.
    old.play(&encoded(2, 0, "Manager.JoinGame", join(GameType::VarSync, 255))).await;
    let told = ["GameInstance", "PlayerJoined", "OwnerChange", "AllVarsSent"];
    assert_eq!(names(&mut old, &mut old_box, 4).await, told);
    let game = old_box.known_game(GameType::VarSync).unwrap();
    let fields = json!({"name": "QuabRun1", "value": 1.0});
    old.play(&encoded(0, game, "VarSync.CreateNumericVar", fields)).await;
    assert_eq!(names(&mut old, &mut old_box, 1).await, ["NumericVarCreated"]);
    new.play(&encoded(7, 0, "Manager.JoinGame", join(GameType::VarSync, 255))).await;
    let told = ["GameInstance", "NumericVarCreated", "AllVarsSent", "PlayerJoined", "OwnerChange"];
    assert_eq!(names(&mut new, &mut new_box, 5).await, told);
    assert_eq!(names(&mut old, &mut old_box, 1).await, ["PlayerJoined"]);
    assert_eq!(new_box.known_game(GameType::VarSync), Some(game));
    // The new client needs more variables than the old one, which owns the game.
    let fields = json!({"name": "QuabGPX21", "value": 2.0});
    new.play(&encoded(0, game, "VarSync.CreateNumericVar", fields)).await;
    assert_eq!(names(&mut new, &mut new_box, 1).await, ["NumericVarCreated"]);
    assert_eq!(names(&mut old, &mut old_box, 1).await, ["NumericVarCreated"]);
    // Operators see the game; everybody else sees only that one is running.
    let listed = Admin::ask_running(shard.folder.path(), Request::Games).await.unwrap().unwrap();
    assert_eq!(listed.len(), 1);
    let shown = &listed[0];
    let place = (&shown["game"], &shown["id"], &shown["age"]);
    assert_eq!(place, (&"VarSync".into(), &game.into(), &AGE.into()));
    assert_eq!(shown["instance"], INSTANCE.to_string());
    // Only marker games have templates.
    assert!(shown["template"].is_null() && shown["name"].is_null());
    assert!(shown["since"].as_u64() > Some(1_700_000_000));
    let players = [(ann, "Ann"), (bob, "Bob")];
    let players = players.map(|(id, name)| serde_json::json!({"id": id, "name": name}));
    assert_eq!(shown["players"], serde_json::json!(players));
    let page = page(&shard, "/status").await;
    let public = format!("\"game\":\"VarSync\",\"id\":{game},");
    assert!(page.contains(&public) && page.contains("\"players\":2"), "{page}");
    assert!(!page.contains("Ann"), "{page}");
    let page = self::page(&shard, "/metrics").await;
    assert!(page.contains("worldwire_games{game=\"VarSync\"} 1\n"), "{page}");
    let refused = "worldwire_refused_game_messages_total{reason=\"unknown-game-type\"} 2\n";
    assert!(page.contains(refused), "{page}");
    // The old client's connection is lost, and the new client becomes the owner.
    old.game.take().unwrap().lose();
    assert_eq!(names(&mut new, &mut new_box, 2).await, ["PlayerLeft", "OwnerChange"]);
    new.play(&encoded(0, game, "VarSync.SetNumericVar", json!({"var": 1, "value": 5.0}))).await;
    assert_eq!(names(&mut new, &mut new_box, 1).await, ["NumericVarChanged"]);
    shard.stop().await;
}

/// Refused messages count in the same way as malformed messages in the age. A player who is
/// disconnected leaves the games and can come back.
#[tokio::test]
async fn sixteen_refused_messages_end_the_connection() {
    let change = |config: &mut ShardConfig| {
        config.auth.temporary_ages = true;
        config.games.var_sync = true;
    };
    let shard = Running::start(|_| (), change).await;
    let (mut ann, _) = guest(&shard, ACCOUNTS[0], "Ann").await;
    let (mut bob, _) = guest(&shard, ACCOUNTS[1], "Bob").await;
    let (mut ann_box, mut bob_box) = (Mailbox::default(), Mailbox::default());
    let join = encoded(2, 0, "Manager.JoinGame", join(GameType::VarSync, 255));
    ann.play(&join).await;
    names(&mut ann, &mut ann_box, 4).await;
    bob.play(&join).await;
    names(&mut bob, &mut bob_box, 4).await;
    assert_eq!(names(&mut ann, &mut ann_box, 1).await, ["PlayerJoined"]);
    // This message is too long, so its bytes never reach the age.
    ann.play(&vec![1; 100_000]).await;
    for _ in 1..15 {
        ann.play(&[1, 0, 0, 0]).await;
    }
    let game = ann_box.known_game(GameType::VarSync).unwrap();
    ann.play(&encoded(0, game, "VarSync.RequestAllVars", json!({}))).await;
    assert_eq!(names(&mut ann, &mut ann_box, 1).await, ["AllVarsSent"]);
    ann.play(&[1, 0, 0, 0]).await;
    assert!(ann.hear(&mut ann_box).await.is_none());
    assert_eq!(names(&mut bob, &mut bob_box, 2).await, ["PlayerLeft", "OwnerChange"]);
    let metrics = page(&shard, "/metrics").await;
    for (reason, count) in [("oversize", 1), ("short-header", 15)] {
        let line =
            format!("worldwire_refused_game_messages_total{{reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    let mut ann_box = Mailbox::default();
    ann.link(shard.address, &shard.keys).await;
    ann.play(&join).await;
    assert_eq!(names(&mut ann, &mut ann_box, 4).await[0], "GameInstance");
    assert_eq!(names(&mut bob, &mut bob_box, 1).await, ["PlayerJoined"]);
    shard.stop().await;
}
