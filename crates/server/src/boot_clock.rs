//! The clock for leases: it also counts the time during which the machine is suspended.
//!
//! A process that wakes up must not rely on a lease that ended while the machine was suspended. On
//! Linux, [`Instant`] does not count that time, so this clock adds it. On other systems, this is
//! the same clock as [`Instant`]. In tests, it advances together with tokio's time.

use std::ops::{Add, AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A point in time on this clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(Instant);

impl BootInstant {
    /// The current time.
    pub(crate) fn now() -> Self {
        Self(Instant::now() + suspended())
    }

    /// The time that has passed since this moment.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now() - self
    }

    /// When a timer must fire so that its task wakes at this moment, unless the machine is
    /// suspended in the meantime.
    pub(crate) fn timer(self) -> Instant {
        self.0.checked_sub(suspended()).unwrap_or(self.0)
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

impl AddAssign<Duration> for BootInstant {
    fn add_assign(&mut self, time: Duration) {
        self.0 += time;
    }
}

impl Sub for BootInstant {
    type Output = Duration;

    /// The time from an earlier moment until this one; zero if the other moment is later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

/// Changes of at most this size are inaccuracies.
const TOLERANCE: Duration = Duration::from_millis(20);
/// How many times to read the clocks if too much time passes between the readings.
const ATTEMPTS: usize = 8;

/// How long the machine has been suspended, in nanoseconds.
static SUSPENDED: AtomicU64 = AtomicU64::new(0);

/// How long the machine has been suspended.
fn suspended() -> Duration {
    let known = Duration::from_nanos(SUSPENDED.load(Ordering::Relaxed));
    let is_known = |offset: Duration| offset.abs_diff(known) <= TOLERANCE;
    let mut suspended = known;
    for _ in 0..ATTEMPTS {
        match offset() {
            Some((offset, _)) if is_known(offset) => break,
            // This thread may have been interrupted between the two readings.
            Some((_, accuracy)) if accuracy > TOLERANCE / 4 => {}
            Some((offset, _)) => {
                suspended = offset;
                let nanos = u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX);
                SUSPENDED.store(nanos, Ordering::Relaxed);
                break;
            }
            None => break,
        }
    }
    #[cfg(test)]
    let suspended = suspended + simulation::SUSPENDED.get();
    suspended
}

/// How far the clock that counts suspended time is ahead of the other clock, and the maximum error
/// of that value.
#[cfg(target_os = "linux")]
fn offset() -> Option<(Duration, Duration)> {
    use nix::time::{ClockId, clock_gettime};

    let read = |clock| clock_gettime(clock).ok().map(Duration::from);
    let before = read(ClockId::CLOCK_MONOTONIC)?;
    let with_suspension = read(ClockId::CLOCK_BOOTTIME)?;
    let after = read(ClockId::CLOCK_MONOTONIC)?;
    Some((with_suspension.saturating_sub(after), after.saturating_sub(before)))
}

#[cfg(not(target_os = "linux"))]
fn offset() -> Option<(Duration, Duration)> {
    None
}

/// Makes it appear to this thread that the machine was suspended. In a test with virtual time, this
/// includes all its tasks.
#[cfg(test)]
pub(crate) fn suspend(time: Duration) {
    simulation::SUSPENDED.set(simulation::SUSPENDED.get() + time);
}

#[cfg(test)]
mod simulation {
    use std::cell::Cell;
    use std::time::Duration;

    thread_local! {
        pub(super) static SUSPENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn suspension_counts() {
        let start = BootInstant::now();
        advance(SECOND).await;
        assert_eq!(start.elapsed(), SECOND);
        suspend(60 * SECOND);
        assert_eq!(start.elapsed(), 61 * SECOND);
        assert!(BootInstant::now() > start + 60 * SECOND);
        assert_eq!(start - BootInstant::now(), Duration::ZERO);
        // Timers do not count the suspended time.
        let (end, now) = (BootInstant::now() + SECOND, Instant::now());
        sleep_until(end.timer()).await;
        assert_eq!((now.elapsed(), BootInstant::now()), (SECOND, end));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn clocks_are_read() {
        let (ahead, accuracy) = offset().unwrap();
        assert!(accuracy < SECOND);
        assert!(suspended().abs_diff(ahead) <= TOLERANCE + accuracy);
    }
}
