//! Decides which of several processes serves a database: the active process holds a *lease*, and
//! *standbys* watch it.
//!
//! The active process renews its lease every 250 ms: it raises a counter in the database, the
//! *beat*. A standby that sees the same beat for 1.5 s by its own clock takes over, in a new epoch.
//! The active process answers requests from memory only within a second after the start of a
//! successful renewal, by its own clock. So it stops before any standby can take over, although no
//! clocks are compared. Commits need no clock: the database refuses those of an earlier epoch.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep_until, timeout};
use tracing::{info, warn};

use super::outage::Outage;
use super::{Changes, Pending, Position, SessionRow, Store, StoreError};
use crate::boot_clock::BootInstant;

/// How often the active process renews its lease.
const RENEW_EVERY: Duration = Duration::from_millis(250);
/// How long one renewal may take.
const RENEW_WITHIN: Duration = Duration::from_secs(1);
/// How long a renewal is valid, from its start.
pub(crate) const VALID: Duration = Duration::from_secs(1);
/// How long an answer from memory waits for the lease to be renewed.
pub(crate) const LEASE_PATIENCE: Duration = Duration::from_secs(4);
/// How long the active process may continue without a renewal. If it is cut off from the database,
/// a standby has taken over by then.
pub(super) const HOLD: Duration = Duration::from_secs(30);

/// How often a standby checks the database.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a standby sees the same beat before it takes over.
const TAKE_OVER_AFTER: Duration = Duration::from_millis(1_500);
/// The maximum time between two checks. A standby that takes longer does not count as having
/// watched in between.
const LONGEST_BLINK: Duration = Duration::from_millis(500);

/// A database that several processes share: one active process, and standbys.
pub trait SharedStore: Store {
    /// Where the database is, and the state of the lease.
    fn look(&self) -> Pending<'_, Sighting>;

    /// Makes the caller the only writer, in a new epoch with a lease, if nothing except the batch
    /// number has changed since `seen`. Otherwise, returns `None`.
    ///
    /// With `by_force`, this ends the database sessions that could delay the takeover: those of a
    /// process that is suspended or whose machine was lost. Without `by_force`, this fails with
    /// [`StoreError::InUse`] while another process holds the database.
    fn take_over<'s>(&'s self, seen: &'s Sighting, by_force: bool)
    -> Pending<'s, Option<Position>>;

    /// Renews the lease of an epoch. Returns false if that epoch is no longer the latest.
    fn renew(&self, epoch: u64) -> Pending<'_, bool>;

    /// Gives up the lease of an epoch, so that a standby does not need to wait.
    fn resign(&self, epoch: u64) -> Pending<'_, ()>;

    /// The changes of all batches after `batch`, and the number of the last of these batches.
    /// Returns `None` if the database no longer has all of them.
    fn changes_after(&self, batch: u64) -> Pending<'_, Option<(u64, Changes)>>;

    /// The standbys that are watching the database now, oldest connection first.
    fn standbys(&self) -> Pending<'_, Vec<SeenStandby>>;

    /// All sessions, each with the epoch of the process that wrote it.
    fn sessions(&self) -> Pending<'_, Vec<(u64, SessionRow)>>;
}

/// A standby, according to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenStandby {
    /// The name of the standby's process: `process 4242 on host`, unless the URL of the database
    /// sets an `application_name`.
    pub process: String,
    /// The IP address from which it is connected; `None` for a connection over a local socket.
    pub address: Option<String>,
    /// The time at which it connected, in Unix seconds.
    pub since: u64,
}

/// The data that a standby looks at in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where the database is.
    pub position: Position,
    /// The process that last claimed the database.
    pub writer: String,
    /// The lease of the last process that held one.
    pub lease: LeaseRow,
}

/// The lease in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// The epoch of the process that last held it.
    pub epoch: u64,
    /// The number of renewals; [`RESIGNED`](Self::RESIGNED) once the lease has been given up.
    pub beat: i64,
}

impl LeaseRow {
    /// The beat of a lease that has been given up.
    pub const RESIGNED: i64 = -1;
}

/// The action that a standby takes after a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Another process is active.
    Wait,
    /// No process holds a lease. A process that was started without one may still be active.
    TryToTakeOver,
    /// The active process has failed.
    TakeOverByForce,
}

/// A standby's view of the active process.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The lease, and the time at which it was first seen in this state.
    seen: Option<(LeaseRow, BootInstant)>,
    /// The latest epoch in which this has seen a renewal since the last gap between checks.
    renewed: Option<u64>,
    /// The last check.
    looked: Option<BootInstant>,
}

