//! The secrets of KI's login, and encrypted streams.
//!
//! * [`keys`] reads the file in which users supply them.
//! * [`login`] computes the secrets that the wire carries in place of a password.
//! * [`stream`] decrypts and encrypts connections, with keys that users supply.
//!
//! No function generates random numbers itself; random bytes are arguments. Secrets are compared in
//! constant time, and their types hide them in `Debug`.
//!
//! Without the feature `keys`, `keys` and `login` are missing, and no stream key can be created.

#[cfg(feature = "keys")]
mod cipher;
#[cfg(not(feature = "keys"))]
#[path = "no_cipher.rs"]
mod cipher;
#[cfg(feature = "keys")]
pub mod keys;
#[cfg(feature = "keys")]
pub mod login;
pub(crate) mod observer;
mod salt;
pub mod stream;

pub use salt::Salt;
