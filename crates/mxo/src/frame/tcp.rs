//! The TCP channels: auth (port 11000) and margin (port 10000).

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Trace, Writer};

use super::packet::{decode_head, encode_head};
use super::rpc::{MAX_RPC_BYTES, decode_length, encode_length, is_long_in_json};
use crate::crypt::{BLOCK_BYTES, SessionKey};

/// A TCP channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Accounts, worlds, characters; port 11000. Only individual fields are encrypted.
    Auth,
    /// Sessions and characters of a world; port 10000. Most bodies are encrypted.
    Margin,
}

/// A message of a TCP channel, as it is on the wire.
///
/// | field | type | |
/// | --- | --- | --- |
/// | `length` | `u8` below 0x80; else `u16`, big-endian, with the top bit set | bytes of the body |
/// | `body` | bytes | opcode and data; on the margin channel it may be encrypted |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpFrame<'d> {
    /// Whether the length takes two bytes although one would be enough.
    pub is_long: bool,
    /// The body: at least one byte.
    pub body: Cow<'d, [u8]>,
}

impl<'d> TcpFrame<'d> {
    /// A frame around a body.
    #[must_use]
    pub fn of(body: &'d [u8]) -> Self {
        Self { is_long: false, body: body.into() }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Incomplete, or malformed for an empty body.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position();
        let (length, is_long) = decode_length(reader)?;
        if length == 0 {
            let error = Error::malformed("a body of at least 1 byte", "none");
            return Err(error.at(at as u64).inside("length"));
        }
        let start = reader.place();
        let body = reader.blob("body", start, length, Form::Bytes)?.into();
        Ok(Self { is_long, body })
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// A value error for an empty body; a limit error for one that is too long.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        if self.body.is_empty() {
            return Err(Error::value("a body of at least 1 byte", "none").inside("body"));
        }
        encode_length(self.body.len(), self.is_long, writer)?;
        writer.bytes(&self.body);
        Ok(())
    }

    /// Reads the frame from JSON; the exact inverse of writing the traced frame as JSON.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<TcpFrame<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let is_long = is_long_in_json(&mut fields);
        let body = fields.given("body")?.bytes().map_err(|error| error.inside("body"))?;
        fields.end()?;
        Ok(TcpFrame { is_long, body: body.into() })
    }

    /// Generates one.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> TcpFrame<'static> {
        let length = 1 + sampler.length(200) + sampler.length(1) * 120;
        let body: Cow<'static, [u8]> = sampler.bytes(length).into();
        TcpFrame { is_long: length < 0x80 && sampler.below(8) == 0, body }
    }
}

/// The body of a margin message: plain or encrypted.
///
/// Bodies with opcodes 1 to 5 followed by the number 3 are plain: certificates and the challenge,
/// which are exchanged before there is a key. Every other body is an initialisation vector followed
/// by encrypted blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarginFrame<'d> {
    /// Opcode and data.
    Plain(Cow<'d, [u8]>),
    /// An encrypted body.
    Sealed {
        /// The initialisation vector.
        iv: [u8; BLOCK_BYTES],
        /// CRC-32, length and time as in a packet, opcode and data.
        cipher: Cow<'d, [u8]>,
    },
}

