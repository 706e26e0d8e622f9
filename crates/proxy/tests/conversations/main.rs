//! Recorded conversations of all families, relayed with rules and over sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(missing_docs, unreachable_pub, reason = "a test is not a library")]

mod behaviour;
mod properties;
mod recipes;
mod replay;
mod replay_families;
mod samples;
mod sockets;
