//! Objects as JSON, both ways.
//!
//! | value | JSON |
//! | --- | --- |
//! | object | its properties by name, after `$class`; `$block`, `$type`, `$template` of the CoreObject form |
//! | null | `null` |
//! | container | an array, always |
//! | group of numbers | an object with its parts: `{"x": 1.0, "y": 2.0}` |
//! | enumeration | its name or, unknown, its number; a name that no list knows `{"$name": "..."}` |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | string | a string; what is not valid Unicode `{"$hex": "00ff"}` |
//! | unknown property | under its hash, `"0x0000002a"`: `{"$bits": 40, "$hex": "..."}` |
//! | value that does not fit its property | `{"$bits": 40, "$hex": "..."}`, of a container all of it |
//! | object of an unknown class | `{"$class": "0x0000002a", "$bits": 40, "$hex": "..."}`, also with an id |
//! | what is left at the end of an object | under `$rest`: `{"$bits": 8, "$hex": "..."}` |
//!
//! The last four come from lenient reading. They are encoded again even if the class or the
//! property is known.
//!
//! Properties are in the order in which they were read; missing ones are left out.
//! [`Object::parse_json`] keeps the order of the text; [`Object::from_json`] uses the order of the
//! class.

mod direct;
mod item;
mod read;
mod rounded;
mod write;

pub use rounded::looks_rounded;
pub use write::JsonWriter;

pub(super) use item::item;
pub(super) use read::{build, unknown_hash, wide_bytes};
