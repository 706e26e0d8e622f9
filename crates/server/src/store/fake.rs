//! A fake database for tests of its lease, position and settings.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::lease::{LeaseRow, SeenStandby, SharedStore, Sighting};
use super::{
    AccountRow, Changes, CharacterRow, Ledger, NodeRow, Pending, PlacementRow, Position, RefRow,
    ScoreRow, SessionRow, SettingRow, Store, StoreError,
};

#[derive(Debug, Default)]
pub(super) struct Fake {
    /// The last batch.
    pub(super) batch: AtomicU64,
    /// The answers to the next requests for settings.
    pub(super) settings: Mutex<VecDeque<Result<Vec<SettingRow>, StoreError>>>,
    /// The number of renewals so far.
    pub(super) renewals: AtomicU64,
    /// How long each renewal takes.
    pub(super) delay: Mutex<Duration>,
    /// When the last renewal began.
    pub(super) started: Mutex<Option<Instant>>,
    /// Whether renewals never receive an answer.
    pub(super) is_down: AtomicBool,
    pub(super) is_taken_over: AtomicBool,
    pub(super) is_resigned: AtomicBool,
}

/// Requests that never receive an answer.
macro_rules! unused {
    ($($name:ident($($argument:ty),*) -> $value:ty;)*) => {$(
        fn $name(&self, $(_: $argument),*) -> Pending<'_, $value> {
            Box::pin(pending())
        }
    )*};
}

impl Ledger for Fake {
    unused! {
        claim() -> Position;
        commit(Position, Arc<Changes>) -> ();
        position() -> (Position, String);
        accounts() -> Vec<AccountRow>;
        characters() -> Vec<CharacterRow>;
        close() -> ();
    }

    fn settings(&self) -> Pending<'_, Vec<SettingRow>> {
        let answer = self.settings.lock().unwrap().pop_front();
        Box::pin(async { answer.expect("the test expects this request") })
    }
}

impl Store for Fake {
    unused! {
        nodes_behind(u32, u32) -> Vec<NodeRow>;
        refs() -> Vec<RefRow>;
        scores() -> Vec<ScoreRow>;
        placements() -> Vec<PlacementRow>;
    }

    fn nodes<'s>(&'s self, _: &'s [u32]) -> Pending<'s, Vec<NodeRow>> {
        Box::pin(pending())
    }
}

impl SharedStore for Fake {
    fn look(&self) -> Pending<'_, Sighting> {
        let position = Position { epoch: 4, batch: self.batch.load(Ordering::Relaxed) };
        let writer = "process 1 on host".to_owned();
        let lease = LeaseRow { epoch: 4, beat: 0 };
        Box::pin(async move { Ok(Sighting { position, writer, lease }) })
    }

    fn take_over<'s>(&'s self, _: &'s Sighting, _: bool) -> Pending<'s, Option<Position>> {
        Box::pin(pending())
    }

    fn renew(&self, _: u64) -> Pending<'_, bool> {
        Box::pin(async {
            if self.is_down.load(Ordering::Relaxed) {
                return pending().await;
            }
            *self.started.lock().unwrap() = Some(Instant::now());
            let delay = *self.delay.lock().unwrap();
            sleep(delay).await;
            self.renewals.fetch_add(1, Ordering::Relaxed);
            Ok(!self.is_taken_over.load(Ordering::Relaxed))
        })
    }

    fn resign(&self, _: u64) -> Pending<'_, ()> {
        self.is_resigned.store(true, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }

    fn standbys(&self) -> Pending<'_, Vec<SeenStandby>> {
        Box::pin(pending())
    }

    fn sessions(&self) -> Pending<'_, Vec<(u64, SessionRow)>> {
        Box::pin(pending())
    }

    /// The log contains only the last batch.
    fn changes_after(&self, batch: u64) -> Pending<'_, Option<(u64, Changes)>> {
        let is_last = batch == self.batch.load(Ordering::Relaxed);
        Box::pin(async move { Ok(is_last.then(|| (batch, Changes::new()))) })
    }
}
