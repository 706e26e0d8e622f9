//! Objects as JSON, both ways.
//!
//! | value | JSON |
//! | --- | --- |
//! | object | its properties by name, behind `$class`; `$block`, `$type`, `$template` of the CoreObject form |
//! | null | `null` |
//! | container | an array, always |
//! | group of numbers | an object with its parts: `{"x": 1.0, "y": 2.0}` |
//! | enumeration | its name or, unknown, its number; a name that no list knows `{"$name": "..."}` |
//! | flags | a list of names, with unknown bits as one `"0x..."` |
//! | string | a string; what is not valid Unicode `{"$hex": "00ff"}` |
//! | unknown property | under its hash, `"0x0000002a"`: `{"$bits": 40, "$hex": "..."}` |
//! | object of an unknown class | `{"$class": "0x0000002a", "$bits": 40, "$hex": "..."}` |
//!
//! Properties stand in the order in which they were read, and those that were not there are not
//! there. [`Object::parse_json`] keeps the order of the text; [`Object::from_json`] has none to keep
//! and takes that of the class.

use core::fmt;
use std::fmt::Write as _;
use std::io::Write;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess};
use worldwire_core::json::{Json, Style, expected, float32, float64, hex, integer, string};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_core::{Error, Field, Result, Value};

use super::decode::numbers;
use super::value::{Object, ValueRef, foreign, wide_text};
use super::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Choices, Class, Classes, Kind, Part, Property, Tuple, parse_number};
use crate::types::{Dbl, Flt};

/// How deep objects and containers may stand in each other.
const MOST_DEPTH: u32 = 128;
/// How deep JSON may be: the same, and a group of numbers in the innermost object.
const MOST_JSON_DEPTH: u32 = MOST_DEPTH + 4;
/// After so much text it is handed on.
const CHUNK: usize = 1 << 15;

/// Writes what a decoder tells as JSON, piece by piece.
#[derive(Debug)]
pub struct JsonWriter<W> {
    sink: W,
    style: Style,
    out: String,
    is_first: bool,
}

impl<W: Write> JsonWriter<W> {
    /// Writes to this.
    #[must_use]
    pub fn new(sink: W, style: Style) -> Self {
        Self { sink, style, out: String::new(), is_first: true }
    }

