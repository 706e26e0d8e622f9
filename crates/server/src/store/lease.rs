//! Which of several processes serves a database: the active one keeps a *lease*, and *standbys*
//! watch it.
//!
//! The active process renews its lease every 250 ms: it raises a counter in the database, the
//! *beat*. A standby that sees the same beat for 1.5 s of its own clock takes over, in a new epoch.
//! The active process answers requests from memory only within a second after the start of a
//! successful renewal, by its own clock. That is earlier than any standby can take over, although
//! no clocks are compared. Commits need no clock: the database refuses those of an earlier epoch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::{Changes, Pending, Position, SessionRow, Store, StoreError};

/// How often the active process renews its lease.
const RENEW_EVERY: Duration = Duration::from_millis(250);
/// How long one renewal may take.
const RENEW_WITHIN: Duration = Duration::from_secs(1);
/// How long a renewal is valid, from its start.
const VALID: Duration = Duration::from_secs(1);
/// How long the active process may go without a renewal. If it is cut off from the database, a
/// standby has taken over by then.
pub(super) const HOLD: Duration = Duration::from_secs(30);

/// How often a standby checks the database.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a standby sees the same beat before it takes over.
const TAKE_OVER_AFTER: Duration = Duration::from_millis(1_500);
/// The longest time between two checks for which a standby is still considered to be watching.
const LONGEST_BLINK: Duration = Duration::from_millis(500);

/// A database that several processes share: one active process, and standbys.
pub trait SharedStore: Store {
    /// Where the database is, and the state of the lease.
    fn look(&self) -> Pending<'_, Sighting>;

    /// Makes the caller the only writer, in a new epoch with a lease, if nothing but the batch has
    /// changed since `seen`. Returns `None` otherwise.
    ///
    /// With `by_force`, this ends the database sessions that could delay it: those of a process that
    /// was stopped, or whose machine was lost. Without it, this fails with [`StoreError::InUse`]
    /// while another process holds the database.
    fn take_over<'s>(&'s self, seen: &'s Sighting, by_force: bool)
    -> Pending<'s, Option<Position>>;

    /// Renews the lease of an epoch. Returns false if it is no longer the latest one.
    fn renew(&self, epoch: u64) -> Pending<'_, bool>;

    /// Gives up the lease of an epoch, so that a standby need not wait.
    fn resign(&self, epoch: u64) -> Pending<'_, ()>;

    /// The changes of all batches after `batch`, and the last one of them. Returns `None` if the
    /// database no longer has all of them.
    fn changes_after(&self, batch: u64) -> Pending<'_, Option<(u64, Changes)>>;

    /// All sessions, each with the epoch of the process that wrote it.
    fn sessions(&self) -> Pending<'_, Vec<(u64, SessionRow)>>;
}

/// What a standby sees in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where the database is.
    pub position: Position,
    /// The process that claimed it last.
    pub writer: String,
    /// The lease of the latest process that kept one.
    pub lease: LeaseRow,
}

/// The lease in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// The epoch of the process that kept it last.
    pub epoch: u64,
    /// How often it was renewed; [`RESIGNED`](Self::RESIGNED) once it was given up.
    pub beat: i64,
}

impl LeaseRow {
    /// The beat of a lease that was given up.
    pub const RESIGNED: i64 = -1;
}

/// What a standby does after a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another process is active.
    Wait,
    /// No process keeps a lease. One that was started without one may still be active.
    TryToTakeOver,
    /// The active process has failed.
    TakeOverByForce,
}

/// A standby's view of the active process.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The lease, and when it was first seen in this state.
    seen: Option<(LeaseRow, Instant)>,
    /// The last check.
    looked: Option<Instant>,
}

impl Watch {
    /// Decides what to do after a check that started at `asked` and was answered at `now`.
    pub(crate) fn see(&mut self, sighting: &Sighting, asked: Instant, now: Instant) -> Verdict {
        // After a gap, the active process gets the whole time again: the database may have been
        // unreachable for it, too.
        let is_blink = self.looked.is_some_and(|looked| now - looked <= LONGEST_BLINK);
        self.looked = Some(now);
        if !is_blink {
            self.seen = None;
        }
        let lease = sighting.lease;
        if lease.epoch != sighting.position.epoch || lease.beat == LeaseRow::RESIGNED {
            self.seen = None;
            return Verdict::TryToTakeOver;
        }
        match self.seen {
            Some((seen, since)) if seen == lease => {
                // The beat had this value when the database answered, which was after `asked`.
                match asked.saturating_duration_since(since) >= TAKE_OVER_AFTER {
                    true => Verdict::TakeOverByForce,
                    false => Verdict::Wait,
                }
            }
            _ => {
                self.seen = Some((lease, now));
                Verdict::Wait
            }
        }
    }
}

