//! Admission of clients, and those that have sent a hello but not yet acknowledged anything.
//!
//! A hello can be sent with a forged address, which would then receive the whole world. So the
//! server answers a hello with an empty section, and admits the client once it acknowledges that.
//! Until then the client takes no slot.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use worldwire_net::{Capacity, Permit, Permits, Refused};

/// The maximum number of clients that wait. Beyond that, the oldest is dropped.
pub(super) const MAX_WAITING: usize = 1_024;
/// How long an admitted client may take to acknowledge something after its address sent another
/// hello.
pub(super) const ALIVE_TIME: Duration = Duration::from_secs(3);
/// How often a waiting client is sent an empty section: datagrams and acknowledgements get lost.
const ASK_EVERY: Duration = Duration::from_millis(800);
/// How long a client may take to acknowledge something after its hello.
pub(super) const HELLO_TIME: Duration = Duration::from_secs(5);

/// The clients of a world.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Permits,
    /// The oldest first. Some may have stopped waiting.
    waiting: Mutex<VecDeque<Weak<AtomicBool>>>,
}

/// A client that waits for admission.
#[derive(Debug)]
pub(super) struct Waiting {
    since: Instant,
    asked: Instant,
    is_dropped: Arc<AtomicBool>,
}

impl Admission {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { permits: Permits::new(capacity), waiting: Mutex::default() }
    }

    /// Starts the wait of a new client.
    pub(super) fn wait(&self) -> Waiting {
        let is_dropped = Arc::new(AtomicBool::new(false));
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(Arc::downgrade(&is_dropped));
        if waiting.len() > MAX_WAITING {
            waiting.retain(|one| one.strong_count() > 0);
        }
        while waiting.len() > MAX_WAITING
            && let Some(oldest) = waiting.pop_front()
        {
            if let Some(oldest) = oldest.upgrade() {
                oldest.store(true, Ordering::Relaxed);
            }
        }
        let since = Instant::now();
        Waiting { since, asked: since, is_dropped }
    }

    /// Admits a client that has acknowledged something.
    pub(super) fn admit(&self, address: IpAddr) -> Result<Permit, Refused> {
        self.permits.acquire(address)
    }

    /// The number of admitted clients.
    pub(super) fn taken(&self) -> usize {
        self.permits.in_use()
    }
}

impl Waiting {
    /// Whether it is time to send the client another empty section.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.asked.elapsed() >= ASK_EVERY;
        if is_due {
            self.asked = Instant::now();
        }
        is_due
    }

    /// Whether the client has waited too long or was dropped for a newer one.
    pub(super) fn is_over(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed) || self.since.elapsed() >= HELLO_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_is_dropped_first_and_waits_are_short() {
        let admission = Admission::new(Capacity { total: 1, per_address: 1 });
        let gone = admission.wait();
        let oldest = admission.wait();
        drop(gone);
        let others: Vec<_> = (1..MAX_WAITING).map(|_| admission.wait()).collect();
        assert!(!oldest.is_over());
        let newest = admission.wait();
        assert!(oldest.is_over() && !newest.is_over());
        assert!(others.iter().all(|one| !one.is_over()));
        // Waiting clients take no slot.
        let slot = admission.admit([127, 0, 0, 1].into()).unwrap();
        assert!(admission.admit([127, 0, 0, 2].into()).is_err() && admission.taken() == 1);
        drop(slot);
        assert_eq!(admission.taken(), 0);
        tokio::time::advance(HELLO_TIME).await;
        assert!(newest.is_over());
    }
}
