//! Stream blocks: optionally compressed payloads of net messages.

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
        /// Not compressed, because there are at most 255 bytes.
        None = 0,
        /// Not compressed, because compression would not save anything.
        Failed = 1,
        /// Compressed with zlib, starting with the third byte.
        Zlib = 2,
        /// Not compressed, because the message has actual receivers.
        Dont = 3,
    }
}

/// The content of a stream block.
pub trait Payload: 'static {
    /// The name in the documentation.
    const NAME: &'static str;

    /// The name in trees and JSON.
    const FIELD: &'static str;

    /// Decodes the payload to the end of the enclosing part and traces it as [`Self::FIELD`].
    ///
    /// # Errors
    /// Fails if the payload cannot be decoded; it is then shown as bytes.
    fn decode<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()>;

    /// Encodes the payload from JSON.
    fn from_json(json: Given<'_>) -> Result<Vec<u8>>;

    /// Generates a payload.
    fn sample(sampler: &mut Sampler) -> Vec<u8>;

    /// Walks the payload to the end of the enclosing part.
    fn walk<G: Guard>(reader: &mut Reader<'_>, guard: &mut G) -> WalkResult;
}

/// A stream block: `u32` uncompressed length, `u8` compression, `u32` count, that many bytes.
///
/// Recompressing does not reproduce the same bytes, so the block keeps the bytes received;
/// [`Self::payload`] inflates them. Decoding without a trace does not inspect the payload. A trace
/// shows the payload, in a separate layer if it was compressed. How much of a compressed block is
/// shown depends on its size ([`Limits::text_ratio`], [`Limits::values_per_byte`]); larger payloads
/// are shown as compressed bytes.
///
/// When encoding from JSON, the given compression is used: `Zlib` compresses even if that does not
/// save anything. Contradictions are refused: deflated `data` with a different compression, or an
/// `uncompressedLength` that matches neither the data nor the payload. If the payload differs from
/// the accompanying `data`, it was edited and takes precedence.
///
/// | compression | uncompressed length | bytes |
/// | --- | --- | --- |
/// | `None` | 0 from clients; two servers write the size | plain |
/// | `Failed` | the size | plain |
/// | `Zlib` | the size, including the first two bytes | two plain bytes, then zlib data |
/// | `Dont` | 0 | plain |
///
/// The first two bytes are never compressed, so that servers can see the payload's class.
pub struct Stream<'d, K> {
    uncompressed_length: u32,
    compression: Compression,
    bytes: Cow<'d, [u8]>,
    payload: PhantomData<fn() -> K>,
}

/// The number of inflated bytes shown even for tiny blocks; see [`Limits::text_ratio`].
const FREE_BYTES: u64 = 4096;
/// The number of values shown even for tiny blocks; see [`Limits::values_per_byte`].
const FREE_VALUES: u64 = 1024;
/// The number of uncompressed bytes before the zlib data.
const RAW: usize = 2;
/// One byte more than the maximum payload.
const MAX_BYTES: usize = (1 << 20) + 1;
/// Payloads up to this size are not compressed.
const MAX_UNCOMPRESSED: usize = 255;

impl<'d, K> Stream<'d, K> {
    /// A block as clients write it: compressed if there are more than 255 bytes and it saves space.
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

    /// A block that must not be compressed, for actual receivers.
    #[must_use]
    pub fn uncompressed(payload: impl Into<Cow<'d, [u8]>>) -> Self {
        Self::of(0, Compression::Dont, payload.into())
    }

    /// A block that is compressed even if that does not save space.
    ///
    /// # Errors
    /// `Value` for fewer than two bytes, which cannot be compressed; a limit error for more than 1
    /// MiB.
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

    /// The uncompressed length as received. It is only meaningful for compressed data.
    #[must_use]
    pub fn uncompressed_length(&self) -> u32 {
        self.uncompressed_length
    }

    /// The bytes as sent, possibly compressed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first two bytes: the class of a Plasma message, or the flags of an SDL state.
    #[must_use]
    pub fn class(&self) -> Option<u16> {
        self.bytes.first_chunk().map(|class| u16::from_le_bytes(*class))
    }

