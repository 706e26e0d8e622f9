//! Datagrams.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Form, Reader, Result, Sampler, Side, Trace, Value, Writer};

use super::packet::Packet;
use super::plain::Plain;
use crate::crypt::{BLOCK_BYTES, SEALED, SessionKey};

/// A datagram as sent on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datagram<'d> {
    /// Begins with 00.
    Plain(Plain<'d>),
    /// Begins with 01.
    Sealed(Sealed<'d>),
}

/// An encrypted datagram.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `type` | `u8` | 1 |
/// | 1 | `iv` | 16 bytes | the initialisation vector |
/// | 17 | `cipher` | bytes | a [`Packet`] with PKCS#7 padding, encrypted with Twofish in CBC mode |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed<'d> {
    /// The initialisation vector.
    pub iv: [u8; 16],
    /// The encrypted bytes: at least one block.
    pub cipher: Cow<'d, [u8]>,
}

impl<'d> Datagram<'d> {
    /// Reads a datagram to the end of the input. Encrypted parts stay encrypted.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        if reader.rest().first() != Some(&SEALED) {
            let plain = Plain::decode(reader).map_err(|error| {
                let found = error.found().to_owned();
                let at = error.offset().unwrap_or(0);
                Error::malformed("the start of a datagram, 00 or 01", found).at(at)
            });
            return plain.map(Self::Plain);
        }
        Sealed::decode(reader).map(Self::Sealed)
    }

    /// Reads a datagram like [`decode`](Self::decode), and shows the decrypted bytes in a separate
    /// layer. Returns the packet, if it is one.
    pub fn decode_opened<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        key: &SessionKey,
        from: Option<Side>,
    ) -> Result<Option<Packet<'static>>> {
        if reader.rest().first() != Some(&SEALED) {
            return Self::decode(reader).map(|_| None);
        }
        let mut start = reader.place();
        // After the type and the initialisation vector.
        start.byte += 17;
        let Sealed { iv, cipher } = Sealed::decode(reader)?;
        let plain = key.open(&iv, &cipher).map_err(|why| Error::from(why).at(start.byte.into()))?;
        reader
            .layer("decrypted", start, plain, |reader| {
                reader
                    .record("packet", |reader| Packet::decode(reader, from).map(Packet::into_owned))
            })
            .map(Some)
    }

    /// Writes the datagram.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Plain(plain) => plain.encode(writer),
            Self::Sealed(sealed) => sealed.encode(writer),
        }
    }

    /// Reads the datagram from JSON; the exact inverse of writing the traced one as JSON.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<Datagram<'static>> {
        let json = json.into();
        if !FieldsOf::new(json)?.has("iv") {
            return Plain::from_json(json).map(|plain| Datagram::Plain(plain.into_owned()));
        }
        let mut fields = FieldsOf::new(json)?;
        fields.take_optional("type");
        let iv = fields.value("iv")?;
        let cipher = fields.given("cipher")?.bytes().map_err(|error| error.inside("cipher"))?;
        fields.end()?;
        Ok(Datagram::Sealed(Sealed { iv, cipher: cipher.into() }))
    }

    /// Generates a datagram.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> Datagram<'static> {
        if sampler.below(2) == 0 {
            return Datagram::Plain(Plain::sample(sampler));
        }
        let blocks = 1 + sampler.length(4);
        let cipher = sampler.bytes(blocks * BLOCK_BYTES).into();
        Datagram::Sealed(Sealed { iv: Field::sample(sampler), cipher })
    }
}

impl<'d> Sealed<'d> {
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        reader.shown("type", Reader::take_array::<1>, |[kind]| Value::Unsigned((*kind).into()))?;
        let iv = Field::decode(reader, "iv")?;
        let length = reader.remaining();
        check_blocks(length)
            .map_err(|error| error.at(reader.position() as u64).inside("cipher"))?;
        let cipher = reader.span("cipher", length, Form::Bytes)?.into();
        Ok(Self { iv, cipher })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if check_blocks(self.cipher.len()).is_err() {
            let found = format!("{} bytes", self.cipher.len());
            return Err(Error::value("whole blocks of 16 bytes", found).inside("cipher"));
        }
        writer.u8(SEALED);
        writer.bytes(&self.iv);
        writer.bytes(&self.cipher);
        Ok(())
    }
}

/// Requires one or more whole blocks.
pub(crate) fn check_blocks(length: usize) -> Result<()> {
    if length == 0 || !length.is_multiple_of(BLOCK_BYTES) {
        return Err(Error::malformed("whole blocks of 16 bytes", format!("{length} bytes")));
    }
    Ok(())
}
