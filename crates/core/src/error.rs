//! Errors of decoding and encoding, with their position.

use core::fmt::{self, Write as _};
use std::borrow::Cow;

/// The result of decoding or encoding.
pub type Result<T, E = Error> = core::result::Result<T, E>;

type Text = Cow<'static, str>;

/// A failure to decode or encode.
///
/// An error names the message and field, the byte (and bit) and the layer, and states what was
/// wanted there and what was found. Its text is built only when it is shown, so an error is cheap
/// enough to signal that a stream needs more bytes ([`Error::needed`]).
///
/// ```
/// use worldwire_core::Reader;
/// let error = Reader::new(&[1, 2]).u32("transId").unwrap_err();
/// assert_eq!(error.needed(), Some(2));
/// assert_eq!(error.to_string(), "transId at byte 0: wanted 4 bytes, found 2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    /// Innermost step first: scopes add themselves while the error passes through them.
    path: Vec<Step>,
    /// Whether the path starts at the message, so scopes add nothing.
    is_absolute: bool,
    subject: Option<Text>,
    layer: Option<Box<str>>,
    offset: Option<u64>,
    bit: u8,
    wanted: Text,
    found: Text,
    hint: Option<Text>,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes end before the value does. In a stream this is not a failure: wait for at least
    /// `needed` more bytes and try again.
    Incomplete {
        /// The minimum number of missing bytes; never 0.
        needed: usize,
    },
    /// The bytes are not a valid value: the sender or the file is at fault, or the wrong codec was
    /// used.
    Malformed,
    /// A limit was exceeded: the sender asked for more than this side accepts.
    Limit {
        /// The name of the limit, from [`Limits`](crate::Limits) or the format.
        name: &'static str,
        /// The limit.
        limit: u64,
        /// The requested amount.
        asked: u64,
    },
    /// A value cannot be encoded: the caller or its JSON is at fault.
    Value,
}

/// One step of the path from a message to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A named field.
    Field(Box<str>),
    /// An element of a list, counted from 0.
    Item(usize),
}

impl Error {
    /// The bytes end too early: a value takes `want` bytes, and only `have` are left.
    #[cold]
    #[must_use]
    pub fn incomplete(want: usize, have: usize) -> Self {
        let needed = want.saturating_sub(have).max(1);
        Self::of(ErrorKind::Incomplete { needed })
            .expecting(byte_count(want as u64), have.to_string())
    }

    /// The bytes are not a valid value.
    #[cold]
    #[must_use]
    pub fn malformed(wanted: impl Into<Text>, found: impl Into<Text>) -> Self {
        Self::of(ErrorKind::Malformed).expecting(wanted, found)
    }

    /// A value that cannot be encoded.
    #[cold]
    #[must_use]
    pub fn value(wanted: impl Into<Text>, found: impl Into<Text>) -> Self {
        Self::of(ErrorKind::Value).expecting(wanted, found)
    }

    /// A value that cannot be encoded, with a whole sentence about what is wrong.
    #[cold]
    #[must_use]
    pub fn invalid(problem: impl Into<Text>) -> Self {
        Self::of(ErrorKind::Value).expecting("", problem)
    }

    /// The limit called `name` was exceeded.
    #[cold]
    #[must_use]
    pub fn limit(name: &'static str, limit: u64, asked: u64) -> Self {
        Self::of(ErrorKind::Limit { name, limit, asked })
            .expecting(format!("at most {limit} ({name})"), asked.to_string())
    }

