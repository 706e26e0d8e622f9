//! ObjectProperty: the encoding of game objects in messages and files.
//!
//! Bits fill a byte from the least significant up; most values begin at a whole byte. An object is
//! the tag of its class and its values. In shallow streams the values follow each other in the
//! order of the class; in deep streams each has its size and hash before it. [`ObjectCodec`] reads and
//! writes both, by the [`Classes`] of the user's type lists.
//!
//! | layer | layout | when |
//! | --- | --- | --- |
//! | file | `BINd` | [`ObjectOptions::magic`] |
//! | envelope | `u32` size, zlib data; or `u32` size with bit 31, plain data | [`ObjectOptions::envelope`] |
//! | flags | `u32`, which override those of the options | [`STATEFUL`] |
//! | compression | `u8` 0, or another and `u32` size, zlib data | [`ZLIB`] |
//! | object | `u32` tag or six bytes ([`ObjectOptions::core`]), values; 0 for none | always |
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
//! let root = object.root(&classes).expect("it was read just now");
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
mod edit;
mod encode;
pub mod hints;
mod json;
mod pack;
mod sample;
mod show;
mod value;
mod visitor;
pub mod xml;

use std::sync::Arc;

use worldwire_core::{Error, Limits, Names, Reader, Result, Trace};

use crate::schema::classes::{Classes, Property};

pub use core_table::{CoreClass, CoreTable};
pub use hints::Hints;
pub use json::{JsonWriter, looks_rounded};
pub use pack::{ENVELOPE_STORED, open_envelope, seal_envelope};
pub use value::{Children, Object, ValueRef};
pub use visitor::{Bits, CoreId, Leaf, Slot, Visitor};

/// Flag of a stream: its flags are written in front of it.
pub const STATEFUL: u32 = 1;
/// Flag of a stream: lengths below 128 take 8 bits, others 32.
pub const COMPACT: u32 = 1 << 1;
/// Flag of a stream: enumerations are written as their names.
pub const HUMAN_READABLE: u32 = 1 << 2;
/// Flag of a stream: the object may be compressed.
pub const ZLIB: u32 = 1 << 3;
/// Flag of a stream: no property may be left out as unchanged.
pub const FORBID_DELTA: u32 = 1 << 4;

/// The names of stream flags.
pub static FLAG_NAMES: Names = Names::fixed(&[
    (1, "STATEFUL"),
    (1 << 1, "COMPACT"),
    (1 << 2, "HUMAN_READABLE"),
    (1 << 3, "ZLIB"),
    (1 << 4, "FORBID_DELTA"),
]);

/// What a file begins with.
pub const MAGIC: &[u8; 4] = b"BINd";

/// How a stream is to be read and written. Nothing in a stream says it, so whoever has the stream
/// has to know.
#[derive(Clone, Debug)]
pub struct ObjectOptions {
    /// [`STATEFUL`], [`COMPACT`] and so on. A stateful stream brings its own.
    pub flags: u32,
    /// A shallow stream has the properties whose flags have all bits of the mask: 0x18 for the
    /// owner (the default), 0x1c for everybody, 1 for files. Values of others that an object has
    /// are not written: that is what a mask is for.
    pub mask: u32,
    /// Every value stands behind its size and hash.
    pub deep: bool,
    /// An envelope is around the stream, as in many message fields.
    pub envelope: bool,
    /// `BINd` stands in front of the stream, which is stateful then.
    pub magic: bool,
    /// Tags are in the CoreObject form, by these pairs.
    pub core: Option<Arc<CoreTable>>,
    /// A shallow stream has no properties that are out of use. Not so by default, though other
    /// programs believe it. Unverified: which of the two is right; no real data shows it.
    pub skip_deprecated: bool,
    /// What is written deep has only the properties that the mask asks for and that are not out of
    /// use. By default all that the object has is written, so that what was read stays as it was.
    pub masked: bool,
    /// Unknown properties and classes of a deep stream, what stands in a property without being of
    /// its type and size, what is left at the end of an object, and unknown names are kept as they
    /// are, with a note, instead of being errors: written again they are the same bits, and what is
    /// not the same is padding. A deep stream is read twice for this.
    pub lenient: bool,
    /// The outermost object may be null.
    pub null_root: bool,
    /// The most objects in one stream. Default 4,194,304.
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
    /// Those of `BINd` files: deep, stateful, with names. What is written is compressed.
    #[must_use]
    pub fn file() -> Self {
        let flags = STATEFUL | COMPACT | HUMAN_READABLE | ZLIB;
        Self { flags, mask: 1, deep: true, magic: true, ..Self::default() }
    }

