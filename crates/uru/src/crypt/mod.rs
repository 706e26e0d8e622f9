//! Ciphers, key agreement and login hashes of Uru. For compatibility only.
//!
//! Everything here is obsolete: a 512-bit key exchange without authentication, RC4 with a 56-bit
//! key, SHA-0, block ciphers without chaining. Clients support nothing else, so anything that talks
//! to them needs it. Do not build anything new on it.
//!
//! * [`key`] holds and generates the long-lived keys of a shard.
//! * [`exchange`] derives a connection's session key from them and the setup packets.
//! * [`rc4`] is the stream cipher that uses the session key, with a separate state for each
//!   direction.
//! * [`login`] computes what a client sends instead of a password, using [`sha0`].
//! * [`xtea`] contains the two block ciphers of encrypted files (see
//!   [`file::secure`](crate::file::secure)).
//!
//! No function reads a clock or generates random numbers; random bytes are arguments. Operations on
//! secrets run in constant time, except those that compute the keys of captured connections. Types
//! that hold secrets clear them on drop and hide them in `Debug`.

pub mod exchange;
pub mod key;
mod lanes;
#[cfg(feature = "login")]
pub mod login;
mod power;
pub mod rc4;
pub(crate) mod secret;
pub mod xtea;
pub use worldwire_core::sha0;
