//! Files of Uru shards and clients.
//!
//! * [`age`] reads and writes the description of an age.
//! * [`keys`] reads and writes the keys of a shard in the formats of every server and client.
//! * [`manifest`] reads and writes manifests and file lists.
//! * [`name`] makes paths of names that came over the wire.
//! * [`secure`] decrypts and encrypts scripts, state descriptions and settings.

pub mod age;
pub mod keys;
pub mod manifest;
pub mod name;
pub mod secure;
