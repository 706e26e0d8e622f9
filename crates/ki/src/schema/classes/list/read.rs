//! Reading the JSON of a type list as a stream.

use core::fmt;
use std::collections::HashSet;
use std::sync::Arc;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor,
};

use super::MAX_NOTES;
use crate::property_hash;
use crate::schema::classes::{Choices, Class, Container, Property, PropertyKind, parse_number};

/// More properties in one class are refused.
pub(super) const MAX_PROPERTIES: usize = 16_384;

/// What is being read, for errors: a list can be a single line of 14 MB.
#[derive(Default)]
pub(super) struct ListPosition {
    /// The name or the hash of the class.
    class: Option<String>,
    property: Option<Arc<str>>,
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(class) = &self.class else { return Ok(()) };
        write!(f, ", in {class}")?;
        self.property.as_ref().map_or(Ok(()), |property| write!(f, ", {property}"))
    }
}

/// Declares a seed that reads one JSON value.
macro_rules! seed {
    ($name:ty, $value:ty) => {
        impl<'de> DeserializeSeed<'de> for $name {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<$value, D::Error> {
                json.deserialize_map(self)
            }
        }
    };
}

/// Reads a whole list. Its first key tells the version.
pub(super) struct List<'l> {
    pub(super) found: &'l mut Vec<Class>,
    /// The positions of version 2 classes whose key is not their hash, with that key.
    pub(super) misfiled: &'l mut Vec<(usize, String)>,
    pub(super) texts: &'l mut HashSet<Arc<str>>,
    pub(super) position: &'l mut ListPosition,
}

seed!(List<'_>, ());

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Some(first) = map.next_key::<String>()? else { return Ok(()) };
        if first != "version" && first != "classes" {
            return self.version_1(Some(first), map);
        }
        let mut version = None;
        let mut key = Some(first);
        while let Some(name) = key {
            match name.as_str() {
                "version" => {
                    let number: u64 = map.next_value()?;
                    if number == 1 && version.is_none() && self.found.is_empty() {
                        let next = map.next_key()?;
                        return self.version_1(next, map);
                    }
                    if number != 2 {
                        return Err(unknown_version(number));
                    }
                    version = Some(number);
                }
                "classes" => {
                    let (found, texts, position) =
                        (&mut *self.found, &mut *self.texts, &mut *self.position);
                    let misfiled = &mut *self.misfiled;
                    map.next_value_seed(ClassMap { found, texts, position, misfiled })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            key = map.next_key()?;
        }
        match version {
            Some(_) => Ok(()),
            None => Err(M::Error::custom("no version")),
        }
    }
}

impl List<'_> {
    /// Reads the rest of a version 1 list: classes by name.
    fn version_1<'de, M: MapAccess<'de>>(
        self,
        mut key: Option<String>,
        mut map: M,
    ) -> Result<(), M::Error> {
        while let Some(class) = key {
            if class == "version" {
                match map.next_value()? {
                    1 => {}
                    other => return Err(unknown_version(other)),
                }
            } else if class == "classes" {
                return Err(M::Error::custom("\"classes\", which lists of version 1 do not have"));
            } else {
                let (found, texts, position) =
                    (&mut *self.found, &mut *self.texts, &mut *self.position);
                position.class = Some(class.clone());
                map.next_value_seed(ClassOf { found, texts, position, name: Some(class) })?;
                self.position.class = None;
            }
            key = map.next_key()?;
        }
        Ok(())
    }
}

fn unknown_version<E: serde::de::Error>(number: u64) -> E {
    E::custom(format!("version {number}; only versions 1 and 2 are known"))
}

/// Reads the classes of a version 2 list, by hash.
struct ClassMap<'l> {
    found: &'l mut Vec<Class>,
    misfiled: &'l mut Vec<(usize, String)>,
    texts: &'l mut HashSet<Arc<str>>,
    position: &'l mut ListPosition,
}

seed!(ClassMap<'_>, ());

impl<'de> Visitor<'de> for ClassMap<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("classes by hash")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(hash) = map.next_key::<String>()? {
            let (found, texts, position) =
                (&mut *self.found, &mut *self.texts, &mut *self.position);
            position.class = Some(hash.clone());
            map.next_value_seed(ClassOf { found, texts, position, name: None })?;
            let class = self.found.last().filter(|class| parse_number(&hash) != Some(class.hash));
            if class.is_some() && self.misfiled.len() < MAX_NOTES {
                self.misfiled.push((self.found.len() - 1, hash));
            }
        }
        self.position.class = None;
        Ok(())
    }
}

/// Reads one class. In version 1, the key is its name.
struct ClassOf<'l> {
    found: &'l mut Vec<Class>,
    texts: &'l mut HashSet<Arc<str>>,
    position: &'l mut ListPosition,
    name: Option<String>,
}

seed!(ClassOf<'_>, ());

impl<'de> Visitor<'de> for ClassOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a class")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let (mut name, mut hash, mut bases, mut singleton) = (self.name, None, Vec::new(), false);
        let mut properties = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => {
                    let found: String = map.next_value()?;
                    self.position.class = Some(found.clone());
                    name = Some(found);
                }
                "hash" => hash = Some(map.next_value::<Word>()?.0),
                "bases" => bases = map.next_value::<Vec<String>>()?,
                "singleton" => singleton = map.next_value()?,
                "properties" => map.next_value_seed(PropertyMap {
                    found: &mut properties,
                    texts: &mut *self.texts,
                    position: &mut *self.position,
                })?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let name = name.ok_or_else(|| M::Error::missing_field("name"))?;
        let hash = hash.ok_or_else(|| M::Error::missing_field("hash"))?;
        let mut class = Class::new(intern(self.texts, name), hash, properties);
        class.bases = bases.into_iter().map(|base| intern(self.texts, base)).collect();
        class.singleton = singleton;
        self.found.push(class);
        Ok(())
    }
}

