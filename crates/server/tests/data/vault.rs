//! The vault as services use it: the protocol's rules, on both kinds of database.

use worldwire_server::uru::vault::Notice;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::support::{Database, all, child, encoded, login, note, play, read, text, titled};

#[tokio::test]
async fn a_vault_is_unchanged_after_a_restart() {
    for database in Database::all() {
        let vault = database.vault().await;
        let (ann, _notices, player) = play(&vault, "Ann").await;
        let journals = child(&ann, player, NodeType::Folder, Some(14)).await;
        let page = ann.create(note("one")).await.unwrap();
        ann.add(journals, page, player).await.unwrap();
        ann.save(page, Uuid([1; 16]), titled("two")).await.unwrap();
        let lost = ann.create(note("lost")).await.unwrap();
        let (score, _) = ann.create_score(player, "pellets".to_owned(), 1, 5).await.unwrap();
        ann.add_points(score, 7).await.unwrap();
        let refs = ann.refs(player).await.unwrap();
        drop(ann);
        vault.close().await;
        assert_eq!(vault.connect().await.err(), Some(NetError::RemoteShutdown));

        let vault = database.vault().await;
        let (ann, _notices) = vault.connect().await.unwrap();
        let entered = ann.log_in(login("ann", "Ann")).await.unwrap();
        assert_eq!(entered.players.len(), 1);
        assert_eq!((entered.players[0].id, &*entered.players[0].name), (player, "Ann"));
        assert_eq!((&*entered.players[0].shape, entered.players[0].explorer), ("male", 1));
        assert_eq!(entered.flags, AccountFlags::User);
        let info = encoded(&VaultNode {
            node_type: Some(NodeType::PlayerInfo),
            uint32_1: Some(player),
            ..VaultNode::default()
        });
        let info = ann.find(info).await.unwrap()[0];
        assert_eq!(read(&ann, info).await.int32_1, Some(0));
        // A client without a chosen player may not read nodes.
        let refused = Err(NetError::AuthenticationFailed);
        assert_eq!(ann.refs(player).await, refused);
        assert_eq!(ann.create(note("x")).await.err(), Some(NetError::AuthenticationFailed));
        assert_eq!(ann.public_ages("city".to_owned()).await.err(), refused.err());
        ann.set_player(player).await.unwrap();
        assert_eq!(read(&ann, info).await.int32_1, Some(1));
        assert_eq!(ann.refs(player).await.unwrap(), refs);
        let node = read(&ann, page).await;
        assert_eq!(text(&node.string64_1), "two");
        assert_eq!((node.creator_acct, node.creator_id), (Some(entered.account), Some(player)));
        let scores = ann.get_scores(player, "pellets".to_owned()).await.unwrap();
        assert_eq!((scores[0].id, scores[0].value), (score, 12));
        // Numbers are not reused.
        assert!(ann.create(note("new")).await.unwrap() > lost);
    }
}

