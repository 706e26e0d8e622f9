//! ObjectProperty: the encoding of game objects in messages and files.
//!
//! Bits fill a byte from the least significant one upwards; most values begin at a whole byte. An
//! object is its class tag followed by its values. In shallow streams, values follow in class
//! order; in deep streams, each value is preceded by its size and hash. [`ObjectCodec`] decodes and
//! encodes both, using the [`Classes`] of the user's type lists.
//!
//! | layer | layout | when |
//! | --- | --- | --- |
//! | file | `BINd` | [`ObjectOptions::magic`] |
//! | envelope | `u32` size, zlib data; or `u32` size with bit 31, plain data | [`ObjectOptions::envelope`] |
//! | flags | `u32`, overriding those of the options | [`STATEFUL`] |
//! | compression | `u8` 0, plain data; or another `u8`, `u32` size, zlib data | [`ZLIB`] |
//! | object | `u32` tag or six bytes ([`ObjectOptions::core`]), values; tag 0 for null | always |
//!
//! ```
//! use worldwire_core::Reader;
//! use worldwire_ki::object::{ObjectCodec, Object, ObjectOptions};
//! use worldwire_ki::schema::classes::TypeLists;
//!
//! let list = br#"{"version": 2, "classes": {"84938464": {"name": "class Leaf", "bases": [],
//!     "hash": 84938464, "properties": {"m_v": {"type": "unsigned int", "id": 0, "flags": 31},
//!     "m_n": {"type": "std::string", "id": 1, "flags": 31}}}}}"#;
//! let mut lists = TypeLists::new();
//! lists.add("types.json", list)?;
//! let classes = lists.compile();
//!
//! let bytes = b"\xe0\x0e\x10\x05\x07\0\0\0\x02\0hi";
//! let codec = ObjectCodec::new(&classes, ObjectOptions::default());
//! let mut object = Object::new();
//! let decoded = codec.decode_all(bytes, &mut object)?;
//! let root = object.root(&classes).expect("it was just decoded");
//! assert_eq!(root.property("m_v").and_then(|value| value.unsigned()), Some(7));
//! let json = object.to_json(&classes)?;
//! assert_eq!(json, r#"{"$class":"class Leaf","m_v":7,"m_n":"hi"}"#);
//!
//! let changed = Object::parse_json(&classes, &json.replace("7", "8"))?;
//! assert_eq!(codec.encode(&changed, decoded.header)?, b"\xe0\x0e\x10\x05\x08\0\0\0\x02\0hi");
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod bases;
mod complete;
mod core_table;
mod decode;
mod defaults;
mod edit;
mod encode;
pub mod hints;
mod json;
mod pack;
mod parse;
mod paths;
mod plain;
mod sample;
mod show;
mod value;
mod visitor;
pub mod xml;

use core::fmt;
use std::sync::Arc;

use worldwire_core::{Error, Limits, Names, Reader, Result, Step, Trace};

use crate::schema::classes::{Classes, Property};

pub use core_table::{CoreClass, CoreTable};
pub use hints::Hints;
pub use json::{JsonWriter, looks_rounded};
#[cfg(feature = "file")]
pub(crate) use pack::inflate_up_to;
pub use pack::{ENVELOPE_STORED, open_envelope, seal_envelope};
pub use paths::{PathValue, PathVisitor, ValuePaths};
pub use plain::Plain;
pub use value::{Children, Object, ValueRef};
pub use visitor::{Bits, CoreId, Leaf, Slot, Visitor};

/// Stream flag: the flags precede the stream.
pub const STATEFUL: u32 = 1;
/// Stream flag: lengths below 128 take 8 bits, others 32.
pub const COMPACT: u32 = 1 << 1;
/// Stream flag: enumerations are encoded as names.
pub const HUMAN_READABLE: u32 = 1 << 2;
/// Stream flag: the object may be compressed.
pub const ZLIB: u32 = 1 << 3;
/// Stream flag: no property may be omitted as unchanged.
pub const FORBID_DELTA: u32 = 1 << 4;

/// The names of stream flags.
pub static FLAG_NAMES: Names = Names::fixed(&[
    (1, "STATEFUL"),
    (1 << 1, "COMPACT"),
    (1 << 2, "HUMAN_READABLE"),
    (1 << 3, "ZLIB"),
    (1 << 4, "FORBID_DELTA"),
]);

/// The first bytes of a file.
pub const MAGIC: &[u8; 4] = b"BINd";

