//! The encoder: the exact inverse of the decoder, in canonical form. Bodies stand in the order of
//! the fields, without gaps.

use core::ops::Range;

use worldwire_core::{Error, Result};

use super::fault::Fault;
use super::value::Value;
use super::{Head, Leniency};
use crate::schema::plan::{Op, Plan, Scope, Spot, TextPlace};
use crate::types::{Angle, Scalar};

/// The longest message.
pub(crate) const MOST_BYTES: usize = 65_535;

/// Appends a message to `out`. After an error `out` is as it was.
pub(crate) fn message(
    plan: &Plan,
    head: Head,
    fields: &Value<'_>,
    leniency: Leniency,
    out: &mut Vec<u8>,
) -> Result<()> {
    let origin = out.len();
    let outcome = write(plan, head, fields, leniency, out);
    if outcome.is_err() {
        out.truncate(origin);
    }
    outcome
}

fn write(
    plan: &Plan,
    head: Head,
    fields: &Value<'_>,
    leniency: Leniency,
    out: &mut Vec<u8>,
) -> Result<()> {
    let origin = out.len();
    write_head(head, out);
    let mut writer = Writer { plan, out, origin, leniency, segments: Vec::new() };
    let root = plan.scope(plan.root);
    writer.scope(root, slots(fields)?)?;
    let length = writer.position()?;
    writer.patch(origin, length);
    Ok(())
}

/// Writes a header whose length is not known yet.
#[inline]
pub(crate) fn write_head(head: Head, out: &mut Vec<u8>) {
    let [low, high] = head.opcode.to_le_bytes();
    out.extend_from_slice(&[0, 0, low, high]);
    if let Some(integrity) = head.integrity {
        out.extend_from_slice(&integrity.counter.to_le_bytes());
        out.extend_from_slice(&integrity.checksum.to_le_bytes());
    }
}

/// The values of a record; none when it is not given.
fn slots<'v, 'd>(value: &'v Value<'d>) -> Result<&'v [Value<'d>]> {
    match value {
        Value::Absent => Ok(&[]),
        Value::Record(values) => Ok(values),
        _ => Err(Fault::WrongKind.value("no record")),
    }
}

struct Writer<'p, 'o> {
    plan: &'p Plan,
    out: &'o mut Vec<u8>,
    origin: usize,
    leniency: Leniency,
    /// Where the further segments of all open scopes begin, in `out`.
    segments: Vec<usize>,
}

/// Where a scope stands in `out`.
#[derive(Clone, Copy)]
struct Base {
    start: usize,
    segments: usize,
}

/// A list of a group while it is written.
struct Lane<'v, 'd> {
    scope: u32,
    field: u32,
    items: &'v [Value<'d>],
    /// Where the offset of the next element belongs.
    link: usize,
}

static ABSENT: Value<'static> = Value::Absent;

/// The value of a field. A copy that has no value of its own has that of the last one.
#[inline]
fn value_of<'v, 'd>(plan: &Plan, values: &'v [Value<'d>], field: u32, slot: u32) -> &'v Value<'d> {
    match values.get(slot as usize) {
        None | Some(Value::Absent) => plan
            .field(field)
            .twin
            .and_then(|twin| values.get(plan.field(twin).slot as usize))
            .unwrap_or(&ABSENT),
        Some(value) => value,
    }
}

