//! Packet numbers that do not come around again.

use super::sequence::{SEQUENCE_NUMBERS, SequenceNumber};

/// Counts the packets of one side on beyond the 12 bits of their numbers, so that any two of them
/// can be compared.
///
/// A number is taken for the packet nearest to the newest one: one that is up to 2048 ahead is
/// newer, any other is late. A run of more than 2047 packets that nobody saw is not noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketCount {
    newest: Option<u64>,
}

impl PacketCount {
    /// The count of a packet that came.
    pub(crate) fn take(&mut self, number: SequenceNumber) -> u64 {
        let count = self.of(number);
        self.newest = self.newest.max(Some(count));
        count
    }

    /// The count of the newest packet.
    pub(crate) const fn newest(self) -> Option<u64> {
        self.newest
    }

    fn of(self, number: SequenceNumber) -> u64 {
        const ROUND: u64 = SEQUENCE_NUMBERS as u64;
        // A round is in front of the first packet for those that come behind it, late.
        let Some(newest) = self.newest else { return ROUND + u64::from(number.get()) };
        let last = SequenceNumber::of(newest);
        match number.is_newer_than(last) {
            true => newest + u64::from(number.ahead_of(last)),
            false => newest - u64::from(last.ahead_of(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;

    use super::*;

    #[test]
    fn counts_go_on_where_numbers_come_around() {
        let mut packets = PacketCount::default();
        let mut sampler = Sampler::new(1);
        let base = packets.take(SequenceNumber::of(4000)) - 4000;
        let mut newest = 4000;
        for _ in 0..20_000 {
            let count = newest + sampler.below(2048) - sampler.below(2048).min(1900);
            assert_eq!(packets.take(SequenceNumber::of(count)), base + count);
            newest = newest.max(count);
            assert_eq!(packets.newest(), Some(base + newest));
        }
        assert!(newest > 20 * 4096, "{newest}");
    }
}
