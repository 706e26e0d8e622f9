//! Changing the fields of a tape.

use core::ops::Range;

use worldwire_core::{Result, nearest};

use super::record::{Block, width};
use super::{Cell, Changed, Tape};
use crate::message::Leniency;
use crate::message::encode::MAX_BYTES;
use crate::message::fault::Fault;
use crate::message::scalar::{MAX_SCALAR, kind_of, write_scalar};
use crate::message::steps::{Step, path_steps};
use crate::message::value::Value;
use crate::schema::plan::{Field, FieldKind, Op, Plan};

static ABSENT: Value<'static> = Value::Absent;

/// The record or field that a path leads to.
#[derive(Clone, Copy)]
struct Target {
    /// The index of its scope, and its block.
    scope: u32,
    block: usize,
    /// The field; `None` for the message or an element.
    field: Option<u32>,
}

impl Tape {
    /// Sets the value at a path of names and indices, such as `members[2].name`. Missing parts of
    /// records become zero or empty; a list takes the length of the given one.
    ///
    /// # Errors
    /// `Value`, with the path, if there is no such field or element or it cannot hold the value. In
    /// the latter case some parts may already have been changed.
    pub fn set(&mut self, plan: &Plan, path: &str, value: &Value<'_>) -> Result<()> {
        let place = self.resolve(plan, path)?;
        // In paired lists, numbers in the elements determine the order of the elements.
        self.change(if plan.pairs { Changed::Bodies } else { Changed::Values });
        self.put(plan, place, value).map_err(|error| error.inside(path))
    }

    /// Changes the length of the list at a path. Elements are removed from its end, or added with
    /// all fields zero or empty.
    ///
    /// # Errors
    /// `Value`, with the path, if there is no such list or a message cannot hold that many
    /// elements.
    pub fn resize(&mut self, plan: &Plan, path: &str, count: usize) -> Result<()> {
        let place = self.resolve(plan, path)?;
        self.relist(plan, place, count).map(drop).map_err(|error| error.inside(path))
    }

    fn resolve(&self, plan: &Plan, path: &str) -> Result<Target> {
        let mut place = Target { scope: plan.root, block: 0, field: None };
        for step in path_steps(path) {
            let next = step.and_then(|step| self.step(plan, place, step));
            place = next.ok_or_else(|| {
                let why = self.why_not(plan, place, step);
                Fault::UnknownField.value(format!("\"{path}\" ({why})"))
            })?;
        }
        Ok(place)
    }

