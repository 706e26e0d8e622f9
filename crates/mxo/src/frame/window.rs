//! The packets received from a peer and those still to be acknowledged.

use super::sequence::{ACK_BITS, AckBits, MAX_NEWER, SEQUENCE_NUMBERS, SequenceNumber};

/// The packets received from one side: detects duplicates, and composes the acknowledgements.
///
/// It covers the last 2048 numbers, beyond which 12 bits cannot distinguish older numbers from
/// newer ones. One word acknowledges at most seven consecutive packets.
/// [`acknowledge`](Self::acknowledge) therefore begins with the packet that has waited longest, so
/// that every packet is acknowledged in some word.
///
/// ```
/// use worldwire_mxo::frame::{ReceiveWindow, SequenceNumber};
/// let mut window = ReceiveWindow::default();
/// for number in [1, 2, 4] {
///     assert!(window.receive(SequenceNumber::new(number)));
/// }
/// assert!(!window.receive(SequenceNumber::new(2)));
/// let (remote, acks) = window.acknowledge();
/// assert_eq!((remote.get(), acks.0), (4, 0b1101));
/// ```
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    newest: Option<SequenceNumber>,
    /// The first number after a sequence reset; packets before it are ignored.
    floor: Option<SequenceNumber>,
    /// One bit per number, valid for the newest number and those before it.
    seen: Box<[u64; WORDS]>,
    /// Received but not yet acknowledged, in order of arrival.
    waiting: Vec<SequenceNumber>,
}

const WORDS: usize = (SEQUENCE_NUMBERS / 64) as usize;
/// The maximum number of packets awaiting acknowledgement. Connections acknowledge long before
/// that.
const MAX_WAITING: usize = 256;

impl Default for ReceiveWindow {
    fn default() -> Self {
        Self { newest: None, floor: None, seen: Box::new([0; WORDS]), waiting: Vec::new() }
    }
}

impl ReceiveWindow {
    /// A window that begins with a packet that resets the sequence. Packets before it are ignored.
    #[must_use]
    pub fn reset_by(number: SequenceNumber) -> Self {
        let mut window = Self { floor: Some(number), ..Self::default() };
        window.receive(number);
        window
    }

    /// Registers a packet; `false` for a duplicate. A duplicate is acknowledged again, since the
    /// first acknowledgement may have been lost.
    pub fn receive(&mut self, number: SequenceNumber) -> bool {
        let is_new = self.note(number);
        let is_old = !is_new && !self.contains(number);
        if !is_old && !self.waiting.contains(&number) && self.waiting.len() < MAX_WAITING {
            self.waiting.push(number);
        }
        is_new
    }

    /// Like [`receive`](Self::receive), but for observers: nothing needs to be acknowledged.
    pub fn note(&mut self, number: SequenceNumber) -> bool {
        match self.newest {
            Some(newest) if number.is_newer_than(newest) => {
                // These bits are left over from the previous round.
                for step in 1..=number.ahead_of(newest) {
                    self.set(SequenceNumber::new(newest.get() + step), false);
                }
                self.newest = Some(number);
                // Numbers have wrapped.
                self.floor = self.floor.filter(|floor| number.ahead_of(*floor) < MAX_NEWER / 2);
            }
            Some(_) if self.has(number) || self.is_below_floor(number) => return false,
            Some(_) => {}
            None => self.newest = Some(number),
        }
        self.set(number, true);
        true
    }

    /// Whether a number was received, among the last 2048.
    #[must_use]
    pub fn contains(&self, number: SequenceNumber) -> bool {
        self.newest.is_some_and(|newest| !number.is_newer_than(newest)) && self.has(number)
    }

    /// The newest number.
    #[must_use]
    pub fn newest(&self) -> Option<SequenceNumber> {
        self.newest
    }

    /// The number of packets awaiting acknowledgement.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of words needed to acknowledge all of them.
    #[must_use]
    pub fn words_needed(&self) -> usize {
        let mut rest = self.waiting.clone();
        let mut words = 0;
        while let Some(remote) = next_remote(&rest) {
            rest.retain(|number| remote.ahead_of(*number) >= ACK_BITS);
            words += 1;
        }
        words
    }

