//! Players in ages, over sockets: they see each other, one wins a lock, their changes survive a
//! restart, and only expected players can join.

use std::path::Path;

use serde_json::Value as Json;
use worldwire_core::{Field as _, Reader};
use worldwire_server::operators::Operated as _;
use worldwire_server::uru::admin::Request;
use worldwire_uru::frame::Message;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::sdl::{Scalar, hook};
use worldwire_uru::types::{NetError, TermStr, TransId, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::client::{ACCOUNTS, Running};
use crate::fern::{FERN, PREFIX, blob, blob_at, object, prepare, told};
use crate::traveller::{Traveller, Visitor, auth_reply, say};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_players_meet_and_find_the_age_as_they_left_it() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    assert_eq!(ann.number, bob.number);

    // They see each other arrive.
    let mut yeesha = ann.join(&shard).await;
    let NetMessage::GroupOwner(owner) = yeesha.hears().await else { panic!() };
    assert!(owner.groups[0].owned.is_true());
    let mut atrus = bob.join(&shard).await;
    let NetMessage::GroupOwner(owner) = atrus.hears().await else { panic!() };
    assert!(!owner.groups[0].owned.is_true());
    let NetMessage::MemberUpdate(update) = yeesha.hears().await else { panic!() };
    assert_eq!(update.member.client.player_id, Some(bob.player));
    assert_eq!(atrus.asks_for_members().await, ["Yeesha"]);
    assert_eq!(yeesha.asks_for_members().await, ["Atrus"]);
    yeesha.loads_its_avatar().await;
    assert!(matches!(atrus.hears().await, NetMessage::LoadClone(_)));

    // They talk. A message with a name that would crash clients is not forwarded (D-41); the next
    // message is.
    yeesha.chats("\u{c9}owyn").await;
    yeesha.chats("Yeesha").await;
    let NetMessage::GameMessage(chat) = atrus.hears().await else { panic!() };
    assert_eq!(chat.header.player_id, Some(ann.player));
    let PlasmaMessage::KiMsg(said) =
        PlasmaMessage::decode(&mut Reader::new(chat.stream.as_bytes()), "").unwrap()
    else {
        panic!()
    };
    assert_eq!(said.user.to_text(), "Yeesha");

    // One of them wins the lock.
    assert_eq!(atrus.asks_for_lock().await, 1);
    assert_eq!(yeesha.asks_for_lock().await, 0);

    // They change things.
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    assert_eq!(told(&atrus.hears().await, "place"), ("Lever".into(), Some("Int(5)".into())));
    let gate = hook::object(PREFIX).unwrap();
    yeesha.changes(gate.clone(), blob("Fern", "open", Scalar::Bool(true))).await;
    let (name, open) = told(&atrus.hears().await, "open");
    assert_eq!((&*name, open.is_some()), ("AgeSDLHook", true));

    // A change of the age's state in the vault reaches the players in the age.
    let template = VaultNode {
        node_type: Some(NodeType::SDL),
        string64_1: Some(TermStr::from("Fern")),
        ..VaultNode::default()
    };
    let nodes = shard.vault.find(template).await.unwrap();
    let closed = blob("Fern", "open", Scalar::Bool(false));
    let fields = VaultNode { blob_1: Some(NodeBlob::new(closed)), ..VaultNode::default() };
    shard.vault.set(nodes[0], fields).await.unwrap();
    for visitor in [&mut yeesha, &mut atrus] {
        let (name, now) = told(&visitor.hears().await, "open");
        assert_eq!(name, "AgeSDLHook");
        assert_ne!(now, open);
    }

    // The others see a player leave, and its lock is free again.
    drop(atrus);
    assert!(matches!(yeesha.hears().await, NetMessage::MemberUpdate(_)));
    assert_eq!(yeesha.asks_for_lock().await, 1);

    // After a restart, everything is unchanged.
    drop((yeesha, ann, bob));
    let folder = shard.stop().await;
    let shard = Running::start_in(folder, |_| ()).await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let mut atrus = bob.join(&shard).await;
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(atrus.asks_for_members().await, [""; 0]);
    let state = atrus.asks_for_state().await;
    assert_eq!(state.len(), 2);
    let (name, now) = told(&state[0], "open");
    assert_eq!(name, "AgeSDLHook");
    assert!(now.is_some() && now != open);
    assert_eq!(told(&state[1], "place"), ("Lever".into(), Some("Int(5)".into())));

    // Later settings for all instances apply, and reach the players in the age.
    let earlier = blob("Fern", "open", Scalar::Bool(true));
    shard.vault.set_age_settings("Fern", earlier).await.unwrap();
    let later = blob_at("Fern", "open", Scalar::Bool(true), 4_000_000_000);
    shard.vault.set_age_settings("Fern", later.clone()).await.unwrap();
    assert_eq!(told(&atrus.hears().await, "open"), ("AgeSDLHook".into(), open));
    assert_eq!(shard.vault.age_settings("Fern").await.unwrap(), Some(later));
    // A running age would write into the new vault.
    drop((atrus, bob));
    let dump = shard.vault.export().await.unwrap();
    assert_eq!(shard.vault.import(dump, true).await, Err(NetError::LoggedInElsewhere));
    // The check of the vault accepts nodes with states.
    let findings = shard.vault.check().await.unwrap();
    assert!(findings.iter().all(|finding| !finding.problem), "{findings:?}");
    shard.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_expected_players_can_join() {
    let shard = Running::start(prepare, |_| ()).await;
    let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut visitor = Visitor::connect(&shard, ann.player).await;
    for (number, account, player, result) in [
        (ann.number, ann.account, 0, NetError::InvalidParameter),
        (ann.number, ann.account, ann.player + 1, NetError::PlayerNotFound),
        (ann.number, Uuid([9; 16]), ann.player, NetError::PlayerNotFound),
        (ann.number + 1, ann.account, ann.player, NetError::AgeNotFound),
        (ann.number, ann.account, ann.player, NetError::Success),
    ] {
        assert_eq!(visitor.ask_in(number, account, player).await, result);
    }
    assert!(matches!(visitor.hears().await, NetMessage::GroupOwner(_)));

    // Knowing a player's account and number is not enough to take its place.
    let mut other = Visitor::connect(&shard, ann.player).await;
    let refused = other.ask_in(ann.number, ann.account, ann.player).await;
    assert_eq!(refused, NetError::LoggedInElsewhere);
    assert_eq!(visitor.asks_for_members().await, [""; 0]);

    // Another connection of the same player, after another request, replaces the first one.
    ann.asks_for_the_age(FERN).await;
    let mut again = ann.join(&shard).await;
    assert!(visitor.game.hear().await.is_none());
    assert!(matches!(again.hears().await, NetMessage::GroupOwner(_)));
    assert_eq!(again.asks_for_members().await, [""; 0]);

    // A net message before the join ends the connection.
    let mut early = Visitor::connect(&shard, ann.player).await;
    early.chats("Yeesha").await;
    assert!(early.game.hear().await.is_none());

    // A player who leaves the shard also leaves the age.
    drop(ann);
    assert!(again.game.hear().await.is_none());
    shard.stop().await;
}

/// A player who returns to the choice of players leaves its age.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_a_player_are_in_no_age() {
    let shard = Running::start(prepare, |_| ()).await;
    let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let (mut atrus, mut yeesha) = (bob.join(&shard).await, ann.join(&shard).await);
    say(&ann.auth, ask::AcctSetPlayerRequest { trans_id: TransId(8), player_id: 0 }).await;
    let result =
        auth_reply!(ann.auth, AcctSetPlayerReply, |it: &reply::AcctSetPlayerReply| it.result);
    assert_eq!(result, NetError::Success);
    while yeesha.game.hear().await.is_some() {}
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    for added in [true, false] {
        let NetMessage::MemberUpdate(update) = atrus.hears().await else { panic!() };
        assert_eq!(update.was_added.is_true(), added);
    }
    shard.stop().await;
}