/// The lease of this process, which a task renews until this is dropped.
pub(crate) struct Lease {
    store: Arc<dyn SharedStore>,
    epoch: u64,
    state: watch::Receiver<State>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
enum State {
    /// Valid until this moment.
    Until(Instant),
    /// Why it has ended.
    Ended(Arc<StoreError>),
}

impl Lease {
    /// Keeps the lease that a process got at `taken`, when it took over at this position.
    pub(crate) fn keep(store: Arc<dyn SharedStore>, position: Position, taken: Instant) -> Self {
        let (sender, state) = watch::channel(State::Until(taken + VALID));
        tokio::spawn(renew(Arc::clone(&store), position, taken, sender));
        Self { store, epoch: position.epoch, state }
    }

    /// Whether no other process can have taken over yet.
    pub(crate) fn is_valid(&self) -> bool {
        matches!(&*self.state.borrow(), State::Until(end) if Instant::now() < *end)
    }

    /// Waits until the lease is valid again. Returns false if it was not renewed for `patience` after
    /// its end.
    pub(crate) async fn until_valid(&mut self, patience: Duration) -> bool {
        loop {
            let end = match &*self.state.borrow_and_update() {
                State::Until(end) => *end,
                State::Ended(_) => return false,
            };
            let now = Instant::now();
            if now < end {
                return true;
            }
            tokio::select! {
                changed = self.state.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                }
                () = sleep_until(end + patience) => return false,
            }
        }
    }

    /// Waits until the lease has ended: another process took over, or may have.
    pub(crate) async fn ended(&mut self) -> Arc<StoreError> {
        let is_ended = |state: &State| matches!(state, State::Ended(_));
        if let Ok(state) = self.state.wait_for(is_ended).await
            && let State::Ended(error) = &*state
        {
            return Arc::clone(error);
        }
        // The task ends only after it has reported why.
        Arc::new(StoreError::LeaseLost)
    }

    /// Gives up the lease. The process must not answer any more.
    pub(crate) async fn resign(self) {
        let Self { store, epoch, state } = self;
        drop(state);
        match timeout(RENEW_WITHIN, store.resign(epoch)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot give up the lease on the database"),
            Err(_) => warn!("cannot give up the lease on the database in time"),
        }
    }
}