struct PropertyMap<'l> {
    found: &'l mut Vec<Property>,
    texts: &'l mut HashSet<Arc<str>>,
    position: &'l mut ListPosition,
}

seed!(PropertyMap<'_>, ());

impl<'de> Visitor<'de> for PropertyMap<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("properties by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if self.found.len() == MAX_PROPERTIES {
                let max = format!("more than {MAX_PROPERTIES} properties");
                return Err(M::Error::custom(max));
            }
            let name = intern(self.texts, name);
            self.position.property = Some(Arc::clone(&name));
            let texts = &mut *self.texts;
            let property = map.next_value_seed(PropertyOf { texts, name, at: self.found.len() })?;
            self.found.push(property);
        }
        self.position.property = None;
        Ok(())
    }
}

struct PropertyOf<'l> {
    texts: &'l mut HashSet<Arc<str>>,
    name: Arc<str>,
    at: usize,
}

seed!(PropertyOf<'_>, Property);

impl<'de> Visitor<'de> for PropertyOf<'_> {
    type Value = Property;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Property, M::Error> {
        let Self { texts, name, at } = self;
        let mut property = Property {
            index: 0,
            kind: PropertyKind::Bool,
            class: None,
            name,
            type_name: intern(texts, String::new()),
            // Without an ID, its position in the list is used.
            id: u32::try_from(at).unwrap_or(u32::MAX),
            offset: 0,
            flags: 0,
            container: Container::Static,
            dynamic: false,
            singleton: false,
            pointer: false,
            hash: 0,
            choices: None,
        };
        let (mut hash, mut dynamic, mut has_type) = (None, None, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => {
                    property.type_name = intern(texts, map.next_value()?);
                    has_type = true;
                }
                "id" => property.id = map.next_value::<Word>()?.0,
                "offset" => property.offset = map.next_value::<Word>()?.0,
                "flags" => property.flags = map.next_value::<Word>()?.0,
                "container" => {
                    property.container = Container::parse(intern(texts, map.next_value()?));
                }
                "dynamic" => dynamic = Some(map.next_value()?),
                "singleton" => property.singleton = map.next_value()?,
                "pointer" => property.pointer = map.next_value()?,
                "hash" => hash = Some(map.next_value::<Word>()?.0),
                "enum_options" => {
                    property.choices = Some(map.next_value_seed(ChoicesOf)?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !has_type {
            return Err(M::Error::missing_field("type"));
        }
        property.hash = hash.unwrap_or_else(|| {
            property_hash(property.type_name.as_bytes(), property.name.as_bytes())
        });
        property.dynamic = dynamic.unwrap_or(property.container != Container::Static);
        property.kind = PropertyKind::of(&property.type_name, property.flags);
        Ok(property)
    }
}

/// Reads the options of an enumeration.
struct ChoicesOf;

seed!(ChoicesOf, Arc<Choices>);

impl<'de> Visitor<'de> for ChoicesOf {
    type Value = Arc<Choices>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("options by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Arc<Choices>, M::Error> {
        let (mut options, mut default, mut base_class) = (Vec::new(), None, None);
        while let Some(name) = map.next_key::<Box<str>>()? {
            match &*name {
                "__DEFAULT" => default = Some(map.next_value::<Special>()?.0),
                "__BASECLASS" => base_class = Some(map.next_value::<Special>()?.0),
                _ => {
                    let value = map.next_value::<OptionValue>()?.0;
                    options.push((name, value));
                }
            }
        }
        let mut choices = Choices::resolved(options);
        (choices.default, choices.base_class) = (default, base_class);
        Ok(Arc::new(choices))
    }
}

/// A 32-bit number. Older lists have negative ones, others have them as text.
struct Word(u32);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit number")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Word, E> {
                let word = u32::try_from(value).map(Word);
                word.map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Word, E> {
                let word = i32::try_from(value).map(|value| Word(value.cast_unsigned()));
                word.map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Word, E> {
                let word = parse_number(value.trim()).map(Word);
                word.ok_or_else(|| E::invalid_value(Unexpected::Str(value), &self))
            }
        }
        json.deserialize_any(Number)
    }
}

/// The value of an option: a number, possibly as text, or any other text.
struct OptionValue(Result<u32, Box<str>>);

impl<'de> serde::Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = OptionValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit number or text")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<OptionValue, E> {
                let number = u32::try_from(value).map(|number| OptionValue(Ok(number)));
                number.map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<OptionValue, E> {
                let number = i32::try_from(value);
                let number = number.map(|number| OptionValue(Ok(number.cast_unsigned())));
                number.map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<OptionValue, E> {
                Ok(OptionValue(parse_number(value.trim()).ok_or_else(|| value.into())))
            }
        }
        json.deserialize_any(Value)
    }
}

/// Text, usually: the name of an option or of a class.
struct Special(Box<str>);

impl<'de> serde::Deserialize<'de> for Special {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(json)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(Self(text.into_boxed_str()))
    }
}

/// A shared copy of a text that many properties have.
pub(super) fn intern(texts: &mut HashSet<Arc<str>>, text: String) -> Arc<str> {
    if let Some(known) = texts.get(text.as_str()) {
        return Arc::clone(known);
    }
    let text: Arc<str> = text.into();
    texts.insert(Arc::clone(&text));
    text
}
