//! The cipher of a connection, for compatibility only: the keys are sent in the clear, so anyone
//! who captures a connection from its beginning can read all of it.
//!
//! * [`pike`]: the stream cipher.
//! * [`exchange`]: derives the keys of both directions from the four that are exchanged.
//! * [`keys`]: reads files with the keys of captures that lack the exchange.

pub mod exchange;
pub mod keys;
pub mod pike;
