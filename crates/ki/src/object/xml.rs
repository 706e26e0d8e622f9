//! Objects as the XML text that clients have beside the binary form, both ways.
//!
//! ```xml
//! <Objects>
//!   <Class Name="class Tree">
//!     <m_color>FF010203</m_color>
//!     <m_position>1,-2.5,0.125</m_position>
//!     <m_rights>READ|EXEC</m_rights>
//!     <m_names>a</m_names>
//!     <m_names>b</m_names>
//!     <m_leaf><Class Name="class Leaf"><m_v>7</m_v></Class></m_leaf>
//!   </Class>
//! </Objects>
//! ```
//!
//! A container repeats its element, with a `key` that is not needed; an empty element is null, the
//! empty string, or 0. Colours are hexadecimal digits alpha, red, green, blue. What is not written
//! is not there when it is read: an empty container, above all.

use core::fmt::Write as _;
use core::ops::Range;
use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;
use worldwire_core::json::{Json, integer};
use worldwire_core::{Diagnostic, Error, Field, Result, Source, Value};

use super::encode::{parse_choice, push_choice};
use super::json::wide_bytes;
use super::show::numbers;
use super::value::{Object, wide_text};
use super::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Kind, Part, Property, Tuple};
use crate::schema::xml::{Notes, attributes, text};
use crate::types::{Dbl, Flt};

/// How deep elements may stand in each other: two for every object.
const MOST_DEPTH: usize = 256;
/// The most elements of a file.
const MOST_ELEMENTS: usize = 1 << 20;

/// Objects that were read from XML, and all that is to be said about it.
#[derive(Debug)]
pub struct Loaded {
    /// The objects, unless it is no such XML at all. Unknown classes and properties are left out.
    pub objects: Option<Vec<Object>>,
    /// Warnings and errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a file of objects.
#[must_use]
pub fn load(classes: &Classes, name: &str, bytes: &[u8]) -> Loaded {
    let (text, replaced) = match text(name, bytes) {
        Ok(text) => text,
        Err(refused) => return Loaded { objects: None, diagnostics: vec![*refused] },
    };
    let mut notes = Notes::new(Source::new(name, &text), false);
    if replaced {
        notes.odd(&(0..0), "bytes that are no UTF-8 are read as U+FFFD", "store it as UTF-8");
    }
    let objects = document(&text, &mut notes).map(|roots| {
        let objects = roots.iter().filter_map(|element| {
            let mut object = Object::new();
            let mut builder = Builder { classes, notes: &mut notes, object: &mut object };
            let written = builder.object(Slot::Root, element).ok()?;
            written.then_some(object)
        });
        objects.collect()
    });
    let objects = objects.filter(|_| !notes.failed());
    Loaded { objects, diagnostics: notes.into_said() }
}

/// Writes objects as a file.
///
/// # Errors
/// Value, for what has no form in XML: text that is no text, values that could not be read, and
/// the ids of the CoreObject form.
pub fn to_xml(classes: &Classes, objects: &[Object]) -> Result<String> {
    let mut writer = Writer { out: String::from("<Objects>\n"), depth: 1, in_list: Vec::new() };
    for object in objects {
        object.visit(classes, &mut writer)?;
    }
    writer.out.push_str("</Objects>\n");
    Ok(writer.out)
}

/// An element with all that is in it.
struct Element<'t> {
    name: &'t str,
    span: Range<usize>,
    /// The attribute `Name`.
    class: Option<String>,
    children: Vec<Self>,
    text: String,
}

