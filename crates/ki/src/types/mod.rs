//! The types of fields in DML messages and tables.
//!
//! | name | wire | size |
//! | --- | --- | --- |
//! | `BYT`, `UBYT` | `i8`, `u8` | 1 |
//! | `SHRT`, `USHRT` | `i16`, `u16` | 2 |
//! | `INT`, `UINT` | `i32`, `u32` | 4 |
//! | `FLT`, `DBL` | `f32`, `f64` | 4, 8 |
//! | `GID` | `u64` | 8 |
//! | `STR` | `u16` count, bytes | 2 and more |
//! | `WSTR` | `u16` count, UTF-16 units | 2 and more |
//! | `BOOL` | `u8` | 1 |
//!
//! All of them are little-endian.

mod string;
mod value;

use core::fmt;

/// `DBL`: a number of double precision.
pub use worldwire_core::Double as Dbl;
/// `FLT`: a number of single precision.
pub use worldwire_core::Float as Flt;

pub(crate) use string::wide;
pub use string::{Str, WStr};
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
    /// The id of an object, eight bytes.
    Gid,
    /// Bytes behind a count of two bytes: text, or a blob.
    Str,
    /// UTF-16 units behind a count of two bytes.
    WStr,
    /// One byte. No known definition uses it.
    Bool,
}

/// How a definition spells a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As it should be.
    Exact,
    /// In other letters: `uint`.
    Case,
    /// By another name: `USHORT`, `UBYTE`.
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

    /// Other names that definitions are known to use.
    #[must_use]
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Ubyt => &["UBYTE"],
            Self::Ushrt => &["USHORT"],
            _ => &[],
        }
    }

    /// Bytes on the wire; `None` for strings.
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

    /// The fewest bytes on the wire.
    #[must_use]
    pub const fn least(self) -> usize {
        match self.size() {
            Some(size) => size,
            None => 2,
        }
    }

    /// The type that a definition means, and how it spells it.
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

    /// The number of the type in the template of a DML table; `BOOL` has none.
    #[must_use]
    pub const fn table_tag(self) -> Option<u8> {
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

    /// The type with a number in the template of a DML table.
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
    fn types_have_names_aliases_and_numbers() {
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
