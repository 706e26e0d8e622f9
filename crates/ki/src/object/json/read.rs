//! Reading objects from JSON.

use worldwire_core::json::{Json, expected, integer};
use worldwire_core::text::byte_count;
use worldwire_core::{Error, Limits, Result};

use super::item::Item;
use super::rounded::looks_rounded;
use crate::object::parse::{self, push_part, unknown_option, wide_bytes};
use crate::object::value::Object;
use crate::object::visitor::{Bits, CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Property, PropertyKind, Tuple, parse_number};

/// Builds an object, or the value of a property or element, and reports numbers that look rounded.
pub(super) fn build_reporting(
    classes: &Classes,
    item: &Item,
    slot: Slot<'_>,
    sort: bool,
    limits: &Limits,
    rounded: &mut dyn FnMut(&str, i128),
) -> Result<Object> {
    let mut builder = Builder { sort, ..Builder::new(classes, limits, rounded) };
    match slot {
        Slot::Property(property) | Slot::Element(property) => {
            builder.value(slot, property, item)?;
        }
        Slot::Unknown(_) | Slot::Rest => builder.raw(slot, item)?,
        Slot::Root => builder.object(slot, None, item)?,
    }
    Ok(builder.object)
}

pub(super) struct Builder<'c, 'r> {
    pub(super) classes: &'c Classes,
    pub(super) object: Object,
    pub(super) depth: u32,
    max_depth: u32,
    /// Whether properties are put into class order.
    sort: bool,
    /// Called for numbers that look rounded.
    rounded: &'r mut dyn FnMut(&str, i128),
}

impl<'c, 'r> Builder<'c, 'r> {
    pub(super) fn new(
        classes: &'c Classes,
        limits: &Limits,
        rounded: &'r mut dyn FnMut(&str, i128),
    ) -> Self {
        let (object, max_depth) = (Object::of_text(), limits.depth);
        Self { classes, object, depth: 0, max_depth, sort: false, rounded }
    }

    /// The finished object.
    pub(super) fn into_object(self) -> Object {
        self.object
    }

    /// Enters an object or a container.
    pub(super) fn deeper(&mut self) -> Result<()> {
        if self.depth == self.max_depth {
            let limit = u64::from(self.max_depth);
            return Err(Error::limit("depth", limit, limit + 1));
        }
        self.depth += 1;
        Ok(())
    }

