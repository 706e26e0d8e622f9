//! The vault as services use it: the rules of the protocol, on both databases.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use worldwire_server::uru::vault::InitAge;
use worldwire_server::uru::vault::{Connection, Notice, OnDuplicate, VaultConfig};
use worldwire_uru::crypt::login::{LoginForm, PasswordHash, login_fields};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::support::{
    Database, all, child, encoded, log_in, login, note, play, read, text, titled,
};

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
async fn a_new_player_has_a_tree_like_on_other_servers() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, player) = play(&vault, "Ann").await;
    let refs = ann.refs(player).await.unwrap();
    let nodes: BTreeSet<_> =
        refs.iter().flat_map(|reference| [reference.parent_id, reference.child_id]).collect();
    // dirtsand and NAGUS create the same numbers of them.
    assert_eq!((refs.len(), nodes.len()), (34, 33));
    let pairs: BTreeSet<_> =
        refs.iter().map(|reference| (reference.parent_id, reference.child_id)).collect();
    assert_eq!(pairs.len(), refs.len());

    let owned = child(&ann, player, NodeType::AgeInfoList, Some(23)).await;
    let links: Vec<_> = refs.iter().filter(|reference| reference.parent_id == owned).collect();
    let mut ages = Vec::new();
    for link in links {
        let info = child(&ann, link.child_id, NodeType::AgeInfo, None).await;
        let (link, info) = (read(&ann, link.child_id).await, read(&ann, info).await);
        let spawn = String::from_utf8(link.blob_1.unwrap().to_vec()).unwrap();
        let names = [&info.string64_2, &info.string64_4, &info.string64_3].map(text);
        ages.push((spawn, names, info.int32_1.unwrap(), info.int32_3.unwrap()));
    }
    let names = |names: [&str; 3]| names.map(str::to_owned);
    let link = |spawn: &str| format!("{spawn}:;");
    let (default, ferry) =
        (link("Default:LinkInPointDefault"), link("Ferry Terminal:LinkInPointFerry"));
    assert_eq!(
        ages,
        [
            (default.clone(), names(["Personal", "Ann's", "Relto"]), 0, -1),
            (default, names(["Neighborhood", "DRC", "Hood"]), 1, -1),
            (ferry, names(["city", "", "Ae'gura"]), 0, -1),
        ]
    );
}

