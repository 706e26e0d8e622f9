//! A bad network for datagrams, without sockets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use worldwire_core::Sampler;
use worldwire_net::lossy::Conditions;
use worldwire_net::udp::Datagrams;

/// A datagram in transit, ordered by arrival.
type InTransit = Reverse<(Instant, u64, Vec<u8>)>;

/// One direction of a link.
#[derive(Debug)]
struct Direction {
    conditions: Conditions,
    state: Mutex<(Sampler, u64, BinaryHeap<InTransit>)>,
    changed: Notify,
    is_cut: AtomicBool,
}

impl Direction {
    fn new(conditions: Conditions, seed: u64) -> Arc<Self> {
        let state = Mutex::new((Sampler::new(seed), 0, BinaryHeap::new()));
        Arc::new(Self { conditions, state, changed: Notify::new(), is_cut: AtomicBool::new(false) })
    }

    fn carry(&self, datagram: &[u8], delay: Duration) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        let number = state.1;
        state.2.push(Reverse((Instant::now() + delay, number, datagram.to_vec())));
        self.changed.notify_one();
    }

    fn chance(&self, of_thousand: u64) -> bool {
        self.state.lock().unwrap().0.below(1_000) < of_thousand
    }
}

/// One end of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkEnd {
    to: Arc<Direction>,
    from: Arc<Direction>,
}

/// A link with these conditions in both directions.
pub(crate) fn link(conditions: Conditions) -> (LinkEnd, LinkEnd) {
    let [one, other] =
        [0, 1].map(|turn| Direction::new(conditions, conditions.seed.wrapping_mul(2) + turn));
    let near = LinkEnd { to: Arc::clone(&one), from: Arc::clone(&other) };
    (near, LinkEnd { to: other, from: one })
}

impl LinkEnd {
    /// Loses everything from now on.
    pub(crate) fn cut(&self) {
        self.to.is_cut.store(true, Ordering::Relaxed);
        self.from.is_cut.store(true, Ordering::Relaxed);
    }

    /// Delivers a datagram to this end again.
    pub(crate) fn put_back(&self, datagram: &[u8]) {
        self.from.carry(datagram, Duration::ZERO);
    }
}

impl Datagrams for LinkEnd {
    async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let Conditions { loss, duplication, reordering, delay, .. } = self.to.conditions;
        if self.to.is_cut.load(Ordering::Relaxed) || self.to.chance(loss) {
            return Ok(());
        }
        let copies = 1 + u32::from(self.to.chance(duplication));
        for _ in 0..copies {
            let late = if self.to.chance(reordering) { 4 * delay } else { Duration::ZERO };
            self.to.carry(datagram, delay + late);
        }
        Ok(())
    }

    async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let next = {
                let mut state = self.from.state.lock().unwrap();
                let next = state.2.peek().map(|Reverse((at, ..))| *at);
                if next.is_some_and(|at| at <= Instant::now())
                    && let Some(Reverse((.., datagram))) = state.2.pop()
                {
                    buffer[..datagram.len()].copy_from_slice(&datagram);
                    return Ok(datagram.len());
                }
                next
            };
            tokio::select! {
                () = self.from.changed.notified() => {}
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }
}
