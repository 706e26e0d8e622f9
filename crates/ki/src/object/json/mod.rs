//! Reading and writing objects as JSON.
//!
//! | value | JSON |
//! | --- | --- |
//! | object | its properties by name, after `$class`; `$block`, `$type`, `$template` of the CoreObject form |
//! | null | `null` |
//! | container | an array, always |
//! | tuple of numbers | an object with its parts: `{"x": 1.0, "y": 2.0}` |
//! | enumeration | its name, or its number if that is unknown; an unknown name as `{"$name": "..."}` |
//! | whole number | its name among the property's options if it has one, or its digits |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | string | a string; invalid Unicode as `{"$hex": "00ff"}` |
//! | unknown property | under its hash, `"0x0000002a"`: `{"$bits": 40, "$hex": "..."}` |
//! | value that does not fit its property | `{"$bits": 40, "$hex": "..."}`; for a container, one such value replaces the whole container |
//! | object of an unknown class | `{"$class": "0x0000002a", "$bits": 40, "$hex": "..."}`, possibly with an ID |
//! | leftovers at the end of an object | under `$rest`: `{"$bits": 8, "$hex": "..."}` |
//!
//! The last four result from lenient decoding. They are encoded unchanged even if the class or the
//! property is now known.
//!
//! Properties keep the order in which they were decoded; missing ones are omitted.
//! [`Object::parse_json`] keeps the order of the text; [`Object::from_json`] uses the order of the
//! class.

mod direct;
mod item;
mod read;
mod rounded;
mod write;

use serde::de::DeserializeSeed;
use worldwire_core::json::Json;
use worldwire_core::{Error, Limits, Result};

pub use rounded::looks_rounded;
pub use write::JsonWriter;

pub(super) use item::item;
pub(super) use read::{no_property, unknown_hash};

use super::value::Object;
use super::visitor::Slot;
use crate::schema::classes::Classes;
use direct::parse as parse_direct;
use item::{Item, Seed};
use read::build_reporting;

impl Object {
    /// Reads JSON text and keeps the order of its properties. There is no limit on nodes, because
    /// memory use is proportional to the length of the text.
    ///
    /// # Errors
    /// `Value` if the text is not JSON or not an object of known classes; a limit error for
    /// excessive depth.
    pub fn parse_json(classes: &Classes, json: &str) -> Result<Self> {
        Self::parse_json_within(classes, json, &Limits::DEFAULT)
    }

    /// Like [`Self::parse_json`], but with the given limit on depth.
    pub fn parse_json_within(classes: &Classes, json: &str, limits: &Limits) -> Result<Self> {
        Self::parse_json_reporting(classes, json, limits, &mut |_, _| {})
    }

    /// Like [`Self::parse_json_within`]. Calls `rounded` with the property and the number of each
    /// 64-bit integer that [looks rounded](looks_rounded).
    pub fn parse_json_reporting(
        classes: &Classes,
        json: &str,
        limits: &Limits,
        rounded: &mut dyn FnMut(&str, i128),
    ) -> Result<Self> {
        // Nearly all JSON has the form that this crate writes, which can be read without a tree.
        if let Some(object) = parse_direct(classes, json, limits, rounded) {
            return Ok(object);
        }
        let mut reader = serde_json::Deserializer::from_str(json);
        // The seed counts depth itself.
        reader.disable_recursion_limit();
        let item = Seed::new(limits).deserialize(&mut reader);
        let item = item.and_then(|item| reader.end().map(|()| item));
        let item = item.map_err(|error| Error::invalid(format!("invalid JSON: {error}")))?;
        build_reporting(classes, &item, Slot::Root, false, limits, rounded)
    }

    /// Reads an object from a JSON value. Properties are put into class order.
    pub fn from_json(classes: &Classes, json: &Json) -> Result<Self> {
        let limits = &Limits::DEFAULT;
        build(classes, &item(json, limits)?, Slot::Root, true, limits)
    }
}

/// Builds an object, or the value of a property or element, from JSON.
pub(super) fn build(
    classes: &Classes,
    item: &Item,
    slot: Slot<'_>,
    sort: bool,
    limits: &Limits,
) -> Result<Object> {
    build_reporting(classes, item, slot, sort, limits, &mut |_, _| {})
}
