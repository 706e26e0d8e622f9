//! All states of an age.

use std::collections::BTreeMap;

use super::blob::Blob;
use super::state::ObjectState;
use super::update::{MergePolicy, UpdateError};
use crate::types::{LocationFlags, UnifiedTime, Uoid};

/// The lookup key of an object: page, class, name and clone. Object IDs are not part of it because
/// they change when a page is rebuilt; load masks never matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    sequence_number: u32,
    /// The page, without the itinerant bit.
    location_flags: u16,
    class_index: u16,
    name: Box<[u8]>,
    clone_id: u16,
    player_id: u32,
}

impl ObjectKey {
    /// The key of an object.
    #[must_use]
    pub fn of(object: &Uoid<'_>) -> Self {
        let (clone_id, player_id) = object.clone.map_or((0, 0), |ids| (ids.id, ids.player_id));
        Self {
            sequence_number: object.location.sequence_number.0,
            location_flags: object.location.flags.0 & !LocationFlags::Itinerant.0,
            class_index: object.class_index,
            name: object.name.to_bytes().into(),
            clone_id,
            player_id,
        }
    }
}

/// How and by whom an update was sent: the trailing flags of its message, and the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateOrigin {
    /// The sender wants the state to be kept.
    pub persist: bool,
    /// The state belongs to an avatar and is removed with it.
    pub avatar: bool,
    /// The sending player.
    pub player_id: u32,
}

/// A state with its object and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredState {
    /// The object, as last named.
    pub object: Uoid<'static>,
    /// The state.
    pub state: ObjectState,
    /// How it was last sent.
    pub origin: UpdateOrigin,
}

impl StoredState {
    /// Whether the state outlives the server: it was sent to be kept, belongs neither to an avatar
    /// nor to a clone, and is not volatile.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        let is_clone = self.object.clone.is_some_and(|ids| ids.id != 0);
        self.origin.persist && !self.origin.avatar && !self.state.is_volatile() && !is_clone
    }
}

/// The states of all objects of an age: one per object and descriptor.
///
/// Sorted by page, class and name, so that two servers with the same states send them in the same
/// order.
#[derive(Clone, Debug)]
pub struct StateDb {
    objects: BTreeMap<ObjectKey, Vec<StoredState>>,
    len: usize,
    limit: usize,
}

impl Default for StateDb {
    /// An empty database with room for 65,536 states.
    fn default() -> Self {
        Self::with_limit(1 << 16)
    }
}

impl StateDb {
    /// An empty database with room for `limit` states. The limit is needed because clients can
    /// invent objects.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { objects: BTreeMap::new(), len: 0, limit }
    }

    /// Applies an update to an object's state; the first update creates it.
    ///
    /// # Errors
    /// The errors of [`ObjectState::apply`], and [`UpdateError::Full`] if there is no room for
    /// another state.
    pub fn apply(
        &mut self,
        object: &Uoid<'_>,
        update: &Blob<'_>,
        origin: UpdateOrigin,
        rule: MergePolicy,
        now: &UnifiedTime,
    ) -> Result<&mut StoredState, UpdateError> {
        let key = ObjectKey::of(object);
        let name = update.descriptor.name();
        let place = self.objects.get(&key).and_then(|states| position(states, name));
        if place.is_none() && self.len >= self.limit {
            return Err(UpdateError::Full { limit: self.limit });
        }
        let states = self.objects.entry(key).or_default();
        let place = place.unwrap_or(states.len());
        if place == states.len() {
            let state = ObjectState::new(update.descriptor.clone());
            states.push(StoredState { object: owned(object), state, origin });
            self.len += 1;
        }
        let full = UpdateError::Full { limit: self.limit };
        let stored = states.get_mut(place).ok_or(full)?;
        stored.state.apply(update, rule, now)?;
        if stored.object != *object {
            stored.object = owned(object);
        }
        stored.origin = origin;
        Ok(stored)
    }

    /// Inserts a state that was stored elsewhere; returns the one it replaces.
    ///
    /// # Errors
    /// [`UpdateError::Full`] if there is no room for another state.
    pub fn insert(&mut self, stored: StoredState) -> Result<Option<StoredState>, UpdateError> {
        let key = ObjectKey::of(&stored.object);
        let name = stored.state.descriptor().name();
        let place = self.objects.get(&key).and_then(|states| position(states, name));
        if let Some(place) = place {
            let old = self.objects.get_mut(&key).and_then(|states| states.get_mut(place));
            return Ok(old.map(|old| core::mem::replace(old, stored)));
        }
        if self.len >= self.limit {
            return Err(UpdateError::Full { limit: self.limit });
        }
        self.objects.entry(key).or_default().push(stored);
        self.len += 1;
        Ok(None)
    }

    /// An object's state for the descriptor with this name.
    #[must_use]
    pub fn get(&self, object: &Uoid<'_>, descriptor: &str) -> Option<&StoredState> {
        let states = self.of(object);
        states.get(position(states, descriptor)?)
    }

    /// All states of an object.
    #[must_use]
    pub fn of(&self, object: &Uoid<'_>) -> &[StoredState] {
        self.objects.get(&ObjectKey::of(object)).map_or(&[], Vec::as_slice)
    }

    /// All states.
    pub fn iter(&self) -> impl Iterator<Item = &StoredState> {
        self.objects.values().flatten()
    }

    /// Removes all states of an object, because it was unloaded.
    pub fn remove(&mut self, object: &Uoid<'_>) -> Vec<StoredState> {
        let removed = self.objects.remove(&ObjectKey::of(object)).unwrap_or_default();
        self.len -= removed.len();
        removed
    }

    /// Keeps the states for which `keep` returns true; used, for example, to drop those of a
    /// departed avatar.
    pub fn retain(&mut self, mut keep: impl FnMut(&StoredState) -> bool) {
        self.objects.retain(|_, states| {
            states.retain(&mut keep);
            !states.is_empty()
        });
        self.len = self.objects.values().map(Vec::len).sum();
    }

    /// The number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no states.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn position(states: &[StoredState], descriptor: &str) -> Option<usize> {
    let mut names = states.iter().map(|stored| stored.state.descriptor().name());
    names.position(|name| name.eq_ignore_ascii_case(descriptor))
}

fn owned(object: &Uoid<'_>) -> Uoid<'static> {
    worldwire_core::Field::into_owned(object.clone())
}