    fn of(kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            path: Vec::new(),
            is_absolute: false,
            subject: None,
            layer: None,
            offset: None,
            bit: 0,
            wanted: Cow::Borrowed(""),
            found: Cow::Borrowed(""),
            hint: None,
        }))
    }

    fn expecting(mut self, wanted: impl Into<Text>, found: impl Into<Text>) -> Self {
        self.0.wanted = wanted.into();
        self.0.found = found.into();
        self
    }

    /// Sets the position to a byte of the current layer, unless it is already set.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        self.at_bit(offset, 0)
    }

    /// Sets the position to a bit, unless it is already set.
    #[must_use]
    pub fn at_bit(mut self, offset: u64, bit: u8) -> Self {
        if self.0.offset.is_none() {
            self.0.offset = Some(offset);
            self.0.bit = bit;
        }
        self
    }

    /// Adds `base` bytes to the position, for a message taken from a longer stream.
    #[must_use]
    pub fn based(mut self, base: u64) -> Self {
        if self.0.layer.is_none()
            && let Some(offset) = &mut self.0.offset
        {
            *offset = offset.saturating_add(base);
        }
        self
    }

    /// Adds a field to the path. Every scope calls this as the error leaves it, innermost first.
    /// The empty name (an element of a list) adds nothing.
    #[must_use]
    pub fn inside(mut self, name: &str) -> Self {
        if !name.is_empty() && !self.0.is_absolute {
            self.0.path.push(Step::Field(name.into()));
        }
        self
    }

    /// Adds an element of a list to the path.
    #[must_use]
    pub fn inside_item(mut self, index: usize) -> Self {
        if !self.0.is_absolute {
            self.0.path.push(Step::Item(index));
        }
        self
    }

    /// Declares the path complete, so [`inside`](Self::inside) adds nothing more. Used for an error
    /// that passes through scopes that do not enclose its field.
    #[must_use]
    pub fn absolute(mut self) -> Self {
        self.0.is_absolute = true;
        self
    }

    /// Sets the layer of the position, unless it is already set.
    #[must_use]
    pub fn in_layer(mut self, layer: &str) -> Self {
        if self.0.layer.is_none() {
            self.0.layer = Some(layer.into());
        }
        self
    }

    /// Sets the message or file that the error is about, unless it is already set.
    #[must_use]
    pub fn about(mut self, subject: impl Into<Text>) -> Self {
        if self.0.subject.is_none() {
            self.0.subject = Some(subject.into());
        }
        self
    }

    /// Adds advice on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Text>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Turns an incomplete value into a malformed one, for data that can no longer grow.
    #[must_use]
    pub fn closed(mut self) -> Self {
        if matches!(self.0.kind, ErrorKind::Incomplete { .. }) {
            self.0.kind = ErrorKind::Malformed;
        }
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// For an incomplete value, the minimum number of missing bytes.
    #[must_use]
    pub fn needed(&self) -> Option<usize> {
        match self.0.kind {
            ErrorKind::Incomplete { needed } => Some(needed),
            _ => None,
        }
    }

    /// The byte offset in the layer, if the error has a position.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The bit inside that byte, 0 being the least significant.
    #[must_use]
    pub fn bit(&self) -> u8 {
        self.0.bit
    }

    /// The layer of the offset, unless it is the first layer.
    #[must_use]
    pub fn layer(&self) -> Option<&str> {
        self.0.layer.as_deref()
    }

    /// The message or file the error is about.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The expected input; empty if the error is a sentence, see [`invalid`](Self::invalid).
    #[must_use]
    pub fn wanted(&self) -> &str {
        &self.0.wanted
    }

    /// The actual input, or the sentence.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.found
    }

    /// The advice on what to do next, if there is any; see [`hint`](Self::hint).
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The path to the field, outermost step first.
    pub fn path(&self) -> impl Iterator<Item = &Step> {
        self.0.path.iter().rev()
    }

    /// The path as text: `ages[3].filename`. Empty if the error is about the message itself.
    #[must_use]
    pub fn path_text(&self) -> String {
        let mut text = String::new();
        for step in self.path() {
            let _ = match step {
                Step::Field(name) if text.is_empty() => write!(text, "{name}"),
                Step::Field(name) => write!(text, ".{name}"),
                Step::Item(index) => write!(text, "[{index}]"),
            };
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(subject) = &inner.subject {
            write!(f, "{subject}: ")?;
        }
        let path = self.path_text();
        f.write_str(&path)?;
        if let Some(offset) = inner.offset {
            let gap = if path.is_empty() { "" } else { " " };
            write!(f, "{gap}at byte {offset}")?;
            if inner.bit != 0 {
                write!(f, " bit {}", inner.bit)?;
            }
            if let Some(layer) = &inner.layer {
                write!(f, " of {layer}")?;
            }
        }
        if !path.is_empty() || inner.offset.is_some() {
            f.write_str(": ")?;
        }
        match &*inner.wanted {
            "" => f.write_str(&inner.found)?,
            wanted => write!(f, "wanted {wanted}, found {}", inner.found)?,
        }
        if let Some(hint) = &inner.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

/// A number of bytes, for messages: `1 byte`, `4 bytes`.
#[must_use]
pub fn byte_count(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes after the expected end, for messages: `1 more byte`, `4 more bytes`.
#[must_use]
pub fn more_bytes(count: u64) -> String {
    format!("{count} more byte{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_in_one_line() {
        let error = Error::malformed("an even byte count", "7")
            .at(12)
            .inside("filename")
            .inside_item(3)
            .inside("ages")
            .about("auth.PublicAgeList")
            .hint("is the build right?");
        assert_eq!(
            error.to_string(),
            "auth.PublicAgeList: ages[3].filename at byte 12: wanted an even byte count, found 7; \
             is the build right?"
        );
    }

    #[test]
    fn the_first_position_and_subject_are_kept() {
        let error = Error::limit("elements", 512, 513).at(4).at(9).about("a").about("b");
        assert_eq!(error.offset(), Some(4));
        assert_eq!(error.subject(), Some("a"));
        assert_eq!(error.based(100).offset(), Some(104));
    }

    #[test]
    fn an_absolute_path_stays() {
        let error = Error::malformed("a", "b").inside_item(3).inside("ages").absolute();
        assert_eq!(error.inside("filename").inside_item(1).path_text(), "ages[3]");
    }

    #[test]
    fn closing_turns_incomplete_into_malformed() {
        let error = Error::incomplete(8, 3);
        assert_eq!(error.needed(), Some(5));
        assert_eq!(error.closed().kind(), ErrorKind::Malformed);
    }
}