/// How to decode and encode a stream. Streams do not carry this information.
#[derive(Clone, Debug)]
pub struct ObjectOptions {
    /// [`STATEFUL`], [`COMPACT`] and so on. A stateful stream carries its own flags.
    pub flags: u32,
    /// A shallow stream contains only the properties whose flags include all bits of this mask:
    /// 0x18 for the owner (the default), 0x1c for everyone, 1 for files. Encoding drops an object's
    /// other values.
    pub mask: u32,
    /// Every value is preceded by its size and hash.
    pub deep: bool,
    /// The stream is inside an envelope, as in many message fields.
    pub envelope: bool,
    /// The stream starts with `BINd` and is stateful.
    pub magic: bool,
    /// Tags have the CoreObject form, with these pairs.
    pub core: Option<Arc<CoreTable>>,
    /// A shallow stream omits deprecated properties. Off by default, although other programs do
    /// this. Unverified: which of the two is right; no known data answers this.
    pub skip_deprecated: bool,
    /// Encoding a deep stream omits properties that are deprecated or not covered by the mask. By
    /// default, all properties are encoded, so that a decoded object is encoded unchanged.
    pub masked: bool,
    /// Decoding a deep stream keeps, with a note, parts that it cannot decode, instead of failing:
    /// unknown properties, classes and names, values that do not match the type or size of their
    /// property, and leftovers at the end of an object. Encoding reproduces these bits exactly,
    /// apart from padding. The stream is decoded twice for this.
    pub lenient: bool,
    /// Whether the outermost object may be null.
    pub null_root: bool,
    /// The maximum number of objects in a stream. Default: 4,194,304.
    pub max_objects: u64,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            flags: 0,
            mask: 0x18,
            deep: false,
            envelope: false,
            magic: false,
            core: None,
            skip_deprecated: false,
            masked: false,
            lenient: false,
            null_root: false,
            max_objects: 1 << 22,
        }
    }
}

impl ObjectOptions {
    /// The options of `BINd` files: deep, stateful, with names. Encoding compresses.
    #[must_use]
    pub fn file() -> Self {
        let flags = STATEFUL | COMPACT | HUMAN_READABLE | ZLIB;
        Self { flags, mask: 1, deep: true, magic: true, ..Self::default() }
    }

    /// The properties that a shallow stream contains.
    #[inline]
    fn shallow(&self) -> Shallow {
        Shallow { mask: self.mask, skip_deprecated: self.skip_deprecated }
    }

    /// Whether the game writes a property to a deep stream if it has changed.
    fn writes_deep(&self, property: &Property) -> bool {
        property.has(self.mask) && !property.has(Property::DEPRECATED)
    }

    /// Whether the stream carries its own flags: files do, and streams with [`STATEFUL`].
    #[must_use]
    pub fn is_stateful(&self) -> bool {
        self.magic || self.flags & STATEFUL != 0
    }
}

/// The properties that a shallow stream contains, copied so that loops do not read the options
/// again.
#[derive(Clone, Copy)]
struct Shallow {
    mask: u32,
    skip_deprecated: bool,
}

impl Shallow {
    #[inline]
    fn has(self, property: &Property) -> bool {
        property.has(self.mask) && !(self.skip_deprecated && property.has(Property::DEPRECATED))
    }
}

/// Decodes and encodes objects of known classes.
#[derive(Clone, Debug)]
pub struct ObjectCodec<'c> {
    classes: &'c Classes,
    options: ObjectOptions,
}

/// The layers around an object in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The flags of the stream: its own, if it carries any. Encoding uses them only for streams
    /// that carry their flags.
    pub flags: u32,
    /// Whether the object is compressed, if the flags allow it. Encoding compresses only if the
    /// result is smaller, and not too small for the number of values ([`Limits::values_per_byte`]).
    pub is_compressed: bool,
    /// Whether the envelope is compressed, if there is one.
    pub is_packed: bool,
}

/// The outcome of decoding an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The layers around the object.
    pub header: Header,
    /// Irregularities: objects of a class unrelated to that of their property and, in lenient
    /// decoding, mistakes that would otherwise be errors. At most 200.
    pub notes: Vec<ObjectNote>,
}

/// An irregularity that did not prevent decoding.
///
/// Displayed as path, position and text: `m_items[0].m_id at byte 8: wanted 4 bytes, found 2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectNote {
    /// Its path leads to what is irregular, which can be a part of a value that is kept as bits.
    error: Error,
    /// The number of steps of this path that lead to the value.
    steps: usize,
    bit: u64,
}

impl ObjectNote {
    /// A note about the object that is being decoded.
    fn of_object(bit: u64, text: String) -> Self {
        Self { error: Error::invalid(text).at(bit / 8), steps: 0, bit }
    }

