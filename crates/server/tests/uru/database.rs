//! The database fails and recovers.

use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use worldwire_server::uru::SQLITE_FILE;
use worldwire_uru::types::{Nested, NetError};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::{PATIENCE, Running};
use crate::player::{ANN, BOB, Player, result};

/// Renames a table. Nothing can be written while it has another name.
pub(crate) async fn rename(shard: &Running, from: &str, to: &str) {
    let file = shard.folder.path().join(SQLITE_FILE);
    let mut database = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    let statement = AssertSqlSafe(format!("ALTER TABLE {from} RENAME TO {to}"));
    sqlx::query(statement).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

#[tokio::test]
async fn connections_during_an_outage_are_kept() {
    let shard = Running::start(|_| (), |_| ()).await;
    let (mut ann, _) = Player::enter(&shard, ANN, "Ann").await;
    let note = VaultNode { node_type: Some(NodeType::TextNote), ..VaultNode::default() };
    let node = ann.make(note.clone()).await;
    rename(&shard, "shard", "away").await;
    let created = || Nested::encode_from(&note).unwrap();
    let refused = result!(ann, VaultNodeCreate { node: created() }, VaultNodeCreated);
    assert_eq!(refused, NetError::InternalError);
    let mut bob = Player::connect(&shard).await;
    let (players, login) = bob.log_in(BOB.0, BOB.1).await;
    assert_eq!((players.len(), login.result), (0, NetError::InternalError));
    assert_eq!(ann.fetch(node).await.unwrap_err(), NetError::InternalError);

    rename(&shard, "away", "shard").await;
    let start = Instant::now();
    while bob.log_in(BOB.0, BOB.1).await.1.result != NetError::Success {
        assert!(start.elapsed() < PATIENCE, "the database is back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ann.fetch(node).await.unwrap().node_type, Some(NodeType::TextNote));
    let id = bob.create("Bob", "male").await.unwrap();
    assert_eq!(bob.choose(id).await, NetError::Success);
    shard.stop().await;
}