/// Renews a lease until nobody needs it any more.
async fn renew(
    store: Arc<dyn SharedStore>,
    position: Position,
    mut renewed: Instant,
    state: watch::Sender<State>,
) {
    let end = |error| drop(state.send_replace(State::Ended(Arc::new(error))));
    let mut is_failing = false;
    loop {
        let start = Instant::now();
        match timeout(RENEW_WITHIN, store.renew(position.epoch)).await {
            Ok(Ok(true)) => {
                renewed = start;
                state.send_replace(State::Until(start + VALID));
                if std::mem::take(&mut is_failing) {
                    info!("the lease on the database is renewed again");
                }
            }
            Ok(Ok(false)) => {
                let found = timeout(RENEW_WITHIN, store.look()).await;
                return end(match found {
                    Ok(Ok(seen)) => StoreError::overtaken(position, seen.position, seen.writer),
                    _ => StoreError::LeaseLost,
                });
            }
            failed => {
                if !std::mem::replace(&mut is_failing, true) {
                    let error = match failed {
                        Ok(Err(error)) => error,
                        _ => StoreError::Timeout,
                    };
                    warn!(%error, "cannot renew the lease on the database");
                }
                if renewed.elapsed() >= HOLD {
                    return end(StoreError::LeaseLost);
                }
            }
        }
        tokio::select! {
            () = state.closed() => return,
            () = sleep_until(start + RENEW_EVERY) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use tokio::time::sleep;

    use super::*;
    use crate::store::{AccountRow, CharacterRow, Ledger, NodeRow, RefRow, ScoreRow, SettingRow};

    fn sighting(epoch: u64, lease: (u64, i64)) -> Sighting {
        Sighting {
            position: Position { epoch, batch: 7 },
            writer: "process 1 on host".to_owned(),
            lease: LeaseRow { epoch: lease.0, beat: lease.1 },
        }
    }

    /// Checks every 100 ms until the verdict is not to wait. Returns the time that this took.
    fn watched(watch: &mut Watch, now: &mut Instant, sighting: &Sighting) -> Duration {
        let start = *now;
        while watch.see(sighting, *now, *now) == Verdict::Wait {
            assert!(*now - start < Duration::from_secs(60));
            *now += LOOK_EVERY;
        }
        *now - start
    }

    #[test]
    fn a_standby_takes_over_when_the_beat_stops() {
        let (mut watch, mut now) = (Watch::default(), Instant::now());
        for beat in 0..40 {
            assert_eq!(watch.see(&sighting(3, (3, beat)), now, now), Verdict::Wait);
            now += LOOK_EVERY;
        }
        let stopped = sighting(3, (3, 39));
        assert_eq!(watched(&mut watch, &mut now, &stopped), Duration::from_millis(1_400));
        assert_eq!(watch.see(&stopped, now, now), Verdict::TakeOverByForce);
        // Another standby was faster.
        assert_eq!(watch.see(&sighting(4, (4, 0)), now, now), Verdict::Wait);
    }

    #[test]
    fn only_time_in_which_the_standby_looked_counts() {
        let (mut watch, mut now) = (Watch::default(), Instant::now());
        let same = sighting(3, (3, 5));
        // A standby that was stopped, or a database that did not answer.
        for _ in 0..20 {
            assert_eq!(watch.see(&same, now, now), Verdict::Wait);
            now += Duration::from_millis(501);
        }
        assert_eq!(watched(&mut watch, &mut now, &same), TAKE_OVER_AFTER);
        // The time that the database took to answer does not count either.
        let mut watch = Watch::default();
        let start = now;
        while watch.see(&same, now, now + LONGEST_BLINK) == Verdict::Wait {
            now += LONGEST_BLINK;
        }
        assert_eq!(now - start, TAKE_OVER_AFTER + LONGEST_BLINK);
    }

    /// A database of which only the lease is used.
    #[derive(Debug, Default)]
    struct Fake {
        /// Renewals so far.
        renewals: AtomicU64,
        is_down: AtomicBool,
        is_taken_over: AtomicBool,
        is_resigned: AtomicBool,
    }

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
            settings() -> Vec<SettingRow>;
            accounts() -> Vec<AccountRow>;
            characters() -> Vec<CharacterRow>;
            close() -> ();
        }
    }

    impl Store for Fake {
        unused! {
            nodes_behind(u32, u32) -> Vec<NodeRow>;
            refs() -> Vec<RefRow>;
            scores() -> Vec<ScoreRow>;
        }

        fn nodes<'s>(&'s self, _: &'s [u32]) -> Pending<'s, Vec<NodeRow>> {
            Box::pin(pending())
        }
    }

    impl SharedStore for Fake {
        unused! {
            changes_after(u64) -> Option<(u64, Changes)>;
            sessions() -> Vec<(u64, SessionRow)>;
        }

        fn look(&self) -> Pending<'_, Sighting> {
            Box::pin(async { Ok(sighting(4, (4, 0))) })
        }

        fn take_over<'s>(&'s self, _: &'s Sighting, _: bool) -> Pending<'s, Option<Position>> {
            Box::pin(pending())
        }

        fn renew(&self, _: u64) -> Pending<'_, bool> {
            Box::pin(async {
                if self.is_down.load(Ordering::Relaxed) {
                    return pending().await;
                }
                self.renewals.fetch_add(1, Ordering::Relaxed);
                Ok(!self.is_taken_over.load(Ordering::Relaxed))
            })
        }

        fn resign(&self, _: u64) -> Pending<'_, ()> {
            self.is_resigned.store(true, Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        }
    }

    fn keep() -> (Arc<Fake>, Lease) {
        let fake = Arc::<Fake>::default();
        let position = Position { epoch: 3, batch: 7 };
        let lease = Lease::keep(Arc::<Fake>::clone(&fake), position, Instant::now());
        (fake, lease)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_valid_while_it_is_renewed() {
        let (fake, mut lease) = keep();
        for _ in 0..100 {
            sleep(Duration::from_millis(130)).await;
            assert!(lease.is_valid());
        }
        fake.is_down.store(true, Ordering::Relaxed);
        sleep(VALID).await;
        assert!(!lease.is_valid());
        let start = Instant::now();
        assert!(!lease.until_valid(Duration::from_secs(4)).await);
        assert!(start.elapsed() <= Duration::from_secs(4));
        // Afterwards nobody waits again.
        let start = Instant::now();
        assert!(!lease.until_valid(Duration::from_secs(4)).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        fake.is_down.store(false, Ordering::Relaxed);
        assert!(lease.until_valid(Duration::from_secs(20)).await);
        assert!(lease.is_valid());

        let renewals = fake.renewals.load(Ordering::Relaxed);
        lease.resign().await;
        assert!(fake.is_resigned.load(Ordering::Relaxed));
        sleep(Duration::from_secs(5)).await;
        assert!(fake.renewals.load(Ordering::Relaxed) <= renewals + 1, "nobody needs it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_when_it_is_lost() {
        let (fake, mut lease) = keep();
        fake.is_down.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let error = lease.ended().await;
        assert!(matches!(*error, StoreError::LeaseLost), "{error}");
        assert!(start.elapsed() >= HOLD && start.elapsed() < HOLD + 2 * RENEW_WITHIN);
        assert!(!lease.until_valid(Duration::from_secs(4)).await);

        let (fake, mut lease) = keep();
        sleep(Duration::from_secs(5)).await;
        fake.is_taken_over.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let error = lease.ended().await.to_string();
        assert!(start.elapsed() <= RENEW_EVERY);
        assert!(error.contains("taken over by process 1 on host"), "{error}");
    }

    #[test]
    fn without_a_lease_nobody_is_forced() {
        let (mut watch, now) = (Watch::default(), Instant::now());
        for sighting in [sighting(4, (3, 5)), sighting(3, (3, LeaseRow::RESIGNED))] {
            assert_eq!(watch.see(&sighting, now, now), Verdict::TryToTakeOver);
        }
    }
}
