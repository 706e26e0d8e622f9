//! The stream block: what net messages carry, often deflated.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, Form, Limits, Place, Reader, Result, Sampler, Trace, Value, Writer, wire_enum,
};

use crate::inflate::{self, Inflater, MAX_INFLATED};
use crate::walk::{Guard, Walk, WalkResult};

wire_enum! {
    /// How a stream block is compressed.
    pub enum Compression(u8) {
        /// Not at all: 255 bytes or fewer.
        None = 0,
        /// Not at all, since it would not have become smaller.
        Failed = 1,
        /// With zlib, from the third byte on.
        Zlib = 2,
        /// Not at all: it goes to real receivers.
        Dont = 3,
    }
}

/// What stands in a stream block.
pub trait Payload: 'static {
    /// What it is, in the words of the documentation.
    const NAME: &'static str;

    /// Its name in trees and JSON.
    const FIELD: &'static str;

    /// Reads it, to the end of the part, and reports it as [`Self::FIELD`].
    ///
    /// # Errors
    /// What keeps it from being read; it is then shown as bytes.
    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()>;

    /// The bytes of it from JSON.
    ///
    /// # Errors
    /// Value, when the JSON is something else.
    fn from_json(json: Given<'_>) -> Result<Vec<u8>>;

    /// Makes one up.
    fn sample(sampler: &mut Sampler) -> Vec<u8>;

    /// Goes through it, to the end of the part.
    ///
    /// # Errors
    /// What the guard objects to, and what cannot be read.
    fn walk<G: Guard>(reader: &mut Reader<'_>, guard: &mut G) -> WalkResult;
}

/// A stream block: `u32` uncompressed length, `u8` compression, `u32` count, and so many bytes.
///
/// Deflated data cannot be made again byte by byte, so the block keeps what came. [`Self::payload`]
/// inflates it. A block that is read without a trace is not looked into; a trace is shown the
/// payload, in a layer of its own if it was deflated. What a deflated block may show is bounded by
/// its own length ([`Limits::text_ratio`], [`Limits::values_per_byte`]); beyond, its bytes are shown
/// as they came.
///
/// JSON says how the block is compressed, and is followed: `Zlib` is deflated even if that does not
/// help. What contradicts itself is refused: deflated `data` beside another compression, an
/// `uncompressedLength` that is neither that of the data nor that of the payload. A payload that
/// differs from the `data` beside it was changed, and counts.
///
/// | compression | uncompressed length | bytes |
/// | --- | --- | --- |
/// | `None` | 0 from clients; two servers write the size | as they are |
/// | `Failed` | the size | as they are |
/// | `Zlib` | the size, with the two bytes | two bytes as they are, then zlib data |
/// | `Dont` | 0 | as they are |
///
/// The first two bytes stay readable, so that a server sees the class of the payload.
pub struct Stream<'d, K> {
    uncompressed_length: u32,
    compression: Compression,
    bytes: Cow<'d, [u8]>,
    payload: PhantomData<fn() -> K>,
}

/// So many inflated bytes are shown of the smallest block; see [`Limits::text_ratio`].
const FREE_BYTES: u64 = 4096;
/// So many values are shown of the smallest block; see [`Limits::values_per_byte`].
const FREE_VALUES: u64 = 1024;
/// The bytes in front of zlib data that are not compressed.
const RAW: usize = 2;
/// One byte more than a payload may have.
const MAX_BYTES: usize = (1 << 20) + 1;
/// A payload of at most so many bytes is not compressed.
const MAX_UNCOMPRESSED: usize = 255;

impl<'d, K> Stream<'d, K> {
    /// A block as a client writes it: deflated if there are more than 255 bytes and it helps.
    #[must_use]
    pub fn new(payload: impl Into<Cow<'d, [u8]>>) -> Self {
        let payload = payload.into();
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if payload.len() <= MAX_UNCOMPRESSED {
            return Self::of(0, Compression::None, payload);
        }
        let (raw, rest) = payload.split_at(RAW);
        match inflate::deflate(rest) {
            Some(deflated) => {
                let bytes = [raw, &deflated].concat();
                Self::of(length, Compression::Zlib, bytes.into())
            }
            None => Self::of(length, Compression::Failed, payload),
        }
    }

