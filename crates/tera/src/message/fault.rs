//! The ways in which a message can be wrong.

use worldwire_core::{Error, ErrorKind};

use crate::named::named;
use crate::types::Scalar;

/// The name of the limit for [`Fault::TooManyElements`].
const READINGS: &str = "bytes read from a message, counting shared bytes each time";

/// The link that is expected instead of one that makes a list endless.
const ANOTHER_ELEMENT: &str = "a link to another element of the list";

named! {
    /// The rule that a message, or a value to be encoded, breaks. The names are stable.
    ///
    /// An [`Error`]'s `wanted` text identifies the fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Fault {
        /// The fixed part of a scope extends past the end of the message.
        Truncated = "truncated",
        /// The length in the header is not the length of the message.
        LengthMismatch = "length_mismatch",
        /// An offset points into the header, or into the message's counts and offsets.
        OffsetInHeader = "offset_in_header",
        /// An offset points past the end of the message.
        OffsetOutOfRange = "offset_out_of_range",
        /// A text has no terminating zero unit.
        UnterminatedString = "unterminated_string",
        /// A byte string extends past the end of the message.
        BytesOutOfRange = "bytes_out_of_range",
        /// A list has fewer elements than its count.
        ArrayChainShort = "array_chain_short",
        /// A list has more elements than its count, or its links form a loop.
        ArrayChainLong = "array_chain_long",
        /// An element does not begin with its own offset.
        HereMismatch = "here_mismatch",
        /// Elements, texts or bytes are shared or overlap so much that reading them would take more
        /// than [`MAX_READINGS`](super::MAX_READINGS) times the message's length.
        TooManyElements = "too_many_elements",
        /// A number does not fit its type.
        ValueOutOfRange = "value_out_of_range",
        /// A text contains a zero unit, which would end it.
        StringContainsNul = "string_contains_nul",
        /// A value for a field that does not exist.
        UnknownField = "unknown_field",
        /// A value whose type does not match the field's.
        WrongKind = "wrong_kind",
        /// A message of more than 65,535 bytes.
        MessageTooLong = "message_too_long",
    }
}

impl Fault {
    /// The expected input, in words.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Truncated => "a field within the message",
            Self::LengthMismatch => "the message's actual length",
            Self::OffsetInHeader => "an offset after the header and its counts and offsets",
            Self::OffsetOutOfRange => "an offset within the message",
            Self::UnterminatedString => "a NUL at the end of the text",
            Self::BytesOutOfRange => "bytes that end within the message",
            Self::ArrayChainShort => "the number of linked elements given by the count",
            Self::ArrayChainLong => "no link after the last counted element",
            Self::HereMismatch => "an element that begins with its own offset",
            Self::TooManyElements => "no more elements than the bytes can hold",
            Self::ValueOutOfRange => "a number that fits its type",
            Self::StringContainsNul => "text without NUL characters",
            Self::UnknownField => "a known field",
            Self::WrongKind => "a value of the field's type",
            Self::MessageTooLong => "a message of at most 65535 bytes",
        }
    }

    /// The fault behind an error from reading or writing a message; `None` for other errors.
    #[must_use]
    pub fn of(error: &Error) -> Option<Self> {
        let wanted = error.wanted();
        if error.kind() == ErrorKind::Value
            && Scalar::ALL.iter().any(|scalar| scalar.wanted() == wanted)
        {
            return Some(Self::ValueOutOfRange);
        }
        if matches!(error.kind(), ErrorKind::Limit { name: READINGS, .. }) {
            return Some(Self::TooManyElements);
        }
        if wanted == ANOTHER_ELEMENT {
            return Some(Self::ArrayChainLong);
        }
        Self::ALL.into_iter().find(|fault| fault.wanted() == wanted)
    }

    /// The error for a link back to an earlier element of its list.
    #[cold]
    pub(super) fn endless(link: usize, element: usize) -> Error {
        let found = format!("a link back to the element at {element}, so the list is endless");
        Error::malformed(ANOTHER_ELEMENT, found).at(link as u64).hint(Self::ArrayChainLong.name())
    }

    /// The error for reading more of a message than allowed.
    #[cold]
    pub(super) fn too_much(max: usize, asked: usize, at: usize) -> Error {
        let error = Error::limit(READINGS, max as u64, asked as u64);
        error.at(at as u64).hint(Self::TooManyElements.name())
    }

    /// The error for a message that was read.
    #[cold]
    pub(crate) fn malformed(self, at: usize, found: impl Into<String>) -> Error {
        Error::malformed(self.wanted(), found.into()).at(at as u64).hint(self.name())
    }

    /// The error for a value to be written.
    #[cold]
    pub(crate) fn value(self, found: impl Into<String>) -> Error {
        Error::value(self.wanted(), found.into()).hint(self.name())
    }
}
