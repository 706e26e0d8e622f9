//! A login server for KI's worlds: sessions, accounts, characters, the queue, and entry to
//! zones.
//!
//! ```no_run
//! use std::path::Path;
//! use worldwire_net::Stop;
//! use worldwire_server::ki::{LoginServer, Start};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // Creates the directory, its key and ki.toml if they are missing.
//! let server = LoginServer::open(Path::new("login"), Start::default()).await?;
//! println!("clients connect to {}", server.address()?);
//! let stop = Stop::new();
//! server.serve(stop.signal()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! * [`config`]: the settings in `ki.toml`;
//! * [`login`]: the login of one client, as a state machine without I/O; [`wire`]: requests and
//!   replies; [`Refusal`]: reasons for refusals;
//! * [`realm`]: the state that all connections share;
//! * [`connections`]: client connections;
//! * [`patch`]: the list of files for patch clients;
//! * [`admin`]: administration, whether the server is running or not;
//! * `peers`: other servers, which drop the sessions of clients that log in here;
//! * `figures`: metrics and the status page;
//! * [`Standby`]: a process that takes over a login server when the process that serves it fails.

pub mod admin;
pub mod config;
pub mod connections;
mod figures;
pub mod login;
pub mod patch;
mod peers;
pub mod realm;
mod refusal;
mod standby;
pub mod wire;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use worldwire_ki::message::FileListAnswer;
use worldwire_ki::schema::classes::{Classes, TypeLists};
use worldwire_ki::schema::{Mode, Protocols};
use worldwire_net::{Clock, Options, Signal, tcp, udp};

pub use config::{CONFIG, KiConfig, SQLITE_FILE};
pub use refusal::Refusal;
pub use standby::Standby;

use connections::{Acceptor, Connections};
use figures::{Figures, Page};
use login::Rules;
use peers::Peers;
use realm::{Realm, RealmError};

use crate::ending::{ServeError, also_on};
use crate::operators;
use crate::page::Serving;
use crate::secrets::Secrets;
use crate::start::{
    Absent, StartError, configuration, in_config, listen, listen_status, listen_udp, lock_database,
    lock_folder, open_store, or_close, save,
};
use crate::store::Store;
use crate::store::lock::FolderLock;

/// Why a login server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The directory, configuration, key, database or ports cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Definitions or type lists cannot be used. Names the file and what is wrong with it.
    #[error("{0}")]
    Definitions(String),
    /// The data in the database cannot be loaded.
    #[error(transparent)]
    Realm(#[from] RealmError),
}

/// A change to a configuration.
pub type Change = Box<dyn FnOnce(&mut KiConfig) + Send>;

/// Options for a start that are not in `ki.toml`.
#[derive(Default)]
pub struct Start {
    /// Changes to the configuration. The first start writes them to `ki.toml`.
    pub change: Option<Change>,
    /// A key file to which the secrets of logins are appended.
    pub secrets: Option<PathBuf>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// A login server that is ready to be served.
#[derive(Debug)]
pub struct LoginServer {
    config: KiConfig,
    connections: Arc<Connections>,
    listener: tcp::Listener,
    patch: Option<tcp::Listener>,
    udp: Option<udp::Listener>,
    status: Option<TcpListener>,
    operators: operators::Listener<Realm>,
    files: Option<Arc<FileListAnswer>>,
    absent: Absent,
    lock: FolderLock,
}

impl LoginServer {
    /// Opens the server in a directory and binds its ports. Creates whatever is missing: the
    /// directory, the key, and a commented `ki.toml`. On an error, nothing is left open.
    pub async fn open(folder: &Path, start: Start) -> Result<Self, ServerError> {
        let mut lock = lock_folder(folder).await?;
        let (config, absent) = configuration(folder, start.change.unwrap_or_else(no_change))?;
        lock_database(folder, &config, &mut lock).await.map_err(StartError::from)?;
        let parts = Parts::load(folder, config, absent, start.secrets.as_deref()).await?;
        let ports = Ports::bind(folder, &parts.config).await?;
        let status = parts.config.status_address().map_err(in_config::<KiConfig>(folder))?;
        let status = listen_status(status).await?;
        if absent.config {
            // Write the file only once the ports are known to be free.
            save(folder, &parts.config).await?;
        }
        let (store, key) = open_store(folder, &parts.config, &mut lock).await?;
        let known = ports.known(folder, &parts.config);
        let known = or_close(known, &*store).await?;
        let realm = Realm::open(Arc::clone(&store) as _, key, known, ports.clock).await;
        let realm = or_close(realm, &*store).await?;
        Self::assemble(folder, lock, parts, (ports, status), realm, &*store).await
    }

