//! Packets from one side that were not seen.

use std::collections::VecDeque;

use super::count::PacketCount;
use super::sequence::{MAX_NEWER, SequenceNumber};
use super::window::MAX_ACK_AGE;

/// The packet numbers that were skipped. A late packet's number is removed again, unless it is too
/// old to be expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missing {
    packets: PacketCount,
    /// The first and last number of each run, oldest first.
    runs: VecDeque<(u64, u64)>,
}

/// The maximum number of runs. Beyond it, the two oldest are merged.
const MAX_RUNS: usize = 1_024;
const _: () =
    assert!(MAX_ACK_AGE < MAX_NEWER, "otherwise, a late packet would count as a newer one");

impl Missing {
    /// Whether a packet follows a hole too long to detect from its number.
    pub(crate) fn is_after_long_hole(&self, number: SequenceNumber, time: u32) -> bool {
        let ahead = |newest| self.packets.of(number, time).saturating_sub(newest);
        self.packets.newest().is_some_and(|newest| ahead(newest) > u64::from(MAX_NEWER))
    }

    /// Whether a packet was sent later than the newest one.
    pub(crate) fn is_later(&self, time: u32) -> bool {
        self.packets.is_later(time)
    }

    /// The count of the newest packet.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.packets.newest()
    }

    /// The count of the newest packet with a number that the other side acknowledged.
    pub(crate) fn acknowledged(&self, number: SequenceNumber) -> Option<u64> {
        let newest = self.packets.newest()?;
        newest.checked_sub(SequenceNumber::of(newest).ahead_of(number).into())
    }

    /// The newest missing packet before this one.
    pub(crate) fn before(&self, count: u64) -> Option<u64> {
        let run = self.runs.iter().rev().find(|run| run.0 < count)?;
        Some(run.1.min(count - 1))
    }

    /// Whether no packet is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Notes a received packet, sent at this time. Returns its count.
    pub(crate) fn note(&mut self, number: SequenceNumber, time: u32) -> u64 {
        let before = self.packets.newest();
        let count = self.packets.take(number, time);
        match before {
            Some(newest) if count > newest + 1 => self.runs.push_back((newest + 1, count - 1)),
            Some(newest) if count <= newest => _ = self.remove(count),
            _ => {}
        }
        if self.runs.len() > MAX_RUNS
            && let Some((first, _)) = self.runs.pop_front()
            && let Some(run) = self.runs.front_mut()
        {
            run.0 = first;
        }
        count
    }

    /// Removes a packet. Returns whether it was missing.
    pub(crate) fn remove(&mut self, count: u64) -> bool {
        let Some(at) = self.runs.iter().position(|run| (run.0..=run.1).contains(&count)) else {
            return false;
        };
        let Some((first, last)) = self.runs.remove(at) else { return false };
        if count < last {
            self.runs.insert(at, (count + 1, last));
        }
        if first < count {
            self.runs.insert(at, (first, count - 1));
        }
        true
    }

    /// Forgets packets that are at least this old.
    pub(crate) fn forget_before(&mut self, count: u64) {
        while self.runs.front().is_some_and(|run| run.1 < count) {
            self.runs.pop_front();
        }
    }

    /// Removes a run that is too old to be acknowledged, or any run if `is_over` is set. Returns
    /// its first and last number.
    pub(crate) fn lost(&mut self, is_over: bool) -> Option<(SequenceNumber, SequenceNumber)> {
        let newest = self.packets.newest()?;
        let is_lost = |run: &(u64, u64)| is_over || run.1 + u64::from(MAX_ACK_AGE) < newest;
        let (first, last) = *self.runs.front().filter(|run| is_lost(run))?;
        self.runs.pop_front();
        Some((SequenceNumber::of(first), SequenceNumber::of(last)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use worldwire_core::Sampler;

    use super::*;

    #[test]
    fn every_missing_number_is_reported_once() {
        let mut sampler = Sampler::new(7);
        let (mut missing, mut lost) = (Missing::default(), Vec::new());
        let (mut seen, mut next) = (BTreeSet::new(), 0);
        for step in 0..30_000_u64 {
            next = (next + 1 + sampler.below(8).saturating_sub(5)).max(step.min(1));
            let count = if step == 0 { next } else { next - sampler.below(9).min(next - 1) };
            seen.insert(count);
            missing.note(SequenceNumber::of(count), u32::try_from(count).unwrap());
            while let Some(run) = missing.lost(false) {
                lost.push(run);
            }
            assert!(missing.runs.len() <= 64, "{:?}", missing.runs);
        }
        assert!(next > 4 * 4096, "{next}");
        while let Some(run) = missing.lost(true) {
            lost.push(run);
        }
        let first = *seen.first().unwrap();
        let newest = *seen.last().unwrap();
        let wanted: Vec<u64> = (first..newest).filter(|count| !seen.contains(count)).collect();
        let reported: Vec<u16> = lost
            .iter()
            .flat_map(|(first, last)| {
                (0..=last.ahead_of(*first)).map(|by| SequenceNumber::new(first.get() + by).get())
            })
            .collect();
        let wanted: Vec<u16> =
            wanted.into_iter().map(|count| SequenceNumber::of(count).get()).collect();
        assert!(wanted.len() > 1000);
        assert_eq!(reported, wanted);
    }
}