#[tokio::test]
async fn logins_are_checked_and_limited() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let set = vault.add_account("Ann@Example.com", "secret", AccountFlags(0)).await.unwrap();
    assert!(set.all_clients);
    assert!(!vault.add_account("bob", "secreté", AccountFlags(0)).await.unwrap().all_clients);
    let twin = vault.add_account("ann@example.COM", "x", AccountFlags(0)).await;
    assert_eq!(twin, Err(NetError::AccountAlreadyExists));
    assert_eq!(
        vault.add_account(" x", "x", AccountFlags(0)).await,
        Err(NetError::InvalidParameter)
    );

    let (connection, mut notices) = vault.connect().await.unwrap();
    let refused = connection.set_player(0).await;
    assert_eq!(refused, Err(NetError::AuthenticationFailed));
    assert_eq!(connection.fetch(10_001).await, Err(NetError::AuthenticationFailed));
    assert_eq!(connection.find(note("x")).await, Err(NetError::AuthenticationFailed));
    let entered = connection.log_in(login("ANN@example.com", "secret")).await.unwrap();
    assert_eq!((entered.account, entered.form), (set.account, LoginForm::ChallengeSha0));
    assert_eq!(connection.create(note("x")).await, Err(NetError::AuthenticationFailed));
    assert!(connection.log_in(login("bob", "secreté")).await.is_ok());
    connection.log_in(login("ann@example.com", "secret")).await.unwrap();

    // A new password for an e-mail name; the request does not work for other names.
    let sha0 = *PasswordHash::sha0("ann@example.com", "new").as_bytes();
    let change = |name: &str| connection.change_password(name.to_owned(), sha0);
    assert_eq!(change("bob").await, Err(NetError::ServiceForbidden));
    change("Ann@example.com").await.unwrap();
    assert!(connection.log_in(login("ann@example.com", "secret")).await.is_err());
    connection.log_in(login("ann@example.com", "new")).await.unwrap();
    vault.set_password("ANN@example.com", "newer").await.unwrap();
    connection.log_in(login("ann@example.com", "newer")).await.unwrap();

    // A banned player is kicked, and cannot log in with the right password.
    vault.ban_account("ann@example.com", true).await.unwrap();
    let kicked = notices.recv().await;
    assert_eq!(kicked, Some(Notice::KickedOff { reason: NetError::AccountBanned }));
    assert_eq!(connection.set_player(0).await, Err(NetError::AuthenticationFailed));
    let banned = connection.log_in(login("ann@example.com", "newer")).await;
    assert_eq!(banned.unwrap_err(), NetError::AccountBanned);
    vault.ban_account("ann@example.com", false).await.unwrap();
    connection.log_in(login("ann@example.com", "newer")).await.unwrap();

    // Unknown names and wrong passwords get the same answer and the same limit.
    for name in ["nobody", "bob"] {
        for _ in 0..5 {
            let error = connection.log_in(login(name, "wrong")).await.unwrap_err();
            assert_eq!(error, NetError::AuthenticationFailed);
        }
        let error = connection.log_in(login(name, "secreté")).await.unwrap_err();
        assert_eq!(error, NetError::TooManyFailedLogins);
    }
    let address = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    for number in 0..20 {
        let name = format!("somebody{number}");
        let error = connection
            .log_in(worldwire_server::uru::vault::Login { address, ..login(&name, "wrong") });
        assert_eq!(error.await.unwrap_err(), NetError::AuthenticationFailed);
    }
    let login =
        worldwire_server::uru::vault::Login { address, ..login("ann@example.com", "newer") };
    assert_eq!(connection.log_in(login.clone()).await.unwrap_err(), NetError::TooManyFailedLogins);
    assert!(!format!("{login:?}").contains("proof"));

    vault.delete_account("ann@example.com").await.unwrap();
    let names: Vec<_> = vault.accounts().await.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["bob"]);
    assert_eq!(login_fields("bob", "x", 1, 2).client_challenge, 0);
}

#[tokio::test]
async fn nothing_secret_is_in_the_database() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    vault.add_account("ann", "secret", AccountFlags(0)).await.unwrap();
    vault.close().await;
    let hashes = [PasswordHash::sha0("ann", "secret"), PasswordHash::sha1("secret")];
    for file in std::fs::read_dir(database.folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for hash in &hashes {
            assert!(!bytes.windows(20).any(|some| some == hash.as_bytes()));
        }
    }
}

#[tokio::test]
async fn players_are_checked_and_limited() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices) = log_in(&vault, "ann").await;
    let make = |name: &str, shape: &str| ann.create_player(name.to_owned(), shape.to_owned());
    let long = "x".repeat(40);
    for name in [
        "An\u{200b}n",
        "A\u{202e}nn",
        "ab",
        " a  b ",
        "a\u{7}bc",
        "a\u{fffd}bc",
        &long,
        "Éowyn",
        "Ägidius",
        " Привет",
    ] {
        assert_eq!(make(name, "male").await, Err(NetError::PlayerNameInvalid), "{name:?}");
    }
    assert_eq!(make("Ann", "robot").await, Err(NetError::InvalidParameter));
    let first = make("  Ann   of  Ae'gura ", "female").await.unwrap();
    assert_eq!((&*first.name, &*first.shape, first.explorer), ("Ann of Ae'gura", "female", 1));
    assert_eq!(make("ANN OF AE'GURA", "male").await, Err(NetError::PlayerAlreadyExists));
    for number in 2..=5 {
        make(&format!("Ann é {number}"), "male").await.unwrap();
    }
    assert_eq!(make("Ann 6", "male").await, Err(NetError::MaxPlayersOnAcct));

    // Only one session at a time can use a player, and only its own account can.
    ann.set_player(first.id).await.unwrap();
    let (again, mut notices) = log_in(&vault, "ann").await;
    assert_eq!(again.set_player(first.id).await, Err(NetError::LoggedInElsewhere));
    assert_eq!(again.delete_player(first.id).await, Err(NetError::LoggedInElsewhere));
    let (bob, _notices) = log_in(&vault, "bob").await;
    assert_eq!(bob.set_player(first.id).await, Err(NetError::PlayerNotFound));
    assert_eq!(bob.delete_player(first.id).await, Err(NetError::PlayerNotFound));
    ann.set_player(0).await.unwrap();
    again.set_player(first.id).await.unwrap();
    // The player's own session is notified, too.
    assert!(matches!(all(&mut notices)[..], [Notice::NodeChanged { .. }]));
    drop(again);
    // A player who leaves is offline.
    ann.set_player(first.id).await.unwrap();
    ann.set_player(0).await.unwrap();
    ann.delete_player(first.id).await.unwrap();
    assert_eq!(ann.fetch(first.id).await, Err(NetError::VaultNodeNotFound));
    make("ann of ae'gura", "male").await.unwrap();
}

