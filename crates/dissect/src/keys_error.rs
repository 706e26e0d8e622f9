//! Errors of key files.

use std::fmt;

/// Why a key file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysError {
    /// A family's part of the file has faults.
    Faults(Vec<KeyFault>),
    /// Most of its lines cannot be read, so it is not a key file.
    NotAKeyFile {
        /// The number of lines that cannot be read.
        lines: usize,
    },
    /// The file has no keys.
    Empty,
}

impl KeysError {
    /// The error for a text with these faults. If the text contains little else, it is not a key
    /// file and only happens to resemble one in a line or two.
    pub(crate) fn of(text: &str, faults: Vec<KeyFault>) -> Self {
        /// Even a key file with a fault in every line has fewer faults.
        const MANY: usize = 16;
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        let count = faults.len();
        if count > MANY && count > lines / 2 {
            Self::NotAKeyFile { lines: count }
        } else {
            Self::Faults(faults)
        }
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faults(faults) => {
                let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::NotAKeyFile { lines } => write!(
                f,
                "not a key file: {lines} of its lines cannot be read; a key file has tables such \
                 as `[uru.auth]` and `[[ki.login]]`, or lines such as `Key.Auth.N = ...`"
            ),
            Self::Empty => f.write_str(
                "the file has no keys; a key file has tables such as `[uru.auth]`, `[[ki.login]]` \
                 and `[[mxo.session]]`, or lines such as `Key.Auth.N = ...`",
            ),
        }
    }
}

impl std::error::Error for KeysError {}

/// A fault in a family's part of a key file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyFault {
    /// Something in the text is wrong.
    Text {
        /// The line, from 1.
        line: usize,
        /// The character of the line, from 1.
        column: usize,
        /// What is wrong, and how to correct it.
        message: String,
    },
    /// This key differs from the one in an earlier file: `the auth key`.
    Conflict(String),
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { line, column, message } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            Self::Conflict(key) => write!(f, "{key} differs from the one in an earlier key file"),
        }
    }
}

impl std::error::Error for KeyFault {}

#[cfg(any(feature = "ki", feature = "mxo", feature = "tera"))]
impl From<&worldwire_core::Diagnostic> for KeyFault {
    fn from(error: &worldwire_core::Diagnostic) -> Self {
        let help = error.help_text().map_or(String::new(), |help| format!(" ({help})"));
        let message = format!("{}{help}", error.message());
        Self::Text { line: error.line(), column: error.column(), message }
    }
}

#[cfg(feature = "uru")]
impl From<&worldwire_uru::file::keys::KeyFileError> for KeyFault {
    fn from(error: &worldwire_uru::file::keys::KeyFileError) -> Self {
        let key = if error.key.is_empty() { String::new() } else { format!("{}: ", error.key) };
        let message = format!("{key}{}", error.fault);
        Self::Text { line: error.line, column: error.column, message }
    }
}
