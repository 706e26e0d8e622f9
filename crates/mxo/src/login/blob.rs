//! The contents of encrypted blobs in login messages.

use md5::{Digest as _, Md5};
use worldwire_core::{Error, Field as _, Reader, Result, record};
use zeroize::Zeroizing;

use crate::crypt::{BLOCK_BYTES, PrivateKey, PublicKey, Random, RsaError, SessionKey};
use crate::offset::offset_record;
use crate::types::{Array, Bytes16, Secret, Str, wiped};

offset_record! {
    /// The contents of an `AuthRequest`'s blob: RSA-OAEP (SHA-1), with the server's 1024-bit key.
    pub struct AuthSecret<'a> after 0 {
        /// 0.
        reserved "reserved": u8,
        /// The ID of the key that encrypts the blob.
        key_id "keyId": u32,
        @ u16 "nameOffset" of name;
        /// The Twofish key for the rest of the login, chosen by the client.
        key "key": Secret<[u8; 16]>,
        /// The server's clock from the `GetPublicKeyReply`.
        time "time": u32,
        /// The account's name.
        [at] name "name": Str<'a>,
    }
}

impl AuthSecret<'_> {
    /// Encrypts it for the server.
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

record! {
    /// The contents of an `AuthChallengeResponse`'s blob: Twofish in CBC mode, with the key from the
    /// request, a zero initialisation vector and no padding except its own.
    pub struct AuthProof<'a> {
        /// 0.
        reserved "reserved": u8,
        /// The MD5 of the decrypted challenge.
        digest "digest": [u8; 16],
        /// The offsets of both passwords and the padding. Clients also send other values.
        offsets "offsets": Array<u16, 3>,
        /// The password.
        password "password": Secret<Str<'a>>,
        /// A second password, of the publisher's account; often the same, or empty.
        soe_password "soePassword": Secret<Str<'a>>,
        /// Bytes up to a multiple of 16.
        padding "padding": Bytes16<'a>,
    }
}

impl<'a> AuthProof<'a> {
    /// The proof for a decrypted challenge.
    #[must_use]
    pub fn new(challenge: &[u8; BLOCK_BYTES], password: Str<'a>, soe_password: Str<'a>) -> Self {
        /// Everything before the passwords.
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

    /// Whether it answers this challenge. Takes the same time whatever the answer.
    #[must_use]
    pub fn answers(&self, challenge: &[u8; BLOCK_BYTES]) -> bool {
        let wanted: [u8; 16] = Md5::digest(challenge).into();
        ctutils::CtEq::ct_eq(&wanted, &self.digest).into()
    }

    /// Encrypts it.
    ///
    /// # Errors
    /// A value error for contents that are not a multiple of 16 bytes.
    pub fn seal(&self, key: &SessionKey) -> Result<Vec<u8>> {
        let plain = wiped(self)?;
        if !plain.len().is_multiple_of(BLOCK_BYTES) {
            let found = format!("{} bytes", plain.len());
            return Err(Error::value("a multiple of 16 bytes", found).inside("padding"));
        }
        Ok(key.seal_blocks(&[0; BLOCK_BYTES], &plain))
    }

    /// Decrypts a blob.
    ///
    /// # Errors
    /// Malformed if the blob does not consist of whole blocks, or does not decode to its end, as
    /// with another key.
    pub fn open(blob: &[u8], key: &SessionKey) -> Result<AuthProof<'static>> {
        let plain = key.open_blocks(&[0; BLOCK_BYTES], blob)?;
        let proof = whole(&plain, |reader| AuthProof::decode(reader, ""));
        proof.ok_or_else(|| Error::malformed("a proof encrypted with this key", "other bytes"))
    }
}

record! {
    /// The contents of a `CertChallenge`'s blob: RSA-OAEP (SHA-1), with the user's 768-bit key.
    pub struct MarginSecret {
        /// 0.
        reserved "reserved": u8,
        /// The session's Twofish key, for the margin channel and the game channel.
        key "key": Secret<[u8; 16]>,
        /// What the client returns.
        challenge "challenge": [u8; 16],
    }
}

impl MarginSecret {
    /// Encrypts it for the user.
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

fn plain<'d, F: worldwire_core::Field<'d>>(value: &F) -> Result<Zeroizing<Vec<u8>>, RsaError> {
    wiped(value).map_err(|_| RsaError::Invalid)
}

/// Decodes all bytes of a blob.
fn whole<'d, F: worldwire_core::Field<'d>>(
    plain: &'d [u8],
    decode: impl FnOnce(&mut Reader<'d>) -> Result<F>,
) -> Option<F::Owned> {
    let mut reader = Reader::new(plain);
    let value = decode(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value.into_owned())
}
