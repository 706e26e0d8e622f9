//! Data in memory that is the same as in the database: each change is committed first, and becomes
//! visible afterwards.
//!
//! After a failure, the database counts as failing until a commit succeeds. A task commits an empty
//! batch now and then, so that this is noticed without any changes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::probe::Probe;
use super::{Change, Changes, Ledger, Position, StoreError};
use crate::ending::until_overtaken;

/// How long a commit may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// If the answer to a commit was lost: how often to ask whether it took effect, and how long to
/// wait in between.
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(1);

/// Data in memory whose changes are rows of a database.
pub(crate) trait Indexed: Send + 'static {
    /// Applies changes that were committed.
    fn apply(&mut self, changes: &Changes);
}

/// The database did not store a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotStored;

/// Data, and the only writer of its database. Cheap to clone.
pub(crate) struct Committed<D>(Arc<Inner<D>>);

struct Inner<D> {
    data: Mutex<D>,
    writer: tokio::sync::Mutex<Writer>,
    is_failing: AtomicBool,
    /// The task that tests a failing database.
    probing: Mutex<Option<AbortHandle>>,
    overtaken: watch::Sender<Option<Arc<StoreError>>>,
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
    /// Uses data that was read after `writer` had claimed the database.
    pub(crate) fn new(data: D, writer: Writer) -> Self {
        Self(Arc::new(Inner {
            data: Mutex::new(data),
            writer: tokio::sync::Mutex::new(writer),
            is_failing: AtomicBool::new(false),
            probing: Mutex::new(None),
            overtaken: watch::Sender::new(None),
        }))
    }

    /// The data. Change only what is not stored; everything else needs [`change`](Self::change).
    pub(crate) fn data(&self) -> MutexGuard<'_, D> {
        self.0.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change. `plan` decides what it is when its turn comes; it is committed, and then
    /// applied in memory. A change that has begun is finished even if the caller stops waiting.
    ///
    /// After another process has taken over the database, every change is refused.
    pub(crate) async fn change<T, E>(
        &self,
        plan: impl FnOnce(&D) -> Result<(Vec<Change>, T), E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<NotStored> + Send + 'static,
    {
        let this = self.clone();
        let work = tokio::spawn(async move {
            let mut writer = this.0.writer.lock().await;
            if this.overtaken().is_some() {
                return Err(NotStored.into());
            }
            this.write(&mut writer, plan).await.map_err(|error| match error {
                WriteError::Refused(refusal) => refusal,
                WriteError::Store(error) => {
                    if !this.0.is_failing.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "the database accepts no changes");
                    }
                    this.uncommitted(error);
                    NotStored.into()
                }
            })
        });
        work.await.unwrap_or_else(|_| Err(NotStored.into()))
    }

    /// Whether the last change could not be written to the database. Empty changes test a failing
    /// database, so this ends when it accepts changes again.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    /// Why no change is possible any more, if another process took over the database: a
    /// [`StoreError::Overtaken`].
    pub(crate) fn overtaken(&self) -> Option<Arc<StoreError>> {
        self.0.overtaken.borrow().clone()
    }

    /// Waits until another process takes over the database; forever, if none does.
    pub(crate) fn until_overtaken(&self) -> impl Future<Output = ()> + Send + use<D> {
        until_overtaken(self.0.overtaken.subscribe())
    }

    /// Ends all connections to the database.
    pub(crate) async fn close(&self) {
        // A test of a database that does not answer would delay this.
        if let Some(task) = self.probing().take() {
            task.abort();
        }
        let writer = self.0.writer.lock().await;
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
        let mut probing = self.probing();
        if probing.is_none() {
            *probing = Some(tokio::spawn(probe(Arc::downgrade(&self.0))).abort_handle());
        }
    }

    fn probing(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.0.probing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write<T, E>(
        &self,
        writer: &mut Writer,
        plan: impl FnOnce(&D) -> Result<(Vec<Change>, T), E>,
    ) -> Result<T, WriteError<E>> {
        if let Some(changes) = writer.find_out().await? {
            self.data().apply(&changes);
        }
        let (changes, value) = plan(&self.data()).map_err(WriteError::Refused)?;
        let changes = changes.into_iter().map(|change| (change.key(), change)).collect();
        let changes: Arc<Changes> = Arc::new(changes);
        writer.commit(Arc::clone(&changes)).await?;
        if self.0.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the database accepts changes again");
        }
        self.data().apply(&changes);
        Ok(value)
    }
}

/// Tests a failing database until it accepts changes again or belongs to another process.
async fn probe<D: Indexed>(inner: Weak<Inner<D>>) {
    let mut probe = Probe::default();
    loop {
        probe.schedule();
        probe.due().await;
        let Some(committed) = inner.upgrade().map(Committed) else { return };
        let mut writer = committed.0.writer.lock().await;
        if committed.is_failing() && committed.overtaken().is_none() {
            let nothing = |_: &D| Ok::<_, NotStored>((Vec::new(), ()));
            if let Err(WriteError::Store(error)) = committed.write(&mut writer, nothing).await {
                tracing::warn!(%error, "the database still accepts no changes");
                committed.uncommitted(error);
            }
        }
        // With the writer locked, nobody can report another failure in between.
        if !committed.is_failing() || committed.overtaken().is_some() {
            committed.probing().take();
            return;
        }
    }
}

/// The only writer of a database.
pub(crate) struct Writer {
    ledger: Arc<dyn Ledger>,
    /// The last batch that took effect.
    position: Position,
    /// A batch that may or may not have taken effect.
    uncertain: Option<Arc<Changes>>,
}

impl Writer {
    /// Claims the database. From now on, no other process can change it.
    pub(crate) async fn open(ledger: Arc<dyn Ledger>) -> Result<Self, StoreError> {
        let position = ledger.claim().await?;
        Ok(Self { ledger, position, uncertain: None })
    }

    /// Commits changes. After `Ok` they took effect; after `Err` they did not, or it is not known
    /// yet.
    async fn commit(&mut self, changes: Arc<Changes>) -> Result<(), StoreError> {
        let commit = self.ledger.commit(self.position, Arc::clone(&changes));
        let error = match timeout(PATIENCE, commit).await {
            Ok(Ok(())) => {
                self.position = self.position.next();
                return Ok(());
            }
            Ok(Err(error @ StoreError::Overtaken { .. })) => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => StoreError::Timeout,
        };
        self.uncertain = Some(changes);
        match self.find_out().await? {
            Some(_) => Ok(()),
            None => Err(error),
        }
    }

    /// Finds out whether an uncertain batch took effect, and returns its changes if it did.
    ///
    /// In another epoch, a higher batch number says nothing about this batch.
    async fn find_out(&mut self) -> Result<Option<Arc<Changes>>, StoreError> {
        let Some(changes) = self.uncertain.clone() else { return Ok(None) };
        let mut tries = 1;
        let (found, writer) = loop {
            match timeout(PATIENCE, self.ledger.position()).await {
                Ok(Ok(found)) => break found,
                Ok(Err(error)) if tries == TRIES => return Err(error),
                Err(_) if tries == TRIES => return Err(StoreError::Timeout),
                _ => {}
            }
            tries += 1;
            sleep(BETWEEN).await;
        };
        let counts = match found {
            found if found == self.position => None,
            found if found == self.position.next() => {
                self.position = found;
                Some(changes)
            }
            found => {
                return Err(StoreError::overtaken(self.position, found, writer));
            }
        };
        self.uncertain = None;
        Ok(counts)
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
