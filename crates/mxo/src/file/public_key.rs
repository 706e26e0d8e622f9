//! `pubkey.dat`: the server's public key in the client's folder.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Value, Writer};

#[cfg(feature = "login")]
use crate::crypt::{EXPONENT, KeyUse, PrivateKey, PublicKey, Random, RsaError};

/// The DER header of a 129-byte integer, and the integer's first byte: 0, because the top bit of
/// the next byte is set.
const MODULUS_HEAD: [u8; 4] = [2, 0x81, 0x81, 0];
/// The DER header of a one-byte integer.
const EXPONENT_HEAD: [u8; 2] = [2, 1];

/// The server's public key, signed by the signing key whose modulus the client program contains: 396
/// bytes.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `keyId` | `u32`, big-endian | the ID that the client asks for and names in requests |
/// | 4 | | `02 81 81 00` | head of a DER integer |
/// | 8 | `modulus` | `bytes(128)` | big-endian |
/// | 136 | | `02 01` | head of a DER integer |
/// | 138 | `exponent` | `u8` | 17 |
/// | 139 | | `00` | |
/// | 140 | `signature` | `bytes(256)` | PKCS#1 v1.5 with MD5, over modulus and exponent |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKeyFile {
    /// The key's ID: 4 in the last version of the game.
    pub key_id: u32,
    /// The modulus, big-endian.
    pub modulus: [u8; 128],
    /// The public exponent.
    pub exponent: u8,
    /// The signing key's signature.
    pub signature: [u8; 256],
}

impl PublicKeyFile {
    /// Reads the file.
    ///
    /// # Errors
    /// Incomplete; malformed if a DER header differs.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>) -> Result<Self> {
        let key_id = reader.shown(
            "keyId",
            |reader| reader.take_array().map(u32::from_be_bytes),
            |id| Value::Unsigned(u64::from(*id)),
        )?;
        expect(reader, MODULUS_HEAD, "modulus")?;
        let modulus = Field::decode(reader, "modulus")?;
        expect(reader, EXPONENT_HEAD, "exponent")?;
        let exponent = reader.u8("exponent")?;
        expect(reader, [0], "signature")?;
        let signature = Field::decode(reader, "signature")?;
        Ok(Self { key_id, modulus, exponent, signature })
    }

    /// Writes the file.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.key_id.to_be_bytes());
        writer.bytes(&MODULUS_HEAD);
        writer.bytes(&self.modulus);
        writer.bytes(&EXPONENT_HEAD);
        writer.u8(self.exponent);
        writer.u8(0);
        writer.bytes(&self.signature);
        Ok(())
    }

    /// Reads the file from JSON; the exact inverse of writing the traced file as JSON.
    pub fn from_json<'j>(json: impl Into<Given<'j>>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let file = Self {
            key_id: fields.value("keyId")?,
            modulus: fields.value("modulus")?,
            exponent: fields.value("exponent")?,
            signature: fields.value("signature")?,
        };
        fields.end()?;
        Ok(file)
    }

    /// Generates a file.
    #[must_use]
    pub fn sample(sampler: &mut Sampler) -> Self {
        Self {
            key_id: Field::sample(sampler),
            modulus: Field::sample(sampler),
            exponent: Field::sample(sampler),
            signature: Field::sample(sampler),
        }
    }
}

#[cfg(feature = "login")]
impl PublicKeyFile {
    /// Signs a server key.
    ///
    /// # Errors
    /// [`RsaError::Size`] for a key with a different purpose.
    pub fn sign(
        key_id: u32,
        server: &PublicKey,
        signing: &PrivateKey,
        random: &mut Random,
    ) -> Result<Self, RsaError> {
        let size = |wanted| move |found: Vec<u8>| RsaError::Size { wanted, bits: found.len() * 8 };
        let modulus = server.modulus().try_into().map_err(size(KeyUse::Server))?;
        let mut file = Self { key_id, modulus, exponent: 17, signature: [0; 256] };
        let signature = signing.sign(&file.signed_bytes(), random)?;
        file.signature = signature.try_into().map_err(size(KeyUse::Signing))?;
        Ok(file)
    }

    /// Whether the signature is valid, as the client checks it.
    #[must_use]
    pub fn is_signed_by(&self, signing: &PublicKey) -> bool {
        signing.verifies(&self.signed_bytes(), &self.signature)
    }

    /// The key.
    ///
    /// # Errors
    /// [`RsaError::Exponent`], or the errors of [`PublicKey::new`].
    pub fn key(&self) -> Result<PublicKey, RsaError> {
        if u16::from(self.exponent) != EXPONENT {
            return Err(RsaError::Exponent);
        }
        PublicKey::new(KeyUse::Server, &self.modulus)
    }

    /// Modulus and exponent.
    fn signed_bytes(&self) -> [u8; 129] {
        let mut bytes = [self.exponent; 129];
        bytes[..128].copy_from_slice(&self.modulus);
        bytes
    }
}

/// Reads the constant bytes that precede a field.
fn expect<'n, T: Trace<'n>, const N: usize>(
    reader: &mut Reader<'_, T>,
    wanted: [u8; N],
    before: &str,
) -> Result<()> {
    let at = reader.position() as u64;
    let found: [u8; N] = reader.take_array().map_err(|error| error.inside(before))?;
    if found == wanted {
        return Ok(());
    }
    let wanted = format!("the bytes {wanted:02x?}");
    Err(Error::malformed(wanted, format!("{found:02x?}")).at(at).inside(before))
}
