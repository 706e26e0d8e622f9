//! Values as a source for the encoder.

use worldwire_core::{Error, Result};

use super::Leniency;
use super::encode::{FieldRef, Source};
use super::fault::Fault;
use super::scalar::{kind_of, write_scalar};
use super::value::Value;
use crate::schema::plan::{FieldKind, Fixed, Plan, Scope};

static ABSENT: Value<'static> = Value::Absent;

/// The values of a record.
#[derive(Clone, Copy)]
pub(super) struct Slots<'v>(&'v [Value<'v>]);

/// The values of a record; none if it is absent.
#[inline]
pub(super) fn slots<'v>(value: &'v Value<'v>) -> Result<Slots<'v>> {
    match value {
        Value::Absent => Ok(Slots(&[])),
        Value::Record(values) => Ok(Slots(values)),
        _ => Err(Fault::WrongKind.value("a value that is not a record")),
    }
}

impl<'v> Slots<'v> {
    /// The value of a field. A copy without a value takes that of the last copy.
    #[inline]
    fn value(self, plan: &Plan, field: u32, slot: u32) -> &'v Value<'v> {
        match self.0.get(slot as usize) {
            None | Some(Value::Absent) => self.of_twin(plan, field),
            Some(value) => value,
        }
    }

    #[inline]
    fn of(self, plan: &Plan, of: FieldRef) -> &'v Value<'v> {
        self.value(plan, of.field, of.slot)
    }

    #[cold]
    fn of_twin(self, plan: &Plan, field: u32) -> &'v Value<'v> {
        let twin = plan.field(field).twin().map(|twin| plan.field(twin).slot as usize);
        twin.and_then(|slot| self.0.get(slot)).unwrap_or(&ABSENT)
    }
}

impl<'v> Source<'v> for Slots<'v> {
    const FIXED: bool = true;
    type List = &'v [Value<'v>];

    #[inline]
    fn segment(
        self,
        _: &Plan,
        _: &Scope,
        _: usize,
        (front, size): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        out.resize(out.len() + front + size, 0);
    }

    #[inline]
    fn fixed<'r>(
        self,
        plan: &Plan,
        run: &'r [Fixed],
        leniency: Leniency,
        out: &mut [u8],
    ) -> Result<(), (&'r Fixed, Error)> {
        for fixed in run {
            let value = self.value(plan, fixed.field, fixed.slot);
            let out = out.get_mut(usize::from(fixed.offset)..).unwrap_or_default();
            if let Err(error) = write_scalar(fixed.scalar, value, leniency, out) {
                return Err((fixed, error));
            }
        }
        Ok(())
    }

    #[inline]
    fn text(self, plan: &Plan, of: FieldRef, leniency: Leniency) -> Result<&'v [u8]> {
        match self.of(plan, of) {
            Value::Absent => Ok(&[]),
            Value::Text(text) => {
                if leniency == Leniency::Strict && text.has_nul() {
                    return Err(Fault::StringContainsNul.value(format!("{text:?}")));
                }
                Ok(text.as_bytes())
            }
            other => Err(Fault::WrongKind.value(kind_of(other))),
        }
    }

    #[inline]
    fn bytes(self, plan: &Plan, of: FieldRef) -> Result<&'v [u8]> {
        match self.of(plan, of) {
            Value::Absent => Ok(&[]),
            Value::Bytes(bytes) => Ok(bytes),
            other => Err(Fault::WrongKind.value(kind_of(other))),
        }
    }

    #[inline]
    fn list(self, plan: &Plan, of: FieldRef) -> Result<(Self::List, usize)> {
        match self.of(plan, of) {
            Value::Absent => Ok((&[], 0)),
            Value::List(items) => Ok((items, items.len())),
            other => Err(Fault::WrongKind.value(kind_of(other))),
        }
    }

    #[inline]
    fn element(list: Self::List, index: usize, scope: &Scope) -> Result<Self> {
        let value = list.get(index).unwrap_or(&ABSENT);
        if scope.single { Ok(Self(core::slice::from_ref(value))) } else { slots(value) }
    }

    fn open(self, plan: &Plan, of: FieldRef, row: bool) -> Result<Self> {
        match self.of(plan, of) {
            Value::Absent => Ok(Self(&[])),
            Value::Record(values) if !row => Ok(Self(values)),
            Value::List(values) if row => {
                let fields = match plan.field(of.field).kind() {
                    FieldKind::Row(range) => range.len(),
                    _ => 0,
                };
                if values.len() > fields {
                    let found = format!("{} values for a row of {fields}", values.len());
                    return Err(Fault::WrongKind.value(found));
                }
                Ok(Self(values))
            }
            other => Err(Fault::WrongKind.value(kind_of(other))),
        }
    }
}
