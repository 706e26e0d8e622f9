//! The types of simple variables.

use core::fmt;

use worldwire_core::nearest;

/// The type of a simple variable, and how its elements are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `INT`: `i32`.
    Int,
    /// `FLOAT`: `f32`.
    Float,
    /// `BOOL`: `u8`, 0 is false.
    Bool,
    /// `STRING32`: 32 bytes; the text ends at the first zero.
    String32,
    /// `PLKEY`: [`Uoid`](crate::types::Uoid), without the leading byte of a key.
    Key,
    /// `CREATABLE` or `MESSAGE`, an object of any class: `u16` class index; unless that is 0x8000,
    /// also `u32` count and bytes.
    Creatable,
    /// `DOUBLE`: `f64`.
    Double,
    /// `TIME`: [`UnifiedTime`](crate::types::UnifiedTime).
    Time,
    /// `BYTE`: `u8`.
    Byte,
    /// `SHORT`: `i16`.
    Short,
    /// `AGETIMEOFDAY`: nothing; clients compute the time of day.
    AgeTimeOfDay,
    /// `VECTOR3`, a direction: 3 `f32`.
    Vector3,
    /// `POINT3`, a position: 3 `f32`.
    Point3,
    /// `RGB`, a colour: 3 `f32`.
    Rgb,
    /// `RGBA`, a colour with opacity: 4 `f32`.
    Rgba,
    /// `QUATERNION` (any word that begins with `QUAT`), a rotation: 4 `f32`.
    Quaternion,
    /// `RGB8`, a colour: 3 `u8`.
    Rgb8,
    /// `RGBA8`, a colour with opacity: 4 `u8`.
    Rgba8,
}

static NAMES: [(&str, Type); 20] = [
    ("INT", Type::Int),
    ("FLOAT", Type::Float),
    ("BOOL", Type::Bool),
    ("STRING32", Type::String32),
    ("PLKEY", Type::Key),
    ("CREATABLE", Type::Creatable),
    ("MESSAGE", Type::Creatable),
    ("DOUBLE", Type::Double),
    ("TIME", Type::Time),
    ("BYTE", Type::Byte),
    ("SHORT", Type::Short),
    ("AGETIMEOFDAY", Type::AgeTimeOfDay),
    ("VECTOR3", Type::Vector3),
    ("POINT3", Type::Point3),
    ("RGB", Type::Rgb),
    ("RGBA", Type::Rgba),
    ("QUATERNION", Type::Quaternion),
    ("QUAT", Type::Quaternion),
    ("RGB8", Type::Rgb8),
    ("RGBA8", Type::Rgba8),
];

impl Type {
    /// Finds a type by its name, ignoring case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        let rotation = || word.get(..4).filter(|head| head.eq_ignore_ascii_case("QUAT"));
        known.map(|(_, kind)| *kind).or_else(|| rotation().map(|_| Self::Quaternion))
    }

    /// The usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The size of an element in bytes; `None` if it varies.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        Some(match self {
            Self::AgeTimeOfDay => 0,
            Self::Bool | Self::Byte => 1,
            Self::Short => 2,
            Self::Rgb8 => 3,
            Self::Int | Self::Float | Self::Rgba8 => 4,
            Self::Double | Self::Time => 8,
            Self::Vector3 | Self::Point3 | Self::Rgb => 12,
            Self::Rgba | Self::Quaternion => 16,
            Self::String32 => 32,
            Self::Key | Self::Creatable => return None,
        })
    }

    /// Whether the type is a single number, which can be converted to other number types when a
    /// state is upgraded.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Int | Self::Float | Self::Bool | Self::Double | Self::Byte | Self::Short
        )
    }

    /// The type name most similar to a misspelt one.
    pub(super) fn nearest(wrong: &str) -> Option<&'static str> {
        nearest(wrong, NAMES.iter().map(|(name, _)| *name))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Folds a name for comparison: names are case-insensitive.
pub(crate) fn fold(name: &str) -> Box<str> {
    name.to_ascii_lowercase().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_case_insensitive() {
        for (name, kind) in NAMES {
            assert_eq!(Type::parse(&name.to_lowercase()), Some(kind));
            assert_eq!(Type::parse(kind.name()), Some(kind));
        }
        assert_eq!(Type::parse("Quaternions"), Some(Type::Quaternion));
        assert_eq!(Type::parse("QUA"), None);
        assert_eq!(Type::nearest("BOLO"), Some("BOOL"));
    }
}
