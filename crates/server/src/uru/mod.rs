//! An Uru shard: all services on one port, and a status page.
//!
//! ```no_run
//! use std::path::Path;
//! use worldwire_net::Stop;
//! use worldwire_server::uru::Shard;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // Creates the directory, keys and shard.toml if they are missing.
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
//! * [`ShardConfig`]: `shard.toml`; [`keys`]: the servers' keys;
//! * `dispatch`: selects the service of a connection; `gatekeeper`, [`file`](mod@file), [`auth`],
//!   `game`: the services;
//! * [`vault`]: all persistent data: accounts, players, nodes, ages and scores;
//! * [`migration`]: importing shards from other servers, and exporting to them;
//! * [`admin`]: administration, whether the shard is running or not;
//! * `hosts`: where ages run; `game`: the running ages with their small games, and the [`Outbox`]
//!   of each client;
//! * `status`: the status page; `figures`: metrics;
//! * [`Standby`]: a process that takes over a shard when the process that serves it fails;
//!   `cluster`: several processes that serve clients of one shard.

pub mod admin;
pub mod auth;
pub(crate) mod cluster;
pub mod config;
mod dispatch;
mod figures;
pub mod file;
mod game;
mod gatekeeper;
mod hosts;
pub mod keys;
pub mod migration;
mod missing;
mod standby;
mod status;
pub mod vault;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;
use worldwire_core::connection::SendError;
use worldwire_net::{Flow, Options, Signal, tcp};
use worldwire_uru::connection::{BuildPolicy, ServerConfig};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::types::NetError;

pub use cluster::BusError;
pub use config::{CONFIG, SQLITE_FILE, ShardConfig};
pub use game::{GameRandom, Outbox, hand_out};
pub use standby::Standby;
pub use vault::{ClearError, Cleared};

use admin::Control;
use auth::{Reconnections, SecureFiles};
use cluster::{Bus, ENTER_AGE, EnterAge, EnteredAge, Leader, Link, Nats};
use dispatch::Dispatcher;
use figures::Figures;
use file::Library;
use game::{AgeFiles, Games, Presence};
use hosts::Hosts;
use keys::KeysError;
use status::Welcome;
use vault::{Vault, VaultError};

use crate::ending::{ServeError, also_on};
use crate::operators;
use crate::page::Serving;
use crate::start::{
    Absent, StartError, at, configuration, in_config, listen, listen_status, lock_database,
    lock_folder, open_store, or_close, save,
};
use crate::store::Store;
use crate::store::lock::FolderLock;

/// Why a shard cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The directory, configuration, key, database or ports.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The servers' keys cannot be used.
    #[error("{}: {error}", path.display())]
    Keys {
        /// Their file.
        path: PathBuf,
        /// What is wrong with it.
        error: KeysError,
    },
    /// The directory with files for clients.
    #[error(transparent)]
    Library(#[from] file::LibraryError),
    /// The servers' keys are missing, and this is not the first start.
    #[error("{path}: file is missing, and clients of this shard need its keys; restore it, or create \
        new ones with `worldwire uru keys generate -o {path}` and give clients the lines that \
        `worldwire uru keys convert {path} --to server-ini` prints", path = .0.display())]
    KeysLost(PathBuf),
    /// The bus between the shard's processes.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The data in the database.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// The state that all connections share.
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
    welcome: Welcome,
}

impl Shared {
    fn new(
        (config, server, library, secure): (ShardConfig, ServerConfig, Library, SecureFiles),
        vault: Vault,
        games: Games,
        welcome: Welcome,
    ) -> Arc<Self> {
        Arc::new(Self {
            games,
            welcome,
            hosts: Hosts::new(config.host()),
            reconnections: Reconnections::new(config.patience()).into(),
            vault,
            secure: secure.into(),
            config,
            server: server.into(),
            library: library.into(),
            figures: Arc::default(),
        })
    }

    /// The presence of an auth session, which lets its player be in ages.
    fn presence(&self, session: u64) -> Presence {
        match self.vault.link() {
            Some(link) => Presence::elsewhere(link.clone(), session),
            None => self.games.presence(session),
        }
    }

