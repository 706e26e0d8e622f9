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
//! * `hosts`: the numbers and addresses of ages; `game`: the running ages with their small games,
//!   and the [`Outbox`] of each client;
//! * `status`: the status page; `figures`: metrics; `own_process`: this process, described for
//!   operators;
//! * [`Standby`]: a process that takes over a shard when the process that serves it fails or hands
//!   it over ([`Handover`]); `cluster`: several processes that serve clients of one shard.

pub mod admin;
pub mod auth;
pub(crate) mod cluster;
pub mod config;
mod dispatch;
mod figures;
pub mod file;
mod game;
mod gatekeeper;
mod handover;
mod hosts;
mod joining;
pub mod keys;
pub mod migration;
mod missing;
mod own_process;
mod parts;
mod shared;
mod standby;
mod status;
pub mod vault;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use worldwire_core::connection::SendError;
use worldwire_net::{Flow, Options, Signal, tcp};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::types::NetError;

pub use cluster::{BusError, BusUser, BusUserError, nats_config, new_bus_key};
pub use config::{CONFIG, SQLITE_FILE, ShardConfig};
pub use game::{GameRandom, Outbox, hand_out};
pub use handover::Handover;
pub use standby::Standby;
pub use vault::{ClearError, Cleared};

use admin::{ClusterControl, Control, Relay};
use cluster::{
    AgeReport, Bus, Joining, KeyDigests, Leader, LeaderHandle, LeadersSettings, Leading, NodeInfo,
    NodeKind, RemoteOperators, Successors, other_leader,
};
use config::{Role, Settings};
use dispatch::Dispatcher;
use game::Games;
use joining::{bus, node_info, not_led, passports, vault_at_leader};
use keys::KeysError;
use parts::Parts;
use shared::Shared;
use vault::{Vault, VaultError};

use crate::ending::{ServeError, also_on};
use crate::operators;
use crate::page::Serving;
use crate::start::{
    Absent, StartError, at, configuration, in_config, listen, listen_status, lock_database,
    lock_folder, open_store, or_close, save,
};
use crate::store::Store;
use crate::store::lease::SharedStore;
use crate::store::lock::FolderLock;

