//! Twofish with 128-bit keys, in CBC mode. For compatibility only: the only authentication is a
//! CRC.
//!
//! The margin server assigns each session its key, which encrypts the margin channel's messages and
//! the game channel's datagrams.

mod envelope;
mod iv;
mod key;
mod keys;
mod twofish;

pub use iv::IvSource;
pub use key::{SessionKey, Unopened};
pub use keys::{KeyFile, KnownSession};
pub use twofish::BLOCK_BYTES;

pub(crate) use envelope::{UNCOUNTED_BYTES, is_intact};
pub(crate) use key::{SEALED, sealed_bytes};
