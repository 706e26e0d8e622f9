//! A shard's keys, which the first start generates, and the lines that clients need.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use getrandom::SysRng;
use rand_core::UnwrapErr;
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::{KeyFileErrors, KeyFileFormat, KeyRing};
use worldwire_uru::file::secure::SecureKey;

use super::config::{PORT, ShardConfig};
use crate::folder::{reason, write_secret};

/// The services that have keys.
const KINDS: [ServerKind; 3] = [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game];

/// Keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file cannot be read or written.
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
    /// The file is not a valid key file.
    #[error("{0}")]
    Format(KeyFileErrors),
    /// A key is missing.
    #[error("has no {0} key; a shard needs gatekeeper, auth, game and droid keys")]
    Missing(&'static str),
    /// The file contains only the public half of a key.
    #[error(
        "has only the public {0} key, as a client's server.ini does; a shard also needs its secret"
    )]
    Public(&'static str),
}

/// Generates keys. Safe primes take a moment.
#[must_use]
pub fn generate(primes: PrimeKind) -> KeyRing {
    // Panics if the system cannot supply random numbers.
    let mut random = UnwrapErr(SysRng);
    let mut ring = KeyRing::new();
    for kind in KINDS {
        ring.insert_private(PrivateKey::generate(kind, primes, &mut random));
    }
    ring.set_droid(SecureKey::generate(&mut random));
    ring
}

/// Reads a shard's keys, in any format that [`KeyRing::parse`] accepts.
pub fn load(file: &Path) -> Result<KeyRing, KeysError> {
    let text = fs::read_to_string(file)?;
    let ring = KeyRing::parse(&text).map_err(KeysError::Format)?;
    for kind in KINDS {
        if ring.private(kind).is_none() {
            let name = kind.name();
            return Err(match ring.public(kind) {
                Some(_) => KeysError::Public(name),
                None => KeysError::Missing(name),
            });
        }
    }
    if ring.droid().is_none() {
        return Err(KeysError::Missing("droid"));
    }
    Ok(ring)
}

/// Writes keys to a new file that only its owner can read.
///
/// # Errors
/// The file system's errors, including one if the file exists.
pub fn save(ring: &KeyRing, file: &Path) -> io::Result<()> {
    write_secret(file, ring.format(KeyFileFormat::Toml).as_bytes())
}

/// The lines that a client's `server.ini` needs for a shard.
#[must_use]
pub fn server_ini(ring: &KeyRing, config: &ShardConfig) -> String {
    let mut text = String::new();
    let host = config.host();
    if config.public_port() != PORT {
        let _ = writeln!(text, "Server.Port {}", config.public_port());
    }
    if let Some(status) = config.public_status() {
        let _ = writeln!(text, "Server.Status \"http://{status}/welcome\"");
    }
    for service in ["File", "Auth", "Gate"] {
        let _ = writeln!(text, "Server.{service}.Host \"{host}\"");
    }
    text.push_str(&ring.format(KeyFileFormat::ServerIni));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_saved_and_clients_get_the_public_half() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.toml");
        let ring = generate(PrimeKind::Plain);
        save(&ring, &file).unwrap();
        assert!(save(&ring, &file).is_err(), "an existing file is not overwritten");
        let read = load(&file).unwrap();
        assert_eq!(*read.format(KeyFileFormat::Toml), *ring.format(KeyFileFormat::Toml));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let config = ShardConfig { listen: "127.0.0.1:9".parse().unwrap(), ..Default::default() };
        let ini = server_ini(&ring, &config);
        assert!(ini.starts_with(
            "Server.Port 9\nServer.Status \"http://127.0.0.1:14680/welcome\"\n\
             Server.File.Host \"127.0.0.1\"\n"
        ));
        for name in ["Server.Gate.N", "Server.Auth.X", "Server.Game.N"] {
            assert!(ini.contains(name), "{name}");
        }
        let client = KeyRing::parse(&ini).unwrap();
        assert!(client.private(ServerKind::Auth).is_none());
        assert_eq!(client.public(ServerKind::Auth), ring.public(ServerKind::Auth));

        fs::write(&file, "Key.Droid = 31415926535897932384626433832795\n").unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.starts_with("has no gatekeeper key"), "{error}");
    }
}
