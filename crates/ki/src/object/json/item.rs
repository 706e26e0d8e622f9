//! JSON whose objects keep their order.

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess};
use worldwire_core::json::Json;
use worldwire_core::value::parse_hex;
use worldwire_core::{Error, Result};

use super::MOST_JSON_DEPTH;

/// Keys that are no properties.
const SPECIAL: [&str; 7] = ["$class", "$block", "$type", "$template", "$bits", "$hex", "$name"];

/// JSON whose objects keep their order.
#[derive(Debug)]
pub(in crate::object) enum Item {
    Value(Json),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Reads one, so much deeper than its surroundings.
pub(super) struct Seed(pub(super) u32);

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
        let mut seen = [false; SPECIAL.len()];
        while let Some(key) = items.next_key::<String>()? {
            // A property may stand in a stream twice, but not what says what an object is.
            let special = SPECIAL.iter().position(|special| *special == key);
            if let Some(seen) = special.and_then(|at| seen.get_mut(at))
                && core::mem::replace(seen, true)
            {
                return Err(A::Error::custom(format!("{key} twice in an object")));
            }
            list.push((key, items.next_value_seed(Self(deeper))?));
        }
        Ok(Item::Object(list))
    }
}

impl Item {
    /// As the JSON that it was, for values and errors.
    pub(super) fn json(&self) -> Json {
        match self {
            Self::Value(json) => json.clone(),
            Self::List(list) => format!("a list of {}", list.len()).into(),
            Self::Object(_) => "an object".into(),
        }
    }

    /// The value of a key of an object.
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

    pub(super) fn hex(&self) -> Option<Vec<u8>> {
        parse_hex(self.get("$hex")?.text()?)
    }

    /// Bits that nobody can read.
    pub(super) fn bits(&self) -> Option<(u32, Vec<u8>)> {
        let Self::Value(count) = self.get("$bits")? else { return None };
        let count = u32::try_from(count.as_u64()?).ok()?;
        let bytes = self.hex()?;
        (bytes.len() == count.div_ceil(8) as usize).then_some((count, bytes))
    }
}

/// A JSON value; its objects have lost their order already.
pub(in crate::object) fn item(json: &Json) -> Result<Item> {
    let item = Seed(MOST_JSON_DEPTH).deserialize(json);
    item.map_err(|error| Error::value("JSON", error.to_string()))
}
