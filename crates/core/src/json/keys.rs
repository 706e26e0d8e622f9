//! The keys of a document, each kept once.

use std::collections::{HashMap, HashSet};

use super::Json;
use super::object::Key;

/// So many keys are compared one by one.
const FEW: usize = 16;

/// The keys of a document that is being read.
#[derive(Default)]
pub(super) struct Keys {
    /// In the order in which they were first read.
    list: Vec<Key>,
    /// Where they stand in the list, when there are many.
    places: HashMap<Key, usize>,
    /// Where the next key should stand: objects of one kind mostly have their keys in one order.
    next: usize,
}

impl Keys {
    /// The key of this name.
    pub(super) fn share(&mut self, name: &str) -> Key {
        if let Some(key) = self.list.get(self.next).filter(|key| ***key == *name) {
            self.next += 1;
            return key.clone();
        }
        let found = if self.places.is_empty() {
            self.list.iter().position(|key| **key == *name)
        } else {
            self.places.get(name).copied()
        };
        let at = found.unwrap_or(self.list.len());
        self.next = at + 1;
        if let Some(key) = self.list.get(at) {
            return key.clone();
        }
        let key = Key::from(name);
        self.list.push(key.clone());
        if !self.places.is_empty() {
            self.places.insert(key.clone(), at);
        } else if self.list.len() > FEW {
            self.places.extend(self.list.iter().cloned().zip(0..));
        }
        key
    }
}

/// The keys that an object has so far.
#[derive(Default)]
pub(super) struct Seen(HashSet<Key>);

impl Seen {
    /// Whether a shared key is there already, of an object with these entries; if not, it will be.
    pub(super) fn is_twice(&mut self, key: &Key, entries: &[(Key, Json)]) -> bool {
        if entries.len() < FEW {
            return entries.iter().any(|(other, _)| other.is(key));
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().map(|(key, _)| key.clone()));
        }
        !self.0.insert(key.clone())
    }
}
