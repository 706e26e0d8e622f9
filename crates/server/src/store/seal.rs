//! The server's key, which seals secrets.
//!
//! Some clients send passwords in a form that cannot be salted or stretched, so the server needs
//! the digests themselves. They are stored encrypted (AES-256-GCM). The key is in a separate file,
//! so a stolen copy of the database alone is useless. With both files, an attacker has the
//! passwords.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use worldwire_core::value::push_hex;
use zeroize::Zeroizing;

use crate::folder::{reason, write_secret};

/// The name of the key's file in a server's directory.
pub const KEY_FILE: &str = "server.key";

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The key that seals a server's secrets.
pub struct ServerKey(Aes256Gcm);

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKey(..)")
    }
}

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("{}: {}", file.display(), reason(source))]
    File {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not contain a key.
    #[error("{}: must contain a key of 64 hexadecimal digits", .0.display())]
    Form(PathBuf),
    /// Other users can read the file.
    #[error("{}: must be readable only by its owner (mode 0600), but its mode is {mode:04o}",
        file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The file's mode.
        mode: u32,
    },
}

/// A secret that was sealed with another key or for another holder, or that has been altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret was encrypted with another server key")]
pub struct Unsealable;

impl ServerKey {
    /// Reads the key from a file, or creates the file with a new key. On Unix, the file must be
    /// readable only by its owner.
    pub fn load_or_create(file: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { file: file.to_owned(), source };
        match Self::load(file) {
            Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let mut key = Zeroizing::new([0; KEY_BYTES]);
                getrandom::fill(&mut *key).map_err(|error| failed(error.into()))?;
                create(file, &key).map_err(failed)?;
                Ok(Self::from_bytes(&key))
            }
            outcome => outcome,
        }
    }

    /// Reads the key from a file.
    pub fn load(file: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { file: file.to_owned(), source };
        let open = File::open(file).map_err(failed)?;
        check_mode(&open, file)?;
        let mut text = Zeroizing::new(String::new());
        open.take(1024).read_to_string(&mut text).map_err(failed)?;
        let key = key_of(text.trim()).ok_or_else(|| KeyError::Form(file.to_owned()))?;
        Ok(Self::from_bytes(&key))
    }

    /// Creates a key from its bytes.
    #[must_use]
    pub fn from_bytes(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes256Gcm::new(&(*key).into()))
    }

    /// Encrypts a secret. `nonce` must be random and must never be reused. `holder` identifies the
    /// owner, so that nobody can move a secret to another account in the database.
    #[must_use]
    pub fn seal(&self, holder: &[u8], secret: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let mut sealed = nonce.to_vec();
        let payload = Payload { msg: secret, aad: holder };
        // Encryption fails only if the secret has many gigabytes. In that case, the result is
        // empty, and nothing can decrypt it.
        sealed.extend(self.0.encrypt(&nonce.into(), payload).unwrap_or_default());
        sealed
    }

    /// Decrypts a secret from [`ServerKey::seal`].
    pub fn unseal(&self, holder: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unsealable> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(Unsealable)?;
        let payload = Payload { msg: text, aad: holder };
        let secret = self.0.decrypt(&(*nonce).into(), payload).map_err(|_| Unsealable)?;
        Ok(Zeroizing::new(secret))
    }
}

fn key_of(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if pairs.len() != KEY_BYTES || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in key.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
    }
    Some(key)
}

/// Writes the key to a new file, durably, before anything is sealed with it.
fn create(file: &Path, key: &[u8; KEY_BYTES]) -> io::Result<()> {
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES * 2 + 1));
    push_hex(&mut text, key);
    text.push('\n');
    write_secret(file, text.as_bytes())?;
    #[cfg(unix)]
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Refuses a file that contains a secret but that others can read.
#[cfg(unix)]
pub(crate) fn check_mode(open: &File, file: &Path) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt as _;

    let failed = |source| KeyError::File { file: file.to_owned(), source };
    let mode = open.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(KeyError::Open { file: file.to_owned(), mode })
}

/// On other systems, users' directories are private by default.
#[cfg(not(unix))]
pub(crate) fn check_mode(_open: &File, _file: &Path) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_open_only_for_their_holder_and_key() {
        let key = ServerKey::from_bytes(&[7; 32]);
        let mut sealed = key.seal(b"alice", b"digests", [1; 12]);
        assert!(!sealed.windows(7).any(|some| some == b"digests"));
        assert_eq!(&**key.unseal(b"alice", &sealed).unwrap(), b"digests");
        assert_eq!(key.unseal(b"bob", &sealed).unwrap_err(), Unsealable);
        assert!(ServerKey::from_bytes(&[8; 32]).unseal(b"alice", &sealed).is_err());
        assert!(key.unseal(b"alice", &sealed[..11]).is_err());
        sealed[13] ^= 1;
        assert!(key.unseal(b"alice", &sealed).is_err());
        assert_eq!(format!("{key:?}"), "ServerKey(..)");
    }

    #[test]
    fn a_key_file_is_created_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEY_FILE);
        let sealed = ServerKey::load_or_create(&file).unwrap().seal(b"a", b"b", [0; 12]);
        let again = ServerKey::load_or_create(&file).unwrap();
        assert_eq!(&**again.unseal(b"a", &sealed).unwrap(), b"b");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |mode| std::fs::Permissions::from_mode(mode);
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&file, mode(0o644)).unwrap();
            let error = ServerKey::load_or_create(&file).unwrap_err();
            assert!(error.to_string().ends_with("(mode 0600), but its mode is 0644"), "{error}");
            std::fs::set_permissions(&file, mode(0o600)).unwrap();
        }
        std::fs::write(&file, "0123").unwrap();
        assert!(matches!(ServerKey::load_or_create(&file), Err(KeyError::Form(_))));
    }
}
