//! The server's keys: files in its directory. The first start generates those that the operator
//! does not supply.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use worldwire_core::{Reader, Writer};
use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random, RsaError};
use worldwire_mxo::file::{
    MAX_PRIVATE_KEY_BYTES, PrivateKeyError, PublicKeyFile, format_private_key, parse_private_key,
};
use zeroize::Zeroizing;

use super::config::KeySettings;
use crate::folder::{reason, replace, write_secret};
use crate::store::seal::{KeyError, check_mode};

/// The name of the signed public key in a server's directory, and in a client's.
pub const PUBLIC_KEY_FILE: &str = "pubkey.dat";

/// Keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{}: {}", file.display(), reason(source))]
    Io {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Other users can read a private key.
    #[error(transparent)]
    Open(#[from] KeyError),
    /// A file does not contain a suitable private key.
    #[error("{}: {error}", file.display())]
    Private {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: PrivateKeyError,
    },
    /// `pubkey.dat` cannot be read.
    #[error("{}: {error}", file.display())]
    Public {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: worldwire_core::Error,
    },
    /// The public key belongs to another server key, and there is no signing key to sign a new one.
    #[error(
        "{}: belongs to another server key; to sign this server's key, supply the signing key as \
         {}, or remove pubkey.dat to have both generated", file.display(), signing.display()
    )]
    Foreign {
        /// `pubkey.dat`.
        file: PathBuf,
        /// The missing signing key.
        signing: PathBuf,
    },
    /// A key could not be generated or used.
    #[error("cannot sign the server key: {0}")]
    Rsa(#[from] RsaError),
    /// The system cannot supply random numbers.
    #[error("cannot get random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// A server's keys.
#[derive(Debug)]
pub struct ServerKeys {
    /// Decrypts login requests and signs certificates.
    pub server: PrivateKey,
    /// The signed public half of the server key, which clients need.
    pub public_key: PublicKeyFile,
    /// Whether a key was generated. If so, clients need the new `pubkey.dat`.
    pub are_new: bool,
}

impl ServerKeys {
    /// Reads the keys and generates those that are missing. Files with private keys must be readable
    /// only by their owner. Generating the signing key takes seconds.
    ///
    /// A missing signing key is not needed if `pubkey.dat` belongs to the server key.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn load_or_create(folder: &Path, settings: &KeySettings) -> Result<Self, KeysError> {
        let signing_file = folder.join(&settings.signing);
        let server_file = folder.join(&settings.server);
        let public_file = folder.join(PUBLIC_KEY_FILE);
        let mut random = random()?;
        let signing = read_private(KeyUse::Signing, &signing_file)?;
        let found = read_private(KeyUse::Server, &server_file)?;
        let public_key = read_public(&public_file)?;
        let mut are_new = found.is_none();
        let server = match found {
            Some(key) => key,
            None => create(KeyUse::Server, &server_file, &mut random)?,
        };
        let is_own = |public_key: &PublicKeyFile| {
            public_key.modulus[..] == server.public().modulus()
                && public_key.key_id == settings.id
                && signing.as_ref().is_none_or(|key| public_key.is_signed_by(key.public()))
        };
        let fits = public_key.as_ref().map(is_own);
        let public_key = match (public_key, signing) {
            (Some(public_key), _) if fits == Some(true) => public_key,
            (Some(_), None) => {
                return Err(KeysError::Foreign { file: public_file, signing: signing_file });
            }
            (_, signing) => {
                are_new = true;
                let signing = match signing {
                    Some(key) => key,
                    None => create(KeyUse::Signing, &signing_file, &mut random)?,
                };
                let signed =
                    PublicKeyFile::sign(settings.id, server.public(), &signing, &mut random)?;
                let bytes = public_bytes(&signed);
                let io = |source| KeysError::Io { file: public_file.clone(), source };
                replace(&public_file, &bytes).map_err(io)?;
                signed
            }
        };
        Ok(Self { server, public_key, are_new })
    }
}

/// The bytes of `pubkey.dat`.
#[must_use]
pub fn public_bytes(public_key: &PublicKeyFile) -> Vec<u8> {
    let mut writer = Writer::new();
    let written = public_key.encode(&mut writer);
    debug_assert!(written.is_ok(), "all its fields have fixed sizes");
    writer.into_bytes()
}

