//! The elements of a simple variable.

use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json, Style, write_node};
use worldwire_core::{Error, Reader, Result, Sampler, Trace, Tree, Value, Writer};

use super::scalar::{self, Scalar};
use crate::schema::{Type, Variable};

/// The maximum number of elements of a list.
pub const MAX_ELEMENTS: u32 = 9_998;

/// The elements of a simple variable as encoded in a blob. They are converted only when accessed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Elements<'d> {
    count: u32,
    bytes: Cow<'d, [u8]>,
}

impl<'d> Elements<'d> {
    /// Encodes elements of one type.
    pub fn new(simple: Type, scalars: &[Scalar<'_>]) -> Result<Self> {
        let count = u32::try_from(scalars.len()).unwrap_or(u32::MAX);
        check(count)?;
        let mut writer = Writer::new();
        for (index, scalar) in scalars.iter().enumerate() {
            if !scalar.is_of(simple) {
                let error =
                    Error::value(format!("an element of type {simple}"), format!("{scalar:?}"));
                return Err(error.inside_item(index));
            }
            scalar.encode(&mut writer).map_err(|error| error.inside_item(index))?;
        }
        Ok(Self { count, bytes: Cow::Owned(writer.into_bytes()) })
    }

    /// The default of a variable: an empty list, or the default value for each element.
    #[must_use]
    pub fn default_of(variable: &Variable) -> Elements<'static> {
        let count = variable.count().unwrap_or(0);
        let bytes = variable.default_element().repeat(count as usize);
        Elements { count, bytes: Cow::Owned(bytes) }
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all elements, without a count.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Iterates over the decoded elements. `simple` is the type they were encoded with.
    pub fn scalars(&self, simple: Type) -> impl Iterator<Item = Scalar<'_>> {
        let mut reader = Reader::new(&self.bytes);
        let mut left = self.count;
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            Scalar::decode(simple, &mut reader, "").ok()
        })
    }

    /// Wraps bytes that are known to hold `count` elements.
    pub(super) fn from_parts(count: u32, bytes: Vec<u8>) -> Self {
        Self { count, bytes: Cow::Owned(bytes) }
    }

    pub(super) fn into_owned(self) -> Elements<'static> {
        Elements { count: self.count, bytes: Cow::Owned(self.bytes.into_owned()) }
    }

    /// Reads the elements of a variable: a single value if the descriptor declares one element,
    /// otherwise a list, preceded by its count if the length is variable.
    pub(super) fn decode<'n, T: Trace<'n>>(
        variable: &'n Variable,
        simple: Type,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let start = reader.place_if_on();
        let count = match variable.count() {
            Some(count) => count,
            None => {
                let at = reader.position() as u64;
                let count = reader.take_array().map(u32::from_le_bytes);
                let count = count.map_err(|error| error.inside("value"))?;
                check(count).map_err(|error| error.at(at).inside("value"))?;
                count
            }
        };
        let before = reader.rest();
        match simple.size() {
            // Elements without bytes have no tree nodes of their own.
            Some(0) => {
                let shown = match variable.count() {
                    Some(_) => Value::Null,
                    None => Value::Unsigned(u64::from(count)),
                };
                reader.leaf_from("value", start, shown);
            }
            // If bytes are missing, reading the elements one by one finds the affected one.
            Some(size) if !T::ON && size * count as usize <= reader.remaining() => {
                reader.take(size * count as usize)?;
            }
            _ if variable.count() == Some(1) => {
                Scalar::decode(simple, reader, "value")?;
            }
            _ => reader.scope_from("value", Value::List, start, |reader| {
                for index in 0..count as usize {
                    reader.item(index, |reader| Scalar::decode(simple, reader, ""))?;
                }
                Ok(())
            })?,
        }
        let used = before.len() - reader.remaining();
        let bytes = before.get(..used).unwrap_or_default();
        Ok(Self { count, bytes: Cow::Borrowed(bytes) })
    }

    pub(super) fn encode(&self, variable: &Variable, writer: &mut Writer) -> Result<()> {
        match variable.count() {
            None => {
                check(self.count)?;
                writer.u32(self.count);
            }
            Some(count) if count != self.count => {
                return Err(Error::value(elements(count), self.count.to_string()));
            }
            Some(_) => {}
        }
        writer.bytes(&self.bytes);
        Ok(())
    }

    pub(super) fn from_json(variable: &Variable, simple: Type, json: Given<'_>) -> Result<Self> {
        let mut writer = Writer::new();
        let count = if simple.size() == Some(0) {
            match variable.count() {
                Some(count) => {
                    scalar::encode_json(simple, json, &mut writer)?;
                    count
                }
                None => json::integer(&json, "a whole number from 0 to 4294967295")?,
            }
        } else if variable.count() == Some(1) {
            scalar::encode_json(simple, json, &mut writer)?;
            1
        } else {
            let Json::Array(items) = json.json() else {
                return Err(json::expected("a list", &json));
            };
            let found = u32::try_from(items.len()).unwrap_or(u32::MAX);
            if let Some(count) = variable.count().filter(|count| *count != found) {
                return Err(Error::value(elements(count), found.to_string()));
            }
            for (index, item) in items.iter().enumerate() {
                scalar::encode_json(simple, json.at(item), &mut writer)
                    .map_err(|error| error.inside_item(index))?;
            }
            found
        };
        check(count)?;
        Ok(Self { count, bytes: Cow::Owned(writer.into_bytes()) })
    }

    /// Appends the elements in the JSON form of a blob.
    pub(super) fn write_json(&self, variable: &Variable, simple: Type, out: &mut String) {
        let counted = variable.count().is_none();
        let count = if counted { self.count.to_le_bytes().to_vec() } else { Vec::new() };
        let bytes = [&count, self.as_bytes()].concat();
        let mut reader = Reader::traced("value", &bytes, Tree::new());
        let read = Elements::decode(variable, simple, &mut reader).is_ok();
        let tree = reader.finish();
        match tree.roots().next().filter(|_| read) {
            Some(node) => write_node(node, Style::default(), out),
            None => out.push_str("null"),
        }
    }

    pub(super) fn sample(variable: &Variable, simple: Type, sampler: &mut Sampler) -> Self {
        let max = u64::from(MAX_ELEMENTS);
        let any = || u32::try_from(sampler.length(max)).unwrap_or(0);
        let count = variable.count().unwrap_or_else(any);
        let mut writer = Writer::new();
        for _ in 0..count {
            scalar::sample(simple, sampler, &mut writer);
        }
        Self { count, bytes: Cow::Owned(writer.into_bytes()) }
    }
}

/// `1 element`, `2 elements`.
pub(super) fn elements(count: u32) -> String {
    format!("{count} element{}", if count == 1 { "" } else { "s" })
}

fn check(count: u32) -> Result<()> {
    if count > MAX_ELEMENTS {
        return Err(Error::limit("elements of a list", MAX_ELEMENTS.into(), count.into()));
    }
    Ok(())
}
