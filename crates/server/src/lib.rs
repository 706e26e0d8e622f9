//! Servers of the worlds.

pub mod mxo;
pub mod store;
pub mod uru;
