//! Reading messages with the names from their definitions.

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Reader, Result, Trace, Value};

use super::codec::Values;
use super::raw::{HEAD_BYTES, RawMessage};
use crate::schema::{Message, Protocols};

impl<'d> RawMessage<'d> {
    /// Decodes a message in a frame's body into the current scope, as [`RawMessage::decode`] does.
    /// Shows `service` and `order` by name and, if there is a definition, the payload as `fields`.
    ///
    /// # Errors
    /// Fails as [`RawMessage::decode`] does, and if the payload does not match the definition.
    pub fn decode_named<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        is_first_of_large: bool,
        protocols: &'n Protocols,
    ) -> Result<Self> {
        // The definition must be known before the first node is created.
        let definition = match reader.rest() {
            [service, order, ..] => protocols.message(*service, *order),
            _ => None,
        };
        let Some(definition) = definition else {
            return Self::decode(reader, is_first_of_large);
        };
        let before = reader.rest();
        let plain = Self::decode(&mut Reader::within(before, reader.limits()), is_first_of_large)
            .map_err(|error| error.based(reader.position() as u64))?;
        let name = |number: u8, names| Value::Enum(i64::from(number), names);
        let named = |reader: &mut Reader<'d, T>, label, names| {
            reader.shown(label, |reader| reader.take_array(), |[number]| name(*number, names))
        };
        named(reader, "service", protocols.service_names())?;
        let orders = protocols.service(plain.service).map(|protocol| protocol.message_names());
        named(reader, "order", orders.unwrap_or_else(|| protocols.service_names()))?;
        let length = reader.u16("length")?;
        let count = plain.payload.len();
        if count + HEAD_BYTES != usize::from(length) {
            let place = reader.place_if_on();
            reader.leaf_from("isBoundByFrame", place, Value::Bool(true));
        }
        let mut values = Values::new();
        reader.record("fields", |reader| {
            reader.part(count, |reader| definition.decode(reader, &mut values))
        })?;
        Ok(plain)
    }

    /// Reads a message from JSON, as [`RawMessage::from_json`] does, or with names and `fields`.
    pub fn from_named_json<'j>(
        json: impl Into<Given<'j>>,
        protocols: &Protocols,
    ) -> Result<RawMessage<'static>> {
        let json = json.into();
        let mut fields = FieldsOf::new(json)?;
        if !fields.has("fields") {
            return Self::from_json(json.json());
        }
        let definition = named(&mut fields, protocols)?;
        fields.take_optional("length");
        let inner = fields.given("fields")?;
        fields.end()?;
        let payload = definition
            .from_json(inner)
            .and_then(|values| definition.payload(&values))
            .map_err(|error| error.inside("fields"))?;
        let Message { service, order, .. } = *definition;
        Ok(RawMessage { service, order, payload: payload.into() })
    }
}

/// The definition that the fields select: `service` and `order`, or `message`, which gives both.
fn named<'p>(fields: &mut FieldsOf<'_>, protocols: &'p Protocols) -> Result<&'p Message> {
    let word = |json: &Json| match json {
        Json::String(word) => Ok(word.to_string()),
        Json::Number(number) => Ok(number.to_string()),
        other => Err(json::expected("a name or a number", other)),
    };
    let (label, name) = if fields.has("message") {
        ("message", word(fields.take("message")?)?)
    } else {
        let service = word(fields.take("service")?).map_err(|error| error.inside("service"))?;
        let order = word(fields.take("order")?).map_err(|error| error.inside("order"))?;
        ("order", format!("{service}.{order}"))
    };
    protocols.message_named(&name).ok_or_else(|| {
        let error = Error::invalid(format!("unknown message \"{name}\""));
        crate::suggest(error, protocols.suggest(&name)).inside(label)
    })
}