/// A state that the age cannot use does not replace its state in the vault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_state_in_the_vault_does_not_replace_the_state_of_an_age() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let gate = hook::object(PREFIX).unwrap();
    yeesha.changes(gate, blob("Fern", "open", Scalar::Bool(true))).await;
    assert_eq!(yeesha.asks_for_members().await, [""; 0]);
    let template = VaultNode {
        node_type: Some(NodeType::SDL),
        string64_1: Some(TermStr::from("Fern")),
        ..VaultNode::default()
    };
    let node = shard.vault.find(template).await.unwrap()[0];
    let rubbish = VaultNode { blob_1: Some(NodeBlob::new(vec![0xff; 50])), ..VaultNode::default() };
    shard.vault.set(node, rubbish).await.unwrap();
    let written = async {
        loop {
            let blob = shard.vault.show(node).await.unwrap()["Blob_1"].to_string();
            if !blob.contains("ffff") && blob.len() > 10 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::PATIENCE, written).await.unwrap();
    drop((yeesha, ann));
    let shard = Running::start_in(shard.stop().await, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    let state = yeesha.asks_for_state().await;
    assert!(told(&state[0], "open").1.is_some_and(|open| open.contains("true")), "{state:?}");
    drop((yeesha, ann));
    shard.stop().await;
}

/// An operator kicks a player or an account: the client is notified, leaves its age, and can log in
/// again immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_can_kick_players() {
    let shard = Running::start(prepare, |_| ()).await;
    let kick = async |who: &str| {
        let request = Request::Kick { who: who.to_owned() };
        let answer = shard.control().perform(request, &[]).await;
        answer.map(|lines| Json::from(lines).to_string()).map_err(|error| error.to_string())
    };
    let bob = Traveller::to_fern(&shard, ACCOUNTS[1], "Atrus").await;
    let mut atrus = bob.join(&shard).await;
    assert!(matches!(atrus.hears().await, NetMessage::GroupOwner(_)));
    for by_account in [false, true] {
        let mut ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
        let mut yeesha = ann.join(&shard).await;
        let who = if by_account { ACCOUNTS[0].0 } else { "yeesha" };
        let thrown_out = kick(who).await.unwrap();
        let named = [format!("{:?}", ACCOUNTS[0].0), ann.player.to_string(), "Yeesha".to_owned()];
        assert!(named.iter().all(|name| thrown_out.contains(name)), "{thrown_out}");
        let reason = auth_reply!(ann.auth, KickedOff, |it: &reply::KickedOff| it.reason);
        assert_eq!(reason, NetError::KickedByCCR);
        assert!(ann.auth.hear().await.is_none());
        while yeesha.game.hear().await.is_some() {}
        for added in [true, false] {
            let NetMessage::MemberUpdate(update) = atrus.hears().await else { panic!() };
            assert_eq!(update.was_added.is_true(), added);
        }
        let again = kick(&ann.player.to_string()).await;
        assert_eq!(again, Err(format!("\"{}\" is not logged in", ann.player)));
    }
    assert_eq!(kick("Gehn").await, Err("there is no account or player named \"Gehn\"".to_owned()));
    // An account has the same name as another account's player.
    shard.vault.add_account("atrus", "secret", AccountFlags(0)).await.unwrap();
    assert!(kick("Atrus").await.unwrap_err().contains("give the player's number"));
    kick(&bob.player.to_string()).await.unwrap();
    while atrus.game.hear().await.is_some() {}
    shard.stop().await;
}