    /// Hands on what is left and gives back where it wrote to.
    ///
    /// # Errors
    /// Value, when writing fails.
    pub fn finish(mut self) -> Result<W> {
        self.flush()?;
        Ok(self.sink)
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.sink.write_all(self.out.as_bytes());
        self.out.clear();
        written.map_err(|error| Error::value("JSON to be written", error.to_string()))
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
            Slot::Root | Slot::Element(_) => {}
        }
        Ok(())
    }

    fn whole(&mut self, value: i128) {
        let _ = if self.style.safe && value.unsigned_abs() > 1 << 53 {
            write!(self.out, "\"{value}\"")
        } else {
            write!(self.out, "{value}")
        };
    }

    fn number(&mut self, number: Value<'_>) {
        match number {
            Value::F32(value) => float32(value, &mut self.out),
            Value::Signed(value) => self.whole(value.into()),
            Value::Unsigned(value) => self.whole(value.into()),
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
        if id != CoreId::default() {
            let CoreId { block, kind, template } = id;
            let _ =
                write!(self.out, ",\"$block\":{block},\"$type\":{kind},\"$template\":{template}");
        }
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
        let is_choice =
            slot.property().is_some_and(|p| matches!(p.kind(), Kind::Enum | Kind::Flags));
        match value {
            Leaf::Null => self.out.push_str("null"),
            Leaf::Bool(value) => self.out.push_str(if value { "true" } else { "false" }),
            Leaf::Signed(value) => self.whole(value.into()),
            Leaf::Unsigned(value) => self.whole(value.into()),
            Leaf::F32(value) => float32(value, &mut self.out),
            Leaf::F64(value) => float64(value, &mut self.out),
            Leaf::Enum(value) => {
                match choices.and_then(|choices| choices.names().name(i64::from(value))) {
                    Some(name) => string(name, &mut self.out),
                    None => self.whole(value.into()),
                }
            }
            Leaf::Flags(bits) => match choices {
                Some(choices) => self.flags(choices, bits),
                None => self.whole(bits.into()),
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
            Leaf::Object(tag, bits) => {
                let _ = write!(self.out, "{{\"$class\":\"{tag:#010x}\",");
                self.raw(bits);
            }
        }
        Ok(())
    }
}

/// JSON whose objects keep their order.
#[derive(Debug)]
enum Item {
    Value(Json),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Reads one, so much deeper than its surroundings.
struct Seed(u32);

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Item;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Item, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Seed {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item::Value(Json::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Item, E> {
        Ok(Item::Value(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        let deeper = self.0.checked_sub(1).ok_or_else(|| A::Error::custom("too deep"))?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self(deeper))? {
            list.push(item);
        }
        Ok(Item::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        let deeper = self.0.checked_sub(1).ok_or_else(|| A::Error::custom("too deep"))?;
        let mut list = Vec::new();
        while let Some(key) = items.next_key()? {
            list.push((key, items.next_value_seed(Self(deeper))?));
        }
        Ok(Item::Object(list))
    }
}

impl Item {
    /// As the JSON that it was, for values and errors.
    fn json(&self) -> Json {
        match self {
            Self::Value(json) => json.clone(),
            Self::List(list) => format!("a list of {}", list.len()).into(),
            Self::Object(_) => "an object".into(),
        }
    }

    /// The value of a key of an object.
    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, item)| item)
            }
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Value(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    fn hex(&self) -> Option<Vec<u8>> {
        parse_hex(self.get("$hex")?.text()?)
    }

    /// Bits that nobody can read.
    fn bits(&self) -> Option<(u32, Vec<u8>)> {
        let Self::Value(count) = self.get("$bits")? else { return None };
        let count = u32::try_from(count.as_u64()?).ok()?;
        let bytes = self.hex()?;
        (bytes.len() == count.div_ceil(8) as usize).then_some((count, bytes))
    }
}

impl Object {
    /// As JSON; see [`JsonWriter`] for objects that were not read into memory.
    ///
    /// # Errors
    /// Value, for classes that it was not made with.
    pub fn to_json(&self, classes: &Classes) -> Result<String> {
        let mut json = JsonWriter {
            sink: Vec::new(),
            style: Style::default(),
            out: String::new(),
            is_first: true,
        };
        self.visit(classes, &mut json)?;
        let bytes = json.finish()?;
        String::from_utf8(bytes).map_err(|error| Error::value("UTF-8", error.to_string()))
    }

    /// Reads JSON text and keeps the order of the properties in it.
    ///
    /// # Errors
    /// Value, for what is no JSON or no object of known classes.
    pub fn parse_json(classes: &Classes, json: &str) -> Result<Self> {
        let mut reader = serde_json::Deserializer::from_str(json);
        // The seed counts depth itself.
        reader.disable_recursion_limit();
        let item = Seed(MOST_JSON_DEPTH).deserialize(&mut reader);
        let item = item.and_then(|item| reader.end().map(|()| item));
        let item = item.map_err(|error| Error::value("JSON", error.to_string()))?;
        build(classes, &item, Slot::Root, false)
    }

    /// The object of a JSON value. Properties take the order of their class.
    ///
    /// # Errors
    /// Value, for what is no object of known classes.
    pub fn from_json(classes: &Classes, json: &Json) -> Result<Self> {
        build(classes, &item(json)?, Slot::Root, true)
    }

    /// Changes the value at a path (`m_leaf.m_names[2]`) to that of a JSON value. A property that
    /// was not there is put in; the index behind the last element appends one.
    ///
    /// # Errors
    /// Value, for a path that leads nowhere or a value that is not of its type.
    pub fn set(&mut self, classes: &Classes, path: &str, json: &Json) -> Result<()> {
        let place = find(self, classes, path)?;
        let slot = place.slot;
        let new = build(classes, &item(json)?, slot, true);
        let new = new.map_err(|error| error.about(path.to_owned()))?;
        let property = match slot {
            Slot::Property(property) => Some(property.index()),
            _ => None,
        };
        self.splice(place.at, place.count, &place.around, property, &new)
    }

    /// Takes the value at a path out: a property that is then not there, or an element.
    ///
    /// # Errors
    /// Value, for a path that leads nowhere.
    pub fn remove(&mut self, classes: &Classes, path: &str) -> Result<()> {
        let place = find(self, classes, path)?;
        if place.count == 0 || place.around.is_empty() {
            return Err(Error::value("a value that can be taken out", path.to_owned()));
        }
        self.splice(place.at, place.count, &place.around, None, &Self::new())
    }
}

fn item(json: &Json) -> Result<Item> {
    let item = Seed(MOST_JSON_DEPTH).deserialize(json);
    item.map_err(|error| Error::value("JSON", error.to_string()))
}

/// Where a path leads.
struct Found<'c> {
    /// The node, or where it would be.
    at: usize,
    /// Nodes there: 0 when it is not there yet.
    count: usize,
    slot: Slot<'c>,
    /// The nodes around it, outermost first.
    around: Vec<usize>,
}

fn find<'c>(object: &Object, classes: &'c Classes, path: &str) -> Result<Found<'c>> {
    let mut value = object.root(classes).ok_or_else(foreign)?;
    let mut around = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        around.push(value.index());
        let (slot, left) = step(value, rest)?;
        rest = left.strip_prefix('.').unwrap_or(left);
        let found = match slot {
            Ok(found) => found,
            Err((slot, at)) if rest.is_empty() => {
                return Ok(Found { at, count: 0, slot, around });
            }
            Err(_) => return Err(Error::value("a value at the path", path.to_owned())),
        };
        value = found;
    }
    Ok(Found { at: value.index(), count: value.count(), slot: value.slot(), around })
}

