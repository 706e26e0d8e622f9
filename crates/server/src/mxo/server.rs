//! A server with logins: auth, margin and world.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::sync::watch;
use worldwire_core::Error;
use worldwire_mxo::connection::{Connection, ServerConfig as ChannelConfig, Session};
use worldwire_mxo::replicator;
use worldwire_mxo::schema::Objects;
use worldwire_net::udp::AcceptDatagrams;
use worldwire_net::{Accept, Clock, Options, Peer, Signal, tcp, udp};

use super::client::Client;
use super::config::MxoConfig;
use super::keys::{KeysError, ServerKeys};
use super::login::{AuthAcceptor, Logins, MarginAcceptor, Page, router};
use super::page::views_router;
use super::realm::{GameSession, Realm, RealmError};
use super::scene::{Scene, SceneError};
use super::world::World;
use super::{Figures, Shared, hello_of, run, vector_seed};
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
    /// The RSA keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The scene.
    #[error("{}: {error}", file.display())]
    Scene {
        /// Its file.
        file: PathBuf,
        /// What is wrong with it.
        error: SceneError,
    },
    /// The world, or the tables of its objects.
    #[error(transparent)]
    World(#[from] Error),
    /// The data in the database.
    #[error(transparent)]
    Realm(#[from] RealmError),
}

/// A change to a configuration.
pub type Change = Box<dyn FnOnce(&mut MxoConfig) + Send>;

/// Options of a start that are not in `mxo.toml`.
#[derive(Default)]
pub struct Start {
    /// Changes to the configuration. The first start writes them to `mxo.toml`.
    pub change: Option<Change>,
    /// A key file to which the sessions of clients are appended.
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
    logins: Arc<Logins>,
    shared: Arc<Shared>,
    absent: Absent,
    has_new_keys: bool,
    lock: FolderLock,
}

impl MxoServer {
    /// Opens the server in a directory and binds its ports. Missing files are created: the
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
        let world = World::new(&objects, &scene, replication(&config))?;
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
            // This waits until the ports are known to be free.
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
        let shared = Arc::new(Shared::new(world, game.counts(), config.players(), clock));
        let logins = Logins::new(&config, keys, realm, clock, epoch, secrets).into();
        Ok(Self {
            config,
            auth,
            margin,
            game,
            status,
            operators,
            logins,
            shared,
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

    /// Whether a key was generated or signed, so that clients need the new `pubkey.dat`.
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
        &self.logins.realm
    }

    /// The world's metrics.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures.clone()
    }

    /// Serves clients until the signal, then disconnects them and closes the database. Also ends if
    /// another process takes over the database. Connections and the database are closed even after
    /// an error.
    pub async fn serve(self, signal: Signal) -> Result<(), ServeError> {
        let Self { config, auth, margin, game, status, operators, logins, shared, lock, .. } = self;
        let realm = logins.realm.clone();
        let (signal, _forwarder) = also_on(signal, realm.until_overtaken());
        let operators = tokio::spawn(operators.run());
        let page = Page {
            shared: Arc::clone(&shared),
            realm: realm.clone(),
            logins: Arc::clone(&logins),
            counts: [auth.counts(), margin.counts(), game.counts()],
            open: config.open,
        };
        let router = router(page.into()).merge(views_router(Arc::clone(&shared)));
        let page = Serving::start(status, router, signal.clone());
        let (ticks, ticked) = watch::channel(0);
        let players =
            PlayerAcceptor { shared: Arc::clone(&shared), logins: Arc::clone(&logins), ticked };
        let serving = async {
            // Players leave before their margin connections end.
            tokio::join!(
                auth.serve(Arc::new(AuthAcceptor(Arc::clone(&logins))), signal.clone()),
                margin.serve(Arc::new(MarginAcceptor(Arc::clone(&logins))), signal.clone()),
                game.serve(Arc::new(players), signal.clone()),
            )
        };
        let tick = Duration::from_millis(config.world.tick_milliseconds.into());
        // The world ticks until the last client is gone.
        tokio::select! {
            ((), (), ()) = serving => {}
            never = run(&shared, &ticks, tick) => match never {},
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

/// How objects are replicated.
fn replication(config: &MxoConfig) -> replicator::Config {
    let reach = f64::from(config.world.reach);
    replicator::Config {
        enter: reach,
        leave: reach * 1.2,
        tick_bytes: config.world.tick_bytes,
        clients: config.limits.players,
        ..replicator::Config::default()
    }
}

/// Accepts players who have loaded a character on the margin channel.
#[derive(Debug)]
struct PlayerAcceptor {
    shared: Arc<Shared>,
    logins: Arc<Logins>,
    ticked: watch::Receiver<u64>,
}

impl PlayerAcceptor {
    /// The session that the first datagram belongs to.
    fn session(&self, peer: Peer, opening: &[u8]) -> Option<Arc<GameSession>> {
        let hello = hello_of(opening)?;
        let session = self.logins.realm.session_of(&hello, peer.address.ip());
        match session {
            Ok(session) => Some(session),
            Err(refusal) => {
                self.logins.figures.refused_hello(peer.address, refusal);
                None
            }
        }
    }

    fn connection(&self, session: &GameSession, seed: &[u8; 16], now: Duration) -> Connection {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut config = ChannelConfig::new(since_1970.saturating_sub(self.shared.clock.now()));
        // The address is the margin connection's, so it is not forged.
        config.trusts_hellos = true;
        Connection::server(config, Session::new(session.id, session.key.clone(), seed), now)
    }
}

impl Accept for PlayerAcceptor {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, _: Duration) -> (Connection, Client) {
        // Without a hello, there is no session. An observer sends nothing.
        let mut connection = Connection::observer(Arc::default());
        worldwire_core::connection::Connection::close(&mut connection);
        (connection, Client::new(Arc::clone(&self.shared), peer, self.ticked.clone()))
    }
}

impl AcceptDatagrams for PlayerAcceptor {
    fn probe(&self, peer: Peer, now: Duration, opening: &[u8]) -> Option<Connection> {
        // A probe never sends anything.
        self.session(peer, opening).map(|session| self.connection(&session, &[0; 16], now))
    }

    fn accept_opening(&self, peer: Peer, now: Duration, opening: &[u8]) -> (Connection, Client) {
        // The session may have ended since the probe.
        let Some(session) = self.session(peer, opening) else { return self.accept(peer, now) };
        let connection = self.connection(&session, &vector_seed(), now);
        let client = Client::new(Arc::clone(&self.shared), peer, self.ticked.clone());
        (connection, client.of_player(session, self.logins.realm.clone()))
    }

    fn begins_with(&self, datagram: &[u8]) -> bool {
        hello_of(datagram).is_some()
    }
}
