//! The handle to the vault: opens the vault, reports its state, and passes requests to its task.

mod connection;
mod operators;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, oneshot, watch};
use tracing::warn;
use worldwire_uru::types::NetError;

use super::ask::{Ask, Wire, decoded, encoded};
use super::config::VaultConfig;
use super::session::{ConnectionId, Outcome};
use super::steps::{Randomness, VaultState};
use super::task::{Arrival, Call, Message, Reports, Task, VaultError};
use crate::boot_clock::BootInstant;
use crate::store::lease::{Lease, LeaseView};
use crate::store::seal::ServerKey;
use crate::store::{Position, Store, StoreError};
use crate::uru::cluster::Link;

pub use connection::{Connection, Notices};

/// A vault's clock and its source of randomness.
pub struct Environment {
    /// The time, in Unix seconds.
    pub clock: Box<dyn Fn() -> u32 + Send>,
    /// Cryptographically secure random bytes.
    pub random: Randomness,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)")
    }
}

impl Default for Environment {
    /// The operating system's clock and random numbers.
    fn default() -> Self {
        let clock = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
        };
        // Without random numbers, secrets would be predictable, so panic.
        let random = |bytes: &mut [u8]| {
            if let Err(error) = getrandom::fill(bytes) {
                panic!("cannot get random numbers: {error}");
            }
        };
        Self { clock: Box::new(clock), random: Box::new(random) }
    }
}

/// A shard's vault. Cheap to clone; see the [module](super).
#[derive(Clone)]
pub struct Vault {
    messages: mpsc::Sender<Message>,
    ends: mpsc::UnboundedSender<ConnectionId>,
    next: Arc<AtomicU64>,
    max_notices: usize,
    failing: Arc<AtomicBool>,
    restricted: Arc<AtomicBool>,
    keeps_sessions: bool,
    leaving: Arc<AtomicBool>,
    overtaken: watch::Receiver<Option<Arc<StoreError>>>,
    /// The lease on a database that several processes share.
    lease: Option<LeaseView>,
    /// The epoch in which this process claimed the database.
    epoch: u64,
    /// The random number of the shard; 0 on a node.
    identity: u64,
    /// The link to the process with the vault, if it is not this one.
    link: Option<Link>,
    /// Whether the previous process may not know yet that it has lost the vault.
    follows_failure: bool,
    /// The session over which requests without a session travel on the link.
    carrier: Arc<AtomicU64>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(..)")
    }
}

/// The maximum number of queued requests. When the queue is full, callers wait.
const MAX_WAITING: usize = 1_024;

impl Vault {
    /// Opens the vault in a database: reads everything, creates the shard's own ages if they are
    /// missing, and marks all players as offline. Its task runs on the current tokio runtime.
    pub async fn open(
        store: Arc<dyn Store>,
        key: ServerKey,
        config: VaultConfig,
    ) -> Result<Self, VaultError> {
        Self::open_within(store, key, config, Environment::default()).await
    }

    /// Opens the vault in a database with the caller's clock and random numbers.
    pub async fn open_within(
        store: Arc<dyn Store>,
        key: ServerKey,
        config: VaultConfig,
        environment: Environment,
    ) -> Result<Self, VaultError> {
        let Environment { clock, random } = environment;
        let state = VaultState::new(config, key, random);
        let rules = Rules::of(&state, None);
        let (reports, reported) = reports();
        Ok(Self::run(Task::open(store, state, clock, reports).await?, rules, reported))
    }

    /// Serves a state that was read from a database that this process has claimed.
    pub(super) async fn start(
        store: Arc<dyn Store>,
        state: VaultState,
        clock: Box<dyn Fn() -> u32 + Send>,
        position: Position,
        lease: Option<Lease>,
    ) -> Result<Self, VaultError> {
        let rules = Rules::of(&state, lease.as_ref().map(Lease::view));
        let (reports, reported) = reports();
        let task = Task::start(store, state, clock, position, lease, reports).await?;
        Ok(Self::run(task, rules, reported))
    }

    /// The vault of another process.
    pub(in crate::uru) fn elsewhere(link: Link, config: &VaultConfig) -> Self {
        // Nobody receives these messages, so operators' requests fail.
        let (messages, ends) = (mpsc::channel(1).0, mpsc::unbounded_channel().0);
        let (_, Reported { failing, leaving, overtaken }) = reports();
        Self {
            messages,
            ends,
            next: Arc::default(),
            max_notices: config.max_notices,
            failing,
            restricted: Arc::new(AtomicBool::new(config.restricted)),
            keeps_sessions: true,
            leaving,
            overtaken,
            lease: None,
            epoch: 0,
            identity: 0,
            link: Some(link),
            follows_failure: false,
            carrier: Arc::default(),
        }
    }