/// A value, or where it would be.
type Step<'a, 'c> = Result<ValueRef<'a, 'c>, (Slot<'c>, usize)>;

/// One step of a path: a property, whose name may itself have dots, or an index.
fn step<'a, 'c, 'p>(value: ValueRef<'a, 'c>, path: &'p str) -> Result<(Step<'a, 'c>, &'p str)> {
    let behind = value.index() + value.count();
    if let Some(class) = value.class() {
        // A name may have dots itself; the longest one counts.
        let ends = path.match_indices(['.', '[']).map(|(at, _)| at).chain([path.len()]);
        let longest = ends.rev().find_map(|end| {
            let (name, rest) = path.split_at_checked(end)?;
            class.property(name).map(|property| (property, rest))
        });
        let Some((property, rest)) = longest else {
            return Err(Error::value(format!("a property of {}", class.name), path.to_owned()));
        };
        let index = |child: &ValueRef<'_, '_>| child.slot().property().map(Property::index);
        if let Some(child) = value.children().find(|c| index(c) == Some(property.index())) {
            return Ok((Ok(child), rest));
        }
        let next = value.children().find(|child| index(child) > Some(property.index()));
        let at = next.map_or(behind, |child| child.index());
        return Ok((Err((Slot::Property(property), at)), rest));
    }
    let inside = path.strip_prefix('[').and_then(|path| path.split_once(']'));
    match (inside.and_then(|(index, rest)| Some((index.parse().ok()?, rest))), value.slot()) {
        (Some((index, rest)), Slot::Property(property)) if value.is_list() => {
            if let Some(child) = value.element(index) {
                return Ok((Ok(child), rest));
            }
            if index == value.children().count() {
                return Ok((Err((Slot::Element(property), behind)), rest));
            }
            Err(Error::value("an index of an element", index.to_string()))
        }
        _ => Err(Error::value("the end of the path", path.to_owned())),
    }
}

fn build(classes: &Classes, item: &Item, slot: Slot<'_>, sort: bool) -> Result<Object> {
    let mut builder = Builder { classes, object: Object::new(), depth: 0, sort };
    match slot {
        Slot::Property(property) | Slot::Element(property) => {
            builder.value(slot, property, item)?;
        }
        Slot::Root | Slot::Unknown(_) => builder.object(slot, None, item)?,
    }
    Ok(builder.object)
}

struct Builder<'c> {
    classes: &'c Classes,
    object: Object,
    depth: u32,
    /// Whether properties take the order of the class.
    sort: bool,
}

impl<'c> Builder<'c> {
    fn nested(&mut self, build: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth == MOST_DEPTH {
            let limit = u64::from(MOST_DEPTH);
            return Err(Error::limit("depth", limit, limit + 1));
        }
        self.depth += 1;
        let outcome = build(self);
        self.depth -= 1;
        outcome
    }

