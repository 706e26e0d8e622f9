//! A connection to a world over UDP.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::ToSocketAddrs;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use worldwire_core::connection::{CloseReason, Event, EventOf, Sender as _, Timer};
use worldwire_mxo::connection::{ClientConfig, Connection, Sender, Session, Unit};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{LEAVE, RpcMessage};
use worldwire_mxo::message::{MPM_ID, SectionWriter};
use worldwire_mxo::schema::Objects;
use worldwire_net::rough::{Conditions, Stretch, StretchCounts};
use worldwire_net::{Application, Clock, Driver, End, Flow, Stop, udp};

use super::Eyes;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct VisitConfig {
    /// The number of the character.
    pub uid: u64,
    /// The id of the session.
    pub session: u32,
    /// Its key.
    pub key: SessionKey,
    /// Classes and goobjs, as the server has them. Default what is built in.
    pub objects: Arc<Objects>,
    /// The time from step to step. Default 100 ms.
    pub step: Duration,
    /// How long the server may take to answer, and to let the client in. Default 15 s.
    pub setup_time: Duration,
    /// A bad network on the way to the server, if there is one. Default none.
    pub conditions: Option<Conditions>,
}

impl VisitConfig {
    /// The defaults: session 1 with the key that everybody knows, as a server on this machine has
    /// it.
    #[must_use]
    pub fn new(uid: u64) -> Self {
        let key = core::array::from_fn(|at| u8::try_from(at).unwrap_or(0));
        Self {
            uid,
            session: 1,
            key: SessionKey::new(&key),
            objects: Arc::new(Objects::built_in()),
            step: Duration::from_millis(100),
            setup_time: Duration::from_secs(15),
            conditions: None,
        }
    }
}

/// Why there is no visit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The network.
    #[error("cannot connect: {0}")]
    Io(#[from] io::Error),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
    /// The server did not answer the hello, or did not let the client in.
    #[error(
        "the server does not answer: is it there, with this session id and key, and with room \
        for one more client from this address? ({0})"
    )]
    NoAnswer(End),
}

/// A client in a world. It stays until it [leaves](Self::leave) or is dropped.
#[derive(Debug)]
pub struct Visit {
    uid: u64,
    state: Arc<State>,
    driving: JoinHandle<End>,
    carrying: Option<Stop>,
    counts: Option<Arc<StretchCounts>>,
}

#[derive(Debug)]
struct State {
    eyes: Mutex<Eyes>,
    /// Whether the client is sent the world.
    is_in: watch::Sender<bool>,
    leaves: watch::Sender<bool>,
}

impl State {
    fn eyes(&self) -> MutexGuard<'_, Eyes> {
        self.eyes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// Enters a world: waits until the server sends what is in it.
    ///
    /// # Errors
    /// [`VisitError`].
    pub async fn to(server: impl ToSocketAddrs, config: VisitConfig) -> Result<Self, VisitError> {
        let addresses: Vec<_> = tokio::net::lookup_host(server).await?.collect();
        let (start, mut config) = (Instant::now(), config);
        loop {
            let left = config.setup_time.saturating_sub(start.elapsed());
            match Self::knock(&addresses, &config, left.min(KNOCK)).await {
                Err(VisitError::NoAnswer(UNHEARD)) if start.elapsed() < config.setup_time => {}
                entered => return entered,
            }
            // Other datagrams get lost the next time.
            if let Some(conditions) = &mut config.conditions {
                conditions.seed = conditions.seed.wrapping_add(1 << 32);
            }
        }
    }

    /// Tries to enter, for so long.
    async fn knock(
        server: &[SocketAddr],
        config: &VisitConfig,
        patience: Duration,
    ) -> Result<Self, VisitError> {
        let mut seed = [0; 24];
        getrandom::fill(&mut seed).map_err(VisitError::Random)?;
        let [vectors, chance] = [&seed[..16], &seed[16..]];
        let vectors: [u8; 16] = vectors.try_into().unwrap_or_default();
        let chance = u64::from_le_bytes(chance.try_into().unwrap_or_default());
        let mut carrying = None;
        let mut counts = None;
        let socket = match config.conditions {
            None => udp::dial(server).await?,
            Some(conditions) => {
                let server =
                    server.first().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                let stretch = Stretch::to(*server, conditions).await?;
                let (stop, address) = (Stop::new(), stretch.address()?);
                counts = Some(stretch.counts());
                tokio::spawn(stretch.carry(stop.signal()));
                carrying = Some(stop);
                udp::dial(address).await?
            }
        };
        let clock = Clock::start();
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let session = Session::new(config.session, config.key.clone(), &vectors);
        let mut client = ClientConfig::new(since_1970, config.uid);
        client.setup_time = patience;
        let connection = Connection::client(client, session, clock.now());
        let state = Arc::new(State {
            eyes: Mutex::new(Eyes::new(Arc::clone(&config.objects), chance)),
            is_in: watch::Sender::new(false),
            leaves: watch::Sender::new(false),
        });
        let application = Walker::new(Arc::clone(&state), config.step);
        let driving = tokio::spawn(async move {
            udp::drive(&Driver::client(clock), socket, connection, application).await
        });
        let mut visit = Self { uid: config.uid, state, driving, carrying, counts };
        let mut is_in = visit.state.is_in.subscribe();
        tokio::select! {
            end = &mut visit.driving => {
                Err(VisitError::NoAnswer(end.unwrap_or(End::Cut)))
            }
            _ = is_in.wait_for(|is_in| *is_in) => Ok(visit),
            () = sleep(patience) => Err(VisitError::NoAnswer(UNHEARD)),
        }
    }

