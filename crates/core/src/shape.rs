//! Layouts as data, for code generators.

use crate::{FieldInfo, Form, Names};

/// The wire format of a [`Field`](crate::Field) as data: what [`layout`](crate::Field::layout) says
/// in words. Numbers are little-endian, and sizes are in bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Shape {
    /// An unsigned number.
    Unsigned(usize),
    /// An unsigned number usually written in hexadecimal.
    Hex(usize),
    /// A signed number.
    Signed(usize),
    /// A floating-point number.
    Float(usize),
    /// 0 for false, 1 for true; other values are shown as numbers.
    Bool(usize),
    /// A number whose values have names.
    Enum {
        /// Its size.
        bytes: usize,
        /// Whether it is signed.
        is_signed: bool,
        /// The names.
        names: &'static Names,
    },
    /// A set of flags.
    Flags(usize, &'static Names),
    /// This many bytes of this form.
    Fixed(Form, usize),
    /// Text in this many bytes that ends at the first zero unit, if there is one.
    Padded(Form, usize),
    /// Text up to a zero unit.
    Terminated(Form),
    /// A count, and that many units.
    Counted {
        /// The meaning of the bytes.
        form: Form,
        /// The size of the count.
        count: usize,
        /// The size of a unit.
        unit: usize,
        /// The size of the terminator at the end, which the count includes.
        end: usize,
    },
    /// A count of this size, and that many elements.
    List(usize, Box<Self>),
    /// This many elements.
    Array(usize, Box<Self>),
    /// Elements up to the end of the enclosing part.
    Rest(Box<Self>),
    /// Bytes up to the end of the enclosing part.
    Tail,
    /// Fields that follow each other.
    Record(fn() -> Vec<FieldInfo>),
    /// A mask of this size, and the fields that its bits stand for, by bit.
    Masked(usize, fn() -> Vec<(u32, FieldInfo)>),
    /// A count of this size, which gives a length in units of this size, and a part of that length.
    Nested(usize, usize, Box<Self>),
    /// Present if the condition holds. The condition is Rust code that refers to earlier fields.
    Optional(&'static str, Box<Self>),
    /// A format that only code describes.
    Opaque,
}
