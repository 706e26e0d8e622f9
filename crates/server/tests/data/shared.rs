//! A PostgreSQL database that several processes share: which of them may take it over, and how a
//! standby learns about changes.

use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use worldwire_server::store::lease::{LeaseRow, SharedStore as _};
use worldwire_server::store::{
    AccountRow, Change, Changes, CharacterRow, Ledger as _, NodeRow, PostgresStore, RefRow,
    ScoreRow, SettingRow, StoreError,
};

use crate::support::Database;

async fn open(database: &Database, name: &str) -> PostgresStore {
    PostgresStore::open(database.url.as_deref().unwrap(), name.to_owned()).await.unwrap()
}

fn batch(changes: impl IntoIterator<Item = Change>) -> Arc<Changes> {
    Arc::new(changes.into_iter().map(|change| (change.key(), change)).collect())
}

fn node(id: u32, byte: u8) -> Change {
    Change::PutNode(NodeRow { id, kind: 22, data: vec![byte; 5].into() })
}

#[tokio::test]
async fn one_process_takes_over_at_a_time() {
    let Some(database) = Database::postgres() else { return };
    let [one, two, three] = ["one", "two", "three"].map(|name| open(&database, name));
    let (one, two, three) = tokio::join!(one, two, three);

    let seen = one.look().await.unwrap();
    assert_eq!((seen.position.epoch, seen.lease), (0, LeaseRow { epoch: 0, beat: 0 }));
    let first = one.take_over(&seen, true).await.unwrap().unwrap();
    assert!(one.renew(first.epoch).await.unwrap());
    one.commit(first, batch([node(1, 1)])).await.unwrap();
    let seen = two.look().await.unwrap();
    assert_eq!((seen.position, &*seen.writer), (first.next(), "one"));
    assert_eq!(seen.lease, LeaseRow { epoch: first.epoch, beat: 1 });
    // Without force, a takeover waits for the lock.
    let error = two.take_over(&seen, false).await.unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    // While the lease is renewed, even a forced takeover fails.
    assert!(one.renew(first.epoch).await.unwrap());
    assert_eq!(two.take_over(&seen, true).await.unwrap(), None);

    // Of two standbys that saw the same position, only one takes over.
    let seen = two.look().await.unwrap();
    let (by_two, by_three) = tokio::join!(two.take_over(&seen, true), three.take_over(&seen, true));
    let positions: Vec<_> = [by_two.unwrap(), by_three.unwrap()].into_iter().flatten().collect();
    assert_eq!(positions.len(), 1);
    let second = positions[0].epoch;
    assert!(second > first.epoch);
    assert!(!one.renew(first.epoch).await.unwrap());
    let error = one.commit(first.next(), batch([node(1, 2)])).await.unwrap_err();
    assert!(matches!(error, StoreError::Overtaken { .. }), "{error}");
    // An earlier process cannot give up a lease that it no longer has.
    one.resign(first.epoch).await.unwrap();
    let seen = two.look().await.unwrap();
    assert_eq!(seen.lease, LeaseRow { epoch: second, beat: 0 });
    two.resign(second).await.unwrap();
    assert_eq!(two.look().await.unwrap().lease.beat, LeaseRow::RESIGNED);
}

#[tokio::test]
async fn a_process_without_a_lease_ends_that_of_another() {
    let Some(database) = Database::postgres() else { return };
    let (one, two) = (open(&database, "one").await, open(&database, "two").await);
    let seen = one.look().await.unwrap();
    let first = one.take_over(&seen, true).await.unwrap().unwrap();
    crate::two_writers::lose_lock(database.url.as_deref().unwrap()).await;
    two.claim().await.unwrap();
    assert!(!one.renew(first.epoch).await.unwrap());
}

/// The restored database has had fewer claims and batches, and reaches the same batch again.
#[tokio::test]
async fn a_restored_backup_shuts_out_processes_of_the_lost_database() {
    let Some(database) = Database::postgres() else { return };
    let url = database.url.as_deref().unwrap();
    let (one, two) = (open(&database, "one").await, open(&database, "two").await);
    let an_hour_ago = "UPDATE shard SET last_batch = 2, \
        epoch = extract(epoch FROM clock_timestamp())::bigint - 3600; \
        UPDATE lease SET epoch = (SELECT epoch FROM shard)";
    crate::two_writers::run(url, an_hour_ago).await.unwrap();
    let (lost, _) = one.position().await.unwrap();
    assert!(one.renew(lost.epoch).await.unwrap());
    let restore = "UPDATE shard SET epoch = 3, last_batch = 1; UPDATE lease SET epoch = 3";
    crate::two_writers::run(url, restore).await.unwrap();
    let seen = two.look().await.unwrap();
    let taken = two.take_over(&seen, true).await.unwrap().unwrap();
    assert!(taken.epoch > lost.epoch, "{taken}");
    two.commit(taken, batch([node(1, 1)])).await.unwrap();
    assert!(!one.renew(lost.epoch).await.unwrap());
    let error = one.commit(lost, batch([node(1, 2)])).await.unwrap_err();
    assert!(matches!(error, StoreError::Overtaken { .. }), "{error}");
}

