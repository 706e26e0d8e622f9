//! Values of server options.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Span, Trace, Value, Writer};

use crate::types::text;

/// The value of a server option: a `u16` size, followed by a number, a text with a terminating
/// zero, or nothing. On the wire, only the size distinguishes them.
///
/// | size | shown as | JSON |
/// | --- | --- | --- |
/// | 0 | nothing | null |
/// | 2 | a number | `{"u16": 32}` |
/// | 4, unless it is three printable characters and a zero | a number | 6 |
/// | other, with a zero only at the end | a text | `"bluesky1"` |
/// | other | bytes | `{"$hex": "00ff"}` |
#[derive(Clone, PartialEq, Eq, Default)]
pub struct OptionValue<'d>(Cow<'d, [u8]>);

/// What a value appears to be.
enum Shape {
    Nothing,
    Short(u16),
    Number(u32),
    Text,
    Bytes,
}

impl<'d> OptionValue<'d> {
    /// No value.
    pub const NOTHING: Self = Self(Cow::Borrowed(&[]));

    /// A value that holds a 32-bit number.
    #[must_use]
    pub fn of_number(number: u32) -> OptionValue<'static> {
        OptionValue(number.to_le_bytes().to_vec().into())
    }

    /// A value that holds a text.
    ///
    /// # Errors
    /// A value error for characters that are not in Windows-1252, and zeros.
    pub fn of_text(value: &str) -> Result<OptionValue<'static>> {
        let mut bytes = text::encode(value)
            .filter(|bytes| !bytes.contains(&0))
            .ok_or_else(|| Error::value("Windows-1252 characters", format!("{value:?}")))?;
        bytes.push(0);
        Ok(OptionValue(bytes.into()))
    }

    /// The number, if it appears to be one.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self.shape() {
            Shape::Short(number) => Some(number.into()),
            Shape::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The text, if it appears to be one; empty for nothing.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self.shape() {
            Shape::Nothing => Some(String::new()),
            Shape::Text => self.0.split_last().map(|(_, text)| text::decode(text)),
            _ => None,
        }
    }

    fn shape(&self) -> Shape {
        let is_printable = |text: &[u8]| text.iter().all(|byte| matches!(byte, 0x20..0x7f));
        match &*self.0 {
            [] => Shape::Nothing,
            [low, high] => Shape::Short(u16::from_le_bytes([*low, *high])),
            [text @ .., 0] if text.len() == 3 && is_printable(text) => Shape::Text,
            [a, b, c, d] => Shape::Number(u32::from_le_bytes([*a, *b, *c, *d])),
            // Other bytes would be shown as the wrong characters.
            [text @ .., 0] if !text.iter().any(|byte| matches!(byte, 0 | 0x80..0xa0)) => {
                Shape::Text
            }
            _ => Shape::Bytes,
        }
    }
}

impl fmt::Debug for OptionValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number(), self.text()) {
            (Some(number), _) => fmt::Debug::fmt(&number, f),
            (None, Some(text)) => fmt::Debug::fmt(&text, f),
            (None, None) => write!(f, "OptionValue({} bytes)", self.0.len()),
        }
    }
}

impl<'d> Field<'d> for OptionValue<'d> {
    type Owned = OptionValue<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 size, number or text")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let size = reader.take_array().map_err(|error| error.inside(name))?;
        let at = reader.position();
        let bytes = reader.take(u16::from_le_bytes(size).into());
        let value = Self(bytes.map_err(|error| error.inside(name))?.into());
        if T::ON {
            let span = |form, length: usize| {
                let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
                Value::Span(Span { form, start: narrow(at), length: narrow(length) })
            };
            let shown = match value.shape() {
                Shape::Nothing => Value::Null,
                Shape::Number(number) => Value::Unsigned(number.into()),
                Shape::Text => span(Form::Latin1, value.0.len() - 1),
                Shape::Bytes => span(Form::Bytes, value.0.len()),
                Shape::Short(number) => {
                    return reader.scope_from(name, Value::Record, start, |reader| {
                        reader.leaf_from("u16", start, Value::Unsigned(number.into()));
                        Ok(value)
                    });
                }
            };
            reader.leaf_from(name, start, shown);
        }
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Ok(size) = u16::try_from(self.0.len()) else {
            let found = self.0.len() as u64;
            return Err(Error::limit("bytes of an option", u16::MAX.into(), found));
        };
        writer.u16(size);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        match json.json() {
            Json::Null => Ok(Self::NOTHING),
            Json::String(text) => Self::of_text(text),
            Json::Object(object) if object.contains_key("u16") => {
                let mut fields = FieldsOf::new(json)?;
                let number: u16 = fields.value("u16")?;
                fields.end()?;
                Ok(Self(number.to_le_bytes().to_vec().into()))
            }
            Json::Object(_) => json::bytes(&json).map(|bytes| Self(bytes.into())),
            _ => u32::from_json(json).map(Self::of_number),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        match sampler.below(4) {
            0 => Self::of_number(Field::sample(sampler)),
            1 => Self(b"bluesky1\0".into()),
            _ => {
                let length = sampler.length(6);
                Self(sampler.bytes(length).into())
            }
        }
    }

    fn into_owned(self) -> Self::Owned {
        OptionValue(Cow::Owned(self.0.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_tell_numbers_from_texts() {
        let value = |bytes: &'static [u8]| OptionValue(bytes.into());
        assert_eq!(value(b"\x06\0\0\0").number(), Some(6));
        assert_eq!(value(b"\x20\0").number(), Some(0x20));
        assert_eq!(value(b"abc\0").text().as_deref(), Some("abc"));
        assert_eq!(value(b"bluesky1\0").text().as_deref(), Some("bluesky1"));
        assert_eq!(value(b"").text().as_deref(), Some(""));
        for bytes in [&b"a\0b\0"[..4], b"\0", b"bluesky", b"a\0b\0\0", b"\x80\x81\x82\x83\0"] {
            let value = OptionValue(bytes.into());
            assert!(value.text().is_none_or(|text| text.is_empty()), "{value:?}");
        }
        assert_eq!(OptionValue::of_text("x\0").ok(), None);
    }
}