#[tokio::test]
async fn notices_arrive_in_order() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, mut to_ann, a) = play(&vault, "Ann").await;
    let (bob, mut to_bob, b) = play(&vault, "Bob").await;
    let (_eve, mut to_eve, _) = play(&vault, "Eve").await;
    let ann_info = child(&ann, a, NodeType::PlayerInfo, None).await;
    let buddies = child(&bob, b, NodeType::PlayerInfoList, Some(2)).await;
    let folder = child(&ann, a, NodeType::Folder, Some(14)).await;
    for notices in [&mut to_ann, &mut to_bob, &mut to_eve] {
        // They are neighbours, so each of them saw the others arrive.
        while tokio::time::timeout(std::time::Duration::from_millis(5), notices.recv())
            .await
            .is_ok()
        {}
    }

    // Notices precede the reply, even those about the sender's own change. Repeating the change
    // causes no notices.
    let page = ann.create(note("page")).await.unwrap();
    ann.add(folder, page, a).await.unwrap();
    let added = |parent_id, child_id, owner_id| Notice::NodeAdded { parent_id, child_id, owner_id };
    assert_eq!(all(&mut to_ann), [added(folder, page, a)]);
    ann.add(folder, page, a).await.unwrap();
    assert_eq!(all(&mut to_ann), []);
    let revision = Uuid([9; 16]);
    ann.save(page, revision, titled("new")).await.unwrap();
    assert_eq!(all(&mut to_ann), [Notice::NodeChanged { node_id: page, revision_id: revision }]);
    ann.remove(folder, page).await.unwrap();
    let removed = |parent_id, child_id| Notice::NodeRemoved { parent_id, child_id };
    assert_eq!(all(&mut to_ann), [removed(folder, page)]);
    ann.remove(folder, page).await.unwrap();
    assert_eq!(all(&mut to_ann), []);
    bob.find(note("x")).await.unwrap();
    assert_eq!(all(&mut to_bob), []);

    // A note that was sent is now in the other player's tree.
    ann.send(page, b).await.unwrap();
    let inbox = child(&bob, b, NodeType::Folder, Some(1)).await;
    assert_eq!(all(&mut to_bob), [added(inbox, page, a)]);
    assert_eq!(text(&read(&bob, page).await.string64_1), "new");
    bob.save(page, revision, titled("mine now")).await.unwrap();
    assert_eq!(all(&mut to_bob), [Notice::NodeChanged { node_id: page, revision_id: revision }]);

    // Buddies see each other leave.
    bob.add(buddies, ann_info, b).await.unwrap();
    assert_eq!(all(&mut to_bob), [added(buddies, ann_info, b)]);
    drop(ann);
    let gone = to_bob.recv().await.unwrap();
    assert!(matches!(gone, Notice::NodeChanged { node_id, .. } if node_id == ann_info));
    let gone = to_eve.recv().await.unwrap();
    assert!(matches!(gone, Notice::NodeChanged { node_id, .. } if node_id == ann_info));
    bob.find(note("x")).await.unwrap();
    assert_eq!(all(&mut to_bob), []);
}

#[tokio::test]
async fn access_to_other_players_nodes_is_refused() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (bob, _to_bob, b) = play(&vault, "Bob").await;
    let violation = Err(NetError::VaultNodeAccessViolation);
    let ann_info = child(&ann, a, NodeType::PlayerInfo, None).await;
    let bob_info = child(&bob, b, NodeType::PlayerInfo, None).await;
    let folder = child(&ann, a, NodeType::Folder, Some(14)).await;
    let mine = child(&bob, b, NodeType::Folder, Some(14)).await;
    let page = bob.create(note("page")).await.unwrap();
    let system = child(&ann, a, NodeType::System, None).await;
    let any = Uuid([1; 16]);

    // Reading.
    assert_eq!(bob.fetch(folder).await.err(), violation.err());
    assert_eq!(bob.refs(a).await.err(), Some(NetError::VaultNodeAccessViolation));
    assert!(bob.fetch(ann_info).await.is_ok());
    // Saving.
    for node in [folder, a, ann_info, system] {
        assert_eq!(bob.save(node, any, titled("x")).await, violation, "{node}");
    }
    // The player's own nodes, except the fields that identify the player.
    let renamed =
        encoded(&VaultNode { istring64_1: Some(TermStr::from("Admin")), ..VaultNode::default() });
    assert_eq!(bob.save(b, any, renamed.clone()).await, violation);
    assert_eq!(bob.save(bob_info, any, renamed).await, violation);
    // References.
    assert_eq!(bob.add(folder, page, b).await, violation);
    assert_eq!(bob.add(mine, folder, b).await, violation);
    assert_eq!(bob.add(mine, page, a).await, violation);
    assert_eq!(bob.add(system, page, b).await, violation);
    assert_eq!(bob.remove(b, bob_info).await, violation);
    assert_eq!(bob.remove(a, ann_info).await, violation);
    for root in [a, b] {
        assert_eq!(bob.add(mine, root, b).await, Err(NetError::InvalidParameter));
    }
    assert_eq!(bob.add(mine, 5, b).await, Err(NetError::VaultNodeNotFound));
    assert_eq!(bob.add(5, page, b).await, Err(NetError::VaultNodeNotFound));
    bob.add(mine, ann_info, b).await.unwrap();
    bob.add(mine, page, b).await.unwrap();
    // A player may add only itself to an age's owners.
    let owned = child(&bob, b, NodeType::AgeInfoList, Some(23)).await;
    let link = child(&bob, owned, NodeType::AgeLink, None).await;
    let relto = child(&bob, link, NodeType::AgeInfo, None).await;
    let owners = child(&bob, relto, NodeType::PlayerInfoList, Some(19)).await;
    assert_eq!(bob.add(owners, ann_info, b).await, violation);
    bob.remove(owners, bob_info).await.unwrap();
    assert_eq!(bob.add(owners, bob_info, b).await, violation);
    assert_eq!(ann.add(owners, ann_info, a).await, violation);
    // Types that clients cannot create.
    for kind in [NodeType::Player, NodeType::Age, NodeType::System, NodeType::PlayerInfo] {
        let node = encoded(&VaultNode { node_type: Some(kind), ..VaultNode::default() });
        assert_eq!(bob.create(node).await.err(), violation.err());
    }
    assert_eq!(bob.create(titled("x")).await, Err(NetError::BadServerData));
    assert_eq!(bob.create(vec![1, 2, 3]).await, Err(NetError::BadServerData));
    let mut long = note("x");
    long.push(0);
    assert_eq!(bob.create(long).await, Err(NetError::BadServerData));
    assert_eq!(bob.create(note(&"x".repeat(64))).await, Err(NetError::InvalidParameter));
    // An administrator may save other players' nodes and kick players.
    vault.add_account("root", "root", AccountFlags::Admin).await.unwrap();
    let (root, _to_root, _) = play(&vault, "root").await;
    root.save(folder, any, titled("x")).await.unwrap();
    assert_eq!(bob.kick_player(a).await, Err(NetError::ServiceForbidden));
    root.kick_player(a).await.unwrap();
    assert_eq!(ann.create(note("x")).await, Err(NetError::AuthenticationFailed));
}

