//! Copies a shard's database to one of the other kind, and back.

use std::fs;
use std::path::Path;

use worldwire_server::store::lock::FolderLock;
use worldwire_server::store::seal::{KEY_FILE, ServerKey};
use worldwire_server::store::{self, CopyError, StoreError};
use worldwire_server::uru::SQLITE_FILE;
use worldwire_server::uru::admin::{Admin, AdminError, Request, copy_database};
use worldwire_server::uru::vault::{Vault, VaultConfig};

use crate::support::{Database, encoded, login, play};

/// All contents of a shard's vault, with passwords, and the problems that a check finds.
async fn everything(folder: &Path) -> [Vec<serde_json::Value>; 2] {
    let admin = Admin::open(folder).await.unwrap();
    let all = admin.ask(Request::Export { passwords: true }).await.unwrap();
    let findings = admin.ask(Request::Check).await.unwrap();
    admin.close().await;
    [all, findings]
}

async fn vault(folder: &Path, url: Option<&str>) -> Vault {
    let key = ServerKey::load_or_create(&folder.join(KEY_FILE)).unwrap();
    let store = store::open(folder.join(SQLITE_FILE), url).await.unwrap();
    Vault::open(store, key, VaultConfig::default()).await.unwrap()
}

#[tokio::test]
async fn a_shard_moves_to_postgres_and_back() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [from, to] = [&old, &new].map(|folder| folder.path());
    let shard = vault(from, None).await;
    let (ann, _notices, player) = play(&shard, "Ann").await;
    ann.create_score(player, "points".to_owned(), 2, -7).await.unwrap();
    let text = worldwire_uru::vault::VaultNode {
        node_type: Some(worldwire_uru::vault::NodeType::TextNote),
        text_1: Some("D\u{2019}ni \u{1f600}".into()),
        ..Default::default()
    };
    // It would take too long to create more rows here than are copied or compared at once.
    for _ in 0..10 {
        ann.create(encoded(&text)).await.unwrap();
    }
    shard.close().await;
    // Opening the vault creates the public ages, and stores the time of their creation.
    everything(from).await;

    let lock = FolderLock::take(from).unwrap();
    let running = copy_database(from, url).await.unwrap_err();
    assert!(matches!(running, AdminError::Running { .. }), "{running}");
    drop(lock);
    let refused = copy_database(from, "mysql://localhost/shard").await.unwrap_err();
    assert!(matches!(refused, AdminError::Store(StoreError::Url)), "{refused}");
    let here = from.join(SQLITE_FILE);
    let refused = copy_database(from, here.to_str().unwrap()).await.unwrap_err();
    assert!(matches!(refused, AdminError::Store(StoreError::InUse { .. })), "{refused}");

    let copied = copy_database(from, url).await.unwrap();
    assert_eq!((copied.accounts, copied.characters, copied.scores), (1, 1, 1));
    assert!(copied.nodes > 20 && copied.refs > 10, "{copied:?}");
    // The new database is no longer empty.
    let again = copy_database(from, url).await.unwrap_err();
    assert!(matches!(again, AdminError::Copy(CopyError::NotEmpty)), "{again}");
    fs::copy(from.join(KEY_FILE), to.join(KEY_FILE)).unwrap();
    fs::write(to.join("shard.toml"), format!("database = \"{url}\"\n")).unwrap();
    assert_eq!(everything(to).await, everything(from).await);
    let [_, findings] = everything(to).await;
    assert!(findings.iter().all(|finding| finding["problem"] == false), "{findings:?}");

    // Ann logs in with her password, as the same player.
    let shard = vault(to, Some(url)).await;
    let (ann, _notices) = shard.connect().await.unwrap();
    assert_eq!(ann.log_in(login("Ann", "Ann")).await.unwrap().players[0].id, player);
    let refused = copy_database(from, url).await.unwrap_err();
    assert!(matches!(refused, AdminError::Store(StoreError::InUse { .. })), "{refused}");
    drop(ann);
    shard.close().await;

    let back = to.join("back.sqlite");
    copy_database(to, back.to_str().unwrap()).await.unwrap();
    let third = tempfile::tempdir().unwrap();
    fs::copy(from.join(KEY_FILE), third.path().join(KEY_FILE)).unwrap();
    fs::rename(&back, third.path().join(SQLITE_FILE)).unwrap();
    assert_eq!(everything(third.path()).await, everything(to).await);
}
