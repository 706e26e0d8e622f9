//! Reading and writing JSON, the same way in all families.
//!
//! | value | JSON |
//! | --- | --- |
//! | integer | a number at full precision; with [`Style::safe`] a string when it takes 64 bits |
//! | finite float | a number, shortest form that reads back to the same bits, always with `.` or `e` |
//! | other float | `"NaN"`, `"Infinity"`, `"-Infinity"`; a NaN with a payload `"0x7fc00001"` |
//! | text | a string; text that is not valid Unicode `{"$hex": "00d8"}` |
//! | bytes | `{"$hex": "00ff"}` |
//! | enumeration | its name or, unknown, its number |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | nothing | `null` |
//! | record | an object |
//! | list | an array, even if it has one element |
//!
//! Reading accepts the output of writing, and numbers as strings (`"123"`, `"0x7b"`) everywhere.

mod given;
mod keys;
mod object;
mod parse;
mod read;
mod value;
mod write;

pub use given::Given;
pub use object::{Iter, Object};
pub use parse::{Parser, parse};
pub use read::{
    FieldsOf, bytes, double, expected, flags, integer, named, signed, single, text, unsigned,
};
pub use serde_json::Number;
pub use value::{Json, Place};
pub use write::{Style, float32, float64, hex, string, whole, write_children, write_node};

#[doc(hidden)]
pub use serde_json;

/// A [`Json`] literal: `json!({"name": "Anna", "ids": [1, 2]})`, like the macro of `serde_json`.
#[doc(inline)]
pub use crate::__json as json;

#[doc(hidden)]
#[macro_export]
macro_rules! __json {
    ($($json:tt)+) => { $crate::json::Json::from($crate::json::serde_json::json!($($json)+)) };
}
