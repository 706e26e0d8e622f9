//! Copies a whole database to another one, for example from SQLite to PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use super::database_lock::DatabaseLock;
use super::{Change, Changes, PostgresStore, SqliteStore, Store, StoreError, writer_name};
use crate::folder::blocking;

/// The number of nodes that are compared at once.
const AT_ONCE: u32 = 4_096;

/// The rows of a copied database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedRows {
    /// Accounts.
    pub accounts: usize,
    /// Characters or players.
    pub characters: usize,
    /// Nodes.
    pub nodes: usize,
    /// References.
    pub refs: usize,
    /// Scores.
    pub scores: usize,
}

/// Why a database was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// One of the databases cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The new database has data.
    #[error("the new database is not empty; nothing was copied")]
    NotEmpty,
    /// The rows that were read back differ from those that were written.
    #[error(
        "the {0} in the new database differ from those in the old one; do not use the new database"
    )]
    Different(&'static str),
}

/// The database to copy to, with the lock on its file.
pub(crate) struct Target {
    store: Box<dyn Store>,
    lock: Option<DatabaseLock>,
}

impl Target {
    /// Opens the database at a `postgres://` URL or, for any other text, a SQLite file, which is
    /// created if it is missing.
    pub(crate) async fn open(folder: &Path, to: &str) -> Result<Self, StoreError> {
        let writer = writer_name(folder);
        if to.starts_with("postgres://") || to.starts_with("postgresql://") {
            return Ok(Self {
                store: Box::new(PostgresStore::open(to, writer).await?),
                lock: None,
            });
        }
        // A misspelled URL must not be taken for the name of a file.
        if to.contains("://") {
            return Err(StoreError::Url);
        }
        let file = Path::new(to).to_owned();
        let locked = file.clone();
        let lock = blocking(move || DatabaseLock::take(&locked)).await?;
        let store = SqliteStore::open(&file, writer).await?;
        Ok(Self { store: Box::new(store), lock: Some(lock) })
    }

    /// Copies all rows of a database into this one, which must be empty, in one transaction, and
    /// compares them afterwards. Sessions are not copied. The caller keeps other processes out of
    /// the old database. Closes this database.
    pub(crate) async fn fill(self, from: &dyn Store) -> Result<CopiedRows, CopyError> {
        let Self { store, lock } = self;
        let filled = fill(from, &*store).await;
        let closed = store.close().await;
        drop(lock);
        let filled = filled?;
        closed?;
        Ok(filled)
    }
}

async fn fill(from: &dyn Store, to: &dyn Store) -> Result<CopiedRows, CopyError> {
    let position = to.claim().await?;
    let rows = to.settings().await?.len() + to.accounts().await?.len();
    let others = to.characters().await?.len() + to.nodes_behind(0, 1).await?.len();
    if rows + others + to.refs().await?.len() + to.scores().await?.len() != 0 {
        return Err(CopyError::NotEmpty);
    }
    let (changes, copied) = read(from).await?;
    to.commit(position, Arc::new(changes)).await?;
    compare(from, to).await?;
    Ok(copied)
}

/// Reads all rows, as changes to an empty database.
async fn read(from: &dyn Store) -> Result<(Changes, CopiedRows), StoreError> {
    let mut changes = Changes::new();
    let mut copied = CopiedRows::default();
    let mut put = |change: Change| changes.insert(change.key(), change);
    for row in from.settings().await? {
        put(Change::PutSetting(row));
    }
    for row in from.accounts().await? {
        copied.accounts += 1;
        put(Change::PutAccount(row));
    }
    for row in from.characters().await? {
        copied.characters += 1;
        put(Change::PutCharacter(row));
    }
    let mut last = 0;
    loop {
        let rows = from.nodes_behind(last, AT_ONCE).await?;
        let Some(row) = rows.last() else { break };
        last = row.id;
        copied.nodes += rows.len();
        for row in rows {
            put(Change::PutNode(row));
        }
    }
    for row in from.refs().await? {
        copied.refs += 1;
        put(Change::PutRef(row));
    }
    for row in from.scores().await? {
        copied.scores += 1;
        put(Change::PutScore(row));
    }
    Ok((changes, copied))
}

/// Checks that two databases have the same rows.
async fn compare(from: &dyn Store, to: &dyn Store) -> Result<(), CopyError> {
    let same = |same: bool, what| if same { Ok(()) } else { Err(CopyError::Different(what)) };
    // Sort by bytes, because databases sort text differently.
    let (mut settings, mut copied) = (from.settings().await?, to.settings().await?);
    for rows in [&mut settings, &mut copied] {
        rows.sort_by(|one, other| one.name.cmp(&other.name));
    }
    same(settings == copied, "settings")?;
    same(from.accounts().await? == to.accounts().await?, "accounts")?;
    same(from.characters().await? == to.characters().await?, "characters")?;
    let mut last = 0;
    loop {
        let rows = from.nodes_behind(last, AT_ONCE).await?;
        same(rows == to.nodes_behind(last, AT_ONCE).await?, "nodes")?;
        match rows.last() {
            Some(row) => last = row.id,
            None => break,
        }
    }
    same(from.refs().await? == to.refs().await?, "references")?;
    same(from.scores().await? == to.scores().await?, "scores")
}
