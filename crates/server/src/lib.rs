//! Servers of the worlds.

pub mod uru;
