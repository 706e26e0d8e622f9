//! UTF-16 safe strings.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Value, Writer};

use super::plasma::invert;
use super::units::{wide, wide_text};

/// A UTF-16 string with a 12-bit count, obfuscated by inversion. **An empty one has no
/// terminator.**
///
/// Layout: `u16` (count of units in the low 12 bits; writers set the high 4 bits), the inverted
/// UTF-16LE units, and a plain zero unit, but only if there are any units. At most 4095 units.
///
/// The published documents and three servers always expect the zero unit, but no client, old or
/// new, writes one after an empty string. A zero unit after an empty string is accepted if the
/// message would otherwise be two bytes too long: if exactly the zero unit and the `FOLLOWING`
/// bytes of the remaining fields are left. It is then kept, but new empty strings never have one.
#[derive(Clone, PartialEq, Eq)]
pub struct SafeWString<'d, const FOLLOWING: usize = 0> {
    /// The high four bits of the count, as received.
    high: u16,
    /// The units as encoded.
    stored: Cow<'d, [u8]>,
    /// The unit after the text: normally zero, and absent if the text is empty.
    terminator: Option<u16>,
}

/// The maximum number of units.
const MAX: usize = 0xfff;

impl<const FOLLOWING: usize> SafeWString<'_, FOLLOWING> {
    /// The text; unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        wide_text(&invert(&self.stored))
    }

    /// Whether there are no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Whether the encoding is the one that clients write.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        let terminator = (!self.is_empty()).then_some(0);
        self.high == 0xf000 && self.terminator == terminator
    }
}

/// Accepts text of any length; encoding fails if it exceeds 4095 units.
impl<const FOLLOWING: usize> From<&str> for SafeWString<'_, FOLLOWING> {
    fn from(text: &str) -> Self {
        let terminator = (!text.is_empty()).then_some(0);
        Self { high: 0xf000, stored: Cow::Owned(invert(&wide(text))), terminator }
    }
}

impl<const FOLLOWING: usize> fmt::Debug for SafeWString<'_, FOLLOWING> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl<'d, const FOLLOWING: usize> Field<'d> for SafeWString<'d, FOLLOWING> {
    type Owned = SafeWString<'static, FOLLOWING>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("SafeWString")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let read = |reader: &mut Reader<'d, T>| {
            let head = u16::from_le_bytes(reader.take_array()?);
            let stored = reader.take(usize::from(head & 0xfff) * 2)?;
            let span = reader.span_behind(Form::InvertedUtf16, stored.len());
            let zero = reader.rest().starts_with(&[0, 0]);
            let terminator = if !stored.is_empty() || zero && reader.remaining() == FOLLOWING + 2 {
                Some(u16::from_le_bytes(reader.take_array()?))
            } else {
                None
            };
            Ok((Self { high: head & 0xf000, stored: Cow::Borrowed(stored), terminator }, span))
        };
        let (value, span) = read(reader).map_err(|error: Error| error.inside(name))?;
        if value.is_canonical() {
            reader.leaf_from(name, start, span);
        } else if T::ON {
            reader.scope_from(name, Value::Record, start, |reader| {
                reader.leaf_from("text", start, span);
                reader.leaf_from("high", start, Value::Hex(u64::from(value.high)));
                if let Some(terminator) = value.terminator {
                    reader.leaf_from("terminator", start, Value::Hex(u64::from(terminator)));
                }
                Ok(())
            })?;
        }
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = self.stored.len() / 2;
        let Some(count) = u16::try_from(count).ok().filter(|count| usize::from(*count) <= MAX)
        else {
            return Err(Error::limit("UTF-16 units of a safe string", MAX as u64, count as u64));
        };
        writer.u16(count | self.high);
        writer.bytes(&self.stored);
        if let Some(terminator) = self.terminator {
            writer.u16(terminator);
        }
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let number = |json| json::integer::<u16>(json, "a whole number from 0 to 65535");
        let (text, high, terminator) = if json.get("high").is_some() {
            let mut fields = FieldsOf::new(json)?;
            let text = json::text(fields.take("text")?, wide)?;
            let high = number(fields.take("high")?)? & 0xf000;
            let terminator = fields.take_optional("terminator").map(number).transpose()?;
            fields.end()?;
            (text, high, terminator)
        } else {
            let text = json::text(&json, wide)?;
            let terminator = (!text.is_empty()).then_some(0);
            (text, 0xf000, terminator)
        };
        if !text.len().is_multiple_of(2) || text.len() / 2 > MAX {
            let found = text.len() as u64 / 2;
            return Err(Error::limit("UTF-16 units of a safe string", MAX as u64, found));
        }
        // After an empty text the terminator can only be zero or missing; other texts always have
        // one.
        if text.is_empty() && terminator.is_some_and(|unit| unit != 0)
            || !text.is_empty() && terminator.is_none()
        {
            let found = terminator.map_or_else(|| "none".to_owned(), |unit| unit.to_string());
            let wanted = match text.is_empty() {
                true => "zero or no terminator after an empty text",
                false => "a terminator after the text",
            };
            return Err(Error::value(wanted, found).inside("terminator"));
        }
        Ok(Self { high, stored: Cow::Owned(invert(&text)), terminator })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(&*sampler.text(64))
    }

    fn into_owned(self) -> Self::Owned {
        SafeWString {
            high: self.high,
            stored: Cow::Owned(self.stored.into_owned()),
            terminator: self.terminator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_string_takes_a_zero_unit_only_if_it_would_be_left_over() {
        let read = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let text = SafeWString::<4>::decode(&mut reader, "text").unwrap();
            let mut writer = Writer::new();
            text.encode(&mut writer).unwrap();
            assert!(bytes.starts_with(writer.as_bytes()));
            (reader.remaining(), text.is_canonical())
        };
        assert_eq!(read(&[0, 0xf0]), (0, true));
        assert_eq!(read(&[0, 0xf0, 0, 0, 7, 7]), (4, true));
        assert_eq!(read(&[0, 0xf0, 0, 0, 7, 7, 7, 7]), (4, false));
        assert_eq!(read(&[0, 0xf0, 1, 0, 7, 7, 7, 7]), (6, true));
        assert_eq!(read(&[1, 0xf0, 0x9e, 0xff, 0, 0]), (0, true));
    }
}
