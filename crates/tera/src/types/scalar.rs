//! The fixed-size types.

use crate::named::named;

named! {
    /// A fixed-size type, as named in definitions. All numbers are little-endian.
    ///
    /// | type | bytes | value |
    /// | --- | --- | --- |
    /// | `bool` | 1 | 0 is false, anything else true; written as 0 or 1 |
    /// | `byte` | 1 | unsigned |
    /// | `int16`, `int32`, `int64` | 2, 4, 8 | two's complement |
    /// | `uint16`, `uint32`, `uint64` | 2, 4, 8 | unsigned |
    /// | `float`, `double` | 4, 8 | IEEE 754 |
    /// | `angle` | 2 | see [`Angle`](super::Angle) |
    /// | `vec3` | 12 | x, y, z as `float` |
    /// | `vec3fa` | 12 | x, y, z as `float`, each a whole number of angle units |
    /// | `skillid`, `skillid32` | 8, 4 | see [`Skill`](super::Skill) |
    /// | `customize` | 8 | a character's appearance, one byte per feature |
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Scalar {
        Bool = "bool",
        Byte = "byte",
        Int16 = "int16",
        Uint16 = "uint16",
        Int32 = "int32",
        Uint32 = "uint32",
        Int64 = "int64",
        Uint64 = "uint64",
        Float = "float",
        Double = "double",
        Angle = "angle",
        Vec3 = "vec3",
        Vec3fa = "vec3fa",
        /// `skillid`, the 64-bit form.
        SkillId = "skillid",
        /// `skillid32`, and `skillid` in sets for patches before 74.
        SkillId32 = "skillid32",
        Customize = "customize",
    }
}

impl Scalar {
    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Its size in bytes.
    #[inline]
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::Byte => 1,
            Self::Int16 | Self::Uint16 | Self::Angle => 2,
            Self::Int32 | Self::Uint32 | Self::Float | Self::SkillId32 => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::SkillId | Self::Customize => 8,
            Self::Vec3 | Self::Vec3fa => 12,
        }
    }

    /// The valid values, for errors.
    #[must_use]
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Byte => "a whole number from 0 to 255",
            Self::Int16 => "a whole number from -32768 to 32767",
            Self::Uint16 => "a whole number from 0 to 65535",
            Self::Int32 => "a whole number from -2147483648 to 2147483647",
            Self::Uint32 => "a whole number from 0 to 4294967295",
            Self::Int64 => "a whole number from -9223372036854775808 to 9223372036854775807",
            Self::Uint64 => "a whole number from 0 to 18446744073709551615",
            Self::Float | Self::Double => "a number",
            Self::Angle => "an angle in radians",
            Self::Vec3 => "three numbers x, y and z",
            Self::Vec3fa => "three angles x, y and z in radians",
            Self::SkillId | Self::SkillId32 => "a skill: its id, or its parts",
            Self::Customize => "eight features, one byte each",
        }
    }
}

/// The names of the eight bytes of `customize`, in order.
pub const CUSTOMIZE: [&str; 8] =
    ["unk", "skinColor", "faceStyle", "faceDecal", "hairStyle", "hairColor", "voice", "tattoos"];
