//! Comparing archives.

use std::collections::BTreeMap;

use super::table::{Entry, Table};

/// How an entry differs between two archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'t> {
    /// The entry exists only in the second archive.
    Added(&'t Entry<'t>),
    /// The entry exists only in the first archive.
    Removed(&'t Entry<'t>),
    /// Size or stored bytes differ. The CRC covers stored bytes, so a file that was merely
    /// compressed differently counts as changed.
    Changed(&'t Entry<'t>, &'t Entry<'t>),
}

/// A name, and the entries with this name in two archives. At least one of them exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryPair<'t> {
    /// The entry in the first archive.
    pub before: Option<&'t Entry<'t>>,
    /// The entry in the second archive.
    pub after: Option<&'t Entry<'t>>,
}

impl<'t> EntryPair<'t> {
    /// The difference according to the tables, which do not show whether the data is present and
    /// intact.
    #[must_use]
    pub fn change(&self) -> Option<Change<'t>> {
        match (self.before, self.after) {
            (Some(old), Some(new)) if key(old) != key(new) => Some(Change::Changed(old, new)),
            (Some(old), None) => Some(Change::Removed(old)),
            (None, Some(new)) => Some(Change::Added(new)),
            _ => None,
        }
    }
}

/// Pairs the entries of two archives by name, sorted by name. If a name occurs twice, the first
/// entry is used, as in extraction.
#[must_use]
pub fn pairs<'t>(before: &'t Table<'t>, after: &'t Table<'t>) -> Vec<EntryPair<'t>> {
    let mut found: BTreeMap<&'t [u8], EntryPair<'t>> = BTreeMap::new();
    for entry in &before.entries {
        found.entry(&entry.name).or_default().before.get_or_insert(entry);
    }
    for entry in &after.entries {
        found.entry(&entry.name).or_default().after.get_or_insert(entry);
    }
    found.into_values().collect()
}

/// The differences according to the tables, sorted by name. See [`pairs`].
#[must_use]
pub fn diff<'t>(before: &'t Table<'t>, after: &'t Table<'t>) -> Vec<Change<'t>> {
    pairs(before, after).iter().filter_map(EntryPair::change).collect()
}

fn key(entry: &Entry<'_>) -> (u32, u32, bool, u32) {
    (entry.size, entry.stored_size(), entry.is_compressed(), entry.crc)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{Change, Entry, Table, diff};

    fn table(files: &[(&'static str, u32)]) -> Table<'static> {
        let entry = |(name, crc): &(&'static str, u32)| Entry {
            name: Cow::Borrowed(name.as_bytes()),
            terminated: true,
            offset: 0,
            size: 1,
            compressed_size: u32::MAX,
            compressed: 0,
            crc: *crc,
        };
        Table { version: 2, flags: 0, entries: files.iter().map(entry).collect() }
    }

    #[test]
    fn the_first_entry_of_a_name_is_used_and_names_are_sorted() {
        let before = table(&[("c", 1), ("b", 1), ("b", 2)]);
        let after = table(&[("b", 1), ("b", 3), ("d", 1), ("c", 2), ("a", 1)]);
        let changes: Vec<(&[u8], bool)> = diff(&before, &after)
            .iter()
            .map(|change| match change {
                Change::Added(entry) => (&*entry.name, true),
                Change::Removed(entry) | Change::Changed(_, entry) => (&*entry.name, false),
            })
            .collect();
        assert_eq!(changes, [(&b"a"[..], true), (b"c", false), (b"d", true)]);
    }
}
