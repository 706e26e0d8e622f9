//! The task that owns the vault: it groups requests into batches, commits them, and replies.
//!
//! No request is answered before its commit. If a commit fails, all requests in the batch are
//! refused, and the batch is in doubt until the database reports whether it took effect. Until
//! then, all requests are refused immediately, but new connections are accepted. If the batch had
//! no effect, its changes are undone in memory; otherwise, they are kept, although their requests
//! were refused.
//!
//! If a batch had no effect, the database is regarded as failing until a commit succeeds. Empty
//! batches test it periodically, so that its recovery is noticed even if there are no requests.
//!
//! If another process has taken over the database, nothing is in doubt: this vault ends.
//!
//! If several processes share the database, requests that change nothing are answered only while
//! this process holds the lease. A commit does not need the lease, because the database checks the
//! epoch.

mod doubt;
mod message;

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{error, info, warn};
use worldwire_uru::types::NetError;

use super::session::{ConnectionId, Notice, Stop};
use super::steps::{Damage, VaultState};
use crate::store::lease::{LEASE_PATIENCE, Lease};
use crate::store::probe::Probe;
use crate::store::seal::KEY_FILE;
use crate::store::{Changes, Position, Store, StoreError};
use doubt::{Arrivals, resolve};
use message::Request;

pub(super) use message::{Arrival, Call, Message};

/// Why a vault cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database has rows that this server would not have written.
    #[error("the vault is damaged: {0}")]
    Damaged(#[from] Damage),
    /// The passwords in the database are sealed with another key.
    #[error(
        "{KEY_FILE} is not the key that encrypts the passwords in this database; \
        restore a key and a database that belong together"
    )]
    OtherKey,
    /// A configured age or neighbourhood cannot be created.
    #[error("cannot create the shard's own ages: {0:?}")]
    Founding(NetError),
}

/// A session's queue of notices, and the number of notices sent.
struct NoticeQueue {
    sender: mpsc::Sender<Notice>,
    sent: u64,
}

pub(crate) struct Task {
    store: Arc<dyn Store>,
    state: VaultState,
    clock: Box<dyn Fn() -> u32 + Send>,
    /// The last batch that was committed.
    position: Position,
    queues: HashMap<ConnectionId, NoticeQueue>,
    /// Sessions that have ended, but whose players are not offline yet.
    gone: Vec<ConnectionId>,
    /// Whether the last attempt to read needed contents failed.
    is_unreadable: bool,
    /// When to test a failing database with an empty batch.
    probe: Probe,
    /// The lease on a database that several processes share.
    lease: Option<Lease>,
    reports: Reports,
}

/// The state that a task shares with its handles.
pub(crate) struct Reports {
    /// Whether the last batch could not be committed.
    pub(crate) failing: Arc<AtomicBool>,
    /// Set when sessions are left to the next process.
    pub(crate) leaving: Arc<AtomicBool>,
    /// Set when another process has taken over the database.
    pub(crate) overtaken: watch::Sender<Option<Arc<StoreError>>>,
}

/// The maximum number of requests in a batch. If there were more, the first ones would wait too
/// long.
const MAX_AT_ONCE: usize = 512;
/// How long a commit may take, plus a millisecond for each row.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of nodes to read at once when the vault is opened.
const PAGE: u32 = 2_000;

