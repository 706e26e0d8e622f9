//! Tests of the auth service from its clients' point of view.

use std::fs;
use std::path::Path;

use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::manifest::FileList;
use worldwire_uru::file::secure;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::Scores;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::game::client as game;
use worldwire_uru::message::game::server as game_server;
use worldwire_uru::types::{Nested, NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::Running;
use crate::player::{ANN, BOB, Player, reply, result};

#[tokio::test]
async fn a_new_player_survives_a_restart() {
    let shard = Running::start(|_| (), |_| ()).await;
    let mut ann = Player::connect(&shard).await;
    let (players, reply) = ann.log_in(ANN.0, ANN.1).await;
    assert_eq!((reply.result, reply.billing_type, players.len()), (NetError::Success, 1, 0));
    assert_eq!(reply.encryption_key, shard.keys.droid().unwrap().words());
    assert_eq!(ann.create("Ann", "robot").await, Err(NetError::InvalidParameter));
    assert_eq!(ann.create("A", "female").await, Err(NetError::PlayerNameInvalid));
    let id = ann.create(" Ann  of D'ni ", "female").await.unwrap();
    assert_eq!(ann.create("ann OF d'ni", "male").await, Err(NetError::PlayerAlreadyExists));
    assert_eq!(ann.choose(id + 1).await, NetError::PlayerNotFound);
    assert_eq!(ann.choose(id).await, NetError::Success);
    let refs = ann.refs(id).await;
    let mut nodes: Vec<u32> = refs.iter().map(|reference| reference.child_id).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!((refs.len(), nodes.len()), (34, 32));

    // A chronicle, which persists.
    let folder = ann.below(id, NodeType::Folder, Some(6)).await;
    let chronicle = VaultNode {
        node_type: Some(NodeType::Chronicle),
        string64_1: Some(TermStr::from("Lessons")),
        text_1: Some(TermStr::from("1")),
        ..VaultNode::default()
    };
    let node_id = ann.make(chronicle).await;
    let trans_id = ann.next();
    let add = ask::VaultNodeAdd { trans_id, parent_id: folder, child_id: node_id, owner_id: id };
    let added = reply!(ann.ask(add).await, VaultNodeAdded);
    assert_eq!((added.parent_id, added.child_id, added.owner_id), (folder, node_id, id));
    let reply = reply!(ann.hear().await, VaultAddNodeReply);
    assert_eq!((reply.trans_id, reply.result), (trans_id, NetError::Success));
    let change = VaultNode { text_1: Some(TermStr::from("2")), ..VaultNode::default() };
    let revision_id = Uuid([7; 16]);
    let node = Nested::encode_from(&change).unwrap();
    let save = ask::VaultNodeSave { trans_id: ann.next(), node_id, revision_id, node };
    let changed = reply!(ann.ask(save).await, VaultNodeChanged);
    assert_eq!((changed.node_id, changed.revision_id), (node_id, revision_id));
    assert_eq!(reply!(ann.hear().await, VaultSaveNodeReply).result, NetError::Success);

    let folder = shard.stop().await;
    // The shard sends the reason.
    assert_eq!(reply!(ann.hear().await, KickedOff).reason, NetError::RemoteShutdown);
    let shard = Running::start_in(folder, |_| ()).await;
    let mut ann = Player::connect(&shard).await;
    let (players, _) = ann.log_in(ANN.0, ANN.1).await;
    assert_eq!(players, [(id, "Ann of D'ni".to_owned())]);
    assert_eq!(ann.choose(id).await, NetError::Success);
    let kept = ann.fetch(node_id).await.unwrap();
    assert_eq!(kept.text_1.unwrap().to_text(), "2");
    assert_eq!(kept.string64_1.unwrap().to_text(), "Lessons");
    shard.stop().await;
}

#[tokio::test]
async fn requests_that_come_too_early_are_refused() {
    let shard = Running::start(|_| (), |_| ()).await;
    let denied = NetError::AuthenticationFailed;
    let mut player = Player::connect(&shard).await;
    let node = || Nested::encode_from(&VaultNode::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(player.fetch(1).await.unwrap_err(), denied);
        assert_eq!(player.create("Somebody", "male").await, Err(denied));
        assert_eq!(player.choose(0).await, denied);
        assert_eq!(result!(player, VaultNodeCreate { node: node() }, VaultNodeCreated), denied);
        assert_eq!(result!(player, VaultNodeFind { node: node() }, VaultNodeFindReply), denied);
        assert_eq!(result!(player, ScoreDelete { score_id: 1 }, ScoreDeleteReply), denied);
        let directory = || "SDL".into();
        let list = result!(
            player,
            FileListRequest { directory: directory(), extension: "sdl".into() },
            FileListReply
        );
        assert_eq!(list, denied);
        let age = result!(
            player,
            AgeRequest { age_name: "StartUp".into(), age_instance_id: Uuid([1; 16]) },
            AgeReply
        );
        assert_eq!(age, denied);
        assert_eq!(
            result!(player, AccountExistsRequest { account_name: "x".into() }, AccountExistsReply),
            denied
        );
        // The second time, the client has registered but not logged in.
        player.register().await;
    }
    let (_, reply) = player.log_in(ANN.0, "wrong").await;
    assert_eq!((reply.result, reply.account_id, reply.billing_type), (denied, Uuid::ZERO, 0));
    assert_eq!(reply.encryption_key, [0; 4]);
    let (_, reply) = player.log_in("nobody@example.org", "wrong").await;
    assert_eq!(reply.result, denied);
    // A name that is not an e-mail address, without a challenge.
    let (_, reply) = player.log_in(BOB.0, BOB.1).await;
    assert_eq!(reply.result, NetError::Success);
    assert_eq!(result!(player, ScoreDelete { score_id: 1 }, ScoreDeleteReply), denied);
    assert_eq!(player.choose(0).await, NetError::Success);
    assert_eq!(
        result!(player, AccountExistsRequest { account_name: "x".into() }, AccountExistsReply),
        NetError::ServiceForbidden
    );
    assert_eq!(
        result!(player, UpgradeVisitorRequest { player_id: 5 }, UpgradeVisitorReply),
        NetError::Success
    );
    shard.stop().await;
}

#[tokio::test]
async fn other_builds_and_unsupported_messages_are_refused() {
    let shard = Running::start(|_| (), |_| ()).await;
    let mut player = Player::connect(&shard).await;
    player.say(ask::ClientRegisterRequest { build_id: 5 }).await;
    assert!(player.client.hear().await.is_none());
    let mut player = Player::connect(&shard).await;
    player.say(ask::LogClientDebuggerConnect { nothing: 7 }).await;
    player.register().await;
    player
        .say(ask::PropagateBuffer { type_: Default::default(), buffer: Default::default() })
        .await;
    assert!(player.client.hear().await.is_none());
    shard.stop().await;
}

#[tokio::test]
async fn password_guesses_are_limited_to_five_a_minute() {
    let shard = Running::start(|_| (), |_| ()).await;
    let mut player = Player::connect(&shard).await;
    for _ in 0..5 {
        let (_, reply) = player.log_in(ANN.0, "guess").await;
        assert_eq!(reply.result, NetError::AuthenticationFailed);
    }
    let (_, reply) = player.log_in(ANN.0, ANN.1).await;
    assert_eq!(reply.result, NetError::TooManyFailedLogins);
    shard.stop().await;
}

#[tokio::test]
async fn players_get_notices_about_their_nodes() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, ann_id) = Player::enter(&shard, ANN, "Ann").await;
    let (mut bob, bob_id) = Player::enter(&shard, BOB, "Bob").await;
    // Ann was notified of Bob's arrival, because they share a neighbourhood.
    let mut heard = Vec::new();
    let info = bob.below(bob_id, NodeType::PlayerInfo, None).await;
    loop {
        match ann.hear().await.message() {
            Message::AuthServer(Reply::VaultNodeAdded(added)) => heard.push(added.child_id),
            Message::AuthServer(Reply::VaultNodeChanged(changed)) => {
                assert_eq!((changed.node_id, &*heard), (info, &[info][..]));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let note = VaultNode {
        node_type: Some(NodeType::TextNote),
        text_1: Some(TermStr::from("Shorah")),
        ..VaultNode::default()
    };
    let note = ann.make(note).await;
    let inbox = bob.below(bob_id, NodeType::Folder, Some(1)).await;
    // The creator of an unplaced note may send it.
    ann.say(ask::VaultSendNode { node_id: note, receiver_id: bob_id }).await;
    let added = reply!(bob.hear().await, VaultNodeAdded);
    assert_eq!((added.parent_id, added.child_id, added.owner_id), (inbox, note, ann_id));
    let found = bob.fetch(note).await.unwrap();
    assert_eq!(found.text_1.unwrap().to_text(), "Shorah");

    // Nobody may change another player's node.
    let change = VaultNode { int32_1: Some(1), ..VaultNode::default() };
    let (node_id, revision_id) = (bob_id, Uuid([1; 16]));
    let node = Nested::encode_from(&change).unwrap();
    assert_eq!(
        result!(
            ann,
            VaultNodeSave { node_id: node_id, revision_id: revision_id, node: node },
            VaultSaveNodeReply
        ),
        NetError::VaultNodeAccessViolation
    );
    // The same player logs in twice.
    let mut again = Player::connect(&shard).await;
    let (players, _) = again.log_in(BOB.0, BOB.1).await;
    assert_eq!(players, [(bob_id, "Bob".to_owned())]);
    assert_eq!(again.choose(bob_id).await, NetError::LoggedInElsewhere);
    // Bob disconnects, and Ann sees him leave.
    drop(bob);
    let changed = reply!(ann.hear().await, VaultNodeChanged);
    assert_eq!(changed.node_id, info);
    assert_eq!(ann.fetch(info).await.unwrap().int32_1, Some(0));
    shard.stop().await;
}

#[tokio::test]
async fn kicked_players_get_a_reason() {
    let shard = Running::start(|_| (), |config| config.auth.kick_on_duplicate = true).await;
    let (mut first, id) = Player::enter(&shard, BOB, "Bob").await;
    let mut second = Player::connect(&shard).await;
    second.log_in(BOB.0, BOB.1).await;
    assert_eq!(second.choose(id).await, NetError::Success);
    let reason = loop {
        match first.hear().await.message() {
            Message::AuthServer(Reply::VaultNodeChanged(_)) => {}
            Message::AuthServer(Reply::KickedOff(kicked)) => break kicked.reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason, NetError::LoggedInElsewhere);
    assert!(first.client.hear().await.is_none());

    shard.vault.ban_account(BOB.0, true).await.unwrap();
    loop {
        match second.client.hear().await.map(|heard| format!("{:?}", heard.message())) {
            Some(message) if message.contains("VaultNodeChanged") => {}
            Some(message) => assert!(message.contains("KickedOff"), "{message}"),
            None => break,
        }
    }
    let mut third = Player::connect(&shard).await;
    let (_, reply) = third.log_in(BOB.0, BOB.1).await;
    assert_eq!(reply.result, NetError::AccountBanned);
    shard.stop().await;
}

#[tokio::test]
async fn strangers_cannot_join_ages() {
    let shard = Running::start(|_| (), |config| config.public_address = "127.0.0.1".into()).await;
    let (mut ann, id) = Player::enter(&shard, ANN, "Ann").await;
    let instance = Uuid([9; 16]);
    let request = ask::VaultInitAgeRequest {
        trans_id: ann.next(),
        age_instance_id: instance,
        parent_age_instance_id: Uuid::ZERO,
        age_filename: "Garden".into(),
        age_instance_name: "Eder Kemo".into(),
        age_user_name: "Ann's".into(),
        age_description: "".into(),
        age_sequence_number: 0,
        age_language: -1,
    };
    let heard = ann.ask(request).await;
    let made = reply!(heard, VaultInitAgeReply);
    assert_eq!(made.result, NetError::Success);
    let request = ask::AgeRequest {
        trans_id: ann.next(),
        age_name: "Garden".into(),
        age_instance_id: instance,
    };
    ann.say(request).await;
    let reply = loop {
        match ann.hear().await.message() {
            Message::AuthServer(Reply::VaultNodeChanged(_)) => {}
            Message::AuthServer(Reply::AgeReply(reply)) => break reply,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((reply.result, reply.age_instance_id), (NetError::Success, instance));
    assert_eq!(reply.age_node_id, made.age_node_id);
    assert_eq!(reply.game_server_address.0, std::net::Ipv4Addr::LOCALHOST);
    let unknown = result!(
        ann,
        AgeRequest { age_name: "Garden".into(), age_instance_id: Uuid([8; 16]) },
        AgeReply
    );
    assert_eq!(unknown, NetError::AgeNotFound);

    let key = shard.keys.public(ServerKind::Game).cloned();
    let mut game = shard.client(Service::Game, key).await;
    let join = game::JoinAgeRequest {
        trans_id: TransId(3),
        age_mcp_id: reply.age_mcp_id,
        account_id: Uuid::ZERO,
        player_id: id,
    };
    let heard = game.ask(game::ClientMessage::from(join)).await;
    let Message::GameServer(game_server::ServerMessage::JoinAgeReply(reply)) = heard.message()
    else {
        panic!()
    };
    assert_eq!((reply.trans_id, reply.result), (TransId(3), NetError::PlayerNotFound));
    let list = ask::GetPublicAgeList { trans_id: ann.next(), age_filename: "Neighborhood".into() };
    let heard = ann.ask(list).await;
    let ages = reply!(heard, PublicAgeList).ages;
    assert_eq!((ages.len(), ages[0].owner_count), (1, 1));
    assert_eq!(ages[0].instance_name.to_text(), "Hood");
    shard.stop().await;
}

#[tokio::test]
async fn scores_are_kept() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, id) = Player::enter(&shard, ANN, "Ann").await;
    let owner_id = ann.below(id, NodeType::PlayerInfo, None).await;
    let create = |trans_id| ask::ScoreCreate {
        trans_id,
        owner_id,
        game_name: "Pellets".into(),
        game_type: 1,
        value: 10,
    };
    let heard = ann.ask(create(TransId(50))).await;
    let made = reply!(heard, ScoreCreateReply);
    assert_eq!(made.result, NetError::Success);
    let heard = ann.ask(create(TransId(51))).await;
    assert_eq!(reply!(heard, ScoreCreateReply).result, NetError::ScoreAlreadyExists);
    let add =
        result!(ann, ScoreAddPoints { score_id: made.score_id, points: -15 }, ScoreAddPointsReply);
    assert_eq!(add, NetError::Success);
    let get = ask::ScoreGetScores { trans_id: ann.next(), owner_id, game_name: "Pellets".into() };
    let heard = ann.ask(get).await;
    let reply = reply!(heard, ScoreGetScoresReply);
    assert_eq!((reply.result, reply.score_count), (NetError::Success, 1));
    let scores = reply.scores.decode::<Scores<'_>>().unwrap();
    assert_eq!((scores.0[0].value, scores.0[0].owner_id), (0, owner_id));
    assert_eq!(scores.0[0].game_name.to_text(), "Pellets");
    let high = ask::ScoreGetHighScores {
        trans_id: ann.next(),
        owner_id: 0,
        max_scores: 10,
        game_name: "Pellets".into(),
    };
    let heard = ann.ask(high).await;
    assert_eq!(reply!(heard, ScoreGetHighScoresReply).score_count, 1);
    shard.stop().await;
}

fn secure_files(folder: &Path) {
    let sdl = folder.join("data/secure/SDL");
    fs::create_dir_all(&sdl).unwrap();
    fs::write(sdl.join("long.sdl"), "STATEDESC ".repeat(30_000)).unwrap();
    fs::write(sdl.join("empty.sdl"), "").unwrap();
}

#[tokio::test]
async fn secure_files_are_encrypted_and_wait_for_acknowledgements() {
    let shard = Running::start(secure_files, |_| ()).await;
    let mut ann = Player::connect(&shard).await;
    ann.log_in(ANN.0, ANN.1).await;
    let list = ask::FileListRequest {
        trans_id: ann.next(),
        directory: "sdl".into(),
        extension: "SDL".into(),
    };
    let heard = ann.ask(list).await;
    let reply = reply!(heard, FileListReply);
    assert_eq!(reply.result, NetError::Success);
    let listed = reply.files.decode::<FileList<'_>>().unwrap();
    let names: Vec<_> = listed.0.iter().map(|entry| entry.name.to_text()).collect();
    assert_eq!(names, ["SDL\\empty.sdl", "SDL\\long.sdl"]);
    let size = listed.0[1].size.0;

    let trans_id = ann.next();
    ann.say(ask::FileDownloadRequest { trans_id, filename: "SDL\\long.sdl".into() }).await;
    let mut bytes = Vec::new();
    let mut chunks = 0;
    while bytes.len() < size as usize {
        if chunks == 4 {
            // Four chunks are in transit; the next message is the reply to a different request.
            let asked = ann.choose(0).await;
            assert_eq!(asked, NetError::Success);
            ann.say(ask::FileDownloadChunkAck { trans_id }).await;
        } else if chunks > 4 {
            ann.say(ask::FileDownloadChunkAck { trans_id }).await;
        }
        let heard = ann.hear().await;
        let chunk = reply!(heard, FileDownloadChunk);
        assert_eq!((chunk.trans_id, chunk.total_file_size), (trans_id, size));
        assert_eq!(chunk.chunk_offset as usize, bytes.len());
        bytes.extend_from_slice(&chunk.chunk);
        chunks += 1;
    }
    let key = shard.keys.droid().unwrap();
    let opened = secure::open_with(&bytes, key, 1 << 20).unwrap();
    assert_eq!(opened.plain(), "STATEDESC ".repeat(30_000).as_bytes());

    for (name, result) in [
        ("SDL\\empty.sdl", NetError::Success),
        ("SDL\\missing.sdl", NetError::FileNotFound),
        ("SDL\\..\\..\\..\\keys.toml", NetError::FileNotFound),
        ("keys.toml", NetError::FileNotFound),
    ] {
        let asked = result!(ann, FileDownloadRequest { filename: name.into() }, FileDownloadChunk);
        assert_eq!(asked, result, "{name}");
    }
    shard.stop().await;
}

#[tokio::test]
async fn openuru_clients_survive_the_caps() {
    let shard = Running::start(|_| (), |_| ()).await;
    let mut player = Player::connect(&shard).await;
    player.ask(ask::ClientRegisterRequest { build_id: 0 }).await;
    let heard = player.hear().await;
    let caps = reply!(heard, ServerCaps);
    let bytes = Message::from(Reply::ServerCaps(caps)).to_bytes().unwrap();
    assert_eq!(bytes[..6], [0x02, 0x10, 37, 0, 0, 0]);
    assert_eq!(bytes.len(), 6 + 37);
    assert!(bytes.ends_with(b"[ServerCaps compat]"));
    shard.stop().await;
}
