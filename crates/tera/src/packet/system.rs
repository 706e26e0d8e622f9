//! What a system message says, shown beside the text that carries it.

use worldwire_core::{Form, Names, Place, Span, Trace, Value};

use crate::message::{HeaderForm, Item, View};
use crate::schema::Definition;
use crate::sysmsg::{SystemMessage, code};

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
    // What is cut in the middle of a character is shown as text only.
    let Some(whole) = text.to_utf8() else { return };
    let Ok(SystemMessage { name, pairs, odd }) = SystemMessage::parse_raw(&whole) else { return };
    let mut unit = 0;
    // The parts stand one behind the other, each behind one unit: `@` or what separates them.
    let mut part = |part: &str| {
        let from = unit + 1;
        unit = from + part.encode_utf16().count();
        let place = |unit: usize| {
            let byte = u32::try_from(start + 2 * unit).unwrap_or(u32::MAX);
            Place { byte: at.byte.saturating_add(byte), bit: 0 }
        };
        (place(from), place(unit))
    };
    let (from, to) = part(&name);
    let begin = Place { byte: from.byte.saturating_sub(2), bit: 0 };
    trace.scope("$system", Value::Record, begin, |trace| {
        let id = code(&name).map(|code| Value::Enum(code.into(), names));
        trace.leaf("name", id.unwrap_or_else(|| span(from, to)), from, to);
        let end = trace.scope("values", Value::List, to, |trace| {
            let mut end = to;
            let pairs = pairs.iter().map(|(key, value)| (key, Some(value)));
            for (key, value) in pairs.chain(odd.iter().map(|key| (key, None))) {
                let (from, to) = part(key);
                end = trace.scope("", Value::Record, from, |trace| {
                    trace.leaf("key", span(from, to), from, to);
                    let Some(value) = value else { return (to, to) };
                    let (from, to) = part(value);
                    trace.leaf("value", span(from, to), from, to);
                    (to, to)
                });
            }
            (end, end)
        });
        ((), end)
    });
}

fn span(start: Place, end: Place) -> Value<'static> {
    let length = end.byte.saturating_sub(start.byte);
    Value::Span(Span { form: Form::Utf16, start: start.byte, length })
}
