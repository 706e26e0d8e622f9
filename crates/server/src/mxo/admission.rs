//! Admission of clients, and those that have sent a hello but not yet acknowledged anything.
//!
//! A hello can be sent with a forged address, which would then receive the whole world. So the
//! connection answers a hello with an empty section, and the server admits the client once it
//! acknowledges that. Until then the client takes no slot.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use worldwire_net::{Capacity, Permit, Permits, Refused};

/// The maximum number of clients that wait. Beyond that, the oldest is dropped.
pub(super) const MAX_WAITING: usize = 1_024;
/// How long an admitted client may take to acknowledge something after its address sent another
/// hello.
pub(super) const ALIVE_TIME: Duration = Duration::from_secs(3);

/// The clients of a world.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Permits,
    /// The oldest first. Some may have stopped waiting.
    waiting: Mutex<VecDeque<oneshot::Sender<()>>>,
}

/// A client that waits for admission.
#[derive(Debug)]
pub(super) struct Waiting(oneshot::Receiver<()>);

impl Admission {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { permits: Permits::new(capacity), waiting: Mutex::default() }
    }

    /// Starts the wait of a new client.
    pub(super) fn wait(&self) -> Waiting {
        let (place, dropped) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(place);
        if waiting.len() > MAX_WAITING {
            waiting.retain(|place| !place.is_closed());
        }
        while waiting.len() > MAX_WAITING {
            waiting.pop_front();
        }
        Waiting(dropped)
    }

    /// How many clients wait.
    pub(super) fn waiting(&self) -> usize {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().filter(|place| !place.is_closed()).count()
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
    /// Completes when the client is dropped for a newer one.
    pub(super) async fn dropped(&mut self) {
        let _ = (&mut self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_is_dropped_first() {
        let admission = Admission::new(Capacity { total: 1, per_address: 1 });
        let gone = admission.wait();
        let mut oldest = admission.wait();
        drop(gone);
        let mut others: Vec<_> = (1..MAX_WAITING).map(|_| admission.wait()).collect();
        assert_eq!(admission.waiting(), MAX_WAITING);
        assert!(
            oldest.0.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty)
        );
        let _newest = admission.wait();
        oldest.dropped().await;
        assert_eq!(admission.waiting(), MAX_WAITING);
        let empty = Err(oneshot::error::TryRecvError::Empty);
        assert!(others.iter_mut().all(|one| one.0.try_recv() == empty));
        // Waiting clients take no slot.
        let slot = admission.admit([127, 0, 0, 1].into()).unwrap();
        assert!(admission.admit([127, 0, 0, 2].into()).is_err() && admission.taken() == 1);
        drop(slot);
        assert_eq!(admission.taken(), 0);
    }
}
