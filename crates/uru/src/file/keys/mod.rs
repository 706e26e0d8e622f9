//! A shard's key files: reads all known formats, and writes most of them.
//!
//! [`KeyRing::parse`] detects the format from the content, not the file name:
//!
//! | from | format | byte order |
//! |---|---|---|
//! | this project | TOML: `[uru.auth]` with `n`, `a`, `x`, `[uru]` with `droid`, `[[uru.session]]` | big |
//! | dirtsand | `Key.Auth.N = ...`, `Key.Auth.K = ...`, `Key.Droid = ...` | big |
//! | moulars | `auth.n = "..."`, `auth.k = "..."`, in a section or not | big |
//! | NAGUS | `key_n`, `key_a` in a section per server | big |
//! | H'uru `server.ini` | `Server.Auth.N "..."`, `Server.Auth.X "..."` | big |
//! | OpenUru source | C arrays `kAuthDhNData`, `kAuthDhXData`, or `kDhNData` in a scope | little |
//!
//! Numbers are 64 bytes: base64 in text formats, 64 elements in C arrays. The droid key is 32 hex
//! digits. The servers are `auth`, `game`, `gatekeeper` (or `gate`) and `csr`; case matters only in
//! TOML. `n` is the modulus, `a` or `k` the server's secret, `x` the public value. A file may hold
//! the keys of any servers and mix the line-based formats; TOML and C cannot be mixed with others.
//! Other lines and tables are ignored, so a server's whole configuration can be read, and other
//! families can keep their keys in the same TOML file.
//!
//! ```
//! use worldwire_uru::crypt::key::ServerKind;
//! use worldwire_uru::file::keys::KeyRing;
//!
//! let ring = KeyRing::parse("Key.Droid = 31415926535897932384626433832795\n")?;
//! assert!(ring.droid().is_some() && ring.private(ServerKind::Auth).is_none());
//!
//! let errors = KeyRing::parse("Key.Auth.N = AAAA\nKey.Game.K = ?\n").unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "line 1, column 14: Key.Auth.N: wanted 64 bytes, found 3\n\
//!      line 2, column 14: Key.Game.K: invalid base64: '?' at character 1\n\
//!      line 2, column 14: Key.Game.K: its modulus n is missing"
//! );
//! # Ok::<(), worldwire_uru::file::keys::KeyFileErrors>(())
//! ```
//!
//! A session is one captured connection, identified by the seed that its server sent. Its key
//! decrypts only that connection, so it can be shared when a server's secret cannot:
//!
//! ```toml
//! [[uru.session]]
//! service = "auth"
//! seed = "01020304050607"
//! key = "08090a0b0c0d0e"
//! ```
//!
//! Error messages never contain keys, only what is wrong with them.

mod array;
mod collect;
mod error;
mod lines;
#[cfg(feature = "toml")]
mod table;
mod write;

pub use error::{KeyFault, KeyFileError, KeyFileErrors};
pub use write::KeyFileFormat;

use std::collections::BTreeMap;

use crate::crypt::exchange::{SESSION_KEY_BYTES, SessionKey};
use crate::crypt::key::{PrivateKey, PublicKey, ServerKind};
use crate::file::secure::SecureKey;
use crate::frame::Service;

use collect::Collector;

/// The known keys of one shard.
///
/// A server or a capture decoder needs the private keys, and a client the public ones. A private
/// key includes the public one.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    /// The keys of each server, in the order of [`ServerKind::ALL`].
    servers: [Option<Box<Entry>>; ServerKind::ALL.len()],
    droid: Option<SecureKey>,
    /// Captured connections, by seed.
    sessions: BTreeMap<Seed, (Service, SessionKey)>,
}

/// The seed that a server sends in its setup packet.
type Seed = [u8; SESSION_KEY_BYTES];

/// The known keys of one server.
#[derive(Clone, Debug)]
enum Entry {
    Private(PrivateKey),
    Public(PublicKey),
}