    /// The number of the character.
    #[must_use]
    pub const fn uid(&self) -> u64 {
        self.uid
    }

    /// Looks at what is seen.
    pub fn seen<R>(&self, look: impl FnOnce(&mut Eyes) -> R) -> R {
        look(&mut self.state.eyes())
    }

    /// What became of datagrams on a bad network.
    #[must_use]
    pub fn counts(&self) -> Option<&StretchCounts> {
        self.counts.as_deref()
    }

    /// Whether the connection is over though nobody left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driving.is_finished()
    }

    /// Leaves: says so, and waits until the server knows it, for two seconds at most. UDP has no
    /// end: a server that is not of this project, or that the message does not reach, notices later
    /// that nothing more comes.
    pub async fn leave(mut self) -> Option<End> {
        let _ = self.state.leaves.send(true);
        (&mut self.driving).await.ok()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.driving.abort();
        if let Some(carrying) = &self.carrying {
            carrying.stop();
        }
    }
}

/// What the client does with its connection.
struct Walker {
    state: Arc<State>,
    steps: tokio::time::Interval,
    leaves: watch::Receiver<bool>,
    /// Since when the client is leaving.
    leaving: Option<Instant>,
}

/// How long a server is waited for before it is asked anew: what it was sent may be lost, and it
/// gives up whoever does not show in time that it hears.
const KNOCK: Duration = Duration::from_secs(6);
/// The server did not answer in time.
const UNHEARD: End = End::Closed(CloseReason::Timeout(Timer::Setup));

/// How long the server may take to hear that a client leaves, and how often to ask whether it has.
const FAREWELL: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(10);

/// The bytes of a section without anything in it.
const EMPTY: usize = SectionWriter::FRAME;

/// Why a walker wakes.
enum Wake {
    Step,
    Leave,
}

impl Walker {
    fn new(state: Arc<State>, step: Duration) -> Self {
        let mut steps = interval(step);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let leaves = state.leaves.subscribe();
        Self { state, steps, leaves, leaving: None }
    }

    /// Says that the client leaves, and ends the connection when the server knows.
    fn leave(&mut self, sender: &mut Sender) -> Flow {
        let is_said = match self.leaving {
            Some(since) => since.elapsed() < FAREWELL,
            None => {
                self.leaving = Some(Instant::now());
                sender.send(&RpcMessage::new(LEAVE, b"")).is_ok()
            }
        };
        if is_said && sender.unacknowledged_bytes() > 0 {
            return Flow::Continue(());
        }
        sender.close();
        Flow::Break(())
    }
}

impl Application<Connection> for Walker {
    type Notice = Wake;

    async fn event(&mut self, event: EventOf<'_, Connection>, _: &mut Sender) -> Flow {
        match event {
            Event::Received(piece) => {
                if let Unit::Section { id: MPM_ID, .. } = piece.unit {
                    let mut eyes = self.state.eyes();
                    // What cannot be read is counted.
                    let _ = eyes.hear(piece.bytes);
                    // An empty one asks whether anybody is here; then comes the world, which may not
                    // be readable.
                    if piece.bytes.len() > EMPTY {
                        self.state.is_in.send_replace(true);
                    }
                }
            }
            Event::News(news) => self.state.eyes().news(&news),
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Wake {
        if self.leaving.is_some() {
            sleep(BETWEEN).await;
            return Wake::Leave;
        }
        tokio::select! {
            _ = self.steps.tick() => Wake::Step,
            _ = self.leaves.wait_for(|leaves| *leaves) => Wake::Leave,
        }
    }

    async fn notice(&mut self, wake: Wake, sender: &mut Sender) -> Flow {
        match wake {
            Wake::Step => {
                // What cannot be sent now goes with the next step.
                let _ = self.state.eyes().step(sender);
                Flow::Continue(())
            }
            Wake::Leave => self.leave(sender),
        }
    }
}
