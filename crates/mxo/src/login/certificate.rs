//! Certificates: the auth server signs them, and the margin server trusts them.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Writer, record};

use crate::types::{BigU16, Padded};

record! {
    /// The data that the auth server certifies: the user, and the user's public key.
    pub struct Certificate {
        /// Unverified: its meaning; 1.
        unknown1 "unknown1": u8,
        /// The account.
        user_id "userId": u32,
        /// The account's name.
        name "name": Padded<33>,
        /// Unverified: its meaning; 256.
        unknown2 "unknown2": u16,
        /// Unverified: its meaning; 0.
        unknown3 "unknown3": u32,
        /// When it expires, in seconds since 1970; ten minutes after it was issued.
        expires "expires": u32,
        /// Zeros.
        reserved "reserved": [u8; 32],
        /// The public exponent of the user's key: 17.
        exponent "exponent": BigU16,
        /// The modulus of the user's key, 768 bits, big-endian.
        modulus "modulus": [u8; 96],
        /// When the account was created, in seconds since 1970.
        created "created": u32,
    }
}

/// A certificate with its signature, preceded by the size of both: a `u16`, always 310.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCertificate {
    /// The server key's signature over the MD5 of the certificate.
    pub signature: [u8; 128],
    /// The certificate.
    pub certificate: Certificate,
}

impl SignedCertificate {
    /// The size in bytes, without the count.
    pub const BYTES: u16 = 310;
}

impl<'d> Field<'d> for SignedCertificate {
    type Owned = Self;
    const LEAST: usize = 2 + Self::BYTES as usize;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 310, signature bytes(128), Certificate")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| {
            let at = reader.position() as u64;
            let size = u16::from_le_bytes(reader.take_array()?);
            if size != Self::BYTES {
                let wanted =
                    format!("{} bytes, the size of signature and certificate", Self::BYTES);
                return Err(Error::malformed(wanted, size.to_string()).at(at));
            }
            let signature = Field::decode(reader, "signature")?;
            let certificate = Field::decode(reader, "certificate")?;
            Ok(Self { signature, certificate })
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u16(Self::BYTES);
        writer.bytes(&self.signature);
        self.certificate.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = worldwire_core::json::FieldsOf::new(json)?;
        let signature = fields.value("signature")?;
        let certificate = fields.value("certificate")?;
        fields.end()?;
        Ok(Self { signature, certificate })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self { signature: Field::sample(sampler), certificate: Field::sample(sampler) }
    }

    fn into_owned(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_add_up() {
        assert_eq!(Certificate::LEAST, 182);
        assert_eq!(usize::from(SignedCertificate::BYTES), 128 + Certificate::LEAST);
    }
}
