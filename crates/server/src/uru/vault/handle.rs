//! The handles of the vault that services use.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::warn;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;
use zeroize::Zeroizing;

use super::accounts::{AccountSummary, PasswordSet};
use super::ask::{Ask, Wire, decoded, encoded};
use super::config::VaultConfig;
use super::dump::Dump;
use super::inspect::{Finding, TreeLine};
use super::lookup::Named;
use super::players::{Kicked, Renamed};
use super::prune::Pruned;
use super::session::{ConnectionId, Notice, Outcome};
use super::steps::{Randomness, VaultState};
use super::task::{Arrival, Call, Message, Reports, Task, VaultError};
use crate::boot_clock::BootInstant;
use crate::store::lease::{Lease, LeaseView};
use crate::store::seal::ServerKey;
use crate::store::{Position, Store, StoreError};
use crate::uru::cluster::Link;

/// The clock and the source of randomness of a vault.
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
        // Secrets would be predictable without random numbers, so panic.
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
    /// The random number of the shard; 0 at a node.
    identity: u64,
    /// The link to the process with the vault, if it is not this one.
    link: Option<Link>,
    /// Whether the previous process may still believe that it has the vault.
    follows_failure: bool,
    /// The session that carries requests without a session over the link.
    carrier: Arc<AtomicU64>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(..)")
    }
}

