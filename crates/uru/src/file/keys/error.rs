//! Errors in key files.

use std::fmt;

use crate::crypt::key::KeyError;
use crate::file::secure::SecureKeyError;

/// All errors in a key file, in file order.
///
/// `Display` writes one line per error.
#[derive(Debug)]
pub struct KeyFileErrors {
    errors: Vec<KeyFileError>,
}

impl KeyFileErrors {
    pub(super) fn new(errors: Vec<KeyFileError>) -> Self {
        Self { errors }
    }

    /// The errors; there is at least one.
    #[must_use]
    pub fn errors(&self) -> &[KeyFileError] {
        &self.errors
    }
}

impl fmt::Display for KeyFileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for KeyFileErrors {}

/// One error in a key file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyFileError {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line where the value (or else the key) begins, from 1.
    pub column: usize,
    /// The key as spelled in the file; empty if the line has none.
    pub key: String,
    /// The problem.
    pub fault: KeyFault,
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for KeyFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// The problem at one position of a key file. No variant reveals a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// The file contains worldwire's table but is not valid TOML.
    #[error("{message}")]
    Syntax {
        /// The message of the TOML parser.
        message: String,
    },
    /// The file is TOML, which only the feature `toml` can read.
    #[error("keys in TOML require a build with the feature `toml`")]
    NoToml,
    /// The value has the wrong type.
    #[error("wanted {wanted}, found {found}")]
    Type {
        /// The expected type.
        wanted: &'static str,
        /// The actual type.
        found: &'static str,
    },
    /// An unknown name under `uru`, probably misspelt.
    #[error("unknown key; use one of {wanted}")]
    UnknownKey {
        /// The valid names.
        wanted: &'static str,
    },
    /// A part of a session is missing or malformed.
    #[error("wanted {wanted}")]
    Session {
        /// The expected content.
        wanted: &'static str,
    },
    /// The key does not name the server it belongs to.
    #[error("the key does not name its server: auth, game or gatekeeper")]
    NoServer,
    /// A quote is not closed.
    #[error("the quoted value has no closing quote")]
    Unterminated,
    /// The value is missing.
    #[error("the value is missing")]
    NoValue,
    /// A character that base64 does not use.
    #[error("invalid base64: {found:?} at character {at}")]
    Base64Character {
        /// The position of the character in the value, from 1.
        at: usize,
        /// The character.
        found: char,
    },
    /// The base64 is truncated, or its padding is wrong.
    #[error("invalid base64: truncated or wrongly padded after {found} characters")]
    Base64End {
        /// The number of characters in the value.
        found: usize,
    },
    /// The number has the wrong length.
    #[error("wanted 64 bytes, found {found}")]
    Length {
        /// The actual number of bytes.
        found: usize,
    },
    /// An element of a C array is not a number from 0 to 255.
    #[error("array element {at} is not a number from 0 to 255")]
    Element {
        /// The position of the element, from 1.
        at: usize,
    },
    /// The droid key does not consist of 32 hex digits.
    #[error("the droid key: {0}")]
    Droid(SecureKeyError),
    /// The number is not valid in a key.
    #[error("{0}")]
    Key(KeyError),
    /// The modulus is missing, but another number needs it.
    #[error("its modulus n is missing")]
    MissingModulus,
    /// Only the modulus is given.
    #[error("a modulus alone is not a key; add the server's secret (a or k) or the public value x")]
    MissingOther,
    /// There are further errors, but the maximum number has been listed.
    #[error("too many errors; the rest are not listed")]
    TooMany,
    /// An earlier line gives a different value for the same number.
    #[error("differs from the value on line {line}")]
    Conflict {
        /// The line of the first value.
        line: usize,
    },
}
