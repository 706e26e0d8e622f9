//! Files of Uru shards and clients.
//!
//! * [`keys`] reads and writes the keys of a shard in the spellings of every server and client.
//! * [`secure`] opens and seals the encrypted scripts, state descriptions and settings.

pub mod keys;
pub mod manifest;
pub mod secure;
