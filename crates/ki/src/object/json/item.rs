//! JSON values whose objects keep their order.

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess};
use worldwire_core::json::{Json, expected, integer};
use worldwire_core::value::parse_hex;
use worldwire_core::{Error, Limits, Result};

use crate::object::visitor::Slot;

/// Keys that are not properties.
const SPECIAL: [&str; 8] =
    ["$class", "$block", "$type", "$template", "$bits", "$hex", "$name", Slot::REST];
/// The number of levels by which JSON can be nested more deeply than the objects in it, because the
/// innermost object can contain a tuple of rows.
const MORE_DEPTH: u32 = 4;

/// JSON values whose objects keep their order.
#[derive(Debug)]
pub(in crate::object) enum Item {
    Value(Json),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Reads one value and limits its depth.
#[derive(Clone, Copy)]
pub(super) struct Seed {
    left: u32,
    /// The limit, for the error.
    max: u32,
}

impl Seed {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { left: limits.depth.saturating_add(MORE_DEPTH), max: limits.depth }
    }

    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left, ..self }),
            None => {
                let max = self.max;
                Err(E::custom(format!("objects and lists nested more than {max} deep (depth)")))
            }
        }
    }
}

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
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            list.push(item);
        }
        Ok(Item::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        let mut seen = [false; SPECIAL.len()];
        while let Some(key) = items.next_key::<String>()? {
            // Streams can contain a property twice, but special keys must be unique.
            let special = SPECIAL.iter().position(|special| *special == key);
            if let Some(seen) = special.and_then(|at| seen.get_mut(at))
                && core::mem::replace(seen, true)
            {
                return Err(A::Error::custom(format!("an object has the key {key} twice")));
            }
            list.push((key, items.next_value_seed(deeper)?));
        }
        Ok(Item::Object(list))
    }
}

impl Item {
    /// The JSON value; for lists and objects, a description for errors.
    pub(super) fn json(&self) -> Json {
        match self {
            Self::Value(json) => json.clone(),
            Self::List(list) => format!("a list of {}", list.len()).into(),
            Self::Object(_) => "an object".into(),
        }
    }

    /// The value of an object's key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, item)| item)
            }
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Value(Json::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The bytes of `{"$hex": "00ff"}`; `None` for any other value.
    pub(super) fn hex(&self) -> Result<Option<Vec<u8>>> {
        match self.get("$hex") {
            Some(digits) => {
                self.has_only(&["$hex"])?;
                hex_digits(digits).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The name of `{"$name": "RED"}`; `None` for any other value.
    pub(super) fn name(&self) -> Result<Option<&str>> {
        let Some(name) = self.get("$name") else { return Ok(None) };
        self.has_only(&["$name"])?;
        let text = name.text().ok_or_else(|| expected("a string", &name.json()).inside("$name"));
        text.map(Some)
    }

    /// The raw bits of `{"$bits": 9, "$hex": "ff01"}`, which may have no other keys but these.
    pub(super) fn bits(&self, beside: &[&str]) -> Result<(u32, Vec<u8>)> {
        let (Some(count), Some(digits)) = (self.get("$bits"), self.get("$hex")) else {
            return Err(expected("{\"$bits\": 8, \"$hex\": \"00\"}", &self.json()));
        };
        self.has_only(&[beside, &["$bits", "$hex"]].concat())?;
        let count: u32 =
            integer(&count.json(), "a number of bits").map_err(|e| e.inside("$bits"))?;
        let bytes = hex_digits(digits)?;
        let wanted = count.div_ceil(8);
        if bytes.len() as u64 != u64::from(wanted) {
            let wanted = format!("{wanted} bytes for {count} bits");
            return Err(Error::value(wanted, bytes.len().to_string()).inside("$hex"));
        }
        Ok((count, bytes))
    }

    /// Refuses keys that would be ignored.
    fn has_only(&self, known: &[&str]) -> Result<()> {
        let Self::Object(entries) = self else { return Ok(()) };
        match entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => Err(Error::value(
                format!("only the keys {}", known.join(", ")),
                format!("\"{key}\""),
            )),
            None => Ok(()),
        }
    }
}

fn hex_digits(digits: &Item) -> Result<Vec<u8>> {
    let bytes = digits.text().and_then(parse_hex);
    bytes.ok_or_else(|| expected("pairs of hexadecimal digits", &digits.json()).inside("$hex"))
}

/// Converts a JSON value in which objects have no order.
pub(in crate::object) fn item(json: &Json, limits: &Limits) -> Result<Item> {
    let item = copied(json, Seed::new(limits));
    item.map_err(|error| Error::invalid(format!("invalid JSON: {error}")))
}

fn copied(json: &Json, seed: Seed) -> serde_json::Result<Item> {
    match json {
        Json::Array(items) => {
            let deeper = seed.deeper()?;
            let items = items.iter().map(|item| copied(item, deeper));
            items.collect::<Result<_, _>>().map(Item::List)
        }
        Json::Object(object) => {
            let deeper = seed.deeper()?;
            let items = object.iter();
            let items = items.map(|(key, value)| Ok((key.to_owned(), copied(value, deeper)?)));
            items.collect::<Result<_, _>>().map(Item::Object)
        }
        value => Ok(Item::Value(value.clone())),
    }
}
