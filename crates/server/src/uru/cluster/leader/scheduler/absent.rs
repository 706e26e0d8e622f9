//! Processes that may still run ages although they have not joined this leader.

use std::time::Duration;

use super::{PATIENCE, Scheduler, Task};

/// A process that may still run ages although it has not joined this leader.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) node: String,
    /// The digest that identifies its folder. 0: unknown.
    pub(super) folder: u64,
    /// When it is certain to run them no longer.
    pub(super) until: Duration,
}

impl Scheduler {
    /// Called when a process of a node has joined with this folder. The lock on the folder proves
    /// that earlier processes using it have ended. Even so, they are given up only after the time
    /// allowed for silence, because machines that were cloned can seem to share a folder.
    pub(super) fn replaces(&mut self, now: Duration, node: &str, folder: u64) {
        for absent in self.absent.values_mut() {
            if absent.node == node && absent.folder == folder && folder != 0 {
                absent.until = absent.until.min(now + PATIENCE);
            }
        }
    }

    /// Reports processes that have not joined since this leader took over.
    pub(super) fn report_missing(&mut self, now: Duration) {
        let Some(until) = self.absent.values().map(|absent| absent.until).max() else { return };
        let nodes = self.absent.values().map(|absent| absent.node.clone()).collect();
        let ages = self.ages.values().filter(|age| self.absent.contains_key(&age.process)).count();
        self.tasks.push_back(Task::Missing { nodes, ages, after: until.saturating_sub(now) });
    }
}