impl Watch {
    /// Decides what to do after a check that started at `asked` and whose answer arrived at `now`.
    pub(crate) fn see(
        &mut self,
        sighting: &Sighting,
        asked: BootInstant,
        now: BootInstant,
    ) -> Verdict {
        // After a gap, the active process is given the full time again, because the database may
        // have been unreachable for it, too.
        let is_blink = self.looked.is_some_and(|looked| now - looked <= LONGEST_BLINK);
        self.looked = Some(now);
        if !is_blink {
            (self.seen, self.renewed) = (None, None);
        }
        let lease = sighting.lease;
        if lease.epoch != sighting.position.epoch || lease.beat == LeaseRow::RESIGNED {
            self.seen = None;
            return Verdict::TryToTakeOver;
        }
        match self.seen {
            Some((seen, since)) if seen == lease => {
                // The beat had this value when the database answered, which was after `asked`.
                match asked - since >= TAKE_OVER_AFTER {
                    true => Verdict::TakeOverByForce,
                    false => Verdict::Wait,
                }
            }
            seen => {
                if seen.is_some_and(|(seen, _)| seen.epoch == lease.epoch) {
                    self.renewed = Some(lease.epoch);
                }
                self.seen = Some((lease, now));
                Verdict::Wait
            }
        }
    }

    /// Whether this has seen a renewal of this lease since the last gap. Otherwise, the process
    /// that held the lease may have ended long ago, or this database may be a restored backup of
    /// the one that the process used.
    pub(crate) fn has_seen_renewal(&self, lease: LeaseRow) -> bool {
        self.renewed == Some(lease.epoch)
    }
}

/// This process's lease, which a task renews until this value is dropped.
pub(crate) struct Lease {
    store: Arc<dyn SharedStore>,
    epoch: u64,
    view: LeaseView,
    /// Ends the task when it is dropped.
    keep: oneshot::Sender<Infallible>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// A view of a lease's validity. Clones do not keep the lease alive.
#[derive(Clone, Debug)]
pub(crate) struct LeaseView(watch::Receiver<State>);

#[derive(Clone, Debug)]
enum State {
    /// Valid until this moment.
    Until(BootInstant),
    /// Invalid since this moment, for this reason. The lease will never be valid again.
    Ended(BootInstant, Arc<StoreError>),
}

impl Lease {
    /// Holds the lease that a process obtained at `taken`, when it took over at this position.
    pub(crate) fn keep(
        store: Arc<dyn SharedStore>,
        position: Position,
        taken: BootInstant,
    ) -> Self {
        let (sender, state) = watch::channel(State::Until(taken + VALID));
        let (keep, dropped) = oneshot::channel();
        tokio::spawn(renew(Arc::clone(&store), position, taken, sender, dropped));
        Self { store, epoch: position.epoch, view: LeaseView(state), keep }
    }

    /// A view for code that answers requests.
    pub(crate) fn view(&self) -> LeaseView {
        self.view.clone()
    }

    /// Whether no other process can have taken over yet.
    pub(crate) fn is_valid(&self) -> bool {
        self.view.is_valid()
    }

    /// Waits until the lease is valid again. Returns false if it was not renewed within
    /// `patience` of its end.
    pub(crate) async fn until_valid(&mut self, patience: Duration) -> bool {
        self.view.until_valid(patience).await
    }

    /// Waits until the lease has ended: another process took over, or may have.
    pub(crate) async fn ended(&mut self) -> Arc<StoreError> {
        self.view.ended().await
    }

    /// Gives up the lease. From then on, the process must not answer requests.
    pub(crate) async fn resign(self) {
        let Self { store, epoch, keep, .. } = self;
        drop(keep);
        match timeout(RENEW_WITHIN, store.resign(epoch)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot release the lease on the database"),
            Err(_) => warn!("could not release the lease on the database in time"),
        }
    }
}

impl LeaseView {
    /// Whether no other process can have taken over yet.
    pub(crate) fn is_valid(&self) -> bool {
        self.invalid_since().is_none()
    }

    /// The time since which another process may have taken over; `None` while the lease is valid.
    pub(crate) fn invalid_since(&self) -> Option<BootInstant> {
        match &*self.0.borrow() {
            State::Until(end) => (*end <= BootInstant::now()).then_some(*end),
            State::Ended(since, _) => Some(*since),
        }
    }

    /// Waits until the lease is valid again. Returns false if it was not renewed within
    /// `patience` of its end.
    pub(crate) async fn until_valid(&mut self, patience: Duration) -> bool {
        loop {
            let end = match &*self.0.borrow_and_update() {
                State::Until(end) => *end,
                State::Ended(..) => return false,
            };
            let now = BootInstant::now();
            if now < end {
                return true;
            }
            tokio::select! {
                changed = self.0.changed() => {
                    if changed.is_err() {
                        return false;
                    }
                }
                () = sleep_until((end + patience).timer()) => return false,
            }
        }
    }

