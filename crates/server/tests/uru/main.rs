//! A shard over loopback, with clients that are connection machines of ours.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ages;
mod attacks;
mod auth;
mod clear_states;
mod client;
mod database;
mod latency;
mod log;
mod player;
mod reconnect;
mod services;
mod siege;