#[tokio::test]
async fn the_older_connection_is_closed_if_so_configured() {
    let database = Database::sqlite();
    let config = VaultConfig { on_duplicate: OnDuplicate::Kick, ..VaultConfig::default() };
    let vault = database.vault_with(config).await;
    let (old, mut notices, player) = play(&vault, "Ann").await;
    let (new, _notices) = log_in(&vault, "Ann").await;
    new.set_player(player).await.unwrap();
    // Online, offline, and disconnected.
    assert!(matches!(notices.recv().await, Some(Notice::NodeChanged { .. })));
    let kicked = Notice::KickedOff { reason: NetError::LoggedInElsewhere };
    assert_eq!(notices.recv().await, Some(kicked));
    assert_eq!(old.create(note("x")).await, Err(NetError::AuthenticationFailed));
    drop(old);
    assert!(new.create(note("x")).await.is_ok());
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
        // They are neighbours, so each saw the others arrive.
        while tokio::time::timeout(std::time::Duration::from_millis(5), notices.recv())
            .await
            .is_ok()
        {}
    }

    // Notices precede the reply, even those of the sender's own change. A repetition causes none.
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
    // A second path does not help.
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
async fn ages_are_created_once_and_entered() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, mut notices, a) = play(&vault, "Ann").await;
    let (bob, _to_bob, b) = play(&vault, "Bob").await;
    let relto = InitAge { filename: "Garden".to_owned(), language: -1, ..InitAge::default() };
    let nameless = InitAge { filename: String::new(), ..relto.clone() };
    assert_eq!(ann.init_age(nameless).await, Err(NetError::InvalidParameter));
    for filename in ["../../etc", "a\0b", "a/b", "a\\b", "C:", ".."] {
        let path = InitAge { filename: filename.to_owned(), ..relto.clone() };
        assert_eq!(ann.init_age(path).await, Err(NetError::InvalidParameter), "{filename:?}");
    }
    let last = InitAge { sequence: i32::MAX, ..relto.clone() };
    assert_eq!(ann.init_age(last).await, Err(NetError::InvalidParameter));
    let [one, two] = [ann.init_age(relto.clone()).await, ann.init_age(relto.clone()).await];
    assert_ne!(one.unwrap(), two.unwrap());
    let known = InitAge { instance: Uuid([5; 16]), ..relto.clone() };
    let garden = ann.init_age(known.clone()).await.unwrap();
    assert_eq!(bob.init_age(known.clone()).await, Ok(garden));
    for parent in [Uuid::ZERO, Uuid([7; 16])] {
        let other = InitAge { filename: "Desert".to_owned(), parent, ..known.clone() };
        assert_eq!(bob.init_age(other).await, Err(NetError::InvalidParameter));
    }
    // A parent has one child age per filename; sequence numbers continue.
    let inside = InitAge { parent: Uuid([5; 16]), sequence: -1, ..relto.clone() };
    let first = ann.init_age(inside.clone()).await.unwrap();
    assert_eq!(ann.init_age(inside).await, Ok(first));
    let hood = InitAge {
        filename: "Neighborhood".to_owned(),
        user_name: "Ann's".to_owned(),
        ..InitAge::default()
    };
    for number in [1, 2] {
        let nodes = ann.init_age(hood.clone()).await.unwrap();
        let info = read(&ann, nodes.info).await;
        assert_eq!(info.int32_1, Some(number));
        assert_eq!((info.uint32_1, info.string64_3), (Some(nodes.age), None));
        assert_eq!(info.uuid_2, None);
    }

    // A session that has requested an age watches its nodes.
    let request = |connection: &Connection, name: &str, instance| {
        connection.request_age(name.to_owned(), instance)
    };
    assert_eq!(request(&ann, "Garden", Uuid([6; 16])).await, Err(NetError::AgeNotFound));
    assert_eq!(request(&ann, "Desert", Uuid([5; 16])).await, Err(NetError::AgeNotFound));
    assert_eq!(request(&ann, "StartUp", Uuid([6; 16])).await.unwrap().age, 0);
    assert_eq!(request(&ann, "Garden", Uuid([5; 16])).await.unwrap().age, garden.age);
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    let shown = read(&ann, info).await;
    assert_eq!((text(&shown.string64_1), shown.uuid_1), ("Garden".to_owned(), Some(Uuid([5; 16]))));
    let devices = child(&ann, garden.age, NodeType::Folder, Some(15)).await;
    all(&mut notices);
    let page = ann.create(note("sign")).await.unwrap();
    ann.add(devices, page, a).await.unwrap();
    assert_eq!(all(&mut notices).len(), 1);
    let sign = bob.create(note("sign")).await.unwrap();
    assert_eq!(bob.add(devices, sign, b).await, Err(NetError::VaultNodeAccessViolation));
    request(&bob, "Garden", Uuid([5; 16])).await.unwrap();
    bob.add(devices, sign, b).await.unwrap();
    ann.find(note("x")).await.unwrap();
    let told = all(&mut notices);
    let added = Notice::NodeAdded { parent_id: devices, child_id: sign, owner_id: b };
    assert_eq!(told.len(), 2, "a neighbour went there, too");
    assert_eq!(told[1], added);
    ann.leave_age().await.unwrap();
    bob.save(sign, Uuid([1; 16]), titled("x")).await.unwrap();
    ann.find(note("x")).await.unwrap();
    assert_eq!(all(&mut notices).len(), 1, "only that it has left itself");
    assert_eq!(ann.fetch(devices).await.err(), Some(NetError::VaultNodeAccessViolation));
}

