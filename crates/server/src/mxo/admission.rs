//! Admits clients, and limits those that have sent a hello but not yet acknowledged anything.
//!
//! A hello can carry a forged sender address, and that address would then receive the whole world.
//! Therefore, the connection answers a hello with an empty section, and the server admits the
//! client only once it acknowledges that section. Until then, the client takes no slot.

use std::net::IpAddr;
use std::time::Duration;

use worldwire_net::{Capacity, Permit, Permits, Refused, Waiting, WaitingList};

/// The maximum number of clients that wait. If another arrives, the oldest is dropped.
pub(super) const MAX_WAITING: usize = 1_024;
/// The time within which an admitted client must acknowledge something after its address sent
/// another hello.
pub(super) const ALIVE_TIME: Duration = Duration::from_secs(3);

/// The clients of a world.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Permits,
    waiting: WaitingList,
}

impl Admission {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { permits: Permits::new(capacity), waiting: WaitingList::new(MAX_WAITING) }
    }

    /// Adds a new client to those that wait.
    pub(super) fn wait(&self) -> Waiting {
        self.waiting.wait()
    }

    /// The number of clients that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.count()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_clients_take_no_slot() {
        let admission = Admission::new(Capacity { total: 1, per_address: 1 });
        let _waiting = admission.wait();
        let slot = admission.admit([127, 0, 0, 1].into()).unwrap();
        assert!(admission.admit([127, 0, 0, 2].into()).is_err() && admission.taken() == 1);
        drop(slot);
        assert_eq!((admission.taken(), admission.waiting()), (0, 1));
    }
}
