//! The clock of connection machines.

use core::time::Duration;

use tokio::time::Instant;

/// Measures time from a fixed start, as machines count it. All connections of a listener share one
/// clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock {
    /// A clock that starts at zero now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time on this clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }

    /// When it will show this time; `None` if that is too far in the future to represent.
    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.0.checked_add(at)
    }
}
