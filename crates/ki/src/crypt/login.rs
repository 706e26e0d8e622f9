//! The secrets that represent a password on the wire.
//!
//! A client proves that it knows the password with CK1, inside REC1. The server replies with CK2,
//! its own secret for the account. With CK2, the client proves on a second connection (PK3) that it
//! is the client that logged in. All of these depend on the session ID and the time in the session
//! offer that the connection received.

use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ofb::cipher::{KeyIvInit, StreamCipher};
use sha2::{Digest, Sha512};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::Salt;

/// A secret of the login, as text: a password hash, CK1, CK2 or PK3. Compared in constant time,
/// hidden by `Debug`, cleared on drop.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text of a secret, from a store or the wire.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are equal, compared in a time that depends only on their lengths.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The hash that an account store keeps: the base64 of the SHA-512 of the password in UTF-8, 88
/// characters. Treat it like the password: it is sufficient for logging in.
#[must_use]
pub fn password_hash(password: &str) -> Secret {
    Secret(BASE64.encode(Sha512::digest(password.as_bytes())))
}

/// CK1, the client's proof of a password: the base64 of the SHA-512 of the password hash and the
/// salt.
#[must_use]
pub fn ck1(password_hash: &Secret, salt: Salt) -> Secret {
    salted(password_hash, salt)
}

/// CK2, the server's secret for an account, from 64 fresh random bytes.
#[must_use]
pub fn ck2(random: &[u8; 64]) -> Secret {
    Secret(BASE64.encode(random))
}

/// PK3, the proof of CK2 on a second connection: the base64 of the SHA-512 of CK2 and that
/// connection's salt.
#[must_use]
pub fn pk3(ck2: &Secret, salt: Salt) -> Secret {
    salted(ck2, salt)
}

fn salted(secret: &Secret, salt: Salt) -> Secret {
    let mut hash = Sha512::new();
    hash.update(secret.0.as_bytes());
    hash.update(salt.to_string().as_bytes());
    Secret(BASE64.encode(hash.finalize()))
}

/// Encrypts or decrypts (the same operation) a `Rec1` field: Twofish with a 256-bit key in OFB. A
/// login's field contains a [`Rec1`], and the reply's field contains the text of CK2.
///
/// Key and IV depend only on the session's ID and time, so anyone who sees the offer can decrypt
/// it.
pub fn apply_rec1(salt: Salt, data: &mut [u8]) {
    let (key, iv) = rec1_key(salt);
    ofb::Ofb::<twofish::Twofish>::new(&key.into(), &iv.into()).apply_keystream(data);
}

/// The key and IV of [`apply_rec1`].
#[must_use]
pub fn rec1_key(salt: Salt) -> ([u8; 32], [u8; 16]) {
    let mut key = [0; 32];
    key.iter_mut().zip(0x17..).for_each(|(place, byte)| *place = byte);
    let mut iv = [0; 16];
    iv.iter_mut().zip((0xa7..=0xb6).rev()).for_each(|(place, byte)| *place = byte);
    let id = salt.session_id.to_le_bytes();
    let seconds = salt.seconds.to_le_bytes();
    let millis = salt.millis.to_le_bytes();
    (key[4], key[5], key[6]) = (id[0], 0, id[1]);
    (key[8], key[9], key[12], key[13]) = (seconds[0], seconds[2], seconds[1], seconds[3]);
    (key[14], key[15]) = (millis[0], millis[1]);
    (key, iv)
}

/// The contents of a login's `Rec1`: session ID, account name and CK1, separated by single spaces.
#[derive(Clone, Debug)]
pub struct Rec1 {
    /// The session ID.
    pub session_id: u16,
    /// The account name, without spaces.
    pub username: String,
    /// The proof.
    pub ck1: Secret,
}

/// Why a `Rec1` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rec1Error {
    /// The content is not text: it belongs to another session or is not a `Rec1`.
    #[error("the decrypted Rec1 is not text")]
    NotText,
    /// The content does not consist of three words.
    #[error("Rec1 must have three words (session ID, account name and CK1), but has {found}")]
    Words {
        /// The number of words.
        found: usize,
    },
    /// The first word is not a session ID.
    #[error("Rec1 must begin with a session ID, but begins with \"{found}\"")]
    SessionId {
        /// The word.
        found: String,
    },
    /// The session ID is not this connection's.
    #[error("Rec1 is for session {found}, but this is session {wanted}")]
    OtherSession {
        /// This connection's session ID.
        wanted: u16,
        /// The session ID in the Rec1.
        found: u16,
    },
}