    /// Why a step of a path leads nowhere.
    fn why_not(&self, plan: &Plan, place: Target, step: Option<Step<'_>>) -> String {
        let kind = place.field.map(|field| plan.field(field).kind());
        let like = |range: &Range<u32>, name: &str| {
            let names = plan.fields_of(range).iter().map(Field::name);
            match nearest(name, names) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => format!("no field \"{name}\""),
            }
        };
        match (kind, step) {
            (None, Some(Step::Name(name))) => like(&plan.scope(place.scope).fields, name),
            (Some(FieldKind::Object(fields)), Some(Step::Name(name))) => like(fields, name),
            (None | Some(FieldKind::Object(_)), _) => "a record needs a name".to_owned(),
            (Some(FieldKind::Row(fields)), Some(Step::Index(_))) => {
                format!("the row has {} values", fields.len())
            }
            (Some(FieldKind::Array { .. }), Some(Step::Index(_))) => {
                match self.cell(self.body(plan, place)).length {
                    1 => "the list has 1 element".to_owned(),
                    count => format!("the list has {count} elements"),
                }
            }
            (Some(FieldKind::Row(_) | FieldKind::Array { .. }), _) => {
                "a list needs an index, as in [0]".to_owned()
            }
            _ => "the field has no parts".to_owned(),
        }
    }

    fn step(&self, plan: &Plan, place: Target, step: Step<'_>) -> Option<Target> {
        let kind = place.field.map(|field| plan.field(field).kind());
        let nth = |range: &Range<u32>, slot: usize| {
            let field = range.start.checked_add(u32::try_from(slot).ok()?)?;
            range.contains(&field).then_some(Target { field: Some(field), ..place })
        };
        match (kind, step) {
            (None, Step::Name(name)) => named(plan, &plan.scope(place.scope).fields, name, place),
            (Some(FieldKind::Object(fields)), Step::Name(name)) => named(plan, fields, name, place),
            (Some(FieldKind::Row(fields)), Step::Index(index)) => nth(fields, index),
            (Some(FieldKind::Array { scope, .. }), Step::Index(index)) => {
                let list = self.cell(self.body(plan, place));
                (index < list.length as usize).then(|| element(plan, *scope, list.at, index))
            }
            _ => None,
        }
    }

    /// The index of the cell of a string, byte string or list.
    fn body(&self, plan: &Plan, place: Target) -> usize {
        place.block + 1 + place.field.map_or(0, |field| plan.field(field).body as usize)
    }

    fn put(&mut self, plan: &Plan, place: Target, value: &Value<'_>) -> Result<()> {
        let Some(field) = place.field else {
            return self.put_record(plan, place, &plan.scope(place.scope).fields, value);
        };
        match (plan.field(field).kind(), value) {
            (FieldKind::Scalar { scalar, spot }, _) => {
                let mut room = [0; MAX_SCALAR];
                write_scalar(*scalar, value, Leniency::Strict, &mut room)?;
                let block = Block { tape: self, block: place.block };
                let start = block.start(plan.scope(place.scope), usize::from(spot.segment));
                let at = start + usize::from(spot.offset);
                let field = self.bytes.get_mut(at..at + scalar.size());
                if let (Some(field), Some(value)) = (field, room.get(..scalar.size())) {
                    field.copy_from_slice(value);
                }
                Ok(())
            }
            (FieldKind::Text { .. } | FieldKind::Bytes { .. }, Value::Absent) => {
                self.put_body(plan, place, &[])
            }
            (FieldKind::Text { .. }, Value::Text(text)) => {
                if text.has_nul() {
                    return Err(Fault::StringContainsNul.value(format!("{text:?}")));
                }
                self.put_body(plan, place, text.as_bytes())
            }
            (FieldKind::Bytes { .. }, Value::Bytes(bytes)) => self.put_body(plan, place, bytes),
            (FieldKind::Array { scope, .. }, Value::Absent | Value::List(_)) => {
                let items = value.list().unwrap_or_default();
                let first = self.relist(plan, place, items.len())?;
                for (index, item) in items.iter().enumerate() {
                    let place = element(plan, *scope, first, index);
                    self.put(plan, place, item).map_err(|error| error.inside_item(index))?;
                }
                Ok(())
            }
            (FieldKind::Object(fields), _) => self.put_record(plan, place, fields, value),
            (FieldKind::Row(fields), Value::Absent | Value::List(_)) => {
                let items = value.list().unwrap_or_default();
                if items.len() > fields.len() {
                    let found = format!("{} values for a row of {}", items.len(), fields.len());
                    return Err(Fault::WrongKind.value(found));
                }
                for (index, field) in fields.clone().enumerate() {
                    let place = Target { field: Some(field), ..place };
                    let outcome = self.put(plan, place, items.get(index).unwrap_or(&ABSENT));
                    outcome.map_err(|error| error.inside_item(index))?;
                }
                Ok(())
            }
            _ => Err(Fault::WrongKind.value(kind_of(value))),
        }
    }

    fn put_record(
        &mut self,
        plan: &Plan,
        place: Target,
        fields: &Range<u32>,
        value: &Value<'_>,
    ) -> Result<()> {
        let values = match value {
            Value::Absent => &[],
            Value::Record(values) => values.as_slice(),
            _ => return Err(Fault::WrongKind.value(kind_of(value))),
        };
        for (index, field) in fields.clone().enumerate() {
            let outcome = self.put(
                plan,
                Target { field: Some(field), ..place },
                values.get(index).unwrap_or(&ABSENT),
            );
            outcome.map_err(|error| error.inside(plan.field(field).name()))?;
        }
        Ok(())
    }

    /// Stores a text or byte string.
    fn put_body(&mut self, plan: &Plan, place: Target, bytes: &[u8]) -> Result<()> {
        self.change(Changed::Bodies);
        let cell = Cell { at: position(self.bytes.len())?, length: position(bytes.len())? };
        self.bytes.extend_from_slice(bytes);
        let at = self.body(plan, place);
        if let Some(body) = self.cell_mut(at) {
            *body = cell;
        }
        Ok(())
    }

    /// Changes the length of a list and returns its first block.
    fn relist(&mut self, plan: &Plan, place: Target, count: usize) -> Result<u32> {
        let kind = place.field.map(|field| plan.field(field).kind());
        let Some(FieldKind::Array { scope, .. }) = kind else {
            return Err(Fault::WrongKind.value("a field that is not a list"));
        };
        let scope = plan.scope(*scope);
        if count.saturating_mul(scope.cost as usize) > MAX_BYTES {
            return Err(Fault::MessageTooLong.value(format!("{count} elements")));
        }
        self.change(Changed::Bodies);
        let at = self.body(plan, place);
        let Cell { at: mut first, length } = self.cell(at);
        self.cells.truncate(self.used);
        let old = length as usize;
        if count > old {
            let (from, cells) = (first as usize, old * width(scope));
            first = position(self.cells.len())?;
            let kept = self.cells.get(from..from + cells).map(<[Cell]>::to_vec);
            self.cells.extend(kept.unwrap_or_default());
            // If the plan is the one that the message was read with, this changes nothing.
            self.cells.resize(first as usize + cells, Cell::default());
            for _ in old..count {
                self.cells.push(Cell { at: position(self.bytes.len())?, length: 0 });
                self.bytes.resize(self.bytes.len() + scope.size as usize, 0);
                self.cells.resize(self.cells.len() + scope.bodies as usize, Cell::default());
                for op in plan.steps(&scope.loose) {
                    if let Op::Segment { size } = op {
                        self.cells.push(Cell { at: position(self.bytes.len())?, length: 0 });
                        self.bytes.resize(self.bytes.len() + *size as usize, 0);
                    }
                }
            }
        }
        let length = position(count)?;
        self.used = self.cells.len();
        if let Some(list) = self.cell_mut(at) {
            *list = Cell { at: first, length };
        }
        Ok(first)
    }
}

