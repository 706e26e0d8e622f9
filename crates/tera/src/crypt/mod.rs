//! The cipher of a connection. For compatibility only: the keys travel in the clear, so whoever
//! sees a connection begin can read all of it.
//!
//! * [`pike`] is the stream cipher.
//! * [`exchange`] derives the keys of both directions from the four that are exchanged.
//! * [`keys`] reads the keys of captures that lack the exchange from files.

pub mod exchange;
pub mod keys;
pub mod pike;
