//! Times between requests and replies, in families whose messages have transaction numbers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use worldwire_core::Side;

use super::histogram::Histogram;
use super::totals::{Counted, MAX_NAMES};

/// The maximum number of requests that wait for a reply.
const MAX_PENDING: usize = 1 << 16;

/// A conversation and a transaction in it.
type Transaction = (u64, u64);

/// Measures the time from each client request to the first reply with its number.
#[derive(Debug, Default)]
pub struct Replies {
    /// Requests without a reply, with their time and the index of their name.
    pending: HashMap<Transaction, (Duration, usize)>,
    /// Pending and answered requests, oldest first.
    order: VecDeque<(Transaction, Duration)>,
    indices: HashMap<Box<str>, usize>,
    rows: Vec<(Box<str>, Histogram)>,
    forgotten: u64,
}

impl Replies {
    /// Adds a message, in the order of the capture.
    pub fn add(&mut self, item: &Counted) {
        let Some(transaction) = item.transaction else { return };
        let transaction = (item.stream, transaction);
        if item.from == Side::Server {
            if let Some((asked, row)) = self.pending.remove(&transaction)
                && let Some((_, histogram)) = self.rows.get_mut(row)
            {
                histogram.add(item.since.saturating_sub(asked));
            }
            return;
        }
        let row = match self.indices.get(&item.name) {
            Some(row) => *row,
            None if self.rows.len() >= MAX_NAMES => return,
            None => {
                self.indices.insert(item.name.clone(), self.rows.len());
                self.rows.push((item.name.clone(), Histogram::default()));
                self.rows.len() - 1
            }
        };
        self.pending.insert(transaction, (item.since, row));
        self.order.push_back((transaction, item.since));
        while self.pending.len() > MAX_PENDING {
            let Some((oldest, asked)) = self.order.pop_front() else { break };
            if self.is_pending(oldest, asked) {
                self.pending.remove(&oldest);
                self.forgotten += 1;
            }
        }
        if self.order.len() > 2 * MAX_PENDING {
            let mut order = core::mem::take(&mut self.order);
            order.retain(|(transaction, asked)| self.is_pending(*transaction, *asked));
            self.order = order;
        }
    }

    fn is_pending(&self, transaction: Transaction, asked: Duration) -> bool {
        self.pending.get(&transaction).is_some_and(|(time, _)| *time == asked)
    }

    /// Requests with their reply times, longest median first.
    #[must_use]
    pub fn rows(&self) -> Vec<(&str, &Histogram)> {
        let answered = self.rows.iter().filter(|(_, histogram)| histogram.count() > 0);
        let mut rows: Vec<_> = answered.map(|(name, times)| (&**name, times)).collect();
        rows.sort_by_key(|(name, times)| (core::cmp::Reverse(times.percentile(50)), *name));
        rows
    }

    /// The number of requests without a reply.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.forgotten + self.pending.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(stream: u64, from: Side, transaction: u64, millis: u64) -> Counted {
        let since = Duration::from_millis(millis);
        Counted {
            stream,
            since,
            transaction: Some(transaction),
            ..Counted::message("a.Request", "toy", from)
        }
    }

    #[test]
    fn the_first_reply_counts() {
        let mut replies = Replies::default();
        replies.add(&item(1, Side::Client, 5, 0));
        replies.add(&item(2, Side::Client, 5, 10));
        replies.add(&item(1, Side::Server, 5, 100));
        replies.add(&item(1, Side::Server, 5, 200));
        replies.add(&item(1, Side::Server, 6, 200));
        let rows = replies.rows();
        assert_eq!((rows.len(), rows[0].0, rows[0].1.count()), (1, "a.Request", 1));
        assert_eq!(rows[0].1.longest(), Duration::from_millis(100));
        assert_eq!(replies.unanswered(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut replies = Replies::default();
        for number in 0..5 * MAX_PENDING as u64 {
            replies.add(&item(number, Side::Client, 1, number));
            if number % 2 == 0 {
                replies.add(&item(number, Side::Server, 1, number + 1));
            }
            assert!(replies.pending.len() <= MAX_PENDING);
            assert!(replies.order.len() <= 2 * MAX_PENDING);
        }
        let answered = replies.rows()[0].1.count();
        assert_eq!(answered + replies.unanswered(), 5 * MAX_PENDING as u64);
    }
}
