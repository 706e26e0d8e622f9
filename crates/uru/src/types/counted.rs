//! Bytes and lists whose counts are signed or not 32 bits wide, and the remaining bytes of a part.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{
    Error, Field, Form, Reader, Result, Sampler, Shape, Trace, Writer, encode_list, list_from_json,
};

/// Bytes with a `u16` count.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes16<'d>(Cow<'d, [u8]>);

impl<'d> Bytes16<'d> {
    /// Wraps bytes; encoding fails if there are more than 65,535 of them.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Bytes16<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Bytes16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes16({} bytes)", self.0.len())
    }
}

impl<'d> Field<'d> for Bytes16<'d> {
    type Owned = Bytes16<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, bytes")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Bytes, count: 2, unit: 1, end: 0 }
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = reader.take_array().map(u16::from_le_bytes);
        let count = count.map_err(|error| error.inside(name))?;
        reader.blob(name, start, usize::from(count), Form::Bytes).map(Self::new)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_counted(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        json.bytes().map(Self::new)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(64);
        Self::new(sampler.bytes(length))
    }

    fn into_owned(self) -> Self::Owned {
        Bytes16(Cow::Owned(self.0.into_owned()))
    }
}

/// Reads a `u16` count and that many bytes without tracing them.
pub(crate) fn take_counted<'d, T>(reader: &mut Reader<'d, T>) -> Result<&'d [u8]> {
    let count = u16::from_le_bytes(reader.take_array()?);
    reader.take(usize::from(count))
}

/// Writes a `u16` count and the bytes; more than 65,535 bytes are an error.
pub(crate) fn encode_counted(bytes: &[u8], writer: &mut Writer) -> Result<()> {
    let count = u16::try_from(bytes.len()).map_err(|_| {
        Error::limit("bytes with a 16-bit count", u16::MAX.into(), bytes.len() as u64)
    })?;
    writer.u16(count);
    writer.bytes(bytes);
    Ok(())
}

/// The count that precedes a [`List`].
pub trait Count: Clone + PartialEq {
    /// The layout as shown in the documentation.
    const LAYOUT: &'static str;

    /// Reads the count without tracing it.
    fn take<T>(reader: &mut Reader<'_, T>) -> Result<usize>;

    /// Writes the count.
    fn write(count: usize, writer: &mut Writer) -> Result<()>;
}

macro_rules! counts {
    ($($type:ident)*) => {$(
        impl Count for $type {
            const LAYOUT: &'static str = concat!(stringify!($type), " count");

            fn take<T>(reader: &mut Reader<'_, T>) -> Result<usize> {
                let at = reader.position() as u64;
                let count = $type::from_le_bytes(reader.take_array()?);
                usize::try_from(count).map_err(|_| {
                    Error::malformed("a count that is not negative", count.to_string()).at(at)
                })
            }

            fn write(count: usize, writer: &mut Writer) -> Result<()> {
                let small = $type::try_from(count).map_err(|_| {
                    let max = u64::try_from($type::MAX).unwrap_or(u64::MAX);
                    Error::limit("elements of this field", max, count as u64)
                })?;
                writer.$type(small);
                Ok(())
            }
        }
    )*};
}

counts! { u8 u16 u32 i16 i32 }

/// The maximum number of elements in a [`List`]. Real messages have at most a few hundred. The
/// bound matters because a null object takes one byte on the wire but many in memory.
const MAX_ELEMENTS: u64 = u16::MAX as u64;

/// A count of type `C` and that many elements: at least `MIN`, at most 65,535.
#[derive(Clone, PartialEq)]
pub struct List<C, E, const MIN: usize = 0> {
    elements: Vec<E>,
    count: PhantomData<fn() -> C>,
}

impl<C: Count, E, const MIN: usize> List<C, E, MIN> {
    /// Reads the count without tracing it, and checks it against the remaining bytes: each element
    /// takes at least `least`.
    pub(crate) fn take_count<T>(reader: &mut Reader<'_, T>, least: usize) -> Result<usize> {
        let at = reader.position() as u64;
        let count = C::take(reader)?;
        let max = reader.limits().elements.min(MAX_ELEMENTS);
        if count as u64 > max {
            return Err(Error::limit("elements of this field", max, count as u64).at(at));
        }
        if count < MIN {
            let wanted = format!("a count of at least {MIN}");
            return Err(Error::malformed(wanted, count.to_string()).at(at));
        }
        let bytes = count.saturating_mul(least);
        if reader.remaining() < bytes {
            let error = Error::incomplete(bytes, reader.remaining());
            return Err(error.at(reader.position() as u64));
        }
        Ok(count)
    }
}

impl<C, E, const MIN: usize> Deref for List<C, E, MIN> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        &self.elements
    }
}

/// Accepts any number of elements; encoding fails if there are too few or too many.
impl<C, E, const MIN: usize> From<Vec<E>> for List<C, E, MIN> {
    fn from(elements: Vec<E>) -> Self {
        Self { elements, count: PhantomData }
    }
}

impl<C, E, const MIN: usize> From<List<C, E, MIN>> for Vec<E> {
    fn from(list: List<C, E, MIN>) -> Self {
        list.elements
    }
}

impl<C, E, const MIN: usize> Default for List<C, E, MIN> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<C, E: fmt::Debug, const MIN: usize> fmt::Debug for List<C, E, MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.elements, f)
    }
}

impl<'d, C: Count + 'static, E: Field<'d>, const MIN: usize> Field<'d> for List<C, E, MIN> {
    type Owned = List<C, E::Owned, MIN>;
    const LEAST: usize = size_of::<C>() + MIN * E::LEAST;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("{}, {}[]", C::LAYOUT, E::layout()))
    }

    fn shape() -> Shape {
        Shape::List(size_of::<C>(), Box::new(E::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let count = Self::take_count(reader, E::LEAST)?;
            let room = reader.capacity(count as u64, u64::MAX, E::LEAST)?;
            let mut elements = Vec::with_capacity(room);
            for index in 0..count {
                elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
            }
            Ok(elements.into())
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.len() < MIN {
            let wanted = format!("at least {MIN} elements");
            return Err(Error::value(wanted, self.len().to_string()));
        }
        if self.len() as u64 > MAX_ELEMENTS {
            let error = Error::limit("elements of this field", MAX_ELEMENTS, self.len() as u64);
            return Err(error);
        }
        C::write(self.len(), writer)?;
        encode_list(self, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        list_from_json(json).map(Self::from)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4).max(MIN);
        (0..count).map(|_| E::sample(sampler)).collect::<Vec<_>>().into()
    }

    fn into_owned(self) -> Self::Owned {
        self.elements.into_iter().map(E::into_owned).collect::<Vec<_>>().into()
    }
}

/// All remaining bytes of the enclosing part, for content without a known layout.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Tail<'d>(Cow<'d, [u8]>);

impl<'d> Tail<'d> {
    /// Wraps bytes.
    pub fn new(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Tail<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tail({} bytes)", self.0.len())
    }
}

impl<'d> Field<'d> for Tail<'d> {
    type Owned = Tail<'static>;
    const LEAST: usize = 0;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("bytes to the end")
    }

    fn shape() -> Shape {
        Shape::Tail
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let left = reader.remaining();
        reader.bytes(name, left).map(Self::new)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        json.bytes().map(Self::new)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(16);
        Self::new(sampler.bytes(length))
    }

    fn into_owned(self) -> Self::Owned {
        Tail(Cow::Owned(self.0.into_owned()))
    }
}