/// A process that is suspended between two statements of a transaction.
#[tokio::test]
async fn a_takeover_does_not_wait_for_a_frozen_process() {
    let Some(database) = Database::postgres() else { return };
    let (one, two) = (open(&database, "one").await, open(&database, "two").await);
    let seen = one.look().await.unwrap();
    let first = one.take_over(&seen, true).await.unwrap().unwrap();
    let mut frozen = PgConnection::connect(database.url.as_deref().unwrap()).await.unwrap();
    let lock = "BEGIN; UPDATE shard SET last_batch = last_batch + 1";
    sqlx::raw_sql(lock).execute(&mut frozen).await.unwrap();
    let start = std::time::Instant::now();
    let seen = two.look().await.unwrap();
    let taken = two.take_over(&seen, true).await.unwrap().unwrap();
    assert!(taken.epoch > first.epoch && taken.batch == 0, "{taken}");
    assert!(start.elapsed() < std::time::Duration::from_secs(3));
    assert!(frozen.ping().await.is_err());
}

#[tokio::test]
async fn a_standby_learns_all_changes() {
    let Some(database) = Database::postgres() else { return };
    let (one, two) = (open(&database, "one").await, open(&database, "two").await);
    let start = one.claim().await.unwrap();
    assert_eq!(two.changes_after(0).await.unwrap(), Some((0, Changes::new())));
    let account = AccountRow {
        id: [7; 16],
        name: "Ann".to_owned(),
        folded: "ann".to_owned(),
        flags: 3,
        created: 4,
        secret: vec![5],
    };
    let character =
        CharacterRow { id: 6, account: [7; 16], name: "Bea".to_owned(), created: 8, data: vec![9] };
    let score = ScoreRow { id: 3, owner: 1, name: "s".to_owned(), kind: 1, value: -5, created: 2 };
    let made = batch([
        Change::PutSetting(SettingRow { name: "test.a".to_owned(), value: vec![1] }),
        Change::PutAccount(account),
        Change::PutCharacter(character),
        node(1, 1),
        node(2, 1),
        Change::PutRef(RefRow { parent: 1, child: 2, owner: 6 }),
        Change::PutScore(score),
    ]);
    one.commit(start, Arc::clone(&made)).await.unwrap();
    assert_eq!(two.changes_after(0).await.unwrap(), Some((1, (*made).clone())));
    assert_eq!(two.changes_after(1).await.unwrap(), Some((1, Changes::new())));

    let gone = batch([
        Change::DeleteAccount([7; 16]),
        Change::DeleteCharacter(6),
        Change::DeleteNode(2),
        Change::DeleteRef { parent: 1, child: 2 },
        Change::DeleteScore(3),
    ]);
    one.commit(start.next(), batch([node(1, 9)])).await.unwrap();
    one.commit(start.next().next(), Arc::clone(&gone)).await.unwrap();
    let mut wanted = (*gone).clone();
    wanted.extend((*batch([node(1, 9)])).clone());
    assert_eq!(two.changes_after(1).await.unwrap(), Some((3, wanted)));

    // The log contains neither the batch that was committed row by row nor those after it.
    let large = batch((100..5_100).map(|id| node(id, 1)));
    let at = start.next().next().next();
    one.commit(at, large).await.unwrap();
    one.commit(at.next(), batch([node(1, 10)])).await.unwrap();
    for batch in [3, 99] {
        assert_eq!(two.changes_after(batch).await.unwrap(), None);
    }
    assert_eq!(two.changes_after(4).await.unwrap(), Some((5, (*batch([node(1, 10)])).clone())));
}

#[tokio::test]
async fn the_log_keeps_only_the_latest_batches() {
    let Some(database) = Database::postgres() else { return };
    let store = open(&database, "one").await;
    let mut connection = PgConnection::connect(database.url.as_deref().unwrap()).await.unwrap();
    let fill = "UPDATE shard SET last_batch = 20000; INSERT INTO batch_log SELECT batch, '{}', \
        '{}', '{}', '{}', '{}', '{}', '{}' FROM generate_series(1, 20000) AS batch";
    sqlx::raw_sql(fill).execute(&mut connection).await.unwrap();
    let at = store.claim().await.unwrap();
    store.commit(at, batch([node(1, 1)])).await.unwrap();
    let kept: (i64, i64) = sqlx::query_as("SELECT count(*), min(batch) FROM batch_log")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(kept, (10_000, 10_002));
    assert_eq!(store.changes_after(10_000).await.unwrap(), None);
    assert!(store.changes_after(10_001).await.unwrap().is_some());
}