impl Writer<'_, '_> {
    fn scope(&mut self, scope: &Scope, values: &[Value<'_>]) -> Result<()> {
        let base = Base { start: self.out.len(), segments: self.segments.len() };
        self.out.resize(base.start + scope.size as usize, 0);
        self.steps(&scope.wire, values, base)?;
        self.segments.truncate(base.segments);
        Ok(())
    }

    fn steps(&mut self, steps: &Range<u32>, values: &[Value<'_>], base: Base) -> Result<()> {
        let plan = self.plan;
        let mut at = steps.start;
        while at < steps.end {
            // Most steps are of this kind.
            if let Some(&Op::Scalar { scalar, spot, field, slot }) = plan.ops.get(at as usize) {
                let value = value_of(plan, values, field, slot);
                self.scalar(scalar, self.at(spot, base), value)
                    .map_err(|error| error.inside(plan.field(field).name()))?;
                at += 1;
            } else {
                at = self.step(at, values, base)?;
            }
        }
        Ok(())
    }

    /// Does one step, and all in an object or row when it opens one; gives the next.
    fn step(&mut self, at: u32, values: &[Value<'_>], base: Base) -> Result<u32> {
        let plan = self.plan;
        let Some(op) = plan.ops.get(at as usize).copied() else { return Ok(at + 1) };
        let value = |field: u32, slot: u32| value_of(plan, values, field, slot);
        match op {
            Op::Scalar { scalar, spot, field, slot } => {
                let value = value(field, slot);
                self.scalar(scalar, self.at(spot, base), value)
                    .map_err(|error| error.inside(plan.field(field).name()))?;
            }
            Op::Text { place, field, slot } => {
                let place = match place {
                    TextPlace::Offset(spot) => Some(self.at(spot, base)),
                    TextPlace::Here(_) => None,
                };
                self.text(place, value(field, slot))
                    .map_err(|error| error.inside(plan.field(field).name()))?;
            }
            Op::Bytes { offset, count, field, slot } => {
                let places = (self.at(count, base), self.at(offset, base));
                self.bytes(places, value(field, slot))
                    .map_err(|error| error.inside(plan.field(field).name()))?;
            }
            Op::Array { count, offset, scope, field, slot } => {
                let (count, link) = (self.at(count, base), self.at(offset, base));
                let outcome = self.items(count, value(field, slot)).and_then(|items| {
                    let mut lane = Lane { scope, field, items, link };
                    (0..items.len()).try_for_each(|index| self.element(&mut lane, index))
                });
                outcome.map_err(|error| error.inside(plan.field(field).name()))?;
            }
            Op::Open { field, slot, row } => return self.open(at, value(field, slot), row, base),
            Op::Segment { size } => {
                let start = self.out.len();
                self.segments.push(start);
                self.out.resize(start + size as usize, 0);
            }
            Op::Group { arrays } => return self.group(at + 1, arrays, values, base),
            // The words of no field are zero already.
            Op::Orphan { .. } | Op::Close => {}
        }
        Ok(at + 1)
    }

    fn open(&mut self, at: u32, value: &Value<'_>, row: bool, base: Base) -> Result<u32> {
        let plan = self.plan;
        let Some(Op::Open { field, .. }) = plan.ops.get(at as usize) else { return Ok(at + 1) };
        let name = plan.field(*field).name();
        let inner = match value {
            Value::Absent => &[],
            Value::Record(values) if !row => values.as_slice(),
            Value::List(values) if row => {
                let fields = match plan.field(*field).kind() {
                    crate::schema::plan::FieldKind::Row(range) => range.len(),
                    _ => 0,
                };
                if values.len() > fields {
                    let found = format!("{} values for a row of {fields}", values.len());
                    return Err(Fault::WrongKind.value(found).inside(name));
                }
                values.as_slice()
            }
            _ => return Err(Fault::WrongKind.value(kind_of(value)).inside(name)),
        };
        let mut at = at + 1;
        let mut index = 0;
        while let Some(op) = plan.ops.get(at as usize) {
            if matches!(op, Op::Close) {
                return Ok(at + 1);
            }
            at = self.step(at, inner, base).map_err(|error| {
                let error = if row { error.inside_item(index) } else { error };
                error.inside(name)
            })?;
            index += 1;
        }
        Ok(at)
    }

    /// Writes lists whose elements alternate.
    fn group(&mut self, at: u32, lists: u32, values: &[Value<'_>], base: Base) -> Result<u32> {
        let plan = self.plan;
        let mut lanes = Vec::new();
        for op in plan.steps(&(at..at + lists)) {
            if let Op::Array { count, offset, scope, field, slot } = *op {
                let value = values.get(slot as usize).unwrap_or(&ABSENT);
                let (count, link) = (self.at(count, base), self.at(offset, base));
                let items = self
                    .items(count, value)
                    .map_err(|error| error.inside(plan.field(field).name()))?;
                lanes.push(Lane { scope, field, items, link });
            }
        }
        let rounds = lanes.iter().map(|lane| lane.items.len()).max().unwrap_or(0);
        for round in 0..rounds {
            for lane in lanes.iter_mut().filter(|lane| round < lane.items.len()) {
                let name = plan.field(lane.field).name();
                self.element(lane, round).map_err(|error| error.inside(name))?;
            }
        }
        Ok(at + lists)
    }

    /// The elements of a list; writes their count.
    fn items<'v, 'd>(&mut self, count_at: usize, value: &'v Value<'d>) -> Result<&'v [Value<'d>]> {
        let items = match value {
            Value::Absent => &[],
            Value::List(items) => items.as_slice(),
            _ => return Err(Fault::WrongKind.value(kind_of(value))),
        };
        let count = u16::try_from(items.len())
            .map_err(|_| Fault::MessageTooLong.value(format!("{} elements", items.len())))?;
        self.patch(count_at, count);
        Ok(items)
    }

    fn element(&mut self, lane: &mut Lane<'_, '_>, index: usize) -> Result<()> {
        let here = self.position()?;
        self.patch(lane.link, here);
        lane.link = self.out.len() + 2;
        self.out.extend_from_slice(&here.to_le_bytes());
        self.out.extend_from_slice(&[0, 0]);
        let scope = self.plan.scope(lane.scope);
        let value = lane.items.get(index).unwrap_or(&ABSENT);
        let values = if scope.single { Ok(core::slice::from_ref(value)) } else { slots(value) };
        values
            .and_then(|values| self.scope(scope, values))
            .map_err(|error| error.inside_item(index))
    }

    fn text(&mut self, place: Option<usize>, value: &Value<'_>) -> Result<()> {
        let position = self.position()?;
        if let Some(place) = place {
            self.patch(place, position);
        }
        match value {
            Value::Absent => {}
            Value::Text(text) => {
                if self.leniency == Leniency::Strict && text.has_nul() {
                    return Err(Fault::StringContainsNul.value(format!("{text:?}")));
                }
                self.out.extend_from_slice(text.as_bytes());
            }
            _ => return Err(Fault::WrongKind.value(kind_of(value))),
        }
        self.out.extend_from_slice(&[0, 0]);
        Ok(())
    }

    fn bytes(&mut self, (count, offset): (usize, usize), value: &Value<'_>) -> Result<()> {
        let position = self.position()?;
        self.patch(offset, position);
        match value {
            Value::Absent => Ok(()),
            Value::Bytes(bytes) => {
                let length = u16::try_from(bytes.len())
                    .map_err(|_| Fault::MessageTooLong.value(format!("{} bytes", bytes.len())))?;
                self.patch(count, length);
                self.out.extend_from_slice(bytes);
                Ok(())
            }
            _ => Err(Fault::WrongKind.value(kind_of(value))),
        }
    }

    fn scalar(&mut self, scalar: Scalar, at: usize, value: &Value<'_>) -> Result<()> {
        let out = self.out.get_mut(at..at + scalar.size()).unwrap_or_default();
        write_scalar(scalar, value, self.leniency, out)
    }

    /// Where the next body stands, from the start of the message.
    fn position(&self) -> Result<u16> {
        let length = self.out.len() - self.origin;
        u16::try_from(length)
            .ok()
            .filter(|_| length <= MOST_BYTES)
            .ok_or_else(|| Fault::MessageTooLong.value(format!("{length} and more")))
    }

    #[inline]
    fn at(&self, spot: Spot, base: Base) -> usize {
        let start = match spot.segment.checked_sub(1) {
            None => base.start,
            Some(further) => {
                let found = self.segments.get(base.segments + usize::from(further));
                found.copied().unwrap_or(base.start)
            }
        };
        start + usize::from(spot.offset)
    }

    #[inline]
    fn patch(&mut self, at: usize, word: u16) {
        if let Some(room) = self.out.get_mut(at..at + 2) {
            room.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Writes a value of fixed size into room of that size, which is zero.
pub(crate) fn write_scalar(
    scalar: Scalar,
    value: &Value<'_>,
    leniency: Leniency,
    out: &mut [u8],
) -> Result<()> {
    let mut put = |bytes: &[u8]| {
        if let Some(room) = out.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
        }
    };
    let wrong = || wrong_kind(scalar, value);
    match (scalar, value) {
        (_, Value::Absent) => {}
        (Scalar::Bool, Value::Bool(value)) => put(&[u8::from(*value)]),
        (Scalar::Bool, Value::Unsigned(value)) => put(&[u8::from(*value != 0)]),
        (Scalar::Bool, Value::Signed(value)) => put(&[u8::from(*value != 0)]),
        (Scalar::Float, Value::Float(value)) => put(&value.to_le_bytes()),
        (Scalar::Double, Value::Double(value)) => put(&value.to_le_bytes()),
        (Scalar::Double, Value::Float(value)) => put(&f64::from(*value).to_le_bytes()),
        #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest float")]
        (Scalar::Float, Value::Double(value)) => put(&(*value as f32).to_le_bytes()),
        (Scalar::Angle, Value::Angle(Angle(units))) => put(&units.to_le_bytes()),
        (Scalar::Vec3, Value::Vec3(numbers)) | (Scalar::Vec3fa, Value::Vec3fa(numbers)) => {
            let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = numbers.map(f32::to_le_bytes);
            put(&[a, b, c, d, e, f, g, h, i, j, k, l]);
        }
        (Scalar::SkillId, Value::Skill(raw)) => put(&raw.to_le_bytes()),
        (Scalar::SkillId32, Value::Skill(raw)) => {
            let raw = u32::try_from(*raw).map_err(|_| out_of_range(scalar, value))?;
            put(&raw.to_le_bytes());
        }
        (Scalar::Customize, Value::Customize(looks)) => put(looks),
        (Scalar::Customize, Value::Unsigned(looks)) => put(&looks.to_le_bytes()),
        (Scalar::Int64, Value::Signed(number)) => put(&number.to_le_bytes()),
        (Scalar::Uint64, Value::Unsigned(number)) => put(&number.to_le_bytes()),
        (Scalar::Int32, Value::Signed(number)) if i32::try_from(*number).is_ok() => {
            let [a, b, c, d, ..] = number.to_le_bytes();
            put(&[a, b, c, d]);
        }
        (Scalar::Uint32, Value::Unsigned(number)) if u32::try_from(*number).is_ok() => {
            let [a, b, c, d, ..] = number.to_le_bytes();
            put(&[a, b, c, d]);
        }
        (_, Value::Signed(number)) => {
            let number = i128::from(*number);
            put(whole(scalar, number, leniency, value)?.get(..scalar.size()).ok_or_else(wrong)?);
        }
        (_, Value::Unsigned(number)) => {
            let number = i128::from(*number);
            put(whole(scalar, number, leniency, value)?.get(..scalar.size()).ok_or_else(wrong)?);
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The bytes of a whole number, checked to be in the range of its type.
fn whole(scalar: Scalar, number: i128, leniency: Leniency, value: &Value<'_>) -> Result<[u8; 16]> {
    let (low, high) = match scalar {
        Scalar::Byte => (0, i128::from(u8::MAX)),
        Scalar::Int16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Scalar::Uint16 => (0, i128::from(u16::MAX)),
        Scalar::Int32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Scalar::Uint32 => (0, i128::from(u32::MAX)),
        Scalar::Int64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Scalar::Uint64 => (0, i128::from(u64::MAX)),
        _ => return Err(wrong_kind(scalar, value)),
    };
    if leniency == Leniency::Strict && !(low..=high).contains(&number) {
        return Err(out_of_range(scalar, value));
    }
    Ok(number.to_le_bytes())
}

#[cold]
fn out_of_range(scalar: Scalar, value: &Value<'_>) -> Error {
    let found = match value {
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) | Value::Skill(number) => number.to_string(),
        _ => kind_of(value).to_owned(),
    };
    Error::value(scalar.wanted(), found).hint(Fault::ValueOutOfRange.name())
}

#[cold]
fn wrong_kind(scalar: Scalar, value: &Value<'_>) -> Error {
    Fault::WrongKind.value(format!("{} for {}", kind_of(value), scalar.name()))
}

/// What a value is, in words.
fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Absent => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Unsigned(_) | Value::Signed(_) => "a whole number",
        Value::Float(_) | Value::Double(_) => "a number",
        Value::Angle(_) => "an angle",
        Value::Vec3(_) | Value::Vec3fa(_) => "three numbers",
        Value::Skill(_) => "a skill",
        Value::Customize(_) => "looks",
        Value::Text(_) => "a text",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "a list",
        Value::Record(_) => "a record",
    }
}
