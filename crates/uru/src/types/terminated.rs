//! Zero-terminated UTF-16 strings, and numbers made of UTF-16 units.

use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Value, Writer};

use super::string::{even, wide, wide_text};

/// A string of the vault and of score records: a `u32` byte count, then UTF-16LE units. The count
/// includes the terminating zero unit, so it is even and at least 2.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TermStr<'d>(Cow<'d, [u8]>);

impl TermStr<'_> {
    /// The text; unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        wide_text(&self.0)
    }

    /// The number of UTF-16 units, without the zero.
    #[must_use]
    pub fn units(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether a zero unit precedes the terminator. Clients end the text there.
    #[must_use]
    pub fn has_inner_zero(&self) -> bool {
        self.0.as_chunks::<2>().0.contains(&[0, 0])
    }
}

impl From<&str> for TermStr<'_> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(wide(text)))
    }
}

debug_as_text!([] TermStr<'_>);

impl<'d> Field<'d> for TermStr<'d> {
    type Owned = TermStr<'static>;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u32 byte count, zero-terminated UTF-16LE")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let read = |reader: &mut Reader<'d, T>| {
            let at = reader.position();
            let count = u32::from_le_bytes(reader.take_array()?) as usize;
            if count < 2 || !count.is_multiple_of(2) {
                let error = Error::malformed("an even byte count of at least 2", count.to_string());
                return Err(error.at(at as u64));
            }
            let max = reader.limits().string_bytes;
            if count as u64 > max {
                return Err(Error::limit("string bytes", max, count as u64).at(at as u64));
            }
            let units = reader.take(count - 2)?;
            let span = reader.span_behind(Form::Utf16, units.len());
            let end = reader.position();
            match reader.take_array()? {
                [0, 0] => Ok((Self(Cow::Borrowed(units)), span)),
                [low, high] => {
                    let found = format!("0x{high:02x}{low:02x}");
                    Err(Error::malformed("a zero unit at the end", found).at(end as u64))
                }
            }
        };
        let (value, span) = read(reader).map_err(|error| error.inside(name))?;
        reader.leaf_from(name, start, span);
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = writer.reserve::<4>();
        writer.bytes(&self.0);
        writer.u16(0);
        writer.patch_length(length)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let units = json::text(&json, wide)?;
        even(&units)?;
        Ok(Self(Cow::Owned(units)))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(&*sampler.text(64))
    }

    fn into_owned(self) -> Self::Owned {
        TermStr(Cow::Owned(self.0.into_owned()))
    }
}

/// A string of manifests and file lists: UTF-16LE units, terminated by a zero unit.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ZStr<'d>(Cow<'d, [u8]>);

impl ZStr<'_> {
    /// The text; unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        wide_text(&self.0)
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for ZStr<'_> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(wide(text)))
    }
}

debug_as_text!([] ZStr<'_>);

impl<'d> Field<'d> for ZStr<'d> {
    type Owned = ZStr<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("UTF-16LE up to a zero unit")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let units = reader.rest().as_chunks::<2>().0;
        let Some(end) = units.iter().position(|unit| *unit == [0, 0]) else {
            // The input may end within the zero unit.
            let want = units.len() * 2 + 2;
            let error = Error::incomplete(want, reader.remaining());
            return Err(error.at(reader.position() as u64).inside(name));
        };
        let text = reader.take(end * 2)?;
        let span = reader.span_behind(Form::Utf16, text.len());
        reader.take(2)?;
        reader.leaf_from(name, start, span);
        Ok(Self(Cow::Borrowed(text)))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.0.as_chunks::<2>().0.contains(&[0, 0]) {
            return Err(Error::value("text without zero units", "a zero unit"));
        }
        writer.bytes(&self.0);
        writer.u16(0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let units = json::text(&json, wide)?;
        even(&units)?;
        Ok(Self(Cow::Owned(units)))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(&*sampler.text(32))
    }

    fn into_owned(self) -> Self::Owned {
        ZStr(Cow::Owned(self.0.into_owned()))
    }
}

/// A 32-bit number of manifests and file lists: high `u16`, low `u16`, and a `u16` zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HiLo(pub u32);

impl HiLo {
    /// Reads the six bytes without tracing them.
    pub fn take<T>(reader: &mut Reader<'_, T>) -> Result<Self> {
        let [a, b, c, d] = reader.take_array()?;
        let at = reader.position();
        match reader.take_array()? {
            [0, 0] => Ok(Self(u32::from_le_bytes([c, d, a, b]))),
            [low, high] => {
                let found = format!("0x{high:02x}{low:02x}");
                Err(Error::malformed("a zero unit", found).at(at as u64))
            }
        }
    }
}

impl<'d> Field<'d> for HiLo {
    type Owned = Self;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 high, u16 low, u16 0")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.shown(name, Self::take, |value| Value::Unsigned(u64::from(value.0)))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let [c, d, a, b] = self.0.to_le_bytes();
        writer.bytes(&[a, b, c, d, 0, 0]);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        u32::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u32::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}
