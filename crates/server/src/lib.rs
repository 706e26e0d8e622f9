//! Servers of the worlds.

pub mod store;
pub mod uru;
