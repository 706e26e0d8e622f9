//! Limits how often one place in the rules reports problems.

use core::time::Duration;

/// When a place last reported a problem. Within a minute, further ones are only counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProblemRate {
    last: Option<Duration>,
    /// The number of problems not reported since then.
    more: u64,
}

/// How long a place is silent after reporting a problem.
const QUIET: Duration = Duration::from_secs(60);

impl ProblemRate {
    /// Whether a problem may be reported now and, if so, the text to append to the report: the
    /// number of problems that were only counted since the last one.
    pub(crate) fn admit(&mut self, now: Duration) -> Option<String> {
        if self.last.is_some_and(|last| now.saturating_sub(last) < QUIET) {
            self.more += 1;
            return None;
        }
        self.last = Some(now);
        match core::mem::take(&mut self.more) {
            0 => Some(String::new()),
            more => Some(format!(" ({more} more times in the last minute)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reports_once_a_minute() {
        let mut rate = ProblemRate::default();
        let mut admit = |seconds| rate.admit(Duration::from_secs(seconds));
        assert_eq!(admit(5).as_deref(), Some(""));
        assert_eq!(admit(6), None);
        assert_eq!(admit(64), None);
        assert_eq!(admit(65).as_deref(), Some(" (2 more times in the last minute)"));
        assert_eq!(admit(200).as_deref(), Some(""));
    }
}
