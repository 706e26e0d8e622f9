//! Twofish with keys of 128 bits, in CBC mode. For compatibility only: nothing is authenticated but
//! by a CRC.
//!
//! The margin server gives each session its key. It encrypts the messages on the margin channel
//! and the datagrams of the game channel.

mod iv;
mod key;
mod keys;
mod twofish;

pub use iv::IvSource;
pub use key::{SessionKey, Unopened};
pub use keys::{KeyFile, KnownSession};
pub use twofish::BLOCK_BYTES;

pub(crate) use key::sealed_bytes;
