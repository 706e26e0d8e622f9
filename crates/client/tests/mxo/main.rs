//! Clients of a world of The Matrix Online against the server of this project: in virtual time over
//! a simulated wire, and over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod crowd;
#[path = "../support/log.rs"]
mod log;
mod sockets;
