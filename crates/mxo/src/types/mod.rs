//! The types of properties, and their values as bytes, in traces and in JSON.
//!
//! | type | bytes | encoding | JSON |
//! | --- | --- | --- | --- |
//! | `LTVector3d` | 24 | three `f64`: x, y (height), z; 100 units are a metre | `{"x", "y", "z"}` |
//! | `LTVector3f` | 12 | three `f32`: x, y, z | `{"x", "y", "z"}` |
//! | `LTQuaternion` | 16 | four `f32`: x, y, z, w | `{"x", "y", "z", "w"}` |
//! | `REZ_ID` | 4 | `u32`, the ID of a resource | a number |
//! | `MissionKey` | 4 | `u32`; `0xffffffff` is none | a number |
//! | `EventID` | 4 | `u32`; of doors `0x834` is open and `0x838` closed | a number |
//! | `Organization::MissionOrg` | 1 | `u8` | a number |
//! | `uint8`, `uint16`, `uint32`, `int16` | 1, 2, 4, 2 | little-endian | a number |
//! | `bool` | 1 | 0 or 1 | `true`, `false`; any other byte is a number |
//! | `float32` | 4 | `f32` | a number |
//! | `string32`, `string64` | 32, 64 | Windows-1252 text and zeros | see [`text`] |
//! | `RSI15` | 15 | a character's packed appearance | bytes |
//! | `locator` | 18 | unknown | bytes |
//! | `raw1` to `raw255` | 1 to 255 | unknown | bytes |
//!
//! Every type also accepts its bytes: `{"$hex": "00ff"}`.

mod float;
mod json;
pub mod text;
mod trace;
mod value;

use core::fmt;
use core::num::NonZeroU8;

pub use value::Value;

/// The type of a property: the size of its value, and its meaning.
///
/// Names are the protocol's own where known. The layouts of the types named `LT...`, `REZ_ID`,
/// `MissionKey`, `EventID` and `Organization::MissionOrg` are those that servers write and the
/// client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PropertyType {
    /// `LTVector3d`: three `f64`.
    Vector3d,
    /// `LTVector3f`: three `f32`.
    Vector3f,
    /// `LTQuaternion`: four `f32`.
    Quaternion,
    /// `REZ_ID`: a `u32`.
    RezId,
    /// `MissionKey`: a `u32`; `0xffffffff` is none.
    MissionKey,
    /// `EventID`: a `u32`.
    EventId,
    /// `Organization::MissionOrg`: a `u8`.
    MissionOrg,
    /// `uint8`.
    Uint8,
    /// `bool`: a `u8`.
    Bool,
    /// `int16`.
    Int16,
    /// `uint16`.
    Uint16,
    /// `uint32`.
    Uint32,
    /// `float32`.
    Float32,
    /// `string32`: text in 32 bytes.
    String32,
    /// `string64`: text in 64 bytes.
    String64,
    /// `RSI15`: a packed appearance, 15 bytes.
    Rsi,
    /// `locator`: 18 bytes of unknown meaning.
    Locator,
    /// `rawN`: N bytes of unknown meaning.
    Raw(NonZeroU8),
}

impl PropertyType {
    /// All types with their own name.
    pub const NAMED: [Self; 17] = [
        Self::Vector3d,
        Self::Vector3f,
        Self::Quaternion,
        Self::RezId,
        Self::MissionKey,
        Self::EventId,
        Self::MissionOrg,
        Self::Uint8,
        Self::Bool,
        Self::Int16,
        Self::Uint16,
        Self::Uint32,
        Self::Float32,
        Self::String32,
        Self::String64,
        Self::Rsi,
        Self::Locator,
    ];

    /// Bytes of unknown meaning; `None` for 0 or more than 255.
    #[must_use]
    pub fn raw(bytes: usize) -> Option<Self> {
        u8::try_from(bytes).ok().and_then(NonZeroU8::new).map(Self::Raw)
    }

    /// A type by name: `LTVector3d`, `raw18`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(digits) = name.strip_prefix("raw") {
            // There is one spelling for each: no sign, no leading zero.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            return Self::raw(digits.parse().ok()?).filter(|_| plain && !digits.starts_with('0'));
        }
        Self::NAMED.into_iter().find(|kind| kind.name() == name)
    }

    /// The size of a value in bytes: 1 to 255. In updates of the own view, text is length-prefixed
    /// instead.
    #[must_use]
    pub const fn size(self) -> u8 {
        match self {
            Self::MissionOrg | Self::Uint8 | Self::Bool => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::RezId | Self::MissionKey | Self::EventId | Self::Uint32 | Self::Float32 => 4,
            Self::Vector3f => 12,
            Self::Rsi => 15,
            Self::Quaternion => 16,
            Self::Locator => 18,
            Self::Vector3d => 24,
            Self::String32 => 32,
            Self::String64 => 64,
            Self::Raw(size) => size.get(),
        }
    }

    /// Whether it is a text type.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self, Self::String32 | Self::String64)
    }

    /// Whether only its size is known.
    #[must_use]
    pub const fn is_raw(self) -> bool {
        matches!(self, Self::Raw(_))
    }

    /// The name; `raw` for bytes of unknown meaning, to which [`Display`](fmt::Display) appends the
    /// size.
    const fn name(self) -> &'static str {
        match self {
            Self::Vector3d => "LTVector3d",
            Self::Vector3f => "LTVector3f",
            Self::Quaternion => "LTQuaternion",
            Self::RezId => "REZ_ID",
            Self::MissionKey => "MissionKey",
            Self::EventId => "EventID",
            Self::MissionOrg => "Organization::MissionOrg",
            Self::Uint8 => "uint8",
            Self::Bool => "bool",
            Self::Int16 => "int16",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Float32 => "float32",
            Self::String32 => "string32",
            Self::String64 => "string64",
            Self::Rsi => "RSI15",
            Self::Locator => "locator",
            Self::Raw(_) => "raw",
        }
    }

    /// The expected JSON value.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Vector3d | Self::Vector3f => "a vector like {\"x\": 0.0, \"y\": 0.0, \"z\": 0.0}",
            Self::Quaternion => {
                "a quaternion like {\"x\": 0.0, \"y\": 0.0, \"z\": 0.0, \"w\": 1.0}"
            }
            Self::MissionOrg | Self::Uint8 => "a whole number from 0 to 255",
            Self::Bool => "true, false or a whole number from 0 to 255",
            Self::Int16 => "a whole number from -32768 to 32767",
            Self::Uint16 => "a whole number from 0 to 65535",
            Self::RezId | Self::MissionKey | Self::EventId | Self::Uint32 => {
                "a whole number from 0 to 4294967295"
            }
            Self::Float32 => "a single-precision number",
            Self::String32 | Self::String64 => "a text or {\"$hex\": \"00ff\"}",
            Self::Rsi | Self::Locator | Self::Raw(_) => "bytes like {\"$hex\": \"00ff\"}",
        }
    }
}

/// Writes the name as tables spell it.
impl fmt::Display for PropertyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Raw(size) => write!(f, "{size}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_identify_their_types() {
        let raws = (1..=255).filter_map(PropertyType::raw);
        for kind in PropertyType::NAMED.into_iter().chain(raws) {
            assert_eq!(PropertyType::parse(&kind.to_string()), Some(kind));
        }
        for wrong in ["raw", "raw0", "raw01", "raw+1", "raw256", "UINT8", "", "string"] {
            assert_eq!(PropertyType::parse(wrong), None, "{wrong}");
        }
    }
}
