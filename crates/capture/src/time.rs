//! The time of a capture.

use core::fmt;
use core::time::Duration;

/// A capture's time: nanoseconds since 1970-01-01 00:00 UTC.
///
/// Ranges from 1677 to 2262; times outside are clamped. worldwire's protocol code uses no clock:
/// every time-out is measured between two of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time this many nanoseconds after 1970, or before it if negative.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The time `seconds` plus `nanos` after 1970. `nanos` may exceed one second.
    #[must_use]
    pub const fn from_parts(seconds: i64, nanos: i64) -> Self {
        Self(seconds.saturating_mul(NANOS).saturating_add(nanos))
    }

    /// Nanoseconds since 1970.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The time since `earlier`; zero if this is earlier. Packets of a capture may go back in time.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// A time from a wider integer, clamped.
    pub(crate) fn from_wide(nanos: i128) -> Self {
        let end = if nanos < 0 { i64::MIN } else { i64::MAX };
        Self(i64::try_from(nanos).unwrap_or(end))
    }
}

impl fmt::Display for Timestamp {
    /// `1700000000.000000001`: seconds, a point and nine digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let second = NANOS.unsigned_abs();
        write!(f, "{sign}{}.{:09}", nanos / second, nanos % second)
    }
}

pub(crate) const NANOS: i64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_seconds_and_nanoseconds() {
        assert_eq!(Timestamp::from_parts(12, 5).to_string(), "12.000000005");
        assert_eq!(Timestamp::from_nanos(-1_500_000_000).to_string(), "-1.500000000");
        assert_eq!(Timestamp::from_nanos(i64::MIN).to_string(), "-9223372036.854775808");
    }

    #[test]
    fn is_clamped() {
        assert_eq!(Timestamp::from_parts(i64::MAX, 1).nanos(), i64::MAX);
        assert_eq!(Timestamp::from_wide(-(1 << 100)).nanos(), i64::MIN);
        let (early, late) = (Timestamp::from_nanos(i64::MIN), Timestamp::from_nanos(i64::MAX));
        assert_eq!(late.since(early), Duration::from_nanos(u64::MAX));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
