//! The contents of encrypted blobs in login messages.

use worldwire_core::{Error, Field, Reader, Result, record};

use crate::crypt::{BLOCK_BYTES, SessionKey};
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
        /// A second password, of the publisher's account; often the same as the first, or empty.
        soe_password "soePassword": Secret<Str<'a>>,
        /// Bytes up to a multiple of 16.
        padding "padding": Bytes16<'a>,
    }
}

impl AuthProof<'_> {
    /// Encrypts the proof.
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
    /// Malformed if the blob does not consist of whole blocks, or does not decode to its
    /// end, for example with the wrong key.
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

/// Decodes all bytes of a blob.
pub(super) fn whole<'d, F: Field<'d>>(
    plain: &'d [u8],
    decode: impl FnOnce(&mut Reader<'d>) -> Result<F>,
) -> Option<F::Owned> {
    let mut reader = Reader::new(plain);
    let value = decode(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value.into_owned())
}
