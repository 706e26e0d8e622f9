//! A world's metrics, for operators.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of recent ticks that are remembered. They cover more than a minute.
const TICKS: usize = 2_048;

/// A world's counters. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ticks: Mutex<VecDeque<Duration>>,
    ticked: AtomicU64,
    sent: AtomicU64,
    refused: AtomicU64,
    turned_away: AtomicU64,
}

impl Figures {
    pub(super) fn ticked(&self, took: Duration) {
        self.0.ticked.fetch_add(1, Ordering::Relaxed);
        let mut ticks = self.0.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        if ticks.len() >= TICKS {
            ticks.pop_front();
        }
        ticks.push_back(took);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.0.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.0.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of clients refused because the world was full.
    #[must_use]
    pub fn clients_turned_away(&self) -> u64 {
        self.0.turned_away.load(Ordering::Relaxed)
    }

    /// The number of ticks so far.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.0.ticked.load(Ordering::Relaxed)
    }

    /// The size of all object sections sent, in bytes.
    #[must_use]
    pub fn section_bytes(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// The number of datagrams and sections that violated the protocol.
    #[must_use]
    pub fn broken_rules(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// The durations of recent ticks: the 50th and the 99th percentile.
    #[must_use]
    pub fn tick_times(&self) -> [Duration; 2] {
        let ticks = self.0.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<Duration> = ticks.iter().copied().collect();
        drop(ticks);
        sorted.sort_unstable();
        let at = |percent: usize| {
            sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        };
        [50, 99].map(|percent| at(percent).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_times_are_percentiles() {
        let figures = Figures::default();
        assert_eq!(figures.tick_times(), [Duration::ZERO; 2]);
        (1..=200).for_each(|millis| figures.ticked(Duration::from_millis(millis)));
        assert_eq!(figures.tick_times(), [101, 199].map(Duration::from_millis));
        (0..TICKS).for_each(|_| figures.ticked(Duration::ZERO));
        assert_eq!((figures.tick_times(), figures.ticks()), ([Duration::ZERO; 2], 2_248));
    }
}
