//! Files of Uru shards and clients.
//!
//! * [`age`] reads and writes age files.
//! * [`keys`] reads and writes the keys of a shard in the formats of every server and client.
//! * [`manifest`] reads and writes manifests and file lists.
//! * [`secure`] decrypts and encrypts scripts, SDL files and client settings.

pub mod age;
pub mod keys;
pub mod manifest;
pub mod secure;