    /// A handle for one age. On the link, its requests without a session use the session that
    /// [`carry_by`](Self::carry_by) names.
    pub(in crate::uru) fn of_age(&self) -> Self {
        Self { carrier: Arc::default(), ..self.clone() }
    }

    /// Names the session for requests without a session. Clones of this handle use it, too.
    pub(in crate::uru) fn carry_by(&self, session: &Connection) {
        self.carrier.store(session.number(), Ordering::Relaxed);
    }

    /// The link to the process with the vault, if it is not this one.
    pub(in crate::uru) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    pub(super) fn set_follows_failure(&mut self, follows: bool) {
        self.follows_failure = follows;
    }

    /// Whether the previous process may not know yet that it has lost the vault.
    pub(in crate::uru) fn follows_failure(&self) -> bool {
        self.follows_failure
    }

    /// The epoch in which this process claimed the database.
    pub(in crate::uru) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The random number of the shard, which copies of its database have, too; 0 on a node.
    pub(in crate::uru) fn identity(&self) -> u64 {
        self.identity
    }

    fn run(task: Task, rules: Rules, reported: Reported) -> Self {
        let (epoch, identity) = (task.epoch(), task.identity());
        let (messages, inbox) = mpsc::channel(MAX_WAITING);
        let (ends, ended) = mpsc::unbounded_channel();
        tokio::spawn(task.run(inbox, ended));
        let Rules { max_notices, restricted, keeps_sessions, lease, last } = rules;
        let restricted = Arc::new(AtomicBool::new(restricted));
        let next = Arc::new(AtomicU64::new(last.0));
        let Reported { failing, leaving, overtaken } = reported;
        Self {
            messages,
            ends,
            next,
            max_notices,
            failing,
            restricted,
            keeps_sessions,
            leaving,
            overtaken,
            lease,
            epoch,
            identity,
            link: None,
            follows_failure: false,
            carrier: Arc::default(),
        }
    }

