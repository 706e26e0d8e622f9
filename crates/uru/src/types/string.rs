//! UTF-16 strings of messages.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Writer};

/// A NetMsg string: `u16` unit count, then UTF-16LE units without a terminator.
///
/// The count must be *less* than `N`, which includes a terminator that is not sent. Units are kept
/// as received, so unpaired surrogates survive.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Str<'d, const N: usize>(Cow<'d, [u8]>);

impl<const N: usize> Str<'_, N> {
    /// The text; unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        wide_text(&self.0)
    }

    /// The number of UTF-16 units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.0.len() / 2
    }

    /// The encoded units.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Accepts text of any length; encoding fails if it has `N` units or more.
impl<const N: usize> From<&str> for Str<'_, N> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(wide(text)))
    }
}

impl<const N: usize> PartialEq<str> for Str<'_, N> {
    fn eq(&self, text: &str) -> bool {
        let units = self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        units.eq(text.encode_utf16())
    }
}

impl<const N: usize> PartialEq<&str> for Str<'_, N> {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

debug_as_text!([const N: usize] Str<'_, N>);

impl<const N: usize> fmt::Display for Str<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl<'d, const N: usize> Field<'d> for Str<'d, N> {
    type Owned = Str<'static, N>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("str({N})"))
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let read = |reader: &mut Reader<'d, T>| {
            let at = reader.position();
            let count = usize::from(u16::from_le_bytes(reader.take_array()?));
            if count >= N {
                return Err(too_long(N, count).at(at as u64));
            }
            reader.take(count * 2)
        };
        let units = read(reader).map_err(|error| error.inside(name))?;
        let span = reader.span_behind(Form::Utf16, units.len());
        reader.leaf_from(name, start, span);
        Ok(Self(Cow::Borrowed(units)))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = self.units();
        match u16::try_from(count) {
            Ok(small) if count < N => {
                writer.u16(small);
                writer.bytes(&self.0);
                Ok(())
            }
            _ => Err(too_long(N, count)),
        }
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let units = json::text(&json, wide)?;
        even(&units)?;
        if units.len() / 2 >= N {
            return Err(too_long(N, units.len() / 2));
        }
        Ok(Self(Cow::Owned(units)))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(&*sampler.text(N as u64 - 1))
    }

    fn into_owned(self) -> Self::Owned {
        Str(Cow::Owned(self.0.into_owned()))
    }
}

#[cold]
fn too_long(n: usize, count: usize) -> Error {
    Error::limit("units of this string", n as u64 - 1, count as u64)
}

/// Refuses half a unit.
pub(super) fn even(units: &[u8]) -> Result<()> {
    if units.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(Error::value("an even number of bytes", units.len().to_string()))
}

/// A fixed-size string of `N` UTF-16LE units whose text ends at the first zero unit.
///
/// Real senders leave stale memory after the zero. It is not part of the text, but it is kept so
/// that a decoded message encodes to the same bytes. Strings made from text are padded with zeros.
#[derive(Clone, PartialEq, Eq)]
pub struct WFix<'d, const N: usize> {
    /// All `2 * N` bytes, or only the text if it was not decoded.
    bytes: Cow<'d, [u8]>,
}

impl<const N: usize> WFix<'_, N> {
    /// The text; unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        wide_text(self.split().0)
    }

    /// Whether anything but zeros follows the text.
    #[must_use]
    pub fn has_dead_memory(&self) -> bool {
        self.split().1.iter().any(|byte| *byte != 0)
    }

    /// The units of the text, and the bytes after them.
    fn split(&self) -> (&[u8], &[u8]) {
        let units = self.bytes.as_chunks::<2>().0;
        let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
        self.bytes.split_at(end * 2)
    }
}

/// Accepts text of any length; encoding fails if it exceeds `N` units.
impl<const N: usize> From<&str> for WFix<'_, N> {
    fn from(text: &str) -> Self {
        Self { bytes: Cow::Owned(wide(text)) }
    }
}

