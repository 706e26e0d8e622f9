//! Who waits to be let in: clients that said hello, and have not shown that they hear.
//!
//! Anybody can send a hello in another's name, who would then be sent a world. So a hello is only
//! answered, and an empty section is sent: who acknowledges it is let in. Until then it takes none
//! of the places of clients.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use worldwire_net::{Capacity, Refused, Seat, Seats};

/// How many wait at most; one more, and the oldest waits no longer.
pub(super) const MAX_WAITING: usize = 1_024;
/// How long a client that is in may take to show that it is still there, once its address says
/// hello again.
pub(super) const ALIVE_TIME: Duration = Duration::from_secs(3);
/// How often a client that waits is asked: datagrams get lost, and so do those that answer.
const ASK_EVERY: Duration = Duration::from_millis(800);
/// How long a client may take to show that it hears.
pub(super) const HELLO_TIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Door {
    seats: Seats,
    /// The oldest first; some may wait no more.
    waiting: Mutex<VecDeque<Weak<AtomicBool>>>,
}

/// A client that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    since: Instant,
    asked: Instant,
    is_sent_away: Arc<AtomicBool>,
}

impl Door {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { seats: Seats::new(capacity), waiting: Mutex::default() }
    }

    /// A client begins to wait.
    pub(super) fn wait(&self) -> Waiting {
        let is_sent_away = Arc::new(AtomicBool::new(false));
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(Arc::downgrade(&is_sent_away));
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
        Waiting { since, asked: since, is_sent_away }
    }

    /// A client has shown that it hears.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn let_in(&self, address: IpAddr) -> Result<Seat, Refused> {
        self.seats.take(address)
    }

    /// How many are in.
    pub(super) fn taken(&self) -> usize {
        self.seats.taken()
    }
}

impl Waiting {
    /// Whether it is time to ask the client again whether it hears.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.asked.elapsed() >= ASK_EVERY;
        if is_due {
            self.asked = Instant::now();
        }
        is_due
    }

    /// Whether it has waited for too long, or others need its place.
    pub(super) fn is_over(&self) -> bool {
        self.is_sent_away.load(Ordering::Relaxed) || self.since.elapsed() >= HELLO_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes_first_and_nobody_waits_for_long() {
        let door = Door::new(Capacity { total: 1, per_address: 1 });
        let gone = door.wait();
        let oldest = door.wait();
        drop(gone);
        let others: Vec<_> = (1..MAX_WAITING).map(|_| door.wait()).collect();
        assert!(!oldest.is_over());
        let newest = door.wait();
        assert!(oldest.is_over() && !newest.is_over());
        assert!(others.iter().all(|one| !one.is_over()));
        // None of them takes a place.
        let seat = door.let_in([127, 0, 0, 1].into()).unwrap();
        assert!(door.let_in([127, 0, 0, 2].into()).is_err() && door.taken() == 1);
        drop(seat);
        assert_eq!(door.taken(), 0);
        tokio::time::advance(HELLO_TIME).await;
        assert!(newest.is_over());
    }
}
