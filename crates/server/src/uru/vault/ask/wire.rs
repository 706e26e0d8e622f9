//! The encoding of requests and their replies for another process.
//!
//! | type | encoding |
//! | --- | --- |
//! | numbers, UUIDs and other protocol types | as in the game's protocols |
//! | `bool` | `u8`, 0 or 1 |
//! | [`Option`] | `u8`, 0 for `None`; 1 and the value |
//! | [`String`] | `u32` size in bytes, UTF-8 |
//! | lists | `u32` count, elements |
//! | sets and maps | as lists, in strictly ascending order |
//! | structs and tuples | field after field |
//! | enums | `u8` number of the variant, its fields |
//! | addresses | `u8`, 4 or 6; the address in network byte order |
//!
//! No type contains itself, so values cannot nest deeply. A list takes memory only for elements
//! that have been read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use worldwire_core::{Error, Field, Reader, Result, Sampler, Writer};
use worldwire_uru::games::GameText;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::message::{AccountFlags, NodeRef};
use worldwire_uru::types::{NetError, Uoid, Uuid};

/// The maximum number of elements for which memory is reserved before they are read.
const MAX_ROOM: usize = 1_024;

/// A type of request, reply, or field.
pub(crate) trait Wire: Sized + PartialEq + fmt::Debug {
    /// The minimum size of a value in bytes. Elements of lists take at least one byte.
    const LEAST: usize;

    /// Writes the value. Fails if it is too large for the format.
    fn encode(&self, writer: &mut Writer) -> Result<()>;

    /// Reads a value; the exact inverse of [`encode`](Self::encode).
    fn decode(reader: &mut Reader<'_>) -> Result<Self>;

    /// Generates a value for tests.
    #[cfg_attr(not(any(test, feature = "fuzzing")), allow(dead_code, reason = "for tests"))]
    fn sample(sampler: &mut Sampler) -> Self;

    /// Writes the elements of a list.
    fn encode_items(items: &[Self], writer: &mut Writer) -> Result<()> {
        items.iter().enumerate().try_for_each(|(index, item)| {
            item.encode(writer).map_err(|error| error.inside_item(index))
        })
    }

    /// Reads the elements of a list.
    fn decode_items(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>> {
        // Memory for more elements is reserved only once these have been read.
        let room = reader.capacity(count as u64, u64::MAX, Self::LEAST)?.min(MAX_ROOM);
        let mut items = Vec::with_capacity(room);
        for index in 0..count {
            items.push(reader.item(index, Self::decode)?);
        }
        Ok(items)
    }
}

/// The encoding of a value. Fails if the value is too large for the format.
pub(crate) fn encoded(value: &impl Wire) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

/// Decodes the value at the beginning of these bytes. Later versions may append fields, which are
/// ignored.
pub(crate) fn decoded<W: Wire>(bytes: &[u8]) -> Result<W> {
    W::decode(&mut Reader::new(bytes)).map_err(Error::closed)
}

/// Implements [`Wire`] for a struct, field by field.
macro_rules! wire_struct {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        impl $crate::uru::vault::ask::Wire for $name {
            const LEAST: usize = 0 $(+ <$type as $crate::uru::vault::ask::Wire>::LEAST)*;

            fn encode(&self, writer: &mut ::worldwire_core::Writer) -> ::worldwire_core::Result<()> {
                let Self { $($field),* } = self;
                let _ = &writer;
                $(
                    $crate::uru::vault::ask::Wire::encode($field, writer)
                        .map_err(|error| error.inside(stringify!($field)))?;
                )*
                Ok(())
            }

            fn decode(
                reader: &mut ::worldwire_core::Reader<'_>,
            ) -> ::worldwire_core::Result<Self> {
                let _ = &reader;
                $(
                    let $field = <$type as $crate::uru::vault::ask::Wire>::decode(reader)
                        .map_err(|error| error.inside(stringify!($field)))?;
                )*
                Ok(Self { $($field),* })
            }

            fn sample(sampler: &mut ::worldwire_core::Sampler) -> Self {
                let _ = &sampler;
                $(
                    let $field = <$type as $crate::uru::vault::ask::Wire>::sample(sampler);
                )*
                Self { $($field),* }
            }
        }
    };
}
pub(crate) use wire_struct;

/// Implements [`Wire`] for an enum, whose variants are numbered from 0.
macro_rules! wire_variants {
    ($name:ident {
        $($number:literal $variant:ident $({ $($field:ident: $type:ty),* $(,)? })?,)*
    }) => {
        impl Wire for $name {
            const LEAST: usize = 1;

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$variant $({ $($field),* })? => {
                        writer.u8($number);
                        $($(
                            Wire::encode($field, writer)
                                .map_err(|error| error.inside(stringify!($field)))?;
                        )*)?
                    })*
                }
                Ok(())
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self> {
                let at = reader.position() as u64;
                match reader.u8("")? {
                    $($number => {
                        $($(
                            let $field = <$type as Wire>::decode(reader)
                                .map_err(|error| error.inside(stringify!($field)))?;
                        )*)?
                        Ok(Self::$variant $({ $($field),* })?)
                    })*
                    number => Err(unknown(stringify!($name), number, at)),
                }
            }

            fn sample(sampler: &mut Sampler) -> Self {
                let variants: &[fn(&mut Sampler) -> Self] = &[$(|sampler| {
                    let _ = &sampler;
                    Self::$variant $({ $($field: <$type as Wire>::sample(sampler)),* })?
                }),*];
                let number = usize::try_from(sampler.below(variants.len() as u64));
                variants[number.unwrap_or_default()](sampler)
            }
        }
    };
}
pub(crate) use wire_variants;