/// Reads `pubkey.dat`; `None` if there is none.
///
/// # Errors
/// [`KeysError::Io`] and [`KeysError::Public`].
pub fn read_public(file: &Path) -> Result<Option<PublicKeyFile>, KeysError> {
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(KeysError::Io { file: file.to_owned(), source }),
    };
    let mut reader = Reader::new(&bytes);
    let public_key = PublicKeyFile::decode(&mut reader).and_then(|found| {
        reader.end()?;
        Ok(found)
    });
    let wrong = |error: worldwire_core::Error| KeysError::Public {
        file: file.to_owned(),
        error: error.closed(),
    };
    public_key.map(Some).map_err(wrong)
}

/// Reads a private key, which only its owner may read; `None` if there is none.
///
/// # Errors
/// [`KeysError::Io`], [`KeysError::Open`] and [`KeysError::Private`].
pub fn read_private(purpose: KeyUse, file: &Path) -> Result<Option<PrivateKey>, KeysError> {
    let io = |source| KeysError::Io { file: file.to_owned(), source };
    match File::open(file) {
        Ok(open) => check_mode(&open, file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io(source)),
    }
    let bytes = Zeroizing::new(read(file).map_err(io)?);
    let key = parse_private_key(purpose, &bytes);
    key.map(Some).map_err(|error| KeysError::Private { file: file.to_owned(), error })
}

/// Reads a file up to one byte past the maximum size of a private key.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_PRIVATE_KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Generates a private key and writes it to a new file.
fn create(purpose: KeyUse, file: &Path, random: &mut Random) -> Result<PrivateKey, KeysError> {
    let key = PrivateKey::generate(purpose, random)?;
    let text = format_private_key(&key)?;
    let io = |source| KeysError::Io { file: file.to_owned(), source };
    write_secret(file, text.as_bytes()).map_err(io)?;
    Ok(key)
}

/// A generator with a seed from the operating system.
///
/// # Errors
/// The system cannot supply random numbers.
pub(super) fn random() -> Result<Random, getrandom::Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(Random::new(seed))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn settings() -> KeySettings {
        KeySettings::default()
    }

    /// Generating a signing key is slow, so this uses one from the conformance vectors.
    fn write_signing_key(folder: &Path) -> PrivateKey {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/mxo-login/keys.json");
        let json: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let number = |part: &str| {
            let digits = json["signing_2048"][part].as_str().unwrap();
            worldwire_core::value::parse_hex(digits).unwrap()
        };
        let key = PrivateKey::from_exponent(KeyUse::Signing, &number("n"), &number("d")).unwrap();
        let text = format_private_key(&key).unwrap();
        write_secret(&folder.join("signing.pem"), text.as_bytes()).unwrap();
        key
    }

    #[test]
    fn missing_keys_are_generated_once() {
        let folder = tempfile::tempdir().unwrap();
        let signing = write_signing_key(folder.path());
        let first = ServerKeys::load_or_create(folder.path(), &settings()).unwrap();
        assert!(first.are_new && first.public_key.is_signed_by(signing.public()));
        let again = ServerKeys::load_or_create(folder.path(), &settings()).unwrap();
        assert!(!again.are_new);
        assert_eq!(again.public_key, first.public_key);
        assert_eq!(fs::read(folder.path().join(PUBLIC_KEY_FILE)).unwrap().len(), 396);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = folder.path().join("auth.pem");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let error = ServerKeys::load_or_create(folder.path(), &settings()).unwrap_err();
            assert!(error.to_string().ends_with("but its mode is 0644"), "{error}");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        // Another ID needs a new signature. Without the signing key, the old file must match the
        // configuration.
        let other = KeySettings { id: 9, ..settings() };
        let signed = ServerKeys::load_or_create(folder.path(), &other).unwrap();
        assert!(signed.are_new && signed.public_key.key_id == 9);
        fs::remove_file(folder.path().join("signing.pem")).unwrap();
        assert!(!ServerKeys::load_or_create(folder.path(), &other).unwrap().are_new);
        let error = ServerKeys::load_or_create(folder.path(), &settings()).unwrap_err();
        assert!(matches!(error, KeysError::Foreign { .. }), "{error}");
    }

    #[test]
    fn unsuitable_files_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = || ServerKeys::load_or_create(folder.path(), &settings()).unwrap_err();
        fs::write(folder.path().join(PUBLIC_KEY_FILE), [0; 10]).unwrap();
        assert!(matches!(error(), KeysError::Public { .. }));
        write_secret(&folder.path().join("auth.pem"), b"no key").unwrap();
        let error = error();
        assert!(matches!(error, KeysError::Private { .. }), "{error}");
    }
}
