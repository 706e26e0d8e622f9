//! An in-memory bus in virtual time, with loss, delays, repetition, partitions and pauses.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::time::Duration;

use worldwire_core::Sampler;

use super::subjects::matches;

/// The faults of the bus.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// Lost messages per thousand.
    pub(super) loss: u64,
    /// Repeated messages per thousand.
    pub(super) duplication: u64,
    /// The longest normal delay.
    pub(super) delay: Duration,
    /// Messages per thousand that are delayed by up to five seconds.
    pub(super) late: u64,
    /// Periods in which nothing leaves an endpoint.
    pub(super) mute: Vec<(usize, Range<Duration>)>,
    /// Periods in which nothing reaches an endpoint.
    pub(super) deaf: Vec<(usize, Range<Duration>)>,
    /// Periods in which an endpoint is suspended. Messages to it wait.
    pub(super) paused: Vec<(usize, Range<Duration>)>,
}

/// A message that has arrived.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) to: usize,
    pub(super) subject: String,
    pub(super) message: Vec<u8>,
}

/// The time of arrival, the message's number, its receiver, its subject and its body.
type Sent = (Duration, u64, usize, String, Vec<u8>);

/// The bus. Endpoints are identified by numbers.
#[derive(Debug)]
pub(super) struct MemoryBus {
    sampler: Sampler,
    faults: Faults,
    subscribers: HashMap<String, Vec<usize>>,
    /// Sorted by time of arrival, then by sending order.
    on_the_way: BinaryHeap<Reverse<Sent>>,
    sent: u64,
    /// The number of lost and of repeated messages.
    pub(super) lost: u64,
    pub(super) repeated: u64,
}

impl MemoryBus {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            sampler: Sampler::new(seed),
            faults,
            subscribers: HashMap::new(),
            on_the_way: BinaryHeap::new(),
            sent: 0,
            lost: 0,
            repeated: 0,
        }
    }

    /// Ends all faults. Delayed messages remain in transit.
    pub(super) fn heal(&mut self) {
        self.faults = Faults { delay: Duration::from_millis(5), ..Faults::default() };
    }

    pub(super) fn subscribe(&mut self, endpoint: usize, subject: String) {
        self.subscribers.entry(subject).or_default().push(endpoint);
    }

    pub(super) fn is_paused(&self, endpoint: usize, now: Duration) -> bool {
        is_hit(&self.faults.paused, endpoint, now)
    }

    pub(super) fn publish(&mut self, now: Duration, from: usize, subject: &str, message: &[u8]) {
        let meant = self.subscribers.iter().filter(|(pattern, _)| matches(pattern, subject));
        let mut receivers: Vec<_> = meant.flat_map(|(_, endpoints)| endpoints).copied().collect();
        receivers.sort_unstable();
        for to in receivers {
            let is_cut = is_hit(&self.faults.mute, from, now) || is_hit(&self.faults.deaf, to, now);
            let copies = match self.sampler.below(1_000) {
                chance if is_cut || chance < self.faults.loss => 0,
                chance if chance < self.faults.loss + self.faults.duplication => 2,
                _ => 1,
            };
            self.lost += u64::from(copies == 0);
            self.repeated += u64::from(copies == 2);
            for _ in 0..copies {
                let most = match self.sampler.below(1_000) < self.faults.late {
                    true => Duration::from_secs(5),
                    false => self.faults.delay,
                };
                let micros = u64::try_from(most.as_micros()).unwrap();
                let arrives = now + Duration::from_micros(self.sampler.below(micros + 1));
                self.sent += 1;
                let message = (arrives, self.sent, to, subject.to_owned(), message.to_vec());
                self.on_the_way.push(Reverse(message));
            }
        }
    }

    /// The next message that has arrived by now.
    pub(super) fn deliver(&mut self, now: Duration) -> Option<Delivery> {
        loop {
            let Reverse((arrives, ..)) = self.on_the_way.peek()?;
            if *arrives > now {
                return None;
            }
            let Reverse((_, number, to, subject, message)) = self.on_the_way.pop()?;
            let paused = self.faults.paused.iter();
            let end = paused.filter(|(endpoint, when)| *endpoint == to && when.contains(&now));
            match end.map(|(_, when)| when.end).max() {
                Some(end) => self.on_the_way.push(Reverse((end, number, to, subject, message))),
                None => return Some(Delivery { to, subject, message }),
            }
        }
    }
}

fn is_hit(faults: &[(usize, Range<Duration>)], endpoint: usize, now: Duration) -> bool {
    faults.iter().any(|(hit, when)| *hit == endpoint && when.contains(&now))
}
