//! Schedules tests of a database that refused changes. The only conclusive test is a commit by its
//! writer, even an empty one: only a commit checks that no other process has taken over.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The minimum and the maximum delay before the next test. The delay doubles with each failed
/// commit.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// When to test the database next. While it works, no test is scheduled.
#[derive(Debug)]
pub(crate) struct Probe {
    next: Option<(Instant, Duration)>,
    /// The longest delay.
    most: Duration,
}

impl Probe {
    /// Schedules tests of a database. If processes share the database, the delay does not grow:
    /// until a test succeeds, load balancers do not send clients to any process.
    pub(crate) fn new(is_shared: bool) -> Self {
        let [first, most] = DELAYS;
        Self { next: None, most: if is_shared { first } else { most } }
    }

    /// Schedules a test, because a commit failed.
    pub(crate) fn schedule(&mut self) {
        let delay = self.next.map_or(DELAYS[0], |(_, delay)| (delay * 2).min(self.most));
        self.next = Some((Instant::now() + delay, delay));
    }

    /// Forgets all failures, because a commit succeeded.
    pub(crate) fn cancel(&mut self) {
        self.next = None;
    }

    /// Whether a scheduled test is due.
    pub(crate) fn is_due(&self) -> bool {
        self.next.is_some_and(|(due, _)| due <= Instant::now())
    }

    /// Waits until the scheduled test is due; waits forever if none is scheduled.
    pub(crate) async fn due(&self) {
        match self.next {
            Some((due, _)) => sleep_until(due).await,
            None => pending().await,
        }
    }
}
