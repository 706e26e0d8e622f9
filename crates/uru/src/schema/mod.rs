//! The descriptor language of SDL, the State Description Language: it declares the variables of an
//! object's state.
//!
//! ```text
//! # a comment, to the end of the line
//! STATEDESC name
//! {
//!     VERSION 2
//!     VAR INT      height[1]  DEFAULT=3  DEFAULTOPTION=VAULT
//!     VAR FLOAT    angles[2]  DEFAULT=0.5
//!     VAR BYTE     list[]
//!     VAR $other   nested[4]
//! }
//! ```
//!
//! A file contains any number of descriptors, including several versions of the same one.
//! [`Descriptors`] loads all files together before resolving names, so `$other` refers to the
//! newest version in any file. Names and types are case-insensitive. Every problem is reported as a
//! [`Diagnostic`]; a descriptor with an error is left out, together with those that refer to it,
//! but all others are kept.
//!
//! ```
//! use worldwire_uru::schema::Descriptors;
//!
//! let files = [
//!     ("lever.sdl", "STATEDESC Lever { VERSION 1 VAR BOOL pulled[1] DEFAULT=false }"),
//!     ("gate.sdl", "STATEDESC Gate\n{\n  VERSION 1\n  VAR BOLO open[1]\n}\n"),
//! ];
//! let descriptors = Descriptors::load(files);
//! assert_eq!(descriptors.newest("LEVER").map(|lever| lever.version()), Some(1));
//! assert!(descriptors.newest("Gate").is_none());
//! assert_eq!(
//!     descriptors.problems()[0].to_string(),
//!     "gate.sdl:4:7: error: unknown type BOLO (did you mean BOOL?)",
//! );
//! ```
//!
//! [`Diagnostic`]: worldwire_core::Diagnostic

mod default;
mod definition;
mod lex;
mod parse;
mod print;
mod problems;
mod resolve;
mod set;
mod shape;
mod types;

pub(crate) use default::STRING_BYTES;
pub use definition::{Definition, ElementType, Literal, Variable};
pub use parse::{Parsed, Statement, parse};
pub use set::{Descriptor, Descriptors, UnknownDescriptor};
pub use shape::Shape;
pub(crate) use shape::VariableIndex;
pub use types::Type;
