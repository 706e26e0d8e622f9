//! The store in SQL databases. Both kinds of database use the same statements; they differ in how a
//! transaction begins, how the position is read, and how a batch is committed: PostgreSQL receives
//! most batches as one statement.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, Postgres};
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Database, Pool, SqlSafeStr as _, SqlStr,
};

use tokio::time::timeout;

use super::advisory::{self, AdvisoryLock};
use super::batch::{Columns, NOT_NEXT};
use super::connect::{Single, connect};
use super::migrations::{POSTGRES, SQLITE, migrations};
use super::rows::{
    account, character, no_position, node, placement, position, reference, score, setting,
};
use super::sessions::{BEAT_SETTINGS, COMMIT_LIMITS, Lent, PATIENCE, SESSION_LIMITS, sessions};
use super::{
    AccountRow, Change, Changes, CharacterRow, Ledger, NodeRow, Pending, PlacementRow, Position,
    RefRow, ScoreRow, SettingRow, Store, StoreError, process_name,
};
use crate::folder::private_file;

/// The possible lengths of the list of nodes that one statement reads. Shorter lists are padded
/// with their last node number, so that there are only a few prepared statements.
const NODES_AT_ONCE: [usize; 3] = [1, 8, 64];

/// How long to look for the reason why a pool has no connection.
const MOMENT: Duration = Duration::from_secs(1);

/// A SQLite database in WAL mode: one file, and two more while it is open.
#[derive(Debug)]
pub struct SqliteStore {
    pool: Pool<Sqlite>,
    /// The name by which the database knows this process.
    writer: String,
}

impl SqliteStore {
    /// Opens the file and creates it if it is missing. `writer` names this process to others.
    pub async fn open(file: &Path, writer: String) -> Result<Self, StoreError> {
        // SQLite gives the same mode to its other files.
        private_file(file).map_err(|error| StoreError::Database(error.into()))?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Commits must survive a power failure.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE)
            // Statements are never logged.
            .disable_statement_logging();
        let pool = SqlitePoolOptions::new()
            .max_connections(2)
            .acquire_timeout(PATIENCE)
            .connect_with(options)
            .await?;
        migrations(&SQLITE).run(&pool).await?;
        Ok(Self { pool, writer })
    }

    async fn lend(&self, pool: &Pool<Sqlite>) -> Result<Lent<Sqlite>, StoreError> {
        Lent::from(pool).await
    }

    async fn take_lock(&self, _: Duration, _: bool) -> Result<(), StoreError> {
        // The locks on the directory and on the file keep other processes out.
        Ok(())
    }

    async fn release_lock(&self) {}

    async fn commit_batch(&self, after: Position, changes: &Changes) -> Result<(), StoreError> {
        self.commit_rows(after, changes).await
    }

    async fn close_all(&self) {
        self.pool.close().await;
    }
}

/// A PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pub(super) pool: Pool<Postgres>,
    /// The connection for batches that are sent at once.
    commits: Pool<Postgres>,
    /// The connection for the lease, which never waits for anything else.
    pub(super) beats: Single,
    options: PgConnectOptions,
    pub(super) writer: String,
    lock: AdvisoryLock,
}

