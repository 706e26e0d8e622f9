//! What the log says of messages that an age dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use worldwire_uru::age::DropKind;

/// How often is logged what a client can make happen often.
const EVERY: Duration = Duration::from_secs(60);
/// Players and reasons that are told apart within that time; the rest is counted together.
const MAX: usize = 256;

/// The messages that were dropped in the last minute: the first of each player for each reason is
/// logged at once, how many followed when the minute is over.
#[derive(Debug, Default)]
pub(super) struct Drops {
    since: Option<Instant>,
    /// By player and reason: how many followed the first.
    followed: BTreeMap<(u32, &'static str), u64>,
    /// Of others.
    others: u64,
}

impl Drops {
    /// A message was dropped; whether to log it.
    pub(super) fn is_first(&mut self, age: &str, player: u32, why: DropKind) -> bool {
        if self.since.is_some_and(|since| since.elapsed() >= EVERY) {
            self.report(age);
        }
        self.since.get_or_insert_with(Instant::now);
        let has_room = self.followed.len() < MAX;
        match self.followed.get_mut(&(player, why.name())) {
            Some(count) => *count += 1,
            None if has_room => {
                self.followed.insert((player, why.name()), 0);
                return true;
            }
            None => self.others += 1,
        }
        false
    }

    /// Logs how many there were, and begins anew.
    pub(super) fn report(&mut self, age: &str) {
        self.since = None;
        for ((player, why), count) in std::mem::take(&mut self.followed) {
            if count > 0 {
                tracing::info!(age, player, why, count, "more messages were dropped");
            }
        }
        let others = std::mem::take(&mut self.others);
        if others > 0 {
            tracing::info!(age, count = others, "more messages of others were dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_hides_behind_the_first_one() {
        let mut drops = Drops::default();
        assert!(drops.is_first("city", 1, DropKind::NotOwner));
        assert!(!drops.is_first("city", 1, DropKind::NotOwner));
        assert!(drops.is_first("city", 1, DropKind::Unsafe));
        assert!(drops.is_first("city", 2, DropKind::NotOwner));
        for _ in 0..500 {
            assert!(!drops.is_first("city", 2, DropKind::NotOwner));
        }
        assert_eq!(drops.followed[&(2, "not_theirs")], 500);
        tokio::time::advance(EVERY).await;
        assert!(drops.is_first("city", 2, DropKind::NotOwner));
        assert_eq!(drops.followed.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_does_not_fill_the_log() {
        let mut drops = Drops::default();
        let logged = (0..10_000).filter(|player| drops.is_first("city", *player, DropKind::Limit));
        assert_eq!(logged.count(), MAX);
        assert_eq!(drops.others, 10_000 - MAX as u64);
    }
}
