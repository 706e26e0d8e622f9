//! Writing objects as JSON.

use std::fmt::Write as _;
use std::io::Write;

use worldwire_core::json::{Style, float32, float64, hex, string, whole};
use worldwire_core::value::push_hex;
use worldwire_core::{Error, Result, Value};

use crate::object::show::{numbers, plain_name};
use crate::object::value::{Object, wide_text};
use crate::object::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Choices, Class, Classes, PropertyKind, Tuple};

/// Text is passed to the sink in chunks of about this many bytes.
const CHUNK: usize = 1 << 15;
/// The largest integer up to which doubles represent all integers exactly.
const WIDEST_EXACT: u64 = 1 << 53;

impl Object {
    /// Writes the object as JSON. [`JsonWriter`] does this without an object in memory.
    pub fn to_json(&self, classes: &Classes) -> Result<String> {
        self.to_json_in(classes, Style::default())
    }

    /// Like [`Self::to_json`], but in the given style.
    pub fn to_json_in(&self, classes: &Classes, style: Style) -> Result<String> {
        let mut json = JsonWriter::new(Vec::new(), style);
        self.visit(classes, &mut json)?;
        let bytes = json.finish()?;
        String::from_utf8(bytes).map_err(|error| Error::value("UTF-8", error.to_string()))
    }
}

/// Writes the values that a decoder reports as JSON, piece by piece.
#[derive(Debug)]
pub struct JsonWriter<W> {
    sink: W,
    style: Style,
    out: String,
    is_first: bool,
    has_wide: bool,
}

impl<W: Write> JsonWriter<W> {
    /// Writes JSON to `sink`.
    #[must_use]
    pub fn new(sink: W, style: Style) -> Self {
        Self { sink, style, out: String::new(), is_first: true, has_wide: false }
    }

    /// Whether an integer was written as a number that a double cannot represent: readers that use
    /// doubles would change it.
    #[must_use]
    pub fn has_wide_numbers(&self) -> bool {
        self.has_wide
    }

    /// Writes the rest and returns the sink.
    ///
    /// # Errors
    /// `Value` if writing to the sink fails.
    pub fn finish(mut self) -> Result<W> {
        self.flush()?;
        Ok(self.sink)
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.sink.write_all(self.out.as_bytes());
        self.out.clear();
        written.map_err(|error| Error::invalid(format!("cannot write the JSON: {error}")))
    }

    fn key(&mut self, slot: Slot<'_>) -> Result<()> {
        if self.out.len() >= CHUNK {
            self.flush()?;
        }
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
        match slot {
            Slot::Property(property) => {
                string(&property.name, &mut self.out);
                self.out.push(':');
            }
            Slot::Unknown(hash) => {
                let _ = write!(self.out, "\"{hash:#010x}\":");
            }
            Slot::Rest => {
                string(Slot::REST, &mut self.out);
                self.out.push(':');
            }
            Slot::Root | Slot::Element(_) => {}
        }
        Ok(())
    }

    fn unsigned(&mut self, value: u64) {
        self.has_wide |= !self.style.safe && value > WIDEST_EXACT;
        whole(value.into(), self.style, &mut self.out);
    }

    fn signed(&mut self, value: i64) {
        self.has_wide |= !self.style.safe && value.unsigned_abs() > WIDEST_EXACT;
        whole(value.into(), self.style, &mut self.out);
    }

    fn number(&mut self, number: Value<'_>) {
        match number {
            Value::F32(value) => float32(value, &mut self.out),
            Value::Signed(value) => self.signed(value),
            Value::Unsigned(value) => self.unsigned(value),
            _ => {}
        }
    }

    fn tuple(&mut self, tuple: Tuple, bytes: &[u8]) {
        let mut numbers = numbers(tuple, bytes);
        for (index, name) in tuple.names().iter().enumerate() {
            self.out.push(if index == 0 { '{' } else { ',' });
            string(name, &mut self.out);
            self.out.push(':');
            if tuple.per_name() == 1 {
                numbers.next().into_iter().for_each(|number| self.number(number));
                continue;
            }
            for (index, number) in numbers.by_ref().take(tuple.per_name()).enumerate() {
                self.out.push(if index == 0 { '[' } else { ',' });
                self.number(number);
            }
            self.out.push(']');
        }
        self.out.push('}');
    }

