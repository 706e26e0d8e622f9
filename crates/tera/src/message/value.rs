//! Values of messages, in the order of their fields.

use core::mem::{forget, replace};
use std::borrow::Cow;

use super::decode::{Group, Leaf, Sink};
use super::scalar::{ScalarValue, emit_scalar};
use crate::schema::plan::{FieldKind, Fixed, Plan};
use crate::types::{Angle, Skill, SkillForm, Text};

/// A value of a field, or of a whole message.
///
/// The values of a record are in the order of the plan's fields, so encoding needs no lookup by
/// name. [`Plan::get`] and [`Plan::set`] find a value by its path.
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
    /// `skillid` and `skillid32`: the raw number from the wire. See [`Skill`].
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

    /// The value as an unsigned integer, if it is a non-negative integer or a boolean.
    #[must_use]
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(*value),
            Self::Signed(value) => u64::try_from(*value).ok(),
            Self::Bool(value) => Some(u64::from(*value)),
            _ => None,
        }
    }

    /// The value as text.
    #[must_use]
    pub fn text(&self) -> Option<&Text<'_>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a skill, in the field's form.
    #[must_use]
    pub fn skill(&self, form: SkillForm) -> Option<Skill> {
        match self {
            Self::Skill(raw) => Some(Skill::from_raw(*raw, form)),
            _ => None,
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

/// A step of a path such as `members[2].name`.
#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

/// The steps of a path; `None` for a malformed step.
pub(super) fn path_steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    path.split('.').flat_map(|part| {
        let mut pieces = part.split('[');
        let name = pieces.next().filter(|name| !name.is_empty());
        let index = |piece: &str| piece.strip_suffix(']')?.parse().ok().map(Step::Index);
        name.map(|name| Some(Step::Name(name))).into_iter().chain(pieces.map(index))
    })
}

/// The part of a plan that a path has reached.
#[derive(Clone)]
enum Shape<'p> {
    Record(&'p core::ops::Range<u32>),
    /// Elements of this scope.
    List(u32),
    /// Fields by their index.
    Row(&'p core::ops::Range<u32>),
    Leaf,
}

impl Plan {
    /// The value at a path of names and indices, such as `members[2].name`. `None` if the field
    /// does not exist or has no value.
    #[must_use]
    pub fn get<'v, 'd>(&self, value: &'v Value<'d>, path: &str) -> Option<&'v Value<'d>> {
        let mut value = value;
        let mut shape = Shape::Record(&self.scope(self.root).fields);
        for step in path_steps(path) {
            let (slot, inner) = self.step(&shape, step?)?;
            value = match value {
                Value::Record(values) | Value::List(values) => values.get(slot)?,
                _ => return None,
            };
            shape = inner;
        }
        (*value != Value::Absent).then_some(value)
    }

    /// Sets the value at a path. Records on the way are created. List elements must exist, except
    /// that the one after the last can be added. Whether the value fits its field is checked on
    /// encoding.
    ///
    /// Returns `false`, and changes nothing, if the path leads nowhere.
    /// [`Tape::set`](super::Tape::set) says why.
    #[must_use = "a path that leads nowhere changes nothing"]
    pub fn set<'d>(&self, value: &mut Value<'d>, path: &str, new: Value<'d>) -> bool {
        let mut place = value;
        let mut shape = Shape::Record(&self.scope(self.root).fields);
        // Check the whole path before creating anything.
        let mut check = shape.clone();
        for step in path_steps(path) {
            let Some((_, inner)) = step.and_then(|step| self.step(&check, step)) else {
                return false;
            };
            check = inner;
        }
        for step in path_steps(path) {
            let Some((slot, inner)) = step.and_then(|step| self.step(&shape, step)) else {
                return false;
            };
            let list = matches!(shape, Shape::List(_));
            if *place == Value::Absent {
                let record = matches!(shape, Shape::Record(_));
                *place = if record { Value::Record(Vec::new()) } else { Value::List(Vec::new()) };
            }
            let (Value::Record(values) | Value::List(values)) = place else { return false };
            if slot >= values.len() {
                if list && slot > values.len() {
                    return false;
                }
                values.resize(slot + 1, Value::Absent);
            }
            let Some(next) = values.get_mut(slot) else { return false };
            place = next;
            shape = inner;
        }
        *place = new;
        true
    }

    fn step<'p>(&'p self, shape: &Shape<'p>, step: Step<'_>) -> Option<(usize, Shape<'p>)> {
        match (shape, step) {
            (Shape::Record(range), Step::Name(name)) => {
                let fields = self.fields_of(range);
                let slot = fields.iter().position(|field| field.name() == name)?;
                Some((slot, self.shape(fields.get(slot)?.kind())))
            }
            (Shape::Row(range), Step::Index(index)) => {
                let field = self.fields_of(range).get(index)?;
                Some((index, self.shape(field.kind())))
            }
            (Shape::List(scope), Step::Index(index)) => {
                let scope = self.scope(*scope);
                let inner = if scope.single {
                    self.shape(self.fields_of(&scope.fields).first()?.kind())
                } else {
                    Shape::Record(&scope.fields)
                };
                Some((index, inner))
            }
            _ => None,
        }
    }

    fn shape<'p>(&self, kind: &'p FieldKind) -> Shape<'p> {
        match kind {
            FieldKind::Object(range) => Shape::Record(range),
            FieldKind::Row(range) => Shape::Row(range),
            FieldKind::Array { scope, .. } => Shape::List(*scope),
            _ => Shape::Leaf,
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
            // The old value needs no drop, and checking for that costs a call each time.
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
