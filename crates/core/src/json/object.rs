//! JSON objects.

use core::borrow::Borrow;
use core::fmt;
use core::mem;
use core::ops::{Deref, Index};
use std::sync::Arc;

use super::Json;

/// A JSON object: values by name, in the order of the names.
///
/// Takes 32 bytes for each value. Finding a name is a binary search; adding or removing one takes
/// time proportional to the size, so collect an object instead of filling it.
#[derive(Clone, Default, PartialEq)]
pub struct Object(Box<[(Key, Json)]>);

/// The name of a value. Each distinct name of a document is stored once, so a key is a single
/// pointer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(Arc<Box<str>>);

impl Object {
    /// An object without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An object from entries in any order. If a key is repeated, its last entry wins.
    pub(super) fn of(mut entries: Vec<(Key, Json)>) -> Self {
        if !entries.is_sorted_by(|(one, _), (other, _)| one < other) {
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.dedup_by(|later, kept| {
                let is_same = later.0 == kept.0;
                if is_same {
                    mem::swap(&mut later.1, &mut kept.1);
                }
                is_same
            });
        }
        Self(entries.into_boxed_slice())
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A value by its name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.find(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// Like [`get`](Self::get), but mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.find(key).ok().and_then(|at| self.0.get_mut(at)).map(|(_, value)| value)
    }

    /// Whether there is a value of this name.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// The names.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }

    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Json> {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, mutable.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Json> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// The names and values.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// The names and values, mutable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Json)> {
        self.0.iter_mut().map(|(key, value)| (&**key, value))
    }

    /// Sets a value and returns the previous one.
    pub fn insert(&mut self, key: &str, value: Json) -> Option<Json> {
        let is_new = !self.contains_key(key);
        let old = mem::replace(self.entry(key), value);
        (!is_new).then_some(old)
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.find(key).ok()?;
        let mut entries = mem::take(&mut self.0).into_vec();
        let (_, value) = entries.remove(at);
        self.0 = entries.into_boxed_slice();
        Some(value)
    }

    /// The value of this name; `null` if it is added here.
    pub(super) fn entry(&mut self, key: &str) -> &mut Json {
        let at = match self.find(key) {
            Ok(at) => at,
            Err(at) => {
                let mut entries = mem::take(&mut self.0).into_vec();
                entries.insert(at, (Key::from(key), Json::Null));
                self.0 = entries.into_boxed_slice();
                at
            }
        };
        &mut self.0[at].1
    }

    /// The index of a name, or where it would be inserted.
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(found, _)| (**found).cmp(key))
    }
}

/// `null` for a missing value.
impl Index<&str> for Object {
    type Output = Json;

    fn index(&self, key: &str) -> &Json {
        self.get(key).unwrap_or(&Json::Null)
    }
}

/// The names and values of an object.
#[derive(Clone, Debug)]
pub struct Iter<'j>(core::slice::Iter<'j, (Key, Json)>);

impl<'j> Iterator for Iter<'j> {
    type Item = (&'j str, &'j Json);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (&**key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'j> IntoIterator for &'j Object {
    type Item = (&'j str, &'j Json);
    type IntoIter = Iter<'j>;

    fn into_iter(self) -> Iter<'j> {
        self.iter()
    }
}

/// If a name is repeated, its last value wins.
impl<K: AsRef<str>, V: Into<Json>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        Self::of(entries.map(|(key, value)| (key.as_ref().into(), value.into())).collect())
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl Key {
    /// Whether both are the same key of a document.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        Self(Arc::new(key.into()))
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self
    }
}
