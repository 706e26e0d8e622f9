//! Types of message fields.

use core::fmt;
use std::borrow::Cow;

use crate::json::{self, Given, Json};
use crate::{Error, Form, Reader, Result, Sampler, Shape, Trace, Writer};

/// A type for fields of messages and elements of lists: decoding, encoding, JSON, and generated
/// values.
///
/// Types that hold text or bytes borrow them from the decoded bytes for `'d`.
pub trait Field<'d>: Sized + Clone + PartialEq + fmt::Debug {
    /// The same type, owned.
    type Owned: 'static;

    /// The minimum number of bytes that a value takes.
    const LEAST: usize;

    /// The layout as the documentation shows it: `u32`, `str(64)`, `NodeRef[..512]`.
    fn layout() -> Cow<'static, str>;

    /// The layout as data, for code generators.
    #[must_use]
    fn shape() -> Shape {
        Shape::Opaque
    }

    /// Reads it and reports it to the trace under this name.
    ///
    /// # Errors
    /// Those of [`Reader`]'s methods, with the name as the path.
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self>;

    /// Writes it; the exact inverse of decoding.
    ///
    /// # Errors
    /// `Value` if the wire format cannot hold it.
    fn encode(&self, writer: &mut Writer) -> Result<()>;

    /// Reads it from JSON; the exact inverse of writing the traced value as JSON.
    fn from_json(json: Given<'_>) -> Result<Self>;

    /// Generates a value.
    fn sample(sampler: &mut Sampler) -> Self;

    /// Copies borrowed bytes, so that the value is owned.
    fn into_owned(self) -> Self::Owned;
}

macro_rules! integers {
    ($($type:ident: $wanted:literal;)*) => {$(
        impl<'d> Field<'d> for $type {
            type Owned = Self;
            const LEAST: usize = size_of::<Self>();

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($type))
            }

            fn shape() -> Shape {
                match $type::MIN {
                    0 => Shape::Unsigned(size_of::<Self>()),
                    _ => Shape::Signed(size_of::<Self>()),
                }
            }

            #[inline]
            fn decode<'n, T: Trace<'n>>(
                reader: &mut Reader<'d, T>,
                name: &'n str,
            ) -> Result<Self> {
                reader.$type(name)
            }

            #[inline]
            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.$type(*self);
                Ok(())
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                json::integer(&json, $wanted)
            }

            #[expect(clippy::allow_attributes, reason = "only some of the types are narrower")]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            fn sample(sampler: &mut Sampler) -> Self {
                sampler.number() as $type
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

integers! {
    u8: "a whole number from 0 to 255";
    u16: "a whole number from 0 to 65535";
    u32: "a whole number from 0 to 4294967295";
    u64: "a whole number from 0 to 18446744073709551615";
    i8: "a whole number from -128 to 127";
    i16: "a whole number from -32768 to 32767";
    i32: "a whole number from -2147483648 to 2147483647";
    i64: "a 64-bit whole number";
}

/// Exactly `N` bytes, without a count.
impl<'d, const N: usize> Field<'d> for [u8; N] {
    type Owned = Self;
    const LEAST: usize = N;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("bytes({N})"))
    }

    fn shape() -> Shape {
        Shape::Fixed(Form::Bytes, N)
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        match reader.take_array() {
            Ok(bytes) => {
                let span = reader.span_behind(Form::Bytes, N);
                reader.leaf_from(name, start, span);
                Ok(bytes)
            }
            Err(error) => Err(error.inside(name)),
        }
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(self);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bytes = json::bytes(&json)?;
        let found = bytes.len();
        bytes.try_into().map_err(|_| Error::value(format!("{N} bytes"), format!("{found} bytes")))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        core::array::from_fn(|_| sampler.bits().to_le_bytes()[0])
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// Exactly `N` numbers, without a count.
impl<'d, const N: usize> Field<'d> for [u32; N] {
    type Owned = Self;
    const LEAST: usize = N * 4;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("u32[{N}]"))
    }

    fn shape() -> Shape {
        Shape::Array(N, Box::new(u32::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut numbers = [0; N];
            for (index, number) in numbers.iter_mut().enumerate() {
                *number = reader.item(index, |reader| reader.u32(""))?;
            }
            Ok(numbers)
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.iter().for_each(|number| writer.u32(*number));
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let numbers = list_from_json::<u32>(json)?;
        let found = numbers.len();
        numbers.try_into().map_err(|_| Error::value(format!("{N} numbers"), found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        core::array::from_fn(|_| u32::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// At most `MAX` bytes after a `u32` count.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes32<'d, const MAX: usize>(Cow<'d, [u8]>);

impl<'d, const MAX: usize> Bytes32<'d, MAX> {
    /// Wraps bytes. More than `MAX` bytes are refused when they are encoded.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self(bytes.into())
    }
}

impl<const MAX: usize> core::ops::Deref for Bytes32<'_, MAX> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Bytes32<'_, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes32({} bytes)", self.0.len())
    }
}

/// Reads a `u32` count of elements that take at least `least` bytes each, and checks it against
/// `most` before anything is allocated.
///
/// # Errors
/// `Incomplete`, or the limit, at the position of the count.
#[inline]
pub fn count32<T>(reader: &mut Reader<'_, T>, most: usize, limit: &'static str) -> Result<usize> {
    let at = reader.position();
    let count = u32::from_le_bytes(reader.take_array()?) as usize;
    if count > most {
        return Err(Error::limit(limit, most as u64, count as u64).at(at as u64));
    }
    Ok(count)
}

impl<'d, const MAX: usize> Field<'d> for Bytes32<'d, MAX> {
    type Owned = Bytes32<'static, MAX>;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("u32 count, u8[..{MAX}]"))
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Bytes, count: 4, unit: 1, end: 0 }
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = count32(reader, MAX, "bytes of this field");
        let count = count.map_err(|error| error.inside(name))?;
        reader.blob(name, start, count, Form::Bytes).map(|bytes| Self(Cow::Borrowed(bytes)))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.0.len() > MAX {
            return Err(Error::limit("bytes of this field", MAX as u64, self.0.len() as u64));
        }
        let length = writer.reserve::<4>();
        writer.bytes(&self.0);
        writer.patch_length(length)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        json.bytes().map(Self::new)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(MAX as u64);
        Self::new(sampler.bytes(length))
    }

    fn into_owned(self) -> Self::Owned {
        Bytes32(Cow::Owned(self.0.into_owned()))
    }
}

