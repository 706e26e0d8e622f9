//! The one crate that knows all families. It finds codecs by name, recognises conversations by
//! content, runs the filter language, and writes text and JSON lines.
//!
//! ```
//! use worldwire_core::{Limits, Side};
//! use worldwire_dissect::{Codec, CodecOptions, Definitions, Keys};
//!
//! let codec = Codec::named("uru.auth")?;
//! let (keys, limits) = (Keys::none(), Limits::DEFAULT);
//! let definitions = Definitions::built_in();
//! let options =
//!     CodecOptions { from: Side::Client, keys: &keys, definitions: &definitions, limits: &limits };
//! let tree = codec.decode(&[1, 0, 0x96, 3, 0, 0], &options);
//! assert_eq!(tree.find("fields.buildId").unwrap().unsigned(), Some(918));
//!
//! let mut json = String::new();
//! codec.write_json(&tree, Side::Client, Default::default(), &mut json);
//! let expected = r#"{"from":"client","name":"ClientRegisterRequest","fields":{"buildId":918}}"#;
//! assert_eq!(json, expected);
//! # Ok::<(), worldwire_core::Error>(())
//! ```
//!
//! | module or type | what it is |
//! | --- | --- |
//! | [`Codec`] | decodes a blob to a tree, and encodes JSON back to bytes |
//! | [`Dissection`] | turns a capture into [`Item`]s: messages and notes of its conversations |
//! | [`Family`], [`Families`] | what there is to know of a family; the list of them |
//! | [`Session`], [`RelaySession`] | a conversation that is read or relayed, free of captures |
//! | [`Watched`], [`Interpreter`] | either of them, made of a family's connection and what turns its pieces into items |
//! | [`Sink`] | collects the text or the values that items become |
//! | [`Defect`] | a panic that was caught, as a report |
//! | [`filter`] | selects items |
//! | [`Format`] | writes items as text and as JSON lines |
//! | [`Line`] | such a line of JSON, which can be encoded |
//! | [`Definitions`] | layouts of messages, from files that users supply |
//! | [`Keys`] | secrets that decrypt traffic |
//! | [`Facts`] | what conversations tell each other |

mod codec;
mod conversation;
mod counts;
mod defect;
mod dissection;
mod family;
pub mod filter;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod item;
mod ki;
mod knowledge;
mod line;
mod mxo;
mod overview;
mod registry;
mod render;
mod session;
mod sink;
mod tera;
mod uru;

pub use codec::{Codec, CodecOptions, Remark, Shape, no_remarks, read, read_opening};
pub use counts::Counts;
pub use defect::{Defect, catch_defect, quiet_defects};
pub use dissection::{Dissection, Feed, Options, Scratch};
pub use family::{
    BEGINNING, ClassRow, Families, Family, HeldPiece, MessageNames, Opening, Prepared, Start,
    ValueNames, Verdict,
};
pub use item::{Ends, Item, ItemBody, Message, Note, NoteKind, Stamp, Time, Wire};
pub use ki::KiObjects;
pub use knowledge::{Definitions, Fact, Facts, Keys};
pub use line::{Blob, Line};
pub use mxo::{MxoObjects, MxoViews};
pub use overview::{Overview, Summary};
pub use registry::KeysError;
pub use render::Format;
pub use session::{Decision, Emit, Interpreter, RelaySession, Session, Watched};
pub use sink::Sink;
pub use tera::TeraDefinitions;
pub use uru::UruDefinitions;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
