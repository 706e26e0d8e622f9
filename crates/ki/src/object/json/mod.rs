//! Reading and writing objects as JSON.
//!
//! | value | JSON |
//! | --- | --- |
//! | object | its properties by name, after `$class`; `$block`, `$type`, `$template` of the CoreObject form |
//! | null | `null` |
//! | container | an array, always |
//! | tuple of numbers | an object with its parts: `{"x": 1.0, "y": 2.0}` |
//! | enumeration | its name, or its number if that is unknown; an unknown name as `{"$name": "..."}` |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | string | a string; invalid Unicode as `{"$hex": "00ff"}` |
//! | unknown property | under its hash, `"0x0000002a"`: `{"$bits": 40, "$hex": "..."}` |
//! | value that does not fit its property | `{"$bits": 40, "$hex": "..."}`, for a container, all of it |
//! | object of an unknown class | `{"$class": "0x0000002a", "$bits": 40, "$hex": "..."}`, possibly with an ID |
//! | leftovers at the end of an object | under `$rest`: `{"$bits": 8, "$hex": "..."}` |
//!
//! The last four are results of lenient decoding. They are encoded unchanged even if the class or
//! the property is now known.
//!
//! Properties keep the order in which they were decoded; missing ones are omitted.
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
pub(super) use read::{build, unknown_hash};
