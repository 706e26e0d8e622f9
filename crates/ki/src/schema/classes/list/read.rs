//! Reading the JSON of a type list as a stream.

use core::fmt;
use std::collections::HashSet;
use std::sync::Arc;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor,
};

use worldwire_core::Error;

use super::{MAX_NOTES, blank, finish};
use crate::schema::classes::{Choices, Class, Container, Property, parse_number};

/// More properties in one class are refused.
pub(super) const MAX_PROPERTIES: usize = 16_384;

/// What is being read, for errors: a list can be a single line of 14 MB.
#[derive(Default)]
struct ListPosition {
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

/// Reads the classes of a list, and the positions of those whose key is not their hash.
pub(super) fn read(json: &[u8], texts: &mut HashSet<Arc<str>>) -> Result<ClassesRead, Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let position = ListPosition::default();
    let mut list = ListContents { found: Vec::new(), misfiled: Vec::new(), texts, position };
    let outcome = List(&mut list).deserialize(&mut reader).and_then(|()| reader.end());
    outcome.map_err(|error| {
        let problem = format!("not a type list: {}{}", problem(&error), list.position);
        Error::malformed("", problem)
    })?;
    Ok((list.found, list.misfiled))
}

/// What is wrong with the JSON, and where: `serde_json` would say it less plainly.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    let place = format!("{}:{}", error.line(), error.column());
    if !error.is_data() {
        return format!("invalid JSON at {place}: {text}");
    }
    let types = text.strip_prefix("invalid type: ").and_then(|text| text.split_once(", expected "));
    let text = types.map_or_else(
        || text.to_owned(),
        |(found, wanted)| {
            let found = match found {
                "sequence" => "an array",
                "map" => "an object",
                other => other,
            };
            format!("expected {wanted}, found {found}")
        },
    );
    if error.column() == 0 { text } else { format!("{text} at {place}") }
}

/// Classes, and the positions of those whose key is not their hash, with that key.
type ClassesRead = (Vec<Class>, Vec<(usize, String)>);

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

/// What is read from a list.
struct ListContents<'t> {
    found: Vec<Class>,
    /// The positions of version 2 classes whose key is not their hash, with that key.
    misfiled: Vec<(usize, String)>,
    texts: &'t mut HashSet<Arc<str>>,
    position: ListPosition,
}

/// Reads a whole list. The first key reveals the version.
struct List<'l, 't>(&'l mut ListContents<'t>);

seed!(List<'_, '_>, ());

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object of classes, by name or under \"classes\"")
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
                    if number == 1 && version.is_none() && self.0.found.is_empty() {
                        let next = map.next_key()?;
                        return self.version_1(next, map);
                    }
                    if number != 2 {
                        return Err(unknown_version(number));
                    }
                    version = Some(number);
                }
                "classes" => map.next_value_seed(ClassMap(self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            key = map.next_key()?;
        }
        match version {
            Some(_) => Ok(()),
            None => Err(M::Error::custom("no \"version\"; add \"version\": 2 before \"classes\"")),
        }
    }
}

impl List<'_, '_> {
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
                self.0.position.class = Some(class.clone());
                map.next_value_seed(ClassOf { contents: self.0, name: Some(class) })?;
                self.0.position.class = None;
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
struct ClassMap<'l, 't>(&'l mut ListContents<'t>);

seed!(ClassMap<'_, '_>, ());

impl<'de> Visitor<'de> for ClassMap<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("classes by hash")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(hash) = map.next_key::<String>()? {
            self.0.position.class = Some(hash.clone());
            map.next_value_seed(ClassOf { contents: self.0, name: None })?;
            let ListContents { found, misfiled, .. } = &mut *self.0;
            let class = found.last().filter(|class| parse_number(&hash) != Some(class.hash));
            if class.is_some() && misfiled.len() < MAX_NOTES {
                misfiled.push((found.len() - 1, hash));
            }
        }
        self.0.position.class = None;
        Ok(())
    }
}

/// Reads one class. In version 1, the key is its name.
struct ClassOf<'l, 't> {
    contents: &'l mut ListContents<'t>,
    name: Option<String>,
}

seed!(ClassOf<'_, '_>, ());

impl<'de> Visitor<'de> for ClassOf<'_, '_> {
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
                    self.contents.position.class = Some(found.clone());
                    name = Some(found);
                }
                "hash" => hash = Some(map.next_value::<Word>()?.0),
                "bases" => bases = map.next_value::<Vec<String>>()?,
                "singleton" => singleton = map.next_value()?,
                "properties" => {
                    map.next_value_seed(PropertyMap(&mut *self.contents, &mut properties))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let name = name.ok_or_else(|| M::Error::missing_field("name"))?;
        let hash = hash.ok_or_else(|| M::Error::missing_field("hash"))?;
        let ListContents { found, texts, .. } = self.contents;
        let mut class = Class::new(intern(texts, name), hash, properties);
        class.bases = bases.into_iter().map(|base| intern(texts, base)).collect();
        class.singleton = singleton;
        found.push(class);
        Ok(())
    }
}

struct PropertyMap<'l, 't>(&'l mut ListContents<'t>, &'l mut Vec<Property>);

seed!(PropertyMap<'_, '_>, ());

impl<'de> Visitor<'de> for PropertyMap<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("properties by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Self(ListContents { texts, position, .. }, found) = self;
        while let Some(name) = map.next_key::<String>()? {
            if found.len() == MAX_PROPERTIES {
                let max = format!("more than {MAX_PROPERTIES} properties");
                return Err(M::Error::custom(max));
            }
            let name = intern(texts, name);
            position.property = Some(Arc::clone(&name));
            let property = map.next_value_seed(PropertyOf { texts, name, at: found.len() })?;
            found.push(property);
        }
        position.property = None;
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
        let mut property = blank(name, at);
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
        finish(&mut property, hash, dynamic);
        Ok(property)
    }
}

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

/// The value of an option: a 32-bit number, which may be negative or text, or any other text.
struct OptionValue(Result<u32, Box<str>>);

impl<'de> serde::Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = OptionValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit number")
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

/// A 32-bit number. Older lists have negative ones, others have them as text.
struct Word(u32);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let OptionValue(value) = OptionValue::deserialize(json)?;
        let invalid =
            |text: Box<str>| D::Error::invalid_value(Unexpected::Str(&text), &"a 32-bit number");
        value.map(Self).map_err(invalid)
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
