//! Players by number and by the auth session to which they belong.

use std::collections::{BTreeSet, HashMap};

/// A value that belongs to a player of an auth session.
pub(in crate::uru) trait OfSession {
    /// The number of the auth session.
    fn session(&self) -> u64;
}

/// One value per player.
#[derive(Debug)]
pub(in crate::uru) struct BySession<V> {
    by_player: HashMap<u32, V>,
    /// Sessions and their players.
    players: BTreeSet<(u64, u32)>,
}

impl<V> Default for BySession<V> {
    fn default() -> Self {
        Self { by_player: HashMap::new(), players: BTreeSet::new() }
    }
}

impl<V: OfSession> BySession<V> {
    /// Adds or replaces a player and returns the old value.
    pub(in crate::uru) fn insert(&mut self, player: u32, value: V) -> Option<V> {
        let session = value.session();
        let old = self.by_player.insert(player, value);
        if let Some(old) = &old {
            self.players.remove(&(old.session(), player));
        }
        self.players.insert((session, player));
        old
    }

    pub(in crate::uru) fn remove(&mut self, player: u32) -> Option<V> {
        let old = self.by_player.remove(&player)?;
        self.players.remove(&(old.session(), player));
        Some(old)
    }

    /// Removes all players of a session.
    pub(in crate::uru) fn remove_session(&mut self, session: u64) {
        let players: Vec<_> = self.players_of(session).collect();
        for player in players {
            self.remove(player);
        }
    }

    pub(in crate::uru) fn get(&self, player: u32) -> Option<&V> {
        self.by_player.get(&player)
    }

    /// The players of a session, by number.
    pub(in crate::uru) fn of_session(&self, session: u64) -> impl Iterator<Item = (u32, &V)> {
        self.players_of(session).filter_map(|player| Some((player, self.get(player)?)))
    }

    pub(in crate::uru) fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        self.by_player.iter().map(|(player, value)| (*player, value))
    }

    /// Changes values, but not their sessions.
    pub(in crate::uru) fn change(&mut self, change: impl FnMut(&mut V)) {
        self.by_player.values_mut().for_each(change);
    }

    pub(in crate::uru) fn len(&self) -> usize {
        self.by_player.len()
    }

    fn players_of(&self, session: u64) -> impl Iterator<Item = u32> {
        let all = (session, 0)..=(session, u32::MAX);
        self.players.range(all).map(|(_, player)| *player)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl OfSession for u64 {
        fn session(&self) -> u64 {
            *self
        }
    }

    proptest! {
        /// A session has exactly the players that a search of all players finds.
        #[test]
        fn players_are_found_by_session(
            steps in proptest::collection::vec((0..3_u8, 0..8_u32, 0..4_u64), 0..60),
        ) {
            let mut players = BySession::default();
            let mut model: HashMap<u32, u64> = HashMap::new();
            for (step, player, session) in steps {
                match step {
                    0 => prop_assert_eq!(players.insert(player, session), model.insert(player, session)),
                    1 => prop_assert_eq!(players.remove(player), model.remove(&player)),
                    _ => {
                        players.remove_session(session);
                        model.retain(|_, other| *other != session);
                    }
                }
                prop_assert_eq!(players.len(), model.len());
                for session in 0..4 {
                    let mut found: Vec<_> =
                        model.iter().filter(|(_, it)| **it == session).map(|(it, _)| *it).collect();
                    found.sort_unstable();
                    let of: Vec<_> = players.of_session(session).map(|(player, _)| player).collect();
                    prop_assert_eq!(of, found);
                }
            }
        }
    }

    /// No matter how many players there are, only those of the session are examined.
    #[test]
    fn other_sessions_are_not_examined() {
        let mut players = BySession::default();
        for player in 0..10_000 {
            players.insert(player, u64::from(player / 2));
        }
        let mut examined = 0;
        let of = players.players_of(7).inspect(|_| examined += 1).collect::<Vec<_>>();
        assert_eq!((of, examined), (vec![14, 15], 2));
        players.remove_session(7);
        assert_eq!((players.len(), players.players.len()), (9_998, 9_998));
    }
}
