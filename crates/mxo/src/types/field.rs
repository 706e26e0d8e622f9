//! Field types of login messages and RPC messages, except texts.
//!
//! | type | bytes | JSON |
//! | --- | --- | --- |
//! | [`Bytes16`] | `u16` count, bytes | bytes |
//! | [`List8`], [`List16`] | `u8` or `u16` count, elements | a list |
//! | [`Array`] | a fixed number of elements | a list |
//! | [`BigU16`] | `u16`, big-endian | a number |
//! | [`Secret`] | those of the type inside; `Debug` does not show them | that of the type inside |

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{
    Error, Field, Form, Reader, Result, Sampler, Shape, Trace, Value, Writer, encode_list,
    list_from_json,
};
use zeroize::Zeroizing;

/// Bytes prefixed by a `u16` count.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Bytes16<'d>(pub Cow<'d, [u8]>);

impl fmt::Debug for Bytes16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes16({} bytes)", self.0.len())
    }
}

impl<'d> Field<'d> for Bytes16<'d> {
    type Owned = Bytes16<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 count, u8[]")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Bytes, count: 2, unit: 1, end: 0 }
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = reader.take_array().map_err(|error| error.inside(name))?;
        let count = u16::from_le_bytes(count).into();
        reader.blob(name, start, count, Form::Bytes).map(|bytes| Self(bytes.into()))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u16(count_of::<u16>(self.0.len(), "bytes of this field")?);
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        json.bytes().map(|bytes| Self(bytes.into()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(24);
        Self(sampler.bytes(length).into())
    }

    fn into_owned(self) -> Self::Owned {
        Bytes16(Cow::Owned(self.0.into_owned()))
    }
}

macro_rules! lists {
    ($($(#[doc = $doc:literal])* $name:ident $count:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Default)]
        pub struct $name<E>(pub Vec<E>);

        impl<'d, E: Field<'d>> Field<'d> for $name<E> {
            type Owned = $name<E::Owned>;
            const LEAST: usize = size_of::<$count>();

            fn layout() -> Cow<'static, str> {
                Cow::Owned(format!(concat!(stringify!($count), " count, {}[]"), E::layout()))
            }

            fn shape() -> Shape {
                Shape::List(size_of::<$count>(), Box::new(E::shape()))
            }

            fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
                reader.list(name, |reader| {
                    let count = $count::from_le_bytes(reader.take_array()?);
                    let room = reader.capacity(count.into(), $count::MAX.into(), E::LEAST)?;
                    let mut elements = Vec::with_capacity(room);
                    for index in 0..usize::from(count) {
                        elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
                    }
                    Ok(Self(elements))
                })
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.$count(count_of::<$count>(self.0.len(), "elements of this field")?);
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
                $name(self.0.into_iter().map(E::into_owned).collect())
            }
        }
    )*};
}

lists! {
    /// Elements prefixed by a `u8` count.
    List8 u8;
    /// Elements prefixed by a `u16` count.
    List16 u16;
}

/// Exactly `N` elements, without a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<E, const N: usize>(pub [E; N]);

impl<'d, E: Field<'d, Owned = E> + Copy + Default + 'static, const N: usize> Field<'d>
    for Array<E, N>
{
    type Owned = Self;
    const LEAST: usize = E::LEAST * N;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("{}[{N}]", E::layout()))
    }

    fn shape() -> Shape {
        Shape::Array(N, Box::new(E::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut elements = [E::default(); N];
            for (index, element) in elements.iter_mut().enumerate() {
                *element = reader.item(index, |reader| E::decode(reader, ""))?;
            }
            Ok(Self(elements))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let elements = list_from_json::<E>(json)?;
        let found = elements.len();
        let elements = elements.try_into();
        elements.map(Self).map_err(|_| Error::value(format!("{N} elements"), found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| E::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// A big-endian `u16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BigU16(pub u16);

impl<'d> Field<'d> for BigU16 {
    type Owned = Self;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16, big-endian")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.shown(
            name,
            |reader| reader.take_array().map(u16::from_be_bytes).map(Self),
            |number| Value::Unsigned(number.0.into()),
        )
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.0.to_be_bytes());
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        json::integer(&json, "a whole number from 0 to 65535").map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u16::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// A key or password: a field that `Debug` does not show. Traces do show it, because their readers
/// hold the keys.
#[derive(Clone, PartialEq)]
pub struct Secret<F>(pub F);

impl<F> fmt::Debug for Secret<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl<'d, F: Field<'d>> Field<'d> for Secret<F> {
    type Owned = Secret<F::Owned>;
    const LEAST: usize = F::LEAST;

    fn layout() -> Cow<'static, str> {
        F::layout()
    }

    fn shape() -> Shape {
        F::shape()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        F::decode(reader, name).map(Self)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        F::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(F::sample(sampler))
    }

    fn into_owned(self) -> Self::Owned {
        Secret(self.0.into_owned())
    }
}

/// Encodes plaintext, such as the contents of a blob, in memory that is wiped.
pub(crate) fn wiped<'d, F: Field<'d>>(value: &F) -> Result<Zeroizing<Vec<u8>>> {
    // Large enough for any login, so that the buffer never grows and leaves a copy behind.
    let mut writer = Writer::append_to(Vec::with_capacity(512));
    value.encode(&mut writer)?;
    Ok(Zeroizing::new(writer.into_bytes()))
}

fn count_of<N: TryFrom<usize>>(count: usize, limit: &'static str) -> Result<N> {
    let most = (1_u64 << (8 * size_of::<N>())) - 1;
    N::try_from(count).map_err(|_| Error::limit(limit, most, count as u64))
}
