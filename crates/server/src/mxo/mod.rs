//! A small open world of The Matrix Online over UDP: objects from a scene, and clients that see and
//! walk.
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
//! * [`World`]: objects, what they do, and clients, without IO; [`Scene`]: the file it is made of;
//! * `door`: who waits to be let in; `visitor`: what is done with a connection; `page`: the status page.
//!
//! One task owns the time: it lets the world tick, and tells the connections, which then send what
//! their clients are to be told. The world is behind a lock that is never held while waiting.
//!
//! There is no login: the server has one session id and key, and lets in who knows them. The hello
//! names the character, by any number. Who says hello is sent an empty section, and is in once that
//! is acknowledged: see `door`.

mod actor;
mod door;
mod figures;
mod page;
mod scene;
mod visitor;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use worldwire_core::{Error, Reader};
use worldwire_mxo::connection::{Connection, ServerConfig, Session};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Datagram, Plain};
use worldwire_mxo::replicator;
use worldwire_mxo::schema::Objects;
use worldwire_net::udp::{AcceptDatagrams, Listener};
use worldwire_net::{Accept, Capacity, Clock, Counts, Options, Peer, Signal, Tally};

pub use figures::Figures;
pub use scene::{MAX_OBJECTS, Scene, SceneError};
pub use world::{LONGEST_HOLD, World};

use door::{Door, MAX_WAITING};
use visitor::Visitor;

use crate::page::Serving;

/// The key that everybody knows, for a world on this machine alone: the protocol has no packets
/// without encryption.
pub const OPEN_KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// The session id that goes with it.
pub const OPEN_SESSION: u32 = 1;
/// The port of the game's own servers.
pub const PORT: u16 = 10_000;

/// How often it is logged again that clients break rules.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How often it is logged that clients come.
const LOG_ARRIVALS: Duration = Duration::from_secs(1);

/// How a world is served.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Where it listens. Default 127.0.0.1, port 10000.
    pub listen: SocketAddr,
    /// Where the status page listens, if there is one. It has no password, so it should be this
    /// machine. Default none.
    pub status: Option<SocketAddr>,
    /// The id of the session that clients name. Default [`OPEN_SESSION`].
    pub session: u32,
    /// Its key. Default [`OPEN_KEY`].
    pub key: SessionKey,
    /// Classes and goobjs. Default what is built in.
    pub objects: Arc<Objects>,
    /// The time from tick to tick. Default 50 ms.
    pub tick: Duration,
    /// How the replicator works: radii, the budget of a client in a tick.
    pub replicator: replicator::Config,
    /// How many clients are let in. Default 256, and 64 from one address. A client is let in once
    /// it has acknowledged something: a hello alone takes no place.
    pub capacity: Capacity,
    /// How long a client may be silent. Default 30 s.
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