    fn nested(&mut self, build: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.deeper()?;
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
        let name =
            match item.get("$class") {
                None => None,
                Some(name) => Some(name.text().ok_or_else(|| {
                    expected("the name of a class", &name.json()).inside("$class")
                })?),
            };
        let id = core_id(item)?;
        if item.get("$bits").is_some() {
            return self.raw_object(slot, name, id, item);
        }
        let class = match name {
            None => usual.ok_or_else(no_class_name)?,
            Some(name) => self.classes.find(name).ok_or_else(|| self.no_class(name))?,
        };
        let mut known: Vec<(Slot<'c>, &Item)> = Vec::with_capacity(entries.len());
        let mut rest = None;
        for (name, item) in entries {
            if matches!(name.as_str(), "$class" | "$block" | "$type" | "$template") {
                continue;
            }
            if name == Slot::REST {
                rest = Some(item);
                continue;
            }
            let slot = match class.property(name) {
                Some(property) => Slot::Property(property),
                None => match unknown_hash(name) {
                    // The property was unknown when the JSON was written.
                    Some(hash) => class.by_hash(hash).map_or(Slot::Unknown(hash), Slot::Property),
                    None => return Err(no_property(class, name)),
                },
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
            if let Some(rest) = rest {
                this.raw(Slot::Rest, rest)?;
            }
            this.object.end_object()
        })
    }

    /// Builds an object that was kept as bits. Its class may now be known.
    fn raw_object(
        &mut self,
        slot: Slot<'c>,
        name: Option<&str>,
        id: CoreId,
        item: &Item,
    ) -> Result<()> {
        let name = name.ok_or_else(no_class_name)?;
        let number = || name.strip_prefix("0x").and_then(|_| parse_number(name));
        let tag = match self.classes.find(name) {
            Some(class) => class.hash,
            None => number().filter(|tag| *tag != 0).ok_or_else(|| self.no_class(name))?,
        };
        let (count, bytes) = item.bits(&["$class", "$block", "$type", "$template"])?;
        self.object.value(slot, Leaf::object(tag, id, Bits { count, bytes: &bytes }))
    }

    fn no_class(&self, name: &str) -> Error {
        let error = Error::value("a known class", format!("\"{name}\"")).inside("$class");
        crate::suggest(error, self.classes.nearest(name))
    }

    fn raw(&mut self, slot: Slot<'c>, item: &Item) -> Result<()> {
        let (count, bytes) = item.bits(&[]).map_err(|error| match slot {
            Slot::Unknown(hash) => error.inside(&format!("{hash:#010x}")),
            Slot::Rest => error.inside(Slot::REST),
            _ => error,
        })?;
        self.object.value(slot, Leaf::Raw(Bits { count, bytes: &bytes }))
    }

    pub(super) fn value(
        &mut self,
        slot: Slot<'c>,
        property: &'c Property,
        item: &Item,
    ) -> Result<()> {
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
        if property.kind() == PropertyKind::Object {
            let usual = property.class().or_else(|| property.base());
            let usual = usual.and_then(|class| self.classes.get(class));
            return self.object(slot, usual, item);
        }
        self.leaf(slot, property, item)
    }

    fn leaf(&mut self, slot: Slot<'c>, property: &'c Property, item: &Item) -> Result<()> {
        let json = item.json();
        if let (PropertyKind::I64 | PropertyKind::U64, Json::Number(number)) =
            (property.kind(), &json)
        {
            let number =
                number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
            if let Some(number) = number.filter(|number| looks_rounded(*number)) {
                (self.rounded)(&property.name, number);
            }
        }
        if let Some(leaf) = parse::number_of(property, &json)? {
            return self.object.value(slot, leaf);
        }
        let bytes;
        let leaf = match property.kind() {
            PropertyKind::Bool => match json {
                Json::Bool(value) => Leaf::Bool(value),
                _ => return Err(expected("true or false", &json)),
            },
            PropertyKind::String => {
                bytes = string_bytes(item, |text| text.as_bytes().to_vec())?;
                Leaf::Text(&bytes)
            }
            PropertyKind::WideString => {
                bytes = string_bytes(item, wide_bytes)?;
                if !bytes.len().is_multiple_of(2) {
                    return Err(Error::value("16-bit units", byte_count(bytes.len() as u64)));
                }
                Leaf::WideText(&bytes)
            }
            PropertyKind::Tuple(tuple) => {
                bytes = tuple_bytes(tuple, item)?;
                Leaf::Tuple(tuple, &bytes)
            }
            kind @ (PropertyKind::Enum | PropertyKind::Flags) => {
                if let Some(name) = item.name()? {
                    Leaf::Text(name.as_bytes())
                } else if let Some(name) = item.hex()? {
                    bytes = name;
                    Leaf::Text(&bytes)
                } else if kind == PropertyKind::Flags {
                    Leaf::Flags(flags(property, item)?)
                } else {
                    Leaf::Enum(choice(property, item)?)
                }
            }
            _ => return Err(expected("an object", &json)),
        };
        self.object.value(slot, leaf)
    }
}

/// The ID of an object in the CoreObject form.
fn core_id(item: &Item) -> Result<CoreId> {
    let number = |key: &'static str| match item.get(key) {
        None => Ok(0_u32),
        Some(item) => integer(&item.json(), "a whole number").map_err(|e| e.inside(key)),
    };
    let byte = |key: &'static str| {
        let number = number(key)?;
        u8::try_from(number)
            .map_err(|_| Error::value("a number below 256", number.to_string()).inside(key))
    };
    let id =
        CoreId { block: byte("$block")?, kind: byte("$type")?, template: number("$template")? };
    if (id.block, id.kind) == (0, 0) && id.template != 0 {
        return Err(Error::invalid("needs $block and $type").inside("$template"));
    }
    Ok(id)
}

/// The hash of an unknown property, from its key: `0x0000002a`.
pub(in crate::object) fn unknown_hash(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("0x").filter(|hex| !hex.starts_with('+'));
    digits.and_then(|hex| u32::from_str_radix(hex, 16).ok())
}

#[cold]
fn no_class_name() -> Error {
    Error::invalid("is missing; write the name of a class").inside("$class")
}