    /// Which properties a shallow stream has.
    #[inline]
    fn shallow(&self) -> Shallow {
        Shallow { mask: self.mask, skip_deprecated: self.skip_deprecated }
    }

    /// Whether the game writes a property into a deep stream, when it is no unchanged one.
    fn writes_deep(&self, property: &Property) -> bool {
        property.has(self.mask) && !property.has(Property::DEPRECATED)
    }

    /// Whether the stream brings its own flags: files do, and what has [`STATEFUL`] set.
    #[must_use]
    pub fn is_stateful(&self) -> bool {
        self.magic || self.flags & STATEFUL != 0
    }
}

/// Which properties a shallow stream has: a copy, so that loops need not look at the options again.
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

/// Reads and writes objects of these classes.
#[derive(Clone, Debug)]
pub struct ObjectCodec<'c> {
    classes: &'c Classes,
    options: ObjectOptions,
}

/// What stands around an object and is not in its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The flags of the stream: its own, if it brought any. Only a stream that states its flags is
    /// written with these.
    pub flags: u32,
    /// Whether the object is compressed, where the flags allow it. A compressed stream is written
    /// so only if that makes it smaller, and not too small for all the values in it
    /// ([`Limits::values_per_byte`]).
    pub is_compressed: bool,
    /// Whether the envelope is compressed, if there is one.
    pub is_packed: bool,
}

/// What came of reading an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// What stood around it.
    pub header: Header,
    /// What was odd: objects where those of an unrelated class belong and, when lenient, what is no
    /// error then. At most 200 notes.
    pub notes: Vec<ObjectNote>,
}

/// Something odd that was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectNote {
    /// Where, in bits of the innermost layer.
    pub bit: u64,
    /// What.
    pub text: String,
}

impl<'c> ObjectCodec<'c> {
    /// Reads and writes objects of these classes.
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

    /// The header of a new stream: the flags of the options, compressed where they allow it.
    #[must_use]
    pub fn header(&self) -> Header {
        Header { flags: self.options.flags, is_compressed: true, is_packed: true }
    }

    /// Reads one stream and reports what is in it to the visitor: an [`Object`], a [`JsonWriter`] or
    /// your own. The stream ends where the object does; an envelope takes all that is left.
    ///
    /// # Errors
    /// Malformed, for bytes that are no such stream, and what lenient reading would keep; the
    /// limits; those of the visitor.
    pub fn decode<'d, T: Trace<'c>, V: Visitor<'c>>(
        &self,
        reader: &mut Reader<'d, T>,
        visitor: &mut V,
    ) -> Result<Decoded> {
        self.decode_as("object", reader, visitor)
    }

    /// The same with another name for the outermost object than `object`, in the tree and in errors.
    ///
    /// # Errors
    /// Those of [`Self::decode`].
    pub fn decode_as<'d, T: Trace<'c>, V: Visitor<'c>>(
        &self,
        name: &'c str,
        reader: &mut Reader<'d, T>,
        visitor: &mut V,
    ) -> Result<Decoded> {
        decode::decode(self, reader, visitor, name)
    }

    /// Reads one stream that takes all of the bytes.
    ///
    /// # Errors
    /// Those of [`Self::decode`]; Malformed, for bytes behind the object.
    pub fn decode_all<V: Visitor<'c>>(&self, bytes: &[u8], visitor: &mut V) -> Result<Decoded> {
        self.decode_all_within(bytes, &Limits::DEFAULT, visitor)
    }

    /// The same within other limits.
    ///
    /// # Errors
    /// Those of [`Self::decode_all`].
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

    /// Writes an object; `header` is that of the stream it was read from, or [`Self::header`]. A
    /// shallow stream gets the properties that the [mask](ObjectOptions::mask) asks for and no others.
    ///
    /// # Errors
    /// Value, when the object cannot be written: a property that a shallow stream needs is
    /// missing or there twice, or a value is not of the type of its property; the limit on depth.
    pub fn encode(&self, object: &Object, header: Header) -> Result<Vec<u8>> {
        self.encode_within(object, header, &Limits::DEFAULT)
    }

    /// The same within other limits: those that the object was read within.
    ///
    /// # Errors
    /// Those of [`Self::encode`].
    pub fn encode_within(
        &self,
        object: &Object,
        header: Header,
        limits: &Limits,
    ) -> Result<Vec<u8>> {
        encode::encode(self, object, header, limits)
    }
}
