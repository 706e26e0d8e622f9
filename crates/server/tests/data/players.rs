//! Accounts and players in the vault: logins, limits, the nodes that a new player gets, and those
//! that a deleted player leaves behind.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use worldwire_server::uru::vault::{Login, Notice, OnDuplicate, VaultConfig};
use worldwire_uru::crypt::login::{LoginForm, PasswordHash, login_fields};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::support::{Database, all, child, encoded, log_in, login, note, play, read, text};

#[tokio::test]
async fn a_new_player_has_a_tree_like_on_other_servers() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, player) = play(&vault, "Ann").await;
    let refs = ann.refs(player).await.unwrap();
    let nodes: BTreeSet<_> =
        refs.iter().flat_map(|reference| [reference.parent_id, reference.child_id]).collect();
    // dirtsand and NAGUS create the same number of nodes of each type.
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

    // The password of an account with an e-mail name is changed; the request does not work for
    // other names.
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

    // Unknown names and wrong passwords get the same reply and the same limit.
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
        let error = connection.log_in(Login { address, ..login(&name, "wrong") });
        assert_eq!(error.await.unwrap_err(), NetError::AuthenticationFailed);
    }
    let login = Login { address, ..login("ann@example.com", "newer") };
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
    // The notices: online, offline, and disconnected.
    assert!(matches!(notices.recv().await, Some(Notice::NodeChanged { .. })));
    let kicked = Notice::KickedOff { reason: NetError::LoggedInElsewhere };
    assert_eq!(notices.recv().await, Some(kicked));
    assert_eq!(old.create(note("x")).await, Err(NetError::AuthenticationFailed));
    drop(old);
    assert!(new.create(note("x")).await.is_ok());
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
