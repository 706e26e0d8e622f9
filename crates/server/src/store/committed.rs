//! Data in memory that matches the database: each change is committed first and becomes visible
//! only afterwards.
//!
//! After a failure, the database is regarded as failing until a commit succeeds. If it is unknown
//! whether the batch took effect, all changes are refused at once until the database reports this,
//! so a change never waits for more than one failing change. A task queries the database and
//! occasionally commits an empty batch, to notice the end of an outage even if there are no
//! changes.
//!
//! If several processes share the database, answers from memory need the [lease](super::lease):
//! check [`Committed::is_active`] first. A commit does not need the lease, because the database
//! checks the epoch.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use super::lease::{LEASE_PATIENCE, Lease, LeaseView};
use super::probe::Probe;
use super::{Change, Changes, Ledger, Position, StoreError};
use crate::boot_clock::BootInstant;
use crate::ending::until_overtaken;

/// The time limit for a commit, and for a change that waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a change whose commit failed waits for the database to report whether it took effect.
const MOMENT: Duration = Duration::from_secs(2);
/// The minimum and the maximum delay before the database is queried again.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(5)];

/// Data in memory whose changes are rows of a database.
pub(crate) trait Indexed: Send + 'static {
    /// Applies changes that were committed.
    fn apply(&mut self, changes: &Changes);
}

/// Why the database did not store a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotStored(pub(crate) String);

/// A change in progress, as a future. The change is finished even if this is dropped.
#[derive(Debug)]
pub(crate) struct Changing<T, E>(JoinHandle<Result<T, E>>);

impl<T, E: From<NotStored>> Future for Changing<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.0).poll(context);
        done.map(|done| done.unwrap_or_else(|failed| Err(NotStored(failed.to_string()).into())))
    }
}

/// Data, and the only writer of its database. Cheap to clone.
pub(crate) struct Committed<D>(Arc<Inner<D>>);

struct Inner<D> {
    data: Mutex<D>,
    writer: tokio::sync::Mutex<Writer>,
    /// Why the last change could not be written to the database.
    failure: Mutex<Option<String>>,
    /// The task that tests a failing database.
    probing: Mutex<Option<AbortHandle>>,
    /// Wakes that task when a commit fails.
    doubt: Arc<Notify>,
    overtaken: watch::Sender<Option<Arc<StoreError>>>,
    /// The lease on a database that several processes share.
    lease: Option<LeaseView>,
    /// The task that waits for the end of the lease.
    watching: Mutex<Option<AbortHandle>>,
}

impl<D> Clone for Committed<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D> fmt::Debug for Committed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Committed")
    }
}

impl<D: Indexed> Committed<D> {
    /// Wraps data that was read after `writer` claimed the database, or that is equally complete.
    pub(crate) fn new(data: D, writer: Writer) -> Self {
        let lease = writer.lease.as_ref().map(Lease::view);
        let this = Self(Arc::new(Inner {
            data: Mutex::new(data),
            writer: tokio::sync::Mutex::new(writer),
            failure: Mutex::new(None),
            probing: Mutex::new(None),
            doubt: Arc::default(),
            overtaken: watch::Sender::new(None),
            lease: lease.clone(),
            watching: Mutex::new(None),
        }));
        if let Some(lease) = lease {
            let task = tokio::spawn(end_with(lease, Arc::downgrade(&this.0)));
            *this.watching() = Some(task.abort_handle());
        }
        this
    }

    /// The data. Change only data that is not stored in the database; all other changes need
    /// [`change`](Self::change).
    pub(crate) fn data(&self) -> MutexGuard<'_, D> {
        self.0.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change. When its turn comes, `plan` decides what to change. The change is committed,
    /// and then applied in memory.
    ///
    /// Every change is refused while it is uncertain whether an earlier one took effect, and after
    /// another process has taken over the database. If `plan` refuses a change, its reason is an
    /// answer from memory, so returning it needs the lease.
    pub(crate) fn change<T, E>(
        &self,
        plan: impl FnOnce(&D) -> Result<(Vec<Change>, T), E> + Send + 'static,
    ) -> Changing<T, E>
    where
        T: Send + 'static,
        E: From<NotStored> + Send + 'static,
    {
        let this = self.clone();
        Changing(tokio::spawn(async move {
            let turn = timeout(PATIENCE, this.0.writer.lock()).await;
            let Ok(mut writer) = turn else { return Err(this.not_stored().into()) };
            if this.overtaken().is_some() || writer.uncertain.is_some() {
                return Err(this.not_stored().into());
            }
            match this.write(&mut writer, plan).await {
                Ok(value) => Ok(value),
                Err(WriteError::Refused(refusal)) => {
                    drop(writer);
                    match this.is_active_soon().await {
                        true => Err(refusal),
                        false => Err(this.not_stored().into()),
                    }
                }
                Err(WriteError::Store(error)) => {
                    this.uncommitted(error);
                    Err(this.not_stored().into())
                }
            }
        }))
    }

