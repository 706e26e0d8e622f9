//! Servers for The Matrix Online: [`MxoServer`] has logins, accounts and characters; [`OpenWorld`]
//! is only a small world over UDP, in which clients walk among the objects of a scene.
//!
//! ```no_run
//! use worldwire_net::Stop;
//! use worldwire_server::mxo::{OpenWorld, Scene, WorldConfig};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = WorldConfig::default();
//! let scene = Scene::built_in(&config.objects)?;
//! let world = OpenWorld::open(config, &scene).await?;
//! println!("{}", world.address()?);
//! let stop = Stop::new();
//! world.serve(stop.signal()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! * [`MxoServer`], [`OpenWorld`]: the servers;
//! * [`World`]: objects, their behaviour, and clients, without I/O; [`Scene`]: the file with the
//!   objects.
//!
//! One task advances the world at every tick and then wakes the connections, which send their
//! clients' updates. The lock around the world is never held across an await.
//!
//! An open world has no login. It has one session ID and key, and admits every client that knows
//! them. A client's hello names its character, by any number. The sender address of a hello can be
//! forged, so the server admits a client only once it has acknowledged a packet.

mod actor;
pub mod admin;
mod admission;
mod client;
pub mod config;
mod districts;
mod figures;
pub mod keys;
mod login;
mod newcomer;
mod page;
pub mod realm;
mod resident;
mod scene;
mod server;
mod services;
mod social;
mod world;
mod worlds;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use worldwire_core::{Error, Reader};
use worldwire_mxo::connection::{Connection, ServerConfig, Session};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Datagram, Hello, Plain};
use worldwire_mxo::replicator;
use worldwire_mxo::schema::Objects;
use worldwire_net::udp::{AcceptDatagrams, Listener};
use worldwire_net::{Accept, Capacity, Clock, LogLimiter, Options, Peer, Signal};

pub use config::{CONFIG, MxoConfig, SQLITE_FILE};
pub use figures::Figures;
pub use scene::{MAX_OBJECTS, ObjectError, Scene, SceneError};
pub use server::{Change, MxoServer, ServerError, Start};
pub use services::Services;
pub use world::{LONGEST_HOLD, World};
pub use worlds::Worlds;

use admission::{Admission, MAX_WAITING};
use client::Client;

use crate::page::Serving;
use crate::start::{StartError, listen_status};

/// A publicly known key, for worlds whose server and clients are on the same machine. The protocol
/// requires encryption even there.
pub const OPEN_KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// The session ID that goes with [`OPEN_KEY`].
pub const OPEN_SESSION: u32 = 1;
/// The port that the game's original servers used.
pub const PORT: u16 = 10_000;

/// The shortest interval between log lines about protocol violations.
pub(super) const LOG_EVERY: Duration = Duration::from_secs(60);
/// The shortest interval between log lines about new clients.
const LOG_ARRIVALS: Duration = Duration::from_secs(1);

/// The configuration of a world server.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The address for clients. Default 127.0.0.1, port 10000.
    pub listen: SocketAddr,
    /// The address of the status page, if there is one. The page has no password, so it should be
    /// on the loopback address. Default none.
    pub status: Option<SocketAddr>,
    /// The session ID that clients use. Default [`OPEN_SESSION`].
    pub session: u32,
    /// The session's key. Default [`OPEN_KEY`].
    pub key: SessionKey,
    /// Classes and goobjs. Default the built-in ones.
    pub objects: Arc<Objects>,
    /// The time between ticks. Default 50 ms.
    pub tick: Duration,
    /// The replicator's radii, and each client's budget per tick.
    pub replicator: replicator::Config,
    /// The maximum number of clients. Default 256, and 64 from one address. Clients that have only
    /// sent a hello do not count.
    pub capacity: Capacity,
    /// How long a client may send nothing. Default 30 s.
    pub idle_time: Duration,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, PORT).into(),
            status: None,
            session: OPEN_SESSION,
            key: SessionKey::new(&OPEN_KEY),
            objects: Arc::new(Objects::built_in()),
            tick: Duration::from_millis(50),
            replicator: replicator::Config::default(),
            capacity: Capacity { total: 256, per_address: 64 },
            idle_time: Duration::from_secs(30),
        }
    }
}

/// Why a world cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An address is not available.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An object of the scene, or the replicator's configuration, is invalid.
    #[error(transparent)]
    World(#[from] Error),
    /// The system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(getrandom::Error),
}

/// A world, ready to serve.
#[derive(Debug)]
pub struct OpenWorld {
    listener: Listener,
    page: Option<TcpListener>,
    shared: Arc<Shared>,
    config: WorldConfig,
    clock: Clock,
}

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) worlds: Worlds,
    pub(super) figures: Figures,
    pub(super) refused: LogLimiter,
    pub(super) full: LogLimiter,
    /// Clients that have entered.
    pub(super) entered: LogLimiter,
    admission: Admission,
    pub(super) clock: Clock,
}

