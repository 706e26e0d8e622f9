//! The core of worldwire: the readers, writers and contracts that every format builds on.
//!
//! A format is described once, generic over a [`Trace`]. Without a trace it is a plain decoder;
//! with a tree builder as the trace, the same code yields names, values and byte ranges.
//!
//! ```
//! use worldwire_core::{Messages, Reader, Tree, Value, Writer, json, messages, text};
//!
//! messages! {
//!     /// Messages from a client on a (much shortened) game connection.
//!     pub enum ClientMessage<'a>: "game", Client;
//!     reserved {}
//!
//!     /// Asks to join an age.
//!     1 JoinAgeRequest {
//!         trans_id "transId": u32,
//!         /// The instance, as the auth server named it.
//!         age_mcp_id "ageMcpId": u32,
//!     }
//!
//!     /// A message for every player in the age.
//!     2 PropagateBuffer<'a> {
//!         type_ "type": u32,
//!         buffer "buffer": worldwire_core::Bytes32<'a, 1_048_576>,
//!     }
//! }
//!
//! // A typed value, as servers use it.
//! let bytes = [5, 0, 0, 0, 16, 0, 0, 0];
//! let message = ClientMessage::decode_body(1, &mut Reader::new(&bytes))?;
//! assert_eq!(message, JoinAgeRequest { trans_id: 5, age_mcp_id: 16 }.into());
//!
//! // The same decoder with a tree builder as the trace, for people to read.
//! let mut reader = Reader::traced("message", &bytes, Tree::new());
//! ClientMessage::decode_body(1, &mut reader)?;
//! let tree = reader.finish();
//! let mut shown = String::new();
//! text::write_tree(&tree, text::TextStyle { ranges: true, ..Default::default() }, &mut shown);
//! assert_eq!(shown, "0x0000..0x0004    transId: 5\n0x0004..0x0008    ageMcpId: 16\n");
//!
//! // The tree as JSON and back to bytes. `parse` returns `serde_json::Error`s.
//! let mut shown = String::new();
//! json::write_children(Value::Record, tree.roots(), json::Style::default(), &mut shown);
//! assert_eq!(shown, r#"{"transId":5,"ageMcpId":16}"#);
//! let fields = json::parse(&shown)?;
//! let mut writer = Writer::new();
//! ClientMessage::from_json("JoinAgeRequest", &fields)?.encode_body(&mut writer)?;
//! assert_eq!(writer.as_bytes(), bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module or type | purpose |
//! | --- | --- |
//! | [`Reader`], [`Writer`] | cursors: little-endian numbers, bits, bounded parts, layers |
//! | [`Trace`], [`NoTrace`], [`Tree`] | receives everything that a decoder reads; the resulting tree |
//! | [`Limits`], [`Error`] | a decoder's bounds, and how it reports failures |
//! | [`messages!`], [`classes!`], [`record!`], [`wire_enum!`], [`wire_flags!`], [`scalar!`] | the single declaration of a message and its parts |
//! | [`Source`], [`Diagnostic`] | errors and warnings about text files, with their position |
//! | [`Field`] | types that can be fields of a message |
//! | [`codegen`] | names and literals for Rust code generated from definitions |
//! | [`json`], [`text`] | trees and values as JSON (both ways) and as text for people |
//! | [`opener`] | formats inside the fields of other formats |
//! | [`path`] | untrusted names as paths below a directory |
//! | [`connection`] | the contract of all connection machines, and the parts that they share |
//! | [`sha0`] | a hash that two families need and no crate provides |
//! | [`Sampler`] | generates values for tests, fuzzing and benchmarks |
//!
//! The example `guessing_game` defines its own small protocol:
//! `cargo run -p worldwire-core --example guessing_game`.

pub mod codegen;
pub mod connection;
mod diagnostic;
mod error;
mod field;
mod float;
pub mod json;
mod limits;
mod message;
mod names;
pub mod opener;
pub mod path;
mod reader;
mod sample;
pub mod sha0;
mod shape;
mod side;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod text;
mod trace;
mod tree;
pub mod value;
mod wire;
mod writer;

pub use diagnostic::{Diagnostic, Severity, Source};
pub use error::{Error, ErrorKind, Result, Step};
pub use field::{Bytes32, Field, List32, Rest, count32, encode_list, list_from_json};
pub use float::{Double, Float};
pub use limits::Limits;
pub use message::{ClassInfo, Classes, FieldInfo, MessageInfo, Messages, OtherClass, Record};
#[doc(hidden)]
pub use message::{decode_optional, encode_optional};
pub use names::{Names, listed, nearest};
pub use reader::Reader;
pub use sample::Sampler;
pub use shape::Shape;
pub use side::Side;
pub use trace::{NoTrace, Place, Trace};
pub use tree::{Children, Layer, NodeRef, Parent, Tree, TreeBuilder};
pub use value::{Content, Form, Span, Value};
pub use writer::{Patch, Writer};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