    /// A note about a value of the object that is being decoded. The path of the error begins with
    /// the step to this value; `steps` is 0 if a list has yet to add this step.
    fn of_value(bit: u64, error: Error, steps: usize) -> Self {
        Self { error: error.at(bit / 8), steps, bit }
    }

    /// What is irregular, with path and position.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The path to the value, or to the object whose class or bits are irregular:
    /// `m_items[0].m_id`. Empty for the outermost object.
    #[must_use]
    pub fn path(&self) -> String {
        let mut text = String::new();
        for step in self.error.path().take(self.steps) {
            match step {
                Step::Field(name) => {
                    text.push_str(if text.is_empty() { "" } else { "." });
                    text.push_str(name);
                }
                Step::Item(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    /// The position of this value or object, in bits of the innermost layer.
    #[must_use]
    pub fn bit(&self) -> u64 {
        self.bit
    }

    /// The position in bytes of the innermost layer: the plain data of a compressed object.
    #[must_use]
    pub fn byte(&self) -> u64 {
        self.bit / 8
    }

    /// Prefixes the path with a step.
    fn inside(self, step: &Step) -> Self {
        let error = match step {
            Step::Field(name) => self.error.inside(name),
            Step::Item(index) => self.error.inside_item(*index),
        };
        Self { error, steps: self.steps + 1, ..self }
    }
}

impl fmt::Display for ObjectNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<'c> ObjectCodec<'c> {
    /// Decodes and encodes objects of known classes.
    #[must_use]
    pub fn new(classes: &'c Classes, options: ObjectOptions) -> Self {
        Self { classes, options }
    }

    /// The classes.
    #[must_use]
    pub fn classes(&self) -> &'c Classes {
        self.classes
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &ObjectOptions {
        &self.options
    }

    /// The header of a new stream: the flags of the options, with compression if they allow it.
    #[must_use]
    pub fn header(&self) -> Header {
        Header { flags: self.options.flags, is_compressed: true, is_packed: true }
    }

    /// Decodes one stream and reports its contents to the visitor: an [`Object`], a [`JsonWriter`]
    /// or your own. The stream ends where the object ends; an envelope takes all remaining bytes.
    ///
    /// # Errors
    /// `Malformed` if the bytes are not such a stream or contain anything that only lenient
    /// decoding keeps; a limit error; any error from the visitor.
    pub fn decode<'d, T: Trace<'c>, V: Visitor<'c>>(
        &self,
        reader: &mut Reader<'d, T>,
        visitor: &mut V,
    ) -> Result<Decoded> {
        self.decode_as("object", reader, visitor)
    }

    /// Like [`Self::decode`], with a name other than `object` for the outermost object in the tree
    /// and in errors.
    pub fn decode_as<'d, T: Trace<'c>, V: Visitor<'c>>(
        &self,
        name: &'c str,
        reader: &mut Reader<'d, T>,
        visitor: &mut V,
    ) -> Result<Decoded> {
        decode::decode(self, reader, visitor, name)
    }

    /// Decodes one stream that must span all of `bytes`.
    ///
    /// # Errors
    /// The errors of [`Self::decode`], and `Malformed` if bytes remain after the object.
    pub fn decode_all<V: Visitor<'c>>(&self, bytes: &[u8], visitor: &mut V) -> Result<Decoded> {
        self.decode_all_within(bytes, &Limits::DEFAULT, visitor)
    }

    /// Like [`Self::decode_all`], but with the given limits.
    pub fn decode_all_within<V: Visitor<'c>>(
        &self,
        bytes: &[u8],
        limits: &Limits,
        visitor: &mut V,
    ) -> Result<Decoded> {
        let mut reader = Reader::within(bytes, limits);
        let decoded = self.decode(&mut reader, visitor).map_err(Error::closed)?;
        reader.end()?;
        Ok(decoded)
    }

    /// Encodes an object with the header of the stream it was decoded from, or with
    /// [`Self::header`]. A shallow stream contains only the properties covered by the
    /// [mask](ObjectOptions::mask).
    ///
    /// # Errors
    /// `Value` if a property that a shallow stream needs is missing or occurs twice, or if a value
    /// does not have the type of its property; a limit error for excessive depth.
    pub fn encode(&self, object: &Object, header: Header) -> Result<Vec<u8>> {
        self.encode_within(object, header, &Limits::DEFAULT)
    }

    /// Like [`Self::encode`], but with the limits with which the object was decoded.
    pub fn encode_within(
        &self,
        object: &Object,
        header: Header,
        limits: &Limits,
    ) -> Result<Vec<u8>> {
        encode::encode(self, object, header, limits)
    }
}
