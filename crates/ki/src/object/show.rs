//! Reporting decoded objects to a trace.

use worldwire_core::{Form, Place, Reader, Trace, Value};

use super::visitor::{Bits, CoreId, Leaf};
use crate::schema::classes::{Choices, Class, Classes, Part, Property, Tuple};

pub(super) fn show_tag<'c, T: Trace<'c>>(
    reader: &mut Reader<'_, T>,
    classes: &'c Classes,
    class: &'c Class,
    id: CoreId,
    at: Place,
) {
    reader.leaf_from("$class", at, Value::Enum(i64::from(class.hash), classes.names()));
    if id != CoreId::default() {
        let position = |more: u32| Place { byte: at.byte + more, bit: 0 };
        let trace = reader.trace_mut();
        trace.leaf("$block", Value::Unsigned(id.block.into()), position(0), position(1));
        trace.leaf("$type", Value::Unsigned(id.kind.into()), position(1), position(2));
        trace.leaf("$template", Value::Unsigned(id.template.into()), position(2), position(6));
    }
}

pub(super) fn show_leaf<'c, T: Trace<'c>>(
    reader: &mut Reader<'_, T>,
    property: Option<&'c Property>,
    name: &'c str,
    start: Place,
    leaf: Leaf<'_>,
) {
    let names = property.and_then(|property| property.choices.as_deref());
    let shown = match leaf {
        Leaf::Signed(value) if let (Some(_), Some(choices)) = (plain_name(names, leaf), names) => {
            Value::Enum(value, choices.names())
        }
        Leaf::Unsigned(value)
            if let (Some(_), Some(choices)) = (plain_name(names, leaf), names) =>
        {
            Value::Enum(value.cast_signed(), choices.names())
        }
        Leaf::Null => Value::Null,
        Leaf::Bool(value) => Value::Bool(value),
        Leaf::Signed(value) => Value::Signed(value),
        Leaf::Unsigned(value) => Value::Unsigned(value),
        Leaf::F32(value) => Value::F32(value),
        Leaf::F64(value) => Value::F64(value),
        Leaf::Enum(value) => match names {
            Some(choices) => Value::Enum(i64::from(value), choices.names()),
            None => Value::Unsigned(u64::from(value)),
        },
        Leaf::Flags(value) => match names {
            Some(choices) => Value::Flags(u64::from(value), choices.names()),
            None => Value::Hex(u64::from(value)),
        },
        Leaf::Text(bytes) => reader.span_behind(Form::Utf8, bytes.len()),
        Leaf::WideText(bytes) => reader.span_behind(Form::Utf16, bytes.len()),
        Leaf::Raw(Bits { bytes, .. }) | Leaf::Object { bytes, .. } => {
            reader.span_behind(Form::Bytes, bytes.len())
        }
        Leaf::Tuple(tuple, bytes) => {
            show_tuple(reader, name, start, tuple, bytes);
            return;
        }
    };
    reader.leaf_from(name, start, shown);
}

/// The name for a whole number among a property's options.
#[inline]
pub(super) fn plain_name<'c>(choices: Option<&'c Choices>, leaf: Leaf<'_>) -> Option<&'c str> {
    let choices = choices?;
    match leaf {
        Leaf::Signed(value) => choices.plain_name(value),
        Leaf::Unsigned(value) => choices.plain_name(i64::try_from(value).ok()?),
        _ => None,
    }
}

/// Reports a tuple as a record with its parts.
fn show_tuple<'c, T: Trace<'c>>(
    reader: &mut Reader<'_, T>,
    name: &'c str,
    start: Place,
    tuple: Tuple,
    bytes: &[u8],
) {
    let end = reader.place();
    let mut at = end.byte.wrapping_sub(u32::try_from(bytes.len()).unwrap_or(0));
    let mut position = || {
        let from = Place { byte: at, bit: 0 };
        at += if tuple.part() == Part::U8 { 1 } else { 4 };
        (from, Place { byte: at, bit: 0 })
    };
    reader.trace_mut().scope(name, Value::Record, start, |trace| {
        let mut numbers = numbers(tuple, bytes);
        for name in tuple.names() {
            if tuple.per_name() == 1 {
                if let Some(number) = numbers.next() {
                    let (from, to) = position();
                    trace.leaf(name, number, from, to);
                }
                continue;
            }
            let row = numbers.by_ref().take(tuple.per_name()).map(|number| (number, position()));
            let row: Vec<_> = row.collect();
            let first = row.first().map_or(end, |(_, position)| position.0);
            trace.scope(name, Value::List, first, |trace| {
                let mut last = first;
                for (number, (from, to)) in row {
                    trace.leaf("", number, from, to);
                    last = to;
                }
                ((), last)
            });
        }
        ((), end)
    });
}

/// The numbers of a tuple, from its bytes on the wire.
pub(super) fn numbers<'b>(
    tuple: Tuple,
    bytes: &'b [u8],
) -> impl Iterator<Item = Value<'static>> + use<'b> {
    let part = tuple.part();
    bytes.chunks(part.size()).take(tuple.count()).map(move |chunk| {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        match part {
            Part::U8 | Part::U32 => Value::Unsigned(u64::from(u32::from_le_bytes(word))),
            Part::I32 => Value::Signed(i64::from(i32::from_le_bytes(word))),
            Part::F32 => Value::F32(f32::from_le_bytes(word)),
        }
    })
}