    /// An object, or null.
    fn object(&mut self, slot: Slot<'c>, usual: Option<&'c Class>, item: &Item) -> Result<()> {
        let entries = match item {
            Item::Value(Json::Null) => return self.object.value(slot, Leaf::Null),
            Item::Object(entries) => entries,
            other => return Err(expected("an object or null", &other.json())),
        };
        let class = match item.get("$class") {
            None => usual.ok_or_else(|| Error::value("a class", "none").inside("$class"))?,
            Some(name) => {
                let text = name.text().unwrap_or_default();
                match self.classes.find(text) {
                    Some(class) => class,
                    None => return self.unknown(slot, text, item),
                }
            }
        };
        let number = |key: &'static str| match item.get(key) {
            None => Ok(0_u32),
            Some(item) => integer(&item.json(), "a whole number").map_err(|e| e.inside(key)),
        };
        let byte = |key: &'static str| {
            let number = number(key)?;
            u8::try_from(number)
                .map_err(|_| Error::value("a number below 256", number.to_string()).inside(key))
        };
        let (block, kind) = (byte("$block")?, byte("$type")?);
        let id = match (block, kind) {
            (0, 0) => CoreId::default(),
            _ => CoreId { block, kind, template: number("$template")? },
        };
        let mut known: Vec<(Slot<'c>, &Item)> = Vec::with_capacity(entries.len());
        for (name, item) in entries {
            if matches!(name.as_str(), "$class" | "$block" | "$type" | "$template") {
                continue;
            }
            let hash = || name.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let slot = match class.property(name) {
                Some(property) => Slot::Property(property),
                None => Slot::Unknown(hash().ok_or_else(|| no_property(class, name))?),
            };
            known.push((slot, item));
        }
        if self.sort {
            known.sort_by_key(|(slot, _)| slot.property().map_or(u32::MAX, Property::index));
        }
        self.nested(|this| {
            this.object.begin_object(slot, class, id)?;
            for (slot, item) in known {
                let outcome = match slot {
                    Slot::Property(property) => {
                        let outcome = this.value(slot, property, item);
                        outcome.map_err(|error| error.inside(&property.name))
                    }
                    _ => this.raw(slot, item),
                };
                outcome?;
            }
            this.object.end_object()
        })
    }

    fn unknown(&mut self, slot: Slot<'c>, name: &str, item: &Item) -> Result<()> {
        let tag = name.strip_prefix("0x").and_then(|_| parse_number(name));
        match (tag, item.bits()) {
            (Some(tag), Some((count, bytes))) if tag != 0 => {
                self.object.value(slot, Leaf::Object(tag, Bits { count, bytes: &bytes }))
            }
            _ => {
                let error = Error::value("a known class", format!("\"{name}\"")).inside("$class");
                Err(match self.classes.nearest(name) {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => error,
                })
            }
        }
    }

    fn raw(&mut self, slot: Slot<'c>, item: &Item) -> Result<()> {
        match item.bits() {
            Some((count, bytes)) => {
                self.object.value(slot, Leaf::Raw(Bits { count, bytes: &bytes }))
            }
            None => Err(expected("{\"$bits\": 8, \"$hex\": \"00\"}", &item.json())),
        }
    }

    fn value(&mut self, slot: Slot<'c>, property: &'c Property, item: &Item) -> Result<()> {
        let is_property = matches!(slot, Slot::Property(_));
        if is_property && item.get("$bits").is_some() && item.get("$class").is_none() {
            return self.raw(slot, item);
        }
        if property.is_list() && is_property {
            let Item::List(items) = item else { return Err(expected("an array", &item.json())) };
            return self.nested(|this| {
                this.object.begin_list(slot)?;
                for (index, item) in items.iter().enumerate() {
                    let outcome = this.value(Slot::Element(property), property, item);
                    outcome.map_err(|error| error.inside_item(index))?;
                }
                this.object.end_list()
            });
        }
        if property.kind() == Kind::Object {
            let usual = property.class().and_then(|class| self.classes.get(class));
            return self.object(slot, usual, item);
        }
        self.leaf(slot, property, item)
    }

    fn leaf(&mut self, slot: Slot<'c>, property: &'c Property, item: &Item) -> Result<()> {
        let json = item.json();
        let signed = |bits: u32| {
            let number: i64 = integer(&json, "a whole number")?;
            let most = 1_i128 << (bits - 1);
            if (-most..most).contains(&i128::from(number)) {
                return Ok(Leaf::Signed(number));
            }
            Err(expected(format!("a number of {bits} bits with sign"), &json))
        };
        let unsigned = |bits: u32| {
            let number: u64 = integer(&json, "a whole number from 0 on")?;
            if u128::from(number) < 1 << bits {
                return Ok(Leaf::Unsigned(number));
            }
            Err(expected(format!("a number of {bits} bits"), &json))
        };
        let bytes;
        let leaf = match property.kind() {
            Kind::Bool => match json {
                Json::Bool(value) => Leaf::Bool(value),
                _ => return Err(expected("true or false", &json)),
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
            Kind::String => {
                bytes = string_bytes(item, |text| text.as_bytes().to_vec())?;
                Leaf::Text(&bytes)
            }
            Kind::WideString => {
                bytes = string_bytes(item, wide_bytes)?;
                if !bytes.len().is_multiple_of(2) {
                    return Err(Error::value("16-bit units", format!("{} bytes", bytes.len())));
                }
                Leaf::WideText(&bytes)
            }
            Kind::Tuple(tuple) => {
                bytes = tuple_bytes(tuple, item)?;
                Leaf::Tuple(tuple, &bytes)
            }
            kind @ (Kind::Enum | Kind::Flags) => {
                if let Some(name) = item.get("$name").and_then(Item::text) {
                    Leaf::Text(name.as_bytes())
                } else if let Some(name) = item.hex() {
                    bytes = name;
                    Leaf::Text(&bytes)
                } else if kind == Kind::Flags {
                    Leaf::Flags(flags(property, item)?)
                } else {
                    Leaf::Enum(choice(property, item)?)
                }
            }
            Kind::Object => return Err(expected("an object", &json)),
        };
        self.object.value(slot, leaf)
    }
}