#[tokio::test]
async fn cycles_are_refused() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, player) = play(&vault, "Ann").await;
    let top = child(&ann, player, NodeType::Folder, Some(14)).await;
    let folder = encoded(&VaultNode { node_type: Some(NodeType::Folder), ..VaultNode::default() });
    let mut chain = vec![top];
    for _ in 0..5 {
        let node = ann.create(folder.clone()).await.unwrap();
        ann.add(*chain.last().unwrap(), node, player).await.unwrap();
        chain.push(node);
    }
    for node in &chain[1..] {
        let cycle = ann.add(chain[5], *node, player).await;
        assert_eq!(cycle, Err(NetError::CircularReference), "{node}");
    }
    // A second path to the node does not help.
    ann.add(chain[1], chain[5], player).await.unwrap();
    assert_eq!(ann.add(chain[5], chain[1], player).await, Err(NetError::CircularReference));
}

#[tokio::test]
async fn nodes_are_found_by_their_fields() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, player) = play(&vault, "Ann").await;
    let find = |template: VaultNode<'_>| ann.find(encoded(&template));
    let none = VaultNode::default;
    assert_eq!(find(none()).await, Err(NetError::InvalidParameter));
    let by_number = VaultNode { uint32_1: Some(player), ..none() };
    assert_eq!(find(by_number.clone()).await, Err(NetError::InvalidParameter));
    let info = child(&ann, player, NodeType::PlayerInfo, None).await;
    let of_type = VaultNode { node_type: Some(NodeType::PlayerInfo), ..by_number };
    assert_eq!(find(of_type).await.unwrap(), [info]);
    let named = |kind, name: &str| VaultNode {
        node_type: Some(kind),
        istring64_1: Some(TermStr::from(name)),
        ..none()
    };
    assert_eq!(find(named(NodeType::PlayerInfo, "aNN")).await.unwrap(), [info]);
    assert_eq!(find(named(NodeType::PlayerInfo, "An")).await.unwrap(), [0; 0]);
    // String64 is compared exactly; absent and empty differ.
    let one = ann.create(note("Title")).await.unwrap();
    let titled = |title: &str| VaultNode {
        node_type: Some(NodeType::TextNote),
        string64_1: Some(TermStr::from(title)),
        ..none()
    };
    assert_eq!(find(titled("Title")).await.unwrap(), [one]);
    assert_eq!(find(titled("title")).await.unwrap(), [0; 0]);
    assert_eq!(find(titled("")).await.unwrap(), [0; 0]);
    ann.save(one, Uuid([1; 16]), note("Other")).await.unwrap();
    assert_eq!(find(titled("Title")).await.unwrap(), [0; 0]);
    assert_eq!(find(titled("Other")).await.unwrap(), [one]);
    for _ in 0..515 {
        ann.create(note("Other")).await.unwrap();
    }
    let found = find(titled("Other")).await.unwrap();
    assert_eq!((found.len(), found[0]), (512, one));
}

