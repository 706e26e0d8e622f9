//! Peers that may have forged their address, because they have not replied to anything yet.

use core::fmt;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The peers that have not yet shown that they receive what is sent to them. Beyond a given number,
/// the oldest is dropped, so that forged datagrams cannot occupy every connection.
pub struct WaitingList {
    most: usize,
    /// The oldest first. Some may have stopped waiting.
    places: Mutex<VecDeque<oneshot::Sender<()>>>,
}

/// A peer on the list, until it is dropped.
#[derive(Debug)]
pub struct Waiting(oneshot::Receiver<()>);

impl WaitingList {
    /// A list for at most this many peers.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, places: Mutex::default() }
    }

    /// Adds a peer.
    #[must_use]
    pub fn wait(&self) -> Waiting {
        let (place, dropped) = oneshot::channel();
        let mut places = self.places();
        places.push_back(place);
        if places.len() > self.most {
            places.retain(|place| !place.is_closed());
        }
        while places.len() > self.most {
            places.pop_front();
        }
        Waiting(dropped)
    }

    /// The number of peers that wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places().iter().filter(|place| !place.is_closed()).count()
    }

    fn places(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<()>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WaitingList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingList").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Waiting {
    /// Completes when the peer is dropped in favour of a newer one.
    pub async fn dropped(&mut self) {
        let _ = (&mut self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_is_dropped_first() {
        let list = WaitingList::new(100);
        let gone = list.wait();
        let mut oldest = list.wait();
        drop(gone);
        let mut others: Vec<_> = (1..100).map(|_| list.wait()).collect();
        assert_eq!(list.count(), 100);
        let empty = Err(oneshot::error::TryRecvError::Empty);
        assert_eq!(oldest.0.try_recv(), empty);
        let _newest = list.wait();
        oldest.dropped().await;
        assert_eq!(list.count(), 100);
        assert!(others.iter_mut().all(|one| one.0.try_recv() == empty));
    }
}