#[tokio::test]
async fn public_ages_are_listed() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, mut notices, a) = play(&vault, "Ann").await;
    let (_bob, _to_bob, _) = play(&vault, "Bob").await;
    let list = |name: &str| ann.public_ages(name.to_owned());
    let hoods = list("Neighborhood").await.unwrap();
    assert_eq!((hoods.len(), hoods[0].owners, hoods[0].population), (1, 2, 0));
    assert_eq!((&*hoods[0].description, &*hoods[0].user_name), ("DRC Hood", "DRC"));
    ann.request_age("Neighborhood".to_owned(), hoods[0].instance).await.unwrap();
    assert_eq!(list("Neighborhood").await.unwrap()[0].population, 1);
    assert_eq!(list("city").await.unwrap().len(), 1);
    assert_eq!(list("nowhere").await.unwrap(), []);

    let hood = InitAge { filename: "Neighborhood".to_owned(), ..InitAge::default() };
    let own = ann.init_age(hood).await.unwrap().info;
    let refused = Err(NetError::VaultNodeAccessViolation);
    assert_eq!(ann.set_public(own, true).await, refused);
    // Clients add first their own link, then an entry in the list of owners.
    let owned = child(&ann, a, NodeType::AgeInfoList, Some(23)).await;
    let link = encoded(&VaultNode {
        node_type: Some(NodeType::AgeLink),
        blob_1: Some(NodeBlob::new(&b"Default:LinkInPointDefault:;"[..])),
        ..VaultNode::default()
    });
    let link = ann.create(link).await.unwrap();
    ann.add(owned, link, a).await.unwrap();
    ann.add(link, own, a).await.unwrap();
    let owners = child(&ann, own, NodeType::PlayerInfoList, Some(19)).await;
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    ann.add(owners, info, a).await.unwrap();
    all(&mut notices);
    ann.set_public(own, true).await.unwrap();
    assert!(
        matches!(all(&mut notices)[..], [Notice::NodeChanged { node_id, .. }] if node_id == own)
    );
    assert_eq!(list("Neighborhood").await.unwrap().len(), 2);
    let public = encoded(&VaultNode { int32_2: Some(0), ..VaultNode::default() });
    assert_eq!(ann.save(own, Uuid([1; 16]), public).await, refused);
    ann.set_public(own, false).await.unwrap();
    assert_eq!(list("Neighborhood").await.unwrap().len(), 1);
    assert_eq!(ann.set_public(a, true).await, Err(NetError::VaultNodeNotFound));
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

    // The highest scores: of all, of a neighbourhood, of a player.
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

