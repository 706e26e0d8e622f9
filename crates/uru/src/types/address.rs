//! Identifiers and addresses.

use core::fmt;
use std::borrow::Cow;
use std::net::Ipv4Addr;

use worldwire_core::json::{self, Json};
use worldwire_core::value::{guid_text, parse_guid};
use worldwire_core::{Field, Form, Reader, Result, Sampler, Trace, Writer};

/// A UUID in Microsoft byte order: first `u32`, then two `u16`, all little-endian, then 8 bytes as
/// they are. `12345678-1234-5678-1234-567812345678` is `78563412 3412 7856 1234567812345678`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The identifier that stands for "none".
    pub const ZERO: Self = Self([0; 16]);

    /// Reads the usual spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse_guid(text).map(Self)
    }

    /// Whether it stands for "none".
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&guid_text(&self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'d> Field<'d> for Uuid {
    type Owned = Self;
    const LEAST: usize = 16;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("uuid")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let bytes = reader.take_array().map_err(|error| error.inside(name))?;
        let span = reader.span_behind(Form::Guid, 16);
        reader.leaf_from(name, start, span);
        Ok(Self(bytes))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: &Json) -> Result<Self> {
        json.as_str().and_then(Self::parse).ok_or_else(|| {
            json::expected("a UUID such as 12345678-1234-5678-1234-567812345678", json)
        })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        if sampler.below(4) == 0 { Self::ZERO } else { Self(Field::sample(sampler)) }
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// An IPv4 address as the protocol sends it: a little-endian `u32` whose most significant byte is
/// the first dotted octet. 184.73.198.22 is `16 c6 49 b8`. Nothing but IPv4 can be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4(pub Ipv4Addr);

impl<'d> Field<'d> for Ipv4 {
    type Owned = Self;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("ipv4")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let bytes = reader.take_array().map_err(|error| error.inside(name))?;
        let span = reader.span_behind(Form::Ipv4, 4);
        reader.leaf_from(name, start, span);
        Ok(Self(Ipv4Addr::from(u32::from_le_bytes(bytes))))
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u32(u32::from(self.0));
        Ok(())
    }

    fn from_json(json: &Json) -> Result<Self> {
        json.as_str()
            .and_then(|text| text.parse().ok())
            .map(Self)
            .ok_or_else(|| json::expected("an IPv4 address such as 127.0.0.1", json))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(Ipv4Addr::from(u32::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}
