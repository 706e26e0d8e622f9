//! Values whose types are known only at run time.

use worldwire_core::json::Json;
use worldwire_core::{Error, Field, Reader, Result, Sampler, Shape, Trace, Writer};

use super::string::MAX_COUNT;
use super::{Dbl, FieldType, Flt, Str, WStr};

macro_rules! values {
    ($($(#[doc = $doc:literal])* $name:ident($type:ty);)*) => {
        /// The value of a field in a DML message or table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum FieldValue<'d> {
            $($(#[doc = $doc])* $name($type),)*
        }

        impl<'d> FieldValue<'d> {
            /// The value's type.
            #[must_use]
            pub fn kind(&self) -> FieldType {
                match self {
                    $(Self::$name(_) => FieldType::$name,)*
                }
            }

            /// Decodes a value of a type.
            #[inline]
            pub fn decode<'n, T: Trace<'n>>(
                kind: FieldType,
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<Self> {
                match kind {
                    $(FieldType::$name => {
                        <$type as Field<'d>>::decode(reader, name).map(Self::$name)
                    })*
                }
            }

            /// The layout of values of a type.
            #[must_use]
            pub fn shape(kind: FieldType) -> Shape {
                match kind {
                    $(FieldType::$name => <$type as Field<'d>>::shape(),)*
                }
            }

            /// Encodes the value.
            #[inline]
            pub fn encode(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$name(value) => value.encode(writer),)*
                }
            }

            /// Reads a value of a type from JSON.
            pub fn from_json(kind: FieldType, json: &Json) -> Result<Self> {
                match kind {
                    $(FieldType::$name => <$type as Field<'d>>::from_json(json.into()).map(Self::$name),)*
                }
            }

            /// The zero value of a type: 0, or the empty string.
            #[must_use]
            pub fn zero(kind: FieldType) -> Self {
                match kind {
                    $(FieldType::$name => Self::$name(Default::default()),)*
                }
            }

            /// Generates a value for tests.
            pub fn sample(kind: FieldType, sampler: &mut Sampler) -> Self {
                match kind {
                    $(FieldType::$name => Self::$name(Field::sample(sampler)),)*
                }
            }

            /// Converts borrowed strings into owned ones.
            #[must_use]
            pub fn into_owned(self) -> FieldValue<'static> {
                match self {
                    $(Self::$name(value) => FieldValue::$name(Field::into_owned(value)),)*
                }
            }
        }
    };
}

values! {
    /// `BYT`.
    Byt(i8);
    /// `UBYT`.
    Ubyt(u8);
    /// `SHRT`.
    Shrt(i16);
    /// `USHRT`.
    Ushrt(u16);
    /// `INT`.
    Int(i32);
    /// `UINT`.
    Uint(u32);
    /// `FLT`.
    Flt(Flt);
    /// `DBL`.
    Dbl(Dbl);
    /// `GID`.
    Gid(u64);
    /// `STR`.
    Str(Str<'d>);
    /// `WSTR`.
    WStr(WStr<'d>);
    /// `BOOL`: 0 is false, any other byte is true.
    Bool(u8);
}

impl FieldValue<'_> {
    /// The size on the wire in bytes; returns an error if the value cannot be encoded.
    #[inline]
    pub(crate) fn measure(&self) -> Result<usize> {
        match self {
            Self::Str(value) => counted("bytes of a STR", value.as_bytes().len(), 1),
            Self::WStr(value) => counted("UTF-16 units of a WSTR", value.units(), 2),
            fixed => Ok(fixed.kind().min_size()),
        }
    }

    /// Parses the text of an XML element or CSV cell: a number in decimal digits, or in hexadecimal
    /// ones after `0x`; strings are taken verbatim. Empty text is 0. Returns `None` if the text is
    /// not a number or is out of range.
    #[must_use]
    pub fn parse(kind: FieldType, text: &str) -> Option<FieldValue<'static>> {
        match kind {
            FieldType::Str => {
                return Some(FieldValue::Str(Str::new(text.as_bytes().to_vec())));
            }
            FieldType::WStr => return Some(FieldValue::WStr(WStr::from(text))),
            _ => {}
        }
        let text = text.trim();
        let text = match (kind, text) {
            (_, "") => return Some(FieldValue::zero(kind)),
            (FieldType::Bool, _) if text.eq_ignore_ascii_case("true") => "1",
            (FieldType::Bool, _) if text.eq_ignore_ascii_case("false") => "0",
            _ => text,
        };
        FieldValue::from_json(kind, &Json::from(text)).ok()
    }

    /// The text that [`parse`](Self::parse) reads back; `None` for a string that is not valid
    /// Unicode.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        Some(match self {
            Self::Byt(value) => value.to_string(),
            Self::Ubyt(value) | Self::Bool(value) => value.to_string(),
            Self::Shrt(value) => value.to_string(),
            Self::Ushrt(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Gid(value) => value.to_string(),
            Self::Flt(Flt(value)) if value.is_nan() => format!("{:#010x}", value.to_bits()),
            Self::Dbl(Dbl(value)) if value.is_nan() => format!("{:#018x}", value.to_bits()),
            Self::Flt(Flt(value)) => value.to_string(),
            Self::Dbl(Dbl(value)) => value.to_string(),
            Self::Str(value) => value.as_text()?.to_owned(),
            Self::WStr(value) => {
                let text = value.to_text();
                (WStr::from(&*text) == *value).then_some(text)?
            }
        })
    }
}

/// The size in bytes of a count and the counted elements.
#[inline]
fn counted(what: &'static str, count: usize, each: usize) -> Result<usize> {
    if count > MAX_COUNT {
        return Err(Error::limit(what, MAX_COUNT as u64, count as u64));
    }
    Ok(2 + count * each)
}
