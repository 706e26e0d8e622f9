//! The numbers of one direction's RPC messages on both sides of a relay that adds messages.

use std::collections::VecDeque;

use super::outbox::on_wire;
use crate::frame::RpcList;

/// Translates the numbers that the sender gave its RPC messages into those that the receiver sees.
///
/// An added message takes the number after the newest message that has left the relay. The receiver
/// then sees higher numbers for all later messages of the sender. The translation of a message
/// never changes once it has left, so every copy has the same number, whichever list it is sent in.
#[derive(Debug)]
pub(super) struct RpcNumbers {
    /// The sender's number for the message after the newest one that has left. Does not wrap.
    next: u64,
    /// Whether `next` is known: a hello or an RPC message has been seen.
    is_known: bool,
    /// The shifts of recent messages, in order.
    shifts: VecDeque<Shift>,
    /// The shift of older messages.
    base: u64,
}

/// The number of messages added before the sender's message `from`, and thus before all later ones.
#[derive(Clone, Copy, Debug)]
struct Shift {
    from: u64,
    by: u64,
}

/// The first number, which is 0 on the wire. It is high enough that older numbers do not underflow.
const FIRST: u64 = 1 << 32;
/// Messages this old are not sent again.
const MAX_AGE: u64 = 4_096;
/// How far a number may be from the next one.
const MAX_DISTANCE: u16 = 1_024;

impl Default for RpcNumbers {
    fn default() -> Self {
        Self { next: FIRST, is_known: false, shifts: VecDeque::new(), base: 0 }
    }
}

impl RpcNumbers {
    /// Numbers that start at 0.
    pub(super) fn from_start() -> Self {
        Self { is_known: true, ..Self::default() }
    }

    /// Records a hello: unless messages have already been seen, the first one is number 0.
    pub(super) fn begin(&mut self) {
        self.is_known = true;
    }

    /// Whether the next number is known.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the sender could be using this number for a message now.
    pub(super) fn is_near(&self, number: u16) -> bool {
        let ahead = number.wrapping_sub(on_wire(self.next)).wrapping_add(MAX_DISTANCE);
        self.is_known && ahead <= 2 * MAX_DISTANCE
    }

    /// Assigns a number to an added message. Returns it as the receiver sees it.
    pub(super) fn add(&mut self) -> u16 {
        let by = self.shifts.back().map_or(self.base, |last| last.by);
        match self.shifts.back_mut().filter(|last| last.from == self.next) {
            Some(last) => last.by = by + 1,
            None => self.shifts.push_back(Shift { from: self.next, by: by + 1 }),
        }
        on_wire(self.next + by)
    }

    /// Translates the lists of a packet, and splits a list wherever an added message took a number
    /// within its range. Returns whether anything has changed.
    pub(super) fn translate(&self, lists: &mut Vec<RpcList<'_>>) -> bool {
        if self.shifts.is_empty() && on_wire(self.base) == 0 {
            return false;
        }
        let before = core::mem::take(lists);
        let mut is_changed = false;
        for mut list in before {
            let mut first = self.extended(list.first);
            loop {
                let at = self.shifts.partition_point(|shift| shift.from <= first);
                let by = at.checked_sub(1).and_then(|at| self.shifts.get(at));
                list.first = on_wire(first + by.map_or(self.base, |shift| shift.by));
                is_changed |= list.first != on_wire(first);
                let count = self.shifts.get(at).map(|shift| shift.from - first);
                let count = count.and_then(|count| usize::try_from(count).ok());
                let Some(count) = count.filter(|count| *count < list.messages.len()) else { break };
                let rest = list.messages.split_off(count);
                first += count as u64;
                lists.push(core::mem::replace(&mut list, RpcList { first: 0, messages: rest }));
                is_changed = true;
            }
            lists.push(list);
        }
        is_changed
    }

