//! How long a node's ages may send to clients.
//!
//! The leader gives a node up 3.5 s after it *received* the last frame from it. The node stops 3 s
//! after it *sent* the last frame that the leader has acknowledged. So the node stops first,
//! although their clocks are never compared. A node that was suspended notices on resuming that its
//! time has run out, even if it has already rejoined the leader.
//!
//! At debug level, each tenure is logged with a clock shared by all processes on a machine, so
//! their combined logs show that no two tenures of an age overlapped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use crate::boot_clock::BootInstant;

/// How long a node may run ages.
#[derive(Debug)]
pub(crate) struct NodeTime {
    start: BootInstant,
    /// The machine's uptime at `start`.
    uptime: Duration,
    /// When the time runs out, in nanoseconds since `start`.
    end: AtomicU64,
    /// How many times it had run out before it was extended.
    lapses: AtomicU64,
    /// The value of `end` before the last lapse.
    lapsed: AtomicU64,
}

impl NodeTime {
    /// A time that has already run out.
    pub(super) fn new(start: BootInstant) -> Arc<Self> {
        let [end, lapses, lapsed] = Default::default();
        Arc::new(Self { start, uptime: uptime(), end, lapses, lapsed })
    }

    /// Moves the end to this long after the start, unless it is already later. Must be called from
    /// only one task.
    pub(super) fn extend(&self, end: Duration) {
        let end = nanos(end);
        let before = self.end.load(Ordering::Acquire);
        if end <= before {
            return;
        }
        if self.now() >= before {
            self.lapsed.store(before, Ordering::Release);
            // Before the new end is stored, so that whoever reads it also sees the new count.
            self.lapses.fetch_add(1, Ordering::AcqRel);
        }
        self.end.store(end, Ordering::Release);
    }

    /// The number of lapses so far.
    pub(super) fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::Acquire)
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    /// Converts a time since the start to nanoseconds since the machine booted.
    fn of_machine(&self, nanoseconds: u64) -> u64 {
        nanos(self.uptime).saturating_add(nanoseconds)
    }
}

/// The machine's uptime, including time spent suspended.
#[cfg(target_os = "linux")]
fn uptime() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

