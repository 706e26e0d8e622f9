//! Keep-alives: when to ask, and what no answer means.

use std::time::Duration;

use super::Life;

/// The heartbeat of one side. It does not beat before a session is established.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// When to ask next.
    due: Option<Duration>,
    /// Asked, and not answered yet.
    waiting: bool,
    life: Option<Life>,
}

/// What to do when time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Nothing,
    Ask,
    /// The last question was not answered before the next was due.
    Dead,
}

impl Heartbeat {
    /// Begins, if it has not begun: the first question is a period away.
    pub(super) fn begin(&mut self, now: Duration, every: Duration, life: Life) {
        self.life = Some(life);
        self.due.get_or_insert_with(|| now.saturating_add(every));
    }

    /// The answer came.
    pub(super) fn answered(&mut self) {
        self.waiting = false;
    }

    /// Anything came.
    pub(super) fn heard(&mut self) {
        if self.life == Some(Life::AnyTraffic) {
            self.waiting = false;
        }
    }

    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    pub(super) fn beat(&mut self, now: Duration, every: Duration) -> Beat {
        match self.due {
            Some(due) if due <= now => {
                if core::mem::replace(&mut self.waiting, true) {
                    return Beat::Dead;
                }
                // A driver that was late does not ask many times at once.
                let next = due.saturating_add(every);
                self.due = Some(if next > now { next } else { now.saturating_add(every) });
                Beat::Ask
            }
            _ => Beat::Nothing,
        }
    }
}