    /// Records lists that are leaving, identified by the sender's numbers.
    pub(super) fn leave(&mut self, lists: &[RpcList<'_>]) {
        for list in lists.iter().filter(|list| !list.messages.is_empty()) {
            if !core::mem::replace(&mut self.is_known, true) {
                self.next = FIRST + u64::from(list.first);
            }
            let end = self.extended(list.first) + list.messages.len() as u64;
            self.next = self.next.max(end);
        }
        while let Some(old) = self.shifts.front().filter(|it| it.from + MAX_AGE < self.next) {
            self.base = old.by;
            self.shifts.pop_front();
        }
    }

    /// The number without wrapping: the one nearest to the next number.
    fn extended(&self, number: u16) -> u64 {
        let ahead = number.wrapping_sub(on_wire(self.next));
        match ahead < 0x8000 {
            true => self.next + u64::from(ahead),
            false => self.next - u64::from(ahead.wrapping_neg()),
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;

    use super::*;
    use crate::frame::RpcMessage;

    fn list(first: u64, count: u64) -> RpcList<'static> {
        let message = |number: u64| RpcMessage::new(0x28, &number.to_le_bytes());
        RpcList { first: on_wire(first), messages: (first..first + count).map(message).collect() }
    }

    /// The receiver's number for each message, by the sender's number.
    fn translated(numbers: &RpcNumbers, first: u64, count: u64) -> Vec<(u64, u16)> {
        let mut lists = vec![list(first, count)];
        numbers.translate(&mut lists);
        let messages = lists.iter().flat_map(RpcList::numbered);
        let sent = |data: &[u8]| u64::from_le_bytes(data.try_into().unwrap());
        messages.map(|(number, message)| (sent(message.data()), number)).collect()
    }

    #[test]
    fn a_list_is_split_where_a_message_was_added() {
        let mut numbers = RpcNumbers::from_start();
        numbers.leave(&[list(0, 4)]);
        assert_eq!([numbers.add(), numbers.add()], [4, 5]);
        numbers.leave(&[list(4, 1)]);
        assert_eq!(numbers.add(), 7);
        let mut lists = vec![list(2, 5)];
        assert!(numbers.translate(&mut lists));
        let found: Vec<_> = lists.iter().map(|list| (list.first, list.messages.len())).collect();
        assert_eq!(found, [(2, 2), (6, 1), (8, 2)]);
        assert_eq!(lists[1].messages, list(4, 1).messages);
        let mut early = vec![list(0, 4)];
        assert!(!numbers.translate(&mut early), "these left before the first addition");
        assert_eq!(early, [list(0, 4)]);
    }

    #[test]
    fn the_receiver_gets_every_number_once_over_many_rounds() {
        let mut sampler = Sampler::new(4);
        let mut numbers = RpcNumbers::from_start();
        // The receiver's numbers, by the sender's numbers.
        let mut known: Vec<u64> = Vec::new();
        let (mut at_receiver, mut most) = (0_u64, 0);
        while at_receiver < 5 << 16 {
            if sampler.below(3) == 0 {
                assert_eq!(numbers.add(), on_wire(at_receiver));
                at_receiver += 1;
            }
            let count = sampler.below(12);
            let sent = known.len() as u64;
            known.extend(at_receiver..at_receiver + count);
            at_receiver += count;
            // The same list contains messages that have left before.
            let first = sent.saturating_sub(sampler.below(40));
            let end = known.len() as u64;
            for (number, found) in translated(&numbers, first, end - first) {
                let wanted = known[usize::try_from(number).unwrap()];
                assert_eq!(found, on_wire(wanted), "message {number}");
            }
            numbers.leave(&[list(first, end - first)]);
            most = most.max(numbers.shifts.len());
        }
        assert!(u64::try_from(most).unwrap() <= MAX_AGE && numbers.base > 1000, "{most}");
    }

    #[test]
    fn numbers_of_a_conversation_in_progress_start_with_the_first_message() {
        let mut numbers = RpcNumbers::default();
        assert!(!numbers.is_known() && !numbers.is_near(0));
        numbers.leave(&[list(50_000, 3)]);
        assert!(numbers.is_known() && numbers.is_near(50_000) && !numbers.is_near(0));
        assert_eq!(numbers.add(), 50_003);
        assert_eq!(translated(&numbers, 50_002, 2), [(50_002, 50_002), (50_003, 50_004)]);
        // A late list from before the wrap.
        numbers.leave(&[list(65_530, 10)]);
        assert_eq!(translated(&numbers, 65_535, 1), [(65_535, 0)]);
        assert!(numbers.is_near(65_535) && numbers.is_near(1028) && !numbers.is_near(1029));
    }
}
