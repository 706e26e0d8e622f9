//! The part of starting a server that all families share: directory, configuration, key and ports.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use worldwire_net::{Options, tcp, udp};
use zeroize::Zeroizing;

use crate::config::{ConfigError, ServerConfig};
use crate::folder::{blocking, reason, write_secret};
use crate::operators;
use crate::store::lock::FolderLock;
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, Store, StoreError};

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A file or directory is unusable.
    #[error("{}: {}", path.display(), reason(error))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The configuration is invalid.
    #[error("{}: {error}", path.display())]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// What is wrong with it.
        error: ConfigError,
    },
    /// Another process has locked the directory.
    #[error("{}: in use by {holder}; stop that process first", folder.display())]
    Taken {
        /// The directory.
        folder: PathBuf,
        /// The process, described for display.
        holder: String,
    },
    /// The key that seals passwords is missing.
    #[error("{}: file is missing; restore it, because it encrypts the passwords in the database",
        .0.display())]
    KeyLost(PathBuf),
    /// The key that seals passwords is invalid or unusable.
    #[error(transparent)]
    ServerKey(#[from] KeyError),
    /// The database is unusable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The standby's database is not one that can be shared.
    #[error("a standby needs the {name}'s PostgreSQL database: set database in {config}")]
    NotShared {
        /// The name that operators use for the server.
        name: &'static str,
        /// The name of the server's configuration file.
        config: &'static str,
    },
    /// The server's keys, which a standby or a node needs, are missing.
    #[error("{}: file is missing; copy it from the active process's folder", .0.display())]
    Lacks(PathBuf),
    /// Files that a node needs to run ages are missing.
    #[error("an age node needs {}; copy missing files from the active process's folder", list(.0))]
    LacksAgeFiles(Vec<PathBuf>),
    /// The process would lead a shard on a bus on which another shard already has a leader.
    #[error(
        "{leader} leads another shard under the name `{name}` (shard {other:016x}, but the database of \
        this process holds {shard:016x}); use the database of that process, or set another `name` in \
        [cluster]"
    )]
    OtherShard {
        /// The name of the cluster.
        name: String,
        /// The random number of this process's shard; 0 for an empty database.
        shard: u64,
        /// The random number of the other shard.
        other: u64,
        /// The process that leads the other shard, described for display.
        leader: String,
    },
    /// The leader refuses to admit this standby.
    #[error("the leader does not admit this process: {0}")]
    NotAdmitted(String),
    /// This standby's keys differ from those of the process that last served the shard.
    #[error(
        "clients could not connect to this process: its keys in keys.toml are not those last used to \
        serve the shard; copy keys.toml from the process that served it, or start this one once without \
        --standby if the keys were changed on purpose"
    )]
    OtherKeys,
    /// This standby never joined the process that served the shard, so another standby should take
    /// over.
    #[error(
        "this process has never joined the leader over the bus, so it gives other standbys {} s \
         to take over; see the log lines about the bus", .0.as_secs()
    )]
    NotJoined(Duration),
    /// The status page's port, which a standby has already bound, cannot be reused for the server's
    /// own page.
    #[error("status page: {}", reason(.0))]
    StatusPort(io::Error),
    /// An address is not available.
    #[error("cannot listen on {address}: {}; choose another address with {setting}", reason(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The option or setting that contains the address.
        setting: &'static str,
        /// The operating system's error.
        error: io::Error,
    },
}

/// Adds a path to an I/O error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    |error| StartError::Io { path, error }
}

/// Adds the configuration file's path to an error.
pub(crate) fn in_config<C: ServerConfig>(folder: &Path) -> impl FnOnce(ConfigError) -> StartError {
    let path = folder.join(C::FILE);
    |error| StartError::Config { path, error }
}

/// Creates a server's directory if it is missing, and locks it. Dropping the lock after a failed
/// start removes the directory if it is empty and new.
pub(crate) async fn lock_folder(folder: &Path) -> Result<FolderLock, StartError> {
    let folder = folder.to_owned();
    blocking(move || {
        let lock = FolderLock::create(&folder).map_err(at(&folder))?;
        let lock = lock.ok_or_else(|| {
            let holder = FolderLock::holder(&folder);
            StartError::Taken { folder: folder.clone(), holder }
        })?;
        operators::remove_stale(&folder).map_err(at(&operators::file(&folder)))?;
        Ok(lock)
    })
    .await
}

/// Files that are missing from a server's directory when it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absent {
    /// All of the server's data is missing, so this is the first start.
    pub(crate) server: bool,
    /// The configuration is missing. On a first start it can already be present, if the operator
    /// wrote it in advance.
    pub(crate) config: bool,
}

