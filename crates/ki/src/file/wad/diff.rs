//! What became of an archive.

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

/// What is different, in the order of the names. Of a name that is there twice, the last counts.
#[must_use]
pub fn diff<'t>(before: &'t Table<'t>, after: &'t Table<'t>) -> Vec<Change<'t>> {
    let by_name = |table: &'t Table<'t>| -> std::collections::BTreeMap<&'t [u8], &'t Entry<'t>> {
        table.entries.iter().map(|entry| (&*entry.name, entry)).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let mut found = Vec::new();
    for (name, old) in &before {
        match after.get(name) {
            None => found.push((*name, Change::Removed(old))),
            Some(new) if key(old) != key(new) => found.push((*name, Change::Changed(old, new))),
            Some(_) => {}
        }
    }
    let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
    found.extend(added.map(|(name, new)| (*name, Change::Added(new))));
    found.sort_by_key(|(name, _)| *name);
    found.into_iter().map(|(_, change)| change).collect()
}

fn key(entry: &Entry<'_>) -> (u32, u32, bool, u32) {
    (entry.size, entry.stored_size(), entry.is_compressed(), entry.crc)
}