/// On other systems, times since 1970 are logged instead.
#[cfg(not(target_os = "linux"))]
fn uptime() -> Duration {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The right of this process to run one age. Once it has ended, it never becomes valid again.
#[derive(Debug)]
pub(crate) struct Tenure {
    /// The number of the age.
    pub(in crate::uru) number: u32,
    /// The number of the placement that gave the age to this process. Later placements have higher
    /// numbers.
    pub(in crate::uru) fence: u64,
    time: Arc<NodeTime>,
    /// The number of lapses when the leader gave the age to this process.
    lapses: u64,
    /// When the tenure was revoked, in nanoseconds since the node's start; 0 if it was not.
    revoked: AtomicU64,
}

impl Tenure {
    /// `lapses` is the number of lapses when the leader's message arrived.
    pub(super) fn new(number: u32, fence: u64, time: Arc<NodeTime>, lapses: u64) -> Arc<Self> {
        Arc::new(Self { number, fence, time, lapses, revoked: AtomicU64::default() })
    }

    /// Whether the age must no longer send anything to clients.
    pub(in crate::uru) fn is_over(&self) -> bool {
        self.over_since().is_some()
    }

    /// Logs that this process starts running the age.
    pub(in crate::uru) fn log_start(&self) {
        let (number, fence, at) = (self.number, self.fence, self.time.of_machine(self.time.now()));
        debug!(number, fence, at, "owns");
    }

    /// Logs the time after which this process must no longer run the age.
    pub(in crate::uru) fn log_end(&self) {
        let Some(since) = self.over_since() else { return };
        let (number, fence, at) = (self.number, self.fence, self.time.of_machine(since));
        let late = self.late();
        debug!(number, fence, at, ?late, "over");
    }

    /// Logs when the age last sent anything to a client whose connection has ended.
    pub(in crate::uru) fn log_last_word(&self, player: u32, said: Instant) {
        let said = self.time.now().saturating_sub(nanos(said.elapsed()));
        let (number, fence, at) = (self.number, self.fence, self.time.of_machine(said));
        debug!(number, fence, at, player, "said");
    }

    /// How long ago it ended.
    pub(in crate::uru) fn late(&self) -> Duration {
        let since = self.over_since().unwrap_or(u64::MAX);
        Duration::from_nanos(self.time.now().saturating_sub(since))
    }

    /// When to check again whether it has ended: the current end, which may be extended.
    pub(in crate::uru) fn end(&self) -> Instant {
        let end = Duration::from_nanos(self.time.end.load(Ordering::Acquire));
        (self.time.start + end).timer()
    }

    /// Revokes it.
    pub(in crate::uru) fn revoke(&self) {
        let now = self.time.now().max(1);
        // Fails if it has already been revoked.
        let _ = self.revoked.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// When it ended, in nanoseconds since the node's start.
    fn over_since(&self) -> Option<u64> {
        // `end` must be read before the number of lapses: see `extend`.
        let end = self.time.end.load(Ordering::Acquire);
        let revoked = Some(self.revoked.load(Ordering::Acquire)).filter(|revoked| *revoked != 0);
        let lapsed = match self.time.lapses() == self.lapses {
            true => Some(end).filter(|end| self.time.now() >= *end),
            false => Some(self.time.lapsed.load(Ordering::Acquire)),
        };
        revoked.into_iter().chain(lapsed).min()
    }
}

#[cfg(test)]
impl Tenure {
    /// A tenure on a node whose time is extended with [`extend`](NodeTime::extend).
    pub(in crate::uru) fn of(number: u32, fence: u64, time: &Arc<NodeTime>) -> Arc<Self> {
        Self::new(number, fence, Arc::clone(time), time.lapses())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::boot_clock::suspend;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_tenure_lasts_while_it_is_extended_in_time() {
        let time = NodeTime::new(BootInstant::now());
        time.extend(SECOND);
        let tenure = Tenure::of(7, 1, &time);
        for second in 2..5 {
            advance(SECOND - Duration::from_millis(1)).await;
            assert!(!tenure.is_over());
            time.extend(second * SECOND);
        }
        // An earlier end has no effect.
        time.extend(SECOND);
        assert!(!tenure.is_over());
        advance(tenure.end() - Instant::now()).await;
        assert!(tenure.is_over());
    }

    /// The process was suspended, and nothing checked the time in the meantime.
    #[tokio::test(start_paused = true)]
    async fn a_tenure_does_not_come_back() {
        let time = NodeTime::new(BootInstant::now());
        time.extend(SECOND);
        let tenure = Tenure::of(7, 1, &time);
        advance(60 * SECOND).await;
        time.extend(63 * SECOND);
        assert!(tenure.is_over());
        assert_eq!(tenure.late(), 59 * SECOND);
        assert!(!Tenure::of(7, 2, &time).is_over());
        // A tenure granted before the lapse is over, even if it is first used afterwards.
        assert!(Tenure::new(8, 1, Arc::clone(&time), 1).is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenure_does_not_outlive_a_suspension() {
        let time = NodeTime::new(BootInstant::now());
        time.extend(SECOND);
        let tenure = Tenure::of(7, 1, &time);
        suspend(SECOND / 2);
        assert!(!tenure.is_over());
        assert_eq!(tenure.end() - Instant::now(), SECOND / 2);
        suspend(SECOND);
        assert_eq!(tenure.late(), SECOND / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenure_can_be_revoked() {
        let time = NodeTime::new(BootInstant::now());
        time.extend(SECOND);
        advance(SECOND / 4).await;
        let [one, other] = [7, 8].map(|number| Tenure::of(number, 1, &time));
        one.revoke();
        assert!(one.is_over() && !other.is_over());
        advance(SECOND / 2).await;
        one.revoke();
        assert_eq!([one.late(), other.late()], [SECOND / 2, Duration::ZERO]);
    }
}
