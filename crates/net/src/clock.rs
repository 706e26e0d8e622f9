//! The clock of connection machines.

use core::time::Duration;

use tokio::time::Instant;

/// The time since a moment, as machines count it. All connections of a listener share one clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock {
    /// A clock that shows zero now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time on this clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }

    /// When it will show a time; `None` for times too far away to come.
    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.0.checked_add(at)
    }
}
