//! Clients for The Matrix Online against this project's server: in virtual time over a simulated
//! wire, and over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod attacks;
mod crowd;
mod intruders;
#[path = "../support/log.rs"]
mod log;
mod login;
mod server;
mod sockets;
