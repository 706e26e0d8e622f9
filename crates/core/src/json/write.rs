//! Writing trees as JSON.

use std::fmt::Write as _;

use crate::value::{Content, push_float, push_hex};
use crate::{NodeRef, Value};

/// Options for writing JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Write integers that take more than 53 bits as strings, for readers that keep numbers as
    /// doubles.
    pub safe: bool,
}

/// Appends the JSON of a node's value.
pub fn write_node(node: NodeRef<'_, '_>, style: Style, out: &mut String) {
    match node.value() {
        Value::Record | Value::List => write_children(node.value(), node.children(), style, out),
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Value::Unsigned(value) | Value::Hex(value) => {
            whole(i128::from(value), style, out);
        }
        Value::Signed(value) => whole(i128::from(value), style, out),
        Value::F32(value) => float32(value, out),
        Value::F64(value) => float64(value, out),
        Value::Enum(value, names) => match names.name(value) {
            Some(name) => string(name, out),
            None => whole(i128::from(value), style, out),
        },
        Value::Flags(bits, names) => {
            let (known, rest) = names.flags(bits);
            out.push('[');
            for (index, name) in known.iter().enumerate() {
                separate(index, out);
                string(name, out);
            }
            if rest != 0 {
                separate(known.len(), out);
                let _ = write!(out, "\"0x{rest:x}\"");
            }
            out.push(']');
        }
        Value::Span(span) => match span.form.read(node.span(span)) {
            Content::Text(text) => string(&text, out),
            Content::Bytes(bytes) => hex(&bytes, out),
        },
    }
}

/// Appends an object (for [`Value::Record`]) or an array of nodes.
pub fn write_children<'t, 'n: 't>(
    shape: Value<'_>,
    children: impl Iterator<Item = NodeRef<'t, 'n>>,
    style: Style,
    out: &mut String,
) {
    let record = matches!(shape, Value::Record);
    out.push(if record { '{' } else { '[' });
    for (index, child) in children.enumerate() {
        separate(index, out);
        if record {
            string(child.name(), out);
            out.push(':');
        }
        write_node(child, style, out);
    }
    out.push(if record { '}' } else { ']' });
}

/// Appends a single-precision number, or text if it is not finite.
pub fn float32(value: f32, out: &mut String) {
    push_float(out, f64::from(value), u64::from(value.to_bits()), true);
}

/// Appends a double-precision number, or text if it is not finite.
pub fn float64(value: f64, out: &mut String) {
    push_float(out, value, value.to_bits(), false);
}

/// Appends bytes: `{"$hex":"00ff"}`.
pub fn hex(bytes: &[u8], out: &mut String) {
    out.push_str("{\"$hex\":\"");
    push_hex(out, bytes);
    out.push_str("\"}");
}

/// Appends a JSON string with its quotes.
pub fn string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut rest = text;
    // Nearly all texts need no escapes.
    while let Some(at) = escaped(rest.as_bytes()) {
        let (plain, behind) = rest.split_at(at);
        out.push_str(plain);
        // Every escaped character is a single byte.
        let (escaped, behind) = behind.split_at(1);
        match escaped {
            "\"" => out.push_str("\\\""),
            "\\" => out.push_str("\\\\"),
            "\n" => out.push_str("\\n"),
            "\r" => out.push_str("\\r"),
            "\t" => out.push_str("\\t"),
            other => {
                let byte = other.bytes().next().unwrap_or_default();
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out.push('"');
}

/// The index of the first byte in a string that must be escaped.
fn escaped(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    let plain = words.iter().take_while(|word| is_plain(u64::from_le_bytes(**word))).count() * 8;
    let rest = bytes.get(plain..).unwrap_or_default();
    rest.iter().position(|byte| ESCAPED[usize::from(*byte)]).map(|at| plain + at)
}

/// Whether none of eight bytes must be escaped. Non-ASCII bytes are treated as if they must.
fn is_plain(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    // Sets the top bit of every byte that is below the bound; valid only for bytes below 0x80.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let equals = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let found = word | below(word, 0x20) | equals(b'"') | equals(b'\\') | equals(0x7f);
    found & TOPS == 0
}

/// The bytes that must be escaped in a string.
static ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[0x7f] = true;
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped
};

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// Appends a whole number; as text where the style is safe and a double could not hold it.
pub fn whole(value: i128, style: Style, out: &mut String) {
    let is_text = style.safe && value.unsigned_abs() > 1 << 53;
    if is_text {
        out.push('"');
    }
    // Nearly all numbers fit the narrower type, which is faster to format.
    match i64::try_from(value) {
        Ok(value) => out.push_str(itoa::Buffer::new().format(value)),
        Err(_) => out.push_str(itoa::Buffer::new().format(value)),
    }
    if is_text {
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Names, Reader, Tree};

    #[test]
    fn every_kind_of_value_has_its_form() {
        static FLAGS: Names = Names::fixed(&[(1, "admin"), (8, "user")]);
        let mut data = vec![0xff; 8];
        data.extend([9, 1, 0, 0, b'"', 0, 0xd8, 0xc0, 0x7f, 0]);
        let mut r = Reader::traced("m", &data, Tree::new());
        r.u64("big").unwrap();
        r.shown("flags", |r| r.take(2), |_| Value::Flags(0x109, &FLAGS)).unwrap();
        r.list("list", |r| r.u8("")).unwrap();
        r.shown("enum", |r| r.take(1), |_| Value::Enum(8, &FLAGS)).unwrap();
        r.span("text", 1, Form::Utf8).unwrap();
        r.span("broken", 2, Form::Utf16).unwrap();
        r.shown("nan", |r| r.take(3), |_| Value::F32(f32::from_bits(0x7fc0_0001))).unwrap();
        let tree = r.finish();
        let mut out = String::new();
        write_children(Value::Record, tree.roots(), Style { safe: true }, &mut out);
        assert_eq!(
            out,
            r#"{"big":"18446744073709551615","flags":["admin","user","0x100"],"list":[0],"#
                .to_owned()
                + r#""enum":"user","text":"\"","broken":{"$hex":"00d8"},"nan":"0x7fc00001"}"#
        );
        serde_json::from_str::<serde_json::Value>(&out).unwrap();
    }

    #[test]
    fn what_has_to_be_escaped_is_found_anywhere() {
        for byte in 0..=255_u8 {
            for at in 0..24 {
                let mut bytes = [b'a'; 24];
                bytes[at] = byte;
                let found = escaped(&bytes);
                assert_eq!(found, ESCAPED[usize::from(byte)].then_some(at), "{byte} at {at}");
            }
        }
        let mut shown = String::new();
        string("eine \u{fc}berlange Zeile\n\u{4e16}\u{754c} \"A\\B\" \u{7f}", &mut shown);
        assert_eq!(
            shown,
            "\"eine \u{fc}berlange Zeile\\n\u{4e16}\u{754c} \\\"A\\\\B\\\" \\u007f\""
        );
    }
}
