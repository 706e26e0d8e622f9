//! Servers of the worlds.
