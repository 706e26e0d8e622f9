//! Layouts of built-in messages as Lua.

use worldwire_core::codegen::snake;
use worldwire_core::{FieldInfo, Form, Shape};
use worldwire_ki::control::MORE_FOLLOWS;

use super::lua::Lua;

/// The maximum depth of records in records.
const MAX_DEPTH: usize = 16;

/// Fields as a Lua list. Returns whether all of them are described.
pub(super) fn fields(fields: &[FieldInfo], lua: &mut Lua) -> (String, bool) {
    list(fields, lua, 0)
}

fn list(fields: &[FieldInfo], lua: &mut Lua, depth: usize) -> (String, bool) {
    let (mut entries, mut is_whole) = (Vec::new(), true);
    for (index, field) in fields.iter().enumerate() {
        let before = fields.get(..index).unwrap_or_default();
        let (layout, whole) = layout(&field.shape, before, lua, depth);
        entries.push(format!("{{ {}, {layout} }}", Lua::quoted(field.name)));
        is_whole &= whole;
        if layout == OPAQUE {
            // The position of the rest is unknown.
            break;
        }
    }
    (format!("{{ {} }}", entries.join(", ")), is_whole)
}

/// The layout of a value.
pub(super) fn layout_of(shape: &Shape, lua: &mut Lua) -> String {
    layout(shape, &[], lua, 0).0
}

const OPAQUE: &str = "\"opaque\"";

/// A layout. `before` contains the fields that precede it, which a condition can name.
fn layout(shape: &Shape, before: &[FieldInfo], lua: &mut Lua, depth: usize) -> (String, bool) {
    let nested = |shape: &Shape, lua: &mut Lua| layout(shape, &[], lua, depth + 1);
    let text = match shape {
        _ if depth > MAX_DEPTH => return (OPAQUE.to_owned(), false),
        Shape::Unsigned(bytes) => format!("\"u{bytes}\""),
        Shape::Hex(bytes) => format!("\"h{bytes}\""),
        Shape::Signed(bytes) => format!("\"i{bytes}\""),
        Shape::Float(bytes) => format!("\"f{bytes}\""),
        Shape::Bool(bytes) => format!("\"b{bytes}\""),
        Shape::Enum { bytes, is_signed, names } => {
            let kind = if *is_signed { "E" } else { "e" };
            format!("{{ \"{kind}\", {bytes}, {} }}", lua.names(names))
        }
        Shape::Flags(bytes, names) => format!("{{ \"g\", {bytes}, {} }}", lua.flags(names)),
        Shape::Fixed(form, bytes) => format!("{{ \"x\", {}, {bytes} }}", form_name(*form)),
        Shape::Padded(form, bytes) => format!("{{ \"p\", {}, {bytes} }}", form_name(*form)),
        Shape::Terminated(form) => format!("{{ \"z\", {} }}", form_name(*form)),
        Shape::Counted { form, count, unit, end } => {
            format!("{{ \"c\", {}, {count}, {unit}, {end} }}", form_name(*form))
        }
        Shape::Tail => "\"tail\"".to_owned(),
        Shape::List(count, inner) => {
            let (inner, whole) = nested(inner, lua);
            return inner_of(format!("{{ \"l\", {count}, {inner} }}"), &inner, whole);
        }
        Shape::Array(count, inner) => {
            let (inner, whole) = nested(inner, lua);
            return inner_of(format!("{{ \"a\", {count}, {inner} }}"), &inner, whole);
        }
        Shape::Rest(inner) => {
            let (inner, whole) = nested(inner, lua);
            return (format!("{{ \"r\", {inner} }}"), whole);
        }
        Shape::Record(fields) => {
            let (inner, whole) = list(&fields(), lua, depth + 1);
            let text = format!("{{ \"s\", {inner} }}");
            // The position of anything after an incomplete record is unknown.
            return if whole { (text, true) } else { (OPAQUE.to_owned(), false) };
        }
        Shape::Masked(bytes, fields) => {
            let mut entries = Vec::new();
            for (bit, field) in fields() {
                let (inner, whole) = nested(&field.shape, lua);
                if !whole {
                    return (OPAQUE.to_owned(), false);
                }
                entries.push(format!("{{ {bit}, {}, {inner} }}", Lua::quoted(field.name)));
            }
            format!("{{ \"m\", {bytes}, {{ {} }} }}", entries.join(", "))
        }
        // The part's own length states where it ends, so its content can be opaque.
        Shape::Nested(count, unit, inner) => {
            let (inner, whole) = nested(inner, lua);
            return (format!("{{ \"n\", {count}, {unit}, {inner} }}"), whole);
        }
        Shape::Optional(condition, inner) => {
            let (inner, whole) = nested(inner, lua);
            if *condition == MORE_FOLLOWS {
                return (format!("{{ \"q\", {inner} }}"), whole);
            }
            return match test(condition, before) {
                Some(test) if whole => (format!("{{ \"o\", {test}, {inner} }}"), true),
                _ => (OPAQUE.to_owned(), false),
            };
        }
        _ => return (OPAQUE.to_owned(), false),
    };
    (text, true)
}

