//! The secrets of KI's login, and encrypted streams.
//!
//! * [`keys`] is the file in which users supply them.
//! * [`login`] has the secrets that the wire carries in place of a password.
//! * [`stream`] decrypts and encrypts connections, with keys that users supply.
//!
//! No function generates random numbers itself; random bytes are arguments. Secrets are compared in
//! constant time, and their types hide them in `Debug`.

pub mod keys;
pub mod login;
pub(crate) mod observer;
pub mod stream;
