//! A shard over loopback, with clients built on this project's connection state machines.

#![allow(clippy::unwrap_used, reason = "panics are failures of the test")]

mod admission;
mod age_nodes;
mod ages;
mod attacks;
mod auth;
mod between_ages;
mod bus_problems;
#[path = "../data/support/child.rs"]
mod child;
mod clear_states;
mod client;
mod cluster;
mod database;
mod fern;
mod latency;
mod log;
#[path = "../data/support/nats.rs"]
mod nats;
mod operators;
mod player;
#[path = "../data/support/database.rs"]
mod postgres;
mod reconnect;
mod returns;
mod services;
mod sharing;
mod siege;
mod takeover;
mod traveller;
