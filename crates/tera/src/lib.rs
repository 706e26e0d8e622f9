//! TERA: the definition language, messages, maps, and the connection.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`schema`] | definitions of messages, in three dialects |
//! | [`message`] | messages, decoded and encoded by a definition |
//! | [`packet`] | messages of a build, by their opcodes |
//! | [`rank`], [`carry`], [`diagnosis`] | support for a new build: unknown opcodes, its map, outdated definitions |
//! | [`codegen`] | typed Rust from definitions |
//! | [`types`] | angles, skill ids, texts |
//! | [`file`](mod@file) | maps of names and numbers, revisions, deprecations |
//! | [`sysmsg`] | system messages |
//! | [`frame`](mod@frame) | framing |
//! | [`connection`] | the state machine: client, server, observer, relay |
//! | [`crypt`] | the cipher and the exchange of its keys |
//! | [`integrity`] | counter and checksum of client messages |
//!
//! The facts come from the definitions of the community and from its parsers, run side by side.
//! Guesses are marked `Unverified:`.

pub mod carry;
pub mod codegen;
pub mod connection;
pub mod crypt;
pub mod diagnosis;
pub mod file;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod integrity;
pub mod message;
pub mod packet;
pub mod rank;
pub mod schema;
pub mod sysmsg;
pub mod types;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
