//! Clients for The Matrix Online against this project's server: in virtual time over a simulated
//! wire, and over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod attacks;
mod crowd;
mod description;
mod intruders;
mod link;
#[path = "../support/log.rs"]
mod log;
mod login;
mod malformed;
#[path = "../support/memory.rs"]
mod memory;
mod raw;
mod server;
mod sockets;
mod stage;
mod statuses;
mod virtual_time;
