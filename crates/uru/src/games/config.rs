//! The types of games that a game manager serves, and its bounds.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::collections::BTreeSet;

use super::GameType;
use crate::message::Caps;

/// The configuration of a game manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GamesConfig {
    /// The types of games that are served. Requests for other types are refused. Default: none.
    pub games: BTreeSet<GameType>,
    /// Whether another member becomes the owner of a VarSync game when its owner leaves. Otherwise
    /// it has no owner, as on MOSS. Default: yes.
    pub var_sync_handoff: bool,
    /// Bounds on the data that the manager stores for players.
    pub bounds: GameBounds,
}

impl GamesConfig {
    /// A configuration for these types, with the default bounds.
    #[must_use]
    pub fn serving(games: impl IntoIterator<Item = GameType>) -> Self {
        Self { games: games.into_iter().collect(), ..Self::default() }
    }

    /// The bits that announce the served types to clients in `ServerCaps`, and the bit that every
    /// server sets.
    #[must_use]
    pub fn caps(&self) -> Vec<u32> {
        let games = self.games.iter().map(|game| game.caps_bit());
        [Caps::SCORE_LEADER_BOARDS].into_iter().chain(games).collect()
    }
}

impl Default for GamesConfig {
    fn default() -> Self {
        Self { games: BTreeSet::new(), var_sync_handoff: true, bounds: GameBounds::default() }
    }
}

/// Bounds on the data that a manager stores for players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameBounds {
    /// Tables for one type of game in an age. Empty tables are removed to make room for new ones.
    /// Default: 16.
    pub tables: usize,
    /// Members of a game. Default: 256.
    pub members: usize,
    /// Marker games that a player can have open, and other games without a table that a player can
    /// be a member of. Default: 8 for each kind.
    pub own_games: usize,
    /// Variables of a VarSync game. Default: 256.
    pub variables: usize,
    /// A marker game's answers that are waiting for its store. Default: 512.
    pub waiting: usize,
    /// The number of messages that a player can send in a burst. Default: 400.
    pub burst: u32,
    /// The time after which a player can send one more message. Default: 10 ms.
    pub interval: Duration,
}

impl Default for GameBounds {
    fn default() -> Self {
        Self {
            tables: 16,
            members: 256,
            own_games: 8,
            variables: 256,
            waiting: 512,
            burst: 400,
            interval: Duration::from_millis(10),
        }
    }
}

/// The counter of game IDs that all ages of a shard share.
///
/// Some clients never forget a game, so IDs are not reused.
#[derive(Debug)]
pub struct GameIds(AtomicU32);

impl GameIds {
    /// Starts counting at a random number, so that a restarted server does not repeat IDs.
    #[must_use]
    pub fn new(random: u32) -> Self {
        Self(AtomicU32::new((random & 0x3fff_ffff).max(1)))
    }

    /// An unused ID; never 0, which stands for the manager itself.
    pub fn take(&self) -> u32 {
        loop {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => {}
                id => return id,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_05_ids_are_never_zero() {
        let ids = GameIds(AtomicU32::new(u32::MAX));
        assert_eq!([ids.take(), ids.take(), ids.take()], [u32::MAX, 1, 2]);
        assert_eq!(GameIds::new(0).take(), 1);
        assert!(GameIds::new(u32::MAX).take() < 1 << 30);
    }

    #[test]
    fn g_80_caps_announce_what_is_served() {
        assert_eq!(GamesConfig::default().caps(), [0]);
        let all = GamesConfig::serving(GameType::ALL);
        assert_eq!(all.caps(), [0, 1, 2, 3, 4, 5, 6]);
        let openuru = [GameType::BlueSpiral, GameType::Heek, GameType::Marker, GameType::VarSync];
        let caps = GamesConfig::serving(openuru).caps();
        assert_eq!(Caps::new(&caps).bits.0, [0x5b]);
        assert_eq!(Caps::compatible(&caps).bits.0, [0x5b]);
    }
}
