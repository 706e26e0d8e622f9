//! Databases for the persistent data of servers: accounts, characters, vault nodes, scores.
//!
//! All access to the database goes through [`Ledger`], or through [`Store`] for a world with a
//! vault. The caller keeps its own index in memory and is the only writer. It collects [`Change`]s
//! and commits them in *batches*, one transaction each: a committed batch survives any later
//! failure, and a failed one leaves nothing behind.
//!
//! # One writer at a time
//!
//! A writer first [claims](Ledger::claim) the database. Each claim starts a new *epoch*, and every
//! batch has a number. The database stores both and accepts only the next batch of the latest
//! epoch. So a writer whose commit was interrupted can ask whether the commit took effect
//! ([`Ledger::position`]), and a writer that lost the database to another process learns this from
//! its next commit, before it acknowledges anything: [`StoreError::Overtaken`] is final. The batch
//! number alone would not be enough, because another process may have committed exactly one batch.
//!
//! A new epoch is the highest so far plus 1, or the current Unix time if that is higher. So a
//! restored backup does not reuse epochs of the database that it replaces, and a process that still
//! relies on its claim on the lost database cannot commit to the restored one.
//!
//! On PostgreSQL, a claim also takes an advisory lock. This lock protects nothing, but it makes a
//! second process fail when it starts, with an error that names the first one
//! ([`StoreError::InUse`]). On SQLite, the [`lock`] on the directory and the database in it does
//! the same.
//!
//! | module | content |
//! | --- | --- |
//! | [`lock`] | the lock on a server's directory |
//! | `database_lock` | the lock on a SQLite database, whichever path leads to it |
//! | [`lease`] | which of several processes serves a database |
//! | `follow` | a copy of the data that another process serves |
//! | `copy` | copying a whole database to another one |
//! | [`seal`] | the server's key, with which secrets are sealed |
//!
//! A server without a vault uses only settings, accounts and characters. A character is a blob that
//! only its own kind of server can decode.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) mod accounts;
mod advisory;
mod batch;
pub(crate) mod committed;
mod connect;
pub(crate) mod copy;
mod database_lock;
#[cfg(test)]
mod fake;
pub(crate) mod follow;
pub mod lease;
pub mod lock;
mod migrations;
pub(crate) mod outage;
pub(crate) mod probe;
mod rows;
pub mod seal;
mod sessions;
mod shared;
mod sql;

pub use copy::{CopiedRows, CopyError};
pub use sql::{PostgresStore, SqliteStore};

/// The future that a request to a store returns.
pub type Pending<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// The parts of a database that every server needs: settings, accounts and characters.
pub trait Ledger: Send + Sync + 'static {
    /// Makes the caller the only writer, in a new epoch. From then on, commits of earlier epochs
    /// fail.
    ///
    /// Claim the database before reading it: after the claim, nobody else can change the data.
    /// Fails with [`StoreError::InUse`] while another process holds the database, if the database
    /// can detect this.
    fn claim(&self) -> Pending<'_, Position>;

    /// Commits the batch that follows `after`: all of its changes, durably, or none.
    ///
    /// After any error except [`StoreError::Overtaken`], and after the future was dropped, the
    /// batch may have taken effect: ask [`Ledger::position`].
    ///
    /// # Errors
    /// [`StoreError::Overtaken`] if the database is no longer at `after`. In that case, nothing was
    /// committed, and nothing of this epoch ever will be.
    fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()>;

    /// The epoch and the last committed batch, and the process that claimed this epoch. If a commit
    /// is in progress, this waits for it, so the answer is final.
    fn position(&self) -> Pending<'_, (Position, String)>;

    /// All settings.
    fn settings(&self) -> Pending<'_, Vec<SettingRow>>;

    /// All accounts, by ID.
    fn accounts(&self) -> Pending<'_, Vec<AccountRow>>;

    /// All characters, by number.
    fn characters(&self) -> Pending<'_, Vec<CharacterRow>>;

    /// Closes all connections to the database.
    fn close(&self) -> Pending<'_, ()>;
}

/// A database with a vault and scores.
pub trait Store: Ledger {
    /// At most `most` nodes with numbers above `id`, by number.
    fn nodes_behind(&self, id: u32, most: u32) -> Pending<'_, Vec<NodeRow>>;

    /// The existing nodes among these numbers, in any order.
    fn nodes<'s>(&'s self, ids: &'s [u32]) -> Pending<'s, Vec<NodeRow>>;

    /// All references, by parent and child.
    fn refs(&self) -> Pending<'_, Vec<RefRow>>;

    /// All scores, by number.
    fn scores(&self) -> Pending<'_, Vec<ScoreRow>>;

    /// All placements of ages, by number.
    fn placements(&self) -> Pending<'_, Vec<PlacementRow>>;
}

/// A point in the history of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of the latest claim: higher than all earlier ones, and at least the Unix time of
    /// the claim according to the database's clock. 0 if nobody has claimed the database yet.
    pub epoch: u64,
    /// The last committed batch, counted from 1 over all epochs.
    pub batch: u64,
}

