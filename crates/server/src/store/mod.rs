//! Where servers keep what must last: accounts, characters, the nodes of a vault, scores.
//!
//! All access to the database goes through [`Ledger`], or through [`Store`] for a world with a vault.
//! The caller keeps its own index in memory and is the only writer. It stages [`Change`]s and commits
//! them in *batches*, one transaction each: a committed batch survives any later failure, and a failed
//! one leaves nothing behind.
//!
//! # One writer at a time
//!
//! A writer first [claims](Ledger::claim) the database. Each claim gets a new *epoch*, and every batch
//! has a number. The database stores both and accepts only the next batch of the latest epoch.
//! So a writer whose commit broke off can ask whether it took effect ([`Ledger::position`]), and a
//! writer that lost the database to another process learns it from its next commit, before it
//! acknowledges anything: [`StoreError::Overtaken`] is final. The number of the batch alone would not
//! do, because another process may have committed exactly one.
//!
//! On PostgreSQL, a claim also takes an advisory lock. It protects nothing, but it refuses a second
//! process when it starts, and names the first one ([`StoreError::InUse`]). On SQLite, the
//! [lock](lock) on the folder does this.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`lock`] | which process has a shard's folder |
//! | [`seal`] | the server's key, under which secrets are stored |
//!
//! A world without a vault uses accounts and characters alone: what a character is made of is a
//! blob, and only its world can read it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

mod advisory;
pub mod lock;
pub mod seal;
mod sql;

pub use sql::{PostgresStore, SqliteStore};

/// The outcome of a request to a store, when it is there.
pub type Pending<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// A database, as far as every server needs it: settings, accounts and characters.
pub trait Ledger: Send + Sync + 'static {
    /// Makes the caller the only writer, in a new epoch. Commits of earlier epochs fail from now on.
    ///
    /// Claim before reading: what is read afterwards cannot be changed by anybody else.
    ///
    /// # Errors
    /// [`StoreError::InUse`] while another process holds the database, if the database can tell.
    fn claim(&self) -> Pending<'_, Position>;

    /// Commits the batch that follows `after`: all of its changes, durably, or none.
    ///
    /// After any error except [`StoreError::Overtaken`], and after the future was dropped, the batch
    /// may have taken effect: ask [`Ledger::position`].
    ///
    /// # Errors
    /// [`StoreError::Overtaken`] when the database is no longer at `after`. Nothing was committed
    /// then, and nothing of this epoch ever will be.
    fn commit(&self, after: Position, changes: Arc<Changes>) -> Pending<'_, ()>;

    /// The epoch and the last committed batch, and the process that claimed this epoch. Waits for a
    /// commit in progress, so the answer is final.
    fn position(&self) -> Pending<'_, (Position, String)>;

    /// All settings.
    ///
    /// # Errors
    /// Those of the database.
    fn settings(&self) -> Pending<'_, Vec<SettingRow>>;

    /// All accounts, by number.
    ///
    /// # Errors
    /// Those of the database.
    fn accounts(&self) -> Pending<'_, Vec<AccountRow>>;

    /// All characters, by number.
    ///
    /// # Errors
    /// Those of the database.
    fn characters(&self) -> Pending<'_, Vec<CharacterRow>>;

    /// Ends all connections to the database.
    ///
    /// # Errors
    /// None today.
    fn close(&self) -> Pending<'_, ()>;
}

/// A database with a vault and scores.
pub trait Store: Ledger {
    /// The nodes behind `id`, by number, at most `most` of them.
    ///
    /// # Errors
    /// Those of the database.
    fn nodes_behind(&self, id: u32, most: u32) -> Pending<'_, Vec<NodeRow>>;

    /// The nodes with these numbers, as far as there are any, in any order.
    ///
    /// # Errors
    /// Those of the database.
    fn nodes<'s>(&'s self, ids: &'s [u32]) -> Pending<'s, Vec<NodeRow>>;

    /// All references, by parent and child.
    ///
    /// # Errors
    /// Those of the database.
    fn refs(&self) -> Pending<'_, Vec<RefRow>>;

    /// All scores, by number.
    ///
    /// # Errors
    /// Those of the database.
    fn scores(&self) -> Pending<'_, Vec<ScoreRow>>;
}

/// A point in the history of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The latest claim, counted from 1. 0 if nobody has claimed the database yet.
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

/// The file of a SQLite database in a shard's folder.
pub const SQLITE_FILE: &str = "shard.sqlite";

/// Opens the database of a shard, and brings its tables up to date: PostgreSQL if there is a
/// `postgres://` URL, or else SQLite in the folder.
///
/// # Errors
/// [`StoreError::Url`] for a URL of anything else, and those of the database.
pub async fn open(folder: &Path, url: Option<&str>) -> Result<Arc<dyn Store>, StoreError> {
    open_file(&folder.join(SQLITE_FILE), url).await
}

