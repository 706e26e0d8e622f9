//! The secrets of KI's login and of its encrypted streams.
//!
//! * [`keys`] is the file in which users supply them.
//! * [`login`] is what the wire carries in the place of a password.
//! * [`stream`] reads and writes encrypted connections, with keys that users supply.
//!
//! No function draws a random number by itself; random bytes are arguments. Comparisons of
//! secrets take constant time, and types that hold secrets do not show them in `Debug`.

pub mod keys;
pub mod login;
pub mod stream;
