//! A PostgreSQL database that several processes share.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use super::lease::{LeaseRow, SeenStandby, SharedStore, Sighting};
use super::rows::{
    account, character, identifier, narrow, no_position, node, position, reference, score, setting,
};
use super::sessions::{Lent, PATIENCE};
use super::sql::PostgresStore;
use super::{Change, Changes, Pending, Position, SessionRow, StoreError};

/// How long to wait for the lock on the database when no process should hold it.
const NO_PATIENCE: Duration = Duration::ZERO;

const LOOK: &str = "SELECT shard.epoch, shard.last_batch, shard.writer, lease.epoch, lease.beat \
    FROM shard, lease";
/// The connections over which standbys check the database, ten times a second. The active process
/// uses its own for renewals.
const LOOKING: &str = "SELECT coalesce(application_name, ''), host(client_addr), \
    extract(epoch FROM backend_start)::bigint FROM pg_stat_activity \
    WHERE datname = current_database() AND usename = current_user AND query = $1 \
    AND state_change > clock_timestamp() - interval '2 s' ORDER BY backend_start, pid";
/// Once a lease has been given up, it stays given up, even if a renewal was still in progress.
const RENEW: &str = "UPDATE lease SET beat = beat + 1 \
    WHERE epoch = $1 AND beat >= 0 AND EXISTS (SELECT FROM shard WHERE epoch = $1)";
const RESIGN: &str = "UPDATE lease SET beat = $2 WHERE epoch = $1";

/// Locks the row, so that only one of several standbys takes over.
const STILL_SEEN: &str = "UPDATE lease SET beat = beat WHERE epoch = $1 AND beat = $2";
/// Ends sessions that hold the advisory lock or are committing a batch. This requires that they
/// have the same database user.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM (SELECT DISTINCT pid \
    FROM pg_locks WHERE pid <> pg_backend_pid() AND granted \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND ((locktype = 'advisory' AND classid = 2004313186::oid \
    AND objid = 'shard'::regclass::oid AND objsubid = 1) \
    OR (locktype = 'relation' AND relation = 'shard'::regclass::oid \
    AND mode IN ('RowExclusiveLock', 'RowShareLock')))) AS holders";
/// As in a claim without a lease; see [`super::sql`].
const CLAIM_NEXT: &str = "UPDATE shard SET writer = $2, \
    epoch = greatest(epoch + 1, extract(epoch FROM clock_timestamp())::bigint) \
    WHERE epoch = $1 RETURNING epoch, last_batch";
const TAKE_LEASE: &str = "UPDATE lease SET epoch = $1, beat = 0";

const BATCHES_AFTER: &str = "SELECT batch, settings, accounts, characters, nodes, parents, \
    children, scores FROM batch_log WHERE batch > $1 ORDER BY batch";

type Logged = (i64, Vec<String>, Vec<Vec<u8>>, Vec<i64>, Vec<i64>, Vec<i64>, Vec<i64>, Vec<i64>);

