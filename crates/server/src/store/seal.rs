//! The server's key, and what is sealed under it.
//!
//! Some clients send what stands for a password in a form that cannot be salted or stretched, so a
//! server has to be able to compute with the very digests. They are stored encrypted (AES-256-GCM)
//! under a key that is in a file of its own, not in the database: a stolen or lost copy of the
//! database alone lets nobody in. Whoever has both files has the passwords.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _};
use zeroize::Zeroizing;

/// The file of the key in a shard's folder.
pub const KEY_FILE: &str = "server.key";

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The key under which a server seals what it must not lose and must not show.
pub struct ServerKey(Aes256Gcm);

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKey(..)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("{}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{}: wanted a key of 64 hexadecimal digits, found something else", .0.display())]
    Form(PathBuf),
    /// Others can read the file.
    #[error("{}: wanted a file that only its owner can read (mode 0600), found mode {mode:04o}",
        file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

/// What was sealed under another key or for something else, or was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret was sealed under another server key")]
pub struct Unsealable;

impl ServerKey {
    /// Reads the key from a file, which is made with a fresh key if there is none. Nobody but its
    /// owner may read the file (where a system knows such modes).
    ///
    /// # Errors
    /// As [`KeyError`] says.
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
    ///
    /// # Errors
    /// As [`KeyError`] says.
    pub fn load(file: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { file: file.to_owned(), source };
        let open = File::open(file).map_err(failed)?;
        check_mode(&open, file)?;
        let mut text = Zeroizing::new(String::new());
        open.take(1024).read_to_string(&mut text).map_err(failed)?;
        let key = key_of(text.trim()).ok_or_else(|| KeyError::Form(file.to_owned()))?;
        Ok(Self::from_bytes(&key))
    }

    /// The key of these bytes.
    #[must_use]
    pub fn from_bytes(key: &[u8; KEY_BYTES]) -> Self {
        Self(Aes256Gcm::new(&(*key).into()))
    }

    /// Encrypts a secret. `nonce` is random and never used twice; `holder` is whose secret it is,
    /// so that nobody can give it to another one by changing the database.
    #[must_use]
    pub fn seal(&self, holder: &[u8], secret: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let mut sealed = nonce.to_vec();
        let payload = Payload { msg: secret, aad: holder };
        // Encryption fails for gigabytes only; nothing is a secret that opens for nobody.
        sealed.extend(self.0.encrypt(&nonce.into(), payload).unwrap_or_default());
        sealed
    }

    /// Decrypts what [`ServerKey::seal`] made.
    ///
    /// # Errors
    /// [`Unsealable`].
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

/// Writes the key into a new file; it is there for good before anything is sealed under it.
fn create(file: &Path, key: &[u8; KEY_BYTES]) -> io::Result<()> {
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES * 2 + 1));
    for byte in key {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    text.push('\n');
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(file)?;
    open.write_all(text.as_bytes())?;
    open.sync_all()?;
    #[cfg(unix)]
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(unix)]
fn check_mode(open: &File, file: &Path) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt as _;

    let failed = |source| KeyError::File { file: file.to_owned(), source };
    let mode = open.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(KeyError::Open { file: file.to_owned(), mode })
}

/// Folders of users are closed to others here as they are.
#[cfg(not(unix))]
fn check_mode(_open: &File, _file: &Path) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_for_its_holder_and_key_only() {
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
    fn a_key_file_is_made_once_and_for_its_owner() {
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
            assert!(error.to_string().ends_with("(mode 0600), found mode 0644"), "{error}");
            std::fs::set_permissions(&file, mode(0o600)).unwrap();
        }
        std::fs::write(&file, "0123").unwrap();
        assert!(matches!(ServerKey::load_or_create(&file), Err(KeyError::Form(_))));
    }
}
