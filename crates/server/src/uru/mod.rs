//! A shard of Uru.

pub mod accounts;
pub mod admin;
pub mod ages;
pub mod players;
pub mod scores;
pub mod vault;
