//! What is odd about a message that could be read all the same.

use core::fmt;

use worldwire_core::Names;

/// Oddities that are kept of one message; more are only counted.
const MAX_NOTES: usize = 256;

/// What is odd. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoteKind {
    /// A body does not stand where the one before it ends.
    OffsetMismatch,
    /// A list without elements has an offset.
    UnusedOffset,
    /// A link leads back.
    OutOfOrder,
    /// Bytes that belong to nothing, at the end.
    TrailingBytes,
    /// A truth value that is neither 0 nor 1.
    BoolNot0Or1,
    /// A count or offset of no field that is not zero.
    OrphanMeta,
}

impl NoteKind {
    const TABLE: [(Self, &'static str); 6] = [
        (Self::OffsetMismatch, "offset_mismatch"),
        (Self::UnusedOffset, "unused_offset"),
        (Self::OutOfOrder, "out_of_order"),
        (Self::TrailingBytes, "trailing_bytes"),
        (Self::BoolNot0Or1, "bool_not_0_or_1"),
        (Self::OrphanMeta, "orphan_meta"),
    ];

    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::TABLE.into_iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// Its number among [`NAMES`].
    pub(crate) const fn number(self) -> i64 {
        self as i64
    }
}

/// The names of all kinds, for trees.
pub(crate) static NAMES: Names = Names::fixed(&[
    (0, "offset_mismatch"),
    (1, "unused_offset"),
    (2, "out_of_order"),
    (3, "trailing_bytes"),
    (4, "bool_not_0_or_1"),
    (5, "orphan_meta"),
]);

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something odd, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// What.
    pub kind: NoteKind,
    /// The byte of the message.
    pub at: usize,
}

/// All that is odd about a message. A message without notes is canonical: its fields alone encode
/// to the same bytes.
// Nearly all messages have none: that is one word, which goes through calls in a register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities(Option<Box<Notes>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Notes {
    list: Vec<Oddity>,
    more: usize,
}

impl Oddities {
    #[cold]
    pub(crate) fn add(&mut self, kind: NoteKind, at: usize) {
        let notes = self.0.get_or_insert_default();
        if notes.list.len() < MAX_NOTES {
            notes.list.push(Oddity { kind, at });
        } else {
            notes.more += 1;
        }
    }

    /// The first 256.
    #[must_use]
    pub fn list(&self) -> &[Oddity] {
        self.0.as_deref().map_or(&[], |notes| &notes.list)
    }

    /// How many more there were.
    #[must_use]
    pub fn more(&self) -> usize {
        self.0.as_deref().map_or(0, |notes| notes.more)
    }

    /// Whether there is nothing odd.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether something of a kind is among the first 256.
    #[must_use]
    pub fn has(&self, kind: NoteKind) -> bool {
        self.list().iter().any(|note| note.kind == kind)
    }

    /// Whether bytes at the end are all that is odd.
    #[must_use]
    pub fn only_trailing(&self) -> bool {
        self.list().iter().all(|note| note.kind == NoteKind::TrailingBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for (kind, name) in NoteKind::TABLE {
            assert_eq!(NAMES.name(kind.number()), Some(name));
        }
    }
}
