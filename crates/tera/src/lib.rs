//! TERA's protocol: message definitions, messages, opcode maps, and the connection.
//!
//! TERA has no fixed message set. Community-maintained definition files describe its messages;
//! maps, which change with every client build, assign their numbers. With both, this crate decodes
//! and encodes any message:
//!
//! ```
//! use worldwire_tera::file::library::BuildFacts;
//! use worldwire_tera::file::{CodeMap, Library};
//! use worldwire_tera::message::{Item, View};
//! use worldwire_tera::packet::Packets;
//! use worldwire_tera::schema::{ParseOptions, Set};
//!
//! // Usually read from files: NAME.VERSION.def, and protocol.REVISION.map.
//! let definitions = [("S_CHAT.3.def", "int32 channel\nstring name\nstring message\n")];
//! let mut library = Library {
//!     definitions: Set::load(definitions, ParseOptions::default()),
//!     ..Library::default()
//! };
//! library.add_map("protocol.387486.map", CodeMap::from_pairs([("S_CHAT", 4321)]));
//! let packets = Packets::new(&library, BuildFacts { revision: Some(387_486), ..BuildFacts::default() });
//!
//! let json = worldwire_core::json::json!({
//!     "opcode": "S_CHAT", "fields": { "name": "Elin", "message": "hello" },
//! });
//! let message = packets.encode_json(&json)?;
//!
//! let packet = packets.get(4321).expect("the map has it");
//! let plan = packet.definition.expect("the library has it").plan();
//! let view = View::new(plan, &message, packet.form)?;
//! let text = view.fields().get("message")?.and_then(Item::text).expect("a text");
//! assert_eq!(format!("{}: {text}", packet.name), "S_CHAT: hello");
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`schema`] | message definitions, in three dialects |
//! | [`message`] | decoding and encoding messages according to definitions |
//! | [`packet`] | the messages of a build, by opcode |
//! | [`rank`], [`carry`], [`diagnosis`] | support for a new build: unknown opcodes, its map, outdated definitions |
//! | [`codegen`] | typed Rust generated from definitions |
//! | [`types`] | angles, skill IDs, text |
//! | [`file`](mod@file) | maps, revisions, deprecations |
//! | [`sysmsg`] | system messages |
//! | [`frame`](mod@frame) | framing |
//! | [`connection`] | the state machine: client, server, observer, relay |
//! | [`crypt`] | the cipher and its key exchange |
//! | [`integrity`] | counter and checksum of client messages |
//!
//! The example `chat_printer` splits a stream into messages, decodes chat and encodes an answer:
//! `cargo run -p worldwire-tera --example chat_printer`.
//!
//! The protocol details come from the community's definitions and from comparing this crate with
//! the community's parsers on the same input. Guesses are marked `Unverified:`.

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
mod named;
pub mod packet;
pub mod rank;
pub mod schema;
pub mod sysmsg;
pub mod types;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
