//! Processes that may still run ages, although they have not joined.

use std::time::Duration;

use super::{Scheduler, Task};

/// A process that may still run ages, although it has not joined.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) node: String,
    /// When it no longer runs them.
    pub(super) until: Duration,
}

impl Scheduler {
    /// Reports processes that have not joined since this leader began.
    pub(super) fn report_missing(&mut self, now: Duration) {
        let Some(until) = self.absent.values().map(|absent| absent.until).max() else { return };
        let nodes = self.absent.values().map(|absent| absent.node.clone()).collect();
        let ages = self.ages.values().filter(|age| self.absent.contains_key(&age.process)).count();
        self.tasks.push_back(Task::Missing { nodes, ages, after: until.saturating_sub(now) });
    }
}
