//! Formats inside counted buffers of messages.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{
    Error, Field, Form, Reader, Result, Sampler, Shape, Trace, Value, Writer, count32,
};

use super::encoded;

/// A format inside a counted buffer of a message, such as a vault node or a manifest.
pub trait Inner<'d>: Field<'d> {
    /// The name for documentation: `vault node`.
    const NAME: &'static str;

    /// The size of one counted unit in bytes: 1 for bytes, 2 for UTF-16 units.
    const UNIT: usize;

    /// Whether every value has exactly one encoding, so that decoded content always encodes to the
    /// same bytes.
    const ONE_FORM: bool;

    /// How the content is traced: [`Value::Record`] or [`Value::List`].
    const SHAPE: Value<'static>;

    /// The layout of the content, as data.
    #[must_use]
    fn inner_shape() -> Shape {
        Shape::Opaque
    }

    /// Decodes the whole buffer.
    fn decode_inner<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self>;

    /// Reads the content from the JSON of its trace.
    fn inner_from_json(json: Given<'_>) -> Result<Self> {
        Self::from_json(json)
    }
}

/// A counted buffer (`u32` count of units, at most `MAX`) with content in another format.
///
/// Decoding the message does not inspect the content, so a malformed vault node does not end the
/// connection; [`Nested::decode`] reads it. A trace shows the decoded content, or the plain bytes
/// if re-encoding would change them.
#[derive(Clone, PartialEq)]
pub struct Nested<'d, I, const MAX: usize> {
    bytes: Cow<'d, [u8]>,
    inner: PhantomData<fn() -> I>,
}

impl<'d, I, const MAX: usize> Nested<'d, I, MAX> {
    /// Wraps encoded content.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self { bytes: bytes.into(), inner: PhantomData }
    }

    /// The encoded content.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<I, const MAX: usize> Nested<'_, I, MAX> {
    /// Encodes a value as the content.
    pub fn encode_from<'v>(value: &I) -> Result<Self>
    where
        I: Inner<'v>,
    {
        encoded(value).map(Self::new)
    }

    /// Decodes the content. `W` is the format `I` with the lifetime of this borrow.
    pub fn decode<'v, W: Inner<'v>>(&'v self) -> Result<W> {
        W::decode_inner(&mut Reader::new(&self.bytes)).map_err(Error::closed)
    }
}

impl<I, const MAX: usize> fmt::Debug for Nested<'_, I, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nested({} bytes)", self.bytes.len())
    }
}

impl<'d, I, const MAX: usize> Field<'d> for Nested<'d, I, MAX>
where
    I: InnerFamily,
{
    type Owned = Nested<'static, I, MAX>;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        let unit = if <I::At<'d>>::UNIT == 1 { "u8" } else { "u16" };
        Cow::Owned(format!("u32 count, {unit}[..{MAX}] ({})", <I::At<'d>>::NAME))
    }

    fn shape() -> Shape {
        Shape::Nested(4, <I::At<'d>>::UNIT, Box::new(<I::At<'d>>::inner_shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = |reader: &mut Reader<'d, T>| {
            let units = count32(reader, MAX, "units of this field")?;
            let length = units * <I::At<'d>>::UNIT;
            if reader.remaining() < length {
                let error = Error::incomplete(length, reader.remaining());
                return Err(error.at(reader.position() as u64));
            }
            Ok(length)
        };
        let length = count(reader).map_err(|error| error.inside(name))?;
        let bytes = &reader.rest()[..length];
        let shown = T::ON && {
            let show = |reader: &mut Reader<'d, T>| {
                let value = reader.scope_from(name, <I::At<'d>>::SHAPE, start, |reader| {
                    reader.part(length, <I::At<'d>>::decode_inner)
                })?;
                canonical(&value, bytes)
            };
            reader.attempt(show).is_ok()
        };
        if !shown {
            reader.take(length)?;
            let span = reader.span_behind(Form::Bytes, length);
            reader.leaf_from(name, start, span);
        }
        Ok(Self::new(bytes))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let unit = <I::At<'d>>::UNIT;
        let units = self.bytes.len() / unit;
        if !self.bytes.len().is_multiple_of(unit) {
            return Err(Error::value("whole units", format!("{} bytes", self.bytes.len())));
        }
        let Some(units) = u32::try_from(units).ok().filter(|_| units <= MAX) else {
            return Err(Error::limit("units of this field", MAX as u64, units as u64));
        };
        writer.u32(units);
        writer.bytes(&self.bytes);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.get("$hex").is_some() {
            return json.bytes().map(Self::new);
        }
        encoded(&<I::At<'d>>::inner_from_json(json)?).map(Self::new)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::new(encoded(&<I::At<'d>>::sample(sampler)).unwrap_or_default())
    }

    fn into_owned(self) -> Self::Owned {
        Nested::new(self.bytes.into_owned())
    }
}

/// A format independent of its lifetime, to name the format where nothing is borrowed yet.
pub trait InnerFamily: Clone + PartialEq + 'static {
    /// The format, borrowing from bytes that live for `'d`.
    type At<'d>: Inner<'d>;
}

/// Verifies that the value encodes to the same bytes, unless the format guarantees it.
fn canonical<'d, I: Inner<'d>>(value: &I, bytes: &[u8]) -> Result<()> {
    if I::ONE_FORM || encoded(value)? == bytes {
        return Ok(());
    }
    Err(Error::malformed("a canonical encoding", "a non-canonical one"))
}
