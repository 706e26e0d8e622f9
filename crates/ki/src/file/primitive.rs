//! The building blocks of the client's own files: counted texts, vectors, one-byte booleans.
//!
//! All of them are little-endian and unaligned.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::text::byte_count;
use worldwire_core::{
    Error, Field, List32, Reader, Result, Sampler, Trace, Value, Writer, list_from_json, scalar,
};

use crate::types::Counted;

/// A list preceded by its `u32` count, bounded by the available bytes and the limit on elements.
pub type Many<E> = List32<E, { u32::MAX as usize }>;

/// UTF-8 preceded by a `u32` count of bytes. Bytes that are not UTF-8 are kept, and displayed in
/// hexadecimal.
pub type Text<'d> = Counted<'d, 4>;

/// Three `f32`: x, y, z, with z up. Two vectors are equal if their bits are.
#[derive(Clone, Copy, Default)]
pub struct Vector3(pub [f32; 3]);

impl Vector3 {
    /// Whether all coordinates are finite.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.0.iter().all(|part| part.is_finite())
    }

    /// The distance to another point.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        let parts = self.0.iter().zip(other.0);
        parts.map(|(a, b)| (f64::from(*a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
    }
}

impl PartialEq for Vector3 {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(f32::to_bits) == other.0.map(f32::to_bits)
    }
}

impl Eq for Vector3 {}

impl fmt::Debug for Vector3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'d> Field<'d> for Vector3 {
    type Owned = Self;
    const LEAST: usize = 12;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("f32[3]")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        if !T::ON && reader.remaining() >= Self::LEAST {
            // Decodes all three at once, because meshes consist mostly of vectors.
            let bytes: [u8; 12] = reader.take_array().map_err(|error| error.inside(name))?;
            let [x, y, z] = *bytes.as_chunks::<4>().0 else {
                return Err(Error::malformed("three numbers", "fewer"));
            };
            return Ok(Self([x, y, z].map(f32::from_le_bytes)));
        }
        reader.list(name, |reader| {
            let mut parts = [0.0; 3];
            for (index, part) in parts.iter_mut().enumerate() {
                *part = reader.item(index, |reader| reader.f32(""))?;
            }
            Ok(Self(parts))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.iter().for_each(|part| writer.f32(*part));
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let parts = list_from_json::<worldwire_core::Float>(json)?;
        match parts[..] {
            [x, y, z] => Ok(Self([x.0, y.0, z.0])),
            _ => Err(Error::value("3 numbers", parts.len().to_string())),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| worldwire_core::Float::sample(sampler).0))
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// Nine `f32`: three rows of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix3(pub [Vector3; 3]);

#[cfg(test)]
impl Matrix3 {
    /// The identity matrix.
    pub(crate) const IDENTITY: Self =
        Self([Vector3([1.0, 0.0, 0.0]), Vector3([0.0, 1.0, 0.0]), Vector3([0.0, 0.0, 1.0])]);
}

impl<'d> Field<'d> for Matrix3 {
    type Owned = Self;
    const LEAST: usize = 36;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("f32[3][3]")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut rows = [Vector3::default(); 3];
            for (index, row) in rows.iter_mut().enumerate() {
                *row = reader.item(index, |reader| Vector3::decode(reader, ""))?;
            }
            Ok(Self(rows))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.iter().try_for_each(|row| row.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let rows = list_from_json::<Vector3>(json)?;
        let found = rows.len();
        let rows = rows.try_into();
        rows.map(Self).map_err(|_| Error::value("3 rows", found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| Vector3::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}

/// A one-byte boolean. Everything except 0 is true. A byte other than 0 and 1 is kept and displayed
/// as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ByteBool(pub u8);

impl ByteBool {
    /// Whether the byte means true.
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.0 != 0
    }

    /// Whether the byte is 0 or 1.
    #[must_use]
    pub const fn is_plain(self) -> bool {
        self.0 < 2
    }
}

impl From<bool> for ByteBool {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl<'d> Field<'d> for ByteBool {
    type Owned = Self;
    const LEAST: usize = 1;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u8, 0 or 1")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let read = |reader: &mut Reader<'d, T>| reader.take_array::<1>().map(|[byte]| Self(byte));
        reader.shown(name, read, |value| match value.0 {
            0 | 1 => Value::Bool(value.is_true()),
            other => Value::Unsigned(other.into()),
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        match json.json() {
            Json::Bool(value) => Ok((*value).into()),
            other => json::integer(other, "true, false or a byte").map(Self),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u8::try_from(sampler.below(3)).unwrap_or(0))
    }

    fn into_owned(self) -> Self {
        self
    }
}

scalar! {
    /// The string ID of a zone's name ([`string_id`](crate::string_id)).
    pub struct ZoneKey(u32) as Hex;
}

/// The warning about text that is not UTF-8.
pub(super) fn not_utf8(what: impl fmt::Display, text: &Text<'_>) -> Option<String> {
    text.as_text().is_none().then(|| format!("{what} is not UTF-8: {}", shown(text)))
}

/// Messages quote at most this many characters of text.
const MAX_SHOWN: usize = 80;

/// Text as messages quote it, truncated if it is too long.
pub(super) fn shown(text: &Text<'_>) -> String {
    shortened(&super::table::shown(text.as_bytes()))
}

/// Text in quotes, truncated if it is too long.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// Warnings beyond this number are only counted.
const MAX_WARNINGS: usize = 1000;

/// Collects the first warnings, and the number of further ones: in a hostile file, every element
/// can cause one.
pub(super) fn collect_warnings(mut warnings: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = warnings.by_ref().take(MAX_WARNINGS).collect();
    let more = warnings.count();
    if more > 0 {
        kept.push(format!("{more} more warnings omitted"));
    }
    kept
}

/// Turns the first warning into an error.
pub(super) fn refuse_warnings(mut warnings: impl Iterator<Item = String>) -> Result<()> {
    match warnings.next() {
        None => Ok(()),
        Some(warning) => Err(Error::malformed("", warning)),
    }
}

/// The warning about bytes left at the end of a file.
pub(super) fn left_over(reader: &Reader<'_>) -> Option<String> {
    let left = reader.remaining();
    let at = reader.position();
    let verb = if left == 1 { "follows" } else { "follow" };
    (left > 0).then(|| format!("{} {verb} the end, at byte {at}", byte_count(left as u64)))
}