#[tokio::test]
async fn scores_follow_their_types() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    let make = |name: &str, kind, value| ann.create_score(a, name.to_owned(), kind, value);
    let value = async |name: &str| {
        let scores = ann.get_scores(a, name.to_owned()).await.unwrap();
        scores.first().map(|score| score.value)
    };
    assert_eq!(make("bad", 3, 0).await, Err(NetError::ScoreWrongType));
    assert_eq!(make("a\0b", 0, 0).await, Err(NetError::InvalidParameter));
    let (fixed, _) = make("fixed", 0, 1).await.unwrap();
    let (plus, _) = make("plus", 1, 10).await.unwrap();
    let (both, _) = make("both", 2, 0).await.unwrap();
    let (other, _) = make("other", 2, 0).await.unwrap();
    assert_eq!(make("plus", 2, 0).await, Err(NetError::ScoreAlreadyExists));
    assert_eq!(value("none").await, None);

    assert_eq!(ann.add_points(fixed, 1).await, Err(NetError::ScoreWrongType));
    ann.set_points(fixed, -9).await.unwrap();
    assert_eq!(value("fixed").await, Some(-9));
    assert_eq!(ann.set_points(plus, 1).await, Err(NetError::ScoreWrongType));
    ann.add_points(plus, -30).await.unwrap();
    assert_eq!(value("plus").await, Some(0));
    ann.add_points(plus, i32::MAX).await.unwrap();
    ann.add_points(plus, 1).await.unwrap();
    assert_eq!(value("plus").await, Some(i32::MAX));
    ann.add_points(both, -5).await.unwrap();
    assert_eq!(ann.add_points(999, 1).await, Err(NetError::ScoreNoDataFound));

    let move_points = |from, to, points| ann.transfer_points(from, to, points);
    assert_eq!(move_points(plus, plus, 1).await, Err(NetError::InvalidParameter));
    assert_eq!(move_points(plus, both, -1).await, Err(NetError::InvalidParameter));
    assert_eq!(move_points(plus, 999, 1).await, Err(NetError::ScoreNoDataFound));
    assert_eq!(move_points(plus, fixed, 1).await, Err(NetError::ScoreWrongType));
    assert_eq!(move_points(both, plus, 1).await, Err(NetError::ScoreNotEnoughPoints));
    move_points(both, other, 10).await.unwrap();
    assert_eq!((value("both").await, value("other").await), (Some(-15), Some(10)));

    // The highest scores: of everyone, of a neighbourhood, and of a player.
    let (bob, _to_bob, b) = play(&vault, "Bob").await;
    bob.create_score(b, "fixed".to_owned(), 0, 50).await.unwrap();
    let best = async |owner, most| {
        let scores = ann.high_scores(owner, most, "fixed".to_owned()).await.unwrap();
        scores.into_iter().map(|score| score.value).collect::<Vec<_>>()
    };
    assert_eq!(best(0, 500).await, [50, -9]);
    assert_eq!(best(0, 1).await, [50]);
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    assert_eq!(best(info, 9).await, [-9]);
    let hoods = VaultNode {
        node_type: Some(NodeType::AgeInfo),
        string64_2: Some(TermStr::from("Neighborhood")),
        ..VaultNode::default()
    };
    let hood = ann.find(encoded(&hoods)).await.unwrap()[0];
    assert_eq!(best(hood, 9).await, [50, -9]);
    assert_eq!(best(5, 9).await, [0; 0]);
}
