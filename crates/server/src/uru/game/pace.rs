//! Rate limits for players in ages.
//!
//! If a player floods an age, only that player has to wait: its connection stops reading until
//! earlier messages are paid off. Messages cost by their bytes, by their number, and by the time
//! that the age spent on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The maximum number of a player's messages that an age has not handled yet.
const MAX_UNDER_WAY: usize = 16;
/// The sustained rate at which a player may send messages. Clients send a few dozen per second.
const MESSAGES_PER_SECOND: u32 = 400;
/// The size of the burst before limits apply, as the time that it takes to pay it off.
const CREDIT: Duration = Duration::from_secs(32);
/// How long the sender waits, as a multiple of the time that the age spent on the message.
const EFFORT: u32 = 10;
/// Messages that take an age less time than this are free: measuring them would only yield noise.
const LEAST_EFFORT: Duration = Duration::from_micros(200);
/// The maximum duration of a single wait, because connections must notice when the shard stops.
const LONGEST: Duration = Duration::from_secs(5);

/// The work that a player causes in an age, shared by the age and the connection.
#[derive(Debug)]
pub(super) struct Effort {
    turns: Arc<Semaphore>,
    /// How long the age has worked, in nanoseconds, since the connection last checked.
    nanos: AtomicU64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(MAX_UNDER_WAY)), nanos: AtomicU64::new(0) }
    }
}

impl Effort {
    /// Waits until the number of the player's messages that the age has not handled is below the
    /// maximum.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Adds time that the age has worked.
    pub(super) fn add(&self, time: Duration) {
        if time >= LEAST_EFFORT {
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Duration {
        Duration::from_nanos(self.nanos.swap(0, Ordering::Relaxed))
    }
}

/// When a player's messages so far will be paid off.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u32,
    bytes: Instant,
    messages: Instant,
    effort: Instant,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u32) -> Self {
        let now = Instant::now();
        let bytes_per_second = bytes_per_second.max(1);
        Self { bytes_per_second, bytes: now, messages: now, effort: now }
    }

    /// How long a message of this size must wait.
    pub(super) fn wait(&mut self, bytes: usize, effort: &Effort) -> Duration {
        let now = Instant::now();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let cost = Duration::from_secs(1) * bytes / self.bytes_per_second;
        let pay = |until: &mut Instant, cost: Duration| {
            *until = (*until).max(now) + cost;
            *until - now
        };
        let bytes = pay(&mut self.bytes, cost).saturating_sub(CREDIT);
        let message = Duration::from_secs(1) / MESSAGES_PER_SECOND;
        let messages = pay(&mut self.messages, message).saturating_sub(CREDIT);
        let effort = pay(&mut self.effort, effort.take() * EFFORT);
        bytes.max(messages).max(effort).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn floods_are_slowed_down() {
        let effort = Effort::default();
        let mut pace = Pace::new(64 << 10);
        // The largest burst that a client sends.
        for _ in 0..200 {
            assert!(pace.wait(10_000, &effort).is_zero());
        }
        let begun = Instant::now();
        for _ in 0..100 {
            tokio::time::sleep(pace.wait(10_000, &effort)).await;
        }
        let rate = 1_000_000.0 / begun.elapsed().as_secs_f64();
        assert!((60_000.0..80_000.0).contains(&rate), "{rate}");
        // After a pause, another burst is allowed.
        tokio::time::sleep(CREDIT).await;
        assert!(pace.wait(10_000, &effort).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn many_small_messages_are_slowed_down() {
        let (effort, mut pace) = (Effort::default(), Pace::new(u32::MAX));
        let begun = Instant::now();
        for _ in 0..20_000 {
            tokio::time::sleep(pace.wait(20, &effort)).await;
        }
        // A burst of 12,800, then 400 per second.
        assert!((17..19).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn senders_wait_ten_times_as_long_as_the_age_worked() {
        let (effort, mut pace) = (Effort::default(), Pace::new(64 << 10));
        effort.add(Duration::from_micros(10));
        assert!(pace.wait(100, &effort).is_zero());
        effort.add(Duration::from_millis(30));
        assert_eq!(pace.wait(100, &effort), Duration::from_millis(300));
        effort.add(Duration::from_secs(30));
        assert_eq!(pace.wait(100, &effort), LONGEST);
    }

    #[tokio::test]
    async fn unhandled_messages_per_player_are_limited() {
        let effort = Effort::default();
        let mut turns = Vec::new();
        for _ in 0..MAX_UNDER_WAY {
            turns.extend(effort.turn().await);
        }
        assert!(tokio::time::timeout(Duration::from_millis(5), effort.turn()).await.is_err());
        turns.pop();
        assert!(effort.turn().await.is_some());
    }
}
