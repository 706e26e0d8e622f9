//! `STR` and `WSTR`.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Writer};

/// The maximum number of bytes in a `STR` and of units in a `WSTR`: their count has two bytes.
pub(crate) const MAX_COUNT: usize = 0xffff;

/// `STR`: `u16` count of bytes, then the bytes, without a terminator.
///
/// Usually text, often a blob. Displayed as text if it is valid UTF-8.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Str<'d>(Cow<'d, [u8]>);

/// `WSTR`: `u16` count of UTF-16 units, then the units, without a terminator.
///
/// Units are kept verbatim, so unpaired surrogates survive.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct WStr<'d>(Cow<'d, [u8]>);

impl<'d> Str<'d> {
    /// Wraps bytes. Encoding refuses more than 65,535 of them.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if the bytes are valid UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }
}

impl<'d> WStr<'d> {
    /// Wraps little-endian units. An odd last byte is dropped.
    #[must_use]
    pub fn from_units(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        let mut bytes = bytes.into();
        if !bytes.len().is_multiple_of(2) {
            bytes.to_mut().pop();
        }
        Self(bytes)
    }

    /// The units, little-endian.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number of units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.0.len() / 2
    }

    /// The text. Unpaired surrogates become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        let units = self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
}

impl<'d> From<&'d str> for Str<'d> {
    fn from(text: &'d str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<&str> for WStr<'_> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(wide(text)))
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => fmt::Debug::fmt(text, f),
            None => write!(f, "Str({:02x?})", &*self.0),
        }
    }
}

impl fmt::Debug for WStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl<'d> Field<'d> for Str<'d> {
    type Owned = Str<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, bytes")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = reader.take_array().map(u16::from_le_bytes);
        let count = count.map_err(|error| error.inside(name))?;
        reader.blob(name, start, count.into(), Form::Utf8).map(|bytes| Self(Cow::Borrowed(bytes)))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = u16::try_from(self.0.len()).map_err(|_| too_long("bytes", self.0.len()))?;
        writer.u16(count);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bytes = json.blob(|json| json::text(json, |text| text.as_bytes().to_vec()))?;
        match bytes.len() {
            0..=MAX_COUNT => Ok(Self::new(bytes)),
            count => Err(too_long("bytes", count)),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        if sampler.below(4) == 0 {
            let length = sampler.length(MAX_COUNT as u64);
            return Self::new(sampler.bytes(length));
        }
        Self::new(sampler.text(MAX_COUNT as u64 / 4).into_bytes())
    }

    fn into_owned(self) -> Self::Owned {
        Str(Cow::Owned(self.0.into_owned()))
    }
}

impl<'d> Field<'d> for WStr<'d> {
    type Owned = WStr<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, UTF-16 units")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let read = |reader: &mut Reader<'d, T>| {
            let count = u16::from_le_bytes(reader.take_array()?);
            reader.take(usize::from(count) * 2)
        };
        let units = read(reader).map_err(|error| error.inside(name))?;
        let span = reader.span_behind(Form::Utf16, units.len());
        reader.leaf_from(name, start, span);
        Ok(Self(Cow::Borrowed(units)))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = u16::try_from(self.units()).map_err(|_| too_long("units", self.units()))?;
        writer.u16(count);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let units = json::text(&json, wide)?;
        if !units.len().is_multiple_of(2) {
            return Err(Error::value("an even number of bytes", units.len().to_string()));
        }
        match units.len() / 2 {
            0..=MAX_COUNT => Ok(Self(Cow::Owned(units))),
            count => Err(too_long("units", count)),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        if sampler.below(4) == 0 {
            let length = sampler.length(MAX_COUNT as u64);
            return Self(Cow::Owned(sampler.bytes(length * 2)));
        }
        Self::from(&*sampler.text(MAX_COUNT as u64))
    }

    fn into_owned(self) -> Self::Owned {
        WStr(Cow::Owned(self.0.into_owned()))
    }
}

#[cold]
fn too_long(what: &str, count: usize) -> Error {
    let name = if what == "bytes" { "bytes of a STR" } else { "units of a WSTR" };
    Error::limit(name, MAX_COUNT as u64, count as u64)
}

pub(crate) fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    #[test]
    fn unpaired_surrogates_survive() {
        let bytes = [2, 0, 0x3d, 0xd8, 0x41, 0];
        let value = WStr::decode(&mut Reader::new(&bytes), "w").unwrap();
        assert_eq!(value.units(), 2);
        assert_eq!(value.to_text(), "\u{fffd}A");
        let json = json!({"$hex": "3dd84100"});
        assert_eq!(WStr::from_json((&json).into()).unwrap(), value);
        let mut writer = Writer::new();
        value.encode(&mut writer).unwrap();
        assert_eq!(writer.as_bytes(), bytes);
    }

    #[test]
    fn oversized_strings_are_refused_before_anything_is_written() {
        let mut writer = Writer::new();
        let error = Str::new(vec![0; 0x10000]).encode(&mut writer).unwrap_err();
        assert_eq!(error.to_string(), "wanted at most 65535 (bytes of a STR), found 65536");
        assert!(writer.is_empty());
        assert!(Str::new(vec![0; 0xffff]).encode(&mut writer).is_ok());
        assert!(Str::from_json((&json!("a".repeat(0x10000))).into()).is_err());
        assert!(WStr::from_json((&json!({"$hex": "00"})).into()).is_err());
    }
}
