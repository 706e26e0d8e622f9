//! The values that type lists assign to new objects.
//!
//! A default takes the form of the property's value in XML or in JSON:
//!
//! | property | default |
//! | --- | --- |
//! | number, Boolean, text, enumeration, flags | as in XML: `5`, the name of an option, `true`, `A\|B` |
//! | tuple | as in XML: `1,2,3`, or `FF102030` for a colour; as JSON: `{"x": 1, ...}` |
//! | object | the name of its class, whose defaults it gets; empty, `0` or `NULL` for null; as JSON: `{"$class": ...}` |
//! | container | its elements, separated by commas; as JSON: `[1, 2]` |
//!
//! Unverified: the forms for tuples, objects and containers, which do not occur in any known list.

use worldwire_core::json::{Json, expected};
use worldwire_core::{Error, Limits, Result};

use super::json::{build, item};
use super::parse::{self, Parsed};
use super::value::Object;
use super::visitor::Slot;
use crate::schema::classes::{Class, Classes, Property, PropertyKind, Tuple};

/// A property's default in a type list.
pub(super) enum DefaultValue<'c> {
    Value(Parsed),
    Values(Vec<Parsed>),
    Null,
    /// An object of this class, with its defaults.
    Class(&'c Class),
    /// A value from JSON, with its contents.
    Built(Object),
}

impl Classes {
    /// The problem with a property's default, if it does not fit the property. In that case,
    /// [`Object::complete`] uses 0, empty or null.
    #[must_use]
    pub fn default_error(&self, property: &Property) -> Option<Error> {
        given(self, property).err()
    }
}

/// The default of a property; `None` if the list has none.
///
/// # Errors
/// `Value` if the default does not fit the property.
pub(super) fn given<'c>(
    classes: &'c Classes,
    property: &'c Property,
) -> Result<Option<DefaultValue<'c>>> {
    let text = property.choices.as_ref().and_then(|choices| choices.default.as_deref());
    let Some(text) = text else { return Ok(None) };
    let trimmed = text.trim();
    let has_parts = property.is_list()
        || matches!(property.kind(), PropertyKind::Tuple(_) | PropertyKind::Object);
    if has_parts && trimmed.starts_with(['{', '[']) {
        return built(classes, property, trimmed).map(DefaultValue::Built).map(Some);
    }
    Ok(Some(match property.kind() {
        _ if property.is_list() && matches!(trimmed, "" | "null") => {
            DefaultValue::Values(Vec::new())
        }
        PropertyKind::Object if property.is_list() => {
            return Err(Error::value("a list of objects in JSON", format!("\"{trimmed}\"")));
        }
        PropertyKind::Object => object(classes, property, trimmed)?,
        _ if property.is_list() => DefaultValue::Values(elements(property, trimmed)?),
        _ => DefaultValue::Value(value(property, text)?),
    }))
}

/// Reads a single value. The names of options are accepted in every spelling.
fn value(property: &Property, text: &str) -> Result<Parsed> {
    let named = || {
        let number = property.choices.as_ref()?.parse(text.trim())?;
        parse::number(property.kind(), &number.into()).ok()?
    };
    parse::text(property, text).or_else(|error| named().map(Parsed::Leaf).ok_or(error))
}

/// Reads a default in JSON.
fn built(classes: &Classes, property: &Property, json: &str) -> Result<Object> {
    let limits = &Limits::DEFAULT;
    let json = worldwire_core::json::parse(json);
    let json: Json = json.map_err(|error| Error::invalid(format!("invalid JSON: {error}")))?;
    build(classes, &item(&json, limits)?, Slot::Property(property), true, limits)
}

/// Reads a default that is the name of a class.
fn object<'c>(classes: &'c Classes, property: &Property, name: &str) -> Result<DefaultValue<'c>> {
    if matches!(name, "" | "0" | "NULL" | "null") {
        return Ok(DefaultValue::Null);
    }
    let class = classes.find(name).ok_or_else(|| {
        let wanted = "the name of a class".to_owned();
        crate::suggest(expected(wanted, &name.into()), classes.nearest(name))
    })?;
    match property.base().and_then(|index| classes.get(index)) {
        Some(base) if !classes.is_a(class, base) => Err(Error::value(
            format!("{} or a class derived from it", base.name),
            class.name.to_string(),
        )),
        _ => Ok(DefaultValue::Class(class)),
    }
}

/// Reads the elements of a container. Tuples contain commas themselves.
fn elements(property: &Property, text: &str) -> Result<Vec<Parsed>> {
    let size = match property.kind() {
        // A colour is a single number.
        PropertyKind::Tuple(tuple) if tuple != Tuple::Color => tuple.count(),
        _ => 1,
    };
    let words: Vec<&str> = text.split(',').collect();
    words.chunks(size).map(|words| value(property, &words.join(","))).collect()
}
