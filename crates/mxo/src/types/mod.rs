//! The types of properties, with their values as bytes, in traces and in JSON, and the field types
//! of other messages.
//!
//! | type | bytes | encoding | JSON |
//! | --- | --- | --- | --- |
//! | `LTVector3d` | 24 | three `f64`: x, y (height), z; 100 units are a metre | `{"x", "y", "z"}` |
//! | `LTVector3f` | 12 | three `f32`: x, y, z | `{"x", "y", "z"}` |
//! | `LTQuaternion` | 16 | four `f32`: x, y, z, w | `{"x", "y", "z", "w"}` |
//! | `REZ_ID` | 4 | `u32`, the ID of a resource | a number |
//! | `MissionKey` | 4 | `u32`; `0xffffffff` is none | a number |
//! | `EventID` | 4 | `u32`; for doors, `0x834` is open and `0x838` closed | a number |
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

mod field;
mod float;
mod json;
mod string;
pub mod text;
mod trace;
mod value;

use core::fmt;
use core::num::NonZeroU8;

pub(crate) use field::wiped;
pub use field::{Array, BigU16, Bytes16, List8, List16, Secret};
pub use string::{Padded, Remaining, Str, Terminated};
pub use value::Value;
pub(crate) use value::singles;

macro_rules! property_types {
    ($($kind:ident $name:literal $size:literal $about:literal $json:literal;)*) => {
        /// The type of a property: the size of its value, and its meaning.
        ///
        /// Names are the protocol's own where known. The layouts of the types named `LT...`,
        /// `REZ_ID`, `MissionKey`, `EventID` and `Organization::MissionOrg` are those that servers
        /// write and the client accepts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum PropertyType {
            $(#[doc = concat!("`", $name, "`", $about, ".")] $kind,)*
            /// `rawN`: N bytes of unknown meaning.
            Raw(NonZeroU8),
        }

        impl PropertyType {
            /// All types that have a name of their own.
            pub const NAMED: [Self; [$($size),*].len()] = [$(Self::$kind),*];

            /// The size of a value in bytes: 1 to 255. In updates of a client's own view, text is
            /// length-prefixed instead.
            #[must_use]
            pub const fn size(self) -> u8 {
                match self {
                    $(Self::$kind => $size,)*
                    Self::Raw(size) => size.get(),
                }
            }

            /// The name; `raw` for bytes of unknown meaning, to which
            /// [`Display`](fmt::Display) appends the size.
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                    Self::Raw(_) => "raw",
                }
            }

            /// The expected JSON value.
            const fn wanted(self) -> &'static str {
                match self {
                    $(Self::$kind => $json,)*
                    Self::Raw(_) => "bytes like {\"$hex\": \"00ff\"}",
                }
            }
        }
    };
}

// The variant, its name, its size in bytes, its meaning, and its JSON.
property_types! {
    Vector3d "LTVector3d" 24 ": three `f64`" "a vector like {\"x\": 0.0, \"y\": 0.0, \"z\": 0.0}";
    Vector3f "LTVector3f" 12 ": three `f32`" "a vector like {\"x\": 0.0, \"y\": 0.0, \"z\": 0.0}";
    Quaternion "LTQuaternion" 16 ": four `f32`"
        "a quaternion like {\"x\": 0.0, \"y\": 0.0, \"z\": 0.0, \"w\": 1.0}";
    RezId "REZ_ID" 4 ": a `u32`" "a whole number from 0 to 4294967295";
    MissionKey "MissionKey" 4 ": a `u32`; `0xffffffff` is none"
        "a whole number from 0 to 4294967295";
    EventId "EventID" 4 ": a `u32`" "a whole number from 0 to 4294967295";
    MissionOrg "Organization::MissionOrg" 1 ": a `u8`" "a whole number from 0 to 255";
    Uint8 "uint8" 1 "" "a whole number from 0 to 255";
    Bool "bool" 1 ": a `u8`" "true, false or a whole number from 0 to 255";
    Int16 "int16" 2 "" "a whole number from -32768 to 32767";
    Uint16 "uint16" 2 "" "a whole number from 0 to 65535";
    Uint32 "uint32" 4 "" "a whole number from 0 to 4294967295";
    Float32 "float32" 4 "" "a single-precision number";
    String32 "string32" 32 ": text in 32 bytes" "text or {\"$hex\": \"00ff\"}";
    String64 "string64" 64 ": text in 64 bytes" "text or {\"$hex\": \"00ff\"}";
    Rsi "RSI15" 15 ": a packed appearance" "bytes like {\"$hex\": \"00ff\"}";
    Locator "locator" 18 ": bytes of unknown meaning" "bytes like {\"$hex\": \"00ff\"}";
}

impl PropertyType {
    /// Bytes of unknown meaning; `None` for 0 or more than 255.
    #[must_use]
    pub fn raw(bytes: usize) -> Option<Self> {
        u8::try_from(bytes).ok().and_then(NonZeroU8::new).map(Self::Raw)
    }

    /// A type by name: `LTVector3d`, `raw18`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(digits) = name.strip_prefix("raw") {
            // Each has only one spelling: no sign, no leading zero.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            return Self::raw(digits.parse().ok()?).filter(|_| plain && !digits.starts_with('0'));
        }
        Self::NAMED.into_iter().find(|kind| kind.name() == name)
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
}

/// Writes the name as it appears in tables.
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
