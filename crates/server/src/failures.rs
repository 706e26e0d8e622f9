//! Failed logins delay later logins but never lock anyone out. Otherwise, anyone could lock out
//! other players.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// How long failures are remembered.
const WINDOW: Duration = Duration::from_secs(60);
/// The number of failures that cause no delay.
const FREE: u32 = 3;
/// The delay after the next failure. Each further failure doubles it.
const FIRST: Duration = Duration::from_millis(250);
/// The longest delay.
const MAX: Duration = Duration::from_secs(4);
/// The shortest interval between removals of old failures.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// The maximum number of addresses and names to remember.
const MAX_SOURCES: usize = 65_536;

/// The address or name that a failure counts against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Address(IpAddr),
    Account(String),
}

/// The failures of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// The number of failures, and the time of the last one.
    counts: HashMap<Source, (u32, Duration)>,
    swept: Duration,
}

impl Failures {
    /// How long to delay the next reply to this address or about this account.
    pub(crate) fn pause(&self, address: IpAddr, account: &str, now: Duration) -> Duration {
        let pause = |source: Source| {
            let (count, last) = self.counts.get(&source).copied().unwrap_or_default();
            let counts = now.saturating_sub(last) < WINDOW && count > FREE;
            let doubled = 1u32.checked_shl(count.saturating_sub(FREE + 1)).unwrap_or(u32::MAX);
            if counts { FIRST.saturating_mul(doubled).min(MAX) } else { Duration::ZERO }
        };
        pause(Source::Address(address)).max(pause(Source::Account(account.to_owned())))
    }

    /// Counts a failed login.
    pub(crate) fn add(&mut self, address: IpAddr, account: &str, now: Duration) {
        // During a flood of failures, do not remove old ones after each.
        let is_due = now.saturating_sub(self.swept) >= SWEEP_EVERY;
        if self.counts.len() + 2 > MAX_SOURCES && is_due {
            self.swept = now;
            self.counts.retain(|_, (_, last)| now.saturating_sub(*last) < WINDOW);
        }
        for source in [Source::Address(address), Source::Account(account.to_owned())] {
            if self.counts.len() >= MAX_SOURCES && !self.counts.contains_key(&source) {
                continue;
            }
            let (count, last) = self.counts.entry(source).or_default();
            let is_over = now.saturating_sub(*last) >= WINDOW;
            *count = if is_over { 1 } else { count.saturating_add(1) };
            *last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_18_failures_delay_logins_and_never_lock_out() {
        let [home, away] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<IpAddr>().unwrap());
        let mut failures = Failures::default();
        let at = Duration::from_secs;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pauses.push(failures.pause(home, "merle", at(1)).as_millis());
            failures.add(home, "merle", at(1));
        }
        assert_eq!(pauses, [0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 4000, 4000, 4000]);
        // The same account from another address, and the same address with another account.
        assert_eq!(failures.pause(away, "merle", at(1)), MAX);
        assert_eq!(failures.pause(home, "other", at(1)), MAX);
        assert_eq!(failures.pause(away, "other", at(1)), Duration::ZERO);
        assert_eq!(failures.pause(home, "merle", at(61)), Duration::ZERO);
        failures.add(home, "merle", at(61));
        assert_eq!(failures.pause(home, "merle", at(61)), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let mut failures = Failures::default();
        for number in 0..100_000u32 {
            failures.add(IpAddr::from(number.to_be_bytes()), "merle", Duration::ZERO);
        }
        assert_eq!(failures.counts.len(), MAX_SOURCES);
        failures.add(IpAddr::from([9, 9, 9, 9]), "x", WINDOW);
        assert_eq!(failures.counts.len(), 2);
    }
}