    /// A server that serves a realm on its ports.
    async fn assemble(
        folder: &Path,
        lock: FolderLock,
        parts: Parts,
        (ports, status): (Ports, Option<TcpListener>),
        realm: Realm,
        store: &dyn Store,
    ) -> Result<Self, ServerError> {
        let Parts { config, rules, protocols, secrets, absent } = parts;
        let Ports { listener, patch, udp, clock, epoch } = ports;
        let operators = operators::Listener::bind(folder, realm.clone()).await;
        let operators = or_close(operators, store).await.map_err(at(folder))?;
        let files = rules.files.clone();
        let connections = Connections::new(&config, rules, protocols.into(), realm, clock, epoch);
        let others = config.other_servers.iter().map(|other| folder.join(other)).collect();
        let connections = connections.with_secrets(secrets).with_peers(Peers::new(others));
        let connections = Arc::new(connections);
        Ok(Self {
            config,
            connections,
            listener,
            patch,
            udp,
            status,
            operators,
            files,
            absent,
            lock,
        })
    }

    /// Whether this is the first start.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.absent.server
    }

    /// Whether `ki.toml` was missing although this is not the first start. It has been rewritten,
    /// with default settings.
    #[must_use]
    pub fn had_no_config(&self) -> bool {
        self.absent.config && !self.absent.server
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &KiConfig {
        &self.config
    }

    /// The address for clients.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address for clients that use UDP, if there is one.
    #[must_use]
    pub fn udp_address(&self) -> Option<SocketAddr> {
        self.udp.as_ref()?.local_addr().ok()
    }

    /// The address of the status page, if there is one.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status.as_ref()?.local_addr().ok()
    }

    /// The reply to patch clients, if there is a patch service.
    #[must_use]
    pub fn files(&self) -> Option<&FileListAnswer> {
        self.files.as_deref()
    }

    /// The state that all connections share.
    #[must_use]
    pub fn realm(&self) -> &Realm {
        self.connections.realm()
    }

    /// Serves clients until the signal, then disconnects them and closes the database. Also stops
    /// if another process takes over the database. Connections and the database are closed even
    /// after an error.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { config, connections, listener, patch, udp, status, operators, lock, .. } = self;
        let realm = connections.realm().clone();
        let (signal, _forwarder) = also_on(signal, realm.until_overtaken(), || ());
        let operators = tokio::spawn(operators.run());
        let figures: Arc<Figures> = Arc::clone(&connections.figures);
        let shown =
            Page { figures, counts: listener.counts(), realm: realm.clone(), open: config.open };
        let page = Serving::start(status, figures::router(shown.into()), signal.clone());
        let acceptor = Arc::new(Acceptor(connections));
        let patch = async {
            if let Some(listener) = patch {
                listener.serve(Arc::clone(&acceptor), signal.clone()).await;
            }
        };
        let udp = async {
            if let Some(listener) = udp {
                listener.serve(Arc::clone(&acceptor), signal.clone()).await;
            }
        };
        tokio::join!(patch, udp, listener.serve(Arc::clone(&acceptor), signal.clone()));
        operators.abort();
        realm.close().await;
        drop(lock);
        if let Some(error) = realm.overtaken() {
            return Err(error.into());
        }
        Ok(page.ended().await?)
    }
}

/// The parts of a server other than its ports and its realm.
#[derive(Debug)]
struct Parts {
    config: KiConfig,
    rules: Rules,
    protocols: Protocols,
    secrets: Option<Secrets>,
    absent: Absent,
}

impl Parts {
    /// Reads the files in a server's directory and writes the list of files for patch clients.
    async fn load(
        folder: &Path,
        config: KiConfig,
        absent: Absent,
        secrets: Option<&Path>,
    ) -> Result<Self, ServerError> {
        let protocols = protocols(folder, &config)?;
        let rules = rules(folder, &config).await?;
        let secrets = match secrets {
            Some(path) => Some(Secrets::open(path).map_err(at(path))?),
            None => None,
        };
        Ok(Self { config, rules, protocols, secrets, absent })
    }
}

