//! Packet numbers extended so that they never wrap.

use super::sequence::{SEQUENCE_NUMBERS, SequenceNumber};
use super::window::MAX_ACK_AGE;

/// Extends one side's 12-bit packet numbers to a running count, so that any two packets can be
/// compared. Used by observers, which may miss any number of packets.
///
/// A number up to 2048 above the newest one is newer, and one up to [`MAX_ACK_AGE`] below it is
/// late. For any other number, the sender's clock decides: a packet that was not sent before the
/// newest one is newer, and more than 2047 packets before it are missing. A gap of more than 4030
/// packets goes unnoticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketCount {
    newest: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    count: u64,
    /// Seconds since 1970.
    time: u32,
}

impl PacketCount {
    /// Registers a packet sent at this time and returns its count.
    pub(crate) fn take(&mut self, number: SequenceNumber, time: u32) -> u64 {
        let count = self.of(number, time);
        if self.newest.is_none_or(|newest| count > newest.count) {
            self.newest = Some(Newest { count, time });
        }
        count
    }

    /// The count of the newest packet.
    pub(crate) fn newest(self) -> Option<u64> {
        self.newest.map(|newest| newest.count)
    }

    /// Whether a packet was sent later than the newest one.
    pub(crate) fn is_later(self, time: u32) -> bool {
        self.newest.is_some_and(|newest| time > newest.time)
    }

    /// The count of a packet that was sent at this time.
    pub(crate) fn of(self, number: SequenceNumber, time: u32) -> u64 {
        const ROUND: u64 = SEQUENCE_NUMBERS as u64;
        // Start one round higher, so that packets older than the first can still be counted.
        let Some(newest) = self.newest else { return ROUND + u64::from(number.get()) };
        let last = SequenceNumber::of(newest.count);
        let behind = last.ahead_of(number);
        let is_after_gap = behind > MAX_ACK_AGE && time >= newest.time;
        match number.is_newer_than(last) || is_after_gap {
            true => newest.count + u64::from(number.ahead_of(last)),
            false => newest.count - u64::from(behind),
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;

    use super::*;

    #[test]
    fn counts_continue_when_numbers_wrap() {
        let mut packets = PacketCount::default();
        let mut sampler = Sampler::new(1);
        let base = packets.take(SequenceNumber::of(4000), 4000) - 4000;
        let mut newest = 4000;
        for _ in 0..20_000 {
            let count = newest + sampler.below(2048) - sampler.below(2048).min(1900);
            // One packet a second: a late one was sent earlier.
            let time = u32::try_from(count).unwrap();
            assert_eq!(packets.take(SequenceNumber::of(count), time), base + count);
            newest = newest.max(count);
            assert_eq!(packets.newest(), Some(base + newest));
        }
        assert!(newest > 20 * 4096, "{newest}");
    }
    #[test]
    fn the_clock_distinguishes_packets_after_a_gap_from_late_ones() {
        let counted = |number: u16, time: u32| {
            let mut packets = PacketCount::default();
            let first = packets.take(SequenceNumber::new(3000), 100);
            packets.take(SequenceNumber::new(number), time).cast_signed() - first.cast_signed()
        };
        // Either 2100 and 4030 packets are missing, or these two are late by 1995 and 65.
        for time in [100, 101] {
            assert_eq!(counted(3000 + 2101 - 4096, time), 2101, "at {time}");
            assert_eq!(counted(3000 - 65, time), 4031, "at {time}");
        }
        assert_eq!(counted(3000 + 2101 - 4096, 99), -1995);
        assert_eq!(counted(3000 - 65, 99), -65);
        for time in [99, 100, 101] {
            assert_eq!(counted(3000 - 64, time), -64, "at {time}");
            assert_eq!(counted((3000 + 2048) % 4096, time), 2048, "at {time}");
        }
    }
}
