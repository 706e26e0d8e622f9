//! A shard of Uru.

pub mod accounts;
pub mod ages;
pub mod players;
pub mod scores;
pub mod vault;