/// At most `MAX` elements after a `u32` count.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct List32<E, const MAX: usize>(pub Vec<E>);

impl<E, const MAX: usize> core::ops::Deref for List32<E, MAX> {
    type Target = Vec<E>;

    fn deref(&self) -> &Vec<E> {
        &self.0
    }
}

impl<E, const MAX: usize> From<Vec<E>> for List32<E, MAX> {
    fn from(elements: Vec<E>) -> Self {
        Self(elements)
    }
}

impl<'d, E: Field<'d>, const MAX: usize> Field<'d> for List32<E, MAX> {
    type Owned = List32<E::Owned, MAX>;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("u32 count, {}[..{MAX}]", E::layout()))
    }

    fn shape() -> Shape {
        Shape::List(4, Box::new(E::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let count = count32(reader, MAX, "elements of this field")?;
            // In a stream, reading elements is only worthwhile once all of them can have arrived.
            let least = count.saturating_mul(E::LEAST);
            if reader.remaining() < least {
                let error = Error::incomplete(least, reader.remaining());
                return Err(error.at(reader.position() as u64));
            }
            let room = reader.capacity(count as u64, MAX as u64, E::LEAST)?;
            let mut elements = Vec::with_capacity(room);
            for index in 0..count {
                elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
            }
            Ok(Self(elements))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let count = u32::try_from(self.0.len()).ok().filter(|_| self.0.len() <= MAX);
        let Some(count) = count else {
            let asked = self.0.len() as u64;
            return Err(Error::limit("elements of this field", MAX as u64, asked));
        };
        writer.u32(count);
        encode_list(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        list_from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length((MAX as u64).min(6));
        Self((0..count).map(|_| E::sample(sampler)).collect())
    }

    fn into_owned(self) -> Self::Owned {
        List32(self.0.into_iter().map(E::into_owned).collect())
    }
}

/// Elements up to the end of the current part, without a count.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Rest<E>(pub Vec<E>);

impl<'d, E: Field<'d>> Rest<E> {
    /// Reads the elements into the current scope.
    ///
    /// # Errors
    /// Those of the elements; the limit on elements that take no bytes.
    pub fn decode_items<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let mut elements = Vec::new();
        while reader.remaining() > 0 {
            let (index, left) = (elements.len(), reader.remaining());
            elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
            if reader.remaining() == left {
                // The loop would never end.
                let error = Error::malformed("an element of at least one byte", "an empty one");
                return Err(reader.place_error(error).inside_item(index));
            }
        }
        Ok(Self(elements))
    }
}

impl<'d, E: Field<'d>> Field<'d> for Rest<E> {
    type Owned = Rest<E::Owned>;
    const LEAST: usize = 0;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("{}[to the end]", E::layout()))
    }

    fn shape() -> Shape {
        Shape::Rest(Box::new(E::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, Self::decode_items)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        list_from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4);
        Self((0..count).map(|_| E::sample(sampler)).collect())
    }

    fn into_owned(self) -> Self::Owned {
        Rest(self.0.into_iter().map(E::into_owned).collect())
    }
}

/// Encodes elements one after another, without a count.
// Inlined into the encoder of all messages, the loop runs out of registers and takes a third longer.
#[inline(never)]
pub fn encode_list<'d, E: Field<'d>>(elements: &[E], writer: &mut Writer) -> Result<()> {
    elements.iter().enumerate().try_for_each(|(index, element)| {
        element.encode(writer).map_err(|error| error.inside_item(index))
    })
}

/// The elements of a JSON array.
pub fn list_from_json<'d, E: Field<'d>>(json: Given<'_>) -> Result<Vec<E>> {
    let Json::Array(items) = json.json() else {
        return Err(json::expected("an array", &json));
    };
    let item = |(index, item)| {
        E::from_json(json.at(item)).map_err(|error: Error| error.inside_item(index))
    };
    items.iter().enumerate().map(item).collect()
}
