//! Hooks as processes and over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod examples;
mod hostile;
mod schema;
mod sockets;
mod world;
