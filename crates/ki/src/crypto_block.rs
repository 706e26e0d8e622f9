//! The crypto block in session offers and accepts, which negotiates encryption.
//!
//! It takes one of three forms: absent (old peers), a single zero byte (no encryption), or, since
//! 2021, one half of a handshake. No keys are built in; users supply theirs. Handshakes are
//! displayed field by field and kept byte for byte.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{Error, Reader, Result, Trace, Writer};

/// The bytes of a block, without their `u32` length.
///
/// | form | bytes |
/// | --- | --- |
/// | no encryption | one byte, 0 |
/// | offer's handshake | [`SignedOffer`], 256 bytes of signature |
/// | accept's handshake | one byte, 256 bytes that only the server can decrypt |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptoBlock<'d>(pub Cow<'d, [u8]>);

impl CryptoBlock<'static> {
    /// No encryption, as today's official patch servers announce it.
    pub const NONE: Self = Self(Cow::Borrowed(&[0]));
}

/// The signed part of an offer of an encrypted session, with its signature: RSA-2048, PKCS #1 v1.5,
/// SHA-1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedOffer<'d> {
    /// `u8`.
    pub flags: u8,
    /// `u8`: selects one of the client's keys.
    pub key_slot: u8,
    /// `u8`.
    pub key_mask: u8,
    /// The challenge, after its own `u8` length.
    pub challenge: Challenge<'d>,
    /// `u32`, which the client sends back.
    pub echo: u32,
    /// 256 bytes.
    pub signature: Cow<'d, [u8]>,
}

/// The challenge with which a client proves that its program contains the right key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge<'d> {
    /// `u16`: the offset in the client's key buffer.
    pub hash_offset: u16,
    /// `u16`: the number of bytes to hash.
    pub hash_length: u16,
    /// The kind, with its fields.
    pub kind: ChallengeKind<'d>,
}

/// The kinds of challenges, by their `u8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeKind<'d> {
    /// 0xF1: the client's signature.
    ClientSignature {
        /// `u32`.
        control_mask: u32,
        /// `u32`.
        spec: u32,
        /// `u32`.
        key: u32,
    },
    /// Any other kind.
    Other {
        /// The number of the kind.
        kind: u8,
        /// The rest of the challenge.
        rest: Cow<'d, [u8]>,
    },
}

const CLIENT_SIGNATURE: u8 = 0xf1;
const RSA_BYTES: usize = 256;

/// The message that contains a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPosition {
    Offer,
    Accept,
}

pub(crate) const OFFER: BlockPosition = BlockPosition::Offer;
pub(crate) const ACCEPT: BlockPosition = BlockPosition::Accept;

impl<'d> CryptoBlock<'d> {
    /// Decodes a block if there is one: a frame's body may end here, with or without a trailer.
    pub(crate) fn decode<'n, T: Trace<'n>>(
        place: BlockPosition,
        reader: &mut Reader<'d, T>,
    ) -> Result<Option<Self>> {
        const NAME: &str = "crypto";
        if reader.remaining() <= 1 {
            return Ok(None);
        }
        let start = reader.place_if_on();
        let length = reader.take_array().map_err(|error| error.inside(NAME))?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        let Some(bytes) = reader.rest().get(..length) else {
            let found = format!("{length}, with {} bytes left in the frame", reader.remaining());
            let error = Error::malformed("the length of the crypto block", found);
            return Err(reader.place_error(error).inside(NAME));
        };
        // Handshakes are displayed field by field, everything else as bytes.
        let handshake = T::ON
            && reader
                .attempt(|reader| {
                    reader.scope_from(NAME, worldwire_core::Value::Record, start, |reader| {
                        reader.part(length, |reader| match place {
                            BlockPosition::Offer => SignedOffer::decode(reader).map(drop),
                            BlockPosition::Accept => decode_sealed(reader),
                        })
                    })
                })
                .is_ok();
        if !handshake {
            opaque(reader, NAME, start, length)?;
        }
        Ok(Some(Self(bytes.into())))
    }

    pub(crate) fn from_json(
        place: BlockPosition,
        fields: &mut FieldsOf<'_>,
    ) -> Result<Option<Self>> {
        let block = |json: &Json| match (place, json) {
            (_, Json::Null) => Ok(None),
            (BlockPosition::Offer, Json::Object(object)) if object.contains_key("echo") => {
                let mut writer = Writer::new();
                SignedOffer::from_json(json.into())?.encode(&mut writer)?;
                Ok(Some(writer.into_bytes()))
            }
            (BlockPosition::Accept, Json::Object(object)) if object.contains_key("sealed") => {
                sealed_from_json(json).map(Some)
            }
            _ => json::bytes(json).map(Some),
        };
        let Some(json) = fields.take_optional("crypto") else {
            return Ok(None);
        };
        let bytes = block(json).map_err(|error| error.inside("crypto"))?;
        Ok(bytes.map(|bytes| Self(bytes.into())))
    }

    /// Copies borrowed bytes.
    #[must_use]
    pub fn into_owned(self) -> CryptoBlock<'static> {
        CryptoBlock(self.0.into_owned().into())
    }
}