/// The same with another file for SQLite. All servers have the same tables; what a world has no
/// use for stays empty.
///
/// # Errors
/// As [`open`] says.
pub async fn open_file(file: &Path, url: Option<&str>) -> Result<Arc<dyn Store>, StoreError> {
    let writer = writer_name(file.parent().unwrap_or(file));
    match url {
        None => Ok(Arc::new(SqliteStore::open(file, writer).await?)),
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(Arc::new(PostgresStore::open(url, writer).await?))
        }
        // The URL may hold a password.
        Some(_) => Err(StoreError::Url),
    }
}

/// What other processes call this one: `process 4242 on host, folder /srv/shard`.
fn writer_name(folder: &Path) -> String {
    let host = whoami::hostname().unwrap_or_else(|_| "an unnamed host".to_owned());
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    format!("process {} on {host}, folder {}", std::process::id(), folder.display())
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer in time.
    #[error("the database did not answer in time")]
    Timeout,
    /// Another process holds the database.
    #[error("the database is in use by {holder}; stop that process first")]
    InUse {
        /// Which process, as the database knows it.
        holder: String,
    },
    /// Another writer has claimed the database since. Final: this writer can never commit again.
    #[error(
        "the database was taken over by {writer} (this process was at {expected}, the database is at \
        {found}); this process can no longer save anything and must end"
    )]
    Overtaken {
        /// Where this writer believed the database to be.
        expected: Position,
        /// Where it is.
        found: Position,
        /// The process that claimed it last.
        writer: String,
    },
    /// What is stored makes no sense.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// The URL names no database that is known.
    #[error("wanted a database URL that begins with postgres://, found another one")]
    Url,
    /// The tables could not be made or brought up to date.
    #[error("cannot prepare the tables of the database: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The database refuses or cannot be reached.
    #[error("database: {0}")]
    Database(sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Timeout,
            error => Self::Database(error),
        }
    }
}

/// A named value of a server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// The name, with the server's in front: `uru.next-node`.
    pub name: String,
    /// The value, as the server writes it.
    pub value: Vec<u8>,
}

/// An account.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// Its number, for ever.
    pub id: [u8; 16],
    /// The name as its owner writes it.
    pub name: String,
    /// The name by which it is found; two accounts cannot have the same.
    pub folded: String,
    /// What it may do; each world has its own flags.
    pub flags: u32,
    /// When it was made, Unix seconds.
    pub created: u32,
    /// What a password is checked with, sealed; see [`seal`]. Empty if no password fits.
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

/// A character of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterRow {
    /// Its number, for ever.
    pub id: u32,
    /// The account it belongs to.
    pub account: [u8; 16],
    /// Its name.
    pub name: String,
    /// When it was made, Unix seconds.
    pub created: u32,
    /// All else, as its world writes it.
    pub data: Vec<u8>,
}

/// A node of a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its number, for ever.
    pub id: u32,
    /// Its type.
    pub kind: u32,
    /// All its fields, encoded as on the wire.
    pub data: Arc<[u8]>,
}

/// A reference of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefRow {
    /// The node above.
    pub parent: u32,
    /// The node below.
    pub child: u32,
    /// Whose it is.
    pub owner: u32,
}

/// A score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreRow {
    /// Its number, for ever.
    pub id: u32,
    /// The node whose it is.
    pub owner: u32,
    /// Its name; an owner has one of a name.
    pub name: String,
    /// Its type.
    pub kind: u32,
    /// The points.
    pub value: i32,
    /// When it was made, Unix seconds.
    pub created: u32,
}

/// What becomes of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Makes or replaces a setting.
    PutSetting(SettingRow),
    /// Makes or replaces an account.
    PutAccount(AccountRow),
    /// Removes an account.
    DeleteAccount([u8; 16]),
    /// Makes or replaces a character.
    PutCharacter(CharacterRow),
    /// Removes a character.
    DeleteCharacter(u32),
    /// Makes or replaces a node.
    PutNode(NodeRow),
    /// Removes a node.
    DeleteNode(u32),
    /// Makes or replaces a reference.
    PutRef(RefRow),
    /// Removes a reference.
    DeleteRef {
        /// The node above.
        parent: u32,
        /// The node below.
        child: u32,
    },
    /// Makes or replaces a score.
    PutScore(ScoreRow),
    /// Removes a score.
    DeleteScore(u32),
}

/// Which row a change is about.
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
}

/// The changes of a batch: the last one of each row.
pub type Changes = BTreeMap<Key, Change>;

impl Change {
    /// The row that it is about.
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
        }
    }
}
