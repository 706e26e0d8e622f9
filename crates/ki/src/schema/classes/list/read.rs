//! Reading the JSON of a type list as a stream.

use core::fmt;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Unexpected, Visitor};

use worldwire_core::Error;

use super::cursor::{Cursor, Problem};
use super::{FoundClass, MAX_NOTES, Texts, blank, finish, likely_properties};
use crate::schema::classes::{Choices, Class, Container, Property, parse_number};

/// In lists of at most this many bytes, recognizing repeated properties takes longer than reading
/// them again.
pub(crate) const SMALL_BYTES: usize = 16 << 10;
/// More properties in one class are refused.
pub(super) const MAX_PROPERTIES: usize = 16_384;

/// Reads the classes of a list, and the positions of those whose key is not their hash.
pub(super) fn read(json: &[u8], texts: &mut Texts) -> Result<ClassesRead, Error> {
    let refused = |problem: Problem, position: &ListPosition<'_>| {
        Error::malformed("", format!("not a type list: {}{position}", problem.0))
    };
    let json_bytes = json.len();
    let json = Cursor::new(json).map_err(|problem| refused(problem, &ListPosition::default()))?;
    let shares = json_bytes > SMALL_BYTES;
    let properties = if shares { likely_properties(json_bytes) } else { 0 };
    let mut list = List {
        json,
        texts,
        found: Vec::new(),
        misfiled: Vec::new(),
        shares,
        known: Vec::with_capacity(properties),
        by_text: HashMap::with_capacity_and_hasher(properties, RandomState::default()),
        first: None,
        choices: HashMap::default(),
        position: ListPosition::default(),
    };
    let outcome = list.list().and_then(|()| list.json.end());
    outcome.map_err(|problem| refused(problem, &list.position))?;
    Ok((list.found, list.misfiled))
}

/// Classes, and the positions of those whose key is not their hash, with that key.
type ClassesRead = (Vec<FoundClass>, Vec<(usize, String)>);

/// A shared copy of text that many properties have.
pub(super) fn intern(texts: &mut Texts, text: &str) -> Arc<str> {
    if let Some(known) = texts.get(text) {
        return Arc::clone(known);
    }
    let text: Arc<str> = text.into();
    texts.insert(Arc::clone(&text));
    text
}

/// The part that is being read, for errors: a list can be a single line of 14 MB.
#[derive(Default)]
struct ListPosition<'j> {
    /// The name or the hash of the class.
    class: Option<Cow<'j, str>>,
    property: Option<Cow<'j, str>>,
}

impl fmt::Display for ListPosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(class) = &self.class else { return Ok(()) };
        write!(f, ", in {class}")?;
        self.property.as_ref().map_or(Ok(()), |property| write!(f, ", {property}"))
    }
}

/// Reads a whole list.
struct List<'j, 't> {
    json: Cursor<'j>,
    texts: &'t mut Texts,
    found: Vec<FoundClass>,
    /// The positions of version 2 classes whose key is not their hash, with that key.
    misfiled: Vec<(usize, String)>,
    /// Whether repeated properties are recognized: see [`SMALL_BYTES`].
    shares: bool,
    /// The properties read so far. Derived classes repeat those that they inherit.
    known: Vec<KnownProperty<'j>>,
    /// Their indices, by their text.
    by_text: HashMap<&'j str, usize, RandomState>,
    /// The first property of the last class.
    first: Option<usize>,
    /// Options by their text. Many properties share an enumeration.
    choices: HashMap<&'j str, Arc<Choices>, RandomState>,
    position: ListPosition<'j>,
}

/// A property, and whether its hash is the computed one.
struct FoundProperty(Property, bool);

/// A property that has been read.
struct KnownProperty<'j> {
    /// The text of the property, with its name.
    text: &'j str,
    found: FoundProperty,
    /// The property that followed it last. Comparing that property's text is faster than looking up
    /// the next one.
    next: Option<usize>,
}

