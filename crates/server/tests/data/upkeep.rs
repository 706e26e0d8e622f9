//! Tests of renaming players, removing nodes that belong to no tree, and sharing books.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use worldwire_server::store::{Change, CharacterRow, Store};
use worldwire_server::uru::vault::{Connection, Environment, Notice, Vault, VaultConfig};
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::support::{Database, Fault, Memory, all, child, encoded, key, note, play};

async fn lines(vault: &Vault) -> Vec<String> {
    vault.export().await.unwrap().lines().collect()
}

async fn players_are_renamed(database: &Database) {
    let vault = database.vault().await;
    let (ann, mut to_ann, a) = play(&vault, "Ann").await;
    // Both are in the neighbourhood, so each watches the other.
    let (bob, mut to_bob, b) = play(&vault, "Bob").await;
    ann.get_scores(a, String::new()).await.unwrap();
    all(&mut to_ann);
    all(&mut to_bob);

    let renamed = vault.rename_player("ann", "  Eowyn  of Rohan ").await.unwrap();
    assert_eq!((renamed.player, renamed.online), (a, true));
    assert_eq!((&*renamed.old, &*renamed.new), ("Ann", "Eowyn of Rohan"));
    assert_eq!(renamed.ages.len(), 1);
    let changed = |notices: Vec<Notice>| {
        let node = |notice| match notice {
            Notice::NodeChanged { node_id, revision_id } if !revision_id.is_zero() => node_id,
            other => panic!("{other:?}"),
        };
        notices.into_iter().map(node).collect::<Vec<_>>()
    };
    let info = child(&ann, a, NodeType::PlayerInfo, None).await;
    bob.get_scores(b, String::new()).await.unwrap();
    assert_eq!(changed(all(&mut to_ann)), [a, info, renamed.ages[0]]);
    assert_eq!(changed(all(&mut to_bob)), [info]);
    drop((ann, bob));
    vault.close().await;

    // Only the account keeps the old name.
    let vault = database.vault().await;
    let left = lines(&vault).await;
    let left: Vec<_> = left.iter().filter(|line| !line.starts_with("{\"account\"")).collect();
    assert!(left.iter().all(|line| !line.contains("Ann")), "{left:?}");
    assert_eq!(left.iter().filter(|line| line.contains("Eowyn of Rohan")).count(), 4);
    assert!(left.iter().any(|line| line.contains("\"Eowyn of Rohan's Relto\"")));
    for (who, name, error) in [
        ("Ann", "Anna", NetError::PlayerNotFound),
        ("bob", "Éowyn", NetError::PlayerNameInvalid),
        ("bob", "EOWYN OF ROHAN", NetError::PlayerAlreadyExists),
    ] {
        assert_eq!(vault.rename_player(who, name).await, Err(error), "{name}");
    }
    let again = vault.rename_player(&a.to_string(), "EOWYN of Rohan").await.unwrap();
    assert_eq!((&*again.new, again.online), ("EOWYN of Rohan", false));
    assert_eq!(vault.check().await.unwrap(), []);
    vault.close().await;
}

#[tokio::test]
async fn players_are_renamed_in_sqlite() {
    players_are_renamed(&Database::sqlite()).await;
}

#[tokio::test]
async fn players_are_renamed_in_postgres() {
    if let Some(database) = Database::postgres() {
        players_are_renamed(&database).await;
    }
}

/// Older versions accepted names that clients cannot send.
#[tokio::test]
async fn old_names_that_crash_clients_are_reported_and_changed() {
    let database = Database::sqlite();
    let vault = database.vault().await;
    let (_, _notices, a) = play(&vault, "Ann").await;
    let (_, _notices, b) = play(&vault, "Bob").await;
    vault.close().await;
    let store = database.store().await;
    let position = store.claim().await.unwrap();
    let rows = store.characters().await.unwrap().into_iter();
    // Both players get the same name, so a search for the name finds only one of them.
    let changes = rows.map(|row| {
        let change = Change::PutCharacter(CharacterRow { name: "Ægidius".to_owned(), ..row });
        (change.key(), change)
    });
    store.commit(position, Arc::new(changes.collect())).await.unwrap();
    drop(store);
    let vault = database.vault().await;
    let kinds = async || {
        let findings = vault.check().await.unwrap().into_iter();
        findings.map(|finding| (finding.id, finding.kind)).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, [(b, "same-name"), (a, "player-name"), (b, "player-name")]);
    let renamed = vault.rename_player("ÆGIDIUS", "Aegidius").await.unwrap();
    assert_eq!(renamed.player, a);
    assert_eq!(kinds().await, [(b, "player-name")]);
    assert_eq!(vault.rename_player("Ægidius", "Bob").await.unwrap().player, b);
    assert_eq!(kinds().await, []);
}