/// The error for a variant that the enum does not have.
#[cold]
pub(crate) fn unknown(name: &'static str, number: u8, at: u64) -> Error {
    Error::malformed(format!("the number of a {name}"), number.to_string()).at(at)
}

/// Types that are encoded as in the game's protocols.
macro_rules! fields {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            const LEAST: usize = <Self as Field<'static>>::LEAST;

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                Field::encode(self, writer)
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self> {
                Field::decode(reader, "")
            }

            fn sample(sampler: &mut Sampler) -> Self {
                Field::sample(sampler)
            }
        }
    )*};
}

fields! { u32, u64, i32, Uuid, NetError, AccountFlags, NodeRef, MarkerGameType }

impl<const N: usize> Wire for [u8; N] {
    const LEAST: usize = N;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(self);
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.take_array()
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Field::sample(sampler)
    }
}

/// Lists of bytes are copied in one step.
impl Wire for u8 {
    const LEAST: usize = 1;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(*self);
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.u8("")
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Field::sample(sampler)
    }

    fn encode_items(items: &[Self], writer: &mut Writer) -> Result<()> {
        writer.bytes(items);
        Ok(())
    }

    fn decode_items(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>> {
        Ok(reader.take(count)?.to_vec())
    }
}

/// Only finite numbers are valid, because the numbers are positions.
impl Wire for f64 {
    const LEAST: usize = 8;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.f64(*self);
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let at = reader.position() as u64;
        let number = reader.f64("")?;
        match number.is_finite() {
            true => Ok(number),
            false => Err(Error::malformed("a finite number", number.to_string()).at(at)),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::from(<i32 as Wire>::sample(sampler)) / 8.0
    }
}

impl<const N: usize> Wire for [f64; N] {
    const LEAST: usize = N * 8;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        Wire::encode_items(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let mut numbers = [0.0; N];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = reader.item(index, Wire::decode)?;
        }
        Ok(numbers)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        std::array::from_fn(|_| Wire::sample(sampler))
    }
}

impl Wire for () {
    const LEAST: usize = 0;

    fn encode(&self, _: &mut Writer) -> Result<()> {
        Ok(())
    }

    fn decode(_: &mut Reader<'_>) -> Result<Self> {
        Ok(())
    }

    fn sample(_: &mut Sampler) -> Self {}
}

impl Wire for bool {
    const LEAST: usize = 1;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8((*self).into());
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let at = reader.position() as u64;
        match reader.u8("")? {
            0 => Ok(false),
            1 => Ok(true),
            number => Err(Error::malformed("0 or 1", number.to_string()).at(at)),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        sampler.below(2) == 1
    }
}

impl<W: Wire> Wire for Option<W> {
    const LEAST: usize = 1;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.is_some().encode(writer)?;
        self.as_ref().map_or(Ok(()), |value| value.encode(writer))
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        bool::decode(reader)?.then(|| W::decode(reader)).transpose()
    }

    fn sample(sampler: &mut Sampler) -> Self {
        bool::sample(sampler).then(|| W::sample(sampler))
    }
}

impl<W: Wire> Wire for Box<W> {
    const LEAST: usize = W::LEAST;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        W::encode(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        W::decode(reader).map(Self::new)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self::new(W::sample(sampler))
    }
}

impl Wire for String {
    const LEAST: usize = 4;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(self.as_bytes(), writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let count = decode_count(reader)?;
        let at = reader.position() as u64;
        match std::str::from_utf8(reader.take(count)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let at = at + error.valid_up_to() as u64;
                Err(Error::malformed("UTF-8", "other bytes").at(at))
            }
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        sampler.text(u64::MAX)
    }
}

