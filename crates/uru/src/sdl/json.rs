//! Converts JSON to records.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Field, Result, list_from_json};

use super::elements::{Elements, MAX_ELEMENTS};
use super::record::{
    MAX_DEPTH, NestedElement, NestedVariable, RecordFlags, SimpleFlags, SimpleVariable,
    StateRecord, ValueHeader,
};
use crate::schema::{Shape, Variable, VariableIndex};
use crate::types::{SafeString, UnifiedTime};

impl StateRecord<'static> {
    /// Takes from a JSON object the fields that [`StateRecord::decode_fields`](StateRecord) traces.
    pub(super) fn from_fields(
        shape: Shape<'_>,
        fields: &mut FieldsOf<'_>,
        depth: u32,
    ) -> Result<Self> {
        if depth > MAX_DEPTH {
            let limit = u64::from(MAX_DEPTH);
            return Err(Error::limit("nested records", limit, limit + 1));
        }
        let flags = match fields.given_optional("recordFlags") {
            Some(flags) => {
                RecordFlags::from_json(flags).map_err(|error| error.inside("recordFlags"))?
            }
            None => RecordFlags::default(),
        };
        let mut record = Self { flags, ..Self::default() };
        let variables = fields.given("variables")?;
        let Json::Object(entries) = variables.json() else {
            return Err(json::expected("an object", &variables).inside("variables"));
        };
        for (name, json) in entries {
            record
                .add(shape, name, variables.at(json), depth)
                .map_err(|error| error.inside(name).inside("variables"))?;
        }
        record.simple.sort_by_key(|entry| entry.index);
        record.nested.sort_by_key(|entry| entry.index);
        if !record.simple.is_sorted_by(|one, next| one.index < next.index)
            || !record.nested.is_sorted_by(|one, next| one.index < next.index)
        {
            let error = Error::value("each variable once", "the same variable in two spellings");
            return Err(error.inside("variables"));
        }
        if let Some(order) = fields.given_optional("simpleOrder") {
            arrange(&mut record.simple, order, |entry| entry.index)
                .map_err(|error| error.inside("simpleOrder"))?;
        }
        if let Some(order) = fields.given_optional("nestedOrder") {
            arrange(&mut record.nested, order, |entry| entry.index)
                .map_err(|error| error.inside("nestedOrder"))?;
        }
        Ok(record)
    }

    fn add(&mut self, shape: Shape<'_>, name: &str, json: Given<'_>, depth: u32) -> Result<()> {
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        match shape.index_of(name) {
            Some(VariableIndex::Simple(at)) => {
                let variable = shape.simple(at).ok_or_else(|| no_variable(shape, name))?;
                self.simple.push(SimpleVariable::from_json(variable, index(at), json)?);
            }
            Some(VariableIndex::Nested(at)) => {
                let nested = shape.nested(at).ok_or_else(|| no_variable(shape, name))?;
                self.nested.push(NestedVariable::from_json(nested, index(at), json, depth)?);
            }
            None => return Err(no_variable(shape, name)),
        }
        Ok(())
    }
}

fn no_variable(shape: Shape<'_>, name: &str) -> Error {
    let wanted = format!("a variable of {}", shape.definition().name());
    let error = Error::value(wanted, format!("{name:?}"));
    match shape.nearest(name) {
        Some(near) => error.hint(format!("did you mean {near:?}?")),
        None => error,
    }
}

/// Puts entries, which are in ascending order, into the given order.
fn arrange<E>(list: &mut [E], order: Given<'_>, index: impl Fn(&E) -> u32) -> Result<()> {
    let order = list_from_json::<u32>(order)?;
    let mut places: Vec<(u32, usize)> =
        order.iter().enumerate().map(|(place, index)| (*index, place)).collect();
    places.sort_unstable();
    let same = places.iter().map(|(index, _)| *index).eq(list.iter().map(index));
    if !same {
        return Err(Error::value(
            "the index of each given variable exactly once",
            format!("{order:?}"),
        ));
    }
    // The target position of each entry, by ascending index; entries are then moved cycle by cycle.
    let mut goals: Vec<usize> = places.into_iter().map(|(_, place)| place).collect();
    for at in 0..list.len() {
        while let Some(goal) = goals.get(at).copied().filter(|goal| *goal != at) {
            list.swap(at, goal);
            goals.swap(at, goal);
        }
    }
    Ok(())
}

