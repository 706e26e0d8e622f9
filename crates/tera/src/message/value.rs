//! Values of messages, in the order of their fields.

use core::mem::{forget, replace};
use std::borrow::Cow;

use super::decode::{Group, Leaf, Sink};
use super::scalar::{ScalarValue, emit_scalar};
use crate::schema::plan::{Fixed, Plan};
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

/// Collects decoded values.
pub(crate) struct ValueSink<'d> {
    /// The values so far of the record or list being filled.
    values: Vec<Value<'d>>,
}

/// Maximum capacity reserved before any elements have been read.
const MAX_ROOM: usize = 64;

impl<'d> ValueSink<'d> {
    /// For a message with this many fields.
    pub(crate) fn new(fields: usize) -> Self {
        // The number comes from a definition, so it is safe to reserve.
        Self { values: Vec::with_capacity(fields) }
    }

    /// The complete message.
    pub(crate) fn finish(self) -> Value<'d> {
        Value::Record(self.values)
    }
}

impl<'d, 'n> Sink<'d, 'n> for ValueSink<'d> {
    // Inlining it gains nothing: it does far more work than a call.
    #[inline(never)]
    fn fixed(&mut self, _: &'n Plan, run: &'n [Fixed], data: &'d [u8], _: usize) {
        // Writing in place is faster than pushing, which moves each value through memory.
        let from = self.values.len();
        self.values.resize_with(from + run.len(), Value::default);
        let places = self.values.get_mut(from..).unwrap_or_default();
        for (place, fixed) in places.iter_mut().zip(run) {
            // The old value needs no drop, and checking for that would take a call each time.
            let put = |value: ScalarValue| forget(replace(place, value.to_value()));
            emit_scalar(fixed.scalar, data, fixed.offset.into(), put);
        }
    }

    fn text(&mut self, _: Leaf<'n>, text: &'d [u8], _: usize) {
        self.values.push(Value::Text(Text::from_bytes(text)));
    }

    fn bytes(&mut self, _: Leaf<'n>, bytes: &'d [u8], _: usize) {
        self.values.push(Value::Bytes(Cow::Borrowed(bytes)));
    }

    fn group<R>(
        &mut self,
        group: Group<'n>,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        // A list's count comes from the message: do not trust it for the initial capacity.
        let room = match group {
            Group::List(_, _, count) | Group::Record(_, count) => count.min(MAX_ROOM),
            Group::Row(_) => 0,
        };
        let outer = replace(&mut self.values, Vec::with_capacity(room));
        let (outcome, _) = fill(self);
        let values = replace(&mut self.values, outer);
        let record = group.is_record();
        self.values.push(if record { Value::Record(values) } else { Value::List(values) });
        outcome
    }
}
