//! Text in every encoding except the inverted ones, kept as encoded.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Shape, Trace, Value, Writer};

use super::padded::{decode_padded, encode_padded, padded_from_json};
use super::units::{inner_zero, too_long, unit, units, whole_units, wide, wide_text, zero_unit};
use super::{encode_counted, take_counted};

/// Text in one of the formats named by the aliases below.
///
/// The bytes are kept as received, so anything that is not valid UTF-16 or UTF-8 survives. `from`
/// accepts text of any length; encoding fails if the format cannot hold it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Text<'d, F> {
    /// The text as encoded, without counts and terminators.
    stored: Cow<'d, [u8]>,
    format: PhantomData<F>,
}

/// A NetMsg string: `u16` unit count, then UTF-16LE units without a terminator. The count must be
/// *less* than `N`, which includes a terminator that is not sent.
pub type Str<'d, const N: usize> = Text<'d, NetText<N>>;

/// A fixed number of UTF-16LE units; the text ends at the first zero unit. Real senders leave stale
/// memory after the text; it is kept.
pub type WFix<'d, const N: usize> = Text<'d, WidePadded<N>>;

/// A string of the vault and of score records: a `u32` byte count, then UTF-16LE units. The count
/// includes the terminating zero unit, so it is even and at least 2.
pub type TermStr<'d> = Text<'d, Terminated>;

/// A string of manifests and file lists: UTF-16LE units, terminated by a zero unit.
pub type ZStr<'d> = Text<'d, ZeroEnded>;

/// A counted string: a `u16` byte count, then the bytes. Current clients send UTF-8.
pub type CountedString<'d> = Text<'d, Counted>;

/// Text in exactly `N` bytes, padded with zeros. Bytes after the first zero are not part of the
/// text but are kept.
pub type FixedText<'d, const N: usize> = Text<'d, Padded<N>>;

/// How a [`Text`] is encoded.
pub trait TextFormat: Clone + PartialEq + 'static {
    /// The minimum size in bytes.
    const LEAST: usize;
    /// Whether the text is UTF-16LE rather than UTF-8.
    const WIDE: bool = true;
    /// The maximum length of generated text.
    const SAMPLE: u64 = 64;

    /// The layout as shown in the documentation.
    fn layout() -> Cow<'static, str>;

    /// The layout, as data.
    fn shape() -> Shape;

    /// Reads the text and traces it.
    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]>;

    /// Writes the text.
    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()>;

    /// Reads the value from the form that a trace shows.
    fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
        whole_units(json::text(&json, Self::stored)?, Self::WIDE)
    }

    /// The part of the stored bytes that is text.
    fn text(stored: &[u8]) -> &[u8] {
        stored
    }

    /// Stores text.
    fn stored(text: &str) -> Vec<u8> {
        if Self::WIDE { wide(text) } else { text.as_bytes().to_vec() }
    }

    /// Generates text.
    fn sample(sampler: &mut Sampler) -> Vec<u8> {
        Self::stored(&sampler.text(Self::SAMPLE))
    }
}

impl<F: TextFormat> Text<'_, F> {
    /// The text, with invalid UTF-16 or UTF-8 replaced by U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = F::text(&self.stored);
        if F::WIDE { wide_text(text) } else { String::from_utf8_lossy(text).into_owned() }
    }

    /// The encoded text, without counts and terminators.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.stored
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        F::text(&self.stored).is_empty()
    }

    /// The number of UTF-16 units or of UTF-8 bytes.
    #[must_use]
    pub fn units(&self) -> usize {
        F::text(&self.stored).len() / unit(F::WIDE)
    }
}

impl TermStr<'_> {
    /// Whether a zero unit precedes the terminator. Clients end the text there.
    #[must_use]
    pub fn has_inner_zero(&self) -> bool {
        zero_unit(&self.stored, true).is_some()
    }
}

impl<F: TextFormat> From<&str> for Text<'_, F> {
    fn from(text: &str) -> Self {
        F::stored(text).into()
    }
}

impl<F> From<Vec<u8>> for Text<'_, F> {
    fn from(stored: Vec<u8>) -> Self {
        Self { stored: Cow::Owned(stored), format: PhantomData }
    }
}

impl<F: TextFormat> PartialEq<str> for Text<'_, F> {
    fn eq(&self, text: &str) -> bool {
        let stored = F::text(&self.stored);
        if F::WIDE { units(stored).eq(text.encode_utf16()) } else { stored == text.as_bytes() }
    }
}