impl<'j> List<'j, '_> {
    /// Reads the list. The first key reveals its version.
    fn list(&mut self) -> Result<(), Problem> {
        self.json.begin("a JSON object of classes, by name or under \"classes\"")?;
        let mut key = self.json.next_key()?;
        if key.as_ref().is_some_and(|key| key != "version" && key != "classes") {
            return self.version_1(key);
        }
        let (mut version, is_empty) = (None, key.is_none());
        while let Some(name) = key {
            match &*name {
                "version" => {
                    let number: u64 = self.json.value()?;
                    if number == 1 && version.is_none() && self.found.is_empty() {
                        let next = self.json.next_key()?;
                        return self.version_1(next);
                    }
                    if number != 2 {
                        return Err(self.unknown_version(number));
                    }
                    version = Some(number);
                }
                "classes" => self.classes_by_hash()?,
                _ => self.json.skip()?,
            }
            key = self.json.next_key()?;
        }
        if version.is_none() && !is_empty {
            let text = "no \"version\"; add \"version\": 2 before \"classes\"";
            return Err(self.json.problem(text));
        }
        Ok(())
    }

    /// The rest of a version 1 list: classes by name.
    fn version_1(&mut self, mut key: Option<Cow<'j, str>>) -> Result<(), Problem> {
        while let Some(class) = key {
            if class == "version" {
                match self.json.value()? {
                    1 => {}
                    other => return Err(self.unknown_version(other)),
                }
            } else if class == "classes" {
                let text = "\"classes\", which lists of version 1 do not have";
                return Err(self.json.problem(text));
            } else {
                self.position.class = Some(class.clone());
                self.class(Some(class))?;
                self.position.class = None;
            }
            key = self.json.next_key()?;
        }
        Ok(())
    }

    fn unknown_version(&self, number: u64) -> Problem {
        self.json.problem(format!("version {number}; only versions 1 and 2 are known"))
    }

    /// The classes of a version 2 list.
    fn classes_by_hash(&mut self) -> Result<(), Problem> {
        self.json.begin("classes by hash")?;
        while let Some(hash) = self.json.next_key()? {
            self.position.class = Some(hash.clone());
            self.class(None)?;
            let class = self.found.last().map(|found| &found.class);
            let is_misfiled = class.is_some_and(|class| parse_number(&hash) != Some(class.hash));
            if is_misfiled && self.misfiled.len() < MAX_NOTES {
                self.misfiled.push((self.found.len() - 1, hash.into_owned()));
            }
        }
        self.position.class = None;
        Ok(())
    }

    /// One class. In version 1, the key is the class's name.
    fn class(&mut self, mut name: Option<Cow<'j, str>>) -> Result<(), Problem> {
        self.json.begin("a class")?;
        let (mut hash, mut bases, mut singleton) = (None, Vec::new(), false);
        let (mut properties, mut is_verified) = (Vec::new(), true);
        while let Some(key) = self.json.next_key()? {
            match &*key {
                "name" => {
                    let found = self.json.string()?;
                    self.position.class = Some(found.clone());
                    name = Some(found);
                }
                "hash" => hash = Some(self.json.word()?),
                "bases" => bases = self.json.strings()?,
                "singleton" => singleton = self.json.flag()?,
                "properties" => is_verified &= self.properties(&mut properties)?,
                _ => self.json.skip()?,
            }
        }
        let name = name.ok_or_else(|| self.json.problem("missing field `name`"))?;
        let hash = hash.ok_or_else(|| self.json.problem("missing field `hash`"))?;
        let mut class = Class::new(intern(self.texts, &name), hash, properties);
        class.bases = bases.iter().map(|base| intern(self.texts, base)).collect();
        class.singleton = singleton;
        self.found.push(FoundClass { class, is_verified });
        Ok(())
    }

    /// The properties of a class. Returns whether their hashes are the computed ones.
    fn properties(&mut self, found: &mut Vec<Property>) -> Result<bool, Problem> {
        let mut is_verified = true;
        let mut last = None;
        self.json.begin("properties by name")?;
        while self.json.next(b'}')? {
            if found.len() == MAX_PROPERTIES {
                let text = format!("more than {MAX_PROPERTIES} properties");
                return Err(self.json.problem(text));
            }
            let guess = last.map_or(self.first, |last| self.known_property(last)?.next);
            let guess = guess.filter(|guess| {
                self.known_property(*guess).is_some_and(|known| self.json.is_at(known.text))
            });
            let (mut index, mut pair) = (guess, None);
            if guess.is_none() && self.shares {
                pair = self.json.likely_pair();
                index = pair.and_then(|text| self.by_text.get(text)).copied();
            }
            if let Some(KnownProperty {
                text, found: FoundProperty(property, is_regular), ..
            }) = index.and_then(|index| self.known.get(index))
            {
                is_verified &= is_regular;
                found.push(property.clone());
                self.json.pass(text);
            } else {
                let start = self.json.position();
                let name = self.json.key()?;
                self.position.property = Some(name.clone());
                let (has_id, property) = self.property(&name, found.len())?;
                is_verified &= property.1;
                // Without an ID of its own, a property depends on its position.
                match pair.filter(|text| has_id && self.json.has_read(start, text)) {
                    Some(text) => {
                        found.push(property.0.clone());
                        index = Some(self.known.len());
                        self.by_text.insert(text, self.known.len());
                        self.known.push(KnownProperty { text, found: property, next: None });
                    }
                    None => found.push(property.0),
                }
            }
            if guess.is_none() {
                match last.and_then(|last| self.known.get_mut(last)) {
                    Some(last) => last.next = index,
                    None if found.len() == 1 => self.first = index,
                    None => {}
                }
            }
            last = index;
        }
        self.position.property = None;
        Ok(is_verified)
    }

    fn known_property(&self, index: usize) -> Option<&KnownProperty<'j>> {
        self.known.get(index)
    }

    /// One property, and whether its ID is in the list.
    fn property(&mut self, name: &str, at: usize) -> Result<(bool, FoundProperty), Problem> {
        self.json.begin("a property")?;
        let mut property = blank(intern(self.texts, name), at);
        let (mut hash, mut dynamic, mut has_type, mut has_id) = (None, None, false, false);
        while let Some(key) = self.json.next_key()? {
            match &*key {
                "type" => {
                    property.type_name = self.text()?;
                    has_type = true;
                }
                "id" => {
                    property.id = self.json.word()?;
                    has_id = true;
                }
                "offset" => property.offset = self.json.word()?,
                "flags" => property.flags = self.json.word()?,
                "container" => property.container = Container::parse(self.text()?),
                "dynamic" => dynamic = Some(self.json.flag()?),
                "singleton" => property.singleton = self.json.flag()?,
                "pointer" => property.pointer = self.json.flag()?,
                "hash" => hash = Some(self.json.word()?),
                "enum_options" => property.choices = Some(self.options()?),
                _ => self.json.skip()?,
            }
        }
        if !has_type {
            return Err(self.json.problem("missing field `type`"));
        }
        let is_regular = finish(&mut property, hash, dynamic);
        Ok((has_id, FoundProperty(property, is_regular)))
    }

    fn text(&mut self) -> Result<Arc<str>, Problem> {
        Ok(intern(self.texts, &self.json.string()?))
    }

    fn options(&mut self) -> Result<Arc<Choices>, Problem> {
        let (object, start) = (self.json.likely_object(), self.json.position());
        if let Some(text) = object
            && let Some(choices) = self.choices.get(text)
        {
            self.json.pass(text);
            return Ok(Arc::clone(choices));
        }
        let choices = self.json.seed(ChoicesOf)?;
        if let Some(text) = object.filter(|text| self.json.has_read(start, text)) {
            self.choices.insert(text, Arc::clone(&choices));
        }
        Ok(choices)
    }
}

struct ChoicesOf;

impl<'de> DeserializeSeed<'de> for ChoicesOf {
    type Value = Arc<Choices>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Arc<Choices>, D::Error> {
        json.deserialize_map(self)
    }
}

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

/// The value of an option: a 32-bit number, which can be negative or text, or any other text.
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

/// A 32-bit number. Older lists contain negative numbers; other lists contain numbers as text.
pub(super) struct Word(pub(super) u32);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let OptionValue(value) = OptionValue::deserialize(json)?;
        let invalid =
            |text: Box<str>| D::Error::invalid_value(Unexpected::Str(&text), &"a 32-bit number");
        value.map(Self).map_err(invalid)
    }
}

/// Usually text: the name of an option or of a class.
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