    /// Whether this process may answer from memory, because no other process can have taken over
    /// yet.
    pub(crate) fn is_active(&self) -> bool {
        self.inactive_since().is_none()
    }

    /// The time since which another process may have taken over; `None` while this is impossible.
    pub(crate) fn inactive_since(&self) -> Option<BootInstant> {
        self.0.lease.as_ref().and_then(LeaseView::invalid_since)
    }

    /// Waits until this process may answer from memory. Returns false if the database did not
    /// confirm that in time.
    pub(crate) fn is_active_soon(&self) -> impl Future<Output = bool> + Send + use<D> {
        let lease = self.0.lease.clone();
        async move {
            match lease {
                Some(mut lease) => lease.until_valid(LEASE_PATIENCE).await,
                None => true,
            }
        }
    }

    /// Whether the last change could not be written to the database, or the lease on it could not
    /// be renewed. Empty changes probe a failing database, so this becomes false once the database
    /// accepts changes again.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing().is_some() || !self.is_active()
    }

    /// Why the database does not accept changes now.
    pub(crate) fn not_stored(&self) -> NotStored {
        let overtaken = self.overtaken().map(|error| error.to_string());
        let reason = overtaken.or_else(|| self.failing().clone());
        // If no other reason is known, earlier changes took too long.
        NotStored(reason.unwrap_or_else(|| StoreError::Timeout.to_string()))
    }

    fn failing(&self) -> MutexGuard<'_, Option<String>> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why changes are no longer possible, if another process took over the database, or may have:
    /// a [`StoreError::Overtaken`] or [`StoreError::LeaseLost`].
    pub(crate) fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.0.overtaken.borrow().clone()
    }

    /// Waits until another process takes over the database; waits forever if none does.
    pub(crate) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<D> {
        until_overtaken(self.0.overtaken.subscribe())
    }

    /// Gives up the lease and ends all connections to the database. From then on, this process must
    /// not answer any client.
    pub(crate) async fn close(&self) {
        // If the database does not answer, a test of it that is in progress would delay this.
        let tasks = [self.probing().take(), self.watching().take()];
        tasks.into_iter().flatten().for_each(|task| task.abort());
        let mut writer = self.0.writer.lock().await;
        if let Some(lease) = writer.lease.take()
            && self.overtaken().is_none()
        {
            lease.resign().await;
        }
        if let Err(error) = writer.ledger.close().await {
            tracing::warn!(%error, "cannot close the database");
        }
    }

    /// Handles a failed commit. The caller holds the writer.
    fn uncommitted(&self, error: StoreError) {
        if let StoreError::Overtaken { .. } = error {
            self.0.overtaken.send_replace(Some(Arc::new(error)));
            return;
        }
        self.0.doubt.notify_one();
        let mut probing = self.probing();
        if probing.is_none() {
            tracing::error!(%error, "the database does not accept changes");
            let task = recover(Arc::downgrade(&self.0), Arc::clone(&self.0.doubt));
            *probing = Some(tokio::spawn(task).abort_handle());
        }
    }

    fn probing(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.0.probing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watching(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.0.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write<T, E>(
        &self,
        writer: &mut Writer,
        plan: impl FnOnce(&D) -> Result<(Vec<Change>, T), E>,
    ) -> Result<T, WriteError<E>> {
        let (changes, value) = plan(&self.data()).map_err(WriteError::Refused)?;
        let changes = changes.into_iter().map(|change| (change.key(), change)).collect();
        let changes: Arc<Changes> = Arc::new(changes);
        if let Err(error) = writer.commit(Arc::clone(&changes)).await {
            *self.failing() = Some(error.to_string());
            if writer.uncertain.is_none() {
                return Err(error.into());
            }
            // Often, the database works and only its answer was lost.
            let took_effect = match timeout(MOMENT, writer.ledger.position()).await {
                Ok(Ok(answer)) => writer.settle(answer)?.is_some(),
                _ => false,
            };
            if !took_effect {
                return Err(error.into());
            }
        }
        self.succeeded(&changes);
        Ok(value)
    }

    /// Applies changes that took effect.
    fn succeeded(&self, changes: &Changes) {
        if self.failing().take().is_some() {
            tracing::info!("the database accepts changes again");
        }
        self.data().apply(changes);
    }
}

/// Reports the end of a lease.
async fn end_with<D: Indexed>(mut lease: LeaseView, inner: Weak<Inner<D>>) {
    let error = lease.ended().await;
    if let Some(inner) = inner.upgrade() {
        inner.overtaken.send_replace(Some(error));
    }
}

/// Queries and tests a failing database until it accepts changes again or belongs to another
/// process.
async fn recover<D: Indexed>(inner: Weak<Inner<D>>, doubt: Arc<Notify>) {
    let mut probe = match inner.upgrade() {
        Some(inner) => Probe::new(inner.lease.is_some()),
        None => return,
    };
    probe.schedule();
    while let Some(committed) = resolve(&inner).await {
        {
            let mut writer = committed.0.writer.lock().await;
            if probe.is_due()
                && committed.failing().is_some()
                && committed.overtaken().is_none()
                && writer.uncertain.is_none()
            {
                let nothing = |_: &D| Ok::<_, NotStored>((Vec::new(), ()));
                if let Err(WriteError::Store(error)) = committed.write(&mut writer, nothing).await {
                    tracing::warn!(%error, "the database still does not accept changes");
                    committed.uncommitted(error);
                    probe.schedule();
                }
            }
            // No other failure can be reported in between, because this holds the writer's lock.
            if committed.failing().is_none() || committed.overtaken().is_some() {
                committed.probing().take();
                return;
            }
        }
        drop(committed);
        tokio::select! {
            () = probe.due() => {}
            () = doubt.notified() => {}
        }
    }
}

/// Waits until the database reports whether an uncertain batch took effect. The writer is not
/// locked in the meantime, so changes are refused without waiting. Returns `None` once the server
/// has ended.
async fn resolve<D: Indexed>(inner: &Weak<Inner<D>>) -> Option<Committed<D>> {
    let [mut delay, most] = BACK_OFF;
    loop {
        let committed = Committed(inner.upgrade()?);
        let ledger = {
            let writer = committed.0.writer.lock().await;
            writer.uncertain.as_ref().map(|_| Arc::clone(&writer.ledger))
        };
        let Some(ledger) = ledger else { return Some(committed) };
        drop(committed);
        let answer = timeout(PATIENCE, ledger.position()).await;
        match answer.unwrap_or(Err(StoreError::Timeout)) {
            Ok(answer) => {
                let committed = Committed(inner.upgrade()?);
                let mut writer = committed.0.writer.lock().await;
                match writer.settle(answer) {
                    Ok(Some(changes)) => committed.succeeded(&changes),
                    Ok(None) => {}
                    Err(error) => committed.uncommitted(error),
                }
                drop(writer);
                return Some(committed);
            }
            Err(error) => tracing::debug!(%error, "the database is not available yet"),
        }
        sleep(delay).await;
        delay = (delay * 2).min(most);
    }
}

/// The only writer of a database.
pub(crate) struct Writer {
    ledger: Arc<dyn Ledger>,
    /// The last batch that took effect.
    position: Position,
    /// A batch that may or may not have taken effect. Nothing else is committed until this is
    /// known.
    uncertain: Option<Arc<Changes>>,
    /// The lease on a database that several processes share.
    lease: Option<Lease>,
}

impl Writer {
    /// The writer of a database that this process has taken over.
    pub(crate) fn leased(ledger: Arc<dyn Ledger>, position: Position, lease: Lease) -> Self {
        Self { ledger, position, uncertain: None, lease: Some(lease) }
    }

    /// Claims the database. From now on, no other process can change it.
    pub(crate) async fn open(ledger: Arc<dyn Ledger>) -> Result<Self, StoreError> {
        let position = ledger.claim().await?;
        Ok(Self { ledger, position, uncertain: None, lease: None })
    }

    /// Commits changes. After any error except [`StoreError::Overtaken`], they are uncertain.
    async fn commit(&mut self, changes: Arc<Changes>) -> Result<(), StoreError> {
        let commit = self.ledger.commit(self.position, Arc::clone(&changes));
        let error = match timeout(PATIENCE, commit).await {
            Ok(Ok(())) => {
                self.position = self.position.next();
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => StoreError::Timeout,
        };
        if !matches!(error, StoreError::Overtaken { .. }) {
            self.uncertain = Some(changes);
        }
        Err(error)
    }

    /// Uses the database's answer to find out whether the uncertain batch took effect, and returns
    /// its changes if it did.
    ///
    /// In another epoch, a higher batch number says nothing about this batch.
    fn settle(
        &mut self,
        (found, writer): (Position, String),
    ) -> Result<Option<Arc<Changes>>, StoreError> {
        if found != self.position && found != self.position.next() {
            return Err(StoreError::overtaken(self.position, found, writer));
        }
        let took_effect = found != self.position;
        self.position = found;
        Ok(self.uncertain.take().filter(|_| took_effect))
    }
}

enum WriteError<E> {
    Refused(E),
    Store(StoreError),
}

impl<E> From<StoreError> for WriteError<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