/// The children of the root element. `None` when it is no XML of this kind: that is said then.
fn document<'t>(text: &'t str, notes: &mut Notes<'t>) -> Option<Vec<Element<'t>>> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut open: Vec<Element<'t>> = Vec::new();
    let mut root = None;
    let mut count = 0;
    loop {
        let start = offset(reader.buffer_position());
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = offset(reader.error_position());
                notes.error(&(at..at + 1), format!("no XML: {error}"), "");
                return None;
            }
        };
        let end = offset(reader.buffer_position());
        let (tag, empty) = match event {
            Event::Start(tag) => (tag, false),
            Event::Empty(tag) => (tag, true),
            Event::End(_) => {
                close(&mut open, &mut root);
                continue;
            }
            Event::Text(words) => {
                push(&mut open, &words.into_inner(), start, notes);
                continue;
            }
            Event::CData(words) => {
                push(&mut open, &words.into_inner(), start, notes);
                continue;
            }
            Event::GeneralRef(name) => {
                let known = match (name.resolve_char_ref(), &*name.into_inner()) {
                    (Ok(Some(character)), _) => Some(character),
                    (_, "lt") => Some('<'),
                    (_, "gt") => Some('>'),
                    (_, "amp") => Some('&'),
                    (_, "quot") => Some('"'),
                    (_, "apos") => Some('\''),
                    _ => None,
                };
                let whole = text.get(start..end).unwrap_or_default();
                if known.is_none() {
                    notes.odd(&(start..end), format!("{whole} is kept as it stands"), "");
                }
                let mut buffer = [0; 4];
                let words = known.map_or(whole, |known| known.encode_utf8(&mut buffer));
                push(&mut open, words, start, notes);
                continue;
            }
            Event::DocType(_) => {
                notes.odd(&(start..end), "a document type is not read", "");
                continue;
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            Event::Eof => break,
        };
        let span = start + 1..start + 1 + tag.name().into_inner().len();
        let name = text.get(span.clone()).unwrap_or_default();
        if open.is_empty() && (root.is_some() || name != "Objects") {
            let what = if root.is_some() { "another root element" } else { "the root element" };
            notes.error(&span, format!("{what} {name}"), "objects stand in one element Objects");
            return None;
        }
        count += 1;
        if open.len() == MOST_DEPTH || count > MOST_ELEMENTS {
            let limit = format!("at most {MOST_DEPTH} deep and {MOST_ELEMENTS} in all");
            notes.error(&span, format!("too many elements: {limit}"), "");
            return None;
        }
        let class = match name {
            "Class" => {
                let found = attributes(&tag, text, &span, notes);
                let mut found = found.into_iter().filter(|(key, ..)| *key == "Name");
                found.next().map(|(_, _, value)| value.into_owned())
            }
            _ => None,
        };
        open.push(Element { name, span, class, children: Vec::new(), text: String::new() });
        if empty {
            close(&mut open, &mut root);
        }
    }
    if let Some(element) = open.pop() {
        notes.error(&element.span, format!("{} does not end", element.name), "the file is cut off");
        return None;
    }
    if root.is_none() {
        notes.error(&(0..0), "no element at all", "");
    }
    root.map(|root: Element<'t>| root.children)
}

fn close<'t>(open: &mut Vec<Element<'t>>, root: &mut Option<Element<'t>>) {
    if let Some(done) = open.pop() {
        match open.last_mut() {
            Some(around) => around.children.push(done),
            None => *root = Some(done),
        }
    }
}

fn push(open: &mut [Element<'_>], words: &str, start: usize, notes: &mut Notes<'_>) {
    match open.last_mut() {
        Some(element) => element.text.push_str(words),
        None if words.trim().is_empty() => {}
        None => notes.note(&(start..start + words.len()), "stray text between elements", ""),
    }
}

struct Builder<'b, 'c, 't> {
    classes: &'c Classes,
    notes: &'b mut Notes<'t>,
    object: &'b mut Object,
}

impl<'c> Builder<'_, 'c, '_> {
    /// The object of an element `Class`; says whether it is one.
    fn object(&mut self, slot: Slot<'c>, element: &Element<'_>) -> Result<bool> {
        let Some(class) = self.class(element) else { return Ok(false) };
        if !element.text.trim().is_empty() {
            self.notes.note(&element.span, "text in an object is not read", "");
        }
        // A container repeats its element, and nothing says that it does so in a row.
        let mut order: Vec<(&'c Property, Vec<&Element<'_>>)> = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        for child in &element.children {
            let Some(property) = class.property(child.name) else {
                let text =
                    format!("{} is no property of {}, and is not read", child.name, class.name);
                let names = class.properties().iter().map(|property| &*property.name);
                let near =
                    self.notes.has_room().then(|| worldwire_core::nearest(child.name, names));
                let near = near.flatten();
                let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
                self.notes.note(&child.span, text, &help);
                continue;
            };
            let place = *known.entry(property.index()).or_insert_with(|| {
                order.push((property, Vec::new()));
                order.len() - 1
            });
            if let Some((_, children)) = order.get_mut(place) {
                if !property.is_list() && !children.is_empty() {
                    self.notes.note(&child.span, format!("another {} is not read", child.name), "");
                } else {
                    children.push(child);
                }
            }
        }
        self.object.begin_object(slot, class, CoreId::default())?;
        for (property, children) in order {
            if property.is_list() {
                self.object.begin_list(Slot::Property(property))?;
                for child in children {
                    self.value(Slot::Element(property), property, child)?;
                }
                self.object.end_list()?;
            } else if let Some(child) = children.first() {
                self.value(Slot::Property(property), property, child)?;
            }
        }
        self.object.end_object()?;
        Ok(true)
    }

