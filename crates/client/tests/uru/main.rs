//! The Uru client against shards in the same process, over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod evening;
mod files;
mod games;
mod login;
mod operators;
mod peers;
mod shard;
mod vault;