#[cold]
pub(in crate::object) fn no_property(class: &Class, name: &str) -> Error {
    let error = Error::invalid(format!("\"{name}\" is not a property of {}", class.name));
    let names = class.properties().iter().map(|property| &*property.name);
    crate::suggest(error, worldwire_core::nearest(name, names))
}

fn string_bytes(item: &Item, encode: impl FnOnce(&str) -> Vec<u8>) -> Result<Vec<u8>> {
    match item.text() {
        Some(text) => Ok(encode(text)),
        None => {
            let bytes = item.hex()?;
            bytes.ok_or_else(|| expected("a string or {\"$hex\": \"00ff\"}", &item.json()))
        }
    }
}

fn choice(property: &Property, item: &Item) -> Result<u32> {
    let json = item.json();
    if let Json::String(text) = &json {
        let choices = property.choices.as_deref();
        if let Some(number) = choices.and_then(|choices| choices.number(text)) {
            return Ok(number);
        }
        if parse_number(text).is_none() {
            let error = unknown_option(property, text);
            return Err(crate::suggest(
                error,
                choices.and_then(|choices| choices.names().nearest(text)),
            ));
        }
    }
    integer(&json, "a name or a 32-bit number")
}

fn flags(property: &Property, item: &Item) -> Result<u32> {
    let Item::List(items) = item else {
        return integer(&item.json(), "a list of names or a 32-bit number");
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
    if entries.len() > tuple.names().len() {
        return Err(Error::value("each part once", "a duplicate"));
    }
    let mut bytes = Vec::with_capacity(tuple.size());
    for name in tuple.names() {
        let part = item.get(name).ok_or_else(|| Error::invalid("is missing").inside(name))?;
        let outcome = match (part, tuple.per_name()) {
            (Item::List(list), count) if count > 1 && list.len() == count => {
                list.iter().try_for_each(|item| push_part(tuple.part(), &item.json(), &mut bytes))
            }
            (_, 1) => push_part(tuple.part(), &part.json(), &mut bytes),
            (_, count) => Err(expected(format!("{count} numbers"), &part.json())),
        };
        outcome.map_err(|error| error.inside(name))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    const LIST: &str = r#"{"class A": {"hash": 7, "properties": {
        "m_e": {"type": "enum E", "id": 0, "enum_options": {"RED": 1, "BLUE": 4}},
        "m_b": {"type": "unsigned int", "id": 1, "flags": 1048576,
            "enum_options": {"READ": 1, "EXEC": 4}},
        "m_f": {"type": "double", "id": 2},
        "m_s": {"type": "std::string", "id": 3},
        "m_w": {"type": "std::wstring", "id": 4},
        "m_m": {"type": "class Matrix3x3", "id": 5},
        "m_u": {"type": "bui5", "id": 6},
        "m_n": {"type": "unsigned char", "id": 8, "enum_options": {"big": 200, "huge": 1000}},
        "m_i": {"type": "int", "id": 9, "enum_options": {"none": -1, "5": 6}},
        "m_a": {"type": "class A*", "id": 7}}}}"#;

    fn classes() -> Classes {
        Classes::of_json(LIST)
    }

    #[test]
    fn every_form_round_trips_in_any_order() {
        let classes = classes();
        let json = r#"{"$class":"class A","m_b":["READ","0x8"],"m_e":"BLUE","m_f":"NaN","#
            .to_owned()
            + r#""m_s":{"$hex":"ff"},"m_w":{"$hex":"00d8"},"m_e":9,"m_e":{"$name":"PINK"},"#
            + r#""m_m":{"i":[1.0,0.0,0.0],"j":[0.0,1e30,0.0],"k":[0.0,0.0,-0.0]},"m_u":31,"#
            + r#""m_n":"big","m_n":7,"m_i":"none","m_i":6,"m_i":-2,"#
            + r#""m_a":{"$class":"class A","$block":2,"$type":3,"$template":4}}"#;
        let object = Object::parse_json(&classes, &json).unwrap();
        assert_eq!(object.to_json(&classes).unwrap(), json);
        let sorted = Object::from_json(
            &classes,
            &json!({"m_u": 1, "m_e": "RED",
            "$class": "A"}),
        );
        let sorted = sorted.unwrap().to_json(&classes).unwrap();
        assert_eq!(sorted, r#"{"$class":"class A","m_e":"RED","m_u":1}"#);
    }

    #[test]
    fn mistakes_are_reported_with_their_path() {
        let classes = classes();
        let wrong = [
            (
                "{\"$class\":\"class B\"}",
                "$class: wanted a known class, found \"class B\"; did you mean \"class A\"?",
            ),
            ("{\"m_u\":1}", "$class: is missing; write the name of a class"),
            (
                "{\"$class\":\"A\",\"m_x\":1}",
                "\"m_x\" is not a property of class A; did you mean \"m_e\"?",
            ),
            ("{\"$class\":\"A\",\"m_u\":32}", "m_u: wanted an unsigned 5-bit number, found 32"),
            (
                "{\"$class\":\"A\",\"m_e\":\"BLU\"}",
                "m_e: wanted an option of enum E, found \"BLU\"; did you mean \"BLUE\"?",
            ),
            (
                "{\"$class\":\"A\",\"m_n\":\"bigg\"}",
                "m_n: wanted a whole number of at least 0, found \"bigg\"; did you mean \"big\"?",
            ),
            (
                "{\"$class\":\"A\",\"m_n\":\"huge\"}",
                "m_n: wanted an unsigned 8-bit number, found 1000",
            ),
            (
                "{\"$class\":\"A\",\"m_b\":[\"READ\",\"NO\"]}",
                "m_b[1]: wanted an option of unsigned int, found \"NO\"",
            ),
            ("{\"$class\":\"A\",\"m_m\":{\"i\":1}}", "m_m.i: wanted 3 numbers, found 1"),
            (
                "{\"$class\":\"A\",\"m_w\":{\"$hex\":\"00\"}}",
                "m_w: wanted 16-bit units, found 1 byte",
            ),
            (
                "{\"$class\":\"A\",\"m_a\":{\"$class\":\"A\",\"$block\":256}}",
                "m_a.$block: wanted a number below 256, found 256",
            ),
            ("5", "wanted an object or null, found 5"),
        ];
        for (json, wanted) in wrong {
            let error = Object::parse_json(&classes, json).unwrap_err().to_string();
            assert_eq!(error, wanted, "{json}");
        }
        assert!(Object::parse_json(&classes, "{\"$class\":\"A\"} x").is_err());
        let twice =
            Object::parse_json(&classes, "{\"$class\":\"A\",\"$class\":\"A\"}").unwrap_err();
        assert!(twice.to_string().contains("an object has the key $class twice"), "{twice}");
    }

    /// Text with `$class` first is read directly, and other text through a tree. The result is the
    /// same.
    #[test]
    fn direct_and_tree_reading_agree() {
        let classes = classes();
        let texts = [
            r#"{"$class":"class A","m_e":"RED","m_u":31}"#,
            r#"{"$class":"class A","m_n":"big","m_i":"none"}"#,
            r#"{"$class":"class A","m_a":{"$class":"A","m_s":"a"},"m_s":"\u00fc\n"}"#,
            r#"{"$class":"class A","m_a":null,"m_b":["READ"],"m_f":-2}"#,
            r#"{"$class":"class A","m_e":{"$name":"PINK"},"m_u":{"$bits":5,"$hex":"1f"}}"#,
        ];
        for text in texts {
            assert!(
                super::super::parse_direct(&classes, text, &Limits::DEFAULT, &mut |_, _| {})
                    .is_some(),
                "{text}"
            );
            let object = Object::parse_json(&classes, text).unwrap();
            let moved = text.replacen(r#""$class":"class A","#, "", 1);
            let moved = moved.strip_suffix('}').unwrap().to_owned() + r#","$class":"class A"}"#;
            assert!(
                super::super::parse_direct(&classes, &moved, &Limits::DEFAULT, &mut |_, _| {})
                    .is_none(),
                "{moved}"
            );
            assert_eq!(Object::parse_json(&classes, &moved).unwrap(), object, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let classes = classes();
        let nested = |depth: usize| {
            let mut json = "{\"$class\":\"A\",\"m_a\":".repeat(depth);
            json.push_str("null");
            json.push_str(&"}".repeat(depth));
            Object::parse_json(&classes, &json)
        };
        let object = nested(128).unwrap();
        assert_eq!(object.to_json(&classes).unwrap().matches("class A").count(), 128);
        assert!(nested(129).unwrap_err().to_string().contains("depth"));
        let error = nested(100_000).unwrap_err().to_string();
        assert!(error.contains("objects and lists nested more than 128 deep (depth)"), "{error}");
    }
}
