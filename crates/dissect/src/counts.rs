//! Counts messages by name and sender.

use core::fmt;
use core::hash::BuildHasher;
use core::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use worldwire_core::Side;

/// The number of messages of each name that the client and the server sent.
///
/// All names share one string, because a capture can have a hundred thousand conversations with a
/// dozen names each.
///
/// ```
/// use worldwire_core::Side;
/// use worldwire_dissect::Counts;
///
/// let mut counts = Counts::default();
/// counts.add(Side::Client, "auth.PingRequest");
/// counts.add(Side::Server, "auth.PingReply");
/// counts.add(Side::Client, "auth.PingRequest");
/// let all: Vec<_> = counts.iter().collect();
/// assert_eq!(all, [("auth.PingRequest", [2, 0]), ("auth.PingReply", [0, 1])]);
/// assert_eq!(counts.total(), 3);
/// ```
#[derive(Clone, Default)]
pub struct Counts {
    names: String,
    rows: Vec<Row>,
    /// Row indices, by name.
    indices: HashTable<usize>,
    hasher: RandomState,
}

#[derive(Clone, Debug)]
struct Row {
    /// The range of its name in `names`.
    name: Range<usize>,
    counts: [u64; 2],
}

/// Capacity reserved for the first name, which is enough for most conversations.
const NAMES: usize = 16;
const NAME_BYTES: usize = 24;

impl Counts {
    /// Counts one message.
    pub fn add(&mut self, from: Side, name: &str) {
        let Self { names, rows, indices, hasher } = self;
        let hash = hasher.hash_one(name);
        let is_own = |index: &usize| rows.get(*index).is_some_and(|row| row.is_of(names, name));
        let index = match indices.find(hash, is_own) {
            Some(index) => *index,
            None => {
                if rows.is_empty() {
                    names.reserve(NAMES * NAME_BYTES);
                    rows.reserve(NAMES);
                    indices.reserve(NAMES, |_| 0);
                }
                let start = names.len();
                names.push_str(name);
                rows.push(Row { name: start..names.len(), counts: [0; 2] });
                let hash_of = |index: &usize| {
                    let row = rows.get(*index).and_then(|row| names.get(row.name.clone()));
                    hasher.hash_one(row.unwrap_or_default())
                };
                let index = rows.len() - 1;
                indices.insert_unique(hash, index, hash_of);
                index
            }
        };
        rows[index].counts[from.index()] += 1;
    }

    /// Every name with its counts from client and server, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&str, [u64; 2])> {
        let name = |row: &Row| self.names.get(row.name.clone()).unwrap_or_default();
        self.rows.iter().map(move |row| (name(row), row.counts))
    }

    /// The sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows.iter().flat_map(|row| row.counts).sum()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Row {
    fn is_of(&self, names: &str, name: &str) -> bool {
        names.as_bytes().get(self.name.clone()) == Some(name.as_bytes())
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn counts_agree_with_a_map() {
        let mut counts = Counts::default();
        assert!(counts.is_empty() && counts.total() == 0);
        let mut wanted: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        let mut order = Vec::new();
        for number in 0..5000_usize {
            // Some names are prefixes of others, and one is empty.
            let name = "ab".repeat(number * number % 300);
            let from = if number % 3 == 0 { Side::Client } else { Side::Server };
            counts.add(from, &name);
            if !wanted.contains_key(&name) {
                order.push(name.clone());
            }
            wanted.entry(name).or_default()[from.index()] += 1;
        }
        assert_eq!(counts.total(), 5000);
        let names: Vec<&str> = counts.iter().map(|(name, _)| name).collect();
        assert_eq!(names, order);
        let found: BTreeMap<String, [u64; 2]> =
            counts.clone().iter().map(|(name, counts)| (name.to_owned(), counts)).collect();
        assert_eq!(found, wanted);
        assert!(format!("{counts:?}").starts_with("{\"\": ["));
    }
}