/// Reads the configuration, changes it, and checks the result.
pub(crate) fn configuration<C: ServerConfig>(
    folder: &Path,
    change: impl FnOnce(&mut C),
) -> Result<(C, Absent), StartError> {
    let config = C::read(folder).map_err(in_config::<C>(folder))?;
    let has_server = [C::SQLITE_FILE, KEY_FILE].iter().any(|file| folder.join(file).exists());
    let absent = Absent { server: !has_server, config: config.is_none() };
    let mut config = config.unwrap_or_default();
    change(&mut config);
    config.validate().map_err(in_config::<C>(folder))?;
    check_database(folder, &config)?;
    Ok((config, absent))
}

/// Writes the configuration if it is missing. Only its owner can read the file, because a database
/// URL may contain a password.
pub(crate) async fn save<C: ServerConfig>(folder: &Path, config: &C) -> Result<(), StartError> {
    let (file, text) = (folder.join(C::FILE), Zeroizing::new(config.to_text()));
    blocking(move || write_secret(&file, text.as_bytes()).map_err(at(&file))).await
}

/// Locks an existing SQLite database. This comes early because, if the database is in use,
/// everything else may be too.
pub(crate) async fn lock_database<C: ServerConfig>(
    folder: &Path,
    config: &C,
    lock: &mut FolderLock,
) -> Result<(), StoreError> {
    let file = folder.join(C::SQLITE_FILE);
    match config.database_url().is_none() && file.exists() {
        true => lock.add_database(&file).await,
        false => Ok(()),
    }
}

/// Opens the database and reads the key that seals passwords. `lock` is the directory's lock. The
/// caller closes the database before it drops the lock.
pub(crate) async fn open_store<C: ServerConfig>(
    folder: &Path,
    config: &C,
    lock: &mut FolderLock,
) -> Result<(Arc<dyn Store>, ServerKey), StartError> {
    let store = locked_store(folder, config, lock).await?;
    let key = or_close(server_key(folder, &*store).await, &*store).await?;
    Ok((store, key))
}

/// Locks and opens the database.
pub(crate) async fn locked_store<C: ServerConfig>(
    folder: &Path,
    config: &C,
    lock: &mut FolderLock,
) -> Result<Arc<dyn Store>, StoreError> {
    check_database(folder, config)?;
    let file = folder.join(C::SQLITE_FILE);
    if config.database_url().is_none() {
        lock.add_database(&file).await?;
    }
    store::open(file, config.database_url()).await
}

/// Closes the database if a later step failed.
pub(crate) async fn or_close<T, E>(result: Result<T, E>, store: &dyn Store) -> Result<T, E> {
    if result.is_err() {
        // The original error is the one to report.
        let _ = store.close().await;
    }
    result
}

/// Refuses to create a new database in a directory that already had one. The password key shows
/// this, because it is created together with the database.
fn check_database<C: ServerConfig>(folder: &Path, config: &C) -> Result<(), StoreError> {
    let (file, key) = (folder.join(C::SQLITE_FILE), folder.join(KEY_FILE));
    if config.database_url().is_some() || !key.exists() || file.exists() {
        return Ok(());
    }
    let config = folder.join(C::FILE);
    // If the configuration is missing, it may have named another database.
    Err(if config.exists() {
        StoreError::Lost { file, key }
    } else {
        StoreError::ConfigLost { config, key }
    })
}

/// Reads the key that seals passwords. If it is missing, creates it, unless the database contains
/// passwords.
async fn server_key(folder: &Path, store: &dyn Store) -> Result<ServerKey, StartError> {
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let accounts = store.accounts().await?;
        if accounts.iter().any(|account| !account.secret.is_empty()) {
            return Err(StartError::KeyLost(path));
        }
    }
    Ok(blocking(move || ServerKey::load_or_create(&path)).await?)
}

/// Binds a port for clients. `setting` names the setting that contains the address.
pub(crate) async fn listen(
    address: SocketAddr,
    setting: &'static str,
    options: Options,
) -> Result<tcp::Listener, StartError> {
    let bound = tcp::Listener::bind(address, options).await;
    bound.map_err(|error| StartError::Listen { address, setting, error })
}

/// Binds a UDP port.
pub(crate) async fn listen_udp(
    address: SocketAddr,
    setting: &'static str,
    options: Options,
) -> Result<udp::Listener, StartError> {
    let bound = udp::Listener::bind(address, options).await;
    bound.map_err(|error| StartError::Listen { address, setting, error })
}

/// Binds the port of the status page, if there is one.
pub(crate) async fn listen_status(
    address: Option<SocketAddr>,
) -> Result<Option<TcpListener>, StartError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|error| StartError::Listen { address, setting: "--status", error })
}
/// Formats paths as a list for display.
fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(" and ")
}
