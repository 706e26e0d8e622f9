//! The queue of players when the server is full.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::ki::login::QueuePosition;

/// The number of a connection, never reused.
pub type Number = u64;

/// The admitted connections, and the queue of waiting ones: first come, first served.
#[derive(Debug)]
pub struct Queue {
    slots: usize,
    admitted: HashSet<Number>,
    waiting: VecDeque<Number>,
    positions: HashMap<Number, u32>,
}

impl Queue {
    /// The queue of a server that admits this many connections.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let (admitted, waiting, positions) = Default::default();
        Self { slots, admitted, waiting, positions }
    }

    /// Admits or queues a connection. If it entered before, its position stays the same.
    pub fn enter(&mut self, who: Number) -> QueuePosition {
        if let Some(place) = self.place(who) {
            return place;
        }
        if self.waiting.is_empty() && self.admitted.len() < self.slots {
            self.admitted.insert(who);
            return QueuePosition::In;
        }
        self.waiting.push_back(who);
        let position = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        self.positions.insert(who, position);
        QueuePosition::Waiting(position)
    }

    /// A connection's position, if it has entered.
    #[must_use]
    pub fn place(&self, who: Number) -> Option<QueuePosition> {
        match self.admitted.contains(&who) {
            true => Some(QueuePosition::In),
            false => self.positions.get(&who).copied().map(QueuePosition::Waiting),
        }
    }

    /// Removes a connection and returns those whose positions changed.
    pub fn leave(&mut self, who: Number) -> Vec<Number> {
        let mut moved = Vec::new();
        let from = if self.admitted.remove(&who) {
            let Some(next) = self.waiting.pop_front() else { return moved };
            self.positions.remove(&next);
            self.admitted.insert(next);
            moved.push(next);
            0
        } else {
            let Some(position) = self.positions.remove(&who) else { return moved };
            // Positions count from 1.
            let at = usize::try_from(position).map_or(0, |position| position.saturating_sub(1));
            self.waiting.remove(at);
            at
        };
        for (at, one) in self.waiting.iter().enumerate().skip(from) {
            let position = u32::try_from(at + 1).unwrap_or(u32::MAX);
            self.positions.insert(*one, position);
            moved.push(*one);
        }
        moved
    }

    /// The number of admitted connections.
    #[must_use]
    pub fn admitted(&self) -> usize {
        self.admitted.len()
    }

    /// The number of waiting connections.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_16_the_queue_is_in_order_and_has_no_duplicates() {
        let mut queue = Queue::new(2);
        assert_eq!([1, 2].map(|who| queue.enter(who)), [QueuePosition::In; 2]);
        assert_eq!([3, 4, 5].map(|who| queue.enter(who).position()), [1, 2, 3]);
        assert_eq!([1, 4].map(|who| queue.enter(who).position()), [0, 2]);
        assert_eq!((queue.admitted(), queue.waiting()), (2, 3));
        // Connections leave from the middle of the queue, after admission, and without having
        // entered.
        assert_eq!(queue.leave(4), [5]);
        assert_eq!(queue.place(5), Some(QueuePosition::Waiting(2)));
        assert_eq!(queue.leave(1), [3, 5]);
        assert_eq!(
            [3, 5].map(|who| queue.place(who)),
            [Some(QueuePosition::In), Some(QueuePosition::Waiting(1))]
        );
        assert!(queue.leave(1).is_empty() && queue.leave(99).is_empty());
        // Newcomers go to the end of the queue, even if another connection has just left.
        assert_eq!(queue.enter(6), QueuePosition::Waiting(2));
        assert_eq!(queue.leave(2), [5, 6]);
        assert!(queue.leave(6).is_empty());
        assert_eq!((queue.admitted(), queue.waiting()), (2, 0));
    }
}
