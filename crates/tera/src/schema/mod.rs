//! The definition language, in which the community describes message layouts.
//!
//! A text is [parsed](parse) into lines, checked against its [dialect], and [compiled](compile)
//! once into a flat [`Plan`], which [`message`](crate::message) runs. A [`Set`] holds the
//! definitions of a directory.
//!
//! ```
//! use worldwire_tera::schema::{ParseOptions, Set};
//!
//! let files = [
//!     ("S_GREETING.1.def", "int32 id\nstring name\n"),
//!     ("S_GREETING.2.def", "int32 id\nstring nmae\nuint gold\n"),
//! ];
//! let set = Set::load(files, ParseOptions::default());
//! assert_eq!(set.newest("S_GREETING").map(|definition| definition.version()), Some(1));
//! assert_eq!(
//!     set.problems().next().map(ToString::to_string).as_deref(),
//!     Some("S_GREETING.2.def:3:1: error: unknown type \"uint\" (did you mean uint32?) \
//!           [unknown_type]"),
//! );
//! ```

pub mod compile;
mod definition;
pub mod dialect;
pub mod diff;
pub mod format;
pub mod parse;
pub mod plan;
pub mod problem;
pub mod set;
pub mod show;
pub mod version;

pub use dialect::Dialect;
pub use plan::Plan;
pub use problem::{Problem, ProblemKind};
pub use set::{Definition, ParseOptions, Set};
pub use version::{FileName, Patch, PatchRange, Platform};