impl Task {
    /// Claims and reads the database and creates the shard's own ages if they are missing.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        mut state: VaultState,
        clock: Box<dyn Fn() -> u32 + Send>,
        reports: Reports,
    ) -> Result<Self, VaultError> {
        // Claim before reading anything: from here on, nobody else can change the database.
        let position = store.claim().await?;
        load_rows(&*store, &mut state).await?;
        state.finish_loading()?;
        state.load_placements(store.placements().await?);
        Self::start(store, state, clock, position, None, reports).await
    }

    /// Starts with a state that was read from a database that this process has claimed. Creates the
    /// shard's own ages if they are missing.
    pub(crate) async fn start(
        store: Arc<dyn Store>,
        state: VaultState,
        clock: Box<dyn Fn() -> u32 + Send>,
        position: Position,
        lease: Option<Lease>,
        reports: Reports,
    ) -> Result<Self, VaultError> {
        let (queues, gone) = (HashMap::new(), Vec::new());
        let probe = Probe::new(lease.is_some());
        let mut task = Self {
            store,
            state,
            clock,
            position,
            queues,
            gone,
            is_unreadable: false,
            probe,
            lease,
            reports,
        };
        task.state.set_now((task.clock)());
        let found = |state: &mut VaultState| {
            state.found()?;
            state.clear_online()
        };
        loop {
            match task.state.run(found) {
                Ok(()) => break,
                Err(Stop::Refused(error)) => return Err(VaultError::Founding(error)),
                Err(Stop::Need(ids)) => {
                    task.load(&ids).await?;
                }
            }
        }
        if !task.state.staged().is_empty() {
            let changes = Arc::new(task.state.staged().clone());
            task.store.commit(task.position, changes).await?;
            task.position = task.position.next();
        }
        task.state.settle();
        Ok(task)
    }

    /// The epoch in which this process claimed the database.
    pub(crate) fn epoch(&self) -> u64 {
        self.position.epoch
    }

    /// The shard's random number.
    pub(crate) fn identity(&self) -> u64 {
        self.state.shard_id()
    }

    /// Answers requests until the vault is closed or all handles are dropped.
    pub(crate) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Message>,
        mut ended: mpsc::UnboundedReceiver<ConnectionId>,
    ) {
        let mut messages = Vec::new();
        let mut closing = Vec::new();
        let mut overtaken = None;
        while closing.is_empty() {
            let open = tokio::select! {
                end = ended.recv() => {
                    self.gone.extend(end);
                    end.is_some()
                }
                count = inbox.recv_many(&mut messages, MAX_AT_ONCE) => count != 0,
                () = self.probe.due() => true,
                error = lease_ended(&mut self.lease) => {
                    overtaken = Some(error);
                    break;
                }
            };
            if !open {
                break;
            }
            while let Ok(end) = ended.try_recv() {
                self.gone.push(end);
            }
            while messages.len() < MAX_AT_ONCE
                && let Ok(message) = inbox.try_recv()
            {
                messages.push(message);
            }
            let mut requests = Vec::with_capacity(messages.len());
            for message in messages.drain(..) {
                match message {
                    Message::Call(request) => requests.push(request),
                    // The caller is gone, and nothing else would report that this session has
                    // ended.
                    Message::Connect { reply, .. } if reply.is_closed() => {}
                    Message::Connect { arrival, reply } => {
                        self.connect(arrival);
                        let _ = reply.send(());
                    }
                    Message::Close(reply) => closing.push(reply),
                }
            }
            if let Err(error) = self.batch(requests, &mut inbox).await {
                overtaken = Some(error);
                break;
            }
        }
        inbox.close();
        if overtaken.is_none() {
            let leaves = self.reports.leaving.load(Ordering::Relaxed);
            let sessions = self.state.sessions().iter();
            let ending = sessions.filter(|(_, session)| !leaves || session.ticket.is_none());
            self.gone.extend(ending.map(|(connection, _)| *connection));
            overtaken = self.batch(Vec::new(), &mut inbox).await.err();
        }
        if let Some(error) = overtaken {
            self.reports.failing.store(true, Ordering::Relaxed);
            error!(%error, "the vault has stopped");
            self.reports.overtaken.send_replace(Some(error));
        }
        self.queues.clear();
        if let Some(lease) = self.lease.take()
            && self.reports.overtaken.borrow().is_none()
        {
            lease.resign().await;
        }
        let _ = self.store.close().await;
        for reply in closing {
            let _ = reply.send(());
        }
    }

    fn connect(&mut self, Arrival { id, queue }: Arrival) {
        self.queues.insert(id, NoticeQueue { sender: queue, sent: 0 });
        self.state.connect(id);
    }

    /// Runs requests, commits their changes, and replies.
    ///
    /// # Errors
    /// [`StoreError::Overtaken`] or [`StoreError::LeaseLost`], after which the vault must end. All
    /// other failures of the database are handled here.
    async fn batch(
        &mut self,
        mut requests: Vec<Box<dyn Request>>,
        inbox: &mut mpsc::Receiver<Message>,
    ) -> Result<(), Arc<StoreError>> {
        self.state.set_now((self.clock)());
        let needs = requests.iter().filter_map(|request| request.needs());
        let lacking: Vec<_> = needs.filter(|id| self.state.lacks(*id)).collect();
        if !lacking.is_empty() {
            // If this fails, the requests that need these contents will load them again.
            let _ = self.load(&lacking).await;
        }
        let gone = std::mem::take(&mut self.gone);
        for &connection in &gone {
            self.queues.remove(&connection);
            if self.run_loading(&mut |state| state.run_ending(connection)).await.is_err() {
                // The read is tried again with the next batch.
                self.gone.push(connection);
            }
        }
        // The number of notices after each request.
        let mut ends = Vec::with_capacity(requests.len());
        for request in &mut requests {
            if let Err(error) = self.run_loading(&mut |state| request.run(state)).await {
                request.refuse(error);
            }
            ends.push(self.state.notices());
        }
        if self.state.staged().is_empty() && !self.probe.is_due() {
            match self.is_active().await {
                true => self.finish(requests, &ends),
                false => {
                    refuse_all(requests, NetError::InternalError);
                    self.reports.failing.store(true, Ordering::Relaxed);
                    self.probe.schedule();
                    self.state.undo();
                    self.gone = gone;
                }
            }
            return Ok(());
        }
        let changes: Arc<Changes> = Arc::new(self.state.staged().clone());
        // An import can be a very large batch.
        let patience = patience(changes.len());
        let commit = timeout(patience, self.store.commit(self.position, changes)).await;
        let failure = match commit {
            Ok(Ok(())) => {
                if self.reports.failing.swap(false, Ordering::Relaxed) {
                    info!("the database accepts changes again");
                }
                self.probe.cancel();
                self.position = self.position.next();
                self.finish(requests, &ends);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => StoreError::Timeout,
        };
        // An outage is logged once.
        let is_known = self.reports.failing.swap(true, Ordering::Relaxed);
        let is_final = matches!(failure, StoreError::Overtaken { .. });
        if !is_final && !is_known {
            error!(error = %failure, requests = requests.len(), "a batch was not committed");
        }
        let error = refusal(&failure);
        refuse_all(requests, error);
        if is_final {
            return Err(failure.into());
        }
        let mut arrivals = Arrivals::default();
        let took_effect = tokio::select! {
            resolved = resolve(&self.store, self.position, error, inbox, &mut arrivals) => resolved?,
            error = lease_ended(&mut self.lease) => return Err(error),
        };
        info!(took_effect, "the database responds again");
        if took_effect {
            self.reports.failing.store(false, Ordering::Relaxed);
            self.probe.cancel();
            self.position = self.position.next();
            self.finish(Vec::new(), &[]);
        } else {
            // The next commit shows whether the database accepts changes again.
            self.probe.schedule();
            self.state.undo();
            self.gone = gone;
        }
        arrivals.0.into_iter().for_each(|arrival| self.connect(arrival));
        Ok(())
    }

    /// Whether this process may answer without a commit. A commit would prove that it still serves
    /// the database.
    async fn is_active(&mut self) -> bool {
        match &mut self.lease {
            None => true,
            Some(lease) => lease.is_valid() || lease.until_valid(LEASE_PATIENCE).await,
        }
    }

    /// Runs a request, loading contents until it needs no more.
    async fn run_loading(
        &mut self,
        run: &mut (dyn FnMut(&mut VaultState) -> Result<(), Vec<u32>> + Send),
    ) -> Result<(), NetError> {
        while let Err(ids) = run(&mut self.state) {
            let missing = match self.load(&ids).await {
                Ok(missing) => missing,
                Err(error) => return Err(refusal(&error)),
            };
            if let Some(id) = missing {
                error!(node = id, "a node has no content in the database");
                return Err(NetError::InternalError);
            }
        }
        Ok(())
    }

    /// Loads contents for this batch. Returns a node whose content is missing from the database.
    async fn load(&mut self, ids: &[u32]) -> Result<Option<u32>, StoreError> {
        let rows = timeout(patience(ids.len()), self.store.nodes(ids)).await;
        let rows = rows.unwrap_or(Err(StoreError::Timeout));
        let was_unreadable = std::mem::replace(&mut self.is_unreadable, rows.is_err());
        if let Err(error) = &rows
            && !was_unreadable
        {
            warn!(%error, "cannot read nodes");
        }
        for row in rows? {
            self.state.load_content(row.id, row.data);
        }
        Ok(ids.iter().copied().find(|id| self.state.lacks(*id)))
    }

    /// Completes a batch that took effect: sends notices and replies in the order of events.
    fn finish(&mut self, requests: Vec<Box<dyn Request>>, ends: &[usize]) {
        let mut notices = self.state.settle().into_iter();
        let mut delivered = 0;
        for (request, end) in requests.into_iter().zip(ends) {
            for (connection, notice) in notices.by_ref().take(end - delivered) {
                self.tell(connection, notice);
            }
            delivered = *end;
            let queue = request.connection().and_then(|id| self.queues.get(&id));
            request.answer(queue.map_or(0, |queue| queue.sent));
        }
        for (connection, notice) in notices {
            self.tell(connection, notice);
        }
    }

    fn tell(&mut self, connection: ConnectionId, notice: Notice) {
        let Some(queue) = self.queues.get_mut(&connection) else { return };
        match queue.sender.try_send(notice) {
            Ok(()) => queue.sent += 1,
            Err(mpsc::error::TrySendError::Full(_)) => {
                warn!(connection = connection.0, "session ended: too many queued notices");
                self.queues.remove(&connection);
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.queues.remove(&connection);
            }
        }
    }
}

