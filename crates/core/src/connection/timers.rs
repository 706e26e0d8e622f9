//! Deadlines.

use std::time::Duration;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// Connection setup: connect packets, key exchange, session offer and accept.
    Setup,
    /// The rest of a message that has begun.
    Message,
    /// Any bytes from the other side.
    Idle,
    /// The answer to a keep-alive.
    KeepAlive,
    /// This side's next keep-alive. Its deadline does not close the connection.
    Beat,
}

impl Timer {
    /// All timers, most serious first.
    pub const ALL: [Self; 5] =
        [Self::Setup, Self::Message, Self::Idle, Self::KeepAlive, Self::Beat];

    /// The reason to show when this timer closes a connection.
    #[must_use]
    pub const fn expired(self) -> &'static str {
        match self {
            Self::Setup => "connection setup took too long",
            Self::Message => "a message took too long to arrive",
            Self::Idle => "silent for too long",
            Self::KeepAlive => "a keep-alive was not answered in time",
            Self::Beat => "no keep-alive was sent in time",
        }
    }
}

/// The deadlines of a connection, and its clock: the time of the last input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timers {
    now: Duration,
    deadlines: [Option<Duration>; Timer::ALL.len()],
}

impl Timers {
    /// Creates timers without deadlines.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Self { now, deadlines: Default::default() }
    }

    /// The time of the last input.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Sets the clock. It never runs backwards.
    #[inline]
    pub fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Sets a deadline this far from now.
    #[inline]
    pub fn start(&mut self, timer: Timer, after: Duration) {
        self.deadlines[timer as usize] = Some(self.now.saturating_add(after));
    }

    /// Sets a deadline this far from now, unless it is already set.
    #[inline]
    pub fn start_once(&mut self, timer: Timer, after: Duration) {
        let at = self.now.saturating_add(after);
        self.deadlines[timer as usize].get_or_insert(at);
    }

    /// Sets a deadline.
    pub fn set(&mut self, timer: Timer, at: Duration) {
        self.deadlines[timer as usize] = Some(at);
    }

    /// The deadline of a timer, if it is set.
    #[must_use]
    pub fn get(&self, timer: Timer) -> Option<Duration> {
        self.deadlines[timer as usize]
    }

    /// Clears a deadline.
    #[inline]
    pub fn stop(&mut self, timer: Timer) {
        self.deadlines[timer as usize] = None;
    }

    /// Clears all deadlines, when the connection has ended.
    pub fn stop_all(&mut self) {
        self.deadlines = Default::default();
    }

    /// The most serious timer whose deadline has passed.
    #[must_use]
    pub fn passed(&self) -> Option<Timer> {
        let passed = |timer: &Timer| self.get(*timer).is_some_and(|at| at <= self.now);
        Timer::ALL.into_iter().find(passed)
    }

    /// The next deadline.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.deadlines.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_most_serious_passed_timer_comes_first() {
        let mut timers = Timers::new(SECOND);
        timers.start(Timer::Beat, SECOND);
        timers.start(Timer::Setup, SECOND * 2);
        timers.start_once(Timer::Setup, SECOND);
        assert_eq!((timers.next(), timers.passed()), (Some(SECOND * 2), None));
        timers.set_now(SECOND * 2);
        assert_eq!(timers.passed(), Some(Timer::Beat));
        timers.set_now(SECOND * 3);
        assert_eq!(timers.passed(), Some(Timer::Setup));
        timers.set_now(SECOND);
        assert_eq!(timers.now(), SECOND * 3);
        timers.stop(Timer::Setup);
        assert_eq!(timers.passed(), Some(Timer::Beat));
        timers.stop_all();
        assert_eq!((timers.next(), timers.passed()), (None, None));
    }

    #[test]
    fn timers_index_their_deadlines() {
        for (index, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, index);
        }
    }
}
