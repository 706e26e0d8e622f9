//! How changes get into the database: one batch after another, each durable before it is visible.
//!
//! After a failure, the database counts as failing until a commit succeeds. If it is not known
//! whether the batch took effect, all changes are refused at once until the database says so: a
//! change never waits for more than one other change that fails. A task asks the database, and
//! commits an empty batch now and then, so that the end of an outage is noticed without any changes.

use std::pin::Pin;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};

use super::{Realm, Shared, State};
use crate::ki::refusal::Refusal;
use crate::store::probe::Probe;
use crate::store::{Change, Changes, Ledger, Position, StoreError};

/// How long a commit may take, and how long a change waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a change whose commit failed waits for the database to say whether it took effect.
const MOMENT: Duration = Duration::from_secs(2);
/// The delay before the database is asked again: the first and the longest.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(5)];

/// The only writer of the database.
#[derive(Debug)]
pub(super) struct Writer {
    ledger: LedgerRef,
    /// The last batch that took effect.
    position: Position,
    /// A batch that may or may not have taken effect. Nothing is committed until that is known.
    uncertain: Option<Arc<Changes>>,
}

/// A database. Its `Debug` output has no details.
#[derive(Clone)]
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

    /// Commits changes. After any error except [`StoreError::Overtaken`], they are uncertain.
    async fn commit(&mut self, changes: Arc<Changes>) -> Result<(), StoreError> {
        let commit = self.ledger.0.commit(self.position, Arc::clone(&changes));
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

/// A change in progress, as a future. The change is finished even if this is dropped.
#[derive(Debug)]
pub(crate) struct Changing<T>(JoinHandle<Result<T, Refusal>>);

impl<T> Future for Changing<T> {
    type Output = Result<T, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.0).poll(context);
        done.map(|done| done.unwrap_or(Err(Refusal::FailedUpload)))
    }
}

impl Realm {
    /// Makes a change. `plan` decides what it is when its turn comes; it is committed, and then
    /// applied in memory.
    ///
    /// Every change is refused while it is uncertain whether an earlier one took effect, and after
    /// another process has taken over the database.
    pub(super) fn change<T: Send + 'static>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal> + Send + 'static,
    ) -> Changing<T> {
        let realm = self.clone();
        Changing(tokio::spawn(async move {
            let turn = timeout(PATIENCE, realm.0.writer.lock()).await;
            let Ok(mut writer) = turn else { return Err(Refusal::FailedUpload) };
            if realm.overtaken().is_some() || writer.uncertain.is_some() {
                return Err(Refusal::FailedUpload);
            }
            realm.write(&mut writer, plan).await.map_err(|error| match error {
                WriteError::Refused(refusal) => refusal,
                WriteError::Store(error) => {
                    realm.uncommitted(error);
                    Refusal::FailedUpload
                }
            })
        }))
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
            tracing::error!(%error, "the database accepts no changes");
            let task = recover(Arc::downgrade(&self.0), Arc::clone(&self.0.doubt));
            *probing = Some(tokio::spawn(task).abort_handle());
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

    /// Why the database accepts no changes, if the last one failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.failing().clone()
    }

    fn failing(&self) -> MutexGuard<'_, Option<String>> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write<T>(
        &self,
        writer: &mut Writer,
        plan: impl FnOnce(&State) -> Result<(Vec<Change>, T), Refusal>,
    ) -> Result<T, WriteError> {
        let (changes, value) = plan(&self.state()).map_err(WriteError::Refused)?;
        let changes = changes.into_iter().map(|change| (change.key(), change)).collect();
        let changes: Arc<Changes> = Arc::new(changes);
        if let Err(error) = writer.commit(Arc::clone(&changes)).await {
            *self.failing() = Some(error.to_string());
            if writer.uncertain.is_none() {
                return Err(error.into());
            }
            // Often the database works, and only its answer was lost.
            let took_effect = match timeout(MOMENT, writer.ledger.0.position()).await {
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
        self.state().apply(changes);
    }
}

/// Asks and tests a failing database until it accepts changes again or belongs to another process.
async fn recover(shared: Weak<Shared>, doubt: Arc<Notify>) {
    let mut probe = Probe::default();
    probe.schedule();
    while let Some(realm) = resolve(&shared).await {
        {
            let mut writer = realm.0.writer.lock().await;
            if probe.is_due()
                && realm.is_failing()
                && realm.overtaken().is_none()
                && writer.uncertain.is_none()
                && let Err(WriteError::Store(error)) =
                    realm.write(&mut writer, |_| Ok((Vec::new(), ()))).await
            {
                tracing::warn!(%error, "the database still accepts no changes");
                realm.uncommitted(error);
                probe.schedule();
            }
            // No other failure can be reported in between, because the writer is locked.
            if !realm.is_failing() || realm.overtaken().is_some() {
                realm.probing().take();
                return;
            }
        }
        drop(realm);
        tokio::select! {
            () = probe.due() => {}
            () = doubt.notified() => {}
        }
    }
}

/// Waits until the database says whether an uncertain batch took effect. The writer is free
/// meanwhile, so that changes are refused without waiting. Returns `None` after the server's end.
async fn resolve(shared: &Weak<Shared>) -> Option<Realm> {
    let [mut delay, most] = BACK_OFF;
    loop {
        let realm = Realm(shared.upgrade()?);
        let ledger = {
            let writer = realm.0.writer.lock().await;
            writer.uncertain.as_ref().map(|_| writer.ledger.clone())
        };
        let Some(ledger) = ledger else { return Some(realm) };
        drop(realm);
        let answer = timeout(PATIENCE, ledger.0.position()).await;
        match answer.unwrap_or(Err(StoreError::Timeout)) {
            Ok(answer) => {
                let realm = Realm(shared.upgrade()?);
                let mut writer = realm.0.writer.lock().await;
                match writer.settle(answer) {
                    Ok(Some(changes)) => realm.succeeded(&changes),
                    Ok(None) => {}
                    Err(error) => realm.uncommitted(error),
                }
                drop(writer);
                return Some(realm);
            }
            Err(error) => tracing::warn!(%error, "the database is not available yet"),
        }
        sleep(delay).await;
        delay = (delay * 2).min(most);
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
