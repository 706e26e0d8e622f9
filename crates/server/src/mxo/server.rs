//! A server with logins: auth, margin and world.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use worldwire_core::Error;
use worldwire_mxo::schema::Objects;
use worldwire_net::{Clock, Options, Signal, tcp, udp};

use super::Figures;
use super::config::MxoConfig;
use super::keys::{KeysError, ServerKeys};
use super::login::{Page, router};
use super::page::views_router;
use super::realm::{Realm, RealmError};
use super::scene::{Scene, SceneError};
use super::services::Services;
use super::worlds::Worlds;
use crate::ending::{ServeError, also_on};
use crate::folder::blocking;
use crate::operators;
use crate::page::Serving;
use crate::secrets::Secrets;
use crate::start::{
    Absent, StartError, at, configuration, in_config, listen, listen_status, listen_udp,
    lock_database, lock_folder, open_store, or_close, save,
};
use crate::store::lock::FolderLock;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The directory, configuration, key, database or ports are unusable.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The RSA keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The scene cannot be used.
    #[error("{}: {error}", file.display())]
    Scene {
        /// The scene's file.
        file: PathBuf,
        /// What is wrong with it.
        error: SceneError,
    },
    /// The world, or the tables of its objects, cannot be used.
    #[error(transparent)]
    World(#[from] Error),
    /// The data in the database cannot be loaded.
    #[error(transparent)]
    Realm(#[from] RealmError),
}

/// A change to a configuration.
pub type Change = Box<dyn FnOnce(&mut MxoConfig) + Send>;

/// Options for a start that are not in `mxo.toml`.
#[derive(Default)]
pub struct Start {
    /// Changes to the configuration. The first start writes them to `mxo.toml`.
    pub change: Option<Change>,
    /// A key file to which clients' session keys are appended.
    pub secrets: Option<PathBuf>,
    /// Classes and goobjs; `None` for the built-in ones.
    pub objects: Option<Arc<Objects>>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

/// A server with logins, ready to serve.
#[derive(Debug)]
pub struct MxoServer {
    config: MxoConfig,
    auth: tcp::Listener,
    margin: tcp::Listener,
    game: udp::Listener,
    status: Option<TcpListener>,
    operators: operators::Listener<Realm>,
    services: Services,
    absent: Absent,
    has_new_keys: bool,
    lock: FolderLock,
}

impl MxoServer {
    /// Opens the server in a directory and binds its ports. Creates whatever is missing: the
    /// directory, the keys, and a commented `mxo.toml`. On an error, nothing is left open.
    pub async fn open(folder: &Path, start: Start) -> Result<Self, ServerError> {
        let mut lock = lock_folder(folder).await?;
        let (config, absent) = configuration(folder, |config: &mut MxoConfig| {
            if let Some(change) = start.change {
                change(config);
            }
        })?;
        lock_database(folder, &config, &mut lock).await.map_err(StartError::from)?;
        let objects = start.objects.unwrap_or_else(|| Arc::new(Objects::built_in()));
        let scene = scene(folder, &config, &objects)?;
        let worlds = Worlds::new(&config, &objects, &scene)?;
        let secrets = match &start.secrets {
            Some(path) => Some(Arc::new(Secrets::open(path).map_err(at(path))?)),
            None => None,
        };
        let clock = Clock::start();
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let options = Options { capacity: config.capacity(), clock, ..Options::default() };
        let auth = listen(config.auth_listen, "--auth-listen", options).await?;
        let margin = listen(config.margin_listen, "--margin-listen", options).await?;
        let [auth, margin] =
            [auth, margin].map(|listener| listener.trusting(&config.trusted_proxies));
        let options = Options { capacity: config.players(), ..options };
        let game = listen_udp(config.game_listen, "--game-listen", options).await?;
        let status = config.status_address().map_err(in_config::<MxoConfig>(folder))?;
        let status = listen_status(status).await?;
        if absent.config {
            // Write the file only once the ports are known to be free.
            save(folder, &config).await?;
        }
        let (path, settings) = (folder.to_owned(), config.keys.clone());
        let keys = blocking(move || ServerKeys::load_or_create(&path, &settings)).await?;
        let has_new_keys = keys.are_new;
        let (store, key) = open_store(folder, &config, &mut lock).await?;
        let realm = Realm::open(Arc::clone(&store) as _, key, config.clone(), clock).await;
        let realm = or_close(realm, &*store).await?;
        let operators = operators::Listener::bind(folder, realm.clone()).await;
        let operators = or_close(operators, &*store).await.map_err(at(folder))?;
        let services = Services::with_secrets(&config, worlds, keys, realm, clock, epoch, secrets);
        Ok(Self {
            config,
            auth,
            margin,
            game,
            status,
            operators,
            services,
            absent,
            has_new_keys,
            lock,
        })
    }

    /// Whether this is the first start.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.absent.server
    }

    /// Whether `mxo.toml` was missing although this is not the first start. It has been rewritten,
    /// with default settings.
    #[must_use]
    pub fn had_no_config(&self) -> bool {
        self.absent.config && !self.absent.server
    }

    /// Whether a key was generated or signed. If so, clients need the new `pubkey.dat`.
    #[must_use]
    pub fn has_new_keys(&self) -> bool {
        self.has_new_keys
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &MxoConfig {
        &self.config
    }

    /// The address of the auth server.
    pub fn auth_address(&self) -> io::Result<SocketAddr> {
        self.auth.local_addr()
    }

    /// The address of the margin server.
    pub fn margin_address(&self) -> io::Result<SocketAddr> {
        self.margin.local_addr()
    }

    /// The address of the world, over UDP.
    pub fn game_address(&self) -> io::Result<SocketAddr> {
        self.game.local_addr()
    }

    /// The address of the status page, if there is one.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status.as_ref()?.local_addr().ok()
    }

    /// The state that all connections share.
    #[must_use]
    pub fn realm(&self) -> &Realm {
        self.services.realm()
    }

    /// The world's metrics.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.services.shared.figures.clone()
    }

    /// Serves clients until the signal, then disconnects them and closes the database. Also stops
    /// if another process takes over the database. Connections and the database are closed even
    /// after an error.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { config, auth, margin, game, status, operators, services, lock, .. } = self;
        let realm = services.realm().clone();
        let (signal, _forwarder) = also_on(signal, realm.until_overtaken(), || ());
        let operators = tokio::spawn(operators.run());
        let page = Page {
            shared: Arc::clone(&services.shared),
            realm: realm.clone(),
            logins: Arc::clone(&services.logins),
            counts: [auth.counts(), margin.counts(), game.counts()],
            open: config.open,
        };
        let router = router(page.into()).merge(views_router(Arc::clone(&services.shared)));
        let page = Serving::start(status, router, signal.clone());
        let serving = async {
            // Players leave before their margin connections end.
            tokio::join!(
                auth.serve(Arc::new(services.auth()), signal.clone()),
                margin.serve(Arc::new(services.margin()), signal.clone()),
                game.serve(Arc::new(services.game()), signal.clone()),
            )
        };
        // The world keeps ticking until the last client is gone.
        tokio::select! {
            ((), (), ()) = serving => {}
            never = services.run() => match never {},
        }
        operators.abort();
        realm.close().await;
        drop(lock);
        if let Some(error) = realm.overtaken() {
            return Err(error.into());
        }
        Ok(page.ended().await?)
    }
}

/// The scene that the configuration names, or the built-in one.
fn scene(folder: &Path, config: &MxoConfig, objects: &Objects) -> Result<Scene, ServerError> {
    let file = &config.world.scene;
    let (file, scene) = match file.as_os_str().is_empty() {
        true => (folder.to_owned(), Scene::built_in(objects)),
        false => {
            let file = folder.join(file);
            let scene = Scene::read(&file, objects);
            (file, scene)
        }
    };
    scene.map_err(|error| ServerError::Scene { file, error })
}
