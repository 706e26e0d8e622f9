//! Reasons for refusing a message.

use core::fmt;

use worldwire_core::Error;

/// The reason for refusing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The message cannot be read: the sender is at fault, or a limit was hit.
    Malformed,
    /// It is or contains an object of a class that must not be forwarded.
    Class(u16),
    /// It contains an object of a class without a known layout, so that object and everything after
    /// it cannot be checked.
    UnknownInside(u16),
    /// Its payload class belongs in a different net message, or there is no payload (0x8000).
    Wrapper(u16),
    /// It contains text that makes the client's reader throw an uncaught exception.
    Text,
    /// It names an object in a page that exists on one client only (sequence numbers 1 to 0x20).
    LocalObject,
    /// It names an object on a page that does not exist: a special number, or an unusable one.
    NoPage(u32),
    /// It is a KI command other than chat.
    KiCommand(u8),
    /// It runs a console command that is not on the list.
    ConsoleCommand,
}

/// A refused message, with the reason and the position.
///
/// The text names the field and its offset:
/// `trigger at byte 60: wanted a class that may be forwarded, found 0x0255`.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    error: Error,
}

impl Refusal {
    /// A refusal at an offset of the payload. `name` is the class or the console command concerned,
    /// if known.
    #[cold]
    pub(crate) fn at(reason: Reason, name: Option<&str>, offset: usize) -> Self {
        let class = |class: u16| match name {
            Some(name) => format!("{name} (0x{class:04x})"),
            None => format!("class 0x{class:04x}"),
        };
        let (wanted, found) = match reason {
            Reason::Malformed => ("a readable message", "an unreadable one".to_owned()),
            Reason::Class(index) => ("a class that may be forwarded", class(index)),
            Reason::UnknownInside(index) => ("a class with a known layout", class(index)),
            Reason::Wrapper(0x8000) => ("a payload", "none".to_owned()),
            Reason::Wrapper(index) => ("a payload that belongs here", class(index)),
            Reason::Text => {
                ("text that the client can read", "bytes that are not UTF-8".to_owned())
            }
            Reason::LocalObject => {
                ("an object that all clients know", "one that exists on a single client".to_owned())
            }
            Reason::NoPage(page) => ("an object on a page of an age", format!("page 0x{page:x}")),
            Reason::KiCommand(command) => ("chat (0)", format!("KI command {command}")),
            Reason::ConsoleCommand => {
                let found = name.map_or_else(|| "a different one".to_owned(), quoted);
                ("a console command on the list", found)
            }
        };
        Self { reason, error: Error::malformed(wanted, found).at(offset as u64) }
    }

    /// Adds the field that the refusal came from to the path.
    #[cold]
    pub(crate) fn inside(self, name: &str) -> Self {
        Self { error: self.error.inside(name), ..self }
    }

    /// Adds the list element that the refusal came from to the path.
    #[cold]
    pub(crate) fn inside_item(self, index: usize) -> Self {
        Self { error: self.error.inside_item(index), ..self }
    }

    /// Marks the offset as belonging to a different layer.
    #[cold]
    pub(crate) fn in_layer(self, layer: &str) -> Self {
        Self { error: self.error.in_layer(layer), ..self }
    }

    /// The error: the path to the field, its offset, and what was expected and found.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }
}

/// Quotes text from a client for an error, shortened to a readable length.
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
