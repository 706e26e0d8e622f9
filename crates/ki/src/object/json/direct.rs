//! Reading JSON directly into objects, without a tree in between. Accepts the output of
//! [`JsonWriter`](super::JsonWriter), with `$class` first; for everything else, callers fall back
//! to the slower reader, which reports every mistake.

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess};
use worldwire_core::{Limits, Result};

use super::item::Seed;
use super::read::Builder;
use crate::object::value::Object;
use crate::object::visitor::{CoreId, Leaf, Slot, Visitor};
use crate::schema::classes::{Class, Classes, Property, PropertyKind};

/// Reads an object from text in the form that this crate writes.
pub(super) fn parse(
    classes: &Classes,
    json: &str,
    limits: &Limits,
    rounded: &mut dyn FnMut(&str, i128),
) -> Option<Object> {
    let mut doubtful: Vec<(String, i128)> = Vec::new();
    let mut note = |property: &str, number: i128| doubtful.push((property.to_owned(), number));
    let mut builder = Builder::new(classes, limits, &mut note);
    let mut reader = serde_json::Deserializer::from_str(json);
    // The builder counts depth itself.
    reader.disable_recursion_limit();
    let seed = Nested { builder: &mut builder, slot: Slot::Root, limits };
    seed.deserialize(&mut reader).and_then(|()| reader.end()).ok()?;
    let object = builder.into_object();
    doubtful.iter().for_each(|(property, number)| rounded(property, *number));
    Some(object)
}

/// The error that ends the attempt. It is never shown.
fn fallback<E: Error>() -> E {
    E::custom("not in the direct form")
}

struct Nested<'b, 'c, 'r> {
    builder: &'b mut Builder<'c, 'r>,
    slot: Slot<'c>,
    limits: &'b Limits,
}

impl<'de> DeserializeSeed<'de> for Nested<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Nested<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.builder.object.value(self.slot, Leaf::Null).map_err(|_| fallback())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { builder, slot, limits } = self;
        if entries.next_key_seed(ClassKey)?.is_none() {
            return Err(fallback());
        }
        let class = entries.next_value_seed(ClassName(builder.classes))?;
        builder.deeper().map_err(|_| fallback())?;
        let begun = builder.object.begin_object(slot, class, CoreId::default());
        begun.map_err(|_| fallback())?;
        while let Some(property) = entries.next_key_seed(PropertyName(class))? {
            let slot = Slot::Property(property);
            entries.next_value_seed(PropertyValue { builder, slot, property, limits })?;
        }
        builder.object.end_object().map_err(|_| fallback())?;
        builder.depth -= 1;
        Ok(())
    }
}

/// Reads the value of a property, or an element of its container.
struct PropertyValue<'b, 'c, 'r> {
    builder: &'b mut Builder<'c, 'r>,
    slot: Slot<'c>,
    property: &'c Property,
    limits: &'b Limits,
}

impl<'de> DeserializeSeed<'de> for PropertyValue<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let Self { builder, slot, property, limits } = self;
        if property.is_list() && matches!(slot, Slot::Property(_)) {
            return json.deserialize_seq(Elements { builder, property, limits });
        }
        if property.kind() == PropertyKind::Object {
            return json.deserialize_any(Nested { builder, slot, limits });
        }
        let item = Seed::new(limits).deserialize(json)?;
        builder.value(slot, property, &item).map_err(|_| fallback())
    }
}

struct Elements<'b, 'c, 'r> {
    builder: &'b mut Builder<'c, 'r>,
    property: &'c Property,
    limits: &'b Limits,
}

impl<'de> serde::de::Visitor<'de> for Elements<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { builder, property, limits } = self;
        builder.deeper().map_err(|_| fallback())?;
        builder.object.begin_list(Slot::Property(property)).map_err(|_| fallback())?;
        let slot = Slot::Element(property);
        while items.next_element_seed(PropertyValue { builder, slot, property, limits })?.is_some()
        {
        }
        builder.object.end_list().map_err(|_| fallback())?;
        builder.depth -= 1;
        Ok(())
    }
}

macro_rules! of_text {
    ($name:ident$(<$life:lifetime>)?($self:ident, $text:ident) -> $value:ty, $wanted:literal, $read:expr) => {
        impl<'de $(, $life)?> DeserializeSeed<'de> for $name$(<$life>)? {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<$value, D::Error> {
                json.deserialize_str(self)
            }
        }

        impl<'de $(, $life)?> serde::de::Visitor<'de> for $name$(<$life>)? {
            type Value = $value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($wanted)
            }

            fn visit_str<E: Error>($self, $text: &str) -> Result<$value, E> {
                $read.ok_or_else(fallback)
            }
        }
    };
}

/// Reads the first key, which must be `$class`.
struct ClassKey;

of_text!(ClassKey(self, text) -> (), "$class", (text == "$class").then_some(()));

struct ClassName<'c>(&'c Classes);

of_text!(ClassName<'c>(self, text) -> &'c Class, "a class", self.0.find(text));

struct PropertyName<'c>(&'c Class);

of_text!(PropertyName<'c>(self, text) -> &'c Property, "a property", self.0.property(text));