pub(crate) fn encode(block: Option<&CryptoBlock<'_>>, writer: &mut Writer) -> Result<()> {
    let Some(CryptoBlock(bytes)) = block else {
        return Ok(());
    };
    let length = u32::try_from(bytes.len()).map_err(|_| {
        let found = format!("{} bytes", bytes.len());
        Error::value("at most 4294967295 bytes", found).inside("crypto")
    })?;
    writer.u32(length);
    writer.bytes(bytes);
    Ok(())
}

impl<'d> SignedOffer<'d> {
    /// Decodes the fields into the current scope.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        Ok(Self {
            flags: reader.u8("flags")?,
            key_slot: reader.u8("keySlot")?,
            key_mask: reader.u8("keyMask")?,
            challenge: Challenge::decode(reader)?,
            echo: reader.u32("echo")?,
            signature: reader.bytes("signature", RSA_BYTES)?.into(),
        })
    }

    /// Encodes the fields.
    ///
    /// # Errors
    /// `Value` if the signature is not 256 bytes long or the challenge exceeds 255 bytes.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u8(self.flags);
        writer.u8(self.key_slot);
        writer.u8(self.key_mask);
        self.challenge.encode(writer).map_err(|error| error.inside("challenge"))?;
        writer.u32(self.echo);
        if self.signature.len() != RSA_BYTES {
            let found = format!("{} bytes", self.signature.len());
            return Err(Error::value("256 bytes", found).inside("signature"));
        }
        writer.bytes(&self.signature);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let offer = Self {
            flags: fields.value("flags")?,
            key_slot: fields.value("keySlot")?,
            key_mask: fields.value("keyMask")?,
            challenge: Challenge::from_json(fields.given("challenge")?)
                .map_err(|error| error.inside("challenge"))?,
            echo: fields.value("echo")?,
            signature: bytes_field(&mut fields, "signature")?,
        };
        fields.end()?;
        Ok(offer)
    }
}

impl<'d> Challenge<'d> {
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        const NAME: &str = "challenge";
        let start = reader.place_if_on();
        let [length] = reader.take_array().map_err(|error| error.inside(NAME))?;
        reader.scope_from(NAME, worldwire_core::Value::Record, start, |reader| {
            reader.part(usize::from(length), |reader| {
                Ok(Self {
                    hash_offset: reader.u16("hashOffset")?,
                    hash_length: reader.u16("hashLength")?,
                    kind: match reader.u8("type")? {
                        CLIENT_SIGNATURE => ChallengeKind::ClientSignature {
                            control_mask: reader.u32("controlMask")?,
                            spec: reader.u32("spec")?,
                            key: reader.u32("key")?,
                        },
                        kind => {
                            let count = reader.remaining();
                            let rest = reader.bytes("rest", count)?.into();
                            ChallengeKind::Other { kind, rest }
                        }
                    },
                })
            })
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = writer.reserve::<1>();
        writer.u16(self.hash_offset);
        writer.u16(self.hash_length);
        match &self.kind {
            ChallengeKind::ClientSignature { control_mask, spec, key } => {
                writer.u8(CLIENT_SIGNATURE);
                writer.u32(*control_mask);
                writer.u32(*spec);
                writer.u32(*key);
            }
            ChallengeKind::Other { kind, rest } => {
                writer.u8(*kind);
                writer.bytes(rest);
            }
        }
        let since = writer.since(length);
        let bytes = u8::try_from(since)
            .map_err(|_| Error::value("at most 255 bytes", format!("{since} bytes")))?;
        writer.patch(length, [bytes]);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let challenge = Self {
            hash_offset: fields.value("hashOffset")?,
            hash_length: fields.value("hashLength")?,
            kind: match fields.value("type")? {
                CLIENT_SIGNATURE => ChallengeKind::ClientSignature {
                    control_mask: fields.value("controlMask")?,
                    spec: fields.value("spec")?,
                    key: fields.value("key")?,
                },
                kind => ChallengeKind::Other { kind, rest: bytes_field(&mut fields, "rest")? },
            },
        };
        fields.end()?;
        Ok(challenge)
    }
}

/// Decodes the accept's handshake: one byte of unknown meaning, and 256 bytes of RSA-OAEP (SHA-1)
/// for the server's key. These contain `u8` flags, `u32` key hash, `u32` answer, `u32` echo, `u32`
/// time, 16 bytes AES key, 16 bytes nonce.
fn decode_sealed<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<()> {
    reader.u8("unknown")?;
    reader.bytes("sealed", RSA_BYTES)?;
    Ok(())
}

fn sealed_from_json(json: &Json) -> Result<Vec<u8>> {
    let mut fields = FieldsOf::new(json)?;
    let unknown: u8 = fields.value("unknown")?;
    let sealed = bytes_field(&mut fields, "sealed")?;
    fields.end()?;
    Ok([&[unknown], &*sealed].concat())
}

fn bytes_field(fields: &mut FieldsOf<'_>, name: &'static str) -> Result<Cow<'static, [u8]>> {
    let bytes = json::bytes(fields.take(name)?).map_err(|error| error.inside(name))?;
    Ok(bytes.into())
}

/// Reports bytes without a known structure.
fn opaque<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    start: worldwire_core::Place,
    count: usize,
) -> Result<&'d [u8]> {
    let bytes = reader.take(count).map_err(|error| error.inside(name))?;
    let span = reader.span_behind(worldwire_core::Form::Bytes, count);
    reader.leaf_from(name, start, span);
    Ok(bytes)
}
