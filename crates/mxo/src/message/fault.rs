//! The ways in which a section can be wrong, by name.

use core::fmt;

use worldwire_core::{Error, ErrorKind, Names, Reader, Side};

/// Which rule a section breaks. The names are stable.
///
/// An [`Error`] says in its `wanted` what would have been right; that tells which fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end inside a field.
    Truncated,
    /// The first byte is not the MPM id of objects, 3.
    NotObjectSection,
    /// A create does not have `cd ab` in its place.
    BadMagic,
    /// A create has more or fewer properties than its count.
    CountMismatch,
    /// A presence bit, or a byte of them, lies beyond the order of the class.
    IndexOutOfRange,
    /// The class of a goobj is not known, so the end of its create is not either.
    UnknownGoid,
    /// An update of a view whose class is not known.
    UnknownView,
    /// A view id that cannot stand there: 0 or 1 of an object, any but 2 from a client.
    BadViewId,
    /// A pending update is shorter than its own head.
    BadPendingLength,
    /// A relevance notice, which only servers tell each other.
    ServerOnlyCommand,
    /// The bytes end where a view id, or 0 for the end, should be.
    MissingTerminator,
    /// A block of an update, or a flag of a movement, whose layout nobody knows.
    UnknownLayout,
}

/// The faults by their places in [`Fault::ALL`].
pub(super) static NAMES: Names = Names::fixed(&[
    (0, "truncated"),
    (1, "not_object_section"),
    (2, "bad_magic"),
    (3, "count_mismatch"),
    (4, "index_out_of_range"),
    (5, "unknown_goid"),
    (6, "unknown_view"),
    (7, "bad_view_id"),
    (8, "bad_pending_length"),
    (9, "server_only_command"),
    (10, "missing_terminator"),
    (11, "unknown_layout"),
])
.words();

impl Fault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Truncated,
        Self::NotObjectSection,
        Self::BadMagic,
        Self::CountMismatch,
        Self::IndexOutOfRange,
        Self::UnknownGoid,
        Self::UnknownView,
        Self::BadViewId,
        Self::BadPendingLength,
        Self::ServerOnlyCommand,
        Self::MissingTerminator,
        Self::UnknownLayout,
    ];

    /// The stable name: `bad_magic`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NotObjectSection => "not_object_section",
            Self::BadMagic => "bad_magic",
            Self::CountMismatch => "count_mismatch",
            Self::IndexOutOfRange => "index_out_of_range",
            Self::UnknownGoid => "unknown_goid",
            Self::UnknownView => "unknown_view",
            Self::BadViewId => "bad_view_id",
            Self::BadPendingLength => "bad_pending_length",
            Self::ServerOnlyCommand => "server_only_command",
            Self::MissingTerminator => "missing_terminator",
            Self::UnknownLayout => "unknown_layout",
        }
    }

    /// What would have been right.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Truncated => "a field within the section",
            Self::NotObjectSection => "the MPM id of objects, 3",
            Self::BadMagic => "the magic number 0xabcd",
            Self::CountMismatch => "as many presence bits as the count",
            Self::IndexOutOfRange => "presence bits of properties that the class has",
            Self::UnknownGoid => "a goobj whose class is known",
            Self::UnknownView => "a view whose class is known",
            Self::BadViewId => "a view id that can stand here",
            Self::BadPendingLength => "a length of at least 4",
            Self::ServerOnlyCommand => "a command that a server and a client share",
            Self::MissingTerminator => "a view id, or 0 at the end",
            Self::UnknownLayout => "a block whose layout is known",
        }
    }

    /// The fault that an error of a section is about; `None` for errors of other origin, such as
    /// limits.
    #[must_use]
    pub fn of(error: &Error) -> Option<Self> {
        if matches!(error.kind(), ErrorKind::Incomplete { .. }) {
            return Some(Self::Truncated);
        }
        let wanted = error.wanted();
        let counted = |unit| wanted.strip_suffix(unit).is_some_and(|n| n.parse::<u64>().is_ok());
        // What was incomplete before its bytes were known to be all there are.
        if error.kind() == ErrorKind::Malformed && (counted(" bytes") || counted(" byte")) {
            return Some(Self::Truncated);
        }
        Self::ALL.into_iter().find(|fault| fault.wanted() == wanted)
    }

    /// Whether the rest of the section cannot be read because of something that is not known here,
    /// though it may well be right.
    pub(super) const fn is_ignorance(self) -> bool {
        matches!(
            self,
            Self::UnknownGoid | Self::UnknownView | Self::ServerOnlyCommand | Self::UnknownLayout
        )
    }

    /// Whether an observer keeps the rest as bytes. What a client may not send is refused.
    pub(super) fn is_kept(self, from: Side) -> bool {
        self.is_ignorance() && (self != Self::ServerOnlyCommand || from == Side::Server)
    }

    /// The place in [`NAMES`].
    pub(super) fn number(self) -> i64 {
        NAMES.number(self.name()).unwrap_or(-1)
    }

    /// The fault of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// The error at a place of what is read.
    #[cold]
    pub(super) fn at<T>(
        self,
        reader: &Reader<'_, T>,
        back: usize,
        found: impl Into<String>,
    ) -> Error {
        let at = reader.position().saturating_sub(back);
        Error::malformed(self.wanted(), found.into()).at(at as u64)
    }

    /// The error of a value that is to be written.
    #[cold]
    pub(crate) fn value(self, found: impl Into<String>) -> Error {
        Error::value(self.wanted(), found.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_lead_back_to_their_faults() {
        let reader = Reader::new(&[1, 2, 3]);
        for (number, fault) in (0..).zip(Fault::ALL) {
            assert_eq!(Fault::of(&fault.at(&reader, 0, "x")), Some(fault));
            assert_eq!(Fault::of(&fault.value("x")), Some(fault));
            assert_eq!(NAMES.name(number), Some(fault.name()));
            assert_eq!((fault.number(), Fault::named(fault.name())), (number, Some(fault)));
        }
        let short = Reader::new(&[1]).u16("x").unwrap_err();
        assert_eq!(Fault::of(&short), Some(Fault::Truncated));
        assert_eq!(Fault::of(&short.closed()), Some(Fault::Truncated));
        assert_eq!(Fault::of(&Error::limit("elements", 1, 2)), None);
    }
}