    /// Lets a session's player into an age, and finds the age's server.
    async fn enter_age(
        &self,
        session: &vault::Connection,
        wanted: EnterAge,
    ) -> Result<EnteredAge, NetError> {
        if self.vault.link().is_some() {
            return session.ask_leader(ENTER_AGE, &wanted).await;
        }
        let EnterAge { filename, instance, address, needs_ipv4 } = wanted;
        let ipv4 = match needs_ipv4 {
            true => self.hosts.ipv4().await.ok_or(NetError::NameLookupFailed)?.octets(),
            false => [0; 4],
        };
        let found = session.request_age(filename.clone(), instance).await?;
        let number = self.hosts.number(found.age, instance);
        let auth = (session.number(), address.to_canonical());
        self.games.announce(auth, number, &filename, found).await?;
        let host = self.config.public_address.clone();
        Ok(EnteredAge { number, age: found.age, ipv4, host })
    }
}

/// A shard that is ready to be served.
#[derive(Debug)]
pub struct Shard {
    shared: Arc<Shared>,
    listener: tcp::Listener,
    status: Option<TcpListener>,
    /// `None` at a front.
    operators: Option<operators::Listener<Control>>,
    /// The bus to other processes, if this one may lead them.
    bus: Option<Arc<dyn Bus>>,
    data: PathBuf,
    absent: Absent,
    lock: FolderLock,
}

impl Shard {
    /// Opens the shard in a directory and binds its ports. Missing files are created: the
    /// directory, keys, a commented `shard.toml`, and directories for clients' files. On an error,
    /// nothing is left open.
    pub async fn open(folder: &Path) -> Result<Self, ShardError> {
        Self::open_with(folder, PrimeKind::Safe, |_| ()).await
    }

    /// Opens a shard as [`open`](Self::open) does, with changes to the configuration, which the
    /// first start writes to `shard.toml`. `primes` is the kind of primes for new keys. On an
    /// error, nothing is left open.
    pub async fn open_with(
        folder: &Path,
        primes: PrimeKind,
        change: impl FnOnce(&mut ShardConfig),
    ) -> Result<Self, ShardError> {
        Self::open_within(folder, primes, change, GameRandom::default()).await
    }

    /// Opens a shard as [`open_with`](Self::open_with) does, with the caller's random numbers for
    /// small games.
    pub async fn open_within(
        folder: &Path,
        primes: PrimeKind,
        change: impl FnOnce(&mut ShardConfig),
        random: GameRandom,
    ) -> Result<Self, ShardError> {
        let mut lock = lock_folder(folder).await?;
        let (config, absent) = configuration(folder, change)?;
        if config.cluster.is_front() {
            return Self::open_front(folder, lock, config, random).await;
        }
        lock_database(folder, &config, &mut lock).await.map_err(StartError::from)?;
        let listener = client_port(&config).await?;
        let status = config.status_address().map_err(in_config::<ShardConfig>(folder))?;
        let status = listen_status(status).await?;
        // Before the database is created, which a later start finds: an interrupted first start is
        // followed by another one.
        let parts = Parts::load(folder, config, primes, absent).await?;
        if absent.config {
            // Only after the ports are known to be free.
            save(folder, &parts.config).await?;
        }
        let (store, key) = open_store(folder, &parts.config, &mut lock).await?;
        let vault = Vault::open(Arc::clone(&store), key, parts.config.vault()).await;
        let vault = or_close(vault, &*store).await?;
        let ports = (listener, status);
        Self::assemble(folder, lock, parts, ports, vault, &*store, random).await
    }