fn head(fields: &mut FieldsOf<'_>) -> Result<ValueHeader<'static>> {
    let mut byte = |name: &'static str| match fields.take_optional(name) {
        Some(json) => json::integer::<u8>(json, "a whole number from 0 to 255")
            .map_err(|error| error.inside(name)),
        None => Ok(0),
    };
    let (flags, notification) = (byte("head")?, byte("notification")?);
    let hint = fields.given_optional("hint").map(SafeString::from_json).transpose();
    let hint = hint.map_err(|error| error.inside("hint"))?;
    if hint.is_none() && notification != 0 {
        let found = notification.to_string();
        return Err(Error::value("0, because there is no hint", found).inside("notification"));
    }
    Ok(ValueHeader { flags, notification, hint })
}

impl SimpleVariable<'static> {
    fn from_json(variable: &Variable, index: u32, json: Given<'_>) -> Result<Self> {
        let Some(simple) = variable.simple_type() else {
            return Err(json::expected("a nested variable", &json));
        };
        let mut fields = FieldsOf::new(json)?;
        let head = head(&mut fields)?;
        let flags: SimpleFlags = fields.value("flags")?;
        let time = match flags.contains(SimpleFlags::HasTimeStamp) {
            true => Some(fields.value::<UnifiedTime>("time")?),
            false => None,
        };
        let value = match flags.contains(SimpleFlags::SameAsDefault) {
            true => None,
            false => {
                let value = Elements::from_json(variable, simple, fields.given("value")?);
                Some(value.map_err(|error| error.inside("value"))?)
            }
        };
        fields.end()?;
        Ok(Self { index, head, flags, time, value })
    }
}

impl NestedVariable<'static> {
    fn from_json(
        (variable, inner): (&Variable, Shape<'_>),
        index: u32,
        json: Given<'_>,
        depth: u32,
    ) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let head = head(&mut fields)?;
        let flags = match fields.take_optional("flags") {
            Some(json) => json::integer(json, "a whole number from 0 to 255")
                .map_err(|error| error.inside("flags"))?,
            None => 0,
        };
        let length = match variable.count() {
            Some(count) => count,
            None => fields.value("length")?,
        };
        if length > MAX_ELEMENTS {
            let (max, asked) = (MAX_ELEMENTS.into(), length.into());
            return Err(Error::limit("elements of a list", max, asked).inside("length"));
        }
        let given = fields.given("elements")?;
        let Json::Array(items) = given.json() else {
            return Err(json::expected("a list", &given).inside("elements"));
        };
        let mut elements = Vec::new();
        for (place, item) in items.iter().enumerate() {
            let element = element(inner, place, given.at(item), depth);
            elements.push(element.map_err(|error| error.inside_item(place).inside("elements"))?);
        }
        fields.end()?;
        Ok(Self { index, head, flags, length, elements })
    }
}

fn element(
    inner: Shape<'_>,
    place: usize,
    json: Given<'_>,
    depth: u32,
) -> Result<NestedElement<'static>> {
    let mut fields = FieldsOf::new(json)?;
    let index = match fields.take_optional("index") {
        Some(json) => json::integer(json, "a whole number from 0 to 4294967295")
            .map_err(|error| error.inside("index"))?,
        None => u32::try_from(place).unwrap_or(u32::MAX),
    };
    let record = StateRecord::from_fields(inner, &mut fields, depth + 1)?;
    fields.end()?;
    Ok(NestedElement { index, record })
}