    fn class(&mut self, element: &Element<'_>) -> Option<&'c Class> {
        let Some(name) = element.class.as_deref().filter(|_| element.name == "Class") else {
            let text = format!("{} is no Class with a Name, and is not read", element.name);
            self.notes.note(&element.span, text, "");
            return None;
        };
        let class = self.classes.find(name);
        if class.is_none() {
            let near = self.notes.has_room().then(|| self.classes.nearest(name)).flatten();
            let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
            let text = format!("class {name:?} is in no list, and is not read");
            self.notes.note(&element.span, text, &help);
        }
        class
    }

    fn value(
        &mut self,
        slot: Slot<'c>,
        property: &'c Property,
        element: &Element<'_>,
    ) -> Result<()> {
        if property.kind() == Kind::Object {
            if element.children.is_empty() {
                if !element.text.trim().is_empty() {
                    self.notes.note(&element.span, "text where an object belongs", "");
                }
                return self.object.value(slot, Leaf::Null);
            }
            let is_list = matches!(slot, Slot::Element(_));
            for (index, child) in element.children.iter().enumerate() {
                if index > 0 && !is_list {
                    self.notes.note(&child.span, "another object is not read", "");
                } else {
                    self.object(slot, child)?;
                }
            }
            return Ok(());
        }
        for child in &element.children {
            self.notes.note(&child.span, format!("{} in a value is not read", child.name), "");
        }
        let bytes;
        let leaf = match parse(property, &element.text) {
            Ok(Parsed::Leaf(leaf)) => leaf,
            Ok(Parsed::Text(parsed)) => {
                bytes = parsed;
                Leaf::Text(&bytes)
            }
            Ok(Parsed::WideText(parsed)) => {
                bytes = parsed;
                Leaf::WideText(&bytes)
            }
            Ok(Parsed::Tuple(tuple, parsed)) => {
                bytes = parsed;
                Leaf::Tuple(tuple, &bytes)
            }
            Err(error) => {
                let help = format!("its type is {}", property.type_name);
                self.notes.note(&element.span, format!("{}: {error}", property.name), &help);
                return Ok(());
            }
        };
        self.object.value(slot, leaf)
    }
}

/// A value, or the bytes that it is made of.
enum Parsed {
    Leaf(Leaf<'static>),
    Text(Vec<u8>),
    WideText(Vec<u8>),
    Tuple(Tuple, Vec<u8>),
}

fn parse(property: &Property, text: &str) -> Result<Parsed> {
    match property.kind() {
        Kind::String => return Ok(Parsed::Text(text.as_bytes().to_vec())),
        Kind::WideString => return Ok(Parsed::WideText(wide_bytes(text))),
        _ => {}
    }
    let text = text.trim();
    let json = Json::String(if text.is_empty() { "0" } else { text }.to_owned());
    let signed = |bits: u32| {
        let number: i64 = integer(&json, "a whole number")?;
        let most = 1_i128 << (bits - 1);
        let fits = (-most..most).contains(&i128::from(number));
        fits.then_some(Leaf::Signed(number)).ok_or_else(|| out_of_range(bits, text))
    };
    let unsigned = |bits: u32| {
        let number: u64 = integer(&json, "a whole number from 0 on")?;
        let fits = u128::from(number) < 1 << bits;
        fits.then_some(Leaf::Unsigned(number)).ok_or_else(|| out_of_range(bits, text))
    };
    Ok(Parsed::Leaf(match property.kind() {
        Kind::Bool => match text {
            "" | "0" => Leaf::Bool(false),
            "1" => Leaf::Bool(true),
            _ if text.eq_ignore_ascii_case("true") => Leaf::Bool(true),
            _ if text.eq_ignore_ascii_case("false") => Leaf::Bool(false),
            _ => return Err(Error::value("0, 1, true or false", text.to_owned())),
        },
        Kind::I8 => signed(8)?,
        Kind::I16 => signed(16)?,
        Kind::I32 => signed(32)?,
        Kind::I64 => signed(64)?,
        Kind::U8 => unsigned(8)?,
        Kind::U16 => unsigned(16)?,
        Kind::U32 => unsigned(32)?,
        Kind::U64 => unsigned(64)?,
        Kind::SignedBits(count) => signed(u32::from(count))?,
        Kind::UnsignedBits(count) => unsigned(u32::from(count))?,
        Kind::F32 => Leaf::F32(<Flt as Field<'_>>::from_json(&json)?.0),
        Kind::F64 => Leaf::F64(<Dbl as Field<'_>>::from_json(&json)?.0),
        Kind::Tuple(tuple) => return tuple_bytes(tuple, text).map(|b| Parsed::Tuple(tuple, b)),
        kind @ (Kind::Enum | Kind::Flags) => {
            let number =
                if text.is_empty() { Ok(0) } else { parse_choice(property, kind, text.as_bytes()) };
            let number = number.map_err(|unknown| Error::value("a known option", unknown))?;
            if kind == Kind::Flags { Leaf::Flags(number) } else { Leaf::Enum(number) }
        }
        Kind::String | Kind::WideString | Kind::Object => {
            return Err(Error::value("a value", "an object"));
        }
    }))
}

fn out_of_range(bits: u32, text: &str) -> Error {
    Error::value(format!("a number of {bits} bits"), text.to_owned())
}

/// Numbers with commas between them; a colour is one number.
fn tuple_bytes(tuple: Tuple, text: &str) -> Result<Vec<u8>> {
    if tuple == Tuple::Color {
        let digits = if text.is_empty() { "0" } else { text };
        let number = u32::from_str_radix(digits, 16);
        let number = number.map_err(|_| Error::value("a colour AARRGGBB", text.to_owned()))?;
        return Ok(number.to_le_bytes().to_vec());
    }
    if text.is_empty() {
        return Ok(vec![0; tuple.size()]);
    }
    let mut bytes = Vec::with_capacity(tuple.size());
    let mut count = 0;
    for word in text.split(',').take(tuple.count() + 1) {
        let json = Json::String(word.trim().to_owned());
        match tuple.part() {
            Part::U8 => bytes.push(integer(&json, "a number below 256")?),
            Part::U32 => bytes.extend(integer::<u32>(&json, "a number of 32 bits")?.to_le_bytes()),
            Part::I32 => {
                bytes.extend(integer::<i32>(&json, "a number of 32 bits with sign")?.to_le_bytes());
            }
            Part::F32 => bytes.extend(<Flt as Field<'_>>::from_json(&json)?.0.to_le_bytes()),
        }
        count += 1;
    }
    if count == tuple.count() {
        return Ok(bytes);
    }
    Err(Error::value(format!("{} numbers with commas between", tuple.count()), text.to_owned()))
}

/// Writes what a walk through an object tells.
struct Writer {
    out: String,
    depth: usize,
    /// For every object and container that is open, whether it is a container, and the name of the
    /// element that an object stands in.
    in_list: Vec<Option<String>>,
}

impl Writer {
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
        self.in_list.push(property.map(|property| property.name.to_string()));
        self.indent();
        let _ = writeln!(self.out, "<Class Name=\"{}\">", escape(&*class.name));
        self.depth += 1;
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.depth = self.depth.saturating_sub(1);
        self.indent();
        self.out.push_str("</Class>\n");
        if let Some(Some(name)) = self.in_list.pop() {
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
        let Some(property) = slot.property() else {
            return Err(Error::value("a value of a known property", "bits"));
        };
        check_name(property)?;
        let text = written(property, value).map_err(|error| error.inside(&property.name))?;
        self.indent();
        let _ = writeln!(self.out, "<{0}>{text}</{0}>", property.name);
        Ok(())
    }
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
        Leaf::Raw(_) | Leaf::Object(..) => {
            return Err(Error::value("a value that could be read", "bits"));
        }
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

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