/// Why a world does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
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
    /// An object of the scene, or the configuration of the replicator.
    #[error(transparent)]
    World(#[from] Error),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A world that listens.
#[derive(Debug)]
pub struct OpenWorld {
    listener: Listener,
    page: Option<TcpListener>,
    shared: Arc<Shared>,
    config: WorldConfig,
    clock: Clock,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    pub(super) figures: Figures,
    pub(super) counts: Arc<Counts>,
    pub(super) refused: Tally,
    pub(super) full: Tally,
    /// Clients that have come.
    pub(super) come: Tally,
    door: Door,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenWorld {
    /// Makes the world of a scene, and listens.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(config: WorldConfig, scene: &Scene) -> Result<Self, OpenError> {
        let world = World::new(&config.objects, scene, config.replicator.clone())?;
        // A first try: every connection draws from there.
        getrandom::fill(&mut [0; 16]).map_err(OpenError::Random)?;
        let clock = Clock::start();
        // The door looks after the places of clients; these are for those that wait, too.
        let total = config.capacity.total.saturating_add(2 * MAX_WAITING);
        let capacity = Capacity { total, per_address: total };
        let options = Options { capacity, clock, ..Options::default() };
        let address = config.listen;
        let listener = Listener::bind(address, options)
            .await
            .map_err(|error| OpenError::Listen { address, setting: "--listen", error })?;
        let page = crate::page::bind(config.status).await;
        let setting = "--status";
        let page =
            page.map_err(|(address, error)| OpenError::Listen { address, setting, error })?;
        let shared = Arc::new(Shared {
            world: Mutex::new(world),
            figures: Figures::default(),
            counts: listener.counts(),
            refused: Tally::new(LOG_EVERY),
            full: Tally::new(LOG_EVERY),
            come: Tally::new(LOG_ARRIVALS),
            door: Door::new(config.capacity),
            clock,
        });
        Ok(Self { listener, page, shared, config, clock })
    }

    /// Where it listens: with port 0 the system chose one.
    ///
    /// # Errors
    /// Those of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where the status page is.
    #[must_use]
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.page.as_ref().and_then(|page| page.local_addr().ok())
    }

    /// Its figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures.clone()
    }

    /// Serves the world until the signal comes.
    ///
    /// # Errors
    /// Those of the system, about the status page.
    pub async fn serve(self, signal: Signal) -> io::Result<()> {
        let Self { listener, page, shared, config, clock } = self;
        let (ticks, ticked) = watch::channel(0);
        let visitors = Visitors { shared: Arc::clone(&shared), config, ticked, clock };
        let tick = visitors.config.tick;
        let page = Serving::start(page, page::router(Arc::clone(&shared)), signal.clone());
        let serving = async {
            listener.serve(Arc::new(visitors), signal).await;
            page.ended().await
        };
        // The time goes on until the last client is gone.
        tokio::select! {
            served = serving => served,
            never = run(&shared, &ticks, tick) => match never {},
        }
    }
}

/// Lets the world tick.
async fn run(
    shared: &Shared,
    ticks: &watch::Sender<u64>,
    tick: Duration,
) -> core::convert::Infallible {
    let mut interval = interval(tick);
    // A server that was held up goes on from there, rather than do it all at once.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let start = Instant::now();
        shared.world().tick(shared.clock.now());
        shared.figures.ticked(start.elapsed());
        ticks.send_modify(|count| *count += 1);
    }
}

/// Makes connections.
#[derive(Debug)]
struct Visitors {
    shared: Arc<Shared>,
    config: WorldConfig,
    ticked: watch::Receiver<u64>,
    clock: Clock,
}

impl Visitors {
    fn connection(&self, seed: &[u8; 16], now: Duration) -> Connection {
        let session = Session::new(self.config.session, self.config.key.clone(), seed);
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut config = ServerConfig::new(since_1970.saturating_sub(self.clock.now()));
        config.common.idle_time = self.config.idle_time;
        Connection::server(config, session, now)
    }
}

impl Accept for Visitors {
    type Connection = Connection;
    type Application = Visitor;

    fn accept(&self, peer: Peer, now: Duration) -> (Connection, Visitor) {
        let mut seed = [0; 16];
        // It worked at the start; a panic here ends this one connection.
        #[expect(clippy::expect_used, reason = "equal vectors would give away what is sent")]
        getrandom::fill(&mut seed).expect("the system has random numbers");
        let visitor = Visitor::new(Arc::clone(&self.shared), peer, self.ticked.clone());
        (self.connection(&seed, now), visitor)
    }
}

impl AcceptDatagrams for Visitors {
    fn probe(&self, _: Peer, now: Duration) -> Connection {
        // It never sends anything.
        self.connection(&[0; 16], now)
    }

    fn begins_with(&self, datagram: &[u8]) -> bool {
        let read = Datagram::decode(&mut Reader::new(datagram));
        matches!(read, Ok(Datagram::Plain(Plain::Hello(_))))
    }
}