    /// The payload, inflated if necessary.
    ///
    /// # Errors
    /// `Malformed` if the data does not inflate to exactly the announced length; a limit error for
    /// too many inflated bytes or too high a compression ratio. Never inflates more than 1 MiB,
    /// whatever the limits.
    pub fn payload<'p>(&'p self, inflater: &'p mut Inflater, limits: &Limits) -> Result<&'p [u8]> {
        if self.compression != Compression::Zlib {
            return Ok(&self.bytes);
        }
        let (raw, deflated) = split(&self.bytes)?;
        inflater.inflate(raw, deflated, self.uncompressed_length, limits)
    }

    /// The first bytes of the payload, up to `max`; only these are inflated.
    pub fn beginning(&self, max: usize) -> Result<Cow<'_, [u8]>> {
        let first = self.bytes.get(..max).unwrap_or(&self.bytes);
        if self.compression != Compression::Zlib {
            return Ok(Cow::Borrowed(first));
        }
        let (raw, deflated) = split(&self.bytes)?;
        let mut bytes = raw.to_vec();
        bytes.extend(inflate::inflate_first(deflated, max.saturating_sub(RAW))?);
        Ok(Cow::Owned(bytes))
    }

    /// Reads the header of a block and checks it against the remaining bytes.
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

    /// Reads a block without interpreting its payload.
    fn read<T>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let (uncompressed, compression, count) = Self::take_head(reader)?;
        let bytes = reader.take(count)?;
        Ok(Self::of(uncompressed, compression, Cow::Borrowed(bytes)))
    }
}

/// Checks a length given in JSON, if any.
fn is_length(given: Option<u32>, lengths: &[usize]) -> Result<()> {
    let Some(given) = given.filter(|given| !lengths.contains(&(*given as usize))) else {
        return Ok(());
    };
    let wanted = lengths.last().map_or(0, |length| *length).to_string();
    Err(Error::value(wanted, given.to_string()).inside("uncompressedLength"))
}

/// Splits the bytes into the uncompressed part and the zlib data.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let short = || Error::malformed("at least 2 bytes", bytes.len().to_string());
    bytes.split_at_checked(RAW).ok_or_else(short)
}

impl<'d, K: Payload> Stream<'d, K> {
    /// Traces the block.
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
            let max = FREE_BYTES.saturating_add(limits.text_ratio.saturating_mul(count as u64));
            if u64::from(uncompressed) > max {
                let found = uncompressed.into();
                return Err(Error::limit("inflated bytes that are shown", max, found));
            }
            let mut inflater = Inflater::new();
            inflater.inflate(raw, deflated, uncompressed, limits)?;
            let max = limits.values_per_byte.saturating_mul(count as u64);
            let max = ("values of a deflated payload", FREE_VALUES.saturating_add(max));
            reader.bounded_layer("inflated", start, inflater.take(), max, |reader| {
                let count = reader.remaining();
                show_payload::<K, T>(reader, count)
            })
        };
        // Data that does not inflate is shown as received.
        if let Err(error) = reader.attempt(inflate) {
            reader.remark(error.closed().inside("data"));
        }
        Ok(())
    }
}

/// Traces a payload of `count` bytes, or plain bytes if it cannot be decoded.
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
        let compression: Compression = fields.value("compression")?;
        let length = fields.given_optional("uncompressedLength").map(u32::from_json);
        let length = length.transpose().map_err(|error| error.inside("uncompressedLength"))?;
        let data = fields.given_optional("data").map(Given::bytes);
        let data = data.transpose().map_err(|error| error.inside("data"))?;
        let payload = fields.given_optional(K::FIELD).map(K::from_json);
        let payload = payload.transpose().map_err(|error| error.inside(K::FIELD))?;
        fields.end()?;
        let missing = || Error::invalid("is missing").inside(K::FIELD);
        if compression != Compression::Zlib {
            if data.is_some() {
                let wanted = "no deflated data with this compression";
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
                let length = length
                    .ok_or_else(|| Error::invalid("is missing").inside("uncompressedLength"))?;
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
                    // The payload is unchanged, so the original bytes are kept.
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
