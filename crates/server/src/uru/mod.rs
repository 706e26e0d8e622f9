//! A shard of Uru: all services on one port, and a status page.
//!
//! ```no_run
//! use std::path::Path;
//! use worldwire_net::Stop;
//! use worldwire_server::uru::Shard;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // Makes the folder, keys and shard.toml if they are missing.
//! let shard = Shard::open(Path::new("shard")).await?;
//! println!("{}", shard.server_ini());
//! let stop = Stop::new();
//! shard.serve(stop.signal()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! * [`ShardConfig`]: `shard.toml`; [`keys`]: the keys of the servers;
//! * `dispatch`: which service a client wants; `gatekeeper`, [`file`](mod@file), [`auth`], `game`:
//!   the services;
//! * [`vault`]: everything that lasts, with [`accounts`], [`players`], [`ages`] and [`scores`];
//! * [`moving`]: shards that move in from other servers, and back;
//! * [`admin`]: what operators do, while the shard runs and while it does not;
//! * `hosts`: where the ages are; `game`: the ages that run, and the [`Outbox`] of each client;
//! * `status`: the status page; `figures`: what it shows to operators.

pub mod accounts;
pub mod admin;
pub mod ages;
pub mod auth;
pub mod config;
mod dispatch;
mod figures;
pub mod file;
mod game;
mod gatekeeper;
mod hosts;
pub mod keys;
pub mod moving;
pub mod players;
pub mod scores;
mod status;
pub mod vault;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use worldwire_core::connection::SendError;
use worldwire_net::{Flow, Options, Signal, tcp};
use worldwire_uru::connection::{BuildPolicy, ServerConfig};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;

pub use config::ShardConfig;
pub use game::{ClearError, Cleared, Outbox, hand_out};

use auth::{Reconnections, SecureFiles};
use dispatch::Dispatcher;
use figures::Figures;
use file::Library;
use game::{AgeFiles, Games};
use hosts::Hosts;
use keys::KeysError;
use vault::{Vault, VaultError};

use crate::config::{ConfigError, database};
use crate::folder::write_secret;
use crate::operators;
use crate::page::{self, Serving};
use crate::store::lock::FolderLock;
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, Store, StoreError};

/// The name of the configuration in a shard's folder.
pub const CONFIG: &str = "shard.toml";

/// Why a shard does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A file or folder.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The configuration.
    #[error("{}: {error}", path.display())]
    Config {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        error: ConfigError,
    },
    /// The keys.
    #[error("{}: {error}", path.display())]
    Keys {
        /// Their file.
        path: PathBuf,
        /// What is wrong.
        error: KeysError,
    },
    /// Files for clients.
    #[error(transparent)]
    Library(#[from] file::LibraryError),
    /// Another process has the folder.
    #[error("{}: a shard runs here already", .0.display())]
    Taken(PathBuf),
    /// The keys are gone, and this is not the first start.
    #[error("{path}: is missing, and clients of this shard need the keys in it; restore it, or make \
        new ones with `worldwire uru keys generate -o {path}` and give clients the lines that \
        `worldwire uru keys convert {path} --to server-ini` prints", path = .0.display())]
    KeysLost(PathBuf),
    /// The key that passwords are sealed under is gone.
    #[error("{}: is missing, and the passwords in the database were sealed under it; restore it",
        .0.display())]
    KeyLost(PathBuf),
    /// The key that passwords are sealed under.
    #[error(transparent)]
    ServerKey(#[from] KeyError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is in the database.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// An address to listen at.
    #[error("cannot listen at {address}: {error}; {setting} chooses another address")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// The option or setting that it comes from.
        setting: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    config: ShardConfig,
    server: Arc<ServerConfig>,
    library: Arc<Library>,
    secure: Arc<SecureFiles>,
    vault: Vault,
    hosts: Hosts,
    games: Games,
    reconnections: Arc<Reconnections>,
    figures: Arc<Figures>,
}

/// A shard that is ready to be served.
#[derive(Debug)]
pub struct Shard {
    shared: Arc<Shared>,
    listener: tcp::Listener,
    status: Option<TcpListener>,
    operators: operators::Listener<Vault>,
    is_new: bool,
    lock: FolderLock,
}

impl Shard {
    /// Opens the shard in a folder, and its ports. What is missing is made: the folder, keys, a
    /// commented `shard.toml`, folders for files.
    ///
    /// # Errors
    /// As [`ShardError`] says.
    pub async fn open(folder: &Path) -> Result<Self, ShardError> {
        Self::open_with(folder, PrimeKind::Safe, |_| ()).await
    }

    /// The same, with keys of this kind if they are made, and with changes to the configuration:
    /// what a command line says. On the first start they are written to `shard.toml`.
    ///
    /// # Errors
    /// As [`ShardError`] says.
    pub async fn open_with(
        folder: &Path,
        primes: PrimeKind,
        change: impl FnOnce(&mut ShardConfig),
    ) -> Result<Self, ShardError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let lock = FolderLock::take(folder).map_err(at(folder))?;
        let lock = lock.ok_or_else(|| ShardError::Taken(folder.to_owned()))?;
        let (config, is_new) = configuration(folder, change)?;
        let file = folder.join(CONFIG);
        let keys = keys_of(&folder.join(&config.keys), primes, is_new).await?;
        let data = folder.join(&config.data);
        let library = Library::open(&data.join("files"), &folder.join("cache"))?;
        let secure = data.join("secure");
        let ages = data.join("ages");
        let droid = keys.droid().cloned().ok_or(KeysError::Missing("droid"));
        let droid = droid.map_err(|error| ShardError::Keys { path: config.keys.clone(), error })?;
        let secure = SecureFiles::open(&secure, droid.clone()).map_err(at(&secure))?;
        let ages = AgeFiles::open(&data, droid).map_err(at(&ages))?;

