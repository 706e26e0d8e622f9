//! Locks on objects: only one player at a time may use a lever, for example.

use std::collections::HashMap;

use super::clones::is_part;
use crate::sdl::ObjectKey;
use crate::types::{CloneIds, Location, Uoid};

/// The locked objects and their holders.
#[derive(Clone, Debug, Default)]
pub(super) struct Locks {
    held: HashMap<ObjectKey, Lock>,
    /// The number of locks that each player holds; players without locks are not listed.
    counts: HashMap<u32, usize>,
}

#[derive(Clone, Debug)]
struct Lock {
    holder: u32,
    page: Location,
    clone: Option<CloneIds>,
}

/// The reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockReply {
    Granted,
    Denied,
    /// Denied because the player holds too many locks.
    TooMany,
}

impl Locks {
    /// Grants the lock if the object is unlocked or the player already holds the lock.
    pub(super) fn request(&mut self, object: &Uoid<'_>, player_id: u32, max: usize) -> LockReply {
        let key = ObjectKey::of(object);
        if let Some(lock) = self.held.get(&key) {
            return if lock.holder == player_id { LockReply::Granted } else { LockReply::Denied };
        }
        let count = self.counts.entry(player_id).or_default();
        if *count >= max {
            return LockReply::TooMany;
        }
        *count += 1;
        let (page, clone) = (object.location.clone(), object.clone);
        self.held.insert(key, Lock { holder: player_id, page, clone });
        LockReply::Granted
    }

    /// Releases a lock if the player holds it.
    pub(super) fn release(&mut self, object: &Uoid<'_>, player_id: u32) {
        let key = ObjectKey::of(object);
        if self.holder_of(&key) == Some(player_id) {
            self.held.remove(&key);
            self.uncount(player_id);
        }
    }

    /// Releases all locks of a player.
    pub(super) fn release_of(&mut self, player_id: u32) {
        if self.counts.remove(&player_id).is_some() {
            self.held.retain(|_, lock| lock.holder != player_id);
        }
    }

    /// Releases all locks of a clone and its parts.
    pub(super) fn release_clone(&mut self, clone: &Uoid<'_>) {
        let mut holders = Vec::new();
        let whole = ObjectKey::of(clone);
        self.held.retain(|key, lock| {
            let goes = *key == whole || is_part(&lock.page, lock.clone, clone);
            if goes {
                holders.push(lock.holder);
            }
            !goes
        });
        holders.into_iter().for_each(|holder| self.uncount(holder));
    }

    /// The holder of an object's lock.
    #[cfg(feature = "fuzzing")]
    pub(super) fn holder(&self, object: &Uoid<'_>) -> Option<u32> {
        self.holder_of(&ObjectKey::of(object))
    }

    /// The holder of each lock; a player who holds several locks is repeated.
    #[cfg(feature = "fuzzing")]
    pub(super) fn holders(&self) -> impl Iterator<Item = u32> {
        self.held.values().map(|lock| lock.holder)
    }

    fn holder_of(&self, key: &ObjectKey) -> Option<u32> {
        self.held.get(key).map(|lock| lock.holder)
    }

    fn uncount(&mut self, player_id: u32) {
        if let Some(count) = self.counts.get_mut(&player_id) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&player_id);
            }
        }
    }
}