/// The field with a name.
fn named(plan: &Plan, fields: &Range<u32>, name: &str, place: Target) -> Option<Target> {
    let field = fields.clone().find(|field| plan.field(*field).name() == name)?;
    Some(Target { field: Some(field), ..place })
}

/// An element of an array; if it is a plain value, it is the only field of its scope.
fn element(plan: &Plan, scope: u32, first: u32, index: usize) -> Target {
    let inner = plan.scope(scope);
    let field = inner.single.then_some(inner.fields.start);
    Target { scope, block: first as usize + index * width(inner), field }
}

/// A position or length on the tape. It overflows only if a tape is changed over and over without
/// reading another message.
fn position(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Fault::MessageTooLong.value(format!("{at} bytes on the tape")))
}

#[cfg(test)]
mod tests {
    use crate::message::{Fault, HeaderForm, Tape, Value};
    use crate::schema::Definition;

    #[test]
    fn an_invalid_path_is_explained() {
        let text = "int32 level\narray list\n- string name\nobject o\n- byte b\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let (mut bytes, mut tape) = (Vec::new(), Tape::new());
        let head = crate::message::Head::plain(1);
        plan.encode(head, &Value::Absent, &mut bytes).unwrap();
        plan.read_into(&bytes, HeaderForm::Plain, &mut tape).unwrap();
        tape.resize(plan, "list", 2).unwrap();
        for (path, why) in [
            ("leve", "did you mean \"level\"?"),
            ("zzzzzzzz", "no field \"zzzzzzzz\""),
            ("o.bb.d", "did you mean \"b\"?"),
            ("o[0]", "a record needs a name"),
            ("[0]", "a record needs a name"),
            ("list[2].name", "the list has 2 elements"),
            ("list[1].nam", "did you mean \"name\"?"),
            ("list.name", "a list needs an index, as in [0]"),
            ("list[x]", "a list needs an index, as in [0]"),
            ("level.x", "the field has no parts"),
        ] {
            let error = tape.set(plan, path, &Value::Absent).unwrap_err();
            assert_eq!(Fault::of(&error), Some(Fault::UnknownField), "{error}");
            let wanted = format!("found \"{path}\" ({why})");
            assert!(error.to_string().contains(&wanted), "{error}");
        }
        tape.resize(plan, "list", 1).unwrap();
        let error = tape.set(plan, "list[1]", &Value::Absent).unwrap_err().to_string();
        assert!(error.contains("the list has 1 element)"), "{error}");
    }
}
