//! Messages over time.

use std::time::Duration;

use worldwire_core::Side;

/// Counts messages in intervals. The intervals get longer as the capture does, so their number is
/// bounded.
#[derive(Debug)]
pub struct Rates {
    /// Nanoseconds: 1 or 2, times a power of ten.
    interval: u64,
    counts: Vec<[u64; 2]>,
    /// Whether `interval` is a power of ten.
    is_power: bool,
}

/// The maximum number of intervals.
const MAX_INTERVALS: usize = 100;
/// The maximum number of rows.
const MAX_ROWS: usize = 10;

impl Default for Rates {
    fn default() -> Self {
        Self { interval: 1_000_000, counts: Vec::new(), is_power: true }
    }
}

impl Rates {
    /// Counts a message, by the time since the first packet.
    pub fn add(&mut self, since: Duration, from: Side) {
        let since = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let index = loop {
            match usize::try_from(since / self.interval) {
                Ok(index) if index < MAX_INTERVALS => break index,
                _ => self.widen(),
            }
        };
        if self.counts.len() <= index {
            self.counts.resize(index + 1, [0; 2]);
        }
        if let Some(counts) = self.counts.get_mut(index) {
            counts[from.index()] += 1;
        }
    }

    fn widen(&mut self) {
        let factor = if self.is_power { 2 } else { 5 };
        self.counts = merged(&self.counts, factor);
        self.interval = self.interval.saturating_mul(factor as u64);
        self.is_power = !self.is_power;
    }

    /// The length of an interval, and the messages of client and server in each.
    #[must_use]
    pub fn intervals(&self) -> (Duration, &[[u64; 2]]) {
        (Duration::from_nanos(self.interval), &self.counts)
    }

    /// Like [`intervals`](Self::intervals), reduced to at most ten rows.
    #[must_use]
    pub fn rows(&self) -> (Duration, Vec<[u64; 2]>) {
        let count = self.counts.len();
        let factors = [1, 2, 5, 10];
        let factor = factors.into_iter().find(|factor| count.div_ceil(*factor) <= MAX_ROWS);
        let factor = factor.unwrap_or(10);
        let interval = self.interval.saturating_mul(factor as u64);
        (Duration::from_nanos(interval), merged(&self.counts, factor))
    }
}

/// Joins every `factor` intervals.
fn merged(counts: &[[u64; 2]], factor: usize) -> Vec<[u64; 2]> {
    let sum = |part: &[[u64; 2]]| {
        part.iter().fold([0; 2], |sum, counts| [sum[0] + counts[0], sum[1] + counts[1]])
    };
    counts.chunks(factor).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_and_no_message_is_lost() {
        let mut rates = Rates::default();
        let seconds = [0, 1, 1, 59, 3600, 86_400, 10_000_000, u64::MAX / 2];
        for (index, seconds) in seconds.into_iter().enumerate() {
            let side = Side::BOTH[index % 2];
            rates.add(Duration::from_secs(seconds), side);
            let (interval, counts) = rates.intervals();
            let total: u64 = counts.iter().flatten().sum();
            assert_eq!(total, index as u64 + 1);
            assert!(counts.len() <= MAX_INTERVALS);
            let digits = interval.as_nanos().to_string();
            assert!(digits.trim_end_matches('0').len() == 1, "{digits}");
            let (longer, rows) = rates.rows();
            assert!(rows.len() <= MAX_ROWS && longer >= interval);
            assert_eq!(rows.iter().flatten().sum::<u64>(), total);
        }
    }
}