impl<'d> MarginFrame<'d> {
    /// Reads the body of a frame to its end. Encrypted parts stay encrypted.
    ///
    /// # Errors
    /// Malformed if it is neither plain nor made of whole blocks.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let (start, length) = (reader.place(), reader.remaining());
        if let [1..=5, 3, 0, ..] = reader.rest() {
            let body = reader.blob("body", start, length, Form::Bytes)?;
            return Ok(Self::Plain(body.into()));
        }
        let blocks = length.saturating_sub(BLOCK_BYTES);
        if blocks == 0 || !blocks.is_multiple_of(BLOCK_BYTES) {
            let wanted = "an initialisation vector and whole blocks of 16 bytes";
            let error = Error::malformed(wanted, format!("{length} bytes"));
            return Err(reader.place_error(error));
        }
        let iv = Field::decode(reader, "iv")?;
        Ok(Self::Sealed { iv, cipher: reader.span("cipher", blocks, Form::Bytes)?.into() })
    }

    /// Writes the body.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let body = match self {
            Self::Plain(body) => body.to_vec(),
            Self::Sealed { iv, cipher } => [iv, &**cipher].concat(),
        };
        match (MarginFrame::is_plain(&body), self) {
            (Some(true), Self::Plain(_)) | (Some(false), Self::Sealed { .. }) => {}
            _ => {
                return Err(Error::value(
                    "a body that decodes to the same kind, plain or encrypted",
                    "one that does not",
                ));
            }
        }
        writer.bytes(&body);
        Ok(())
    }

    /// Reads the body from JSON; the exact inverse of writing the traced one as JSON.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<MarginFrame<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let name = if fields.has("body") { "body" } else { "cipher" };
        let bytes = fields.given(name)?.bytes().map_err(|error| error.inside(name))?.into();
        let body = match name {
            "body" => MarginFrame::Plain(bytes),
            _ => MarginFrame::Sealed { iv: fields.value("iv")?, cipher: bytes },
        };
        fields.end()?;
        Ok(body)
    }

    /// Whether a body is plain; `None` if it is neither plain nor encrypted.
    fn is_plain(body: &[u8]) -> Option<bool> {
        match MarginFrame::decode(&mut Reader::new(body)) {
            Ok(MarginFrame::Plain(_)) => Some(true),
            Ok(MarginFrame::Sealed { .. }) => Some(false),
            Err(_) => None,
        }
    }

    /// Generates one.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> MarginFrame<'static> {
        let length = sampler.length(4) + 1;
        if sampler.below(2) == 0 {
            return MarginFrame::Plain([&[1, 3, 0][..], &sampler.bytes(length)].concat().into());
        }
        // An initialisation vector that looks like a plain opcode would be read as one.
        let [_, rest @ ..]: [u8; 16] = Field::sample(sampler);
        let mut iv = [9; 16];
        iv[1..].copy_from_slice(&rest);
        MarginFrame::Sealed { iv, cipher: sampler.bytes(length * BLOCK_BYTES).into() }
    }
}

/// The text of an encrypted margin message, without the padding.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `crc` | `u32` | CRC-32 (zlib) of everything after it |
/// | 4 | `length` | `u16` | bytes of the body |
/// | 6 | `time` | `u32` | seconds since 1970 |
/// | 10 | `body` | bytes | opcode and data |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarginText<'d> {
    /// Seconds since 1970 on the sender's clock.
    pub time: u32,
    /// Opcode and data.
    pub body: Cow<'d, [u8]>,
}

impl<'d> MarginText<'d> {
    /// Reads the text to the end of the input.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let time = decode_head(reader)?;
        let (start, length) = (reader.place(), reader.remaining());
        Ok(Self { time, body: reader.blob("body", start, length, Form::Bytes)?.into() })
    }

    /// Writes the text with its length and CRC.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_head(self.time, &self.body, writer)
    }

    /// Reads the text from JSON. Length and CRC are recomputed.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<MarginText<'static>> {
        let mut fields = FieldsOf::new(json)?;
        fields.take_optional("crc");
        fields.take_optional("length");
        let time = fields.value("time")?;
        let body = fields.given("body")?.bytes().map_err(|error| error.inside("body"))?.into();
        fields.end()?;
        Ok(MarginText { time, body })
    }

    /// Encrypts the text with a fresh initialisation vector, as a frame.
    pub fn seal(&self, key: &SessionKey, iv: &[u8; BLOCK_BYTES]) -> Result<TcpFrame<'static>> {
        let mut plain = Writer::new();
        self.encode(&mut plain)?;
        let mut sealed = Vec::new();
        key.seal(iv, plain.as_bytes(), &mut sealed);
        if sealed.len() > MAX_RPC_BYTES {
            let (most, found) = (MAX_RPC_BYTES as u64, sealed.len() as u64);
            return Err(Error::limit("bytes of a message", most, found));
        }
        Ok(TcpFrame { is_long: false, body: sealed.into() })
    }
}