debug_as_text!([const N: usize] WFix<'_, N>);

impl<const N: usize> fmt::Display for WFix<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl<'d, const N: usize> Field<'d> for WFix<'d, N> {
    type Owned = WFix<'static, N>;
    const LEAST: usize = N * 2;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("wfix({N})"))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        if reader.remaining() < N * 2 {
            let error = Error::incomplete(N * 2, reader.remaining());
            return Err(error.at(reader.position() as u64).inside(name));
        }
        let value = Self { bytes: Cow::Borrowed(&reader.rest()[..N * 2]) };
        if !T::ON {
            reader.take(N * 2)?;
            return Ok(value);
        }
        let text = value.split().0.len();
        if value.has_dead_memory() {
            return reader.record(name, |reader| {
                reader.span("text", text, Form::Utf16)?;
                reader.bytes("deadMemory", N * 2 - text)?;
                Ok(value)
            });
        }
        reader.take(text)?;
        let span = reader.span_behind(Form::Utf16, text);
        reader.take(N * 2 - text)?;
        reader.leaf_from(name, start, span);
        Ok(value)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Some(rest) = (N * 2).checked_sub(self.bytes.len()) else {
            return Err(Error::limit(
                "units of this string",
                N as u64,
                self.bytes.len() as u64 / 2,
            ));
        };
        writer.bytes(&self.bytes);
        writer.zeros(rest);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bytes = if json.get("text").is_some() {
            let mut fields = FieldsOf::new(json)?;
            let mut bytes = json::text(fields.take("text")?, wide)?;
            bytes.extend(json::bytes(fields.take("deadMemory")?)?);
            fields.end()?;
            bytes
        } else {
            json::text(&json, wide)?
        };
        even(&bytes)?;
        if bytes.len() > N * 2 {
            return Err(Error::limit("units of this string", N as u64, bytes.len() as u64 / 2));
        }
        let mut bytes = bytes;
        bytes.resize(N * 2, 0);
        Ok(Self { bytes: Cow::Owned(bytes) })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let mut bytes = wide(&sampler.text(N as u64));
        if sampler.below(4) == 0 && bytes.len() + 2 < N * 2 {
            bytes.extend([0, 0]);
            let rest = N * 2 - bytes.len();
            bytes.extend(sampler.bytes(rest));
        }
        bytes.resize(N * 2, 0);
        Self { bytes: Cow::Owned(bytes) }
    }

    fn into_owned(self) -> Self::Owned {
        WFix { bytes: Cow::Owned(self.bytes.into_owned()) }
    }
}

/// Encodes text as UTF-16LE.
#[must_use]
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Decodes UTF-16LE; unpaired surrogates become U+FFFD, an odd last byte is ignored.
#[must_use]
pub fn wide_text(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    #[test]
    fn a_string_of_n_units_is_too_long() {
        let mut bytes = vec![4, 0];
        bytes.extend(wide("abcd"));
        let error = Str::<4>::decode(&mut Reader::new(&bytes), "os").unwrap_err();
        assert_eq!(
            error.to_string(),
            "os at byte 0: wanted at most 3 (units of this string), found 4"
        );
        assert!(Str::<5>::decode(&mut Reader::new(&bytes), "os").is_ok());
        assert!(Str::<4>::from("abcd").encode(&mut Writer::new()).is_err());
        assert!(Str::<4>::from_json((&json!("abcd")).into()).is_err());
    }

    #[test]
    fn stale_memory_survives_json() {
        let mut bytes = wide("ab");
        bytes.extend([0, 0, 7, 7]);
        let value = WFix::<4>::decode(&mut Reader::new(&bytes), "group").unwrap();
        assert_eq!(value.to_text(), "ab");
        assert!(value.has_dead_memory());
        let json = json!({"text": "ab", "deadMemory": {"$hex": "00000707"}});
        assert_eq!(WFix::<4>::from_json((&json).into()).unwrap(), value);
    }
}
