//! Read access to the fields of a tape.

use core::fmt;
use core::ops::Range;
use std::borrow::Cow;

use super::Tape;
use super::record::{Block, width};
use crate::message::content::Content;
use crate::message::scalar::{ScalarValue, read_scalar};
use crate::message::steps::{Step, path_steps};
use crate::message::value::Value;
use crate::schema::plan::{Field, FieldKind, Plan, Scope, Spot};
use crate::types::TextView;

/// The fields of a message on a [`Tape`], or of an element or object in it.
#[derive(Clone, Copy)]
pub struct TapeRecord<'t, 'p> {
    plan: &'p Plan,
    scope: &'p Scope,
    fields: &'p Range<u32>,
    block: Block<'t>,
    /// Where the first segment of its scope begins.
    start: usize,
}

/// The elements of an array on a [`Tape`], or the values of a row.
#[derive(Clone, Copy)]
pub struct TapeList<'t, 'p> {
    record: TapeRecord<'t, 'p>,
    /// For an array, the number of elements, of which `record` is the first. For a row, `None`;
    /// `record` holds its values.
    count: Option<usize>,
}

/// The contents of a field on a [`Tape`].
pub type Datum<'t, 'p> = Content<'t, TapeList<'t, 'p>, TapeRecord<'t, 'p>>;

impl<'t, 'p> TapeRecord<'t, 'p> {
    #[inline]
    pub(super) fn root(tape: &'t Tape, plan: &'p Plan) -> Self {
        let scope = plan.scope(plan.root);
        let block = Block { tape, block: 0 };
        Self { plan, scope, fields: &scope.fields, block, start: block.start(scope, 0) }
    }

    /// The field with this name; `None` if the definition has no such field.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Datum<'t, 'p>> {
        self.at(self.slot(name)?)
    }

    /// The index of a field in the record, for [`Self::at`]. It is the same as in [`Plan::fields`],
    /// [`Plan::element`] or [`Plan::fields_of`], so it holds for all messages of a definition.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.plan.fields_of(self.fields).iter().position(|field| field.name() == name)
    }

    /// The field at an index in the record; `None` if there are fewer fields.
    #[inline]
    #[must_use]
    pub fn at(&self, slot: usize) -> Option<Datum<'t, 'p>> {
        self.plan.fields_of(self.fields).get(slot).map(|field| self.datum(field))
    }

    /// The field at a path of names and indices, such as `members[2].name`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<Datum<'t, 'p>> {
        let mut found = Datum::Record(*self);
        for step in path_steps(path) {
            found = match (found, step?) {
                (Datum::Record(record), Step::Name(name)) => record.get(name)?,
                (Datum::List(list), Step::Index(index)) => list.get(index)?,
                _ => return None,
            };
        }
        Some(found)
    }

    /// All fields with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'p str, Datum<'t, 'p>)> + use<'t, 'p> {
        let record = *self;
        let fields = self.plan.fields_of(self.fields).iter();
        fields.map(move |field| (field.name(), record.datum(field)))
    }

    /// The position of a spot of its scope in the bytes of the tape.
    #[inline]
    fn place(&self, spot: Spot) -> usize {
        let start = match spot.segment {
            0 => self.start,
            further => self.block.start(self.scope, usize::from(further)),
        };
        start + usize::from(spot.offset)
    }

    // Most fields have a fixed size and take this short path.
    #[inline(always)]
    fn datum(&self, field: &'p Field) -> Datum<'t, 'p> {
        if let FieldKind::Scalar { scalar, spot } = field.kind()
            && let Some(bytes) = self.block.tape.bytes.get(self.place(*spot)..)
            && let Some(value) = read_scalar(*scalar, bytes)
        {
            Datum::Scalar(value)
        } else {
            self.body(field)
        }
    }

    #[inline(never)]
    fn body(&self, field: &'p Field) -> Datum<'t, 'p> {
        let tape = self.block.tape;
        match field.kind() {
            // Only reached with a plan other than the one it was read with.
            FieldKind::Scalar { scalar, .. } => Datum::Scalar(ScalarValue::zero(*scalar)),
            FieldKind::Text { .. } => {
                Datum::Text(TextView::new(tape.piece(self.block.body(field.body))))
            }
            FieldKind::Bytes { .. } => Datum::Bytes(tape.piece(self.block.body(field.body))),
            FieldKind::Array { scope, .. } => {
                let cell = self.block.body(field.body);
                let scope = self.plan.scope(*scope);
                let block = Block { block: cell.at as usize, ..self.block };
                let start = block.start(scope, 0);
                let record = Self { scope, fields: &scope.fields, block, start, ..*self };
                Datum::List(TapeList { record, count: Some(cell.length as usize) })
            }
            FieldKind::Object(fields) => Datum::Record(Self { fields, ..*self }),
            FieldKind::Row(fields) => {
                Datum::List(TapeList { record: Self { fields, ..*self }, count: None })
            }
        }
    }
}

impl<'t, 'p> TapeList<'t, 'p> {
    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.unwrap_or_else(|| self.record.fields.len())
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Datum<'t, 'p>> {
        let Some(count) = self.count else { return self.record.at(index) };
        let record = (index < count).then(|| self.element(index))?;
        if record.scope.single { record.at(0) } else { Some(Datum::Record(record)) }
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Datum<'t, 'p>> + use<'t, 'p> {
        let list = *self;
        (0..self.len()).map_while(move |index| list.get(index))
    }

    /// The record of an element, even if the element is a plain value.
    #[inline]
    fn element(&self, index: usize) -> TapeRecord<'t, 'p> {
        let Block { tape, block } = self.record.block;
        let block = Block { tape, block: block + index * width(self.record.scope) };
        TapeRecord { block, start: block.start(self.record.scope, 0), ..self.record }
    }
}

/// Formats its fields.
impl fmt::Debug for TapeRecord<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Formats its elements.
impl fmt::Debug for TapeList<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'t> Datum<'t, '_> {
    /// Converts it to a [`Value`], with everything in it.
    #[must_use]
    pub fn to_value(&self) -> Value<'t> {
        match self {
            Self::Scalar(value) => value.to_value(),
            Self::Text(text) => Value::Text(text.to_text()),
            Self::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
            Self::List(list) => Value::List(list.iter().map(|item| item.to_value()).collect()),
            Self::Record(record) => {
                Value::Record(record.iter().map(|(_, field)| field.to_value()).collect())
            }
        }
    }
}
