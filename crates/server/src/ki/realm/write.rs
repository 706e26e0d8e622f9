//! How changes get into the database: one batch after the other, each durable before it counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{Realm, State};
use crate::ki::refusal::Refusal;
use crate::store::{Change, Changes, Ledger, StoreError};

/// How long a commit may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to ask whether a commit counted whose answer was lost, and how long between.
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_secs(1);

/// The only one who writes.
#[derive(Debug)]
pub(super) struct Writer {
    ledger: LedgerRef,
    /// The number of the last batch that counts.
    batch: u64,
    /// A batch of which nobody knows whether it counts.
    uncertain: Option<Arc<Changes>>,
}

/// A database, which has nothing to show.
pub(super) struct LedgerRef(Arc<dyn Ledger>);

impl core::fmt::Debug for LedgerRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Ledger")
    }
}

impl Writer {
    pub(super) async fn open(ledger: Arc<dyn Ledger>) -> Result<Self, StoreError> {
        let batch = ledger.batch().await?;
        Ok(Self { ledger: LedgerRef(ledger), batch, uncertain: None })
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.ledger.0.close().await
    }

    /// Commits changes. `Ok` says that they count, `Err` that they do not.
    async fn commit(&mut self, changes: Arc<Changes>) -> Result<(), StoreError> {
        let number = self.batch + 1;
        let commit = self.ledger.0.commit(number, Arc::clone(&changes));
        let error = match timeout(PATIENCE, commit).await {
            Ok(Ok(())) => {
                self.batch = number;
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => StoreError::Timeout,
        };
        self.uncertain = Some(changes);
        match self.find_out().await? {
            Some(_) => Ok(()),
            None => Err(error),
        }
    }

    /// Finds out whether the last batch counts: then these are its changes.
    async fn find_out(&mut self) -> Result<Option<Arc<Changes>>, StoreError> {
        let Some(changes) = self.uncertain.clone() else { return Ok(None) };
        let mut tries = 1;
        let found = loop {
            match timeout(PATIENCE, self.ledger.0.batch()).await {
                Ok(Ok(found)) => break found,
                Ok(Err(error)) if tries == TRIES => return Err(error),
                Err(_) if tries == TRIES => return Err(StoreError::Timeout),
                _ => {}
            }
            tries += 1;
            sleep(BETWEEN).await;
        };
        let counts = match found {
            found if found == self.batch => None,
            found if found == self.batch + 1 => {
                self.batch = found;
                Some(changes)
            }
            found => return Err(StoreError::Overtaken { wanted: self.batch, found }),
        };
        self.uncertain = None;
        Ok(counts)
    }
}

impl Realm {
    /// Makes a change: `plan` says what it is, by the state of things when its turn comes; then it
    /// is committed, and then it is made in memory. A change that has begun goes on when nobody
    /// waits for it any more.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let realm = self.clone();
        let work = tokio::spawn(async move {
            let mut writer = realm.0.writer.lock().await;
            let outcome = realm.write(&mut writer, plan).await;
            if let Err(WriteError::Store(error)) = &outcome
                && !realm.0.is_failing.swap(true, Ordering::Relaxed)
            {
                tracing::error!(%error, "the database takes no changes");
            }
            outcome.map_err(|error| match error {
                WriteError::Refused(refusal) => refusal,
                WriteError::Store(_) => Refusal::FailedUpload,
            })
        });
        work.await.unwrap_or(Err(Refusal::FailedUpload))
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
            tracing::info!("the database takes changes again");
        }
        self.state().apply(&changes);
        Ok(value)
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