impl Shared {
    fn new(worlds: Worlds, capacity: Capacity, clock: Clock) -> Self {
        Self {
            worlds,
            figures: Figures::default(),
            refused: LogLimiter::new(LOG_EVERY),
            full: LogLimiter::new(LOG_EVERY),
            entered: LogLimiter::new(LOG_ARRIVALS),
            admission: Admission::new(capacity),
            clock,
        }
    }
}

impl OpenWorld {
    /// Creates a scene's world and binds its ports. On an error, nothing is left open.
    pub async fn open(config: WorldConfig, scene: &Scene) -> Result<Self, OpenError> {
        let world = World::new(&config.objects, scene, config.replicator.clone())?;
        // Every connection needs random numbers, so fail early without them.
        getrandom::fill(&mut [0; 16]).map_err(OpenError::Random)?;
        let clock = Clock::start();
        // [`Admission`] limits the number of clients; the listener's limits include those that
        // wait.
        let total = config.capacity.total.saturating_add(2 * MAX_WAITING);
        let capacity = Capacity { total, per_address: total };
        let options = Options { capacity, clock, ..Options::default() };
        let address = config.listen;
        let listener = Listener::bind(address, options)
            .await
            .map_err(|error| StartError::Listen { address, setting: "--listen", error })?;
        let page = listen_status(config.status).await?;
        let shared = Arc::new(Shared::new(Worlds::of_one(world), config.capacity, clock));
        Ok(Self { listener, page, shared, config, clock })
    }

    /// The address for clients. If the configuration has port 0, this has the port that the system
    /// chose.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address of the status page, if there is one.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.page.as_ref().and_then(|page| page.local_addr().ok())
    }

    /// The world's metrics.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures.clone()
    }

    /// Serves the world until the signal.
    pub async fn serve(self, signal: Signal) -> io::Result<()> {
        let Self { listener, page, shared, config, clock } = self;
        let (ticks, ticked) = watch::channel(0);
        let acceptor = ClientAcceptor { shared: Arc::clone(&shared), config, ticked, clock };
        let tick = acceptor.config.tick;
        let router = page::router(Arc::clone(&shared), listener.counts());
        let page = Serving::start(page, router, signal.clone());
        let serving = async {
            listener.serve(Arc::new(acceptor), signal).await;
            page.ended().await
        };
        // The world keeps ticking until the last client is gone.
        tokio::select! {
            served = serving => served,
            never = run(&shared, &ticks, tick) => match never {},
        }
    }
}

/// Advances the world at every tick.
async fn run(
    shared: &Shared,
    ticks: &watch::Sender<u64>,
    tick: Duration,
) -> core::convert::Infallible {
    let mut interval = interval(tick);
    // Ticks that were missed because of a delay are skipped.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let start = Instant::now();
        for mut world in shared.worlds.all() {
            world.tick(shared.clock.now());
        }
        shared.figures.ticked(start.elapsed());
        ticks.send_modify(|count| *count += 1);
    }
}

/// Accepts connections.
#[derive(Debug)]
struct ClientAcceptor {
    shared: Arc<Shared>,
    config: WorldConfig,
    ticked: watch::Receiver<u64>,
    clock: Clock,
}

impl ClientAcceptor {
    fn connection(&self, seed: &[u8; 16], now: Duration) -> Connection {
        let session = Session::new(self.config.session, self.config.key.clone(), seed);
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut config = ServerConfig::new(since_1970.saturating_sub(self.clock.now()));
        config.common.idle_time = self.config.idle_time;
        Connection::server(config, session, now)
    }
}

impl Accept for ClientAcceptor {
    type Connection = Connection;
    type Application = Client;

    fn accept(&self, peer: Peer, now: Duration) -> (Connection, Client) {
        let client = Client::new(Arc::clone(&self.shared), peer, self.ticked.clone());
        (self.connection(&vector_seed(), now), client)
    }
}

impl AcceptDatagrams for ClientAcceptor {
    fn probe(&self, _: Peer, now: Duration, _: &[u8]) -> Option<Connection> {
        // A probe never sends anything.
        Some(self.connection(&[0; 16], now))
    }

    fn begins_with(&self, datagram: &[u8]) -> bool {
        hello_of(datagram).is_some()
    }
}

/// The hello that a datagram contains.
fn hello_of(datagram: &[u8]) -> Option<Hello> {
    match Datagram::decode(&mut Reader::new(datagram)) {
        Ok(Datagram::Plain(Plain::Hello(hello))) => Some(hello),
        _ => None,
    }
}

/// The seed of a connection's initialisation vectors.
fn vector_seed() -> [u8; 16] {
    let mut seed = [0; 16];
    // This worked at startup; a panic ends only this connection.
    #[expect(clippy::expect_used, reason = "equal vectors would give away what is sent")]
    getrandom::fill(&mut seed).expect("the system has random numbers");
    seed
}
