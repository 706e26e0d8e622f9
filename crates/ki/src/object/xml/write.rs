//! Objects to XML.

use core::fmt::Write as _;

use quick_xml::escape::escape;
use worldwire_core::{Error, Result, Value};

use crate::object::encode::push_choice;
use crate::object::show::numbers;
use crate::object::value::wide_text;
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Property, Tuple};

/// Writes what a walk through an object tells.
pub(super) struct Writer {
    out: String,
    depth: usize,
    /// For every object that is open the element that it stands in, if any.
    inside: Vec<Option<String>>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { out: String::from("<Objects>\n"), depth: 1, inside: Vec::new() }
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</Objects>\n");
        self.out
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }
}

impl<'c> Visitor<'c> for Writer {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        if id != CoreId::default() {
            let found = format!("block {} type {}", id.block, id.kind);
            return Err(Error::value("an object without an id of its own", found));
        }
        let property = slot.property();
        if let Some(property) = property {
            check_name(property)?;
            self.indent();
            let _ = writeln!(self.out, "<{}>", property.name);
            self.depth += 1;
        }
        self.inside.push(property.map(|property| property.name.to_string()));
        self.indent();
        let _ = writeln!(self.out, "<Class Name=\"{}\">", escape(&*class.name));
        self.depth += 1;
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.out.push_str("</Class>\n");
        if let Some(Some(name)) = self.inside.pop() {
            self.depth = self.depth.saturating_sub(1);
            self.indent();
            let _ = writeln!(self.out, "</{name}>");
        }
        Ok(())
    }

    fn begin_list(&mut self, _: Slot<'c>) -> Result<()> {
        Ok(())
    }

    fn end_list(&mut self) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, slot: Slot<'c>, value: Leaf<'_>) -> Result<()> {
        let property = match slot {
            Slot::Property(property) | Slot::Element(property) => property,
            Slot::Unknown(hash) => return Err(no_form().inside(&format!("{hash:#010x}"))),
            Slot::Rest => return Err(no_form().inside(Slot::REST)),
            Slot::Root => return Err(no_form()),
        };
        check_name(property)?;
        let text = written(property, value).map_err(|error| error.inside(&property.name))?;
        self.indent();
        let _ = writeln!(self.out, "<{0}>{text}</{0}>", property.name);
        Ok(())
    }
}

/// What is said of bits that could not be read.
fn no_form() -> Error {
    Error::value("a value that could be read", "bits").hint("JSON can hold them")
}

/// Type lists may call a property anything.
fn check_name(property: &Property) -> Result<()> {
    let starts = property.name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let goes_on = property.name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c));
    if starts && goes_on {
        return Ok(());
    }
    Err(Error::value("a name that an element can have", property.name.escape_debug().to_string()))
}

/// The text of a value, escaped.
fn written(property: &Property, value: Leaf<'_>) -> Result<String> {
    let mut out = String::new();
    match value {
        Leaf::Null => {}
        Leaf::Bool(value) => out.push(if value { '1' } else { '0' }),
        Leaf::Signed(value) => out.push_str(&value.to_string()),
        Leaf::Unsigned(value) => out.push_str(&value.to_string()),
        Leaf::F32(value) => push_float32(value, &mut out),
        Leaf::F64(value) if value.is_nan() => out.push_str(&format!("{:#018x}", value.to_bits())),
        Leaf::F64(value) => out.push_str(&value.to_string()),
        Leaf::Enum(number) | Leaf::Flags(number) => {
            let mut name = String::new();
            push_choice(property, number, &mut name);
            return escaped(&name);
        }
        Leaf::Text(bytes) => {
            let text = core::str::from_utf8(bytes);
            return escaped(text.map_err(|error| Error::value("UTF-8", error.to_string()))?);
        }
        Leaf::WideText(bytes) => {
            let text = wide_text(bytes);
            return escaped(&text.ok_or_else(|| Error::value("UTF-16", "unpaired surrogates"))?);
        }
        Leaf::Tuple(Tuple::Color, bytes) => {
            let number = bytes.iter().rev().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
            let _ = write!(out, "{number:08X}");
        }
        Leaf::Tuple(tuple, bytes) => {
            for (index, number) in numbers(tuple, bytes).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                match number {
                    Value::F32(value) => push_float32(value, &mut out),
                    Value::Signed(value) => out.push_str(&value.to_string()),
                    Value::Unsigned(value) => out.push_str(&value.to_string()),
                    _ => {}
                }
            }
        }
        Leaf::Raw(_) | Leaf::Object { .. } => return Err(no_form()),
    }
    Ok(out)
}

fn push_float32(value: f32, out: &mut String) {
    let _ = if value.is_nan() {
        write!(out, "{:#010x}", value.to_bits())
    } else {
        write!(out, "{value}")
    };
}

fn escaped(text: &str) -> Result<String> {
    let is_bad = |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if let Some(bad) = text.chars().find(|c| is_bad(*c)) {
        return Err(Error::value("text that XML can hold", bad.escape_unicode().to_string()));
    }
    // A carriage return would be read as the end of a line.
    Ok(escape(text).replace('\r', "&#13;"))
}