#[tokio::test(start_paused = true)]
async fn renaming_survives_failures_of_the_database() {
    let memory = Arc::new(Memory::default());
    let store = Arc::<Memory>::clone(&memory);
    let vault = Vault::open(store, key(), VaultConfig::default()).await.unwrap();
    let (_ann, _notices, _) = play(&vault, "Ann").await;
    let before = lines(&vault).await;
    memory.next(Fault::Refused);
    let failed = vault.rename_player("Ann", "Anna").await;
    assert_eq!(failed, Err(NetError::InternalError));
    assert_eq!(lines(&vault).await, before);
    // The batch took effect, although the request failed.
    memory.next(Fault::Lost);
    let failed = vault.rename_player("Ann", "Anna").await;
    assert_eq!(failed, Err(NetError::InternalError));
    assert_eq!(vault.rename_player("Ann", "x").await, Err(NetError::PlayerNotFound));
    assert_eq!(vault.nodes_called("Anna").await.unwrap().len(), 1);
    assert_eq!(vault.check().await.unwrap(), []);
}

/// A vault whose clock the test sets.
async fn timed(store: Arc<dyn Store>, now: &Arc<AtomicU32>) -> Vault {
    timed_with(store, now, VaultConfig { max_nodes: 30, ..VaultConfig::default() }).await
}

async fn timed_with(store: Arc<dyn Store>, now: &Arc<AtomicU32>, config: VaultConfig) -> Vault {
    let now = Arc::clone(now);
    let clock = Box::new(move || now.load(Ordering::Relaxed));
    let environment = Environment { clock, ..Environment::default() };
    Vault::open_within(store, key(), config, environment).await.unwrap()
}

fn folder() -> Vec<u8> {
    encoded(&VaultNode { node_type: Some(NodeType::Folder), ..VaultNode::default() })
}

async fn removed_nodes_are_pruned(database: &Database) {
    let now = Arc::new(AtomicU32::new(1_000_000));
    let vault = timed(database.store().await, &now).await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    // A new player already has half of the nodes that it may create. Removed nodes do not count.
    for _ in 0..24 {
        let page = ann.create(note("page")).await.unwrap();
        ann.add(a, page, 0).await.unwrap();
        ann.remove(a, page).await.unwrap();
    }
    // A node that is below a removed one and in the player's tree.
    let [top, middle] = [ann.create(folder()).await.unwrap(), ann.create(folder()).await.unwrap()];
    let shared = ann.create(note("shared")).await.unwrap();
    ann.add(top, middle, 0).await.unwrap();
    ann.add(middle, shared, 0).await.unwrap();
    ann.add(a, shared, 0).await.unwrap();
    drop(ann);
    vault.close().await;

    // The counts are the same after a restart.
    let vault = timed(database.store().await, &now).await;
    let (ann, _notices) = crate::support::log_in(&vault, "Ann").await;
    ann.set_player(a).await.unwrap();
    let mut loose = 26;
    let refused = loop {
        match ann.create(note("page")).await {
            Ok(_) => loose += 1,
            Err(error) => break error,
        }
    };
    // Nodes that belong to no tree have a separate limit.
    assert_eq!((loose, refused), (30, NetError::VaultNodeAccessViolation));
    let kinds = async || {
        let kinds = vault.check().await.unwrap().into_iter().map(|finding| finding.kind);
        kinds.collect::<Vec<_>>()
    };

    // Recent nodes, and those of players who are online, are kept. A check lists the nodes that
    // would be removed.
    let counts = async |dry| {
        let pruned = vault.prune(dry).await.unwrap();
        (pruned.nodes.into_iter().collect::<Vec<_>>(), pruned.refs, pruned.kept)
    };
    assert_eq!(kinds().await, vec!["unreachable-online"; 30]);
    assert_eq!(counts(false).await, (Vec::new(), 0, 30));
    ann.set_player(0).await.unwrap();
    assert_eq!(kinds().await, vec!["unreachable-recent"; 30]);
    assert_eq!(counts(false).await, (Vec::new(), 0, 30));
    ann.set_player(a).await.unwrap();
    now.fetch_add(7_200, Ordering::Relaxed);
    assert_eq!(kinds().await, vec!["unreachable-online"; 30]);
    assert_eq!(counts(false).await, (Vec::new(), 0, 30));
    ann.set_player(0).await.unwrap();
    assert_eq!(kinds().await, vec!["unreachable"; 30]);
    let all = vec![("Folder".to_owned(), 2), ("TextNote".to_owned(), 28)];
    let before = lines(&vault).await;
    assert_eq!(counts(true).await, (all.clone(), 2, 0));
    assert_eq!(lines(&vault).await, before);
    assert_eq!(counts(false).await, (all, 2, 0));
    assert_eq!(lines(&vault).await.len(), before.len() - 32);
    assert_eq!(vault.check().await.unwrap(), []);
    ann.set_player(a).await.unwrap();
    assert!(ann.refs(a).await.unwrap().iter().any(|reference| reference.child_id == shared));
    ann.create(note("page")).await.unwrap();
    drop(ann);
    vault.close().await;
    let vault = timed(database.store().await, &now).await;
    assert_eq!(vault.check().await.unwrap().len(), 1);
    vault.close().await;
}

