//! Durations in buckets of growing width.

use std::time::Duration;

/// Counts durations. The memory is bounded, and quantiles are at most 3 % off.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Microseconds: 16 buckets for every power of two.
    buckets: Vec<u64>,
    count: u64,
    longest: Duration,
}

/// Buckets for each power of two.
const PARTS: u64 = 16;
/// The base-2 logarithm of [`PARTS`].
const PART_BITS: u32 = PARTS.trailing_zeros();

impl Histogram {
    /// Counts a duration.
    pub fn add(&mut self, duration: Duration) {
        let index = index(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
        self.count += 1;
        self.longest = self.longest.max(duration);
    }

    /// The number of durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration; zero if there is none.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The duration that this percentage of all durations does not exceed.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank && *count > 0 {
                return Duration::from_micros(middle(index as u64)).min(self.longest);
            }
        }
        self.longest
    }
}

/// The bucket of a number.
fn index(micros: u64) -> usize {
    let power = micros.max(1).ilog2();
    let index = match power.checked_sub(PART_BITS) {
        None => micros,
        Some(shift) => (u64::from(shift) << PART_BITS) + (micros >> shift),
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The number in the middle of a bucket.
fn middle(index: u64) -> u64 {
    match (index >> PART_BITS).checked_sub(1) {
        None => index,
        Some(shift) => {
            let start = (PARTS + (index & (PARTS - 1))) << shift;
            start.saturating_add((1 << shift) >> 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for micros in (0..200_000).chain((0..44).map(|bits| (1 << bits) * 0xfffff)) {
            let found = index(micros);
            assert!(found >= last || micros < 1 << 20, "{micros}");
            last = found;
            let off = middle(found as u64).abs_diff(micros);
            assert!(off * 32 <= micros, "{micros}: {off}");
        }
        assert!(index(u64::MAX) < 1024 && middle(index(u64::MAX) as u64) > 1 << 63);
    }

    #[test]
    fn percentiles_are_near_the_exact_ones() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), Duration::ZERO);
        for millis in (1..=1000).rev() {
            histogram.add(Duration::from_millis(millis));
        }
        for percent in [1, 50, 95, 100] {
            let (exact, found) = (percent as f64 * 10.0, histogram.percentile(percent));
            assert!((found.as_secs_f64() * 1e3 / exact - 1.0).abs() < 0.032, "{percent} {found:?}");
        }
        assert_eq!((histogram.count(), histogram.longest()), (1000, Duration::from_secs(1)));
        let mut one = Histogram::default();
        one.add(Duration::from_micros(12_345));
        assert!(one.percentile(50) <= one.longest());
    }
}