    /// Opens a front, which serves clients of a shard whose vault is at another process.
    async fn open_front(
        folder: &Path,
        lock: FolderLock,
        config: ShardConfig,
        random: GameRandom,
    ) -> Result<Self, ShardError> {
        let keys = folder.join(&config.keys);
        if !keys.exists() {
            return Err(StartError::Lacks(keys).into());
        }
        let listener = client_port(&config).await?;
        let status = config.status_address().map_err(in_config::<ShardConfig>(folder))?;
        let status = listen_status(status).await?;
        let absent = Absent { server: false, config: false };
        let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await?;
        let (cluster, rules) = (&parts.config.cluster, parts.config.vault());
        let process = getrandom::u64().map_err(io::Error::other).map_err(at(folder))?;
        let bus = bus(folder, &parts.config).await?;
        let link = Link::open(bus, &cluster.name, &cluster.node, process, rules.max_notices);
        let vault = Vault::elsewhere(link.await?, &rules);
        let Parts { config, server, library, secure, ages, data, absent } = parts;
        let games = Games::new(vault.clone(), ages, config.age(), config.games(), random);
        let welcome = Welcome::new(&config.welcome);
        let shared = Shared::new((config, server, library, secure), vault, games, welcome);
        let (operators, bus) = (None, None);
        Ok(Self { shared, listener, status, operators, bus, data, absent, lock })
    }

    /// A shard that serves a vault at its ports.
    async fn assemble(
        folder: &Path,
        lock: FolderLock,
        parts: Parts,
        (listener, status): (tcp::Listener, Option<TcpListener>),
        vault: Vault,
        store: &dyn Store,
        random: GameRandom,
    ) -> Result<Self, ShardError> {
        let Parts { config, server, library, secure, ages, data, absent } = parts;
        let known = bound(&config, &listener, status.as_ref());
        let place = (keys::server_ini(&server.keys, &known), known.listen);
        let games = Games::new(vault.clone(), ages, config.age(), config.games(), random);
        let welcome = Welcome::new(&config.welcome);
        let (live_games, live_welcome) = (games.clone(), welcome.clone());
        let control = Control::running(folder, vault.clone(), live_games, live_welcome, place);
        let operators = operators::Listener::bind(folder, control).await;
        let operators = or_close(operators, store).await.map_err(at(folder))?;
        let bus = match config.cluster.bus.is_empty() {
            true => None,
            false => Some(or_close(bus(folder, &config).await, store).await?),
        };
        let shared = Shared::new((config, server, library, secure), vault, games, welcome);
        let operators = Some(operators);
        Ok(Self { shared, listener, status, operators, bus, data, absent, lock })
    }

    /// Whether this is the first start.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.absent.server
    }

    /// Whether `shard.toml` was missing although this is not the first start. It has been
    /// rewritten, with default settings.
    #[must_use]
    pub fn had_no_config(&self) -> bool {
        self.absent.config && !self.absent.server
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ShardConfig {
        &self.shared.config
    }

    /// The address for clients.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address of the status page, if there is one.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status.as_ref()?.local_addr().ok()
    }

    /// The vault.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.shared.vault
    }

    /// The servers' keys.
    #[must_use]
    pub fn keys(&self) -> &KeyRing {
        &self.shared.server.keys
    }

    /// The host and port that clients connect to.
    #[must_use]
    pub fn public_address(&self) -> (String, u16) {
        let config = self.bound();
        (config.host().to_owned(), config.public_port())
    }

    /// The host and port at which clients reach the status page; see
    /// [`ShardConfig::public_status`].
    #[must_use]
    pub fn public_status(&self) -> Option<String> {
        self.bound().public_status()
    }

    /// What the data directory lacks, in words for the operator.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        missing::missing(&self.data)
    }

    /// The lines that a client's `server.ini` needs.
    #[must_use]
    pub fn server_ini(&self) -> String {
        keys::server_ini(self.keys(), &self.bound())
    }

    fn bound(&self) -> ShardConfig {
        bound(self.config(), &self.listener, self.status.as_ref())
    }

    /// Serves clients until the signal, then lets their connections end and closes the vault. Also
    /// ends if another process takes over the database. Connections and the vault are closed even
    /// after an error.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { shared, listener, status, operators, bus, lock, .. } = self;
        let (vault, games) = (shared.vault.clone(), shared.games.clone());
        let handed_over = vault.clone();
        let (signal, _forwarder) =
            also_on(signal, vault.until_overtaken(), move || handed_over.hand_over());
        let reconnections = Arc::clone(&shared.reconnections);
        let operators = operators.map(|operators| tokio::spawn(operators.run()));
        let leader = match bus {
            Some(bus) => {
                let (name, epoch) = (&shared.config.cluster.name, vault.epoch());
                Some(Leader::start(bus, name, epoch, Arc::clone(&shared)).await)
            }
            None => None,
        };
        // Without the bus, this process still serves its own clients.
        let leader = leader.transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "no other process can serve clients of this shard");
            None
        });
        let shown = status::Page {
            welcome: shared.welcome.clone(),
            figures: Arc::clone(&shared.figures),
            counts: listener.counts(),
            vault: vault.clone(),
            games: games.clone(),
        };
        let cleaner = vault.link().is_none().then(|| tokio::spawn(games.clone().clean_up()));
        let waiting = tokio::spawn(end_waiting(vault.clone(), shared.config.patience()));
        let page = Serving::start(status, status::router(shown.into()), signal.clone());
        listener.serve(Arc::new(Dispatcher(shared)), signal).await;
        operators.inspect(JoinHandle::abort);
        cleaner.inspect(JoinHandle::abort);
        waiting.abort();
        reconnections.close();
        if let Some(leader) = leader {
            leader.close().await;
        }
        let lost = games.close().await;
        vault.close().await;
        drop(lock);
        if let Some(error) = vault.overtaken() {
            return Err(error.into());
        }
        page.ended().await?;
        match lost {
            0 => Ok(()),
            _ => Err(ServeError::Unsaved(lost)),
        }
    }
}