impl<F: TextFormat> PartialEq<&str> for Text<'_, F> {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

impl<F: TextFormat> fmt::Debug for Text<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl<F: TextFormat> fmt::Display for Text<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl<'d, F: TextFormat> Field<'d> for Text<'d, F> {
    type Owned = Text<'static, F>;
    const LEAST: usize = F::LEAST;

    fn layout() -> Cow<'static, str> {
        F::layout()
    }

    fn shape() -> Shape {
        F::shape()
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let stored = Cow::Borrowed(F::decode(reader, name)?);
        Ok(Self { stored, format: PhantomData })
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        F::encode(&self.stored, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        F::from_json(json).map(Self::from)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        F::sample(sampler).into()
    }

    fn into_owned(self) -> Self::Owned {
        self.stored.into_owned().into()
    }
}

/// Reads text with its count or terminator and traces the value returned with it.
#[inline]
fn traced<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    read: impl FnOnce(&mut Reader<'d, T>) -> Result<(&'d [u8], Value<'n>)>,
) -> Result<&'d [u8]> {
    let start = reader.place_if_on();
    let (text, shown) = read(reader).map_err(|error| error.inside(name))?;
    reader.leaf_from(name, start, shown);
    Ok(text)
}

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $name:ident $(<$n:ident>)?;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name $(<const $n: usize>)?;
    )*};
}

formats! {
    /// The format of [`Str`].
    NetText<N>;
    /// The format of [`WFix`].
    WidePadded<N>;
    /// The format of [`TermStr`].
    Terminated;
    /// The format of [`ZStr`].
    ZeroEnded;
    /// The format of [`CountedString`].
    Counted;
    /// The format of [`FixedText`].
    Padded<N>;
}

impl<const N: usize> TextFormat for NetText<N> {
    const LEAST: usize = 2;
    const SAMPLE: u64 = N as u64 - 1;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("str({N})"))
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Utf16, count: 2, unit: 2, end: 0 }
    }

    #[inline]
    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]> {
        traced(reader, name, |reader| {
            let at = reader.position() as u64;
            let count = usize::from(u16::from_le_bytes(reader.take_array()?));
            if count >= N {
                return Err(too_long(N - 1, count * 2, true).at(at));
            }
            let units = reader.take(count * 2)?;
            Ok((units, reader.span_behind(Form::Utf16, units.len())))
        })
    }

    #[inline]
    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
        let count = stored.len() / 2;
        let small = u16::try_from(count).ok().filter(|_| count < N);
        writer.u16(small.ok_or_else(|| too_long(N - 1, stored.len(), true))?);
        writer.bytes(stored);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
        let stored = whole_units(json::text(&json, wide)?, true)?;
        let count = stored.len() / 2;
        if count < N { Ok(stored) } else { Err(too_long(N - 1, stored.len(), true)) }
    }
}

impl TextFormat for Terminated {
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u32 byte count, zero-terminated UTF-16LE")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Utf16, count: 4, unit: 1, end: 2 }
    }

    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]> {
        traced(reader, name, |reader| {
            let at = reader.position() as u64;
            let count = u32::from_le_bytes(reader.take_array()?) as usize;
            if count < 2 || !count.is_multiple_of(2) {
                let error = Error::malformed("an even byte count of at least 2", count.to_string());
                return Err(error.at(at));
            }
            let max = reader.limits().string_bytes;
            if count as u64 > max {
                return Err(Error::limit("string bytes", max, count as u64).at(at));
            }
            let units = reader.take(count - 2)?;
            let span = reader.span_behind(Form::Utf16, units.len());
            let end = reader.position() as u64;
            match reader.take_array()? {
                [0, 0] => Ok((units, span)),
                [low, high] => {
                    let found = format!("0x{high:02x}{low:02x}");
                    Err(Error::malformed("a NUL character at the end", found).at(end))
                }
            }
        })
    }

    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
        let length = writer.reserve::<4>();
        writer.bytes(stored);
        writer.u16(0);
        writer.patch_length(length)
    }
}