impl<W: Wire> Wire for Vec<W> {
    const LEAST: usize = 4;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let count = decode_count(reader)?;
        W::decode_items(count, reader)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        (0..sampler.length(6)).map(|_| W::sample(sampler)).collect()
    }
}

impl<W: Wire> Wire for Arc<[W]> {
    const LEAST: usize = 4;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        Vec::<W>::decode(reader).map(Self::from)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Vec::<W>::sample(sampler).into()
    }
}

impl<W: Wire + Ord> Wire for BTreeSet<W> {
    const LEAST: usize = 4;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_count(self.len(), writer)?;
        self.iter().try_for_each(|item| item.encode(writer))
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let items: Vec<W> = Wire::decode(reader)?;
        match items.is_sorted_by(|one, next| one < next) {
            true => Ok(items.into_iter().collect()),
            false => Err(reader.place_error(not_ascending())),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Vec::<W>::sample(sampler).into_iter().collect()
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    const LEAST: usize = 4;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_count(self.len(), writer)?;
        self.iter().try_for_each(|(key, value)| {
            key.encode(writer)?;
            value.encode(writer)
        })
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let items: Vec<(K, V)> = Wire::decode(reader)?;
        match items.is_sorted_by(|one, next| one.0 < next.0) {
            true => Ok(items.into_iter().collect()),
            false => Err(reader.place_error(not_ascending())),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Vec::<(K, V)>::sample(sampler).into_iter().collect()
    }
}

macro_rules! tuples {
    ($($first:ident $second:ident $($third:ident)?;)*) => {$(
        #[allow(non_snake_case, reason = "each value has the name of its type")]
        impl<$first: Wire, $second: Wire $(, $third: Wire)?> Wire for ($first, $second $(, $third)?) {
            const LEAST: usize = $first::LEAST + $second::LEAST $(+ $third::LEAST)?;

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                let ($first, $second $(, $third)?) = self;
                $first.encode(writer)?;
                $second.encode(writer)?;
                $($third.encode(writer)?;)?
                Ok(())
            }

            fn decode(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(($first::decode(reader)?, $second::decode(reader)? $(, $third::decode(reader)?)?))
            }

            fn sample(sampler: &mut Sampler) -> Self {
                ($first::sample(sampler), $second::sample(sampler) $(, $third::sample(sampler))?)
            }
        }
    )*};
}

tuples! {
    A B;
    A B C;
}

impl Wire for IpAddr {
    const LEAST: usize = 5;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::V4(address) => {
                writer.u8(4);
                writer.bytes(&address.octets());
            }
            Self::V6(address) => {
                writer.u8(6);
                writer.bytes(&address.octets());
            }
        }
        Ok(())
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let at = reader.position() as u64;
        match reader.u8("")? {
            4 => Ok(Ipv4Addr::from(reader.take_array::<4>()?).into()),
            6 => Ok(Ipv6Addr::from(reader.take_array::<16>()?).into()),
            number => Err(Error::malformed("4 or 6", number.to_string()).at(at)),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        match bool::sample(sampler) {
            true => Ipv4Addr::from(<[u8; 4] as Wire>::sample(sampler)).into(),
            false => Ipv6Addr::from(<[u8; 16] as Wire>::sample(sampler)).into(),
        }
    }
}

impl Wire for Uoid<'static> {
    const LEAST: usize = <Self as Field<'static>>::LEAST;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        Field::encode(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        <Uoid<'_> as Field<'_>>::decode(reader, "").map(Field::into_owned)
    }

    /// Generates a value in the form in which decoding returns it, because some names that do not
    /// begin with ASCII change.
    fn sample(sampler: &mut Sampler) -> Self {
        let made: Self = Field::sample(sampler);
        encoded(&made).and_then(|bytes| decoded(&bytes)).unwrap_or(made)
    }
}

impl<const N: usize> Wire for GameText<'static, N> {
    const LEAST: usize = <Self as Field<'static>>::LEAST;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        Field::encode(self, writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        <GameText<'_, N> as Field<'_>>::decode(reader, "").map(Field::into_owned)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Field::sample(sampler)
    }
}

fn encode_list<W: Wire>(items: &[W], writer: &mut Writer) -> Result<()> {
    encode_count(items.len(), writer)?;
    W::encode_items(items, writer)
}

fn encode_count(count: usize, writer: &mut Writer) -> Result<()> {
    let limit = || Error::limit("elements", u32::MAX.into(), count as u64);
    writer.u32(u32::try_from(count).map_err(|_| limit())?);
    Ok(())
}

fn decode_count(reader: &mut Reader<'_>) -> Result<usize> {
    reader.take_array().map(|bytes| u32::from_le_bytes(bytes) as usize)
}

#[cold]
fn not_ascending() -> Error {
    Error::malformed("elements in ascending order", "a different order")
}