        let mut server = ServerConfig::new(keys);
        server.encryption = config.encryption();
        server.builds =
            if config.any_build { BuildPolicy::Any } else { BuildPolicy::Exact(config.build) };

        let options = Options { capacity: config.capacity(), ..Options::default() };
        let address = config.listen;
        let listener = tcp::Listener::bind(address, options).await;
        let setting = "--listen";
        let listener = listener.map_err(|error| ShardError::Listen { address, setting, error })?;
        let wrong = |error| ShardError::Config { path: file.clone(), error };
        let status = page::bind(config.status_address().map_err(wrong)?).await;
        let setting = "--status";
        let status =
            status.map_err(|(address, error)| ShardError::Listen { address, setting, error })?;
        if is_new {
            // Not before the ports are known to be free. The URL of a database may hold a password.
            write_secret(&file, config.commented().as_bytes()).map_err(at(&file))?;
        }
        let url = database(&config.database);
        let store = store::open(folder, url).await?;
        let key = server_key(&folder.join(KEY_FILE), &*store).await?;
        let vault = Vault::open(store, key, config.vault()).await?;
        let operators = operators::Listener::bind(folder, vault.clone()).map_err(at(folder))?;
        let shared = Shared {
            games: Games::new(vault.clone(), ages, config.age()),
            hosts: Hosts::new(config.host()),
            reconnections: Reconnections::new(config.patience()).into(),
            vault,
            secure: secure.into(),
            config,
            server: server.into(),
            library: library.into(),
            figures: Arc::default(),
        };
        Ok(Self { shared: shared.into(), listener, status, operators, is_new, lock })
    }

    /// Whether this is the first start: there was no `shard.toml`.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ShardConfig {
        &self.shared.config
    }

    /// Where clients connect.
    ///
    /// # Errors
    /// Those of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where the status page is, if there is one.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status.as_ref()?.local_addr().ok()
    }

    /// The vault.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    /// The keys of the servers.
    #[must_use]
    pub fn keys(&self) -> &KeyRing {
        &self.shared.server.keys
    }

    /// The lines that a client's `server.ini` needs.
    #[must_use]
    pub fn server_ini(&self) -> String {
        // With port 0 the system chose one.
        let mut config = self.config().clone();
        if let Ok(address) = self.address() {
            config.listen = address;
        }
        if let Some(address) = self.status_address() {
            config.status = address.to_string();
        }
        keys::server_ini(self.keys(), &config)
    }

    /// Serves clients until the signal comes, then lets their connections end, and closes the vault.
    ///
    /// # Errors
    /// Those of the system, from the status page.
    pub async fn serve(self, signal: Signal) -> io::Result<()> {
        let Self { shared, listener, status, operators, lock, .. } = self;
        let (vault, games) = (shared.vault.clone(), shared.games.clone());
        let reconnections = Arc::clone(&shared.reconnections);
        let operators = tokio::spawn(operators.run());
        let shown = status::Page {
            welcome: shared.config.welcome.clone(),
            figures: Arc::clone(&shared.figures),
            counts: listener.counts(),
            vault: vault.clone(),
            games: games.clone(),
        };
        let page = Serving::start(status, status::router(shown.into()), signal.clone());
        listener.serve(Arc::new(Dispatcher(shared)), signal).await;
        operators.abort();
        reconnections.close();
        let lost = games.close().await;
        vault.close().await;
        drop(lock);
        page.ended().await?;
        match lost {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("the last changes of {lost} ages were not written"))),
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ShardError {
    let path = path.to_owned();
    |error| ShardError::Io { path, error }
}

/// Reads `shard.toml`; whether there is none yet.
fn configuration(
    folder: &Path,
    change: impl FnOnce(&mut ShardConfig),
) -> Result<(ShardConfig, bool), ShardError> {
    let path = folder.join(CONFIG);
    let wrong = |error| ShardError::Config { path: path.clone(), error };
    let config = crate::config::read(&path, ShardConfig::parse).map_err(wrong)?;
    let is_new = config.is_none();
    let mut config = config.unwrap_or_default();
    change(&mut config);
    config.check().map_err(wrong)?;
    Ok((config, is_new))
}

/// Reads the key that passwords are sealed under, or makes it if nothing is.
async fn server_key(path: &Path, store: &dyn Store) -> Result<ServerKey, ShardError> {
    if !path.exists() {
        let accounts = store.accounts().await?;
        if accounts.iter().any(|account| !account.secret.is_empty()) {
            return Err(ShardError::KeyLost(path.to_owned()));
        }
    }
    Ok(ServerKey::load_or_create(path)?)
}

/// Reads the keys, or makes them on the first start.
async fn keys_of(path: &Path, primes: PrimeKind, is_new: bool) -> Result<KeyRing, ShardError> {
    let wrong = |error| ShardError::Keys { path: path.to_owned(), error };
    if !path.exists() {
        if !is_new {
            return Err(ShardError::KeysLost(path.to_owned()));
        }
        let made = spawn_blocking(move || keys::generate(primes)).await;
        let made = made.map_err(|error| at(path)(io::Error::other(error)))?;
        keys::save(&made, path).map_err(at(path))?;
    }
    keys::load(path).map_err(wrong)
}

/// What becomes of a connection after a message was queued: one that does not read is closed.
fn sent(result: Result<(), SendError>) -> Flow {
    match result {
        Ok(()) => Flow::Continue(()),
        Err(error) => {
            tracing::debug!(%error, "nothing more can be sent");
            Flow::Break(())
        }
    }
}