impl SharedStore for PostgresStore {
    fn look(&self) -> Pending<'_, Sighting> {
        Box::pin(async move {
            let mut lent = self.beats.lend().await?;
            let row = sqlx::query_as(LOOK).fetch_optional(lent.connection()).await?;
            lent.give_back();
            let (epoch, batch, writer, leased, beat) = row.ok_or_else(no_position)?;
            let lease = LeaseRow { epoch: i64::cast_unsigned(leased), beat };
            Ok(Sighting { position: position(epoch, batch), writer, lease })
        })
    }

    fn take_over<'s>(
        &'s self,
        seen: &'s Sighting,
        by_force: bool,
    ) -> Pending<'s, Option<Position>> {
        Box::pin(async move {
            if !by_force {
                // A process that gave up its lease is about to release the lock.
                let is_resigned = seen.lease.beat == LeaseRow::RESIGNED;
                self.take_lock(if is_resigned { PATIENCE } else { NO_PATIENCE }, true).await?;
            }
            let claimed = timeout(PATIENCE, self.claim_next(seen, by_force)).await;
            let claimed = claimed.unwrap_or(Err(StoreError::Timeout));
            if by_force && matches!(claimed, Ok(Some(_))) {
                self.take_lock(PATIENCE, true).await?;
            } else if !matches!(claimed, Ok(Some(_))) {
                self.release_lock().await;
            }
            claimed
        })
    }

    fn renew(&self, epoch: u64) -> Pending<'_, bool> {
        Box::pin(async move {
            let mut lent = self.beats.lend().await?;
            let renew = sqlx::query(RENEW).bind(epoch.cast_signed());
            let renewed = renew.execute(lent.connection()).await?;
            lent.give_back();
            Ok(renewed.rows_affected() == 1)
        })
    }

    fn resign(&self, epoch: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            let resign = sqlx::query(RESIGN).bind(epoch.cast_signed()).bind(LeaseRow::RESIGNED);
            let mut lent = self.beats.lend().await?;
            resign.execute(lent.connection()).await?;
            lent.give_back();
            Ok(())
        })
    }

    fn standbys(&self) -> Pending<'_, Vec<SeenStandby>> {
        Box::pin(async move {
            type Row = (String, Option<String>, i64);
            let rows: Vec<Row> = sqlx::query_as(LOOKING).bind(LOOK).fetch_all(&self.pool).await?;
            let row = |(process, address, since): Row| {
                let since = u64::try_from(since).unwrap_or_default();
                SeenStandby { process, address, since }
            };
            Ok(rows.into_iter().map(row).collect())
        })
    }

    fn sessions(&self) -> Pending<'_, Vec<(u64, SessionRow)>> {
        Box::pin(async move {
            let sql = "SELECT epoch, connection, data FROM sessions ORDER BY connection";
            let rows: Vec<(i64, i64, Vec<u8>)> = sqlx::query_as(sql).fetch_all(&self.pool).await?;
            let row = |(epoch, connection, data): (i64, i64, _)| {
                (epoch.cast_unsigned(), SessionRow { connection: connection.cast_unsigned(), data })
            };
            Ok(rows.into_iter().map(row).collect())
        })
    }

    fn changes_after(&self, batch: u64) -> Pending<'_, Option<(u64, Changes)>> {
        Box::pin(async move {
            let mut lent = Lent::from(&self.pool).await?;
            // Read from one snapshot, so that the rows are in the state after the last of these
            // batches.
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let mut snapshot = lent.connection()?.begin_with(begin).await?;
            let found = changes_in(&mut snapshot, batch).await?;
            snapshot.commit().await?;
            lent.give_back();
            Ok(found)
        })
    }
}

impl PostgresStore {
    async fn claim_next(
        &self,
        seen: &Sighting,
        by_force: bool,
    ) -> Result<Option<Position>, StoreError> {
        let mut lent = Lent::from(&self.pool).await?;
        let mut transaction = lent.connection()?.begin().await?;
        let LeaseRow { epoch, beat } = seen.lease;
        let still = sqlx::query(STILL_SEEN).bind(epoch.cast_signed()).bind(beat);
        if still.execute(&mut *transaction).await?.rows_affected() != 1 {
            return Ok(None);
        }
        if by_force {
            sqlx::query(END_SESSIONS).execute(&mut *transaction).await?;
        }
        let claim = sqlx::query_as(CLAIM_NEXT).bind(seen.position.epoch.cast_signed());
        let claim = claim.bind(&self.writer).fetch_optional(&mut *transaction).await?;
        let Some((epoch, batch)) = claim else { return Ok(None) };
        sqlx::query(TAKE_LEASE).bind(epoch).execute(&mut *transaction).await?;
        transaction.commit().await?;
        lent.give_back();
        Ok(Some(position(epoch, batch)))
    }
}

/// The rows in a snapshot that batches after `batch` changed.
async fn changes_in(
    snapshot: &mut PgConnection,
    batch: u64,
) -> Result<Option<(u64, Changes)>, StoreError> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT last_batch FROM shard").fetch_optional(&mut *snapshot).await?;
    let last = last.ok_or_else(no_position)?.cast_unsigned();
    let batches = sqlx::query_as(BATCHES_AFTER).bind(batch.cast_signed());
    let batches: Vec<Logged> = batches.fetch_all(&mut *snapshot).await?;
    let known = u64::try_from(batches.len()).unwrap_or(u64::MAX);
    if last.checked_sub(batch) != Some(known) {
        return Ok(None);
    }
    let mut keys = ChangedRows::default();
    batches.into_iter().for_each(|batch| keys.add(batch));
    Ok(Some((last, keys.read(snapshot).await?)))
}