impl KeyRing {
    /// An empty ring.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads keys in any of the formats of the [module's table](self).
    ///
    /// A text without keys yields an empty ring. The caller limits the length of the text, which
    /// bounds time and memory.
    ///
    /// # Errors
    /// Returns all errors in the file, up to a hundred.
    pub fn parse(text: &str) -> Result<Self, KeyFileErrors> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut collector = Collector::default();
        if is_toml(text) {
            #[cfg(feature = "toml")]
            table::collect(text, &mut collector);
            #[cfg(not(feature = "toml"))]
            collector.fault(
                collect::Location { line: 1, column: 1, key: TABLE.to_owned() },
                KeyFault::NoToml,
            );
        } else if array::is_source(text) {
            array::collect(text, &mut collector);
        } else {
            lines::collect(text, &mut collector);
        }
        collector.finish()
    }

    /// Adds a server's key pair, replacing everything known for that server.
    pub fn insert_private(&mut self, key: PrivateKey) {
        let at = slot(key.kind());
        self.servers[at] = Some(Box::new(Entry::Private(key)));
    }

    /// Adds the public key of a server, replacing everything known for that server except the
    /// matching private key.
    pub fn insert_public(&mut self, key: PublicKey) {
        let known = self.private(key.kind()).is_some_and(|private| *private.public() == key);
        if !known {
            let at = slot(key.kind());
            self.servers[at] = Some(Box::new(Entry::Public(key)));
        }
    }

    /// Sets the key of `notthedroids` files.
    pub fn set_droid(&mut self, key: SecureKey) {
        self.droid = Some(key);
    }

    /// Adds all keys of another ring. If both have a key, the other ring's is used.
    pub fn merge(&mut self, other: Self) {
        for entry in other.servers.into_iter().flatten() {
            match *entry {
                Entry::Private(key) => self.insert_private(key),
                Entry::Public(key) => self.insert_public(key),
            }
        }
        if let Some(droid) = other.droid {
            self.set_droid(droid);
        }
        self.sessions.extend(other.sessions);
    }

    /// The first difference between two rings that would be a [conflict](KeyFault::Conflict) within
    /// one file: a server's key or the droid key. Sessions cannot conflict because they are keyed
    /// by seed.
    #[must_use]
    pub fn conflict(&self, other: &Self) -> Option<String> {
        let differs = |kind: &ServerKind| {
            let both = self.public(*kind).zip(other.public(*kind));
            both.is_some_and(|(one, another)| one != another)
        };
        if let Some(kind) = ServerKind::ALL.into_iter().find(differs) {
            return Some(format!("the {kind} key"));
        }
        let both = self.droid().zip(other.droid());
        both.filter(|(one, another)| one != another).map(|_| "the droid key".to_owned())
    }

    /// Adds the key of one captured connection, identified by its server's seed.
    pub fn insert_session(&mut self, service: Service, seed: Seed, key: SessionKey) {
        self.sessions.insert(seed, (service, key));
    }

    /// The service and key of the connection whose server sent this seed.
    #[must_use]
    pub fn session(&self, seed: Seed) -> Option<(Service, &SessionKey)> {
        self.sessions.get(&seed).map(|(service, key)| (*service, key))
    }

    /// The captured connections: the seed of each, its service and its key.
    pub fn sessions(&self) -> impl Iterator<Item = (Seed, Service, &SessionKey)> {
        self.sessions.iter().map(|(seed, (service, key))| (*seed, *service, key))
    }

    /// A server's key pair, if its secret is known.
    #[must_use]
    pub fn private(&self, kind: ServerKind) -> Option<&PrivateKey> {
        match self.servers[slot(kind)].as_deref()? {
            Entry::Private(key) => Some(key),
            Entry::Public(_) => None,
        }
    }

    /// A server's public key.
    #[must_use]
    pub fn public(&self, kind: ServerKind) -> Option<&PublicKey> {
        Some(match self.servers[slot(kind)].as_deref()? {
            Entry::Private(key) => key.public(),
            Entry::Public(key) => key,
        })
    }

    /// The key of `notthedroids` files, if known.
    #[must_use]
    pub fn droid(&self) -> Option<&SecureKey> {
        self.droid.as_ref()
    }

    /// Whether the ring has no keys at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_servers = self.servers.iter().any(Option::is_some);
        self.droid.is_none() && !has_servers && self.sessions.is_empty()
    }
}

/// Whether the text contains worldwire's table and must therefore be TOML.
fn is_toml(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.trim_start().trim_start_matches('[').trim_start();
        let Some(rest) = name.strip_prefix(TABLE) else { return false };
        rest.trim_start().starts_with(['.', ']', '='])
    })
}

/// The table of a TOML file that holds Uru's keys.
const TABLE: &str = "uru";

/// The index of a server in [`KeyRing::servers`].
fn slot(kind: ServerKind) -> usize {
    match kind {
        ServerKind::Gatekeeper => 0,
        ServerKind::Auth => 1,
        ServerKind::Game => 2,
        ServerKind::Csr => 3,
    }
}

/// The server that a word names, in any format and case.
fn server_kind(word: &str) -> Option<ServerKind> {
    Some(match word.to_ascii_lowercase().as_str() {
        "gatekeeper" | "gate" => ServerKind::Gatekeeper,
        "auth" => ServerKind::Auth,
        "game" => ServerKind::Game,
        "csr" => ServerKind::Csr,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
