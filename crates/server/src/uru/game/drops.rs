//! Log lines about messages that an age dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// The minimum interval between log lines that clients can provoke at will.
const EVERY: Duration = Duration::from_secs(60);
/// The maximum number of pairs of player and reason that are counted separately within that time.
/// Further pairs are counted together.
const MAX: usize = 256;

/// Messages dropped in the last minute. The first one for each player and reason is logged at once,
/// and the number of further ones at the end of the minute.
#[derive(Debug, Default)]
pub(super) struct Drops {
    since: Option<Instant>,
    /// The numbers of further messages, by player and reason.
    followed: BTreeMap<(u32, &'static str), u64>,
    /// The number of messages that are not counted separately.
    others: u64,
}

impl Drops {
    /// Counts a dropped message and returns whether to log it.
    pub(super) fn is_first(&mut self, age: &str, player: u32, why: &'static str) -> bool {
        if self.since.is_some_and(|since| since.elapsed() >= EVERY) {
            self.report(age);
        }
        self.since.get_or_insert_with(Instant::now);
        let has_room = self.followed.len() < MAX;
        match self.followed.get_mut(&(player, why)) {
            Some(count) => *count += 1,
            None if has_room => {
                self.followed.insert((player, why), 0);
                return true;
            }
            None => self.others += 1,
        }
        false
    }

    /// Logs the counts and resets them.
    pub(super) fn report(&mut self, age: &str) {
        self.since = None;
        for ((player, why), count) in std::mem::take(&mut self.followed) {
            if count > 0 {
                tracing::info!(age, player, why, count, "more messages dropped");
            }
        }
        let others = std::mem::take(&mut self.others);
        if others > 0 {
            tracing::info!(age, count = others, "more messages from other players dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn drops_are_counted_by_player_and_reason() {
        let mut drops = Drops::default();
        assert!(drops.is_first("city", 1, "not_theirs"));
        assert!(!drops.is_first("city", 1, "not_theirs"));
        assert!(drops.is_first("city", 1, "unsafe"));
        assert!(drops.is_first("city", 2, "not_theirs"));
        for _ in 0..500 {
            assert!(!drops.is_first("city", 2, "not_theirs"));
        }
        assert_eq!(drops.followed[&(2, "not_theirs")], 500);
        tokio::time::advance(EVERY).await;
        assert!(drops.is_first("city", 2, "not_theirs"));
        assert_eq!(drops.followed.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn many_players_cannot_fill_the_log() {
        let mut drops = Drops::default();
        let logged = (0..10_000).filter(|player| drops.is_first("city", *player, "limit"));
        assert_eq!(logged.count(), MAX);
        assert_eq!(drops.others, 10_000 - MAX as u64);
    }
}