    /// The next word's `remote` and bits. From then on, the packets it covers count as
    /// acknowledged.
    pub fn acknowledge(&mut self) -> (SequenceNumber, AckBits) {
        let Some(newest) = self.newest else { return Default::default() };
        let remote = next_remote(&self.waiting).unwrap_or(newest);
        self.waiting.retain(|number| remote.ahead_of(*number) >= ACK_BITS);
        let bits = (0..ACK_BITS).filter(|bit| self.contains(remote.back(*bit)));
        (remote, AckBits(bits.fold(0, |bits, bit| bits | 1 << bit)))
    }

    fn is_below_floor(&self, number: SequenceNumber) -> bool {
        self.floor.is_some_and(|floor| !number.is_newer_than(floor))
    }

    fn has(&self, number: SequenceNumber) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, number: SequenceNumber, seen: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.seen.get_mut(word) {
            *word = if seen { *word | bit } else { *word & !bit };
        }
    }
}

/// The maximum distance from the newest packet at which a packet's acknowledgements are used. Those
/// of older packets may refer to the previous round of numbers.
pub(crate) const MAX_ACK_AGE: u16 = 64;
const _: () = assert!(MAX_ACK_AGE < MAX_NEWER, "otherwise, old packets would count as newer ones");

/// The newest number that one word can cover together with the number that has waited longest.
fn next_remote(waiting: &[SequenceNumber]) -> Option<SequenceNumber> {
    let first = *waiting.first()?;
    let covered = waiting.iter().filter(|number| number.ahead_of(first) < ACK_BITS);
    covered.max_by_key(|number| number.ahead_of(first)).copied()
}

fn place(number: SequenceNumber) -> (usize, u64) {
    (usize::from(number.get() / 64), 1 << (number.get() % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use worldwire_core::Sampler;

    use super::*;

    fn number(number: u64) -> SequenceNumber {
        SequenceNumber::of(number)
    }

    #[test]
    fn every_packet_is_new_exactly_once_over_many_rounds() {
        let mut window = ReceiveWindow::default();
        let mut sampler = Sampler::new(3);
        let mut seen = BTreeSet::new();
        let mut newest = 1;
        for _ in 0..60_000 {
            let count = (newest + sampler.below(40)).saturating_sub(sampler.below(100)).max(1);
            newest = newest.max(count);
            assert_eq!(window.note(number(count)), seen.insert(count), "{count}");
        }
        assert!(newest > 3 * 4096, "{newest}");
    }

    #[test]
    fn packets_from_before_a_reset_are_ignored() {
        let mut window = ReceiveWindow::reset_by(number(100));
        assert!(!window.receive(number(99)) && !window.receive(number(100)));
        assert!(window.receive(number(102)) && window.receive(number(101)));
        assert_eq!(window.words_needed(), 1);
        assert_eq!(window.acknowledge(), (number(102), AckBits(0b111)));
        for count in 103..5000 {
            assert!(window.note(number(count)), "{count}");
        }
        assert!(window.note(number(4095 + 5001)));
    }

    #[test]
    fn exactly_the_received_packets_are_acknowledged() {
        let mut sampler = Sampler::new(5);
        let mut window = ReceiveWindow::default();
        let (mut received, mut acked) = (BTreeSet::new(), BTreeSet::new());
        let mut next = 1u64;
        for round in 0..3000 {
            for _ in 0..sampler.below(30) {
                next += 1 + sampler.below(9);
                let count = next - sampler.below(5).min(next - 1);
                window.receive(number(count));
                received.insert(count);
            }
            while window.waiting() > 0 {
                let before = window.waiting();
                let (remote, acks) = window.acknowledge();
                assert!(window.waiting() < before, "in round {round}");
                for ack in acks.acked(remote) {
                    // The acknowledgement refers to the nearest count.
                    let behind = u64::from(number(next).ahead_of(ack));
                    acked.insert(next - behind);
                }
            }
        }
        assert_eq!(received, acked);
    }
}
