//! Field types of the login.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Value, Writer};

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

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let count = reader.take_array().map_err(|error| error.inside(name))?;
        let count = u16::from_le_bytes(count).into();
        reader.blob(name, start, count, Form::Bytes).map(|bytes| Self(bytes.into()))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = self.0.len();
        let Ok(count) = u16::try_from(length) else {
            return Err(Error::limit("bytes of this field", u16::MAX.into(), length as u64));
        };
        writer.u16(count);
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