    /// A block that must not be compressed: for real receivers.
    #[must_use]
    pub fn uncompressed(payload: impl Into<Cow<'d, [u8]>>) -> Self {
        Self::of(0, Compression::Dont, payload.into())
    }

    /// A block that is deflated even if that does not make it smaller.
    ///
    /// # Errors
    /// Value, for fewer than two bytes, which stay as they are; the limit of 1 MiB.
    pub fn deflated(payload: &[u8]) -> Result<Self> {
        let Some((raw, rest)) = payload.split_at_checked(RAW) else {
            let found = payload.len().to_string();
            return Err(Error::value("at least 2 bytes to compress", found));
        };
        let length = payload.len() as u64;
        match u32::try_from(length) {
            Ok(size) if length <= MAX_INFLATED => {
                let bytes = [raw, &inflate::deflate_always(rest)?].concat();
                Ok(Self::of(size, Compression::Zlib, bytes.into()))
            }
            _ => Err(Error::limit("inflated bytes", MAX_INFLATED, length)),
        }
    }

    fn of(uncompressed_length: u32, compression: Compression, bytes: Cow<'d, [u8]>) -> Self {
        Self { uncompressed_length, compression, bytes, payload: PhantomData }
    }

    /// How the bytes are compressed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The first length, as it came. It counts only for deflated data.
    #[must_use]
    pub fn uncompressed_length(&self) -> u32 {
        self.uncompressed_length
    }

    /// The bytes as they stand in the message.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first two bytes: the class of a Plasma message, the flags of a state.
    #[must_use]
    pub fn class(&self) -> Option<u16> {
        self.bytes.first_chunk().map(|class| u16::from_le_bytes(*class))
    }

    /// The payload, inflated if need be.
    ///
    /// # Errors
    /// Malformed, for bytes that do not inflate to exactly the length they should; the limits on
    /// inflated bytes and their ratio. No more than 1 MiB is inflated, whatever the limits say.
    pub fn payload<'p>(&'p self, inflater: &'p mut Inflater, limits: &Limits) -> Result<&'p [u8]> {
        if self.compression != Compression::Zlib {
            return Ok(&self.bytes);
        }
        let (raw, deflated) = split(&self.bytes)?;
        inflater.inflate(raw, deflated, self.uncompressed_length, limits)
    }

    /// The first bytes of the payload, at most so many; no more than that is inflated.
    ///
    /// # Errors
    /// Malformed, for bytes that do not inflate.
    pub fn beginning(&self, most: usize) -> Result<Cow<'_, [u8]>> {
        let first = self.bytes.get(..most).unwrap_or(&self.bytes);
        if self.compression != Compression::Zlib {
            return Ok(Cow::Borrowed(first));
        }
        let (raw, deflated) = split(&self.bytes)?;
        let mut bytes = raw.to_vec();
        bytes.extend(inflate::inflate_first(deflated, most.saturating_sub(RAW))?);
        Ok(Cow::Owned(bytes))
    }

    /// Reads the head of a block, and checks it against what is there.
    fn take_head<T>(reader: &mut Reader<'d, T>) -> Result<(u32, Compression, usize)> {
        let uncompressed = u32::from_le_bytes(reader.take_array()?);
        let [compression] = reader.take_array()?;
        let at = reader.position() as u64;
        let count = u32::from_le_bytes(reader.take_array()?) as usize;
        if reader.remaining() < count {
            let error = Error::incomplete(count, reader.remaining());
            return Err(error.at(reader.position() as u64));
        }
        let compression = Compression(compression);
        if compression == Compression::Zlib {
            let check = match count.checked_sub(RAW) {
                Some(deflated) => inflate::check_size(deflated, uncompressed, reader.limits()),
                None => Err(Error::malformed("at least 2 bytes", count.to_string())),
            };
            check.map_err(|error| error.at(at))?;
        }
        Ok((uncompressed, compression, count))
    }

    /// Reads a block as it came.
    fn read<T>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let (uncompressed, compression, count) = Self::take_head(reader)?;
        let bytes = reader.take(count)?;
        Ok(Self::of(uncompressed, compression, Cow::Borrowed(bytes)))
    }
}

