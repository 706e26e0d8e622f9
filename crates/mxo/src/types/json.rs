//! Reads property values from JSON.

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Result};

use super::value::windows_1252;
use super::{PropertyType, Value, float};

impl PropertyType {
    /// Encodes a JSON value; the inverse of writing a traced [`decode`](Self::decode) as JSON.
    pub fn bytes_from_json(self, json: &Json) -> Result<Vec<u8>> {
        if let Json::Object(parts) = json
            && parts.contains_key("$hex")
        {
            return self.sized(json::bytes(json)?);
        }
        let wanted = self.wanted();
        let value = match self {
            Self::Vector3d => {
                let mut fields = FieldsOf::new(json)?;
                let mut part =
                    |name| fields.take(name).and_then(|json| inside(name, float::double(json)));
                let parts = [part("x")?, part("y")?, part("z")?];
                fields.end()?;
                Value::Vector3d(parts)
            }
            Self::Vector3f => Value::Vector3f(singles(json, ["x", "y", "z"])?),
            Self::Quaternion => Value::Quaternion(singles(json, ["x", "y", "z", "w"])?),
            Self::RezId | Self::MissionKey | Self::EventId | Self::Uint32 => {
                Value::Unsigned(json::integer(json, wanted)?)
            }
            Self::Uint16 => Value::Unsigned(json::integer::<u16>(json, wanted)?.into()),
            Self::MissionOrg | Self::Uint8 => {
                Value::Unsigned(json::integer::<u8>(json, wanted)?.into())
            }
            Self::Bool => match json {
                Json::Bool(value) => Value::Bool(*value),
                _ => Value::Unsigned(json::integer::<u8>(json, wanted)?.into()),
            },
            Self::Int16 => Value::Signed(json::integer(json, wanted)?),
            Self::Float32 => Value::Float(float::single(json)?),
            Self::String32 | Self::String64 => return self.text_from_json(json),
            Self::Rsi | Self::Locator | Self::Raw(_) => return Err(json::expected(wanted, json)),
        };
        self.write(&value)
    }

    /// Encodes length-prefixed text, without its length.
    pub fn counted_from_json(json: &Json) -> Result<Vec<u8>> {
        let bytes = unpadded(json)?;
        if bytes.len() > usize::from(u8::MAX) {
            let found = format!("{} characters", bytes.len());
            return Err(Error::value("at most 255 characters", found));
        }
        Ok(bytes)
    }

    fn text_from_json(self, json: &Json) -> Result<Vec<u8>> {
        let Json::Object(_) = json else {
            let text = json.as_str().ok_or_else(|| json::expected(self.wanted(), json))?;
            return self.padded(text);
        };
        let mut fields = FieldsOf::new(json)?;
        let mut bytes = fields.take("text").and_then(|text| inside("text", unpadded(text)))?;
        if bytes.contains(&0) {
            let error = Error::value("text without NUL characters", "a NUL character");
            return Err(error.inside("text"));
        }
        bytes.push(0);
        bytes.extend(fields.take("behind").and_then(|rest| inside("behind", json::bytes(rest)))?);
        fields.end()?;
        self.sized(bytes)
    }

    fn sized(self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let size = usize::from(self.size());
        if bytes.len() == size {
            return Ok(bytes);
        }
        let unit = if size == 1 { "byte" } else { "bytes" };
        Err(Error::value(format!("{size} {unit}"), bytes.len().to_string()))
    }
}

fn inside<V>(name: &str, outcome: Result<V>) -> Result<V> {
    outcome.map_err(|error| error.inside(name))
}

/// A text or its bytes.
fn unpadded(json: &Json) -> Result<Vec<u8>> {
    match json {
        Json::String(text) => windows_1252(text),
        _ => json::text(json, |_| Vec::new()),
    }
}

fn singles<const N: usize>(json: &Json, names: [&'static str; N]) -> Result<[f32; N]> {
    let mut fields = FieldsOf::new(json)?;
    let mut parts = [0.0; N];
    for (part, name) in parts.iter_mut().zip(names) {
        *part = fields.take(name).and_then(|json| inside(name, float::single(json)))?;
    }
    fields.end()?;
    Ok(parts)
}