/// Declares a method for each operators' request. The method's future borrows nothing.
macro_rules! requests {
    ($(
        $(#[doc = $doc:expr])*
        $name:ident($($argument:ident: $type:ty),*) -> $result:ty
            $(, needs $needs:expr)? ; |$state:ident| $body:expr
    )*) => {$(
        $(#[doc = $doc])*
        pub fn $name(
            &self,
            $($argument: $type),*
        ) -> impl Future<Output = Result<$result, NetError>> + Send + use<> {
            let needs: Option<u32> = None$(.or(Some($needs)))?;
            self.operate(needs, move |$state| $body)
        }
    )*};
}

/// The part of a vault's rules that its handles need.
struct Rules {
    max_notices: usize,
    restricted: bool,
    /// Whether sessions are stored for the next process.
    keeps_sessions: bool,
    /// The lease on a database that several processes share.
    lease: Option<LeaseView>,
    /// The highest number of a session so far.
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

/// What the task and the handles tell each other.
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

/// The maximum number of queued requests. Beyond that, callers wait.
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
        // Nobody receives messages: operators' requests fail.
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

    /// A handle for one age. Over the link, its requests without a session use the session that
    /// [`carry_by`](Self::carry_by) names.
    pub(in crate::uru) fn of_age(&self) -> Self {
        Self { carrier: Arc::default(), ..self.clone() }
    }

    /// Names the session for requests without a session. Clones of this handle use it, too.
    pub(in crate::uru) fn carry_by(&self, session: &Connection) {
        self.carrier.store(session.id.0, Ordering::Relaxed);
    }

    /// The link to the process with the vault, if it is not this one.
    pub(in crate::uru) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    pub(super) fn set_follows_failure(&mut self, follows: bool) {
        self.follows_failure = follows;
    }

    /// Whether the previous process may still believe that it has the vault.
    pub(in crate::uru) fn follows_failure(&self) -> bool {
        self.follows_failure
    }

    /// The epoch in which this process claimed the database.
    pub(in crate::uru) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The random number of the shard, which copies of its database have, too; 0 at a node.
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
    /// could not be renewed. Empty batches probe a failing database, so this clears once it accepts
    /// changes again. If another process has the vault: whether that process cannot be reached, or
    /// reports this about its database.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        match &self.link {
            Some(link) => !link.is_member() || link.is_failing(),
            None => self.failing.load(Ordering::Relaxed) || self.inactive_since().is_some(),
        }
    }

    /// Since when another process may have taken over the database; `None` while none can have.
    pub(in crate::uru) fn inactive_since(&self) -> Option<BootInstant> {
        self.lease.as_ref().and_then(LeaseView::invalid_since)
    }

    /// Whether clients can resume their sessions through another process.
    #[must_use]
    pub(in crate::uru) fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    /// From now on, when connections or the vault end, sessions that clients can resume wait for
    /// them in the database or in the process with the vault.
    pub(in crate::uru) fn hand_over(&self) {
        self.leaving.store(self.keeps_sessions, Ordering::Relaxed);
    }

    /// Why the vault has ended, if another process took over its database, or may have: a
    /// [`StoreError::Overtaken`] or [`StoreError::LeaseLost`].
    #[must_use]
    pub fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.overtaken.borrow().clone()
    }

    /// Waits until another process takes over the database; forever, if none does.
    pub(crate) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<> {
        crate::ending::until_overtaken(self.overtaken.clone())
    }

    /// Registers a client connection, even while the database is not available.
    pub async fn connect(&self) -> Result<(Connection, Notices), NetError> {
        if let Some(link) = &self.link {
            let (session, notices) = link.open_session().await?;
            let (id, mark) = (ConnectionId(session), Arc::<AtomicU64>::default());
            let connection = Connection { id, vault: self.clone(), mark: Arc::clone(&mark) };
            return Ok((connection, Notices { notices, taken: 0, mark }));
        }
        let id = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (queue, notices) = mpsc::channel(self.max_notices);
        let (reply, replied) = oneshot::channel();
        let mark = Arc::<AtomicU64>::default();
        // Created first, so that its end is reported even if this future is dropped.
        let connection = Connection { id, vault: self.clone(), mark: Arc::clone(&mark) };
        let message = Message::Connect { arrival: Arrival { id, queue }, reply };
        self.messages.send(message).await.map_err(|_| NetError::RemoteShutdown)?;
        replied.await.map_err(|_| NetError::RemoteShutdown)?;
        Ok((connection, Notices { notices, taken: 0, mark }))
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

    /// Creates an account.
    ///
    /// # Errors
    /// [`NetError::AccountAlreadyExists`]; [`NetError::InvalidParameter`] for a name that is
    /// empty, has surrounding spaces, or contains control characters.
    pub async fn add_account(
        &self,
        name: &str,
        password: &str,
        flags: AccountFlags,
    ) -> Result<PasswordSet, NetError> {
        let (name, password) = (name.to_owned(), Zeroizing::new(password.to_owned()));
        self.operate(None, move |state| state.add_account(&name, &password, flags)).await
    }

    /// Changes an account's password. Fails with [`NetError::AccountNotFound`].
    pub async fn set_password(&self, name: &str, password: &str) -> Result<PasswordSet, NetError> {
        let (name, password) = (name.to_owned(), Zeroizing::new(password.to_owned()));
        self.operate(None, move |state| state.set_password(&name, &password)).await
    }

    /// Bans an account and ends its sessions, or lifts its ban. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn ban_account(&self, name: &str, banned: bool) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        self.operate(None, move |state| state.ban_account(&name, banned)).await
    }

    /// Replaces the rights of an account, except whether it is banned. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn set_roles(&self, name: &str, flags: AccountFlags) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        Ok(self.call(None, None, move |state| state.set_roles(&name, flags)).await?.0)
    }

    /// Sets whether only administrators, developers and testers may log in, and with `kick` ends
    /// the sessions of all others. Returns these sessions.
    pub async fn restrict(&self, restricted: bool, kick: bool) -> Result<Vec<Kicked>, NetError> {
        let shown = Arc::clone(&self.restricted);
        let restrict = move |state: &mut VaultState| {
            let kicked = state.restrict(restricted, kick);
            // Like the rule itself, this is not undone by a failed batch.
            if kicked.is_ok() {
                shown.store(restricted, Ordering::Relaxed);
            }
            kicked
        };
        Ok(self.call(None, None, restrict).await?.0)
    }

    /// Ends the sessions of an account, and deletes it and its players. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn delete_account(&self, name: &str) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        self.operate(None, move |state| state.delete_account(&name)).await
    }

    /// Ends the session of a player, given by number or name, or all sessions of an account.
    /// Clients can log in again.
    ///
    /// # Errors
    /// [`NetError::AccountNotFound`] for an unknown name;
    /// [`NetError::InvalidParameter`] for the name of an account and of another account's player;
    /// [`NetError::PlayerNotFound`] if there is no such session.
    pub async fn kick(&self, who: &str) -> Result<Vec<Kicked>, NetError> {
        let who = who.to_owned();
        self.operate(None, move |state| state.kick_by_name(&who)).await
    }

    /// Renames a player, given by number or name, everywhere, and notifies all sessions that watch
    /// it. A player who is online keeps the old name in its age until it logs in again.
    ///
    /// # Errors
    /// [`NetError::PlayerNotFound`]; [`NetError::PlayerNameInvalid`] for a name that no player may
    /// have; [`NetError::PlayerAlreadyExists`] if another player has the name.
    pub async fn rename_player(&self, who: &str, name: &str) -> Result<Renamed, NetError> {
        let (who, name) = (who.to_owned(), name.to_owned());
        self.operate(None, move |state| state.rename_player(&who, &name)).await
    }

    /// The nodes that a word identifies: a number, an age's instance, or the name of a player or
    /// age, ignoring case. Only a name can match several nodes.
    pub async fn nodes_called(&self, word: &str) -> Result<Vec<Named>, NetError> {
        let word = word.to_owned();
        self.operate(None, move |state| state.nodes_called(&word)).await
    }

    /// The Age nodes that a word identifies: a number, an instance, a filename, an instance's name,
    /// or the name that players see.
    pub async fn ages_called(&self, word: &str) -> Result<Vec<Named>, NetError> {
        let word = word.to_owned();
        self.operate(None, move |state| state.ages_called(&word)).await
    }

    requests! {
        /// All accounts, by name.
        accounts() -> Vec<AccountSummary>;
            |state| Ok(state.list_accounts())

        /// The tree below a node (by default the System node), down to a depth. Fails with
        /// [`NetError::VaultNodeNotFound`].
        tree(root: Option<u32>, depth: u32) -> Vec<TreeLine>;
            |state| state.tree(root, depth)

        /// The fields of a node, as JSON. Fails with [`NetError::VaultNodeNotFound`].
        show(node: u32) -> Json, needs node;
            |state| state.show(node)

        /// The nodes with all fields of a template. Fails with [`NetError::InvalidParameter`] for a
        /// template without fields.
        find(template: VaultNode<'static>) -> Vec<u32>;
            |state| state.search(&template)

        /// Changes fields of a node and notifies all sessions that watch it.
        ///
        /// # Errors
        /// [`NetError::VaultNodeNotFound`]; [`NetError::InvalidParameter`] for a text that is too
        /// long; [`NetError::VaultNodeAccessViolation`] for fields that the server sets when it
        /// creates a node, the names of players, and the fields by which ages are found.
        set(node: u32, fields: VaultNode<'static>) -> (), needs node;
            |state| state.set_fields(node, &fields)

        /// Checks the vault for damaged nodes, cycles, dangling references, players without nodes,
        /// and players with the same name. All other requests wait.
        check() -> Vec<Finding>;
            |state| state.check()

        /// Removes nodes that belong to no tree, in one transaction; with `dry`, only counts them.
        /// All other requests wait. Nodes of players who are online, and nodes that changed within
        /// the last hour, stay.
        prune(dry: bool) -> Pruned;
            |state| state.prune(dry)

        /// A consistent copy of the whole vault. All other requests wait.
        export() -> Dump;
            |state| state.dump(false)

        /// The whole vault with password digests, for another server. They can be used like
        /// passwords.
        export_with_passwords() -> Dump;
            |state| state.dump(true)

        /// Replaces the whole vault, except existing accounts, in one transaction.
        ///
        /// # Errors
        /// [`NetError::LoggedInElsewhere`] while anybody is logged in or an age is running, or if
        /// there are players and `replace` is not set; [`NetError::AccountAlreadyExists`] if an
        /// imported account has the name of an existing one.
        import(dump: Dump, replace: bool) -> ();
            |state| state.restore(&dump, replace)
    }

    /// Makes a request of a session, or of [none](ConnectionId::NONE). Returns the reply after the
    /// commit, with the number of notices that were sent to the session before it.
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

    /// Runs a request, and returns its result after the commit, with the number of notices that
    /// were sent to the session before it.
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

/// A client's session in the vault.
pub struct Connection {
    id: ConnectionId,
    vault: Vault,
    mark: Arc<AtomicU64>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.id.0)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match &self.vault.link {
            // The vault ends the other sessions when it is closed, and so does the process with the
            // vault when this one is silent.
            _ if self.vault.leaving.load(Ordering::Relaxed) => {}
            Some(link) => link.end_session(self.id.0),
            // This fails if the vault has ended, with all its sessions.
            None => drop(self.vault.ends.send(self.id)),
        }
    }
}

