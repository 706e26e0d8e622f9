//! The keys of a document, each kept once.

use std::collections::{HashMap, HashSet};

use super::Json;
use super::object::Key;

/// Up to this many keys are compared one by one.
const FEW: usize = 16;

/// The maximum number of keys, and of their bytes, that are kept for the next document.
const MAX: (usize, usize) = (4096, 1 << 20);

/// The keys of the current document and of earlier ones.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The keys, in the order of their first appearance.
    list: Vec<Key>,
    /// Their indices in the list, if there are many.
    places: HashMap<Key, usize>,
    /// The index expected for the next key: similar objects mostly have their keys in the same
    /// order.
    next: usize,
    /// The total length of the keys in bytes.
    bytes: usize,
}

impl Keys {
    pub(super) fn begin(&mut self) {
        if self.list.len() > MAX.0 || self.bytes > MAX.1 {
            *self = Self::default();
        }
        self.next = 0;
    }

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
        self.bytes += name.len();
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
    /// Adds a shared key and returns whether it was already there. `entries` are the object's
    /// entries so far; only the first few are compared directly.
    pub(super) fn is_twice(&mut self, key: &Key, entries: &[(Key, Json)]) -> bool {
        if self.0.is_empty() {
            if entries.len() < FEW {
                return entries.iter().any(|(other, _)| other.is(key));
            }
            self.0.extend(entries.iter().map(|(key, _)| key.clone()));
        }
        !self.0.insert(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_once_and_not_without_end() {
        let mut keys = Keys::default();
        let names: Vec<String> = (0..3 * FEW).map(|number| number.to_string()).collect();
        let first: Vec<Key> = names.iter().map(|name| keys.share(name)).collect();
        for _ in 0..2 {
            keys.begin();
            assert!(names.iter().zip(&first).all(|(name, key)| keys.share(name).is(key)));
            assert!(names.iter().rev().zip(first.iter().rev()).all(|(a, b)| keys.share(a).is(b)));
        }
        assert_eq!(keys.list.len(), names.len());
        keys.share(&"x".repeat(MAX.1));
        keys.begin();
        assert!(keys.list.is_empty() && keys.places.is_empty() && keys.bytes == 0);
        (0..=MAX.0).for_each(|number| drop(keys.share(&number.to_string())));
        keys.begin();
        assert!(keys.list.is_empty());
    }
}
