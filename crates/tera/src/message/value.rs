//! Values of messages, by the places of their fields.

use core::mem::{forget, replace};
use std::borrow::Cow;

use super::decode::{Leaf, Sink};
use super::scalar::{ScalarValue, tell_scalar};
use crate::schema::plan::{Field, FieldKind, Fixed, Plan};
use crate::types::{Angle, Skill, SkillForm, Text};

/// A value of a field, or of a whole message.
///
/// The values of a record stand in the order of the fields of its plan, so nothing is looked up by
/// name when it is written; [`Plan::get`] and [`Plan::set`] find a value by its path.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value<'d> {
    /// Not given: zero, empty, or a record of such values.
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
    /// `skillid` and `skillid32`: the word as it stands on the wire. See [`Skill`].
    Skill(u64),
    /// `customize`.
    Customize([u8; 8]),
    /// `string`.
    Text(Text<'d>),
    /// `bytes`.
    Bytes(Cow<'d, [u8]>),
    /// The elements of an array or row.
    List(Vec<Self>),
    /// The fields of an object, an element or a message. Where there are fewer the others are zero or
    /// empty; more than the plan has are not written.
    Record(Vec<Self>),
}

impl Value<'_> {
    /// Makes it owned: text and bytes are copied.
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

    /// A whole number that is not negative.
    #[must_use]
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(*value),
            Self::Signed(value) => u64::try_from(*value).ok(),
            Self::Bool(value) => Some(u64::from(*value)),
            _ => None,
        }
    }

    /// A text.
    #[must_use]
    pub fn text(&self) -> Option<&Text<'_>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A skill, taken apart; `form` is that of the field.
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

/// The steps of a path; the inner `None` is one that cannot be read.
pub(super) fn path_steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    path.split('.').flat_map(|part| {
        let mut pieces = part.split('[');
        let name = pieces.next().filter(|name| !name.is_empty());
        let index = |piece: &str| piece.strip_suffix(']')?.parse().ok().map(Step::Index);
        name.map(|name| Some(Step::Name(name))).into_iter().chain(pieces.map(index))
    })
}

/// Where a path has come to in a plan.
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
    /// The value at a path of names and indices: `members[2].name`. `None` when there is no such
    /// field, or it is not given.
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

    /// Puts a value at a path. Records on the way are made; elements of lists have to exist, but
    /// one behind the last is added. Whether the value fits the field is found when it is written.
    ///
    /// Gives `false`, and changes nothing, when the path leads nowhere. [`Tape::set`](super::Tape::set)
    /// says why.
    #[must_use = "a path that leads nowhere changes nothing"]
    pub fn set<'d>(&self, value: &mut Value<'d>, path: &str, new: Value<'d>) -> bool {
        let mut place = value;
        let mut shape = Shape::Record(&self.scope(self.root).fields);
        // Nothing may be made before the whole path is known to be good.
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

/// Collects what the decoder finds.
pub(crate) struct ValueSink<'d> {
    /// What the record or list holds so far that is being filled.
    values: Vec<Value<'d>>,
}

/// Values that room is made for before they are there.
const MAX_ROOM: usize = 64;

impl<'d> ValueSink<'d> {
    /// For a message of so many fields.
    pub(crate) fn new(fields: usize) -> Self {
        // A definition that is there, so the message may be as large.
        Self { values: Vec::with_capacity(fields) }
    }

    /// The message.
    pub(crate) fn finish(self) -> Value<'d> {
        Value::Record(self.values)
    }

    /// Fills a record or list, and takes it out again.
    #[inline]
    fn within<R>(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> (Vec<Value<'d>>, R) {
        // The count is only promised; the elements that are there let it grow.
        let inner = Vec::with_capacity(count.min(MAX_ROOM));
        let outer = replace(&mut self.values, inner);
        let (outcome, _) = fill(self);
        (replace(&mut self.values, outer), outcome)
    }
}

impl<'d, 'n> Sink<'d, 'n> for ValueSink<'d> {
    // It takes more than a call.
    #[inline(never)]
    fn fixed(&mut self, _: &'n Plan, run: &'n [Fixed], data: &'d [u8], _: usize) {
        // Each into its place at once: values that are moved are read back before they are written.
        let from = self.values.len();
        self.values.resize_with(from + run.len(), Value::default);
        let places = self.values.get_mut(from..).unwrap_or_default();
        for (place, fixed) in places.iter_mut().zip(run) {
            // What was there holds nothing: to find that out takes a call each time.
            let put = |value: ScalarValue| forget(replace(place, value.to_value()));
            tell_scalar(fixed.scalar, data, fixed.offset.into(), put);
        }
    }

    fn text(&mut self, _: Leaf<'n>, text: &'d [u8], _: usize) {
        self.values.push(Value::Text(Text::from_bytes(text)));
    }

    fn bytes(&mut self, _: Leaf<'n>, bytes: &'d [u8], _: usize) {
        self.values.push(Value::Bytes(Cow::Borrowed(bytes)));
    }

    fn list<R>(
        &mut self,
        _: Leaf<'n>,
        _: u32,
        count: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        let (values, outcome) = self.within(count, fill);
        self.values.push(Value::List(values));
        outcome
    }

    fn record<R>(
        &mut self,
        _: &'n str,
        fields: usize,
        _: usize,
        fill: impl FnOnce(&mut Self) -> (R, usize),
    ) -> R {
        let (values, outcome) = self.within(fields, fill);
        self.values.push(Value::Record(values));
        outcome
    }

    fn row<R>(&mut self, _: &'n Field, _: usize, fill: impl FnOnce(&mut Self) -> (R, usize)) -> R {
        let (values, outcome) = self.within(0, fill);
        self.values.push(Value::List(values));
        outcome
    }
}