fn no_property(class: &Class, name: &str) -> Error {
    let error = Error::value(format!("a property of {}", class.name), format!("\"{name}\""));
    let names = class.properties().iter().map(|property| &*property.name);
    match worldwire_core::nearest(name, names) {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error,
    }
}

fn string_bytes(item: &Item, encode: impl FnOnce(&str) -> Vec<u8>) -> Result<Vec<u8>> {
    match item.text() {
        Some(text) => Ok(encode(text)),
        None => item.hex().ok_or_else(|| expected("a text or {\"$hex\": \"00ff\"}", &item.json())),
    }
}

/// Text as 16-bit units, little-endian.
pub(super) fn wide_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn choice(property: &Property, item: &Item) -> Result<u32> {
    let json = item.json();
    if let Json::String(text) = &json {
        let choices = property.choices.as_deref();
        if let Some(number) = choices.and_then(|choices| choices.number(text)) {
            return Ok(number);
        }
        if parse_number(text).is_none() {
            let wanted = format!("an option of {}", property.type_name);
            let error = Error::value(wanted, format!("\"{text}\""));
            return Err(match choices.and_then(|choices| choices.names().nearest(text)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error,
            });
        }
    }
    integer(&json, "a name or a number of 32 bits")
}

fn flags(property: &Property, item: &Item) -> Result<u32> {
    let Item::List(items) = item else {
        return integer(&item.json(), "a list of names or a number of 32 bits");
    };
    items.iter().enumerate().try_fold(0, |bits, (index, item)| {
        let bit = choice(property, item).map_err(|error| error.inside_item(index));
        bit.map(|bit| bits | bit)
    })
}

fn tuple_bytes(tuple: Tuple, item: &Item) -> Result<Vec<u8>> {
    let Item::Object(entries) = item else {
        return Err(expected(format!("an object with {}", tuple.names().join(", ")), &item.json()));
    };
    if let Some((name, _)) =
        entries.iter().find(|(name, _)| !tuple.names().contains(&name.as_str()))
    {
        let wanted = format!("one of {}", tuple.names().join(", "));
        return Err(Error::value(wanted, format!("\"{name}\"")));
    }
    let mut bytes = Vec::with_capacity(tuple.size());
    for name in tuple.names() {
        let part = item.get(name).ok_or_else(|| Error::value("a number", "none").inside(name))?;
        let outcome = match (part, tuple.per_name()) {
            (Item::List(list), count) if count > 1 && list.len() == count => {
                list.iter().try_for_each(|item| push_number(tuple.part(), item, &mut bytes))
            }
            (_, 1) => push_number(tuple.part(), part, &mut bytes),
            (_, count) => Err(expected(format!("{count} numbers"), &part.json())),
        };
        outcome.map_err(|error| error.inside(name))?;
    }
    Ok(bytes)
}

fn push_number(part: Part, item: &Item, bytes: &mut Vec<u8>) -> Result<()> {
    let json = item.json();
    match part {
        Part::U8 => bytes.push(integer(&json, "a number below 256")?),
        Part::U32 => {
            let number: u32 = integer(&json, "a number of 32 bits")?;
            bytes.extend(number.to_le_bytes());
        }
        Part::I32 => {
            let number: i32 = integer(&json, "a number of 32 bits with sign")?;
            bytes.extend(number.to_le_bytes());
        }
        Part::F32 => bytes.extend(<Flt as Field<'_>>::from_json(&json)?.0.to_le_bytes()),
    }
    Ok(())
}
