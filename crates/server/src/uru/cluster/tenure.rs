//! How long the ages of a node may speak to clients.
//!
//! The leader gives a node up 3.5 s after it *received* the last frame from it. The node stops 3 s
//! after it *sent* the last frame that the leader has acknowledged, so it stops first, although
//! their clocks are not compared. A node that was stopped notices when it continues that its time
//! was over, even if it has already joined the leader again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time of a node.
#[derive(Debug)]
pub(crate) struct NodeTime {
    start: Instant,
    /// Its end, in nanoseconds since `start`.
    end: AtomicU64,
    /// How many times it was over before it was extended.
    lapses: AtomicU64,
    /// The end before the last lapse.
    lapsed: AtomicU64,
}

impl NodeTime {
    /// A time that is over.
    pub(super) fn new(start: Instant) -> Arc<Self> {
        let [end, lapses, lapsed] = Default::default();
        Arc::new(Self { start, end, lapses, lapsed })
    }

    /// Moves the end to this long after the start, unless it is later already. Only one task may
    /// do this.
    pub(super) fn extend(&self, end: Duration) {
        let end = nanos(end);
        let before = self.end.load(Ordering::Acquire);
        if end <= before {
            return;
        }
        if self.now() >= before {
            self.lapsed.store(before, Ordering::Release);
            // Before the new end is stored, so that those who see it see this, too.
            self.lapses.fetch_add(1, Ordering::AcqRel);
        }
        self.end.store(end, Ordering::Release);
    }

    /// The current number of lapses.
    pub(super) fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::Acquire)
    }

    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The right of this process to run one age. It never comes back once it is over.
#[derive(Debug)]
pub(crate) struct Tenure {
    /// The number of the age.
    pub(in crate::uru) number: u32,
    /// The number of the placement that gave the age to this process. Later placements have higher
    /// ones.
    pub(in crate::uru) fence: u64,
    time: Arc<NodeTime>,
    /// The number of lapses when the leader gave the age to this process.
    lapses: u64,
    /// When it was revoked, in nanoseconds since the node's start; 0 if it was not.
    revoked: AtomicU64,
}

impl Tenure {
    /// `lapses` is the number of lapses when the leader's message arrived.
    pub(super) fn new(number: u32, fence: u64, time: Arc<NodeTime>, lapses: u64) -> Arc<Self> {
        Arc::new(Self { number, fence, time, lapses, revoked: AtomicU64::default() })
    }

    /// Whether the age must say nothing more to clients.
    pub(in crate::uru) fn is_over(&self) -> bool {
        self.over_since().is_some()
    }

    /// How long it has been over.
    pub(in crate::uru) fn late(&self) -> Duration {
        let since = self.over_since().unwrap_or(u64::MAX);
        Duration::from_nanos(self.time.now().saturating_sub(since))
    }

    /// When it will be over, unless it is extended.
    pub(in crate::uru) fn end(&self) -> Instant {
        self.time.start + Duration::from_nanos(self.time.end.load(Ordering::Acquire))
    }

    /// Ends it.
    pub(in crate::uru) fn revoke(&self) {
        let now = self.time.now().max(1);
        // Fails if it was revoked before.
        let _ = self.revoked.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// When it ended, in nanoseconds since the node's start.
    fn over_since(&self) -> Option<u64> {
        // The end is read before the lapses: see `extend`.
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

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_tenure_lasts_while_it_is_extended_in_time() {
        let time = NodeTime::new(Instant::now());
        time.extend(SECOND);
        let tenure = Tenure::of(7, 1, &time);
        for second in 2..5 {
            advance(SECOND - Duration::from_millis(1)).await;
            assert!(!tenure.is_over());
            time.extend(second * SECOND);
        }
        // An earlier end changes nothing.
        time.extend(SECOND);
        assert!(!tenure.is_over());
        advance(tenure.end() - Instant::now()).await;
        assert!(tenure.is_over());
    }

    /// As when the process was stopped, and nobody looked meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_tenure_does_not_come_back() {
        let time = NodeTime::new(Instant::now());
        time.extend(SECOND);
        let tenure = Tenure::of(7, 1, &time);
        advance(60 * SECOND).await;
        time.extend(63 * SECOND);
        assert!(tenure.is_over());
        assert_eq!(tenure.late(), 59 * SECOND);
        assert!(!Tenure::of(7, 2, &time).is_over());
        // What was given before the lapse is over, even if it is only used now.
        assert!(Tenure::new(8, 1, Arc::clone(&time), 1).is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenure_can_be_revoked() {
        let time = NodeTime::new(Instant::now());
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
