//! Decides which failures of a database are worth logging.

use std::time::Duration;

use tokio::time::Instant;

use super::StoreError;

/// How long after a log line a different reason is worth another line. While a database restarts,
/// each failure has a different reason.
const SETTLED_AFTER: Duration = Duration::from_secs(5);

/// The failures of a database since it last answered.
#[derive(Debug, Default)]
pub(crate) struct Outage(Option<(Instant, String)>);

impl Outage {
    /// Records a failure. Returns whether it must be logged: whether it is the first one, or the
    /// reason has changed for good, for example because a database restarted with a different
    /// password.
    pub(crate) fn is_news(&mut self, error: &StoreError) -> bool {
        let (reason, now) = (error.to_string(), Instant::now());
        let is_known = self.0.as_ref().is_some_and(|(logged, known)| {
            *known == reason || now.duration_since(*logged) < SETTLED_AFTER
        });
        if !is_known {
            self.0 = Some((now, reason));
        }
        !is_known
    }

    /// Ends the outage. Returns whether there was one.
    pub(crate) fn end(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn refused(problem: &str) -> StoreError {
        StoreError::Connect { place: "db:5432".to_owned(), problem: problem.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_logged_once() {
        let mut outage = Outage::default();
        for _ in 0..2 {
            assert!(!outage.end());
            assert!(outage.is_news(&StoreError::Timeout));
            for problem in ["connection refused", "the database system is starting up"] {
                advance(Duration::from_secs(1)).await;
                assert!(!outage.is_news(&refused(problem)));
            }
            advance(SETTLED_AFTER).await;
            assert!(!outage.is_news(&StoreError::Timeout));
            assert!(outage.is_news(&refused("password authentication failed")));
            advance(SETTLED_AFTER).await;
            assert!(!outage.is_news(&refused("password authentication failed")));
            assert!(outage.end());
        }
    }
}
