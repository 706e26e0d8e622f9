//! The types of fields in DML messages and tables.
//!
//! | name | wire | size |
//! | --- | --- | --- |
//! | `BYT`, `UBYT` | `i8`, `u8` | 1 |
//! | `SHRT`, `USHRT` | `i16`, `u16` | 2 |
//! | `INT`, `UINT` | `i32`, `u32` | 4 |
//! | `FLT`, `DBL` | `f32`, `f64` | 4, 8 |
//! | `GID` | `u64` | 8 |
//! | `STR` | `u16` count, bytes | 2 or more |
//! | `WSTR` | `u16` count, UTF-16 units | 2 or more |
//! | `BOOL` | `u8` | 1 |
//!
//! All types are little-endian.

mod string;
mod value;

use core::fmt;

/// `DBL`: a double-precision number.
pub use worldwire_core::Double as Dbl;
/// `FLT`: a single-precision number.
pub use worldwire_core::Float as Flt;

#[cfg(feature = "file")]
pub(crate) use string::wide;
pub use string::{Counted, Str, WStr};
pub use value::FieldValue;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// Signed, one byte.
    Byt,
    /// Unsigned, one byte.
    Ubyt,
    /// Signed, two bytes.
    Shrt,
    /// Unsigned, two bytes.
    Ushrt,
    /// Signed, four bytes.
    Int,
    /// Unsigned, four bytes.
    Uint,
    /// Single precision.
    Flt,
    /// Double precision.
    Dbl,
    /// An object ID, eight bytes.
    Gid,
    /// A two-byte count and that many bytes: text or a blob.
    Str,
    /// A two-byte count and that many UTF-16 units.
    WStr,
    /// One byte. No known definition uses it.
    Bool,
}

/// How a type is spelled in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// The canonical spelling.
    Exact,
    /// In the wrong case: `uint`.
    Case,
    /// An alias: `USHORT`, `UBYTE`.
    Alias,
}

impl FieldType {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::Byt,
        Self::Ubyt,
        Self::Shrt,
        Self::Ushrt,
        Self::Int,
        Self::Uint,
        Self::Flt,
        Self::Dbl,
        Self::Gid,
        Self::Str,
        Self::WStr,
        Self::Bool,
    ];

    /// The name in definitions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Byt => "BYT",
            Self::Ubyt => "UBYT",
            Self::Shrt => "SHRT",
            Self::Ushrt => "USHRT",
            Self::Int => "INT",
            Self::Uint => "UINT",
            Self::Flt => "FLT",
            Self::Dbl => "DBL",
            Self::Gid => "GID",
            Self::Str => "STR",
            Self::WStr => "WSTR",
            Self::Bool => "BOOL",
        }
    }

    /// Aliases that real definitions use.
    #[must_use]
    pub(crate) const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Ubyt => &["UBYTE"],
            Self::Ushrt => &["USHORT"],
            _ => &[],
        }
    }

    /// The size on the wire in bytes; `None` for strings.
    #[must_use]
    pub const fn size(self) -> Option<usize> {
        match self {
            Self::Byt | Self::Ubyt | Self::Bool => Some(1),
            Self::Shrt | Self::Ushrt => Some(2),
            Self::Int | Self::Uint | Self::Flt => Some(4),
            Self::Dbl | Self::Gid => Some(8),
            Self::Str | Self::WStr => None,
        }
    }

    /// The minimum size on the wire in bytes.
    #[must_use]
    pub(crate) const fn min_size(self) -> usize {
        match self.size() {
            Some(size) => size,
            None => 2,
        }
    }

    /// Parses the type name of a definition and returns how it is spelled.
    #[must_use]
    pub fn parse(text: &str) -> Option<(Self, Spelling)> {
        let exact = Self::ALL.into_iter().find(|kind| kind.name() == text);
        exact.map(|kind| (kind, Spelling::Exact)).or_else(|| {
            Self::ALL.into_iter().find_map(|kind| {
                if kind.name().eq_ignore_ascii_case(text) {
                    return Some((kind, Spelling::Case));
                }
                let alias = kind.aliases().iter().any(|alias| alias.eq_ignore_ascii_case(text));
                alias.then_some((kind, Spelling::Alias))
            })
        })
    }

    /// The number of the type in the template of a DML table. `BOOL` has no number.
    #[must_use]
    pub(crate) const fn table_tag(self) -> Option<u8> {
        Some(match self {
            Self::Gid => 1,
            Self::Int => 2,
            Self::Uint => 3,
            Self::Flt => 4,
            Self::Byt => 5,
            Self::Ubyt => 6,
            Self::Ushrt => 7,
            Self::Dbl => 8,
            Self::Str => 9,
            Self::WStr => 10,
            Self::Shrt => 11,
            Self::Bool => return None,
        })
    }

    /// The type for a number in the template of a DML table.
    #[must_use]
    pub fn from_table_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.table_tag() == Some(tag))
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_aliases_and_table_tags_round_trip() {
        for kind in FieldType::ALL {
            assert_eq!(FieldType::parse(kind.name()), Some((kind, Spelling::Exact)));
            let lower = kind.name().to_lowercase();
            assert_eq!(FieldType::parse(&lower), Some((kind, Spelling::Case)));
            for alias in kind.aliases() {
                assert_eq!(FieldType::parse(alias), Some((kind, Spelling::Alias)));
            }
            if let Some(tag) = kind.table_tag() {
                assert_eq!(FieldType::from_table_tag(tag), Some(kind));
            }
        }
        assert_eq!(FieldType::parse("BLORB"), None);
        assert_eq!(FieldType::from_table_tag(0), None);
        assert_eq!(FieldType::from_table_tag(12), None);
    }
}