    /// Whether only administrators, developers and testers may log in.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.restricted.load(Ordering::Relaxed)
    }

    /// Whether the last batch of changes could not be committed, or the lease on a shared database
    /// could not be renewed. Empty batches probe a failing database, so this becomes false once the
    /// database accepts changes again. If another process has the vault, whether that process
    /// cannot be reached or reports this state for its database.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        match &self.link {
            Some(link) => !link.is_member() || link.is_failing(),
            None => self.failing.load(Ordering::Relaxed) || self.inactive_since().is_some(),
        }
    }

    /// The time since which another process may have taken over the database; `None` while this is
    /// impossible.
    pub(in crate::uru) fn inactive_since(&self) -> Option<BootInstant> {
        self.lease.as_ref().and_then(LeaseView::invalid_since)
    }

    /// Whether clients can resume their sessions through another process.
    #[must_use]
    pub(in crate::uru) fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    /// From now on, when connections or the vault end, sessions that clients can resume are kept
    /// for them in the database or in the process with the vault.
    pub(in crate::uru) fn hand_over(&self) {
        self.leaving.store(self.keeps_sessions, Ordering::Relaxed);
    }

    /// Why the vault has ended, if another process took over its database, or may have: a
    /// [`StoreError::Overtaken`] or [`StoreError::LeaseLost`].
    #[must_use]
    pub fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.overtaken.borrow().clone()
    }

    /// Waits until another process takes over the database; waits forever if none does.
    pub(crate) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<> {
        crate::ending::until_overtaken(self.overtaken.clone())
    }

    /// Registers a client connection, even while the database is not available.
    pub async fn connect(&self) -> Result<(Connection, Notices), NetError> {
        if let Some(link) = &self.link {
            let (session, notices) = link.open_session().await?;
            return Ok(Connection::new(ConnectionId(session), self.clone(), notices));
        }
        let id = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (queue, notices) = mpsc::channel(self.max_notices);
        let (reply, replied) = oneshot::channel();
        // Create the session first, so that its end is reported even if this future is dropped.
        let session = Connection::new(id, self.clone(), notices);
        let message = Message::Connect { arrival: Arrival { id, queue }, reply };
        self.messages.send(message).await.map_err(|_| NetError::RemoteShutdown)?;
        replied.await.map_err(|_| NetError::RemoteShutdown)?;
        Ok(session)
    }

    /// Ends the vault: takes all players offline, except those that it hands over, and writes all
    /// changes. Further requests fail with [`NetError::RemoteShutdown`]. Returns when the database is closed.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.messages.send(Message::Close(reply)).await.is_ok() {
            // This fails if the vault has already ended.
            let _ = closed.await;
        }
    }

    /// Makes a request on behalf of a session, or of [none](ConnectionId::NONE). Returns the reply
    /// after the commit, with the number of notices that were sent to the session before it.
    pub(crate) async fn ask<A: Ask>(
        &self,
        connection: ConnectionId,
        ask: A,
    ) -> Result<(A::Reply, u64), NetError> {
        if self.link.is_some() {
            let body = encoded(&ask).map_err(|_| NetError::InvalidParameter)?;
            let carrier = ConnectionId(self.carrier.load(Ordering::Relaxed));
            let is_of_none = connection == ConnectionId::NONE;
            let connection = if is_of_none { carrier } else { connection };
            return self.ask_elsewhere(connection, A::KIND, body).await;
        }
        let needs = ask.needs();
        let session = (connection != ConnectionId::NONE).then_some(connection);
        self.call(session, needs, move |state| ask.run(state, connection)).await
    }

    /// Makes a request to the process with the vault. Returns the reply, with the number of notices
    /// that were sent to the session before it.
    async fn ask_elsewhere<R: Wire>(
        &self,
        connection: ConnectionId,
        kind: u16,
        body: Vec<u8>,
    ) -> Result<(R, u64), NetError> {
        let Some(link) = &self.link else { return Err(NetError::NotSupported) };
        let (reply, sent) = link.request(connection.0, kind, body).await?;
        let reply = decoded(&reply).map_err(|error| {
            warn!(%error, kind, "cannot read a reply from the leader");
            NetError::BadServerData
        });
        Ok((reply?, sent))
    }

    /// Runs a request that belongs to no session.
    pub(crate) fn operate<T: Send + 'static, R>(
        &self,
        needs: Option<u32>,
        request: R,
    ) -> impl Future<Output = Result<T, NetError>> + Send + use<T, R>
    where
        R: FnMut(&mut VaultState) -> Outcome<T> + Send + 'static,
    {
        let vault = self.clone();
        async move { Ok(vault.call(None, needs, request).await?.0) }
    }

    /// Runs a request. Returns its result after the commit, with the number of notices that were
    /// sent to the session before it.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        connection: Option<ConnectionId>,
        needs: Option<u32>,
        request: impl FnMut(&mut VaultState) -> Outcome<T> + Send + 'static,
    ) -> Result<(T, u64), NetError> {
        let (reply, replied) = oneshot::channel();
        let call = Call { connection, needs, request, outcome: None, reply };
        let message = Message::Call(Box::new(call));
        self.messages.send(message).await.map_err(|_| NetError::RemoteShutdown)?;
        replied.await.map_err(|_| NetError::RemoteShutdown)?
    }
}

/// The rules that a vault's handles need.
struct Rules {
    max_notices: usize,
    restricted: bool,
    /// Whether sessions are stored for the next process.
    keeps_sessions: bool,
    /// The lease on a database that several processes share.
    lease: Option<LeaseView>,
    /// The highest session number so far.
    last: ConnectionId,
}

impl Rules {
    fn of(state: &VaultState, lease: Option<LeaseView>) -> Self {
        let VaultConfig { max_notices, restricted, .. } = *state.config();
        let max_notices = max_notices.max(1);
        let last = state.sessions().keys().next_back().copied().unwrap_or(ConnectionId::NONE);
        Self { max_notices, restricted, keeps_sessions: lease.is_some(), lease, last }
    }
}

/// The state that the task and the handles share.
struct Reported {
    failing: Arc<AtomicBool>,
    leaving: Arc<AtomicBool>,
    overtaken: watch::Receiver<Option<Arc<StoreError>>>,
}

fn reports() -> (Reports, Reported) {
    let [failing, leaving] = [(); 2].map(|()| Arc::<AtomicBool>::default());
    let (overtaking, overtaken) = watch::channel(None);
    let reports = Reports {
        failing: Arc::clone(&failing),
        leaving: Arc::clone(&leaving),
        overtaken: overtaking,
    };
    (reports, Reported { failing, leaving, overtaken })
}