/// Why a shard cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The directory, configuration, key, database or ports cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The servers' keys cannot be used.
    #[error("{}: {error}", path.display())]
    Keys {
        /// The key file.
        path: PathBuf,
        /// What is wrong with it.
        error: KeysError,
    },
    /// The directory with files for clients cannot be used.
    #[error(transparent)]
    Library(#[from] file::LibraryError),
    /// The servers' keys are missing, and this is not the first start.
    #[error("{path}: file is missing, and clients of this shard need its keys; restore it, or create \
        new ones with `worldwire uru keys generate -o {path}` and give clients the lines that \
        `worldwire uru keys convert {path} --to server-ini` prints", path = .0.display())]
    KeysLost(PathBuf),
    /// The bus between the shard's processes cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The database does not accept what standbys must know about this process.
    #[error("the database does not accept changes ({0:?}); see its log")]
    Untold(NetError),
    /// The data in the database cannot be loaded.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// A shard that is ready to be served.
#[derive(Debug)]
pub struct Shard {
    /// The configuration as it was read.
    config: Arc<ShardConfig>,
    shared: Arc<Shared>,
    listener: tcp::Listener,
    status: Option<TcpListener>,
    /// Handles operators' requests; `None` on a node.
    operators: Option<operators::Listener<Control>>,
    /// Handles operators' requests on a node, by passing them on to the process that has the vault.
    relay: Option<operators::Listener<Relay>>,
    /// The bus to other processes.
    bus: Option<Arc<dyn Bus>>,
    /// The random number of this process on the bus.
    process: u64,
    /// What this process needs to lead others, if there is a bus.
    leading: Option<Leading>,
    leader: Option<LeaderHandle>,
    handover: Handover,
    data: PathBuf,
    absent: Absent,
    lock: FolderLock,
}

impl Shard {
    /// Opens the shard in a directory and binds its ports. Creates whatever is missing: the
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
        if !config.cluster.has(Role::Vault) {
            return Self::open_node(folder, lock, config, random).await;
        }
        lock_database(folder, &config, &mut lock).await.map_err(StartError::from)?;
        let listener = client_port(&config).await?;
        let status = config.status_address().map_err(in_config::<ShardConfig>(folder))?;
        let status = listen_status(status).await?;
        // This comes before the creation of the database: if a first start is interrupted, the next
        // one counts as a first start again.
        let parts = Parts::load(folder, config, primes, absent).await?;
        if absent.config {
            // Write the file only once the ports are known to be free.
            save(folder, &parts.config).await?;
        }
        let (store, key) = open_store(folder, &parts.config, &mut lock).await?;
        let vault = Vault::open(Arc::clone(&store), key, parts.config.vault()).await;
        let vault = or_close(vault, &*store).await?;
        let ports = (listener, status);
        Self::assemble(folder, lock, parts, ports, vault, (&*store, None), random).await
    }

    /// Opens a node, which serves clients of a shard whose vault is in another process.
    async fn open_node(
        folder: &Path,
        lock: FolderLock,
        config: ShardConfig,
        random: GameRandom,
    ) -> Result<Self, ShardError> {
        let keys = folder.join(&config.keys);
        if !keys.exists() {
            return Err(StartError::Lacks(keys).into());
        }
        if config.cluster.has(Role::Age) {
            // Without these files, ages would behave differently here than in other processes.
            let parts = ["ages", "secure/SDL"].map(|part| folder.join(&config.data).join(part));
            let lacking: Vec<_> = parts.into_iter().filter(|part| !part.exists()).collect();
            if !lacking.is_empty() {
                return Err(StartError::LacksAgeFiles(lacking).into());
            }
        }
        let listener = client_port(&config).await?;
        let status = config.status_address().map_err(in_config::<ShardConfig>(folder))?;
        let status = listen_status(status).await?;
        let absent = Absent { server: false, config: false };
        let parts = Parts::load(folder, config, PrimeKind::Safe, absent).await?;
        let process = getrandom::u64().map_err(io::Error::other).map_err(at(folder))?;
        let bus = bus(folder, &parts.config).await?;
        let settings = Settings::new(parts.config.clone());
        let joining = Joining {
            node: parts.config.cluster.node_name(),
            kind: NodeKind::of(&parts.config.cluster.roles),
            process,
            office: passports(folder, &parts, false),
            settings: LeadersSettings::Taken(settings.clone()),
        };
        let vault = vault_at_leader(Arc::clone(&bus), joining, &parts.config).await?;
        let place = place(&parts, &listener, status.as_ref());
        let relay = operators::Listener::bind(folder, Relay::node(vault.clone(), place)).await;
        let relay = Some(relay.map_err(at(folder))?);
        let Parts { config, server, library, secure, ages, data, absent } = parts;
        let games = Games::new(vault.clone(), ages, settings.clone(), random);
        let shared = Shared::new((settings, server, library, secure), vault, games);
        Ok(Self {
            config: config.into(),
            shared,
            listener,
            status,
            operators: None,
            relay,
            bus: Some(bus),
            process,
            leading: None,
            leader: None,
            handover: Handover::default(),
            data,
            absent,
            lock,
        })
    }

    /// A shard that serves a vault on its ports. `watched` is its database, if standbys may watch
    /// it.
    async fn assemble(
        folder: &Path,
        lock: FolderLock,
        parts: Parts,
        (listener, status): (tcp::Listener, Option<TcpListener>),
        vault: Vault,
        (store, watched): (&dyn Store, Option<Arc<dyn SharedStore>>),
        random: GameRandom,
    ) -> Result<Self, ShardError> {
        let place = place(&parts, &listener, status.as_ref());
        let office = passports(folder, &parts, false);
        let Parts { config, server, library, secure, ages, data, absent } = parts;
        if !config.database.is_empty() {
            let keys = KeyDigests::of(&server.keys).short();
            let told = vault.introduce(keys, config.auth.restricted, &config.welcome).await;
            or_close(told.map_err(ShardError::Untold), store).await?;
        }
        let settings = Settings::new(config);
        let config = settings.current();
        let games = Games::new(vault.clone(), ages, settings.clone(), random);
        let shared = Shared::new((settings, server, library, secure), vault, games);
        let (leader, inbox) = LeaderHandle::new();
        let (own, handover) = (shared.own_process(), Handover::default());
        let cluster = ClusterControl { own, leader, store: watched, handover };
        let control = Control::running(folder, &shared, place, cluster.clone());
        let remote = config.cluster.node_commands.then(|| RemoteOperators::new(control.clone()));
        let operators = operators::Listener::bind(folder, control).await;
        let operators = or_close(operators, store).await.map_err(at(folder))?;
        let bus = match config.cluster.bus.is_empty() {
            true => None,
            false => Some(or_close(bus(folder, &config).await, store).await?),
        };
        // A standby has been listening all the time, so it does not need to check.
        if let Some(bus) = bus.as_ref().filter(|_| cluster.store.is_none()) {
            let (name, shard) = (&config.cluster.name, shared.vault.identity());
            let free = or_close(other_leader(&**bus, name, shard).await, store).await?;
            or_close(not_led(free, &config, shard), store).await?;
        }
        let process = getrandom::u64().map_err(io::Error::other).map_err(at(folder));
        let process = or_close(process, store).await?;
        let successors = cluster.store.clone();
        let successors = successors.map(|store| Successors::new(store, cluster.handover.clone()));
        let leading = Leading { operators: remote, inbox, successors, office };
        let leading = bus.is_some().then_some(leading);
        Ok(Self {
            config,
            shared,
            listener,
            status,
            operators: Some(operators),
            relay: None,
            bus,
            process,
            leading,
            leader: Some(cluster.leader),
            handover: cluster.handover,
            data,
            absent,
            lock,
        })
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

    /// The configuration. A node uses the leader's settings instead of some of these.
    #[must_use]
    pub fn config(&self) -> &ShardConfig {
        &self.config
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
        &self.shared.keys
    }

    /// Whether this process was asked to hand over the shard to a standby.
    #[must_use]
    pub fn handover(&self) -> Handover {
        self.handover.clone()
    }

    /// The host and port to which clients connect.
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

    /// A description, for the operator, of what is missing from the data directory.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        missing::missing(&self.data, &self.config().cluster.roles)
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
    /// stops if another process takes over the database, or if this process should [hand
    /// over](Self::handover) the shard. Connections and the vault are closed even after an error.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { config, shared, listener, status, operators, relay, bus, process, .. } = self;
        let Self { leading, leader, handover, lock, .. } = self;
        let (vault, games) = (shared.vault.clone(), shared.games.clone());
        let (handed_over, nodes) = (vault.clone(), games.nodes().clone());
        let (overtaken, requested) = (vault.until_overtaken(), handover.requested());
        let end = async {
            tokio::select! {
                () = overtaken => {}
                () = requested => {}
            }
        };
        let (signal, _forwarder) = also_on(signal, end, move || {
            handed_over.hand_over();
            nodes.stop();
        });
        let reconnections = Arc::clone(&shared.reconnections);
        let operators = operators.map(|operators| tokio::spawn(operators.run()));
        let relay = relay.map(|relay| tokio::spawn(relay.run()));
        let cluster = &config.cluster;
        let mut tasks = Vec::new();
        if let Some(bus) = bus.clone().filter(|_| cluster.has(Role::Age)) {
            tasks.extend(games.route_over(bus, &cluster.name, process));
        }
        let info = vault.link().map(|_| node_info(&config));
        if let (Some(link), Some(info)) = (vault.link(), info.clone()) {
            tasks.push(tokio::spawn(games.clone().serve_leader(link.clone(), info)));
            tasks.push(tokio::spawn(shared.own_process().keep_described(vault.clone())));
        }
        let leading = match bus.zip(leading) {
            Some((bus, leading)) => {
                let (name, epoch) = (&cluster.name, vault.epoch());
                Some(Leader::start(bus, leading, name, epoch, Arc::clone(&shared)).await)
            }
            None => None,
        };
        // Without the bus, this process still serves its own clients.
        let leading = leading.transpose().unwrap_or_else(|error| {
            tracing::error!(%error, "no other process can serve clients of this shard");
            None
        });
        if leader.is_none() && vault.link().is_none() {
            // These placements belong to nodes that this process led before. As long as they exist,
            // its own ages cannot be saved.
            if let Err(error) = vault.end_all_placements().await {
                tracing::warn!(?error, "cannot end old placements of ages");
            }
        }
        let shown = status::Page {
            settings: shared.settings().clone(),
            figures: Arc::clone(&shared.figures),
            counts: listener.counts(),
            vault: vault.clone(),
            games: games.clone(),
            is_front: cluster.has(Role::Front),
            leader,
        };
        if vault.link().is_none() {
            tasks.push(tokio::spawn(games.clone().clean_up()));
        }
        let waiting = tokio::spawn(end_waiting(vault.clone(), config.patience()));
        let page = Serving::start(status, status::router(shown.into()), signal.clone());
        listener.serve(Arc::new(Dispatcher(shared)), signal).await;
        operators.into_iter().chain(relay).for_each(|task| task.abort());
        waiting.abort();
        reconnections.close();
        if let Some(leading) = leading {
            leading.close().await;
        }
        let lost = games.close().await;
        tasks.iter().for_each(JoinHandle::abort);
        if let (Some(link), Some(info)) = (vault.link(), info) {
            // Tell the leader to stop choosing this node. If this message is lost, the leader
            // notices that nobody answers.
            let info = NodeInfo { runs_ages: false, ..info };
            link.report_ages(AgeReport::Info { info });
            if lost == 0 {
                link.stop();
            }
            let _ = timeout(GOODBYE, link.flush()).await;
        }
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

/// How long sending a node's last reports may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// The delay before a failed request of the shard itself is retried.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Ends the sessions of an earlier process whose clients have not returned in time.
async fn end_waiting(vault: Vault, patience: Duration) {
    if !vault.keeps_sessions() {
        return;
    }
    sleep(patience).await;
    let mut is_news = true;
    loop {
        match vault.end_waiting().await {
            Ok(0) | Err(NetError::RemoteShutdown) => return,
            Ok(ended) => {
                tracing::info!(ended, "sessions ended: their clients did not return");
                return;
            }
            Err(error) => {
                if std::mem::take(&mut is_news) {
                    tracing::warn!(?error, "cannot end the sessions of an earlier process yet");
                }
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// The text for a client's `server.ini`, and the address for clients.
fn place(
    parts: &Parts,
    listener: &tcp::Listener,
    status: Option<&TcpListener>,
) -> (String, SocketAddr) {
    let known = bound(&parts.config, listener, status);
    (keys::server_ini(&parts.server.keys, &known), known.listen)
}

/// Binds the port for clients.
async fn client_port(config: &ShardConfig) -> Result<tcp::Listener, StartError> {
    let options = Options { capacity: config.capacity(), ..Options::default() };
    let listener = listen(config.listen, "--listen", options).await?;
    Ok(listener.trusting(&config.trusted_proxies))
}

/// The configuration, in which each port 0 is replaced by the port that the system chose.
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
