//! The reports of a decoder while it decodes an object.

use worldwire_core::Result;

use crate::schema::classes::{Class, Property, Tuple};

/// Receives the parts of an object as it is decoded or traversed, so that a large object can be
/// converted to JSON without being in memory as a whole. [`Object`](super::Object) is a visitor. By
/// default, a visitor ignores everything.
///
/// Every `begin` is followed by its `end`, even if decoding or the visitor fails.
pub trait Visitor<'c> {
    /// An object begins. An error ends decoding, as does an error from any other method.
    fn begin_object(&mut self, _slot: Slot<'c>, _class: &'c Class, _id: CoreId) -> Result<()> {
        Ok(())
    }

    /// The object begun last is complete.
    fn end_object(&mut self) -> Result<()> {
        Ok(())
    }

    /// The values of a container begin.
    fn begin_list(&mut self, _slot: Slot<'c>) -> Result<()> {
        Ok(())
    }

    /// The container begun last is complete.
    fn end_list(&mut self) -> Result<()> {
        Ok(())
    }

    /// A value that is neither an object nor a container.
    fn value(&mut self, _slot: Slot<'c>, _value: Leaf<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether the value that comes next is needed. Deep streams state the sizes of values, so the
    /// decoder asks this for every property and for every object in a list. It skips values that
    /// are not needed, without checking or reporting them, unless it is tracing or lenient.
    fn wants(&mut self, _slot: Slot<'c>) -> bool {
        true
    }
}

/// Ignores everything, for callers that need only the trace or the outcome.
impl<'c> Visitor<'c> for () {}

/// The position of a value in its object.
#[derive(Clone, Copy, Debug)]
pub enum Slot<'c> {
    /// The outermost object.
    Root,
    /// The value of a property.
    Property(&'c Property),
    /// An element of a property's container.
    Element(&'c Property),
    /// The value of an unknown property, identified by its hash.
    Unknown(u32),
    /// The leftovers of a deep object after its last property: a [`Leaf::Raw`] that is too short
    /// for a property or states an impossible size. The leftovers begin where the preceding bits
    /// end, possibly in the middle of a byte.
    Rest,
}

impl<'c> Slot<'c> {
    /// The name of [`Self::Rest`].
    pub(super) const REST: &'static str = "$rest";

    /// The property of the value, or of the container around it.
    #[must_use]
    pub fn property(self) -> Option<&'c Property> {
        match self {
            Self::Property(property) | Self::Element(property) => Some(property),
            Self::Root | Self::Unknown(_) | Self::Rest => None,
        }
    }
}

/// A value without named parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// Null: no object.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A single-precision number.
    F32(f32),
    /// A double-precision number.
    F64(f64),
    /// The number of an enumeration.
    Enum(u32),
    /// A set of flags.
    Flags(u32),
    /// The bytes of a string, or of an enumeration's name that is not among its options.
    Text(&'a [u8]),
    /// The bytes of a string of 16-bit units, little-endian.
    WideText(&'a [u8]),
    /// The bytes of a tuple, as on the wire.
    Tuple(Tuple, &'a [u8]),
    /// The value of a property that cannot be decoded, because the property is unknown or the value
    /// does not match its type and size. For a container: its count and all its elements.
    Raw(Bits<'a>),
    /// An object of an unknown class; see [`Self::object`].
    Object {
        /// The tag of the object's class.
        tag: u32,
        /// The block of the object's [`CoreId`].
        block: u8,
        /// The type of the object's [`CoreId`].
        kind: u8,
        /// The template of the object's [`CoreId`].
        template: u32,
        /// The number of bits after the object's size.
        count: u32,
        /// The bytes that contain these bits.
        bytes: &'a [u8],
    },
}

/// Every decoded value is passed as a `Leaf`, so it must stay small.
const _: () = assert!(size_of::<Leaf<'_>>() <= 32);

impl<'a> Leaf<'a> {
    /// An object of an unknown class: its tag, its ID in the CoreObject form, and the bits after
    /// its size.
    #[must_use]
    pub const fn object(tag: u32, id: CoreId, bits: Bits<'a>) -> Self {
        let CoreId { block, kind, template } = id;
        let Bits { count, bytes } = bits;
        Self::Object { tag, block, kind, template, count, bytes }
    }
}

/// A sequence of bits that begins at a byte boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<'a> {
    /// The number of bits.
    pub count: u32,
    /// The bytes. In the last one, bits beyond the count are meaningless.
    pub bytes: &'a [u8],
}

impl Bits<'_> {
    /// The bytes, with all other bits cleared.
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

/// The ID in place of a class tag in the CoreObject form. All parts are zero for an ordinary class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreId {
    /// The block, also called class ID.
    pub block: u8,
    /// The type, also called namespace.
    pub kind: u8,
    /// The template ID.
    pub template: u32,
}
