//! Notes on messages that can be read but deviate from canonical form.

use worldwire_core::Names;

use crate::named::named;

/// Maximum number of notes kept for one message; further ones are only counted.
const MAX_NOTES: usize = 256;

named! {
    /// A kind of deviation from canonical form. The names are stable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum NoteKind {
        /// A body does not begin where the one before it ends.
        OffsetMismatch = "offset_mismatch",
        /// An empty list has an offset.
        UnusedOffset = "unused_offset",
        /// A link points backwards.
        OutOfOrder = "out_of_order",
        /// Unused bytes at the end of the message.
        TrailingBytes = "trailing_bytes",
        /// A boolean that is neither 0 nor 1.
        BoolNot0Or1 = "bool_not_0_or_1",
        /// A count or offset without a field is not zero.
        OrphanMeta = "orphan_meta",
    }
}

impl NoteKind {
    /// Its number among [`NAMES`].
    pub(crate) const fn number(self) -> i64 {
        self as i64
    }
}

/// The names of all kinds, for trees.
pub(crate) static NAMES: Names = Names::fixed(&PAIRS);

const PAIRS: [(i64, &str); NoteKind::ALL.len()] = {
    let mut pairs = [(0, ""); NoteKind::ALL.len()];
    let mut at = 0;
    while at < pairs.len() {
        pairs[at] = (NoteKind::ALL[at].number(), NoteKind::ALL[at].name());
        at += 1;
    }
    pairs
};

/// A deviation from canonical form, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its kind.
    pub kind: NoteKind,
    /// Its offset in the message, in bytes.
    pub at: usize,
}

/// All deviations of a message from canonical form. A message without any is canonical: its fields
/// alone encode to the same bytes.
// Nearly all messages have none. An empty value is one word, which calls pass in a register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(Option<Box<NoteList>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NoteList {
    list: Vec<Note>,
    more: usize,
}

impl Notes {
    #[cold]
    pub(crate) fn add(&mut self, kind: NoteKind, at: usize) {
        let notes = self.0.get_or_insert_default();
        if notes.list.len() < MAX_NOTES {
            notes.list.push(Note { kind, at });
        } else {
            notes.more += 1;
        }
    }

    /// The first 256.
    #[must_use]
    pub fn list(&self) -> &[Note] {
        self.0.as_deref().map_or(&[], |notes| &notes.list)
    }

    /// The number of notes beyond the first 256.
    #[must_use]
    pub fn more(&self) -> usize {
        self.0.as_deref().map_or(0, |notes| notes.more)
    }

    /// Whether the message is canonical.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a note of this kind is among the first 256.
    #[must_use]
    pub fn has(&self, kind: NoteKind) -> bool {
        self.list().iter().any(|note| note.kind == kind)
    }

    /// Whether trailing bytes are the only deviation.
    #[must_use]
    pub(crate) fn only_trailing(&self) -> bool {
        self.list().iter().all(|note| note.kind == NoteKind::TrailingBytes)
    }
}