/// The ports for clients, and the clock of their connections.
#[derive(Debug)]
struct Ports {
    listener: tcp::Listener,
    patch: Option<tcp::Listener>,
    udp: Option<udp::Listener>,
    clock: Clock,
    /// The clock's zero, in time since 1970.
    epoch: Duration,
}

impl Ports {
    async fn bind(folder: &Path, config: &KiConfig) -> Result<Self, StartError> {
        let clock = Clock::start();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = Options { capacity: config.capacity(), clock, ..Options::default() };
        let listener = listen(config.listen, "--listen", options).await?;
        let listener = listener.trusting(&config.trusted_proxies);
        let in_config = in_config::<KiConfig>;
        let patch = match config.patch_address().map_err(in_config(folder))? {
            Some(address) => {
                let listener = listen(address, "patch_listen in ki.toml", options).await?;
                Some(listener.trusting(&config.trusted_proxies))
            }
            None => None,
        };
        let udp = match config.udp_address().map_err(in_config(folder))? {
            Some(address) => Some(listen_udp(address, "--udp-listen", options).await?),
            None => None,
        };
        Ok(Self { listener, patch, udp, clock, epoch })
    }

    /// The configuration, with the ports of the waiting room if there is one.
    fn known(&self, folder: &Path, config: &KiConfig) -> Result<KiConfig, StartError> {
        let at = crate::start::at;
        let mut known = config.clone();
        if known.zone.address.is_empty() {
            // The waiting room uses the same ports.
            known.zone.tcp_port = self.listener.local_addr().map_err(at(folder))?.port();
            if let Some(udp) = &self.udp {
                known.zone.udp_port = udp.local_addr().map_err(at(folder))?.port();
            }
        }
        Ok(known)
    }
}

/// A change that leaves the configuration as it is.
fn no_change() -> Change {
    Box::new(|_| ())
}

/// Adds a path to an I/O error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> ServerError {
    let at = crate::start::at(path);
    |error| at(error).into()
}

/// The client's message definitions, on top of the built-in ones.
fn protocols(folder: &Path, config: &KiConfig) -> Result<Protocols, ServerError> {
    let mut protocols = Protocols::built_in();
    if config.messages.as_os_str().is_empty() {
        return Ok(protocols);
    }
    let path = folder.join(&config.messages);
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(&path).map_err(at(&path))? {
            let file = entry.map_err(at(&path))?.path();
            files.extend(Some(file).filter(|file| is_messages(file)));
        }
        files.sort();
    } else {
        files.push(path.clone());
    }
    if files.is_empty() {
        let problem = "contains no message XML (*Messages*.xml)";
        return Err(ServerError::Definitions(format!("{}: {problem}", path.display())));
    }
    for file in files {
        let bytes = fs::read(&file).map_err(at(&file))?;
        let diagnostics = protocols.add(&file.to_string_lossy(), &bytes, Mode::Lenient);
        let error =
            |one: &&worldwire_core::Diagnostic| one.severity() == worldwire_core::Severity::Error;
        if let Some(wrong) = diagnostics.iter().find(error) {
            return Err(ServerError::Definitions(wrong.to_string()));
        }
    }
    Ok(protocols)
}

fn is_messages(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.to_ascii_lowercase().ends_with(".xml") && name.contains("Messages")
}

async fn rules(folder: &Path, config: &KiConfig) -> Result<Rules, ServerError> {
    let files = folder.join(&config.patch.folder);
    let (prefix, version) = (config.url_prefix(), config.patch.version);
    let list = match files.is_dir() {
        true => {
            let made = spawn_blocking(move || patch::publish(&files, &prefix, version)).await;
            let made = made.map_err(|error| at(folder)(io::Error::other(error)))?;
            Some(made.map_err(|(path, error)| StartError::Io { path, error })?.into())
        }
        false => None,
    };
    let classes = classes(folder, config)?.map(Arc::new);
    Ok(Rules { classes, files: list, ..Rules::of(config) })
}

/// The type lists, if the configuration names any.
fn classes(folder: &Path, config: &KiConfig) -> Result<Option<Classes>, ServerError> {
    let mut lists = TypeLists::new();
    for list in &config.types {
        let path = folder.join(list);
        let bytes = fs::read(&path).map_err(at(&path))?;
        if let Err(error) = lists.add(&path.to_string_lossy(), &bytes) {
            return Err(ServerError::Definitions(error.to_string()));
        }
    }
    Ok(Some(lists.compile()).filter(|_| !config.types.is_empty()))
}
