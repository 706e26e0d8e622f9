//! The secrets of KI's login and of its encrypted streams.
//!
//! * [`keys`] is the file in which a user gives them.
//! * [`login`] is what stands for a password on the wire.
//! * [`stream`] reads and writes encrypted connections, with keys that the user has.
//!
//! No function draws a random number by itself; random bytes are arguments. Comparisons of
//! secrets take constant time, and types that hold secrets do not show them in `Debug`.

pub mod keys;
pub mod login;
pub mod stream;
