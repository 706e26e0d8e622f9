//! Detects whether the leader, rather than its nodes, is cut off from the bus. Its lease then stays
//! valid, so no standby would take over on its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::store::lease::SharedStore;
use crate::uru::Handover;

/// How long all nodes must be silent. By then every node's membership has ended, so no node has
/// sessions or ages that a handover could end.
const SILENCE: Duration = Duration::from_secs(3);
/// The longest normal interval between two checks. If it is exceeded, this process was suspended
/// and may have messages that it has not read yet.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The number of nodes needed for a verdict: a single silent node has probably failed itself.
const MIN_NODES: usize = 2;

/// Tracks when nodes were last heard from.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    looked: Duration,
    /// When the current run of checks without long pauses began.
    awake: Duration,
    /// When any node was last heard from, and how many members there were at that time.
    heard: Duration,
    members: usize,
    is_isolated: bool,
}

impl Isolation {
    /// Returns whether this process has just become isolated. `heard` is when each member was last
    /// heard from.
    pub(super) fn begins(
        &mut self,
        now: Duration,
        heard: impl Iterator<Item = Duration> + Clone,
    ) -> bool {
        if now.saturating_sub(self.looked) > LONGEST_PAUSE {
            self.awake = now;
        }
        self.looked = now;
        if let Some(last) = heard.clone().max().filter(|last| *last > self.heard) {
            (self.heard, self.members) = (last, heard.count());
        }
        let silent = now.saturating_sub(self.heard.max(self.awake));
        let is_isolated = self.members >= MIN_NODES && silent >= SILENCE;
        let was_isolated = std::mem::replace(&mut self.is_isolated, is_isolated);
        is_isolated && !was_isolated
    }
}

/// The standbys that can lead instead of this process.
#[derive(Clone)]
pub(in crate::uru) struct Successors {
    store: Arc<dyn SharedStore>,
    handover: Handover,
}

impl fmt::Debug for Successors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Successors").finish_non_exhaustive()
    }
}

impl Successors {
    /// The standbys that follow a shared database.
    pub(in crate::uru) fn new(store: Arc<dyn SharedStore>, handover: Handover) -> Self {
        Self { store, handover }
    }

    /// Hands over to one of them, if there is one: it may be able to reach the bus.
    pub(super) async fn take_over(self) {
        match self.store.standbys().await {
            Ok(standbys) if standbys.is_empty() => {
                warn!("no node has been heard from for {SILENCE:?}, and there is no standby");
            }
            Ok(_) => {
                warn!("no node has been heard from for {SILENCE:?}; handing over to a standby");
                self.handover.request();
            }
            Err(error) => {
                warn!(%error, "no node has been heard from for {SILENCE:?}; cannot look for a standby");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// Checks four times a second. Returns the times at which isolation began.
    fn looks(
        isolation: &mut Isolation,
        times: Range<u64>,
        heard: impl Fn(u64) -> Vec<u64>,
    ) -> Vec<u64> {
        let begins = |now: &u64| {
            let heard = heard(*now);
            let heard = heard.iter().copied().map(Duration::from_millis);
            isolation.begins(Duration::from_millis(*now), heard)
        };
        times.step_by(250).filter(begins).collect()
    }

    #[test]
    fn silence_of_all_nodes_is_isolation() {
        let mut isolation = Isolation::default();
        let until = |now: u64, last: u64| now.min(last);
        let begins = looks(&mut isolation, 0..9_000, |now| {
            // The first node is given up earlier.
            let nodes = vec![until(now, 500), until(now, 1_250)];
            nodes.into_iter().filter(|heard| now - heard < 3_500).collect()
        });
        assert_eq!(begins, [4_250], "once");
        let begins = looks(&mut isolation, 9_000..20_000, |now| vec![1_000, until(now, 10_000)]);
        assert_eq!(begins, [13_000], "again");
    }

    #[test]
    fn silence_of_some_nodes_is_not() {
        let mut isolation = Isolation::default();
        assert!(looks(&mut isolation, 0..9_000, |now| vec![0, now, 0]).is_empty());
        // The others have been given up.
        assert!(looks(&mut isolation, 9_000..20_000, |_| vec![9_000]).is_empty());
        assert!(looks(&mut isolation, 20_000..30_000, |_| vec![]).is_empty());
    }

    #[test]
    fn a_pause_of_this_process_is_not() {
        let mut isolation = Isolation::default();
        assert!(looks(&mut isolation, 0..1_250, |now| vec![now, now]).is_empty());
        let begins = looks(&mut isolation, 9_000..13_000, |_| vec![1_000, 1_000]);
        assert_eq!(begins, [12_000], "nothing has arrived since");
    }
}
