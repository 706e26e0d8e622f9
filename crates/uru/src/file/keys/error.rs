//! What can be wrong with a key file.

use std::fmt;

use crate::crypt::key::KeyError;
use crate::file::secure::SecureKeyError;

/// All that is wrong with a key file, in the order of the file. The file is at fault.
///
/// `Display` writes a line per fault.
#[derive(Debug)]
pub struct KeyFileErrors {
    errors: Vec<KeyFileError>,
}

impl KeyFileErrors {
    pub(super) fn new(errors: Vec<KeyFileError>) -> Self {
        Self { errors }
    }

    /// The faults, at least one.
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

/// One fault of a key file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyFileError {
    /// Line, from 1.
    pub line: usize,
    /// Character of the line where the value (or, if it has none, the key) begins, from 1.
    pub column: usize,
    /// The key as the file spells it; empty if there is none.
    pub key: String,
    /// What is wrong.
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

/// What is wrong at one place of a key file. None of them shows a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// The file is not TOML although it has our table.
    #[error("{message}")]
    Syntax {
        /// What the TOML reader says.
        message: String,
    },
    /// The value has another type.
    #[error("wanted {wanted}, found {found}")]
    Type {
        /// The type there must be.
        wanted: &'static str,
        /// The type there is.
        found: &'static str,
    },
    /// A name under `uru` that means nothing; probably misspelled.
    #[error("unknown key; wanted one of {wanted}")]
    UnknownKey {
        /// What there may be.
        wanted: &'static str,
    },
    /// A part of a session that is missing or is something else.
    #[error("wanted {wanted}")]
    Session {
        /// What there must be.
        wanted: &'static str,
    },
    /// The key does not tell which server it belongs to.
    #[error("wanted a key that names its server: auth, game or gatekeeper")]
    NoServer,
    /// A quote without an end.
    #[error("the quoted value has no closing quote")]
    Unterminated,
    /// There is no value.
    #[error("wanted a value, found the end of the line")]
    NoValue,
    /// A character that base64 does not have.
    #[error("wanted base64, found {found:?} as character {at}")]
    Base64Character {
        /// Which character of the value, from 1.
        at: usize,
        /// The character.
        found: char,
    },
    /// The base64 stops in the middle, or has too much or too little padding.
    #[error("wanted base64, found {found} characters that do not end properly")]
    Base64End {
        /// Characters of the value.
        found: usize,
    },
    /// The number is too short or too long.
    #[error("wanted 64 bytes, found {found}")]
    Length {
        /// Bytes there are.
        found: usize,
    },
    /// Something in a C array that is not a number from 0 to 255.
    #[error("wanted a number from 0 to 255 as element {at}")]
    Element {
        /// Which element, from 1.
        at: usize,
    },
    /// The droid key is not 32 hex digits.
    #[error("the droid key: {0}")]
    Droid(SecureKeyError),
    /// The number cannot be part of a key.
    #[error("{0}")]
    Key(KeyError),
    /// The modulus is not there, but a number that needs it is.
    #[error("the modulus n that belongs to it is missing")]
    MissingModulus,
    /// The modulus is alone.
    #[error(
        "a modulus alone is not a key: the server's secret (a or k) or the public value x is missing"
    )]
    MissingOther,
    /// More is wrong here and after, but a hundred faults are listed already.
    #[error("too many problems; the rest is not listed")]
    TooMany,
    /// The same number was given before, and is not the same.
    #[error("differs from the value in line {line}")]
    Conflict {
        /// Line of the first value.
        line: usize,
    },
}
