//! Parsing JSON.

use core::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::keys::{Keys, Seen};
use super::object::Key;
use super::{Json, Object};

/// Parses JSON without losing anything: a repeated key is an error, where most parsers silently
/// keep the last value.
///
/// # Errors
/// [`serde_json::Error`], with the line and column: invalid JSON, nesting deeper than 128, or a
/// repeated key.
pub fn parse(text: &str) -> Result<Json, serde_json::Error> {
    Parser::default().parse(text)
}

/// Parses many documents with mostly the same keys, such as JSON lines. Keeping the keys makes this
/// faster.
#[derive(Debug, Default)]
pub struct Parser(Room);

impl Parser {
    /// Parses a document like [`parse`], with the same errors.
    pub fn parse(&mut self, text: &str) -> Result<Json, serde_json::Error> {
        self.0.begin();
        let mut reader = serde_json::Deserializer::from_str(text);
        let json = Seed { room: &mut self.0, is_strict: true }.deserialize(&mut reader)?;
        reader.end()?;
        Ok(json)
    }
}

/// Like most parsers: if a key is repeated, its last value wins.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Seed { room: &mut Room::default(), is_strict: false }.deserialize(reader)
    }
}

/// Up to this many values of a list or object are kept in [`Room`].
const FEW: usize = 64;

/// Memory for the values that are being read.
#[derive(Debug, Default)]
struct Room {
    keys: Keys,
    /// The last items of all open lists, outermost first: the memory of a list is allocated once
    /// its size is known.
    items: Vec<Json>,
    /// The last entries of all open objects, outermost first.
    entries: Vec<(Key, Json)>,
}

impl Room {
    fn begin(&mut self) {
        self.keys.begin();
        self.items.clear();
        self.entries.clear();
    }
}

/// Reads a value.
struct Seed<'k> {
    room: &'k mut Room,
    /// Whether a repeated key is an error.
    is_strict: bool,
}

impl Seed<'_> {
    fn inside(&mut self) -> Seed<'_> {
        Seed { room: self.room, is_strict: self.is_strict }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut items: S) -> Result<Json, S::Error> {
        let start = self.room.items.len();
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inside())? {
            let room = &mut self.room.items;
            room.push(item);
            if room.len() - start == FEW {
                list.extend(room.drain(start..));
            }
        }
        let last = self.room.items.drain(start..);
        list.reserve_exact(last.len());
        list.extend(last);
        Ok(Json::Array(list.into_boxed_slice()))
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut entries: M) -> Result<Json, M::Error> {
        let start = self.room.entries.len();
        let (mut list, mut seen) = (Vec::new(), Seen::default());
        while let Some(key) = entries.next_key_seed(Shared(&mut self.room.keys))? {
            let last = self.room.entries.get(start..).unwrap_or_default();
            if self.is_strict && seen.is_twice(&key, last) {
                return Err(M::Error::custom(format!("the key \"{}\" occurs twice", &*key)));
            }
            let value = entries.next_value_seed(self.inside())?;
            let room = &mut self.room.entries;
            room.push((key, value));
            if room.len() - start == FEW {
                list.extend(room.drain(start..));
            }
        }
        let last = self.room.entries.drain(start..);
        list.reserve_exact(last.len());
        list.extend(last);
        Ok(Json::Object(Object::of(list)))
    }
}

/// A key, kept once for the document.
struct Shared<'k>(&'k mut Keys);

impl<'de> DeserializeSeed<'de> for Shared<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Key, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Shared<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        Ok(self.0.share(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_as_it_is_elsewhere_and_nothing_is_lost() {
        for text in [
            "null",
            "[true, -1, 18446744073709551615, 1.5, 1e300, \"a\\u0000\\ud83d\\ude00\"]",
            "{\"a\": {\"b\": []}, \"c\": {\"b\": {}}}",
        ] {
            let wanted: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(parse(text).unwrap(), Json::from(wanted), "{text}");
        }
        let error = parse("{\"a\": 1,\n\"b\": [{\"c\": 1, \"c\": 1}]}").unwrap_err().to_string();
        assert!(error.starts_with("the key \"c\" occurs twice at line 2"), "{error}");
        assert!(parse("[1] 2").is_err() && parse(&"[".repeat(200)).is_err());
    }
}
