//! How fast a player may speak in an age.
//!
//! Whoever floods an age waits, and nobody else does: the connection of the player reads no more until
//! what it said so far is paid off, by bytes, by messages, and by the time that the age took for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Messages of one player that an age has not handled yet.
const MAX_UNDER_WAY: usize = 16;
/// How many messages a second a player may send for long. Clients send a few dozen.
const MESSAGES_PER_SECOND: u32 = 400;
/// How long a player may speak as fast as it likes before that: as much as is paid off meanwhile.
const CREDIT: Duration = Duration::from_secs(32);
/// How many times as long as the age needed for a message its sender waits.
const EFFORT: u32 = 10;
/// What costs an age less than this is free: nobody could tell it from chance.
const LEAST_EFFORT: Duration = Duration::from_micros(200);
/// How long a connection waits at once: it has to notice when the shard stops.
const LONGEST: Duration = Duration::from_secs(5);

/// What an age has to do for a player: shared by the age and the connection.
#[derive(Debug)]
pub(super) struct Effort {
    turns: Arc<Semaphore>,
    /// How long the age has worked, in nanoseconds, since the connection last asked.
    nanos: AtomicU64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(MAX_UNDER_WAY)), nanos: AtomicU64::new(0) }
    }
}

impl Effort {
    /// Waits until few enough messages of the player are under way to the age.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// The age has worked for so long.
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

/// When what a player has said is paid off.
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

    /// A message of so many bytes comes: how long it has to wait.
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
    async fn who_floods_waits() {
        let effort = Effort::default();
        let mut pace = Pace::new(64 << 10);
        // As much as a client ever says at once.
        for _ in 0..200 {
            assert!(pace.wait(10_000, &effort).is_zero());
        }
        let begun = Instant::now();
        for _ in 0..100 {
            tokio::time::sleep(pace.wait(10_000, &effort)).await;
        }
        let rate = 1_000_000.0 / begun.elapsed().as_secs_f64();
        assert!((60_000.0..80_000.0).contains(&rate), "{rate}");
        // Who has been silent may speak again.
        tokio::time::sleep(CREDIT).await;
        assert!(pace.wait(10_000, &effort).is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn many_small_messages_are_a_flood_too() {
        let (effort, mut pace) = (Effort::default(), Pace::new(u32::MAX));
        let begun = Instant::now();
        for _ in 0..20_000 {
            tokio::time::sleep(pace.wait(20, &effort)).await;
        }
        // 12,800 at once, the others 400 a second.
        assert!((17..19).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn who_makes_an_age_work_waits_ten_times_as_long() {
        let (effort, mut pace) = (Effort::default(), Pace::new(64 << 10));
        effort.add(Duration::from_micros(10));
        assert!(pace.wait(100, &effort).is_zero());
        effort.add(Duration::from_millis(30));
        assert_eq!(pace.wait(100, &effort), Duration::from_millis(300));
        effort.add(Duration::from_secs(30));
        assert_eq!(pace.wait(100, &effort), LONGEST);
    }

    #[tokio::test]
    async fn an_age_has_few_messages_of_one_player_to_do() {
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
