//! What a system message says, shown beside the text that carries it.

use worldwire_core::{Form, Names, Place, Span, Trace, Value};

use crate::message::{HeaderForm, Item, View};
use crate::schema::Definition;
use crate::types::Text;

/// What stands between the parts.
const SEPARATOR: u16 = 0xb;

/// The messages that carry system messages, and the fields that do.
const CARRIERS: [(&str, &str); 2] =
    [("S_SYSTEM_MESSAGE", "message"), ("S_SYSTEM_MESSAGE_LOOT_ITEM", "sysmsg")];

/// Tells the listener what the system message of a message says, if it carries one: `name` and
/// `values`, pairs of `key` and `value`. `at` is where the message begins.
pub(super) fn show<'n, T: Trace<'n>>(
    definition: &Definition,
    data: &[u8],
    form: HeaderForm,
    names: &'n Names,
    at: Place,
    trace: &mut T,
) {
    let Some((_, field)) = CARRIERS.iter().find(|(name, _)| *name == definition.name()) else {
        return;
    };
    let Ok(view) = View::new(definition.plan(), data, form) else { return };
    let Ok(Some(Item::Text(text))) = view.fields().get(field) else { return };
    let Some(start) = text.as_bytes().as_ptr().addr().checked_sub(data.as_ptr().addr()) else {
        return;
    };
    if text.units().next() != Some(u16::from(b'@')) {
        return;
    }
    let place = |unit: usize| {
        let byte = u32::try_from(start + 2 * unit).unwrap_or(u32::MAX);
        Place { byte: at.byte.saturating_add(byte), bit: 0 }
    };
    let count = text.units().count();
    trace.open("$system", Value::Record, place(0));
    let mut parts = parts(&text);
    let (from, to) = parts.next().unwrap_or((1, count));
    let number: Option<i64> = number(&text, from, to);
    let name = number.map_or_else(|| span(place(from), to - from), |id| Value::Enum(id, names));
    trace.leaf("name", name, place(from), place(to));
    trace.open("values", Value::List, place(to));
    while let Some((from, to)) = parts.next() {
        trace.open("", Value::Record, place(from));
        trace.leaf("key", span(place(from), to - from), place(from), place(to));
        let mut end = to;
        if let Some((from, to)) = parts.next() {
            trace.leaf("value", span(place(from), to - from), place(from), place(to));
            end = to;
        }
        trace.close(place(end));
    }
    trace.close(place(count));
    trace.close(place(count));
}

/// The parts behind the `@`, as ranges of units.
fn parts(text: &Text<'_>) -> impl Iterator<Item = (usize, usize)> {
    let count = text.units().count();
    let ends = text.units().enumerate().filter(|(_, unit)| *unit == SEPARATOR).map(|(at, _)| at);
    let ends: Vec<usize> = ends.chain([count]).collect();
    let mut from = 1;
    ends.into_iter().map(move |to| (core::mem::replace(&mut from, to + 1), to))
}

/// The number that stands in these units, if it is one.
fn number(text: &Text<'_>, from: usize, to: usize) -> Option<i64> {
    let digit = |unit: u16| char::from_u32(unit.into())?.to_digit(10);
    let mut digits = text.units().skip(from).take(to - from);
    let first = digit(digits.next()?)?;
    let value = digits.try_fold(u64::from(first), |value, unit| {
        value.checked_mul(10)?.checked_add(digit(unit)?.into())
    });
    value.and_then(|value| u32::try_from(value).ok()).map(i64::from)
}

fn span(start: Place, units: usize) -> Value<'static> {
    let length = u32::try_from(2 * units).unwrap_or(0);
    Value::Span(Span { form: Form::Utf16, start: start.byte, length })
}