#[tokio::test]
async fn a_deleted_player_leaves_no_trace() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _to_ann, a) = play(&vault, "Ann").await;
    let (bob, mut to_bob, b) = play(&vault, "Bob").await;
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    let buddies = child(&bob, b, NodeType::PlayerInfoList, Some(2)).await;
    bob.add(buddies, info, b).await.unwrap();
    let picture = ann.create(note("picture")).await.unwrap();
    let diary = ann.create(note("diary")).await.unwrap();
    let journals = child(&ann, a, NodeType::Folder, Some(14)).await;
    for page in [picture, diary] {
        ann.add(journals, page, a).await.unwrap();
    }
    ann.send(picture, b).await.unwrap();
    let refs = ann.refs(a).await.unwrap();
    let owned = child(&ann, a, NodeType::AgeInfoList, Some(23)).await;
    let link = child(&ann, owned, NodeType::AgeLink, None).await;
    let relto = child(&ann, link, NodeType::AgeInfo, None).await;
    // A visitor has a link to the Relto.
    let links = child(&bob, b, NodeType::AgeInfoList, Some(24)).await;
    let visit = encoded(&VaultNode { node_type: Some(NodeType::AgeLink), ..VaultNode::default() });
    let visit = bob.create(visit).await.unwrap();
    bob.add(links, visit, b).await.unwrap();
    bob.add(visit, relto, b).await.unwrap();
    let instance = read(&ann, relto).await.uuid_1.unwrap();
    let visitors = child(&ann, relto, NodeType::PlayerInfoList, Some(18)).await;
    let bob_info = child(&bob, b, NodeType::PlayerInfo, None).await;
    ann.add(visitors, bob_info, a).await.unwrap();
    bob.request_age("Personal".to_owned(), instance).await.unwrap();
    ann.set_player(0).await.unwrap();
    bob.find(note("x")).await.unwrap();
    all(&mut to_bob);
    ann.delete_player(a).await.unwrap();

    bob.find(note("x")).await.unwrap();
    let told = all(&mut to_bob);
    let removed = |parent_id, child_id| Notice::NodeRemoved { parent_id, child_id };
    assert!(told.contains(&removed(buddies, info)) && told.contains(&removed(visit, relto)));
    vault.add_account("root", "root", AccountFlags::Admin).await.unwrap();
    let (root, _to_root, _) = play(&vault, "root").await;
    for node in [a, info, diary, journals, owned, link, relto] {
        assert_eq!(root.fetch(node).await, Err(NetError::VaultNodeNotFound), "{node}");
    }
    for node in [picture, visit] {
        assert!(root.fetch(node).await.is_ok(), "{node}");
    }
    // The remaining nodes of the player's tree also belong to other trees.
    for reference in refs {
        if root.fetch(reference.child_id).await.is_err() {
            let left = root.refs(reference.parent_id).await.unwrap_or_default();
            assert!(!left.contains(&reference), "{reference:?}");
        }
    }
    vault.close().await;
    database.vault().await;
}
