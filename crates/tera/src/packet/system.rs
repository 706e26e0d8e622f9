//! System messages inside the text fields that carry them.

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Error, Form, Reader, Result, TreeBuilder, Value, nearest};

use super::Packets;
use crate::sysmsg::{SystemMessage, code};
use crate::types::Text;

/// The messages and fields that carry system messages.
const CARRIERS: [(&str, &str); 2] =
    [("S_SYSTEM_MESSAGE", "message"), ("S_SYSTEM_MESSAGE_LOOT_ITEM", "sysmsg")];

/// Adds the contents of a system message to its text: `system`, a record of `name` and `values`,
/// which are pairs of `key` and `value`.
impl<'n> Opener<'n> for Packets {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        // A text cut within a surrogate pair is shown as text only.
        carries(site) && bytes.starts_with(b"@\0") && Text::from_bytes(bytes).to_utf8().is_some()
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        let text = Text::from_bytes(reader.rest()).to_utf8().unwrap_or_default();
        let message = SystemMessage::parse_raw(&text).map_err(refused)?;
        reader.record("system", |reader| {
            match code(&message.name) {
                Some(code) => {
                    // The parts are contiguous, each preceded by `@` or a separator.
                    reader.take(2)?;
                    let start = reader.place();
                    reader.take(2 * message.name.len())?;
                    reader.leaf_from("name", start, Value::Enum(code.into(), &self.system));
                }
                None => part(reader, "name", &message.name)?,
            }
            reader.list("values", |reader| {
                let pairs = message.pairs.iter().map(|(key, value)| (key, Some(value)));
                let odd = message.odd.iter().map(|key| (key, None));
                for (index, (key, value)) in pairs.chain(odd).enumerate() {
                    reader.item(index, |reader| {
                        reader.record("", |reader| {
                            part(reader, "key", key)?;
                            value.map_or(Ok(()), |value| part(reader, "value", value))
                        })
                    })?;
                }
                Ok(())
            })
        })
    }
}

impl Closer for Packets {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let mut parts = FieldsOf::new(json)?;
        let before = parts.take_optional("bytes");
        let system = parts.take_optional("system");
        parts.end()?;
        let Some(system) = system else { return Ok(None) };
        if let Some(other) = before.filter(|before| !before.is_string()) {
            return Err(json::expected("a string", other).inside("bytes"));
        }
        if !carries(site) {
            let wanted = "a field that can hold a system message";
            return Err(Error::value(wanted, site.field.to_owned()));
        }
        let message = from_json(system).map_err(|error| error.inside("system"))?;
        let is_unchanged = before.and_then(Json::as_str).is_some_and(|before| {
            let before = SystemMessage::parse_raw(before);
            before.is_ok_and(|mut before| {
                before.name = self.shown(&before.name).into();
                before
                    == SystemMessage { name: self.shown(&message.name).into(), ..message.clone() }
            })
        });
        if is_unchanged {
            return Ok(None);
        }
        let name = self.written(&message.name);
        let name = name.map_err(|error| error.inside("name").inside("system"))?;
        let text = SystemMessage { name: name.into(), ..message }.format_raw();
        let text = text.map_err(|error| refused(error).inside("system"))?;
        Ok(Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()))
    }
}

impl Packets {
    /// The displayed form of a name in the text.
    fn shown(&self, name: &str) -> String {
        let code = code(name);
        let known = code.and_then(|code| self.system.name(code.into()));
        known
            .map(str::to_owned)
            .or_else(|| code.map(|code| code.to_string()))
            .unwrap_or_else(|| name.into())
    }

    /// The form that a displayed name has in the text.
    fn written(&self, name: &str) -> Result<String> {
        if let Some(number) = self.system.number(name) {
            return Ok(number.to_string());
        }
        if name.contains(':') || code(name).is_some() {
            return Ok(name.to_owned());
        }
        let wanted = "a number, or a name in the system message map";
        let error = Error::value(wanted, format!("\"{name}\""));
        Err(match nearest(name, self.system.iter().map(|(_, name)| name)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error,
        })
    }
}

fn carries(site: Site<'_>) -> bool {
    site.message.connection == "tera" && CARRIERS.contains(&(site.message.name, site.field))
}

/// Reads a part of the text after its one-unit prefix.
fn part<'n>(reader: &mut Reader<'_, TreeBuilder<'n>>, name: &'n str, text: &str) -> Result<()> {
    reader.take(2)?;
    reader.span(name, 2 * text.encode_utf16().count(), Form::Utf16).map(drop)
}

/// Parses what [`Opener::open`] prints, keeping the name as it is.
fn from_json(json: &Json) -> Result<SystemMessage<'static>> {
    let mut parts = FieldsOf::new(json)?;
    let name = match parts.take("name")? {
        Json::String(name) => name.to_string(),
        number => json::integer::<u32>(number, "a name or a number")
            .map_err(|error| error.inside("name"))?
            .to_string(),
    };
    let values = parts.take_optional("values");
    parts.end()?;
    let values = match values {
        None => &[][..],
        Some(Json::Array(values)) => values,
        Some(other) => return Err(json::expected("an array", other).inside("values")),
    };
    let mut message = SystemMessage { name: name.into(), ..SystemMessage::default() };
    for (index, pair) in values.iter().enumerate() {
        let is_last = index + 1 == values.len();
        let (key, value) =
            key_and_value(pair).map_err(|error| error.inside_item(index).inside("values"))?;
        match value {
            Some(value) => message.pairs.push((key.into(), value.into())),
            None if is_last => message.odd = Some(key.into()),
            None => {
                let error = json::expected("an object of key and value", pair);
                return Err(error.inside_item(index).inside("values"));
            }
        }
    }
    Ok(message)
}

/// A key and its value; the last key of a message may have no value.
fn key_and_value(json: &Json) -> Result<(String, Option<String>)> {
    let mut parts = FieldsOf::new(json)?;
    let text = |json: &Json, name: &str| match json {
        Json::String(text) => Ok(text.to_string()),
        other => Err(json::expected("a string", other).inside(name)),
    };
    let key = text(parts.take("key")?, "key")?;
    let value = parts.take_optional("value").map(|value| text(value, "value")).transpose()?;
    parts.end()?;
    Ok((key, value))
}

fn refused(error: crate::sysmsg::SystemMessageError) -> Error {
    Error::value("a system message", error.to_string())
}
