//! The cryptography of a login: blobs for RSA keys, proofs with MD5, and signed certificates.

use md5::{Digest as _, Md5};
use worldwire_core::{Error, Field, Result, Writer};
use zeroize::Zeroizing;

use super::blob::{AuthProof, AuthSecret, MarginSecret, whole};
use super::certificate::{Certificate, SignedCertificate};
use crate::crypt::{BLOCK_BYTES, EXPONENT, KeyUse, PrivateKey, PublicKey, Random, RsaError};
use crate::types::{Array, BigU16, Bytes16, Padded, Secret, Str, wiped};

impl AuthSecret<'_> {
    /// Encrypts the contents for the server.
    ///
    /// # Errors
    /// [`RsaError::TooLong`] for a name of more than 56 bytes.
    pub fn seal(&self, server: &PublicKey, random: &mut Random) -> Result<Vec<u8>, RsaError> {
        server.encrypt(&plain(self)?, random)
    }

    /// Decrypts a blob with the server key.
    ///
    /// # Errors
    /// [`RsaError::Undecryptable`], whatever is wrong, even with the contents.
    pub fn open(
        blob: &[u8],
        server: &PrivateKey,
        random: &mut Random,
    ) -> Result<AuthSecret<'static>, RsaError> {
        let plain = server.decrypt(blob, random)?;
        whole(&plain, |reader| AuthSecret::decode(reader, "")).ok_or(RsaError::Undecryptable)
    }
}

impl<'a> AuthProof<'a> {
    /// The proof for a decrypted challenge.
    #[must_use]
    pub fn new(challenge: &[u8; BLOCK_BYTES], password: Str<'a>, soe_password: Str<'a>) -> Self {
        /// The size of everything before the passwords.
        const HEAD: usize = 23;
        let second = HEAD + password.wire_bytes();
        let third = second + soe_password.wire_bytes();
        let padding = (third + 2).next_multiple_of(BLOCK_BYTES) - (third + 2);
        let offset = |offset: usize| u16::try_from(offset).unwrap_or(u16::MAX);
        Self {
            reserved: 0,
            digest: Md5::digest(challenge).into(),
            offsets: Array([offset(HEAD), offset(second), offset(third)]),
            password: Secret(password),
            soe_password: Secret(soe_password),
            padding: Bytes16(vec![0; padding].into()),
        }
    }

    /// Whether the proof answers this challenge. Takes the same time, whatever the result.
    #[must_use]
    pub fn answers(&self, challenge: &[u8; BLOCK_BYTES]) -> bool {
        let wanted: [u8; 16] = Md5::digest(challenge).into();
        ctutils::CtEq::ct_eq(&wanted, &self.digest).into()
    }
}

impl MarginSecret {
    /// Encrypts the contents for the user.
    ///
    /// # Errors
    /// None with a user key.
    pub fn seal(&self, user: &PublicKey, random: &mut Random) -> Result<Vec<u8>, RsaError> {
        user.encrypt(&plain(self)?, random)
    }

    /// Decrypts a blob with the user's key.
    ///
    /// # Errors
    /// [`RsaError::Undecryptable`], whatever is wrong, even with the contents.
    pub fn open(blob: &[u8], user: &PrivateKey, random: &mut Random) -> Result<Self, RsaError> {
        let plain = user.decrypt(blob, random)?;
        whole(&plain, |reader| Self::decode(reader, "")).ok_or(RsaError::Undecryptable)
    }
}

impl Certificate {
    /// The certificate of an account.
    ///
    /// # Errors
    /// A value error for a name that does not fit or a key that is not a user key.
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
            modulus: modulus
                .map_err(|_| Error::value("a user key", "a key of a different size"))?,
            created,
        })
    }

    /// The bytes to sign: the MD5 of the encoded certificate.
    fn digest(&self) -> Result<[u8; 16]> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(Md5::digest(writer.as_bytes()).into())
    }
}

impl SignedCertificate {
    /// Signs a certificate with the server key.
    ///
    /// # Errors
    /// [`RsaError::Size`] for a key with a different purpose.
    pub fn sign(
        certificate: Certificate,
        server: &PrivateKey,
        random: &mut Random,
    ) -> Result<Self, RsaError> {
        let digest = certificate.digest().map_err(|_| RsaError::Invalid)?;
        let signature = server.sign(&digest, random)?.try_into();
        let wanted = KeyUse::Server;
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

fn plain<'d, F: Field<'d>>(value: &F) -> Result<Zeroizing<Vec<u8>>, RsaError> {
    wiped(value).map_err(|_| RsaError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

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
