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
    /// All faults of the file, each with line and column; [`KeysError::Nothing`] when it holds no
    /// key at all.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let ki = KeyFile::parse("keys", text).map_err(KeysError::Ki)?;
        let uru = KeyRing::parse(text).map_err(KeysError::Uru)?;
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
    /// There is no key in the file.
    Nothing,
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
            Self::Nothing => f.write_str(
                "wanted keys such as `Key.Auth.N = ...` or `[uru.auth]`, found none; \
                 `worldwire uru keys generate` makes some",
            ),
        }
    }
}

impl std::error::Error for KeysError {}