/// A layout around another; opaque if the end of the inner layout cannot be found.
fn inner_of(text: String, inner: &str, whole: bool) -> (String, bool) {
    if whole && inner != OPAQUE { (text, true) } else { (OPAQUE.to_owned(), false) }
}

/// The condition under which a field is present: the name of an earlier field, and a mask or `nil`.
fn test(condition: &str, before: &[FieldInfo]) -> Option<String> {
    let named = |name: &str| before.iter().find(|field| snake(field.name, "_") == name);
    if let Some(name) = condition.strip_suffix(".is_true()") {
        return Some(format!("{}, nil", Lua::quoted(named(name)?.name)));
    }
    if let Some(name) = condition.strip_prefix("offset of ") {
        let offset =
            before.iter().find(|field| snake(field.name, "_") == format!("{name}_offset"))?;
        return Some(format!("{}, nil", Lua::quoted(offset.name)));
    }
    let (name, rest) = condition.split_once('.')?;
    let flag = rest.strip_prefix("contains(").or_else(|| rest.strip_prefix("has("))?;
    let flag = flag.strip_suffix(')')?.rsplit("::").next()?;
    let field = named(name)?;
    let Shape::Flags(_, names) = field.shape else { return None };
    let mask = names.iter().find(|(_, known)| *known == flag)?.0;
    Some(format!("{}, {mask}", Lua::quoted(field.name)))
}

fn form_name(form: Form) -> &'static str {
    match form {
        Form::Utf8 => "\"utf8\"",
        Form::Latin1 => "\"latin1\"",
        Form::Utf16 => "\"utf16\"",
        Form::Guid => "\"guid\"",
        Form::Ipv4 => "\"ipv4\"",
        _ => "\"bytes\"",
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::{Record as _, record, wire_flags};

    use super::*;

    wire_flags! {
        /// What follows.
        pub struct Content(u8) {
            /// A number.
            Number = 4,
        }
    }

    record! {
        /// A record with every kind of condition.
        pub struct Made<'a> {
            content "content": Content,
            number "someNumber": u64 where content.contains(Content::Number),
            others "others": worldwire_core::List32<i16, 8>,
            bytes "bytes": worldwire_core::Bytes32<'a, 8>,
            late "late": u8 where bytes.len() > 3,
            after "after": u8,
        }
    }

    #[test]
    fn fields_become_tables_until_one_is_unknown() {
        let mut lua = Lua::default();
        let (list, is_whole) = fields(&Made::fields(), &mut lua);
        let wanted = r#"{ { "content", { "g", 1, NAMES[1] } }, { "someNumber", { "o", "content", 4, "u8" } }, { "others", { "l", 4, "i2" } }, { "bytes", { "c", "bytes", 4, 1, 0 } }, { "late", "opaque" } }"#;
        assert_eq!((&*list, is_whole), (wanted, false));
        assert_eq!(lua.into_source(), "local NAMES = {}\nNAMES[1] = { { 4, \"Number\" } }\n");
    }
}