/// The rows with these primary keys.
macro_rules! rows {
    ($snapshot:ident, $keys:expr, $sql:literal) => {{
        let keys: Vec<_> = $keys.into_iter().collect();
        match keys.is_empty() {
            true => Vec::new(),
            false => sqlx::query_as($sql).bind(keys).fetch_all(&mut *$snapshot).await?,
        }
    }};
}

/// The primary keys of rows that batches changed.
#[derive(Default)]
struct ChangedRows {
    settings: BTreeSet<String>,
    accounts: BTreeSet<Vec<u8>>,
    characters: BTreeSet<i64>,
    nodes: BTreeSet<i64>,
    refs: BTreeSet<(i64, i64)>,
    scores: BTreeSet<i64>,
}

impl ChangedRows {
    fn add(&mut self, batch: Logged) {
        let (_, settings, accounts, characters, nodes, parents, children, scores) = batch;
        self.settings.extend(settings);
        self.accounts.extend(accounts);
        self.characters.extend(characters);
        self.nodes.extend(nodes);
        self.refs.extend(parents.into_iter().zip(children));
        self.scores.extend(scores);
    }

    /// Reads the rows. Rows that no longer exist were deleted.
    async fn read(self, snapshot: &mut PgConnection) -> Result<Changes, StoreError> {
        let mut changes = Changes::new();
        let mut put = |change: Change| changes.insert(change.key(), change);
        for id in &self.accounts {
            put(Change::DeleteAccount(identifier(id.clone())?));
        }
        for id in &self.characters {
            put(Change::DeleteCharacter(number(*id)?));
        }
        for id in &self.nodes {
            put(Change::DeleteNode(number(*id)?));
        }
        for (parent, child) in &self.refs {
            put(Change::DeleteRef { parent: number(*parent)?, child: number(*child)? });
        }
        for id in &self.scores {
            put(Change::DeleteScore(number(*id)?));
        }
        let settings = rows!(
            snapshot,
            self.settings,
            "SELECT name, value FROM settings \
            WHERE name = ANY ($1)"
        );
        for row in settings {
            put(Change::PutSetting(setting(row)?));
        }
        let accounts = rows!(
            snapshot,
            self.accounts,
            "SELECT id, name, folded, flags, created, \
            secret FROM accounts WHERE id = ANY ($1)"
        );
        for row in accounts {
            put(Change::PutAccount(account(row)?));
        }
        let characters = rows!(
            snapshot,
            self.characters,
            "SELECT id, account, name, created, \
            data FROM characters WHERE id = ANY ($1)"
        );
        for row in characters {
            put(Change::PutCharacter(character(row)?));
        }
        let nodes = rows!(
            snapshot,
            self.nodes,
            "SELECT id, kind, data FROM nodes \
            WHERE id = ANY ($1)"
        );
        for row in nodes {
            put(Change::PutNode(node(row)?));
        }
        let scores = rows!(
            snapshot,
            self.scores,
            "SELECT id, owner, name, kind, value, created \
            FROM scores WHERE id = ANY ($1)"
        );
        for row in scores {
            put(Change::PutScore(score(row)?));
        }
        if !self.refs.is_empty() {
            let sql = "SELECT parent, child, owner FROM refs \
                JOIN unnest($1::bigint[], $2::bigint[]) AS changed (parent, child) \
                USING (parent, child)";
            let (parents, children): (Vec<_>, Vec<_>) = self.refs.into_iter().unzip();
            let query = sqlx::query_as(sql).bind(parents).bind(children);
            for row in query.fetch_all(&mut *snapshot).await? {
                put(Change::PutRef(reference(row)?));
            }
        }
        Ok(changes)
    }
}

fn number(id: i64) -> Result<u32, StoreError> {
    narrow(id, "a number in the log")
}