    fn flags(&mut self, choices: &Choices, bits: u32) {
        let (names, rest) = choices.names().flags(u64::from(bits));
        self.out.push('[');
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            string(name, &mut self.out);
        }
        if rest != 0 {
            if !names.is_empty() {
                self.out.push(',');
            }
            let _ = write!(self.out, "\"0x{rest:x}\"");
        }
        self.out.push(']');
    }

    fn core_id(&mut self, id: CoreId) {
        let CoreId { block, kind, template } = id;
        if id != CoreId::default() {
            let _ =
                write!(self.out, ",\"$block\":{block},\"$type\":{kind},\"$template\":{template}");
        }
    }

    fn raw(&mut self, bits: Bits<'_>) {
        let _ = write!(self.out, "\"$bits\":{},\"$hex\":\"", bits.count);
        push_hex(&mut self.out, &bits.to_vec());
        self.out.push_str("\"}");
    }
}

impl<'c, W: Write> Visitor<'c> for JsonWriter<W> {
    fn begin_object(&mut self, slot: Slot<'c>, class: &'c Class, id: CoreId) -> Result<()> {
        self.key(slot)?;
        self.out.push_str("{\"$class\":");
        string(&class.name, &mut self.out);
        self.core_id(id);
        Ok(())
    }

    fn end_object(&mut self) -> Result<()> {
        self.is_first = false;
        self.out.push('}');
        Ok(())
    }

    fn begin_list(&mut self, slot: Slot<'c>) -> Result<()> {
        self.key(slot)?;
        self.is_first = true;
        self.out.push('[');
        Ok(())
    }

    fn end_list(&mut self) -> Result<()> {
        self.is_first = false;
        self.out.push(']');
        Ok(())
    }

    fn value(&mut self, slot: Slot<'c>, value: Leaf<'_>) -> Result<()> {
        self.key(slot)?;
        let choices = slot.property().and_then(|property| property.choices.as_deref());
        let is_choice = slot
            .property()
            .is_some_and(|p| matches!(p.kind(), PropertyKind::Enum | PropertyKind::Flags));
        match value {
            Leaf::Null => self.out.push_str("null"),
            Leaf::Bool(value) => self.out.push_str(if value { "true" } else { "false" }),
            Leaf::Signed(_) | Leaf::Unsigned(_) if let Some(name) = plain_name(choices, value) => {
                string(name, &mut self.out);
            }
            Leaf::Signed(value) => self.signed(value),
            Leaf::Unsigned(value) => self.unsigned(value),
            Leaf::F32(value) => float32(value, &mut self.out),
            Leaf::F64(value) => float64(value, &mut self.out),
            Leaf::Enum(value) => {
                match choices.and_then(|choices| choices.names().name(i64::from(value))) {
                    Some(name) => string(name, &mut self.out),
                    None => self.unsigned(value.into()),
                }
            }
            Leaf::Flags(bits) => match choices {
                Some(choices) => self.flags(choices, bits),
                None => self.unsigned(bits.into()),
            },
            Leaf::Text(bytes) => match core::str::from_utf8(bytes) {
                Ok(text) if is_choice => {
                    self.out.push_str("{\"$name\":");
                    string(text, &mut self.out);
                    self.out.push('}');
                }
                Ok(text) => string(text, &mut self.out),
                Err(_) => hex(bytes, &mut self.out),
            },
            Leaf::WideText(bytes) => match wide_text(bytes) {
                Some(text) => string(&text, &mut self.out),
                None => hex(bytes, &mut self.out),
            },
            Leaf::Tuple(tuple, bytes) => self.tuple(tuple, bytes),
            Leaf::Raw(bits) => {
                self.out.push('{');
                self.raw(bits);
            }
            Leaf::Object { tag, block, kind, template, count, bytes } => {
                let _ = write!(self.out, "{{\"$class\":\"{tag:#010x}\"");
                self.core_id(CoreId { block, kind, template });
                self.out.push(',');
                self.raw(Bits { count, bytes });
            }
        }
        Ok(())
    }
}
