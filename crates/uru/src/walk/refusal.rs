//! Why a message is refused.

use core::fmt;

use worldwire_core::Error;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It cannot be read: the sender's fault, or a limit.
    Malformed,
    /// It is, or holds, an object of a class that must not be forwarded.
    Class(u16),
    /// It holds an object of a class without a known layout, so what stands in and behind that
    /// object cannot be checked.
    UnknownInside(u16),
    /// It is a payload of a class that belongs into another net message, or none at all (0x8000).
    Wrapper(u16),
    /// It holds a text on which the reader of the client throws an exception that nobody catches.
    Text,
    /// It names an object in a page that belongs to one client only (sequence numbers 1 to 0x20).
    LocalObject,
    /// It is a command to the KI other than chat.
    KiCommand(u8),
    /// It runs a console command that is not on the list.
    ConsoleCommand,
}

/// A message that is refused: why, and where.
///
/// The text names the field, the place, what was wanted and what was found:
/// `trigger at byte 60: wanted a class that may be forwarded, found 0x0255`.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    error: Error,
}

impl Refusal {
    /// A refusal at a place of the payload. What the reason is about may have a name: a class, a
    /// console command.
    #[cold]
    pub(crate) fn at(reason: Reason, name: Option<&str>, offset: usize) -> Self {
        let class = |class: u16| match name {
            Some(name) => format!("{name} (0x{class:04x})"),
            None => format!("class 0x{class:04x}"),
        };
        let (wanted, found) = match reason {
            Reason::Malformed => ("a message that can be read", "another one".to_owned()),
            Reason::Class(index) => ("a class that may be forwarded", class(index)),
            Reason::UnknownInside(index) => ("a class with a known layout", class(index)),
            Reason::Wrapper(0x8000) => ("a payload", "none".to_owned()),
            Reason::Wrapper(index) => ("a payload that belongs here", class(index)),
            Reason::Text => ("text that the client can read", "bytes that are no UTF-8".to_owned()),
            Reason::LocalObject => {
                ("an object that others can know", "one of a page of one client only".to_owned())
            }
            Reason::KiCommand(command) => ("chat (0)", format!("KI command {command}")),
            Reason::ConsoleCommand => {
                let found = name.map_or_else(|| "another one".to_owned(), quoted);
                ("a console command on the list", found)
            }
        };
        Self { reason, error: Error::malformed(wanted, found).at(offset as u64) }
    }

    /// The refusal came out of the named field.
    #[cold]
    pub(crate) fn inside(self, name: &str) -> Self {
        Self { error: self.error.inside(name), ..self }
    }

    /// The refusal came out of an element of a list.
    #[cold]
    pub(crate) fn inside_item(self, index: usize) -> Self {
        Self { error: self.error.inside_item(index), ..self }
    }

    /// The place belongs to a layer of its own.
    #[cold]
    pub(crate) fn in_layer(self, layer: &str) -> Self {
        Self { error: self.error.in_layer(layer), ..self }
    }

    /// The path to the field, the place, what was wanted and what was found.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

/// A text of a client, for an error: no more of it than people read.
fn quoted(text: &str) -> String {
    const MAX: usize = 60;
    let start = text.get(..text.floor_char_boundary(MAX)).unwrap_or_default();
    format!("{start:?}{}", if start.len() < text.len() { "..." } else { "" })
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { reason: Reason::Malformed, error: error.closed() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.reason, self.error)
    }
}

impl std::error::Error for Refusal {}
