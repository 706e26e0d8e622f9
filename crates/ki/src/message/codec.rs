//! Decoding and encoding payloads according to their definitions.

use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::opener::Subject;
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Value, Writer, nearest};

use crate::schema::{FieldDef, Message};
use crate::types::{FieldType, FieldValue, Str};

use super::raw::MAX_PAYLOAD;

/// The name under which bytes after the last field are shown.
const TRAILING: &str = "_trailing";

/// The values of a message, in field order. Reuse it to avoid allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values<'d> {
    fields: Vec<FieldValue<'d>>,
    trailing: Cow<'d, [u8]>,
}

impl<'d> Values<'d> {
    /// An empty list of values.
    #[must_use]
    pub const fn new() -> Self {
        Self { fields: Vec::new(), trailing: Cow::Borrowed(&[]) }
    }

    /// Wraps values for encoding; [`Message::encode`] checks them.
    #[must_use]
    pub const fn of(fields: Vec<FieldValue<'d>>) -> Self {
        Self { fields, trailing: Cow::Borrowed(&[]) }
    }

    /// The values.
    #[must_use]
    pub fn fields(&self) -> &[FieldValue<'d>] {
        &self.fields
    }

    /// The values, for changing them.
    pub(crate) fn fields_mut(&mut self) -> &mut Vec<FieldValue<'d>> {
        &mut self.fields
    }

    /// The bytes after the last field, present if the sender's definition has more fields.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        &self.trailing
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> Values<'static> {
        let fields = self.fields.into_iter().map(FieldValue::into_owned).collect();
        Values { fields, trailing: Cow::Owned(self.trailing.into_owned()) }
    }
}