/// Changes reach the database after a short time, so a later crash of the shard cannot lose them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_written_while_the_age_runs() {
    let shard = Running::start(prepare, |_| ()).await;
    let ann = Traveller::to_fern(&shard, ACCOUNTS[0], "Yeesha").await;
    let yeesha = ann.join(&shard).await;
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    yeesha.changes(object(1, "Gate"), blob("lever", "place", Scalar::Int(6))).await;
    // Objects' states are nodes of a type that no client can create.
    let node_type = Some(NodeType(0x7577_0001));
    let template = VaultNode { node_type, uuid_1: Some(FERN), ..VaultNode::default() };
    let written = async {
        while shard.vault.find(template.clone()).await.unwrap().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::PATIENCE, written).await.unwrap();
    drop((yeesha, ann));
    shard.stop().await;
}

/// In an age that is not in the vault, players meet but nothing persists. A full age refuses
/// further players.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_ages_persist_nothing_and_full_ages_refuse_players() {
    let small = |folder: &Path| {
        prepare(folder);
        std::fs::write(folder.join("data/ages/Fern.age"), "MaxCapacity=1\n").unwrap();
    };
    let shard = Running::start(small, |config| {
        config.auth.temporary_ages = true;
        config.game.refuse_full = true;
    })
    .await;
    let ann = Traveller::to(&shard, ACCOUNTS[0], "Yeesha", Uuid([8; 16])).await;
    let bob = Traveller::to(&shard, ACCOUNTS[1], "Atrus", Uuid([8; 16])).await;
    assert_eq!(ann.number, bob.number);
    let mut yeesha = ann.join(&shard).await;
    assert!(matches!(yeesha.hears().await, NetMessage::GroupOwner(_)));
    yeesha.changes(object(1, "Lever"), blob("lever", "place", Scalar::Int(5))).await;
    let mut atrus = Visitor::connect(&shard, bob.player).await;
    let result = atrus.ask_in(bob.number, bob.account, bob.player).await;
    assert_eq!(result, NetError::ServerBusy);
    drop((yeesha, ann));
    // The player's slot soon becomes free.
    while atrus.ask_in(bob.number, bob.account, bob.player).await != NetError::Success {}
    shard.stop().await;
}
