//! A login server of KI's worlds: sessions, accounts, characters, the queue, and the way to a zone.
//!
//! ```no_run
//! use std::path::Path;
//! use worldwire_net::Stop;
//! use worldwire_server::ki::{LoginServer, Start};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // Makes the folder, its key and ki.toml if they are missing.
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
//! * [`config`], which is `ki.toml`;
//! * [`login`]: the login of one client, as a state machine without IO; [`wire`]: what clients say
//!   and servers answer; [`Refusal`]: why not;
//! * [`realm`]: what all connections share;
//! * [`reception`]: the connections;
//! * [`patch`]: the list of files for patch clients;
//! * [`admin`]: what operators do, while the server runs and while it does not;
//! * `figures`: what the status page shows; `secrets`: what captures are read with.

pub mod admin;
pub mod config;
mod figures;
pub mod login;
pub mod patch;
pub mod realm;
pub mod reception;
mod refusal;
mod secrets;
pub mod wire;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use worldwire_ki::message::FileListAnswer;
use worldwire_ki::schema::classes::{Classes, TypeLists};
use worldwire_ki::schema::{Mode, Protocols};
use worldwire_net::{Clock, Options, Signal, tcp};

pub use config::KiConfig;
pub use refusal::Refusal;

use figures::{Figures, Page};
use login::Rules;
use realm::{Realm, RealmError};
use reception::{Door, Reception};
use secrets::Secrets;

use crate::config::{ConfigError, database};
use crate::ending::{ServeError, also_on};
use crate::folder::write_secret;
use crate::operators;
use crate::page::{self, Serving};
use crate::store::lock::FolderLock;
use crate::store::seal::{KEY_FILE, KeyError, ServerKey};
use crate::store::{self, StoreError};

/// The name of the configuration in a server's folder.
pub const CONFIG: &str = "ki.toml";
/// The file of a SQLite database in a server's folder.
pub const SQLITE_FILE: &str = "login.sqlite";

