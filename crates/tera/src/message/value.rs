//! Values of messages, in the order of their fields.

use std::borrow::Cow;

use crate::types::{Angle, Text};

/// A value of a field, or of a whole message.
///
/// The values of a record are in the order of the plan's fields, so encoding needs no lookup by
/// name. To look up or change fields by name, use a [`Tape`](super::Tape).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value<'d> {
    /// Not given: stands for zero, empty, or a record of such values.
    #[default]
    Absent,
    /// `bool`.
    Bool(bool),
    /// `byte`, `uint16`, `uint32`, `uint64`.
    Unsigned(u64),
    /// `int16`, `int32`, `int64`.
    Signed(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `angle`.
    Angle(Angle),
    /// `vec3`.
    Vec3([f32; 3]),
    /// `vec3fa`, in units.
    Vec3fa([f32; 3]),
    /// `skillid` and `skillid32`: the raw number from the wire. See
    /// [`Skill`](crate::types::Skill).
    Skill(u64),
    /// `customize`.
    Customize([u8; 8]),
    /// `string`.
    Text(Text<'d>),
    /// `bytes`.
    Bytes(Cow<'d, [u8]>),
    /// The elements of an array or row.
    List(Vec<Self>),
    /// The fields of an object, an element or a message. Missing values are zero or empty; values
    /// beyond the plan's fields are not written.
    Record(Vec<Self>),
}

impl Value<'_> {
    /// Copies borrowed text and bytes.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Absent => Value::Absent,
            Self::Bool(value) => Value::Bool(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Signed(value) => Value::Signed(value),
            Self::Float(value) => Value::Float(value),
            Self::Double(value) => Value::Double(value),
            Self::Angle(value) => Value::Angle(value),
            Self::Vec3(value) => Value::Vec3(value),
            Self::Vec3fa(value) => Value::Vec3fa(value),
            Self::Skill(value) => Value::Skill(value),
            Self::Customize(value) => Value::Customize(value),
            Self::Text(value) => Value::Text(value.into_owned()),
            Self::Bytes(value) => Value::Bytes(Cow::Owned(value.into_owned())),
            Self::List(values) => Value::List(values.into_iter().map(Self::into_owned).collect()),
            Self::Record(values) => {
                Value::Record(values.into_iter().map(Self::into_owned).collect())
            }
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}
