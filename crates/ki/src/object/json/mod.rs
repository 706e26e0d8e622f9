//! Objects as JSON, both ways.
//!
//! | value | JSON |
//! | --- | --- |
//! | object | its properties by name, behind `$class`; `$block`, `$type`, `$template` of the CoreObject form |
//! | null | `null` |
//! | container | an array, always |
//! | group of numbers | an object with its parts: `{"x": 1.0, "y": 2.0}` |
//! | enumeration | its name or, unknown, its number; a name that no list knows `{"$name": "..."}` |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | string | a string; what is not valid Unicode `{"$hex": "00ff"}` |
//! | unknown property | under its hash, `"0x0000002a"`: `{"$bits": 40, "$hex": "..."}` |
//! | object of an unknown class | `{"$class": "0x0000002a", "$bits": 40, "$hex": "..."}` |
//!
//! Properties stand in the order in which they were read, and those that were not there are not
//! there. [`Object::parse_json`] keeps the order of the text; [`Object::from_json`] has none to keep
//! and takes that of the class.

mod item;
mod read;
mod write;

pub use write::JsonWriter;

pub(super) use item::item;
pub(super) use read::{build, wide_bytes};

/// How deep objects and containers may stand in each other.
const MOST_DEPTH: u32 = 128;
/// How deep JSON may be: the same, and a group of numbers in the innermost object.
const MOST_JSON_DEPTH: u32 = MOST_DEPTH + 4;