impl PostgresStore {
    /// Connects to the database of a `postgres://` URL. `writer` names this process to others.
    pub async fn open(url: &str, writer: String) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse()?;
        let options = options.disable_statement_logging();
        // The name is for database administrators and for the list of standbys.
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name(&process_name()),
        };
        // A pool would not report why it cannot connect.
        connect(&options).await?.close().await?;
        // Otherwise, every start would log a notice that the migrations table exists.
        let quiet = sessions(1, "SET client_min_messages = warning");
        let quiet = quiet.connect_with(options.clone()).await?;
        migrations(&POSTGRES).run(&quiet).await?;
        quiet.close().await;
        let pool = sessions(4, SESSION_LIMITS).connect_lazy_with(options.clone());
        let commits = sessions(1, COMMIT_LIMITS).connect_lazy_with(options.clone());
        let beats = Single::new(options.clone(), BEAT_SETTINGS);
        Ok(Self { pool, commits, beats, options, writer, lock: AdvisoryLock::default() })
    }

    async fn commit_batch(&self, after: Position, changes: &Changes) -> Result<(), StoreError> {
        let Some(columns) = Columns::of(changes) else {
            return self.commit_rows(after, changes).await;
        };
        let mut lent = self.lend(&self.commits).await?;
        // One statement is one transaction. It is complete, including its deferred constraints,
        // only once PostgreSQL's whole answer has been read.
        match columns.commit(after).execute(lent.connection()?).await {
            Ok(_) => {
                lent.give_back();
                Ok(())
            }
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(NOT_NEXT) => {
                Err(self.overtaken(after).await)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a connection from a pool. If none is free in time, the error states the reason if it
    /// can be determined.
    async fn lend(&self, pool: &Pool<Postgres>) -> Result<Lent<Postgres>, StoreError> {
        match Lent::from(pool).await {
            Err(StoreError::Timeout) => match timeout(MOMENT, connect(&self.options)).await {
                Ok(Err(error)) => Err(error),
                _ => Err(StoreError::Timeout),
            },
            lent => lent,
        }
    }

    async fn close_all(&self) {
        self.commits.close().await;
        self.beats.close().await;
        self.pool.close().await;
    }

    pub(super) async fn take_lock(
        &self,
        patience: Duration,
        quiet: bool,
    ) -> Result<(), StoreError> {
        self.lock.take(&self.options, &self.writer, patience, quiet).await
    }

    pub(super) async fn release_lock(&self) {
        self.lock.release().await;
    }
}

fn select_nodes(count: usize) -> SqlStr {
    let places: Vec<_> = (1..=count).map(|number| format!("${number}")).collect();
    let list = places.join(", ");
    // The statement contains no data, only the numbers of parameters.
    let sql = format!("SELECT id, kind, data FROM nodes WHERE id IN ({list})");
    AssertSqlSafe(sql).into_sql_str()
}

const PUT_SETTING: &str = "INSERT INTO settings (name, value) VALUES ($1, $2) \
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const PUT_ACCOUNT: &str = "INSERT INTO accounts (id, name, folded, flags, created, secret) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
    folded = excluded.folded, flags = excluded.flags, created = excluded.created, \
    secret = excluded.secret";
const PUT_CHARACTER: &str = "INSERT INTO characters (id, account, name, created, data) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET account = excluded.account, \
    name = excluded.name, created = excluded.created, data = excluded.data";
const PUT_NODE: &str = "INSERT INTO nodes (id, kind, data) VALUES ($1, $2, $3) \
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, data = excluded.data";
const PUT_REF: &str = "INSERT INTO refs (parent, child, owner) VALUES ($1, $2, $3) \
    ON CONFLICT (parent, child) DO UPDATE SET owner = excluded.owner";
const PUT_SCORE: &str = "INSERT INTO scores (id, owner, name, kind, value, created) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, \
    name = excluded.name, kind = excluded.kind, value = excluded.value, \
    created = excluded.created";

const PUT_SESSION: &str = "INSERT INTO sessions (connection, epoch, data) VALUES ($1, $2, $3) \
    ON CONFLICT (connection) DO UPDATE SET epoch = excluded.epoch, data = excluded.data";

const PUT_PLACEMENT: &str = "INSERT INTO placements (number, data) VALUES ($1, $2) \
    ON CONFLICT (number) DO UPDATE SET data = excluded.data";

const NEXT_BATCH: &str =
    "UPDATE shard SET last_batch = last_batch + 1 WHERE epoch = $1 AND last_batch = $2";

/// Defines a method that reads a whole table.
macro_rules! rows {
    ($name:ident, $row:ty, $convert:ident, $sql:literal) => {
        fn $name(&self) -> Pending<'_, Vec<$row>> {
            Box::pin(async move {
                let rows = sqlx::query_as($sql).fetch_all(&self.pool).await?;
                rows.into_iter().map($convert).collect()
            })
        }
    };
}

/// The code that both stores share. It is a macro because the types of their statements have
/// nothing in common.
macro_rules! sql_store {
    ($store:ident, $database:ty, begin $begin:literal, claim with $claim:literal,
        read the position with $position:literal) => {
        impl $store {
            async fn claim_epoch(&self) -> Result<Position, StoreError> {
                self.take_lock(advisory::PATIENCE, false).await?;
                // A frozen process can keep the row locked without holding the advisory lock.
                let claimed = timeout(PATIENCE, self.raise_epoch()).await;
                let claimed = claimed.unwrap_or(Err(StoreError::Timeout));
                if claimed.is_err() {
                    self.release_lock().await;
                }
                claimed
            }

            async fn raise_epoch(&self) -> Result<Position, StoreError> {
                let mut lent = self.lend(&self.pool).await?;
                let mut transaction = lent.connection()?.begin_with($begin).await?;
                let claim = sqlx::query_as($claim).bind(&self.writer);
                let row = claim.fetch_optional(&mut *transaction).await?;
                let (epoch, batch) = row.ok_or_else(no_position)?;
                transaction.commit().await?;
                lent.give_back();
                Ok(position(epoch, batch))
            }

            /// Commits a batch statement by statement.
            async fn commit_rows(
                &self,
                after: Position,
                changes: &Changes,
            ) -> Result<(), StoreError> {
                let mut lent = self.lend(&self.pool).await?;
                self.write(lent.connection()?, after, changes).await?;
                lent.give_back();
                Ok(())
            }

            async fn write(
                &self,
                connection: &mut <$database as Database>::Connection,
                after: Position,
                changes: &Changes,
            ) -> Result<(), StoreError> {
                let mut transaction = connection.begin_with($begin).await?;
                let connection = &mut *transaction;
                // Delete rows first, because a new row may reuse the unique name of a deleted one.
                let (gone, new): (Vec<_>, Vec<_>) =
                    changes.values().partition(|change| change.is_deletion());
                // This is the fence: if another writer has claimed the database, it has changed the
                // epoch in this very row.
                let fence = sqlx::query(NEXT_BATCH)
                    .bind(after.epoch.cast_signed())
                    .bind(after.batch.cast_signed())
                    .execute(&mut *connection)
                    .await?;
                if fence.rows_affected() != 1 {
                    drop(transaction);
                    return Err(self.overtaken(after).await);
                }
                for change in gone.into_iter().chain(new) {
                    let query = match change {
                        Change::PutSetting(row) => {
                            sqlx::query::<$database>(PUT_SETTING).bind(&row.name).bind(&row.value)
                        }
                        Change::PutAccount(row) => sqlx::query(PUT_ACCOUNT)
                            .bind(row.id.as_slice())
                            .bind(&row.name)
                            .bind(&row.folded)
                            .bind(i64::from(row.flags))
                            .bind(i64::from(row.created))
                            .bind(&row.secret),
                        Change::DeleteAccount(id) => {
                            sqlx::query("DELETE FROM accounts WHERE id = $1").bind(id.as_slice())
                        }
                        Change::PutCharacter(row) => sqlx::query(PUT_CHARACTER)
                            .bind(i64::from(row.id))
                            .bind(row.account.as_slice())
                            .bind(&row.name)
                            .bind(i64::from(row.created))
                            .bind(&row.data),
                        Change::DeleteCharacter(id) => {
                            sqlx::query("DELETE FROM characters WHERE id = $1").bind(i64::from(*id))
                        }
                        Change::PutNode(row) => sqlx::query(PUT_NODE)
                            .bind(i64::from(row.id))
                            .bind(i64::from(row.kind))
                            .bind(&*row.data),
                        Change::DeleteNode(id) => {
                            sqlx::query("DELETE FROM nodes WHERE id = $1").bind(i64::from(*id))
                        }
                        Change::PutRef(row) => sqlx::query(PUT_REF)
                            .bind(i64::from(row.parent))
                            .bind(i64::from(row.child))
                            .bind(i64::from(row.owner)),
                        Change::DeleteRef { parent, child } => {
                            sqlx::query("DELETE FROM refs WHERE parent = $1 AND child = $2")
                                .bind(i64::from(*parent))
                                .bind(i64::from(*child))
                        }
                        Change::PutScore(row) => sqlx::query(PUT_SCORE)
                            .bind(i64::from(row.id))
                            .bind(i64::from(row.owner))
                            .bind(&row.name)
                            .bind(i64::from(row.kind))
                            .bind(i64::from(row.value))
                            .bind(i64::from(row.created)),
                        Change::DeleteScore(id) => {
                            sqlx::query("DELETE FROM scores WHERE id = $1").bind(i64::from(*id))
                        }
                        Change::PutSession(row) => sqlx::query(PUT_SESSION)
                            .bind(row.connection.cast_signed())
                            .bind(after.epoch.cast_signed())
                            .bind(&row.data),
                        Change::DeleteSession(connection) => {
                            sqlx::query("DELETE FROM sessions WHERE connection = $1")
                                .bind(connection.cast_signed())
                        }
                        Change::PutPlacement(row) => {
                            sqlx::query(PUT_PLACEMENT).bind(i64::from(row.number)).bind(&row.data)
                        }
                        Change::DeletePlacement(number) => {
                            sqlx::query("DELETE FROM placements WHERE number = $1")
                                .bind(i64::from(*number))
                        }
                    };
                    query.execute(&mut *connection).await?;
                }
                transaction.commit().await?;
                Ok(())
            }

            /// The error for a batch that does not directly follow the database's position.
            async fn overtaken(&self, expected: Position) -> StoreError {
                match self.read_position().await {
                    Ok((found, writer)) => StoreError::overtaken(expected, found, writer),
                    Err(error) => error,
                }
            }

            async fn read_position(&self) -> Result<(Position, String), StoreError> {
                let mut lent = self.lend(&self.pool).await?;
                let mut transaction = lent.connection()?.begin_with($begin).await?;
                let row = sqlx::query_as($position).fetch_optional(&mut *transaction).await?;
                let (epoch, batch, writer) = row.ok_or_else(no_position)?;
                transaction.commit().await?;
                lent.give_back();
                Ok((position(epoch, batch), writer))
            }

            async fn some_nodes(&self, ids: &[u32]) -> Result<Vec<NodeRow>, StoreError> {
                let mut connection = self.pool.acquire().await?;
                let mut found = Vec::with_capacity(ids.len());
                let mut rest = ids;
                while let Some(last) = rest.last() {
                    let most = NODES_AT_ONCE.iter().copied().find(|most| *most >= rest.len());
                    let count = most.unwrap_or(NODES_AT_ONCE[NODES_AT_ONCE.len() - 1]);
                    let (some, behind) = rest.split_at(count.min(rest.len()));
                    let mut query = sqlx::query_as::<$database, _>(select_nodes(count));
                    for at in 0..count {
                        query = query.bind(i64::from(*some.get(at).unwrap_or(last)));
                    }
                    for row in query.fetch_all(&mut *connection).await? {
                        found.push(node(row)?);
                    }
                    rest = behind;
                }
                Ok(found)
            }
        }

        impl Ledger for $store {
            fn claim(&self) -> Pending<'_, Position> {
                Box::pin(self.claim_epoch())
            }

            fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()> {
                Box::pin(async move { self.commit_batch(after, &changes).await })
            }

            fn position(&self) -> Pending<'_, (Position, String)> {
                Box::pin(self.read_position())
            }

            rows!(settings, SettingRow, setting, "SELECT name, value FROM settings ORDER BY name");
            rows!(
                accounts,
                AccountRow,
                account,
                "SELECT id, name, folded, flags, created, secret FROM accounts ORDER BY id"
            );
            rows!(
                characters,
                CharacterRow,
                character,
                "SELECT id, account, name, created, data FROM characters ORDER BY id"
            );

            fn close(&self) -> Pending<'_, ()> {
                Box::pin(async move {
                    self.close_all().await;
                    self.release_lock().await;
                    Ok(())
                })
            }
        }

        impl Store for $store {
            fn nodes_behind(&self, id: u32, most: u32) -> Pending<'_, Vec<NodeRow>> {
                Box::pin(async move {
                    let sql = "SELECT id, kind, data FROM nodes WHERE id > $1 ORDER BY id LIMIT $2";
                    let query = sqlx::query_as(sql).bind(i64::from(id)).bind(i64::from(most));
                    let rows = query.fetch_all(&self.pool).await?;
                    rows.into_iter().map(node).collect()
                })
            }

            fn nodes<'s>(&'s self, ids: &'s [u32]) -> Pending<'s, Vec<NodeRow>> {
                Box::pin(self.some_nodes(ids))
            }

            rows!(
                refs,
                RefRow,
                reference,
                "SELECT parent, child, owner FROM refs ORDER BY parent, child"
            );
            rows!(
                scores,
                ScoreRow,
                score,
                "SELECT id, owner, name, kind, value, created FROM scores ORDER BY id"
            );
            rows!(
                placements,
                PlacementRow,
                placement,
                "SELECT number, data FROM placements ORDER BY number"
            );
        }
    };
}