fn refuse_all(requests: Vec<Box<dyn Request>>, error: NetError) {
    for mut request in requests {
        request.refuse(error);
        request.answer(0);
    }
}

/// Waits until the lease has ended; waits forever if there is none.
async fn lease_ended(lease: &mut Option<Lease>) -> Arc<StoreError> {
    match lease {
        Some(lease) => lease.ended().await,
        None => pending().await,
    }
}

/// How long the database may take to commit this many rows.
fn patience(rows: usize) -> Duration {
    PATIENCE + Duration::from_millis(u64::try_from(rows).unwrap_or(u64::MAX))
}

/// The result of requests when the database fails.
fn refusal(error: &StoreError) -> NetError {
    match error {
        StoreError::Timeout => NetError::TimeoutOdbc,
        _ => NetError::InternalError,
    }
}

/// Reads the whole database. The state is complete after [`VaultState::finish_loading`].
pub(crate) async fn load_rows(store: &dyn Store, state: &mut VaultState) -> Result<(), VaultError> {
    let settings = store.settings().await?;
    state.load_settings(&settings);
    store.accounts().await?.into_iter().for_each(|row| state.load_account(row));
    if !state.check_key(&settings) {
        return Err(VaultError::OtherKey);
    }
    for row in store.characters().await? {
        state.load_player(row)?;
    }
    store.scores().await?.into_iter().for_each(|row| state.load_score(row));
    let mut last = 0;
    loop {
        let page = store.nodes_behind(last, PAGE).await?;
        for row in &page {
            state.load_node(row)?;
            last = row.id;
        }
        if page.len() < PAGE as usize {
            break;
        }
    }
    store.refs().await?.into_iter().for_each(|row| state.load_ref(row));
    Ok(())
}
