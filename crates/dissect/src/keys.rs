//! Secrets that decrypt traffic and files.

use std::fmt;
use std::sync::Arc;

use worldwire_core::Diagnostic;
use worldwire_ki::crypt::keys::KeyFile;
use worldwire_uru::file::keys::{KeyFileErrors, KeyRing};

/// The keys of all families, as a user's key file gives them.
///
/// One file can hold the keys of several families; each reads its own part. Besides the project's
/// own TOML form every spelling that a family knows is accepted.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// KI: encrypted connections, and accounts.
    pub ki: Arc<KeyFile>,
    /// Uru: the private keys of a shard.
    pub uru: Arc<KeyRing>,
}

impl Keys {
    /// No keys.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// All faults of the file, each with line and column; [`KeysError::NoKeyFile`] when most of its
    /// lines are at fault, [`KeysError::Nothing`] when it holds no key at all.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let ki = KeyFile::parse("keys", text)
            .map_err(|errors| KeysError::of(text, errors.len(), KeysError::Ki(errors)))?;
        let uru = KeyRing::parse(text).map_err(|errors| {
            KeysError::of(text, errors.to_string().lines().count(), KeysError::Uru(errors))
        })?;
        if ki.is_empty() && uru.is_empty() {
            return Err(KeysError::Nothing);
        }
        Ok(Self { ki: Arc::new(ki), uru: Arc::new(uru) })
    }
}

/// Why a key file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeysError {
    /// The part of KI has faults.
    Ki(Vec<Diagnostic>),
    /// The part of Uru has faults.
    Uru(KeyFileErrors),
    /// It is some other file: so many of its lines cannot be read.
    NoKeyFile {
        /// The lines.
        lines: usize,
    },
    /// There is no key in the file.
    Nothing,
}

impl KeysError {
    /// The error for a text with so many faults. One that has little but faults is something else
    /// and merely looks like a key file in a line or two.
    fn of(text: &str, faults: usize, error: Self) -> Self {
        /// A key file in which everything is wrong has fewer.
        const MANY: usize = 16;
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        if faults > MANY && faults > lines / 2 { Self::NoKeyFile { lines: faults } } else { error }
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ki(errors) => {
                let line = |error: &Diagnostic| {
                    let (line, column) = (error.line(), error.column());
                    format!("line {line}, column {column}: {}", error.message())
                };
                f.write_str(&errors.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            Self::Uru(errors) => errors.fmt(f),
            Self::NoKeyFile { lines } => write!(
                f,
                "not a key file: {lines} of its lines cannot be read; a key file has tables such \
                 as `[uru.auth]` and `[[ki.login]]`, or lines such as `Key.Auth.N = ...`"
            ),
            Self::Nothing => f.write_str(
                "wanted keys such as `Key.Auth.N = ...` or `[uru.auth]`, found none; \
                 `worldwire uru keys generate` makes some",
            ),
        }
    }
}

impl std::error::Error for KeysError {}

#[cfg(test)]
mod tests {
    use super::Keys;

    #[test]
    fn another_file_is_told_in_one_line() {
        let readme = include_str!("../../../README.md");
        let error = Keys::parse(readme).unwrap_err().to_string();
        assert!(error.starts_with("not a key file: ") && error.lines().count() == 1, "{error}");
        let typing_error = "[uru.auth]\nn = 3\nodd\n";
        let error = Keys::parse(typing_error).unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
    }
}
