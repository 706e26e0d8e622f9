//! The page's server, as its clients and attackers see it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod attacks;
mod client;
mod exports;
mod ki;
mod live;
mod mxo;
mod objects;
mod tera;
mod worlds;