/// Checks a length that JSON gives, if it gives one.
fn is_length(given: Option<u32>, lengths: &[usize]) -> Result<()> {
    let Some(given) = given.filter(|given| !lengths.contains(&(*given as usize))) else {
        return Ok(());
    };
    let wanted = lengths.last().map_or(0, |length| *length).to_string();
    Err(Error::value(wanted, given.to_string()).inside("uncompressedLength"))
}

/// The raw bytes and the zlib data.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let short = || Error::malformed("at least 2 bytes", bytes.len().to_string());
    bytes.split_at_checked(RAW).ok_or_else(short)
}

impl<'d, K: Payload> Stream<'d, K> {
    /// Shows the block to a trace.
    fn show<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()> {
        let start = reader.place_if_on();
        let (uncompressed, compression, count) = Self::take_head(reader)?;
        if T::ON {
            let place = |bytes| Place { byte: start.byte + bytes, bit: 0 };
            let trace = reader.trace_mut();
            let shown = Value::Unsigned(u64::from(uncompressed));
            trace.leaf("uncompressedLength", shown, start, place(4));
            let shown = Value::Enum(i64::from(compression.0), Compression::NAMES);
            trace.leaf("compression", shown, place(4), place(5));
        }
        if compression != Compression::Zlib {
            return show_payload::<K, T>(reader, count);
        }
        let start = reader.place_if_on();
        let bytes = reader.bytes("data", count)?;
        let inflate = |reader: &mut Reader<'d, T>| {
            let (raw, deflated) = split(bytes)?;
            let limits = reader.limits();
            let most = FREE_BYTES.saturating_add(limits.text_ratio.saturating_mul(count as u64));
            if u64::from(uncompressed) > most {
                let found = uncompressed.into();
                return Err(Error::limit("inflated bytes that are shown", most, found));
            }
            let mut inflater = Inflater::new();
            inflater.inflate(raw, deflated, uncompressed, limits)?;
            let most = limits.values_per_byte.saturating_mul(count as u64);
            let most = ("values of a deflated payload", FREE_VALUES.saturating_add(most));
            reader.bounded_layer("inflated", start, inflater.take(), most, |reader| {
                let count = reader.remaining();
                show_payload::<K, T>(reader, count)
            })
        };
        // What cannot be inflated is shown as it came.
        if let Err(error) = reader.attempt(inflate) {
            reader.remark(error.closed().inside("data"));
        }
        Ok(())
    }
}

/// Shows a payload of `count` bytes, or the bytes if it cannot be read.
fn show_payload<'d, 'n, K: Payload, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    count: usize,
) -> Result<()> {
    if reader.attempt(|reader| reader.part(count, K::decode)).is_err() {
        let start = reader.place_if_on();
        reader.blob(K::FIELD, start, count, Form::Bytes)?;
    }
    Ok(())
}

impl<K> Clone for Stream<'_, K> {
    fn clone(&self) -> Self {
        Self::of(self.uncompressed_length, self.compression, self.bytes.clone())
    }
}

impl<K> PartialEq for Stream<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.uncompressed_length == other.uncompressed_length
            && self.compression == other.compression
            && self.bytes == other.bytes
    }
}

impl<K> fmt::Debug for Stream<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {} bytes)", self.compression, self.bytes.len())
    }
}

