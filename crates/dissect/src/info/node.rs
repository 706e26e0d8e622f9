//! Which nodes are shown, and which are treated as one value.

use worldwire_core::{Form, NodeRef, Value};

/// Whether the name of a field shows that its value is secret.
pub(super) fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 14] = [
        "activationkey",
        "authkey",
        "credential",
        "digest",
        "encryptionkey",
        "hash",
        "loginkey",
        "passkey",
        "passphrase",
        "passw",
        "secret",
        "sessionkey",
        "ticket",
        "token",
    ];
    let name = name.as_bytes();
    (0..name.len()).any(|at| {
        let rest = name.get(at..).unwrap_or_default();
        let first = rest.first().map_or(0, |first| first.to_ascii_lowercase());
        matches!(first, b'a' | b'c'..=b'e' | b'h' | b'l' | b'p' | b's' | b't')
            && PARTS.iter().any(|part| {
                let head = rest.get(..part.len()).unwrap_or_default();
                head.eq_ignore_ascii_case(part.as_bytes())
            })
    })
}

/// Whether a value is zero, empty or absent.
pub(super) fn is_blank(node: NodeRef<'_, '_>) -> bool {
    match node.value() {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Unsigned(value) | Value::Hex(value) | Value::Flags(value, _) => value == 0,
        Value::Signed(value) => value == 0,
        Value::F32(value) => value == 0.0,
        Value::F64(value) => value == 0.0,
        Value::Enum(..) => false,
        Value::Record | Value::List => node.children().next().is_none(),
        Value::Span(span) => match span.form {
            Form::Guid | Form::Ipv4 => node.span(span).iter().all(|byte| *byte == 0),
            _ => span.length == 0,
        },
    }
}

/// Whether a record is a position, or another short group of numbers.
pub(super) fn is_vector(record: NodeRef<'_, '_>) -> bool {
    const AXES: [&str; 4] = ["x", "y", "z", "w"];
    let mut count = 0;
    let are_axes = record.children().all(|child| {
        count += 1;
        AXES.contains(&child.name()) && matches!(child.value(), Value::F32(_) | Value::F64(_))
    });
    matches!(record.value(), Value::Record) && are_axes && (2..=AXES.len()).contains(&count)
}

/// Whether a record holds the bytes of a field and what they contain.
pub(super) fn is_opened(record: NodeRef<'_, '_>) -> bool {
    let mut children = record.children();
    children.next().is_some_and(|first| first.name() == "bytes") && children.next().is_some()
}

/// The record that is the only child of a record.
pub(super) fn only_record<'t, 'n>(record: NodeRef<'t, 'n>) -> Option<NodeRef<'t, 'n>> {
    let mut children = record.children();
    let only = children.next().filter(|only| matches!(only.value(), Value::Record))?;
    (children.next().is_none() && !is_vector(only)).then_some(only)
}