#[tokio::test]
async fn removed_nodes_are_pruned_in_sqlite() {
    removed_nodes_are_pruned(&Database::sqlite()).await;
}

#[tokio::test]
async fn removed_nodes_are_pruned_in_postgres() {
    if let Some(database) = Database::postgres() {
        removed_nodes_are_pruned(&database).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pruning_is_one_transaction() {
    let memory = Arc::new(Memory::default());
    let now = Arc::new(AtomicU32::new(1_000_000));
    let vault = timed(Arc::<Memory>::clone(&memory), &now).await;
    let (ann, _notices, _) = play(&vault, "Ann").await;
    let top = ann.create(folder()).await.unwrap();
    for _ in 0..9 {
        let page = ann.create(note("page")).await.unwrap();
        ann.add(top, page, 0).await.unwrap();
    }
    // Other servers' list of all players belongs to no tree, either.
    let node_type = Some(NodeType::PlayerInfoList);
    let list = VaultNode { node_type, int32_1: Some(12), ..VaultNode::default() };
    ann.create(encoded(&list)).await.unwrap();
    ann.set_player(0).await.unwrap();
    now.fetch_add(7_200, Ordering::Relaxed);
    let before = lines(&vault).await;
    memory.next(Fault::Refused);
    assert_eq!(vault.prune(false).await, Err(NetError::InternalError));
    assert_eq!(lines(&vault).await, before);
    memory.next(Fault::Lost);
    assert_eq!(vault.prune(false).await, Err(NetError::InternalError));
    assert_eq!(lines(&vault).await.len(), before.len() - 10 - 9);
    let again = vault.prune(false).await.unwrap();
    assert_eq!((again.nodes.len(), again.kept), (0, 1));
}

/// Being in the same age as an owner counts as an invitation for five minutes.
#[tokio::test]
async fn books_are_shared_for_five_minutes() {
    for sharing in [true, false] {
        let now = Arc::new(AtomicU32::new(1_000_000));
        let memory = Arc::new(Memory::default());
        let config = VaultConfig { sharing, ..VaultConfig::default() };
        let vault = timed_with(memory, &now, config).await;
        let (ann, _to_ann, _) = play(&vault, "Ann").await;
        let (bob, _to_bob, _) = play(&vault, "Bob").await;
        let age = async |name: &str| {
            let age = vault.ages_called(name).await.unwrap()[0].id;
            let node = vault.show(age).await.unwrap();
            let json = worldwire_core::json::Json::from(node["Uuid_1"].as_str().unwrap());
            let instance: Uuid = worldwire_core::Field::from_json((&json).into()).unwrap();
            (node["String64_1"].as_str().unwrap().to_owned(), instance)
        };
        let [city, relto] = [age("city").await, age("Ann's Relto").await];
        let enter = async |who: &Connection, (name, instance): &(String, Uuid)| {
            who.request_age(name.clone(), *instance).await.map(drop)
        };
        let shared = if sharing { Ok(()) } else { Err(NetError::AgeNotFound) };
        enter(&bob, &city).await.unwrap();
        enter(&ann, &city).await.unwrap();
        ann.leave_age().await.unwrap();
        enter(&ann, &relto).await.unwrap();
        now.fetch_add(299, Ordering::Relaxed);
        bob.leave_age().await.unwrap();
        assert_eq!(enter(&bob, &relto).await, shared);
        // Later, he is a stranger again, even after a visit.
        bob.leave_age().await.unwrap();
        now.fetch_add(1, Ordering::Relaxed);
        assert_eq!(enter(&bob, &relto).await, Err(NetError::AgeNotFound));
    }
}
