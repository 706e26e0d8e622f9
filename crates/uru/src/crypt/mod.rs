//! Ciphers, key agreement and login hashes of Uru. For compatibility only.
//!
//! Everything here is obsolete: a 512-bit key exchange without authentication, RC4 with a key of 56
//! bits, SHA-0, block ciphers without chaining. Clients support nothing else, so an engine that
//! talks to them must have it. Do not build anything new on it.
//!
//! * [`key`] holds the long-lived keys of a shard, and makes new ones.
//! * [`exchange`] turns them and the setup packets of one connection into a session key.
//! * [`rc4`] is the stream cipher that uses the session key, with one state per direction.
//! * [`login`] is what a client sends instead of a password, on top of [`sha0`].
//! * [`xtea`] is the pair of block ciphers of encrypted files (see
//!   [`file::secure`](crate::file::secure)).
//!
//! No function reads a clock or draws a random number by itself; random bytes are arguments.
//! Operations on secrets run in constant time, but for keys of captures; types that hold secrets clear them when dropped and
//! do not show them in `Debug`.

pub mod exchange;
pub mod key;
mod lanes;
pub mod login;
mod power;
pub mod rc4;
pub mod xtea;
pub use worldwire_core::sha0;
