//! The ways in which a section can be invalid, by name.

use core::fmt;

use worldwire_core::{Error, ErrorKind, Names, Reader, Side};

/// The rule that a section breaks. The names are stable.
///
/// An [`Error`]'s `wanted` text identifies the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end inside a field.
    Truncated,
    /// The first byte is not the MPM ID of objects, 3.
    NotObjectSection,
    /// A create lacks the magic number `cd ab`.
    BadMagic,
    /// A create has more or fewer properties than its count.
    CountMismatch,
    /// A presence bit, or a whole presence byte, is beyond the class's order.
    IndexOutOfRange,
    /// The class of a goobj is unknown, and so is the end of its create.
    UnknownGoid,
    /// An update of a view whose class is unknown.
    UnknownView,
    /// A view ID that is not allowed here: 0 or 1 for an object, or any ID but 2 from a client.
    BadViewId,
    /// A pending update that is shorter than its own header.
    BadPendingLength,
    /// A relevance notice, which is sent only between servers.
    ServerOnlyCommand,
    /// The bytes end where a view ID, or 0 for the end, should follow.
    MissingTerminator,
    /// A block of an update, or a movement flag, whose layout is unknown.
    UnknownLayout,
}

/// The names, in the order of [`Fault::ALL`].
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
    /// All faults.
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

    /// The stable name, such as `bad_magic`.
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

    /// The expected input, in words.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Truncated => "a field within the section",
            Self::NotObjectSection => "the MPM ID of objects, 3",
            Self::BadMagic => "the magic number 0xabcd",
            Self::CountMismatch => "a count equal to the number of presence bits",
            Self::IndexOutOfRange => "presence bits for the class's properties",
            Self::UnknownGoid => "a goobj whose class is known",
            Self::UnknownView => "a view whose class is known",
            Self::BadViewId => "a view ID that is allowed here",
            Self::BadPendingLength => "a length of at least 4",
            Self::ServerOnlyCommand => "a command between server and client",
            Self::MissingTerminator => "a view ID, or 0 at the end",
            Self::UnknownLayout => "a block whose layout is known",
        }
    }

    /// The fault behind an error in a section; `None` for other errors, such as limits.
    #[must_use]
    pub fn of(error: &Error) -> Option<Self> {
        if matches!(error.kind(), ErrorKind::Incomplete { .. }) {
            return Some(Self::Truncated);
        }
        let wanted = error.wanted();
        let counted = |unit| wanted.strip_suffix(unit).is_some_and(|n| n.parse::<u64>().is_ok());
        // A truncated read is reported as incomplete until it is clear that no more bytes follow.
        if error.kind() == ErrorKind::Malformed && (counted(" bytes") || counted(" byte")) {
            return Some(Self::Truncated);
        }
        Self::ALL.into_iter().find(|fault| fault.wanted() == wanted)
    }

    /// Whether the rest of the section is unreadable only because this side does not know
    /// something, so that the section may be valid.
    pub(super) const fn is_unknown(self) -> bool {
        matches!(
            self,
            Self::UnknownGoid | Self::UnknownView | Self::ServerOnlyCommand | Self::UnknownLayout
        )
    }

    /// Whether an observer keeps the rest as bytes. Commands that a client must not send are
    /// refused.
    pub(super) fn is_kept(self, from: Side) -> bool {
        self.is_unknown() && (self != Self::ServerOnlyCommand || from == Side::Server)
    }

    /// The index in [`NAMES`].
    pub(super) fn number(self) -> i64 {
        NAMES.number(self.name()).unwrap_or(-1)
    }

    /// The fault with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// The error at the reader's position.
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

    /// The error for a value to be written.
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
    fn errors_identify_their_faults() {
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