impl TextFormat for ZeroEnded {
    const LEAST: usize = 2;
    const SAMPLE: u64 = 32;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("UTF-16LE up to a NUL character")
    }

    fn shape() -> Shape {
        Shape::Terminated(Form::Utf16)
    }

    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]> {
        traced(reader, name, |reader| {
            let Some(end) = zero_unit(reader.rest(), true) else {
                // The input may end within the zero unit.
                let error = Error::incomplete(reader.remaining() / 2 * 2 + 2, reader.remaining());
                return Err(error.at(reader.position() as u64));
            };
            let text = reader.take(end)?;
            let span = reader.span_behind(Form::Utf16, end);
            reader.take(2)?;
            Ok((text, span))
        })
    }

    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
        if zero_unit(stored, true).is_some() {
            return Err(inner_zero(true));
        }
        writer.bytes(stored);
        writer.u16(0);
        Ok(())
    }
}

impl TextFormat for Counted {
    const LEAST: usize = 2;
    const WIDE: bool = false;
    const SAMPLE: u64 = 32;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 byte count, text")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Utf8, count: 2, unit: 1, end: 0 }
    }

    #[inline]
    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<&'d [u8]> {
        traced(reader, name, |reader| {
            let bytes = take_counted(reader)?;
            Ok((bytes, reader.span_behind(Form::Utf8, bytes.len())))
        })
    }

    fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
        encode_counted(stored, writer)
    }
}

macro_rules! padded {
    ($($name:ident, $layout:literal, wide: $wide:literal;)*) => {$(
        impl<const N: usize> TextFormat for $name<N> {
            const LEAST: usize = N * unit($wide);
            const WIDE: bool = $wide;

            fn layout() -> Cow<'static, str> {
                Cow::Owned(format!(concat!($layout, "({})"), N))
            }

            fn shape() -> Shape {
                Shape::Padded(if $wide { Form::Utf16 } else { Form::Utf8 }, N * unit($wide))
            }

            fn decode<'d, 'n, T: Trace<'n>>(
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<&'d [u8]> {
                decode_padded(reader, name, N, $wide)
            }

            fn encode(stored: &[u8], writer: &mut Writer) -> Result<()> {
                encode_padded(stored, N, $wide, writer)
            }

            fn from_json(json: Given<'_>) -> Result<Vec<u8>> {
                padded_from_json(json, N, $wide)
            }

            fn text(stored: &[u8]) -> &[u8] {
                stored.get(..zero_unit(stored, $wide).unwrap_or(stored.len())).unwrap_or_default()
            }

            fn sample(sampler: &mut Sampler) -> Vec<u8> {
                // A character takes up to four bytes.
                let mut stored = Self::stored(&sampler.text(N as u64 * unit($wide) as u64 / 4));
                if sampler.below(4) == 0 && stored.len() + 2 < Self::LEAST {
                    stored.extend([0, 0]);
                    let rest = Self::LEAST - stored.len();
                    stored.extend(sampler.bytes(rest));
                }
                stored.resize(Self::LEAST, 0);
                stored
            }
        }
    )*};
}

padded! {
    WidePadded, "wfix", wide: true;
    Padded, "text", wide: false;
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
            "os at byte 0: wanted at most 3 (UTF-16 units of this string), found 4"
        );
        assert!(Str::<5>::decode(&mut Reader::new(&bytes), "os").is_ok());
        assert!(Str::<4>::from("abcd").encode(&mut Writer::new()).is_err());
        assert!(Str::<4>::from_json((&json!("abcd")).into()).is_err());
    }

    #[test]
    fn stale_memory_survives_json() {
        let wide_bytes = [&*wide("ab"), &[0, 0, 7, 7]].concat();
        let value = WFix::<4>::decode(&mut Reader::new(&wide_bytes), "group").unwrap();
        assert_eq!((value.to_text().as_str(), value.units()), ("ab", 2));
        let json = json!({"text": "ab", "deadMemory": {"$hex": "00000707"}});
        assert_eq!(WFix::<4>::from_json((&json).into()).unwrap(), value);
        let value = FixedText::<4>::decode(&mut Reader::new(b"ab\0\x07"), "name").unwrap();
        let json = json!({"text": "ab", "deadMemory": {"$hex": "0007"}});
        assert_eq!(FixedText::<4>::from_json((&json).into()).unwrap(), value);
        let wrong = json!({"text": "ab", "deadMemory": {"$hex": "0707"}});
        let error = FixedText::<4>::from_json((&wrong).into()).unwrap_err();
        assert_eq!(error.to_string(), "deadMemory: wanted a NUL byte first, found a different one");
    }
}
