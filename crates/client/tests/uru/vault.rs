//! The vault as two clients see it; ages and scores.

use std::time::Duration;

use tokio::time::timeout;
use worldwire_client::uru::{NewAge, Notification, Notifications, VaultMirror};
use worldwire_core::Field as _;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::shard::Running;

/// Waits for a notification and applies all that arrive before it.
async fn until(
    wanted: impl Fn(&Notification) -> bool,
    notifications: &mut Notifications,
    auth: &worldwire_client::uru::Auth,
    mirror: &mut VaultMirror,
) {
    loop {
        let next = timeout(Duration::from_secs(30), notifications.next()).await.unwrap().unwrap();
        mirror.apply(auth, &next).await.unwrap();
        if wanted(&next) {
            return;
        }
    }
}

#[tokio::test]
async fn a_mirror_follows_the_changes_of_others() {
    let running = Running::start(|_| ()).await;
    let (ann, mut told, ann_id) = running.enter(0, "Ann").await;
    let mut mirror = VaultMirror::fetch(&ann, ann_id).await.unwrap();
    let (bob, _, bob_id) = running.enter(1, "Bob").await;
    let find = |name: &str| VaultNode {
        node_type: Some(NodeType::PlayerInfo),
        istring64_1: Some(TermStr::from(name).into_owned()),
        ..VaultNode::default()
    };
    let [info] = ann.find_nodes(&find("BOB")).await.unwrap()[..] else { panic!("one Bob") };
    // He first becomes a new neighbour and then comes online.
    let online = |note: &Notification| matches!(note, Notification::NodeChanged { node_id, .. } if *node_id == info);
    until(online, &mut told, &ann, &mut mirror).await;
    assert_eq!(mirror.node(info).unwrap().int32_1, Some(1));
    assert_eq!(mirror, VaultMirror::fetch(&ann, ann_id).await.unwrap());

    let note = VaultNode {
        node_type: Some(NodeType::TextNote),
        text_1: Some("Shorah".into()),
        ..VaultNode::default()
    };
    let note = bob.create_node(&note).await.unwrap();
    bob.send_node(note, ann_id).await.unwrap();
    let added = |told: &Notification| {
        matches!(told, Notification::NodeAdded { child_id, owner_id, .. }
            if (*child_id, *owner_id) == (note, bob_id))
    };
    until(added, &mut told, &ann, &mut mirror).await;
    assert_eq!(mirror.node(note).unwrap().text_1.as_ref().unwrap().to_text(), "Shorah");
    let inbox = mirror.refs().find(|known| known.child_id == note).unwrap().parent_id;

    let change = VaultNode { text_1: Some("Read".into()), ..VaultNode::default() };
    ann.save_node(note, Uuid([7; 16]), &change).await.unwrap();
    let changed = |told: &Notification| {
        *told == Notification::NodeChanged { node_id: note, revision_id: Uuid([7; 16]) }
    };
    until(changed, &mut told, &ann, &mut mirror).await;
    assert_eq!(mirror.node(note).unwrap().text_1.as_ref().unwrap().to_text(), "Read");

    // Adding the same node twice is reported once; removing the node deletes it.
    ann.add_node(inbox, note, ann_id).await.unwrap();
    ann.remove_node(inbox, note).await.unwrap();
    let removed = Notification::NodeRemoved { parent_id: inbox, child_id: note };
    until(|told| *told == removed, &mut told, &ann, &mut mirror).await;
    assert!(mirror.node(note).is_none());
    assert!(!mirror.apply(&ann, &removed).await.unwrap(), "it is not there any more");
    assert_eq!(mirror, VaultMirror::fetch(&ann, ann_id).await.unwrap());

    let error = ann.save_node(bob_id, Uuid([1; 16]), &change).await.unwrap_err();
    assert_eq!(error.net_error(), Some(NetError::VaultNodeAccessViolation));
    let error = ann.add_node(inbox, ann_id, 0).await.unwrap_err();
    assert!(error.net_error().is_some(), "{error}");
    let error = ann.fetch_node(999_999).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "VaultNodeFetch: refused with VaultNodeNotFound (18): game clients show \"Vault Node Not Found\""
    );
    running.stop().await;
}

#[tokio::test]
async fn ages_and_scores() {
    let running = Running::start(|_| ()).await;
    let (ann, _, id) = running.enter(0, "Ann").await;
    let hoods = ann.public_ages("Neighborhood").await.unwrap();
    assert_eq!((hoods.len(), hoods[0].owner_count), (1, 1));
    let instance = Uuid([9; 16]);
    let new = NewAge { user_name: "Ann's", ..NewAge::new("Garden", instance) };
    let (age, info) = ann.init_age(&new).await.unwrap();
    assert_eq!(ann.init_age(&new).await.unwrap(), (age, info));
    let hosted = ann.age("Garden", instance).await.unwrap();
    assert_eq!((hosted.node_id, hosted.instance), (age, instance));
    assert!(hosted.game_server.is_loopback());
    let error = ann.age("Garden", Uuid([8; 16])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "AgeRequest: refused with AgeNotFound (4): game clients show \"Age Not Found\""
    );

    let owner = VaultMirror::fetch(&ann, id).await.unwrap();
    let mut infos = owner.nodes().filter(|(_, node)| node.node_type == Some(NodeType::PlayerInfo));
    let owner = infos.next().unwrap().0;
    let pellets = ann.create_score(owner, "Pellets", 1, 10).await.unwrap();
    ann.add_points(pellets, 5).await.unwrap();
    let scores = ann.scores(owner, "Pellets").await.unwrap();
    assert_eq!((scores.len(), scores[0].value, scores[0].score_id), (1, 15, pellets));
    let other = ann.create_score(owner, "Other", 1, 0).await.unwrap();
    ann.transfer_points(pellets, other, 4).await.unwrap();
    assert_eq!(ann.high_scores(0, 5, "Other").await.unwrap()[0].value, 4);
    let error = ann.set_points(other, 1).await.unwrap_err();
    assert_eq!(error.net_error(), Some(NetError::ScoreWrongType));
    assert!(ann.scores(owner, "None").await.unwrap().is_empty());
    running.stop().await;
}