    /// Waits until the lease has ended: another process took over, or may have.
    pub(crate) async fn ended(&mut self) -> Arc<StoreError> {
        let is_ended = |state: &State| matches!(state, State::Ended(..));
        if let Ok(state) = self.0.wait_for(is_ended).await
            && let State::Ended(_, error) = &*state
        {
            return Arc::clone(error);
        }
        // The task ends only after it has reported the reason, or because nobody needs the lease
        // any more.
        Arc::new(StoreError::LeaseLost("it is no longer being renewed".to_owned()))
    }
}

/// Renews a lease until nobody needs it any more.
async fn renew(
    store: Arc<dyn SharedStore>,
    position: Position,
    mut renewed: BootInstant,
    state: watch::Sender<State>,
    mut dropped: oneshot::Receiver<Infallible>,
) {
    let end = |since: BootInstant, error| {
        state.send_replace(State::Ended(since, Arc::new(error)));
    };
    let mut outage = Outage::default();
    loop {
        let start = BootInstant::now();
        match timeout(RENEW_WITHIN, store.renew(position.epoch)).await {
            Ok(Ok(true)) => {
                renewed = start;
                // The validity counts from the start of the renewal, because a standby may have
                // seen this beat right then.
                state.send_replace(State::Until(start + VALID));
                if outage.end() {
                    info!("the lease on the database is being renewed again");
                }
            }
            Ok(Ok(false)) => {
                let found = timeout(RENEW_WITHIN, store.look()).await;
                let error = match found {
                    Ok(Ok(seen)) => StoreError::overtaken(position, seen.position, seen.writer),
                    _ => StoreError::LeaseLost("it belongs to another process".to_owned()),
                };
                return end(start, error);
            }
            failed => {
                let error = match failed {
                    Ok(Err(error)) => error,
                    _ => StoreError::Timeout,
                };
                if outage.is_news(&error) {
                    warn!(%error, "cannot renew the lease on the database");
                }
                if renewed.elapsed() >= HOLD {
                    let problem = format!("not renewed for {} s: {error}", HOLD.as_secs());
                    return end(renewed + VALID, StoreError::LeaseLost(problem));
                }
            }
        }
        tokio::select! {
            biased;
            _ = &mut dropped => return,
            () = sleep_until((start + RENEW_EVERY).timer()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::boot_clock::suspend;
    use crate::store::fake::Fake;

    fn sighting(epoch: u64, lease: (u64, i64)) -> Sighting {
        Sighting {
            position: Position { epoch, batch: 7 },
            writer: "process 1 on host".to_owned(),
            lease: LeaseRow { epoch: lease.0, beat: lease.1 },
        }
    }

    /// Checks every 100 ms until the decision is no longer to wait. Returns the time that this
    /// took.
    fn watched(watch: &mut Watch, now: &mut BootInstant, sighting: &Sighting) -> Duration {
        let start = *now;
        while watch.see(sighting, *now, *now) == Verdict::Wait {
            assert!(*now - start < Duration::from_secs(60));
            *now += LOOK_EVERY;
        }
        *now - start
    }

    #[test]
    fn a_standby_takes_over_when_the_beat_stops() {
        let (mut watch, mut now) = (Watch::default(), BootInstant::now());
        for beat in 0..40 {
            assert_eq!(watch.see(&sighting(3, (3, beat)), now, now), Verdict::Wait);
            now += LOOK_EVERY;
        }
        let stopped = sighting(3, (3, 39));
        assert_eq!(watched(&mut watch, &mut now, &stopped), Duration::from_millis(1_400));
        assert_eq!(watch.see(&stopped, now, now), Verdict::TakeOverByForce);
        // Another standby was faster.
        let other = sighting(4, (4, 0));
        assert_eq!(watch.see(&other, now, now), Verdict::Wait);
        assert!(watch.has_seen_renewal(stopped.lease) && !watch.has_seen_renewal(other.lease));
        // After a gap, this looks like a lease that nobody renews.
        now += Duration::from_secs(1);
        assert_eq!(watch.see(&stopped, now, now), Verdict::Wait);
        assert!(!watch.has_seen_renewal(stopped.lease));
    }

    /// The database may be a restored backup.
    #[test]
    fn a_lease_that_was_never_renewed_is_told_apart() {
        let (mut watch, mut now) = (Watch::default(), BootInstant::now());
        let dead = sighting(3, (3, 39));
        assert_eq!(watched(&mut watch, &mut now, &dead), TAKE_OVER_AFTER);
        assert!(!watch.has_seen_renewal(dead.lease));
    }

    #[test]
    fn only_time_in_which_the_standby_looked_counts() {
        let (mut watch, mut now) = (Watch::default(), BootInstant::now());
        let same = sighting(3, (3, 5));
        // The standby was suspended, or the database did not answer.
        for _ in 0..20 {
            assert_eq!(watch.see(&same, now, now), Verdict::Wait);
            now += Duration::from_millis(501);
        }
        assert_eq!(watched(&mut watch, &mut now, &same), TAKE_OVER_AFTER);
        // The time that the database took to answer does not count, either.
        let mut watch = Watch::default();
        let start = now;
        while watch.see(&same, now, now + LONGEST_BLINK) == Verdict::Wait {
            now += LONGEST_BLINK;
        }
        assert_eq!(now - start, TAKE_OVER_AFTER + LONGEST_BLINK);
    }

    fn keep() -> (Arc<Fake>, Lease) {
        let fake = Arc::<Fake>::default();
        let position = Position { epoch: 3, batch: 7 };
        let lease = Lease::keep(Arc::<Fake>::clone(&fake), position, BootInstant::now());
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
        let view = lease.view();
        assert_eq!(view.invalid_since(), None);
        sleep(VALID).await;
        assert!(!lease.is_valid());
        let start = BootInstant::now();
        assert!(view.invalid_since().is_some_and(|since| since <= start && since + VALID > start));
        assert!(!lease.until_valid(LEASE_PATIENCE).await);
        assert!(start.elapsed() <= LEASE_PATIENCE);
        // From then on, nobody waits any more.
        let start = Instant::now();
        assert!(!lease.until_valid(LEASE_PATIENCE).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        fake.is_down.store(false, Ordering::Relaxed);
        assert!(lease.until_valid(Duration::from_secs(20)).await);
        assert!(lease.is_valid());
        assert_eq!(view.invalid_since(), None);

        let renewals = fake.renewals.load(Ordering::Relaxed);
        lease.resign().await;
        assert!(fake.is_resigned.load(Ordering::Relaxed));
        sleep(Duration::from_secs(5)).await;
        assert!(fake.renewals.load(Ordering::Relaxed) <= renewals + 1, "nobody needs it");
    }

    /// Another process took over while the machine was suspended.
    #[tokio::test(start_paused = true)]
    async fn a_lease_does_not_outlive_a_suspension() {
        let (_fake, mut lease) = keep();
        sleep(Duration::from_secs(5)).await;
        assert!(lease.is_valid());
        suspend(VALID);
        assert!(!lease.is_valid());
        assert!(lease.until_valid(LEASE_PATIENCE).await, "it is renewed at once");

        let (mut watch, now) = (Watch::default(), BootInstant::now());
        let same = sighting(3, (3, 5));
        assert_eq!(watch.see(&same, now, now), Verdict::Wait);
        suspend(TAKE_OVER_AFTER);
        let now = BootInstant::now();
        assert_eq!(watch.see(&same, now, now), Verdict::Wait, "a suspended standby saw nothing");
    }

    /// A standby counts from the renewal itself, not from when the answer to it arrives here.
    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_does_not_extend_a_lease() {
        let (fake, lease) = keep();
        let delay = Duration::from_millis(900);
        *fake.delay.lock().unwrap() = delay;
        // This leaves time for two renewals with this delay, and no more.
        sleep(Duration::from_millis(200) + 2 * delay).await;
        fake.is_down.store(true, Ordering::Relaxed);
        let last = fake.started.lock().unwrap().expect("a renewal has begun");
        sleep_until(last + VALID - Duration::from_millis(1)).await;
        assert!(lease.is_valid(), "the answer arrived in time");
        sleep_until(last + VALID).await;
        assert!(!lease.is_valid());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_when_it_is_lost() {
        let (fake, mut lease) = keep();
        fake.is_down.store(true, Ordering::Relaxed);
        let start = BootInstant::now();
        let error = lease.ended().await;
        let said = "not renewed for 30 s: the database did not respond in time";
        assert!(matches!(&*error, StoreError::LeaseLost(why) if why == said), "{error}");
        assert!(lease.view().invalid_since().is_some_and(|since| since <= start + VALID));

        assert!(start.elapsed() >= HOLD && start.elapsed() < HOLD + 2 * RENEW_WITHIN);
        assert!(!lease.until_valid(LEASE_PATIENCE).await);

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
        let (mut watch, now) = (Watch::default(), BootInstant::now());
        for sighting in [sighting(4, (3, 5)), sighting(3, (3, LeaseRow::RESIGNED))] {
            assert_eq!(watch.see(&sighting, now, now), Verdict::TryToTakeOver);
        }
    }
}
