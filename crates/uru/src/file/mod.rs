//! Files of Uru shards and clients.
//!
//! * [`keys`] reads and writes the keys of a shard in the formats of every server and client.
//! * [`manifest`] reads and writes manifests and file lists.
//! * [`secure`] decrypts and encrypts scripts, state descriptions and settings.

pub mod keys;
pub mod manifest;
pub mod secure;
