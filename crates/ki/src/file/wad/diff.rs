//! What became of an archive.

use std::collections::BTreeMap;

use super::table::{Entry, Table};

/// How an entry differs from one archive to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'t> {
    /// Only the second archive has it.
    Added(&'t Entry<'t>),
    /// Only the first archive has it.
    Removed(&'t Entry<'t>),
    /// Size or stored bytes are others. The CRC is over stored bytes, so a file that was merely
    /// compressed in another way counts as changed.
    Changed(&'t Entry<'t>, &'t Entry<'t>),
}

/// A name, and what each of two archives has under it: one of them has something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair<'t> {
    /// The entry of the first archive.
    pub before: Option<&'t Entry<'t>>,
    /// The entry of the second archive.
    pub after: Option<&'t Entry<'t>>,
}

impl<'t> Pair<'t> {
    /// What is different by the tables alone. They do not tell whether the data is there, and good.
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

/// The entries of two archives by their names, in the order of those. Of a name that is there
/// twice, the first entry counts, as it does when files are extracted.
#[must_use]
pub fn pairs<'t>(before: &'t Table<'t>, after: &'t Table<'t>) -> Vec<Pair<'t>> {
    let mut found: BTreeMap<&'t [u8], Pair<'t>> = BTreeMap::new();
    for entry in &before.entries {
        found.entry(&entry.name).or_default().before.get_or_insert(entry);
    }
    for entry in &after.entries {
        found.entry(&entry.name).or_default().after.get_or_insert(entry);
    }
    found.into_values().collect()
}

/// What is different by the tables, in the order of the names. See [`pairs`].
#[must_use]
pub fn diff<'t>(before: &'t Table<'t>, after: &'t Table<'t>) -> Vec<Change<'t>> {
    pairs(before, after).iter().filter_map(Pair::change).collect()
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
    fn the_first_of_a_name_counts_and_names_are_in_order() {
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
