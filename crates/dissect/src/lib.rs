//! Dissects the traffic of all supported families: finds codecs by name, recognises conversations
//! by content, runs the filter language, and writes text and JSON lines.
//!
//! Each family is a feature: `ki`, `mxo`, `tera` and `uru`. Four further features are needed only
//! by some programs: `file` (codecs for KI's client files), `keys` (decryption of KI connections),
//! `simd` (faster decryption of Uru logins) and `toml` (Uru keys in worldwire's own format). All
//! eight are on by default. A program for one world needs only its family's feature and builds
//! fewer than 45 crates.
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
//! | [`Codec`] | decodes a blob to a tree and encodes JSON back to bytes |
//! | [`Dissection`] | turns a capture into [`Item`]s: messages and notes |
//! | [`Checkpoint`], [`Fork`] | read later conversations, or the rest of open ones, without rereading the beginning of the capture |
//! | [`Family`], [`Families`] | the protocol of one family; the list of families |
//! | [`Vocabulary`] | a family's names, for filters and help |
//! | [`Session`], [`RelaySession`] | reads or relays one conversation, without a capture |
//! | [`Decider`], [`Answer`] | decide what a relay forwards, drops, replaces or holds |
//! | [`Watched`], [`Interpreter`] | build sessions and relay sessions from a family's connection |
//! | [`Sink`] | collects the text or values that items are turned into |
//! | [`Defect`] | a caught panic, as a report |
//! | [`filter`] | selects items |
//! | [`Format`] | writes items as text or JSON lines |
//! | [`Item::push_info`], [`cut`] | the most informative values of a message, on one line |
//! | [`Line`] | a message as a JSON line, to be encoded |
//! | [`stats`] | totals over whole captures |
//! | [`Definitions`] | message layouts, built in or from the user's files |
//! | [`Keys`] | secrets that decrypt traffic |
//! | [`Facts`] | facts that conversations share |
//!
//! The example `chat` prints the chat in a capture; its first lines show how to run it on a sample.

mod codec;
mod conversation;
mod counts;
mod defect;
mod dissection;
mod editor;
mod families;
mod family;
pub mod filter;
mod folder;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod info;
mod item;
mod keys_error;
#[cfg(feature = "ki")]
mod ki;
mod knowledge;
mod line;
mod message;
#[cfg(feature = "mxo")]
mod mxo;
mod overview;
mod registry;
mod render;
mod session;
mod sink;
pub mod stats;
#[cfg(feature = "tera")]
mod tera;
#[cfg(feature = "uru")]
mod uru;
mod vocabulary;

pub use codec::{Codec, CodecOptions, Remark, Shape, read, read_opening};
pub use counts::Counts;
pub use defect::{Defect, catch_defect, quiet_defects};
pub use dissection::{Checkpoint, Dissection, Feed, Fork, Options, Scratch, Unmerged};
pub use editor::FieldEditor;
pub use families::Families;
pub use family::{BEGINNING, Family, HeldPiece, Opening, Prepared, Start, Verdict};
pub use info::{InfoFields, InfoTable, cut};
pub use item::{Ends, Item, ItemBody, Note, NoteKind, Stamp, Time, Wire};
pub use keys_error::{KeyFault, KeysError};
#[cfg(feature = "ki")]
pub use ki::KiObjects;
pub use knowledge::{Definitions, Fact, FactValue, Facts, Keys};
pub use line::{Blob, Line};
pub use message::{LineEncoder, Message};
#[cfg(feature = "mxo")]
pub use mxo::{MxoObjects, MxoViews};
pub use overview::{Overview, Summary};
pub use render::{Format, TextForm};
pub use session::{Answer, Decider, Emit, Interpreter, RelaySession, Session, Watched};
pub use sink::Sink;
#[cfg(feature = "tera")]
pub use tera::TeraDefinitions;
#[cfg(feature = "uru")]
pub use uru::UruDefinitions;
pub use vocabulary::{ClassRow, MessageNames, ValueKind, ValueNames, Vocabulary};
pub use worldwire_core::connection::{Decision, HoldId};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