impl Position {
    /// The position after one more batch of the same epoch.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { epoch: self.epoch, batch: self.batch + 1 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}, batch {}", self.epoch, self.batch)
    }
}

/// Opens a database and migrates its tables: PostgreSQL if there is a `postgres://` URL, otherwise
/// SQLite in a file. All servers have the same tables; unused ones stay empty. Fails with
/// [`StoreError::Url`] for any other URL.
pub async fn open(file: PathBuf, url: Option<&str>) -> Result<Arc<dyn Store>, StoreError> {
    let writer = writer_name(file.parent().unwrap_or(&file));
    match url {
        None => Ok(Arc::new(SqliteStore::open(&file, writer).await?)),
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(Arc::new(PostgresStore::open(url, writer).await?))
        }
        // The URL may contain a password.
        Some(_) => Err(StoreError::Url),
    }
}

/// Opens the database at a `postgres://` URL for the process that uses a directory. Other processes
/// may use the database, too.
pub(crate) async fn open_shared(folder: &Path, url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(url, writer_name(folder)).await
}

/// The name by which others know this process: `process 4242 on host`.
fn process_name() -> String {
    process_on_this_host(std::process::id().into())
}

/// The name of a process on this host: `process 4242 on host`.
fn process_on_this_host(id: i64) -> String {
    let host = whoami::hostname().unwrap_or_else(|_| "an unnamed host".to_owned());
    format!("process {id} on {host}")
}

/// The name by which others know this process, with its directory: `process 4242 on host, folder
/// /srv/shard`.
pub(crate) fn writer_name(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    format!("{}, folder {}", process_name(), folder.display())
}

/// Why a request to a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer in time.
    #[error("the database did not respond in time")]
    Timeout,
    /// Another process holds the database.
    #[error("the database is in use by {holder}; stop that process first")]
    InUse {
        /// The name by which the database knows the process.
        holder: String,
    },
    /// A SQLite database's file has hard links. SQLite keeps the latest changes in a file beside
    /// the name under which the database was opened, so they would be missing under another name.
    #[error(
        "{}: the database has {names} names (hard links), and the latest changes are kept beside \
        only one of them; remove all other names", file.display()
    )]
    Linked {
        /// One of the names.
        file: PathBuf,
        /// The number of names.
        names: u64,
    },
    /// Another writer has since claimed the database. This is final: this writer can never commit
    /// again.
    #[error(
        "the database was taken over by {writer} (this process was at {expected}, the database is at \
        {found}); this process can no longer save anything and must exit"
    )]
    Overtaken {
        /// The position that this writer expected.
        expected: Position,
        /// The database's actual position.
        found: Position,
        /// The process that last claimed the database.
        writer: String,
    },
    /// The process has not renewed its lease for so long that a standby may have taken over. This
    /// is final.
    #[error(
        "this process has lost its lease on the database ({0}), and another process may have \
         taken over; this process must exit"
    )]
    LeaseLost(String),
    /// The server has had a SQLite database, which is now missing.
    #[error(
        "{}: the database is missing; restore it or, to start with an empty one, remove {}: \
        it is used only to encrypt the passwords in the missing database", file.display(), key.display()
    )]
    Lost {
        /// The database.
        file: PathBuf,
        /// The key that seals its passwords.
        key: PathBuf,
    },
    /// The configuration, which named the database, is missing.
    #[error(
        "{}: file is missing; restore it, because it names the database that {} belongs to. To \
        start with an empty database, remove {1}",
        config.display(), key.display()
    )]
    ConfigLost {
        /// The configuration.
        config: PathBuf,
        /// The key that seals the passwords in the database.
        key: PathBuf,
    },
    /// The database contains a row that no server would have written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The URL names an unsupported kind of database.
    #[error("the URL of a database must start with postgres://")]
    Url,
    /// The tables could not be created or migrated.
    #[error("cannot prepare the database's tables: {}", connect::described_migration(.0))]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A PostgreSQL server cannot be reached, or refuses the connection.
    #[error("cannot connect to the database at {place}: {problem}")]
    Connect {
        /// The server's socket, or its host and port.
        place: String,
        /// The reason.
        problem: String,
    },
    /// The database reported an error, or a connection to it broke.
    #[error("database: {}", connect::described(.0))]
    Database(sqlx::Error),
}

impl StoreError {
    /// [`Overtaken`](Self::Overtaken) by the process that claimed the database's current epoch.
    pub(crate) fn overtaken(expected: Position, found: Position, writer: String) -> Self {
        // Without a new claim, the name would be this process's own.
        let writer = match found.epoch == expected.epoch {
            true => "something other than a worldwire server".to_owned(),
            false => writer,
        };
        Self::Overtaken { expected, found, writer }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Timeout,
            error => Self::Database(error),
        }
    }
}

/// A server's named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// The name, prefixed with the kind of server: `uru.next-node`.
    pub name: String,
    /// The value, in the server's own format.
    pub value: Vec<u8>,
}

