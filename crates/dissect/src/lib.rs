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
//! | [`Sink`] | collects the text or the values that items become |
//! | [`Defect`] | a panic that was caught, as a report |
//! | [`filter`] | selects items |
//! | [`Format`] | writes items as text and as JSON lines |
//! | [`Definitions`] | layouts of messages, from files that users supply |
//! | [`Keys`] | secrets that decrypt traffic |

mod codec;
mod conversation;
mod defect;
mod definitions;
mod dissection;
mod family;
pub mod filter;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod item;
mod keys;
mod ki;
mod render;
mod sink;
mod tera;
mod uru;

pub use codec::{Codec, CodecOptions, Shape};
pub use defect::{Defect, catch_defect, quiet_defects};
pub use definitions::Definitions;
pub use dissection::{Counts, Dissection, Feed, Options, Overview, Scratch, Summary};
pub use family::Family;
pub use item::{Item, ItemBody, Note, NoteKind, Stamp};
pub use keys::{Keys, KeysError};
pub use ki::{KiItem, KiObjects};
pub use render::Format;
pub use sink::Sink;
pub use tera::{TeraDefinitions, TeraItem};