impl Rec1 {
    /// The proof that a client with this password hash sends.
    #[must_use]
    pub fn new(username: &str, password_hash: &Secret, salt: Salt) -> Self {
        let ck1 = ck1(password_hash, salt);
        Self { session_id: salt.session_id, username: username.to_owned(), ck1 }
    }

    /// Encrypts the proof.
    #[must_use]
    pub fn seal(&self, salt: Salt) -> Vec<u8> {
        let Self { session_id, username, ck1 } = self;
        let mut data = format!("{session_id} {username} {}", ck1.as_str()).into_bytes();
        apply_rec1(salt, &mut data);
        data
    }

    /// Decrypts and parses a proof.
    pub fn open(sealed: &[u8], salt: Salt) -> Result<Self, Rec1Error> {
        let mut plain = Zeroizing::new(sealed.to_vec());
        apply_rec1(salt, &mut plain);
        let text = core::str::from_utf8(&plain).map_err(|_| Rec1Error::NotText)?;
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        let [id, username, ck1] = words[..] else {
            return Err(Rec1Error::Words { found: text.split(' ').count() });
        };
        // Only the canonical form is accepted: "0123" and "+123" are not.
        let session_id: Option<u16> =
            id.parse().ok().filter(|number: &u16| number.to_string() == id);
        let session_id = session_id.ok_or_else(|| Rec1Error::SessionId { found: id.to_owned() })?;
        if session_id != salt.session_id {
            return Err(Rec1Error::OtherSession { wanted: salt.session_id, found: session_id });
        }
        Ok(Self { session_id, username: username.to_owned(), ck1: Secret::new(ck1) })
    }

    /// Whether this proves the password with this hash, compared in constant time. For an account
    /// that does not exist, pass any hash, so that the time does not reveal its absence.
    #[must_use]
    pub fn proves(&self, password_hash: &Secret, salt: Salt) -> bool {
        ck1(password_hash, salt).is(&self.ck1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt { session_id: 3258, seconds: 1_617_815_695, millis: 805 };

    #[test]
    fn a_valid_login_is_proven() {
        let hash = password_hash("hunter2");
        let sealed = Rec1::new("Merle", &hash, SALT).seal(SALT);
        let opened = Rec1::open(&sealed, SALT).expect("the session is the same");
        assert_eq!((opened.session_id, opened.username.as_str()), (3258, "Merle"));
        assert!(opened.proves(&hash, SALT));
        assert!(!opened.proves(&password_hash("hunter3"), SALT));
        assert!(!opened.proves(&hash, Salt { millis: 806, ..SALT }));
    }

    #[test]
    fn every_mistake_has_its_error() {
        let seal = |text: &str| {
            let mut data = text.as_bytes().to_vec();
            apply_rec1(SALT, &mut data);
            Rec1::open(&data, SALT).map(|_| ()).expect_err("the Rec1 is invalid")
        };
        assert_eq!(seal("3258 a"), Rec1Error::Words { found: 2 });
        assert_eq!(seal("3258 a b c d"), Rec1Error::Words { found: 5 });
        for id in ["x", "03258", "+3258", "", "65536"] {
            assert_eq!(seal(&format!("{id} a b")), Rec1Error::SessionId { found: id.into() });
        }
        assert_eq!(seal("1 a b"), Rec1Error::OtherSession { wanted: 3258, found: 1 });
        let hash = password_hash("x");
        let other = Salt { session_id: 1, ..SALT };
        let sealed = Rec1::new("a", &hash, SALT).seal(SALT);
        assert_eq!(Rec1::open(&sealed, other).map(|_| ()), Err(Rec1Error::NotText));
    }

    #[test]
    fn debug_hides_secrets() {
        assert_eq!(format!("{:?}", password_hash("hunter2")), "Secret(..)");
    }
}
