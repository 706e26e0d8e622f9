//! TERA: the definition language, messages, maps, and the connection.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`schema`] | definitions: what messages look like, in three dialects |
//! | [`message`] | messages, read and written by a definition |
//! | [`packet`] | messages of a build, by their opcodes |
//! | [`rank`], [`diagnosis`] | finding the way in a new build |
//! | [`codegen`] | typed Rust from definitions |
//! | [`types`] | angles, skill ids, texts |
//! | [`file`](mod@file) | maps of names and numbers, revisions, deprecations |
//! | [`sysmsg`] | system messages |
//! | [`frame`](mod@frame) | how messages stand on the wire |
//! | [`connection`] | the state machine: client, server, observer |
//! | [`crypt`] | the cipher and how its keys are agreed on |
//! | [`integrity`] | counter and checksum of client messages |
//!
//! The facts come from the definitions and parsers of the community, run side by side. Guesses are
//! marked `Unverified:`.

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
