//! Certificates: the auth server signs them, and the margin server trusts them.

use std::borrow::Cow;

use md5::{Digest as _, Md5};
use worldwire_core::json::Given;
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Writer, record};

use crate::crypt::{EXPONENT, PrivateKey, PublicKey, Random, RsaError};
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

impl Certificate {
    /// The certificate of an account.
    ///
    /// # Errors
    /// A value error for a name that does not fit, or a key that is not a user key.
    pub fn new(
        user_id: u32,
        name: &str,
        key: &PublicKey,
        created: u32,
        expires: u32,
    ) -> Result<Self> {
        let modulus = key.modulus().try_into();
        Ok(Self {
            unknown1: 1,
            user_id,
            name: Padded::new(name).map_err(|error| error.inside("name"))?,
            unknown2: 256,
            unknown3: 0,
            expires,
            reserved: [0; 32],
            exponent: BigU16(EXPONENT),
            modulus: modulus.map_err(|_| Error::value("a user key", "another key"))?,
            created,
        })
    }

    /// What is signed: the MD5 of the encoded certificate.
    fn digest(&self) -> Result<[u8; 16]> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(Md5::digest(writer.as_bytes()).into())
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

    /// Signs a certificate with the server key.
    ///
    /// # Errors
    /// [`RsaError::Size`] for a key with another purpose.
    pub fn sign(
        certificate: Certificate,
        server: &PrivateKey,
        random: &mut Random,
    ) -> Result<Self, RsaError> {
        let digest = certificate.digest().map_err(|_| RsaError::Invalid)?;
        let signature = server.sign(&digest, random)?.try_into();
        let wanted = crate::crypt::KeyUse::Server;
        let size = |found: Vec<u8>| RsaError::Size { wanted, bits: found.len() * 8 };
        Ok(Self { signature: signature.map_err(size)?, certificate })
    }

    /// Whether the signature is the server key's.
    #[must_use]
    pub fn is_signed_by(&self, server: &PublicKey) -> bool {
        let digest = self.certificate.digest();
        digest.is_ok_and(|digest| server.verifies(&digest, &self.signature))
    }
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
    use crate::crypt::KeyUse;

    #[test]
    fn sizes_add_up() {
        assert_eq!(Certificate::LEAST, 182);
        assert_eq!(usize::from(SignedCertificate::BYTES), 128 + Certificate::LEAST);
    }

    #[test]
    fn a_changed_certificate_is_not_signed() {
        let mut random = Random::new([1; 32]);
        let server = PrivateKey::generate(KeyUse::Server, &mut random).unwrap();
        let user = PrivateKey::generate(KeyUse::User, &mut random).unwrap();
        let certificate = Certificate::new(28, "neo", user.public(), 1, 2).unwrap();
        let signed = SignedCertificate::sign(certificate, &server, &mut random).unwrap();
        assert!(signed.is_signed_by(server.public()));
        let mut other = signed.clone();
        other.certificate.user_id += 1;
        assert!(!other.is_signed_by(server.public()));
        let mut other = signed.clone();
        other.signature[7] ^= 1;
        assert!(!other.is_signed_by(server.public()));
        let refused = SignedCertificate::sign(signed.certificate, &user, &mut random);
        assert!(matches!(refused, Err(RsaError::Size { wanted: KeyUse::Server, bits: 768 })));
        assert!(Certificate::new(1, &"x".repeat(34), user.public(), 1, 2).is_err());
        assert!(Certificate::new(1, "x", server.public(), 1, 2).is_err());
    }
}
