//! Log lines about what happens often.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Counts something that may happen often, so that it is logged at once and then only once in a
/// while: a flood must not fill the log.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// use std::time::Duration;
/// use worldwire_net::Tally;
///
/// let refused = Tally::new(Duration::from_secs(60));
/// assert_eq!(refused.count(), Some(1), "the first is logged at once");
/// assert_eq!(refused.count(), None);
/// tokio::time::advance(Duration::from_secs(60)).await;
/// assert_eq!(refused.count(), Some(2), "and this is how many there were since");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Tally {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    reported: Option<Instant>,
}

impl Tally {
    /// Reports at most this often.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// It happened. `Some` is how often since the last report, when it is time for one.
    pub fn count(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count = state.count.saturating_add(1);
        state.report(self.every)
    }

    /// What was counted and not reported yet, when it is time for a report.
    pub fn due(&self) -> Option<u64> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).report(self.every)
    }
}

impl State {
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
    async fn what_is_left_is_reported_without_another() {
        let tally = Tally::new(Duration::from_secs(60));
        assert_eq!((tally.due(), tally.count()), (None, Some(1)));
        for _ in 0..5 {
            assert_eq!(tally.count(), None);
        }
        assert_eq!(tally.due(), None);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!((tally.due(), tally.due()), (Some(5), None));
    }
}
