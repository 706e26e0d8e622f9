//! What a decoder tells while it reads an object.

use worldwire_core::Result;

use crate::schema::classes::{Class, Property, Tuple};

/// Listens to an object being read or walked through, so that a large one can become JSON without
/// ever being a value in memory. [`Object`](super::Object) is a visitor itself. What a visitor does
/// not listen to, it passes over.
///
/// Whatever is begun is ended, also when reading it, or the visitor, failed.
pub trait Visitor<'c> {
    /// An object begins.
    ///
    /// # Errors
    /// Whatever keeps the visitor from going on; reading ends with it.
    fn begin_object(&mut self, _slot: Slot<'c>, _class: &'c Class, _id: CoreId) -> Result<()> {
        Ok(())
    }

    /// The object begun last is complete.
    ///
    /// # Errors
    /// As [`Self::begin_object`].
    fn end_object(&mut self) -> Result<()> {
        Ok(())
    }

    /// The values of a container begin.
    ///
    /// # Errors
    /// As [`Self::begin_object`].
    fn begin_list(&mut self, _slot: Slot<'c>) -> Result<()> {
        Ok(())
    }

    /// The container begun last is complete.
    ///
    /// # Errors
    /// As [`Self::begin_object`].
    fn end_list(&mut self) -> Result<()> {
        Ok(())
    }

    /// A value that is neither.
    ///
    /// # Errors
    /// As [`Self::begin_object`].
    fn value(&mut self, _slot: Slot<'c>, _value: Leaf<'_>) -> Result<()> {
        Ok(())
    }
}

/// Keeps nothing: for those who only listen to the reader, or only want to know whether bytes are
/// an object.
impl<'c> Visitor<'c> for () {}

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub enum Slot<'c> {
    /// It is the outermost object.
    Root,
    /// It is the value of a property.
    Property(&'c Property),
    /// It is an element of the container of a property.
    Element(&'c Property),
    /// It is the value of a property that no list knows: its hash.
    Unknown(u32),
    /// It is what is left of a deep object behind its last property: a [`Leaf::Raw`] that is no other,
    /// as it is too short or says a size that cannot be. It begins where the bits in front of it
    /// end, wherever that is in a byte.
    Rest,
}

impl<'c> Slot<'c> {
    /// What [`Self::Rest`] is called.
    pub(super) const REST: &'static str = "$rest";

    /// The property that the value or the container around it belongs to.
    #[must_use]
    pub fn property(self) -> Option<&'c Property> {
        match self {
            Self::Property(property) | Self::Element(property) => Some(property),
            Self::Root | Self::Unknown(_) | Self::Rest => None,
        }
    }
}

/// A value without parts that have names of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// No object.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A single-precision number.
    F32(f32),
    /// A double-precision number.
    F64(f64),
    /// A number of an enumeration.
    Enum(u32),
    /// A set of flags.
    Flags(u32),
    /// The bytes of a string; or the name of an enumeration that its options lack.
    Text(&'a [u8]),
    /// The bytes of a string of 16-bit units, little-endian.
    WideText(&'a [u8]),
    /// The bytes of a group of numbers, as they stand on the wire.
    Tuple(Tuple, &'a [u8]),
    /// The value of a property that cannot be read: it is unknown, or what stands in it is not of its
    /// type and size. Of a container these are its count and all of its elements.
    Raw(Bits<'a>),
    /// An object of a class that no list knows; see [`Self::object`].
    Object {
        /// Its tag.
        tag: u32,
        /// The block of its [`CoreId`].
        block: u8,
        /// The type of it.
        kind: u8,
        /// The template of it.
        template: u32,
        /// How many bits stand behind its size.
        count: u32,
        /// The bytes that they are in.
        bytes: &'a [u8],
    },
}

/// Every value that is read passes as one of these: an object in parts of their own takes more.
const _: () = assert!(size_of::<Leaf<'_>>() <= 32);

impl<'a> Leaf<'a> {
    /// An object of a class that no list knows: its tag, its id in the CoreObject form, and what
    /// stands behind its size.
    #[must_use]
    pub const fn object(tag: u32, id: CoreId, bits: Bits<'a>) -> Self {
        let CoreId { block, kind, template } = id;
        let Bits { count, bytes } = bits;
        Self::Object { tag, block, kind, template, count, bytes }
    }
}

/// So many bits of so many bytes, beginning at a whole byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<'a> {
    /// How many bits count.
    pub count: u32,
    /// The bytes; bits of the last one beyond the count mean nothing.
    pub bytes: &'a [u8],
}

impl Bits<'_> {
    /// The bytes with nothing but the bits that count.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = self.bytes.to_vec();
        bytes.truncate(self.count.div_ceil(8) as usize);
        if let Some(last) = bytes.last_mut().filter(|_| !self.count.is_multiple_of(8)) {
            *last &= 0xff >> (8 - self.count % 8);
        }
        bytes
    }
}

/// What stands in front of an object in the CoreObject form. All zero for an ordinary class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreId {
    /// The block, or class id.
    pub block: u8,
    /// The type, or namespace.
    pub kind: u8,
    /// The template id.
    pub template: u32,
}
