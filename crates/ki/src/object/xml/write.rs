//! Writing objects as XML.

use core::fmt::Write as _;

use quick_xml::escape::escape;
use worldwire_core::{Error, Result, Value};

use crate::object::encode::push_choice;
use crate::object::show::{numbers, plain_name};
use crate::object::value::wide_text;
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Property, Tuple};

/// Writes the parts of an object as they are reported when the object is traversed.
pub(super) struct Writer {
    out: String,
    depth: usize,
    inside: Vec<Open>,
    /// The open container, if it has no element yet.
    empty: Option<String>,
}

/// An open object.
struct Open {
    /// The element around it, if any.
    element: Option<String>,
    /// The properties of the object that have occurred so far.
    seen: Vec<bool>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self { out: String::from("<Objects>\n"), depth: 1, inside: Vec::new(), empty: None }
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

    /// The property of a value, if an element can be written for it here.
    fn property<'c>(&mut self, slot: Slot<'c>) -> Result<&'c Property> {
        self.empty = None;
        let (property, name) = match slot {
            Slot::Property(property) => (property, &property.name),
            Slot::Element(property) => return Ok(property),
            Slot::Unknown(hash) => return Err(no_form().inside(&format!("{hash:#010x}"))),
            Slot::Rest => return Err(no_form().inside(Slot::REST)),
            Slot::Root => return Err(Error::invalid("the outermost object is null")),
        };
        let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let continues = name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c));
        if !(starts && continues) {
            let found = name.escape_debug().to_string();
            return Err(Error::value("a valid element name", found));
        }
        let index = property.index() as usize;
        if let Some(seen) = self.inside.last_mut().and_then(|open| open.seen.get_mut(index))
            && core::mem::replace(seen, true)
        {
            return Err(Error::value("one value", "two").inside(name));
        }
        Ok(property)
    }
}

fn no_form() -> Error {
    Error::value("a decoded value", "undecoded bits").hint("use JSON instead")
}

impl<'c> Visitor<'c> for Writer {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        if id != CoreId::default() {
            let found = format!("block {} type {}", id.block, id.kind);
            return Err(Error::value("an object without an ID", found));
        }
        let mut element = None;
        if !matches!(slot, Slot::Root) {
            let property = self.property(slot)?;
            self.indent();
            let _ = writeln!(self.out, "<{}>", property.name);
            self.depth += 1;
            element = Some(property.name.to_string());
        }
        self.inside.push(Open { element, seen: vec![false; class.properties().len()] });
        self.indent();
        let _ = writeln!(self.out, "<Class Name=\"{}\">", escaped(&class.name)?);
        self.depth += 1;
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.out.push_str("</Class>\n");
        if let Some(name) = self.inside.pop().and_then(|open| open.element) {
            self.depth = self.depth.saturating_sub(1);
            self.indent();
            let _ = writeln!(self.out, "</{name}>");
        }
        Ok(())
    }

    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        let property = self.property(slot)?;
        self.empty = Some(property.name.to_string());
        Ok(())
    }

    fn end_list(&mut self) -> Result<()> {
        // Without an element, the property would be missing.
        if let Some(name) = self.empty.take() {
            self.indent();
            let _ = writeln!(self.out, "<{name} count=\"0\"></{name}>");
        }
        Ok(())
    }

    fn value(&mut self, slot: Slot<'c>, value: Leaf<'_>) -> Result<()> {
        if matches!((slot, value), (Slot::Root, Leaf::Object { .. })) {
            return Err(no_form());
        }
        let property = self.property(slot)?;
        let text = written(property, value).map_err(|error| error.inside(&property.name))?;
        self.indent();
        let _ = writeln!(self.out, "<{0}>{text}</{0}>", property.name);
        Ok(())
    }
}

/// The text of a value, escaped.
fn written(property: &Property, value: Leaf<'_>) -> Result<String> {
    let mut out = String::new();
    match value {
        Leaf::Null => {}
        Leaf::Bool(value) => out.push(if value { '1' } else { '0' }),
        Leaf::Signed(_) | Leaf::Unsigned(_)
            if let Some(name) = plain_name(property.choices.as_deref(), value) =>
        {
            return escaped(name);
        }
        Leaf::Signed(value) => out.push_str(&value.to_string()),
        Leaf::Unsigned(value) => out.push_str(&value.to_string()),
        Leaf::F32(value) => push_float32(value, &mut out),
        Leaf::F64(value) if value.is_nan() => out.push_str(&format!("{:#018x}", value.to_bits())),
        Leaf::F64(value) => out.push_str(&value.to_string()),
        Leaf::Enum(number) | Leaf::Flags(number) => {
            let mut name = String::new();
            push_choice(property, number, &mut name);
            // Empty text means 0, even if an option has an empty name.
            if name.is_empty() && number != 0 {
                let _ = write!(name, "{number:#x}");
            }
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
    // Readers would convert a plain carriage return to a line feed.
    Ok(escape(text).replace('\r', "&#13;"))
}
