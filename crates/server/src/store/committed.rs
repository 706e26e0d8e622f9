//! How changes get into the database: one batch after another, each durable before it is visible.
//!
//! After a failure, the database counts as failing until a commit succeeds. A task commits an empty
//! batch now and then, so that this is noticed without any changes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::{Realm, Shared, State};
use crate::ki::refusal::Refusal;
use crate::store::probe::Probe;
use crate::store::{Change, Changes, Ledger, Position, StoreError};

/// How long a commit may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// If the answer to a commit was lost: how often to ask whether it took effect, and how long to
/// wait in between.
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(1);

/// The only writer of the database.
#[derive(Debug)]
pub(super) struct Writer {
    ledger: LedgerRef,
    /// The last batch that took effect.
    position: Position,
    /// A batch that may or may not have taken effect.
    uncertain: Option<Arc<Changes>>,
}

/// A database. Its `Debug` output has no details.
pub(super) struct LedgerRef(Arc<dyn Ledger>);

impl core::fmt::Debug for LedgerRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ledger")
    }
}

impl Writer {
    /// Claims the database. From now on, no other process can change it.
    pub(super) async fn open(ledger: Arc<dyn Ledger>) -> Result<Self, StoreError> {
        let position = ledger.claim().await?;
        Ok(Self { ledger: LedgerRef(ledger), position, uncertain: None })
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.ledger.0.close().await
    }

    /// Commits changes. After `Ok` they took effect; after `Err` they did not, or it is not known
    /// yet.
    async fn commit(&mut self, changes: Arc<Changes>) -> Result<(), StoreError> {
        let commit = self.ledger.0.commit(self.position, Arc::clone(&changes));
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
            match timeout(PATIENCE, self.ledger.0.position()).await {
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

impl Realm {
    /// Makes a change. `plan` decides what it is when its turn comes; it is committed, and then
    /// applied in memory. A change that has begun is finished even if the caller stops waiting.
    ///
    /// After another process has taken over the database, every change is refused.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let realm = self.clone();
        let work = tokio::spawn(async move {
            let mut writer = realm.0.writer.lock().await;
            if realm.overtaken().is_some() {
                return Err(Refusal::FailedUpload);
            }
            realm.write(&mut writer, plan).await.map_err(|error| match error {
                WriteError::Refused(refusal) => refusal,
                WriteError::Store(error) => {
                    if !realm.0.is_failing.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "the database accepts no changes");
                    }
                    realm.uncommitted(error);
                    Refusal::FailedUpload
                }
            })
        });
        work.await.unwrap_or(Err(Refusal::FailedUpload))
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

    /// Stops testing the database.
    pub(super) fn stop_probing(&self) {
        if let Some(task) = self.probing().take() {
            task.abort();
        }
    }

    fn probing(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.0.probing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write<T>(
        &self,
        writer: &mut Writer,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal>,
    ) -> Result<T, WriteError> {
        if let Some(changes) = writer.find_out().await? {
            self.state().apply(&changes);
        }
        let (changes, value) = plan(&self.state()).map_err(WriteError::Refused)?;
        let changes = changes.into_iter().map(|change| (change.key(), change)).collect();
        let changes: Arc<Changes> = Arc::new(changes);
        writer.commit(Arc::clone(&changes)).await?;
        if self.0.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the database accepts changes again");
        }
        self.state().apply(&changes);
        Ok(value)
    }
}

/// Tests a failing database until it accepts changes again or belongs to another process.
async fn probe(shared: Weak<Shared>) {
    let mut probe = Probe::default();
    loop {
        probe.schedule();
        probe.due().await;
        let Some(realm) = shared.upgrade().map(Realm) else { return };
        let mut writer = realm.0.writer.lock().await;
        if realm.is_failing()
            && realm.overtaken().is_none()
            && let Err(WriteError::Store(error)) =
                realm.write(&mut writer, |_| Ok((Vec::new(), ()))).await
        {
            tracing::warn!(%error, "the database still accepts no changes");
            realm.uncommitted(error);
        }
        // With the writer locked, nobody can report another failure in between.
        if !realm.is_failing() || realm.overtaken().is_some() {
            realm.probing().take();
            return;
        }
    }
}

enum WriteError {
    Refused(Refusal),
    Store(StoreError),
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
