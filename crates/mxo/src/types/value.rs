//! Decodes and encodes property values.

use std::borrow::Cow;

use worldwire_core::{Error, Result};

use super::{PropertyType, text};

/// A decoded property value.
///
/// Sections keep values as bytes, so details that the type cannot represent are not lost. Use this
/// type to interpret or set values.
///
/// ```
/// use worldwire_mxo::types::{PropertyType, Value};
/// let state = PropertyType::EventId;
/// assert_eq!(state.read(&[0x38, 8, 0, 0]), Some(Value::Unsigned(0x838)));
/// assert_eq!(state.write(&Value::Unsigned(0x834))?, [0x34, 8, 0, 0]);
/// # Ok::<(), worldwire_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'d> {
    /// `LTVector3d`: x, y, z.
    Vector3d([f64; 3]),
    /// `LTVector3f`: x, y, z.
    Vector3f([f32; 3]),
    /// `LTQuaternion`: x, y, z, w.
    Quaternion([f32; 4]),
    /// `uint8`, `uint16`, `uint32`, `REZ_ID`, `MissionKey`, `EventID`, `Organization::MissionOrg`,
    /// and a `bool` that is neither 0 nor 1.
    Unsigned(u32),
    /// `int16`.
    Signed(i16),
    /// `bool`.
    Bool(bool),
    /// `float32`.
    Float(f32),
    /// `string32` and `string64`, up to the first zero byte.
    Text(String),
    /// All other types.
    Bytes(Cow<'d, [u8]>),
}

impl PropertyType {
    /// Decodes a value; `None` if the length does not match the type.
    #[must_use]
    pub fn read(self, bytes: &[u8]) -> Option<Value<'_>> {
        if bytes.len() != usize::from(self.size()) {
            return None;
        }
        Some(match self {
            Self::Vector3d => Value::Vector3d(doubles(bytes)),
            Self::Vector3f => Value::Vector3f(singles(bytes)),
            Self::Quaternion => Value::Quaternion(singles(bytes)),
            Self::RezId | Self::MissionKey | Self::EventId | Self::Uint32 => {
                Value::Unsigned(u32::from_le_bytes(*bytes.first_chunk()?))
            }
            Self::MissionOrg | Self::Uint8 => Value::Unsigned(u32::from(*bytes.first()?)),
            Self::Bool => match *bytes.first()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                other => Value::Unsigned(u32::from(other)),
            },
            Self::Int16 => Value::Signed(i16::from_le_bytes(*bytes.first_chunk()?)),
            Self::Uint16 => Value::Unsigned(u32::from(u16::from_le_bytes(*bytes.first_chunk()?))),
            Self::Float32 => Value::Float(f32::from_le_bytes(*bytes.first_chunk()?)),
            Self::String32 | Self::String64 => Value::Text(text::decode(text::split(bytes).0)),
            Self::Rsi | Self::Locator | Self::Raw(_) => Value::Bytes(Cow::Borrowed(bytes)),
        })
    }

    /// Encodes a value to exactly the type's size.
    pub fn write(self, value: &Value<'_>) -> Result<Vec<u8>> {
        let wrong = || Error::value(self.wanted(), format!("{value:?}"));
        Ok(match (self, value) {
            (Self::Vector3d, Value::Vector3d(parts)) => {
                parts.iter().flat_map(|part| part.to_le_bytes()).collect()
            }
            (Self::Vector3f, Value::Vector3f(parts)) => {
                parts.iter().flat_map(|part| part.to_le_bytes()).collect()
            }
            (Self::Quaternion, Value::Quaternion(parts)) => {
                parts.iter().flat_map(|part| part.to_le_bytes()).collect()
            }
            (
                Self::RezId | Self::MissionKey | Self::EventId | Self::Uint32,
                Value::Unsigned(number),
            ) => number.to_le_bytes().into(),
            (Self::MissionOrg | Self::Uint8 | Self::Bool, Value::Unsigned(number)) => {
                vec![u8::try_from(*number).map_err(|_| wrong())?]
            }
            (Self::Bool, Value::Bool(value)) => vec![u8::from(*value)],
            (Self::Int16, Value::Signed(number)) => number.to_le_bytes().into(),
            (Self::Uint16, Value::Unsigned(number)) => {
                u16::try_from(*number).map_err(|_| wrong())?.to_le_bytes().into()
            }
            (Self::Float32, Value::Float(number)) => number.to_le_bytes().into(),
            (Self::String32 | Self::String64, Value::Text(value)) => self.padded(value)?,
            (_, Value::Bytes(bytes)) if bytes.len() == usize::from(self.size()) => bytes.to_vec(),
            _ => return Err(wrong()),
        })
    }

    /// Encodes text, padded with zeros.
    ///
    /// # Errors
    /// A value error for text that is too long, or contains a zero byte or a character that is not
    /// in Windows-1252.
    pub(super) fn padded(self, value: &str) -> Result<Vec<u8>> {
        let size = usize::from(self.size());
        let mut bytes = windows_1252(value)?;
        if bytes.contains(&0) {
            return Err(Error::value("text without NUL characters", format!("{value:?}")));
        }
        if bytes.len() > size {
            let found = format!("{} characters", bytes.len());
            return Err(Error::value(format!("at most {size} characters"), found));
        }
        bytes.resize(size, 0);
        Ok(bytes)
    }
}

/// Encodes text.
pub(super) fn windows_1252(value: &str) -> Result<Vec<u8>> {
    text::encode(value).ok_or_else(|| Error::value("Windows-1252 characters", format!("{value:?}")))
}

fn doubles<const N: usize>(bytes: &[u8]) -> [f64; N] {
    let mut parts = [0.0; N];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks().0) {
        *part = f64::from_le_bytes(*bytes);
    }
    parts
}

/// The numbers in the bytes of a vector.
pub(crate) fn singles<const N: usize>(bytes: &[u8]) -> [f32; N] {
    let mut parts = [0.0; N];
    for (part, bytes) in parts.iter_mut().zip(bytes.as_chunks().0) {
        *part = f32::from_le_bytes(*bytes);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::Sampler;

    #[test]
    fn decoded_values_encode_to_the_same_bytes() {
        let mut sampler = Sampler::new(1);
        let raws = [1, 2, 18, 255].into_iter().filter_map(PropertyType::raw);
        for kind in PropertyType::NAMED.into_iter().chain(raws) {
            for _ in 0..200 {
                let mut bytes = sampler.bytes(kind.size().into());
                if kind.is_text() {
                    // A decoded text does not contain the bytes after its end.
                    let end = text::split(&bytes).0.len();
                    bytes[end..].fill(0);
                }
                let value = kind.read(&bytes).unwrap();
                assert_eq!(kind.write(&value).unwrap(), bytes, "{kind}: {value:?}");
            }
            assert_eq!(kind.read(&vec![0; usize::from(kind.size()) + 1]), None);
        }
    }

    #[test]
    fn values_of_other_types_are_refused() {
        let error = PropertyType::Uint8.write(&Value::Unsigned(256)).unwrap_err();
        assert_eq!(error.to_string(), "wanted a whole number from 0 to 255, found Unsigned(256)");
        let long = "x".repeat(33);
        let error = PropertyType::String32.write(&Value::Text(long)).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 32 characters, found 33 characters");
        assert!(PropertyType::String32.write(&Value::Text("日".into())).is_err());
        assert!(PropertyType::String32.write(&Value::Text("a\0b".into())).is_err());
        assert!(PropertyType::Float32.write(&Value::Bytes(vec![1, 2, 3].into())).is_err());
    }
}
