//! `STR` and `WSTR`.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Shape, Trace, Writer};

/// The maximum number of bytes in a `STR` and of units in a `WSTR`: their count has two bytes.
pub(crate) const MAX_COUNT: usize = 0xffff;

/// Bytes preceded by their count, a number of `WIDTH` bytes, without a terminator.
///
/// Usually text, often a blob. Displayed as text if it is valid UTF-8.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Counted<'d, const WIDTH: usize>(Cow<'d, [u8]>);

/// `STR`: up to 65,535 bytes after a `u16` count.
pub type Str<'d> = Counted<'d, 2>;

/// `WSTR`: `u16` count of UTF-16 units, then the units, without a terminator.
///
/// Units are kept verbatim, so unpaired surrogates survive.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct WStr<'d>(Cow<'d, [u8]>);

impl<'d, const WIDTH: usize> Counted<'d, WIDTH> {
    /// Wraps bytes. Encoding refuses more bytes than the count can express.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, if the bytes are valid UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }

    /// The text. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn to_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
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

impl<'d, const WIDTH: usize> From<&'d str> for Counted<'d, WIDTH> {
    fn from(text: &'d str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }
}

impl From<&str> for WStr<'_> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(wide(text)))
    }
}

impl<const WIDTH: usize> fmt::Debug for Counted<'_, WIDTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_text() {
            Some(text) => fmt::Debug::fmt(text, f),
            None => write!(f, "Bytes({:02x?})", &*self.0),
        }
    }
}

impl fmt::Debug for WStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl<'d, const WIDTH: usize> Field<'d> for Counted<'d, WIDTH> {
    type Owned = Counted<'static, WIDTH>;
    const LEAST: usize = WIDTH;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed(if WIDTH == 2 { "u16 count, bytes" } else { "u32 count, UTF-8" })
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Utf8, count: WIDTH, unit: 1, end: 0 }
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let count = reader.take_array::<WIDTH>().map_err(|error| error.inside(name))?;
        let count = count.iter().rev().fold(0, |count, byte| count << 8 | usize::from(*byte));
        let max = reader.limits().string_bytes;
        if WIDTH > 2 && count as u64 > max {
            return Err(Error::limit("string bytes", max, count as u64).at(at).inside(name));
        }
        reader.blob(name, start, count, Form::Utf8).map(|bytes| Self(Cow::Borrowed(bytes)))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if WIDTH > 2 {
            let length = writer.reserve::<4>();
            writer.bytes(&self.0);
            return writer.patch_length(length);
        }
        writer.u16(u16::try_from(self.len()).map_err(|_| too_long("bytes", self.len()))?);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bytes = json.blob(|json| json::text(json, |text| text.as_bytes().to_vec()))?;
        if WIDTH == 2 && bytes.len() > MAX_COUNT {
            return Err(too_long("bytes", bytes.len()));
        }
        Ok(Self::new(bytes))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let (rate, bytes, text) =
            if WIDTH == 2 { (4, MAX_COUNT, MAX_COUNT / 4) } else { (8, 24, 24) };
        if sampler.below(rate) == 0 {
            let length = sampler.length(bytes as u64);
            return Self::new(sampler.bytes(length));
        }
        Self::new(sampler.text(text as u64).into_bytes())
    }

    fn into_owned(self) -> Self::Owned {
        Counted(Cow::Owned(self.0.into_owned()))
    }
}

impl<'d> Field<'d> for WStr<'d> {
    type Owned = WStr<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, UTF-16 units")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Utf16, count: 2, unit: 2, end: 0 }
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
    let name = if what == "bytes" { "bytes of a STR" } else { "UTF-16 units of a WSTR" };
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
