//! Twofish with 128-bit keys, in CBC mode, and RSA. For compatibility only: Twofish messages have no
//! authentication except a CRC, and the RSA keys are short.
//!
//! The margin server assigns each session its key, which encrypts the margin channel's messages and
//! the game channel's datagrams.

mod envelope;
mod iv;
mod key;
mod keys;
#[cfg(feature = "login")]
mod random;
#[cfg(feature = "login")]
mod rsa;
mod twofish;

pub use iv::IvSource;
pub use key::{SessionKey, Unopened};
pub use keys::{KeyFile, KnownSession};
#[cfg(feature = "login")]
pub use random::Random;
#[cfg(feature = "login")]
pub use rsa::{EXPONENT, KeyUse, PrivateKey, PublicKey, RsaError};
pub use twofish::BLOCK_BYTES;

pub(crate) use envelope::{UNCOUNTED_BYTES, is_intact};
pub(crate) use key::{SEALED, sealed_bytes};