/// The parts of a shard other than its ports and its vault.
#[derive(Debug)]
struct Parts {
    config: ShardConfig,
    server: ServerConfig,
    library: Library,
    secure: SecureFiles,
    ages: AgeFiles,
    data: PathBuf,
    absent: Absent,
}

impl Parts {
    /// Reads the files in a shard's directory. Keys are generated on the first start.
    async fn load(
        folder: &Path,
        config: ShardConfig,
        primes: PrimeKind,
        absent: Absent,
    ) -> Result<Self, ShardError> {
        let keys = keys_of(&folder.join(&config.keys), primes, absent.server).await?;
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
        Ok(Self { config, server, library, secure, ages, data, absent })
    }
}

/// The delay before a failed request of the shard itself is retried.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Ends the sessions of an earlier process whose clients have not returned in time.
async fn end_waiting(vault: Vault, patience: Duration) {
    if !vault.keeps_sessions() {
        return;
    }
    sleep(patience).await;
    loop {
        match vault.end_waiting().await {
            Ok(0) | Err(NetError::RemoteShutdown) => return,
            Ok(ended) => {
                tracing::info!(ended, "sessions ended: their clients have not returned");
                return;
            }
            Err(error) => {
                tracing::warn!(?error, "cannot end the sessions of an earlier process yet");
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// Connects to the bus between the shard's processes, now or later.
async fn bus(folder: &Path, config: &ShardConfig) -> Result<Arc<dyn Bus>, BusError> {
    let cluster = &config.cluster;
    let [seed, roots] = cluster.files(folder);
    Ok(Arc::new(Nats::connect(&cluster.bus, seed.as_deref(), roots.as_deref()).await?))
}

/// Binds the port for clients.
async fn client_port(config: &ShardConfig) -> Result<tcp::Listener, StartError> {
    let options = Options { capacity: config.capacity(), ..Options::default() };
    let listener = listen(config.listen, "--listen", options).await?;
    Ok(listener.trusting(&config.trusted_proxies))
}

/// The configuration, with the ports that the system chose where it says 0.
fn bound(
    config: &ShardConfig,
    listener: &tcp::Listener,
    status: Option<&TcpListener>,
) -> ShardConfig {
    let mut config = config.clone();
    if let Ok(address) = listener.local_addr() {
        config.listen = address;
    }
    if let Some(address) = status.and_then(|status| status.local_addr().ok()) {
        config.status = address.to_string();
    }
    config
}

/// Reads the servers' keys, or generates them on the first start.
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

/// Closes a connection if a message cannot be queued because the client does not read.
fn sent(result: Result<(), SendError>) -> Flow {
    match result {
        Ok(()) => Flow::Continue(()),
        Err(error) => {
            tracing::debug!(%error, "cannot send: closing the connection");
            Flow::Break(())
        }
    }
}