/// Decoding and encoding payloads.
impl Message {
    /// Decodes the fields from the current part. Bytes after them are kept as [`Values::trailing`]:
    /// a later revision may have appended a field.
    #[inline]
    pub fn decode<'d, 'n, T: Trace<'n>>(
        &'n self,
        reader: &mut Reader<'d, T>,
        values: &mut Values<'d>,
    ) -> Result<()> {
        values.fields.clear();
        values.trailing = Cow::Borrowed(&[]);
        values.fields.reserve(self.plan().len());
        if T::ON {
            reader.message(self.subject(), |reader| self.decode_shown(reader, values))?;
        } else {
            for (index, kind) in self.plan().iter().enumerate() {
                match FieldValue::decode(*kind, reader, "") {
                    Ok(value) => values.fields.push(value),
                    Err(error) => return Err(self.truncated_error(error, index)),
                }
            }
        }
        if reader.remaining() > 0 {
            let count = reader.remaining();
            values.trailing = Cow::Borrowed(reader.bytes(TRAILING, count)?);
        }
        Ok(())
    }

    /// Like [`Self::decode`], but shows values by name.
    fn decode_shown<'d, 'n, T: Trace<'n>>(
        &'n self,
        reader: &mut Reader<'d, T>,
        values: &mut Values<'d>,
    ) -> Result<()> {
        for (index, field) in self.fields().iter().enumerate() {
            let value = if let Some(names) = field.names() {
                let read = |reader: &mut Reader<'d, T>| {
                    // Shows the name; the number itself is not reported.
                    let bytes: [u8; 4] = reader.take_array()?;
                    FieldValue::decode(field.kind, &mut Reader::new(&bytes), "")
                        .map(FieldValue::into_owned)
                };
                reader.shown(&field.name, read, |value| match value {
                    FieldValue::Int(number) => Value::Enum(i64::from(*number), names),
                    FieldValue::Uint(number) => Value::Enum(i64::from(*number), names),
                    _ => Value::Null,
                })
            } else {
                FieldValue::decode(field.kind, reader, &field.name)
            };
            values.fields.push(value.map_err(|error| self.truncated_error(error, index))?);
        }
        Ok(())
    }

    /// Describes the message to an [opener](worldwire_core::opener).
    fn subject(&self) -> Subject<'_> {
        let number = u32::from(self.service) << 8 | u32::from(self.order);
        Subject { connection: "ki", number, name: &self.tag, sender: None }
    }

    #[cold]
    fn truncated_error(&self, error: Error, index: usize) -> Error {
        let fields = self.fields().get(index..).unwrap_or_default();
        let Some(first) = fields.first() else {
            return error;
        };
        let missing: Vec<&str> = fields.iter().take(4).map(|field| &*field.name).collect();
        let more = if fields.len() > missing.len() { ", ..." } else { "" };
        let hint = format!(
            "senders of an earlier revision omit the last fields: {}{more}",
            missing.join(", ")
        );
        // The payload is complete, so no more bytes can arrive.
        let named = error.path().next().is_some();
        let error = if named { error } else { error.inside(&first.name) }.closed();
        if error.found() == "0" { error.hint(hint) } else { error }
    }

    /// Encodes the fields, followed by the trailing bytes unchanged.
    ///
    /// # Errors
    /// `Value` if the number of values or the type of one is wrong; a limit error for strings or a
    /// payload that are too long. In each case, nothing is written.
    pub fn encode(&self, values: &Values<'_>, writer: &mut Writer) -> Result<()> {
        self.check(values)?;
        for (field, value) in self.fields().iter().zip(&values.fields) {
            value.encode(writer).map_err(|error| error.inside(&field.name))?;
        }
        writer.bytes(&values.trailing);
        Ok(())
    }

    /// Encodes the values to a payload.
    pub fn payload(&self, values: &Values<'_>) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(values, &mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Finds every reason why the values cannot be encoded, before anything is written.
    fn check(&self, values: &Values<'_>) -> Result<()> {
        if values.fields.len() != self.plan().len() {
            let wanted = format!("{} values", self.plan().len());
            return Err(
                Error::value(wanted, values.fields.len().to_string()).about(self.tag.to_string())
            );
        }
        let mut length = values.trailing.len();
        for (field, value) in self.fields().iter().zip(&values.fields) {
            if value.kind() != field.kind {
                let error = Error::value(field.kind.name(), value.kind().name());
                return Err(error.inside(&field.name));
            }
            length += value.measure().map_err(|error| error.inside(&field.name))?;
        }
        if length > MAX_PAYLOAD {
            let (max, asked) = (MAX_PAYLOAD as u64, length as u64);
            return Err(Error::limit("bytes of a payload", max, asked));
        }
        Ok(())
    }

    /// The default values of all fields.
    #[must_use]
    pub fn defaults(&self) -> Values<'static> {
        Values::of(self.fields().iter().map(|field| field.default.clone()).collect())
    }

    /// Reads the values from JSON. Missing fields have their defaults.
    ///
    /// # Errors
    /// `Value` if the JSON names an unknown field, or if a value has the wrong type or is out of
    /// range.
    pub fn from_json<'j>(&self, json: impl Into<Given<'j>>) -> Result<Values<'static>> {
        let json = json.into();
        let Json::Object(object) = json.json() else {
            return Err(json::expected("an object", &json));
        };
        let known = |name: &str| self.fields().iter().any(|field| &*field.name == name);
        if let Some(wrong) = object.keys().find(|name| *name != TRAILING && !known(name)) {
            let error = Error::value(format!("a field of {}", self.tag), format!("\"{wrong}\""));
            let near = nearest(wrong, self.fields().iter().map(|field| &*field.name));
            return Err(crate::suggest(error, near));
        }
        let mut values = Values::new();
        let subject = self.subject();
        for field in self.fields() {
            let Some(inner) = object.get(&field.name) else {
                values.fields.push(field.default.clone());
                continue;
            };
            let value = match field.kind {
                FieldType::Str => {
                    let inner = Given::of(json, subject).field(&field.name, inner);
                    Str::from_json(inner).map(|text| FieldValue::Str(text.into_owned()))
                }
                _ => value(field, inner),
            };
            values.fields.push(value.map_err(|error| error.inside(&field.name))?);
        }
        if let Some(json) = object.get(TRAILING) {
            values.trailing = json::bytes(json).map_err(|error| error.inside(TRAILING))?.into();
        }
        Ok(values)
    }

    /// Generates values for tests.
    pub fn sample(&self, sampler: &mut Sampler) -> Values<'static> {
        Values::of(self.plan().iter().map(|kind| FieldValue::sample(*kind, sampler)).collect())
    }
}

/// A value from JSON. For fields whose values have names, the name is accepted too.
fn value(field: &FieldDef, json: &Json) -> Result<FieldValue<'static>> {
    let names = field.names().filter(|_| json.is_string());
    let named = names.and_then(|names| names.number(json.as_str()?));
    let number = named.map(Json::from);
    FieldValue::from_json(field.kind, number.as_ref().unwrap_or(json)).map(FieldValue::into_owned)
}