impl Connection {
    /// The number of this session, for logs.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.id.0
    }

    /// Makes a request of this session. The future borrows nothing.
    pub(in crate::uru) fn ask<A: Ask>(
        &self,
        ask: A,
    ) -> impl Future<Output = Result<A::Reply, NetError>> + Send + use<A> {
        let (vault, id, mark) = (self.vault.clone(), self.id, Arc::clone(&self.mark));
        async move {
            let (reply, sent) = vault.ask(id, ask).await?;
            mark.fetch_max(sent, Ordering::AcqRel);
            Ok(reply)
        }
    }
}

impl Connection {
    /// Runs a request of this session that no other process can make.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        request: impl Fn(&mut VaultState, ConnectionId) -> Outcome<T> + Send + 'static,
    ) -> Result<T, NetError> {
        let id = self.id;
        let (value, sent) =
            self.vault.call(Some(id), None, move |state| request(state, id)).await?;
        self.mark.fetch_max(sent, Ordering::AcqRel);
        Ok(value)
    }

    /// Makes a request of another kind to the process with the vault.
    pub(in crate::uru) async fn ask_leader<R: Wire>(
        &self,
        kind: u16,
        request: &impl Wire,
    ) -> Result<R, NetError> {
        let body = encoded(request).map_err(|_| NetError::InvalidParameter)?;
        let (reply, sent) = self.vault.ask_elsewhere(self.id, kind, body).await?;
        self.mark.fetch_max(sent, Ordering::AcqRel);
        Ok(reply)
    }
}

/// A session's notices, in order.
#[derive(Debug)]
pub struct Notices {
    notices: mpsc::Receiver<Notice>,
    taken: u64,
    mark: Arc<AtomicU64>,
}

impl Notices {
    /// Waits for the next notice. `None` means that the vault has ended the session because too
    /// many notices were queued or the shard is shutting down. Cancel safe.
    pub async fn recv(&mut self) -> Option<Notice> {
        let notice = self.notices.recv().await?;
        self.taken += 1;
        Some(notice)
    }

    /// Whether the vault has ended the session. Some notices may still be queued.
    pub(in crate::uru) fn has_ended(&self) -> bool {
        self.notices.is_closed()
    }

    /// The next notice that must be sent before the reply of the method that returned last, if
    /// there is one.
    pub fn due(&mut self) -> Option<Notice> {
        if self.taken >= self.mark.load(Ordering::Acquire) {
            return None;
        }
        let notice = self.notices.try_recv().ok()?;
        self.taken += 1;
        Some(notice)
    }
}
