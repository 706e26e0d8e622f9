//! A copy of data that another process serves, kept up to date until this process takes over.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tracing::info;

use super::lease::{Lease, LeaseRow, SharedStore, Sighting, Verdict, Watch};
use super::{Changes, Position, Store, StoreError};
use crate::boot_clock::BootInstant;

/// How long the database may take to answer when a standby looks at it.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// Data in memory that follows a database.
pub(crate) trait Copied: Send + 'static {
    /// Why the data cannot be used.
    type Error: From<StoreError> + Error + Send;

    /// Reads the whole database, which other processes may change in the meantime.
    fn load(&mut self, store: &dyn Store) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Applies changes that another process committed.
    fn follow(&mut self, changes: &Changes) -> Result<(), Self::Error>;

    /// Removes everything that was loaded.
    fn forget(&mut self);

    /// Extracts the database's error, which may be temporary. Returns any other error as `Err`.
    fn outage(error: Self::Error) -> Result<StoreError, Self::Error>;
}

/// The copy.
pub(crate) struct Follower<C> {
    store: Arc<dyn SharedStore>,
    copy: C,
    /// The last batch that the copy includes; `None` while the copy is incomplete.
    batch: Option<u64>,
    watch: Watch,
}

impl<C> fmt::Debug for Follower<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The result of a look at the active process.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) sighting: Sighting,
    pub(crate) verdict: Verdict,
    /// Whether the standby has seen a lease renewal by the process that wrote last.
    pub(crate) is_alive: bool,
    /// The number of batches that the copy lacked.
    pub(crate) behind: u64,
}

impl<C: Copied> Follower<C> {
    /// Reads the whole database into an empty copy.
    pub(crate) async fn open(store: Arc<dyn SharedStore>, copy: C) -> Result<Self, C::Error> {
        let mut this = Self { store, copy, batch: None, watch: Watch::default() };
        this.catch_up().await?;
        Ok(this)
    }

    /// Looks at the active process, and catches up with its changes.
    pub(crate) async fn look(&mut self) -> Result<Look, C::Error> {
        let asked = BootInstant::now();
        let sighting = timeout(LOOK_WITHIN, self.store.look()).await;
        let sighting = sighting.map_err(|_| StoreError::Timeout)??;
        let verdict = self.watch.see(&sighting, asked, BootInstant::now());
        let behind = sighting.position.batch.saturating_sub(self.batch.unwrap_or_default());
        if self.batch != Some(sighting.position.batch) {
            self.catch_up().await?;
        }
        let is_alive = self.watch.has_seen_renewal(sighting.lease);
        Ok(Look { sighting, verdict, is_alive, behind })
    }

    /// Takes over the database if nothing has changed since the look. Returns `None` if another
    /// process was faster or is active again.
    pub(crate) async fn take_over(&self, look: &Look) -> Result<Option<Taken>, StoreError> {
        let by_force = look.verdict == Verdict::TakeOverByForce;
        let start = BootInstant::now();
        let position = self.store.take_over(&look.sighting, by_force).await?;
        let is_clean = look.sighting.lease.beat == LeaseRow::RESIGNED;
        Ok(position.map(|position| {
            let lease = Lease::keep(Arc::clone(&self.store), position, start);
            Taken { position, last_epoch: look.sighting.position.epoch, lease, is_clean }
        }))
    }

    /// Completes the copy after this process has taken over. Nobody else changes the database now.
    pub(crate) async fn lead(mut self, taken: Taken) -> Result<Led<C>, C::Error> {
        while self.batch != Some(taken.position.batch) {
            self.catch_up().await?;
        }
        let Self { store, copy, .. } = self;
        let Taken { position, last_epoch, lease, is_clean } = taken;
        Ok(Led { store, copy, position, last_epoch, lease, is_clean })
    }

    async fn catch_up(&mut self) -> Result<(), C::Error> {
        if let Some(batch) = self.batch {
            if let Some((last, changes)) = self.store.changes_after(batch).await? {
                self.copy.follow(&changes)?;
                self.batch = Some(last);
                return Ok(());
            }
            info!(
                "reading the whole database again: its log does not go back far enough, or it was \
                 restored from a backup"
            );
        }
        self.read_all().await
    }

    /// Reads everything, and then the changes committed since the reading began.
    async fn read_all(&mut self) -> Result<(), C::Error> {
        // A partly read copy must never pass for a complete one.
        self.batch = None;
        self.copy.forget();
        let start = self.store.look().await?.position.batch;
        self.copy.load(&*self.store).await?;
        if let Some((last, changes)) = self.store.changes_after(start).await? {
            self.copy.follow(&changes)?;
            self.batch = Some(last);
        }
        // Otherwise, the next look starts over.
        Ok(())
    }
}

/// A database that this process has taken over.
#[derive(Debug)]
pub(crate) struct Taken {
    position: Position,
    last_epoch: u64,
    lease: Lease,
    is_clean: bool,
}

/// Everything needed to serve a database that this process has taken over.
pub(crate) struct Led<C> {
    pub(crate) store: Arc<dyn SharedStore>,
    /// The data, complete up to `position`.
    pub(crate) copy: C,
    pub(crate) position: Position,
    /// The previous process's epoch.
    pub(crate) last_epoch: u64,
    pub(crate) lease: Lease,
    /// Whether the previous process gave up its lease.
    pub(crate) is_clean: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::store::SettingRow;
    use crate::store::fake::Fake;

    /// The names of all settings.
    #[derive(Debug, Default)]
    struct Names(Vec<String>);

    impl Copied for Names {
        type Error = StoreError;

        async fn load(&mut self, store: &dyn Store) -> Result<(), StoreError> {
            self.0 = store.settings().await?.into_iter().map(|row| row.name).collect();
            Ok(())
        }

        fn follow(&mut self, _: &Changes) -> Result<(), StoreError> {
            Ok(())
        }

        fn forget(&mut self) {
            self.0.clear();
        }

        fn outage(error: StoreError) -> Result<StoreError, StoreError> {
            Ok(error)
        }
    }

    fn settings(names: &[&str]) -> Result<Vec<SettingRow>, StoreError> {
        let row = |name: &&str| SettingRow { name: (*name).to_owned(), value: Vec::new() };
        Ok(names.iter().map(row).collect())
    }

    /// Otherwise, a standby would serve and overwrite data that it does not know.
    #[tokio::test(start_paused = true)]
    async fn a_copy_that_was_read_in_part_is_read_again() {
        let fake = Arc::<Fake>::default();
        let answer = |answer| fake.settings.lock().unwrap().push_back(answer);
        answer(settings(&["a"]));
        let mut follower = Follower::open(Arc::clone(&fake) as _, Names::default()).await.unwrap();
        assert_eq!(follower.copy.0, ["a"]);

        // The log of the fake database is always too short.
        fake.batch.store(9, Ordering::Relaxed);
        answer(Err(StoreError::Timeout));
        follower.look().await.unwrap_err();
        assert!(follower.copy.0.is_empty());
        answer(settings(&["a", "b"]));
        assert_eq!(follower.look().await.unwrap().behind, 9);
        assert_eq!(follower.copy.0, ["a", "b"]);
        assert_eq!(follower.look().await.unwrap().behind, 0);
    }
}
