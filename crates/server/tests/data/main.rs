//! What a shard keeps: accounts and the vault, over both databases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod chaos;
mod faults;
mod lost_keys;
mod migration;
mod rights;
mod store;
mod support;
mod two_writers;
mod vault;