impl<'d, K: Payload> Field<'d> for Stream<'d, K> {
    type Owned = Stream<'static, K>;
    const LEAST: usize = 9;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("stream ({})", K::NAME))
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        if !T::ON {
            return Self::read(reader).map_err(|error| error.inside(name));
        }
        let mut plain = Reader::within(reader.rest(), reader.limits());
        reader.record(name, Self::show)?;
        Self::read(&mut plain)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u32(self.uncompressed_length);
        writer.u8(self.compression.0);
        let length = writer.reserve::<4>();
        writer.bytes(&self.bytes);
        writer.patch_length(length)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let compression = Compression::from_json(fields.given("compression")?)
            .map_err(|error| error.inside("compression"))?;
        let length = fields.given_optional("uncompressedLength").map(u32::from_json);
        let length = length.transpose().map_err(|error| error.inside("uncompressedLength"))?;
        let data = fields.given_optional("data").map(Given::bytes);
        let data = data.transpose().map_err(|error| error.inside("data"))?;
        let payload = fields.given_optional(K::FIELD).map(K::from_json);
        let payload = payload.transpose().map_err(|error| error.inside(K::FIELD))?;
        fields.end()?;
        let missing = || Error::value("the bytes of a stream", "none").inside(K::FIELD);
        if compression != Compression::Zlib {
            if data.is_some() {
                let wanted = "no deflated data beside this compression";
                return Err(Error::value(wanted, compression.to_string()).inside("data"));
            }
            let payload = payload.ok_or_else(missing)?;
            let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let usual = if compression == Compression::Failed { size } else { 0 };
            return Ok(Self::of(length.unwrap_or(usual), compression, payload.into()));
        }
        match (data, payload) {
            (None, None) => Err(missing()),
            (Some(data), None) => {
                let length = length.ok_or_else(|| {
                    Error::value("the length of the inflated data", "none")
                        .inside("uncompressedLength")
                })?;
                Ok(Self::of(length, compression, data.into()))
            }
            (None, Some(payload)) => {
                is_length(length, &[payload.len()])?;
                Self::deflated(&payload)
            }
            (Some(data), Some(payload)) => {
                let (raw, deflated) = split(&data).map_err(|error| error.inside("data"))?;
                let came = inflate::inflate_first(deflated, MAX_BYTES);
                let came = came.map(|rest| [raw, &rest].concat());
                let came = came.map_err(|error| error.inside("data"))?;
                if came == payload {
                    // The same payload stands in the same bytes.
                    is_length(length, &[payload.len()])?;
                    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                    return Ok(Self::of(length, compression, data.into()));
                }
                is_length(length, &[came.len(), payload.len()])?;
                Self::deflated(&payload)
            }
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let payload = K::sample(sampler);
        if sampler.below(4) == 0 { Self::uncompressed(payload) } else { Self::new(payload) }
    }

    fn into_owned(self) -> Self::Owned {
        Stream::of(self.uncompressed_length, self.compression, self.bytes.into_owned().into())
    }
}

impl<'d, K: Payload> Walk<'d> for Stream<'d, K> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let (uncompressed, compression, count) = Self::take_head(reader)?;
        let mut walked = Ok(());
        if compression != Compression::Zlib {
            reader.part_with_rest(count, |reader| {
                walked = walk_payload::<K, G>(reader, guard);
                Ok(())
            })?;
            return walked;
        }
        let (raw, deflated) = split(reader.take(count)?)?;
        let limits = reader.limits();
        let inflater = guard.inflater();
        inflater.inflate(raw, deflated, uncompressed, limits)?;
        let buffer = inflater.take();
        walked = walk_payload::<K, G>(&mut Reader::within(&buffer, limits), guard)
            .map_err(|refusal| refusal.in_layer("inflated"));
        guard.inflater().give_back(buffer);
        walked
    }
}

fn walk_payload<K: Payload, G: Guard>(reader: &mut Reader<'_>, guard: &mut G) -> WalkResult {
    K::walk(reader, guard).map_err(|refusal| refusal.inside(K::FIELD))?;
    Ok(reader.end()?)
}