/// Why a login server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
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
    /// Definitions or type lists: the file, and what is wrong with it.
    #[error("{0}")]
    Definitions(String),
    /// Another process has the folder.
    #[error("{}: a server runs here already", .0.display())]
    Taken(PathBuf),
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
    Realm(#[from] RealmError),
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

/// A change to a configuration.
pub type Change = Box<dyn FnOnce(&mut KiConfig) + Send>;

/// What a command line says beside `ki.toml`.
#[derive(Default)]
pub struct Start {
    /// Changes to the configuration. On the first start they are written to `ki.toml`.
    pub change: Option<Change>,
    /// The file that the secrets of logins are appended to.
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
    reception: Arc<Reception>,
    listener: tcp::Listener,
    patch: Option<tcp::Listener>,
    status: Option<TcpListener>,
    operators: operators::Listener<Realm>,
    files: Option<Arc<FileListAnswer>>,
    is_new: bool,
    lock: FolderLock,
}

impl LoginServer {
    /// Opens the server in a folder, and its ports. What is missing is made: the folder, the key, a
    /// commented `ki.toml`.
    ///
    /// # Errors
    /// As [`ServerError`] says.
    pub async fn open(folder: &Path, start: Start) -> Result<Self, ServerError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let lock = FolderLock::take(folder).map_err(at(folder))?;
        let lock = lock.ok_or_else(|| ServerError::Taken(folder.to_owned()))?;
        let file = folder.join(CONFIG);
        let wrong = |error| ServerError::Config { path: file.clone(), error };
        let config = crate::config::read(&file, KiConfig::parse).map_err(wrong)?;
        let is_new = config.is_none();
        let mut config = config.unwrap_or_default();
        if let Some(change) = start.change {
            change(&mut config);
        }
        config.check().map_err(wrong)?;

        let protocols = protocols(folder, &config)?;
        let rules = rules(folder, &config).await?;
        let files = rules.files.clone();
        let secrets = match &start.secrets {
            Some(path) => Some(Secrets::open(path).map_err(at(path))?),
            None => None,
        };
        let clock = Clock::start();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = Options { capacity: config.capacity(), clock, ..Options::default() };
        let listener = listen(config.listen, "--listen", options).await?;
        let patch = match config.patch_address().map_err(wrong)? {
            Some(address) => Some(listen(address, "patch_listen in ki.toml", options).await?),
            None => None,
        };
        let status = page::bind(config.status_address().map_err(wrong)?).await;
        let setting = "--status";
        let status =
            status.map_err(|(address, error)| ServerError::Listen { address, setting, error })?;
        if is_new {
            // Not before the ports are known to be free. The URL of a database may hold a password.
            write_secret(&file, config.commented().as_bytes()).map_err(at(&file))?;
        }
        let url = database(&config.database);
        let store = store::open_file(&folder.join(SQLITE_FILE), url).await?;
        let key = folder.join(KEY_FILE);
        if !key.exists() && !store.accounts().await?.is_empty() {
            return Err(ServerError::KeyLost(key));
        }
        let key = ServerKey::load_or_create(&key)?;
        let mut known = config.clone();
        if known.zone.address.is_empty() {
            // The waiting room is behind the same door.
            known.zone.tcp_port = listener.local_addr().map_err(at(folder))?.port();
        }
        let realm = Realm::open(store, key, known, clock).await?;
        let operators = operators::Listener::bind(folder, realm.clone()).map_err(at(folder))?;
        let reception = Reception::new(&config, rules, protocols.into(), realm, clock, epoch);
        let reception = Arc::new(reception.with_secrets(secrets));
        Ok(Self { config, reception, listener, patch, status, operators, files, is_new, lock })
    }

    /// Whether this is the first start: there was no `ki.toml`.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &KiConfig {
        &self.config
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

    /// What patch clients are told, if there is a patch service.
    #[must_use]
    pub fn files(&self) -> Option<&FileListAnswer> {
        self.files.as_deref()
    }

    /// What all connections share.
    #[must_use]
    pub fn realm(&self) -> &Realm {
        self.reception.realm()
    }

    /// Serves clients until the signal comes, then says goodbye to them, and closes the database.
    /// Ends by itself if another process takes over the database.
    ///
    /// # Errors
    /// As [`ServeError`] says.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { config, reception, listener, patch, status, operators, lock, .. } = self;
        let realm = reception.realm().clone();
        let (signal, _forwarder) = also_on(signal, realm.until_overtaken());
        let operators = tokio::spawn(operators.run());
        let figures: Arc<Figures> = Arc::clone(&reception.figures);
        let shown =
            Page { figures, counts: listener.counts(), realm: realm.clone(), open: config.open };
        let page = Serving::start(status, figures::router(shown.into()), signal.clone());
        let door = Arc::new(Door(reception));
        let patch = async {
            if let Some(listener) = patch {
                listener.serve(Arc::clone(&door), signal.clone()).await;
            }
        };
        tokio::join!(patch, listener.serve(Arc::clone(&door), signal.clone()));
        operators.abort();
        realm.close().await;
        drop(lock);
        if let Some(error) = realm.overtaken() {
            return Err(error.into());
        }
        Ok(page.ended().await?)
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ServerError {
    let path = path.to_owned();
    |error| ServerError::Io { path, error }
}

async fn listen(
    address: SocketAddr,
    setting: &'static str,
    options: Options,
) -> Result<tcp::Listener, ServerError> {
    let bound = tcp::Listener::bind(address, options).await;
    bound.map_err(|error| ServerError::Listen { address, setting, error })
}

/// The definitions: those of the client over what is built in.
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
        let problem = "wanted message XML (*Messages*.xml), found none";
        return Err(ServerError::Definitions(format!("{}: {problem}", path.display())));
    }
    for file in files {
        let bytes = fs::read(&file).map_err(at(&file))?;
        let said = protocols.add(&file.to_string_lossy(), &bytes, Mode::Lenient);
        let error =
            |one: &&worldwire_core::Diagnostic| one.severity() == worldwire_core::Severity::Error;
        if let Some(wrong) = said.iter().find(error) {
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
            Some(made.map_err(|(path, error)| ServerError::Io { path, error })?.into())
        }
        false => None,
    };
    let classes = classes(folder, config)?.map(Arc::new);
    Ok(Rules { classes, files: list, ..config.rules() })
}

/// The type lists, if there are any.
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
