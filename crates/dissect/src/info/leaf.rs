//! How names and single values are written.

use std::fmt::Write as _;

use worldwire_core::text::{is_hostile, reads_better_raw};
use worldwire_core::value::{Content, push_hex};
use worldwire_core::{Form, NodeRef, Value};

/// The maximum number of characters of text.
pub(super) const MAX_TEXT: usize = 48;
/// The maximum number of characters of a name.
const MAX_NAME: usize = 40;
/// The maximum number of bytes shown. For longer values, only the length is shown.
const MAX_BYTES: usize = 8;
/// The maximum number of names of one set of flags.
const MAX_FLAGS: usize = 4;

/// Appends a value that is neither a record nor a list.
pub(super) fn push_leaf(node: NodeRef<'_, '_>, out: &mut String) {
    let _ = match node.value() {
        Value::Record | Value::List | Value::Null => Ok(()),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Unsigned(value) => {
            out.push_str(itoa::Buffer::new().format(value));
            Ok(())
        }
        Value::Signed(value) => {
            out.push_str(itoa::Buffer::new().format(value));
            Ok(())
        }
        Value::Hex(value) => write!(out, "0x{value:04x}"),
        Value::F32(value) => write!(out, "{value:?}"),
        Value::F64(value) => write!(out, "{value:?}"),
        Value::Enum(value, names) => match names.name(value) {
            Some(name) if name.contains(' ') => {
                push_text(name, out);
                Ok(())
            }
            Some(name) => {
                push_name(name, out);
                Ok(())
            }
            None => write!(out, "{value}"),
        },
        Value::Flags(bits, names) => {
            let (known, rest) = names.flags(bits);
            for (index, name) in known.iter().take(MAX_FLAGS).enumerate() {
                out.push_str(if index > 0 { "|" } else { "" });
                push_name(name, out);
            }
            match known.len() {
                0 => write!(out, "0x{bits:x}"),
                count if count > MAX_FLAGS => write!(out, "|..."),
                _ if rest != 0 => write!(out, "|0x{rest:x}"),
                _ => Ok(()),
            }
        }
        Value::Span(span) => {
            // Reading text can mean copying it.
            let bytes = node.span(span);
            match span.form.read(beginning(bytes, span.form)) {
                Content::Text(text) if matches!(span.form, Form::Guid | Form::Ipv4) => {
                    out.push_str(&text);
                    Ok(())
                }
                Content::Text(text) => {
                    push_text(&text, out);
                    Ok(())
                }
                Content::Bytes(_) if bytes.len() > MAX_BYTES => {
                    write!(out, "<{} bytes>", bytes.len())
                }
                Content::Bytes(bytes) => {
                    push_hex(out, &bytes);
                    Ok(())
                }
            }
        }
    };
}

/// The start of the text, long enough for what is shown, and cut at a character boundary.
fn beginning(bytes: &[u8], form: Form) -> &[u8] {
    const LONGEST: usize = MAX_TEXT * 8;
    let Some((head, rest)) = bytes.split_at_checked(LONGEST) else { return bytes };
    let flip = if matches!(form, Form::InvertedUtf8 | Form::InvertedUtf16) { 0xff } else { 0 };
    let is_inside = |byte: &u8| (byte ^ flip) & 0xc0 == 0x80;
    let excess = match form {
        Form::Utf8 | Form::InvertedUtf8 if rest.first().is_some_and(is_inside) => {
            head.iter().rev().take(3).take_while(|byte| is_inside(byte)).count() + 1
        }
        // The first half of a surrogate pair.
        Form::Utf16 | Form::InvertedUtf16
            if head.last().is_some_and(|high| (high ^ flip) & 0xfc == 0xd8) =>
        {
            2
        }
        Form::Bytes | Form::Guid | Form::Ipv4 => return bytes,
        _ => 0,
    };
    head.get(..LONGEST - excess).unwrap_or(head)
}

/// Appends text in quotes.
pub(super) fn push_text(text: &str, out: &mut String) {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    let is_raw = reads_better_raw(text.get(..end).unwrap_or(text));
    out.push_str(if is_raw { "r\"" } else { "\"" });
    let is_cut = push_escaped(text, MAX_TEXT, is_raw, out);
    out.push_str(if is_cut { "...\"" } else { "\"" });
}

/// Appends a name. Definitions from users can contain any.
pub(super) fn push_name(name: &str, out: &mut String) {
    match name.len() <= MAX_NAME && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => out.push_str(name),
        false => drop(push_escaped(name, MAX_NAME, true, out)),
    }
}

/// Appends at most `most` characters. Raw text keeps its backslashes. Returns whether there are
/// more.
fn push_escaped(text: &str, most: usize, is_raw: bool, out: &mut String) -> bool {
    let is_plain = |byte: &u8| match byte {
        b'"' => false,
        b'\\' => is_raw,
        byte => matches!(byte, b' '..=b'~'),
    };
    let (plain, rest) = text.split_at(text.bytes().take(most).take_while(is_plain).count());
    out.push_str(plain);
    for (index, c) in (plain.len()..).zip(rest.chars()) {
        match c {
            _ if index == most => return true,
            '"' => out.push_str("\\\""),
            '\\' if !is_raw => out.push_str("\\\\"),
            _ if is_hostile(c) => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    false
}