/// An account.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// Its permanent number.
    pub id: [u8; 16],
    /// The name, spelled as its owner spells it.
    pub name: String,
    /// The unique form of the name for lookups.
    pub folded: String,
    /// Its rights. Each kind of server has its own flags.
    pub flags: u32,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// The data for checking its password, sealed; see [`seal`]. Empty if the account has no
    /// password.
    pub secret: Vec<u8>,
}

impl fmt::Debug for AccountRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountRow")
            .field("name", &self.name)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// An account's character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterRow {
    /// Its permanent number.
    pub id: u32,
    /// The account to which it belongs.
    pub account: [u8; 16],
    /// Its name.
    pub name: String,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
    /// All other data, in the server's own format.
    pub data: Vec<u8>,
}

/// A node of a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its permanent number.
    pub id: u32,
    /// Its type.
    pub kind: u32,
    /// All its fields, encoded as on the wire.
    pub data: Arc<[u8]>,
}

/// A reference of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefRow {
    /// The upper node.
    pub parent: u32,
    /// The lower node.
    pub child: u32,
    /// Its owner.
    pub owner: u32,
}

/// A score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreRow {
    /// Its permanent number.
    pub id: u32,
    /// The node that owns it.
    pub owner: u32,
    /// Its name, unique for each owner.
    pub name: String,
    /// Its type.
    pub kind: u32,
    /// The points.
    pub value: i32,
    /// The time of its creation, in Unix seconds.
    pub created: u32,
}

/// A client's session, which another process can continue.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The number of the session's connection.
    pub connection: u64,
    /// All other data, in the server's own format. It may include secrets.
    pub data: Vec<u8>,
}

impl fmt::Debug for SessionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRow").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// The process that runs an age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRow {
    /// The number with which players join the age.
    pub number: u32,
    /// All other data, in the server's own format.
    pub data: Vec<u8>,
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Inserts or replaces a setting.
    PutSetting(SettingRow),
    /// Inserts or replaces an account.
    PutAccount(AccountRow),
    /// Deletes an account.
    DeleteAccount([u8; 16]),
    /// Inserts or replaces a character.
    PutCharacter(CharacterRow),
    /// Deletes a character.
    DeleteCharacter(u32),
    /// Inserts or replaces a node.
    PutNode(NodeRow),
    /// Deletes a node.
    DeleteNode(u32),
    /// Inserts or replaces a reference.
    PutRef(RefRow),
    /// Deletes a reference.
    DeleteRef {
        /// The upper node.
        parent: u32,
        /// The lower node.
        child: u32,
    },
    /// Inserts or replaces a score.
    PutScore(ScoreRow),
    /// Deletes a score.
    DeleteScore(u32),
    /// Inserts or replaces a session; only in a database that several processes share.
    PutSession(SessionRow),
    /// Deletes a session; only in a database that several processes share.
    DeleteSession(u64),
    /// Inserts or replaces the placement of an age.
    PutPlacement(PlacementRow),
    /// Deletes the placement of an age.
    DeletePlacement(u32),
}

/// The row that a change affects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A setting.
    Setting(String),
    /// An account.
    Account([u8; 16]),
    /// A character.
    Character(u32),
    /// A node.
    Node(u32),
    /// A reference: parent and child.
    Ref(u32, u32),
    /// A score.
    Score(u32),
    /// A session.
    Session(u64),
    /// The placement of an age.
    Placement(u32),
}

/// The changes in a batch: the latest change to each row.
pub type Changes = BTreeMap<Key, Change>;

impl Change {
    /// Whether this change deletes its row.
    #[must_use]
    pub fn is_deletion(&self) -> bool {
        matches!(
            self,
            Self::DeleteAccount(_)
                | Self::DeleteCharacter(_)
                | Self::DeleteNode(_)
                | Self::DeleteRef { .. }
                | Self::DeleteScore(_)
                | Self::DeleteSession(_)
                | Self::DeletePlacement(_)
        )
    }

    /// The row that this change affects.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::PutSetting(row) => Key::Setting(row.name.clone()),
            Self::PutAccount(row) => Key::Account(row.id),
            Self::DeleteAccount(id) => Key::Account(*id),
            Self::PutCharacter(row) => Key::Character(row.id),
            Self::DeleteCharacter(id) => Key::Character(*id),
            Self::PutNode(row) => Key::Node(row.id),
            Self::DeleteNode(id) => Key::Node(*id),
            Self::PutRef(row) => Key::Ref(row.parent, row.child),
            Self::DeleteRef { parent, child } => Key::Ref(*parent, *child),
            Self::PutScore(row) => Key::Score(row.id),
            Self::DeleteScore(id) => Key::Score(*id),
            Self::PutSession(row) => Key::Session(row.connection),
            Self::DeleteSession(connection) => Key::Session(*connection),
            Self::PutPlacement(row) => Key::Placement(row.number),
            Self::DeletePlacement(number) => Key::Placement(*number),
        }
    }
}
