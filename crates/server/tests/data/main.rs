//! Tests of a shard's persistent data, on both kinds of database.

#![allow(clippy::unwrap_used, reason = "panics are failures of the test")]

mod admin;
mod ages;
mod chaos;
mod copy;
mod faults;
mod lost_keys;
mod migration;
mod players;
mod rights;
mod shared;
mod standby;
mod store;
mod support;
mod two_writers;
mod upkeep;
mod vault;
