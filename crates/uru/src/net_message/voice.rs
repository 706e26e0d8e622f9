//! Voice chat.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Bytes32, Error, Field, Form, Reader, Result, Sampler, Trace, Value, Writer, list_from_json,
    wire_flags,
};

use crate::types::{Bytes16, encode_counted, take_counted};
use crate::walk::walk_plain;

wire_flags! {
    /// How voice is encoded: 0 for no encoding (16-bit mono PCM, 8 kHz), 1 or 3 for Speex, 5 for
    /// Opus.
    pub struct VoiceFlags(u8) {
        /// A codec is used.
        Encoded = 1,
        /// The codec is Speex; old clients do not set this flag.
        EncodedSpeex = 2,
        /// The codec is Opus.
        EncodedOpus = 4,
    }
}

/// The encoding of voice data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoiceCodec {
    /// 16-bit mono samples, 8,000 per second.
    Pcm,
    /// Speex: frames, each with a `u8` length.
    Speex,
    /// Opus: a `u32` zero and one packet.
    Opus,
}

impl VoiceFlags {
    /// The codec that the flags select.
    #[must_use]
    pub const fn codec(self) -> VoiceCodec {
        if !self.contains(Self::Encoded) {
            VoiceCodec::Pcm
        } else if self.contains(Self::EncodedOpus) {
            VoiceCodec::Opus
        } else {
            VoiceCodec::Speex
        }
    }

    /// Whether the flags select this codec.
    #[must_use]
    pub fn is(self, codec: VoiceCodec) -> bool {
        self.codec() == codec
    }
}

/// Speex frames: a `u16` byte count, then frames, each with a `u8` length.
///
/// The bytes are kept as received, including any after the last complete frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpeexFrames<'d>(pub Bytes16<'d>);

impl<'d> SpeexFrames<'d> {
    /// The frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &*self.0;
        core::iter::from_fn(move || {
            let (frame, behind) = next_frame(rest)?;
            rest = behind;
            Some(frame)
        })
    }

    /// The bytes after the last complete frame.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        let mut rest = &*self.0;
        while let Some((_, behind)) = next_frame(rest) {
            rest = behind;
        }
        rest
    }
}

/// Splits off the next frame.
fn next_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

impl<'d> Field<'d> for SpeexFrames<'d> {
    type Owned = SpeexFrames<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 byte count, frames: u8 length, bytes")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        if !T::ON {
            let bytes = take_counted(reader).map_err(|error| error.inside(name))?;
            return Ok(Self(Bytes16::new(bytes)));
        }
        reader.scope_from(name, Value::Record, start, |reader| {
            let count = usize::from(u16::from_le_bytes(reader.take_array()?));
            let bytes = reader.rest().get(..count);
            reader.part(count, |reader| {
                reader.list("frames", |reader| {
                    while next_frame(reader.rest()).is_some() {
                        let start = reader.place_if_on();
                        let [length] = reader.take_array()?;
                        reader.take(usize::from(length))?;
                        let span = reader.span_behind(Form::Bytes, usize::from(length));
                        reader.leaf_from("", start, span);
                    }
                    Ok(())
                })?;
                let left = reader.remaining();
                if left > 0 {
                    reader.bytes("trailing", left)?;
                }
                Ok(())
            })?;
            Ok(Self(Bytes16::new(bytes.unwrap_or_default())))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_counted(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let frames = fields.given("frames")?;
        let frames =
            list_from_json::<Bytes32<'_, 255>>(frames).map_err(|error| error.inside("frames"))?;
        let trailing = fields.given_optional("trailing").map(Given::bytes).transpose();
        let trailing = trailing.map_err(|error| error.inside("trailing"))?.unwrap_or_default();
        fields.end()?;
        let mut writer = Writer::new();
        for (index, frame) in frames.iter().enumerate() {
            let length = u8::try_from(frame.len()).map_err(|_| {
                let error = Error::limit("bytes of a frame", 255, frame.len() as u64);
                error.inside_item(index).inside("frames")
            })?;
            writer.u8(length);
            writer.bytes(frame);
        }
        writer.bytes(&trailing);
        let whole = Self(Bytes16::new(writer.into_bytes()));
        if whole.trailing() != trailing {
            let wanted = "bytes that are not a complete frame";
            return Err(Error::value(wanted, "a frame").inside("trailing"));
        }
        Ok(whole)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4);
        let mut writer = Writer::new();
        for _ in 0..count {
            let length = sampler.length(20);
            let frame = sampler.bytes(length);
            writer.u8(u8::try_from(length).unwrap_or(0));
            writer.bytes(frame.get(..length.min(255)).unwrap_or_default());
        }
        if sampler.below(4) == 0 {
            writer.bytes(&[9, 1, 2]);
        }
        Self(Bytes16::new(writer.into_bytes()))
    }

    fn into_owned(self) -> Self::Owned {
        SpeexFrames(self.0.into_owned())
    }
}

/// An Opus packet: a `u16` byte count, a `u32` zero, then the packet.
///
/// Fewer than four bytes are kept as received and shown as bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpusPacket<'d>(pub Bytes16<'d>);

impl OpusPacket<'_> {
    /// The leading `u32`, which should be zero, and the packet.
    #[must_use]
    pub fn split(&self) -> Option<(u32, &[u8])> {
        let (head, packet) = self.0.split_first_chunk()?;
        Some((u32::from_le_bytes(*head), packet))
    }
}

impl<'d> Field<'d> for OpusPacket<'d> {
    type Owned = OpusPacket<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 byte count, u32 0, packet")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let bytes = take_counted(&mut Reader::new(reader.rest())).unwrap_or_default();
        if !T::ON || bytes.len() < 4 {
            return Field::decode(reader, name).map(Self);
        }
        reader.scope_from(name, Value::Record, start, |reader| {
            reader.take(2)?;
            reader.shown("head", Reader::take_array, |head| {
                Value::Hex(u64::from(u32::from_le_bytes(*head)))
            })?;
            reader.bytes("packet", bytes.len() - 4)?;
            Ok(Self(Bytes16::new(bytes)))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_counted(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.get("packet").is_none() {
            return Field::from_json(json).map(Self);
        }
        let mut fields = FieldsOf::new(json)?;
        let mut bytes = fields.value::<u32>("head")?.to_le_bytes().to_vec();
        let packet = fields.given("packet")?.bytes();
        bytes.extend(packet.map_err(|error| error.inside("packet"))?);
        fields.end()?;
        Ok(Self(Bytes16::new(bytes)))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(40);
        Self(Bytes16::new([vec![0; 4], sampler.bytes(length)].concat()))
    }

    fn into_owned(self) -> Self::Owned {
        OpusPacket(self.0.into_owned())
    }
}

walk_plain! {
    VoiceFlags;
    SpeexFrames<'d>;
    OpusPacket<'d>;
}
