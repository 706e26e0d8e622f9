//! Rate-limited log lines.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Counts a frequent event and limits how often it is logged: the first time immediately, then at
/// most once per interval, so that a flood cannot fill the log.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// use std::time::Duration;
/// use worldwire_net::LogLimiter;
///
/// let refused = LogLimiter::new(Duration::from_secs(60));
/// assert_eq!(refused.count(), Some(1), "the first is logged immediately");
/// assert_eq!(refused.count(), None);
/// tokio::time::advance(Duration::from_secs(60)).await;
/// assert_eq!(refused.count(), Some(2), "the number since the last log line");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LogLimiter {
    every: Duration,
    state: Mutex<Count>,
}

#[derive(Debug, Default)]
struct Count {
    count: u64,
    reported: Option<Instant>,
}

impl LogLimiter {
    /// Logs at most once per `every`.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// Counts one occurrence. Returns the number since the last log line if the next one is due.
    pub fn count(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count = state.count.saturating_add(1);
        state.report(self.every)
    }

    /// The occurrences that are not logged yet, if a log line is due.
    pub fn due(&self) -> Option<u64> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).report(self.every)
    }
}

impl Count {
    fn report(&mut self, every: Duration) -> Option<u64> {
        let now = Instant::now();
        let is_due = self.reported.is_none_or(|last| now.duration_since(last) >= every);
        if self.count == 0 || !is_due {
            return None;
        }
        self.reported = Some(now);
        Some(core::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unlogged_occurrences_become_due() {
        let limiter = LogLimiter::new(Duration::from_secs(60));
        assert_eq!((limiter.due(), limiter.count()), (None, Some(1)));
        for _ in 0..5 {
            assert_eq!(limiter.count(), None);
        }
        assert_eq!(limiter.due(), None);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!((limiter.due(), limiter.due()), (Some(5), None));
    }
}