// An immediate transaction waits for the current writer; a deferred one would read an older state.
// A new epoch is at least the current Unix time, so that a restored backup does not reuse epochs
// that the lost database assigned to other processes.
sql_store!(SqliteStore, Sqlite, begin "BEGIN IMMEDIATE",
    claim with "UPDATE shard SET writer = $1,
        epoch = max(epoch + 1, CAST(strftime('%s', 'now') AS INTEGER)) RETURNING epoch, last_batch",
    read the position with "SELECT epoch, last_batch, writer FROM shard");
sql_store!(PostgresStore, Postgres, begin "BEGIN",
    claim with "UPDATE shard SET writer = $1,
        epoch = greatest(epoch + 1, extract(epoch FROM clock_timestamp())::bigint)
        RETURNING epoch, last_batch",
    read the position with "SELECT epoch, last_batch, writer FROM shard FOR UPDATE");

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ids: std::ops::Range<u32>) -> Arc<Changes> {
        let node = |id| Change::PutNode(NodeRow { id, kind: 22, data: vec![7; 4_000].into() });
        Arc::new(ids.map(node).map(|change| (change.key(), change)).collect())
    }

    /// Asks for the position until an answer arrives, as the vault does.
    async fn last(store: &SqliteStore) -> Position {
        loop {
            match store.position().await {
                Ok((position, _)) => return position,
                Err(error) => assert!(error.to_string().contains("full"), "{error}"),
            }
        }
    }

    #[tokio::test]
    async fn the_store_recovers_from_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shard.sqlite");
        let store = SqliteStore::open(&file, String::new()).await.unwrap();
        let mut at = store.claim().await.unwrap();
        store.commit(at, nodes(1..10)).await.unwrap();
        // For connections that are open now, the disk appears to be full.
        let mut first = store.pool.acquire().await.unwrap();
        let mut second = store.pool.acquire().await.unwrap();
        for connection in [&mut first, &mut second] {
            sqlx::query("PRAGMA max_page_count = 1").execute(&mut **connection).await.unwrap();
        }
        drop((first, second));
        // Each connection fails once.
        let mut failures = 0;
        for ids in [10..400, 400..800] {
            at = at.next();
            while let Err(error) = store.commit(at, nodes(ids.clone())).await {
                failures += 1;
                assert!(error.to_string().contains("full"), "{error}");
                assert!(failures < 3, "a connection was used again after its transaction failed");
                assert_eq!(last(&store).await, at);
            }
            assert_eq!(last(&store).await, at.next());
        }
        assert_ne!(failures, 0);
    }
}
