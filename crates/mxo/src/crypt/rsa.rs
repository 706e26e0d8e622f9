//! RSA keys: encrypted blobs (OAEP with SHA-1) and signatures (PKCS#1 v1.5 with MD5).
//!
//! For compatibility only: keys of 768 and 1024 bits, SHA-1 and MD5 are all weak.
//!
//! ```
//! use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
//!
//! let mut random = Random::new([7; 32]); // from the operating system
//! let key = PrivateKey::generate(KeyUse::User, &mut random)?;
//! let blob = key.public().encrypt(b"session key", &mut random)?;
//! assert_eq!(*key.decrypt(&blob, &mut random)?, b"session key");
//! let signature = key.sign(b"certificate", &mut random)?;
//! assert!(key.public().verifies(b"certificate", &signature));
//! # Ok::<(), worldwire_mxo::crypt::RsaError>(())
//! ```

use core::fmt;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{
    BoxedUint, CheckedSub as _, ConcatenatingMul as _, Gcd as _, NonZero, Odd, Resize as _,
};
use md5::Md5;
use rsa::Oaep;
use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use sha1::Sha1;
use zeroize::Zeroizing;

use super::random::Random;

/// The public exponent of all keys of the game.
pub const EXPONENT: u16 = 17;

/// The purpose of a key, which determines its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyUse {
    /// Signs the server key: 2048 bits. The client program contains its modulus.
    Signing,
    /// Decrypts login requests and signs certificates: 1024 bits.
    Server,
    /// Belongs to an account and decrypts the margin server's challenge: 768 bits.
    User,
}

impl KeyUse {
    /// The size of the modulus in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Signing => 256,
            Self::Server => 128,
            Self::User => 96,
        }
    }

    /// The size of the modulus in bits.
    #[must_use]
    pub const fn bits(self) -> usize {
        self.bytes() * 8
    }

    /// Whose key it is.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signing => "signing key",
            Self::Server => "server key",
            Self::User => "user key",
        }
    }
}

/// Why an RSA key or operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RsaError {
    /// A blob cannot be decrypted. The reason is deliberately not stated, because an attacker could
    /// learn from it.
    #[error("the blob cannot be decrypted with this key")]
    Undecryptable,
    /// The text does not fit into a blob.
    #[error("{bytes} bytes do not fit in a blob for this key, which holds at most {most}")]
    TooLong {
        /// The text's size.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
    /// The modulus does not have the size that the key's purpose requires.
    #[error("a {} has {} bits, but this key has {bits}", .wanted.name(), .wanted.bits())]
    Size {
        /// The purpose.
        wanted: KeyUse,
        /// The size of the modulus in bits.
        bits: usize,
    },
    /// The public exponent is not 17.
    #[error("the public exponent must be {EXPONENT}: the client accepts no other")]
    Exponent,
    /// The numbers do not form an RSA key.
    #[error("the numbers do not form an RSA key")]
    Invalid,
}

/// One of the game's public keys, with exponent 17.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    key: rsa::PublicKey,
    purpose: KeyUse,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bits)", self.purpose.bits())
    }
}

impl PublicKey {
    /// The key with this modulus, big-endian.
    ///
    /// # Errors
    /// [`RsaError::Size`], [`RsaError::Invalid`].
    pub fn new(purpose: KeyUse, modulus: &[u8]) -> Result<Self, RsaError> {
        if modulus.len() != purpose.bytes() {
            return Err(RsaError::Size { wanted: purpose, bits: modulus.len() * 8 });
        }
        let modulus = BoxedUint::from_be_slice_vartime(modulus);
        Self::of(purpose, modulus, BoxedUint::from(u64::from(EXPONENT)))
    }

    fn of(purpose: KeyUse, modulus: BoxedUint, exponent: BoxedUint) -> Result<Self, RsaError> {
        let bits = modulus.bit_width_vartime() as usize;
        if bits != purpose.bits() {
            return Err(RsaError::Size { wanted: purpose, bits });
        }
        let key = rsa::PublicKey::new_with_size_limits(modulus, exponent, bits..=bits);
        key.map(|key| Self { key, purpose }).map_err(|_| RsaError::Invalid)
    }

    /// The purpose.
    #[must_use]
    pub const fn purpose(&self) -> KeyUse {
        self.purpose
    }

    /// The modulus, big-endian.
    #[must_use]
    pub fn modulus(&self) -> Vec<u8> {
        self.key.n_bytes().into_vec()
    }

    /// The maximum size of plaintext that fits into a blob.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        // Two SHA-1 digests, a zero and a one.
        self.purpose.bytes() - 42
    }

    /// Encrypts plaintext. The blob is as long as the modulus.
    ///
    /// # Errors
    /// [`RsaError::TooLong`].
    pub fn encrypt(&self, plain: &[u8], random: &mut Random) -> Result<Vec<u8>, RsaError> {
        let error = RsaError::TooLong { bytes: plain.len(), most: self.capacity() };
        self.key.encrypt(random.generator(), Oaep::<Sha1>::new(), plain).map_err(|_| error)
    }

    /// Whether this is the owner's signature of the message.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.pkcs1v15_verify::<Md5>(message, signature).is_ok()
    }
}

/// One of the game's private keys. It is wiped on drop, and `Debug` never shows it.
#[derive(Clone)]
pub struct PrivateKey {
    key: rsa::PrivateKey,
    public: PublicKey,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({} bits)", self.public.purpose.bits())
    }
}

impl PrivateKey {
    /// Generates a key. This takes a noticeable fraction of a second, and many times that for a
    /// signing key.
    ///
    /// # Errors
    /// None in practice; [`RsaError::Invalid`] if the generated numbers do not form a key.
    pub fn generate(purpose: KeyUse, random: &mut Random) -> Result<Self, RsaError> {
        let exponent = BoxedUint::from(u64::from(EXPONENT));
        let generator = random.generator();
        let key = rsa::PrivateKey::new_with_exp_unchecked(generator, purpose.bits(), exponent);
        Self::of(purpose, key.map_err(|_| RsaError::Invalid)?)
    }

    /// The key with this modulus and private exponent, both big-endian. Clients receive their
    /// key in this form.
    ///
    /// # Errors
    /// [`RsaError::Size`], [`RsaError::Invalid`].
    pub fn from_exponent(
        purpose: KeyUse,
        modulus: &[u8],
        private: &[u8],
    ) -> Result<Self, RsaError> {
        let public = PublicKey::new(purpose, modulus)?;
        if private.len() > purpose.bytes() {
            return Err(RsaError::Invalid);
        }
        let bits = u32::try_from(purpose.bits()).map_err(|_| RsaError::Invalid)?;
        let private = BoxedUint::from_be_slice(private, bits).map_err(|_| RsaError::Invalid)?;
        let modulus = public.key.n().as_ref().clone();
        let [p, q] = factors(&modulus, &private).ok_or(RsaError::Invalid)?;
        let exponent = public.key.e().clone();
        let key = rsa::PrivateKey::from_components(modulus, exponent, private, vec![p, q]);
        key.map(|key| Self { key, public }).map_err(|_| RsaError::Invalid)
    }

    /// Checks size and exponent.
    pub(crate) fn of(purpose: KeyUse, key: rsa::PrivateKey) -> Result<Self, RsaError> {
        if *key.e() != BoxedUint::from(u64::from(EXPONENT)) {
            return Err(RsaError::Exponent);
        }
        let public = PublicKey::of(purpose, key.n().as_ref().clone(), key.e().clone())?;
        Ok(Self { key, public })
    }

    /// The key in the library's form, for writing files.
    pub(crate) const fn inner(&self) -> &rsa::PrivateKey {
        &self.key
    }

    /// The public half.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The private exponent, big-endian, padded to the size of the modulus.
    #[must_use]
    pub fn exponent(&self) -> Zeroizing<Vec<u8>> {
        let bytes = Zeroizing::new(self.key.d().to_be_bytes());
        let size = self.public.purpose.bytes();
        let mut padded = Zeroizing::new(vec![0; size.saturating_sub(bytes.len())]);
        padded.extend_from_slice(bytes.get(bytes.len().saturating_sub(size)..).unwrap_or_default());
        padded
    }

    /// Decrypts a blob. Decryption is blinded with random numbers, so timing reveals nothing.
    ///
    /// # Errors
    /// [`RsaError::Undecryptable`], whatever is wrong.
    pub fn decrypt(
        &self,
        blob: &[u8],
        random: &mut Random,
    ) -> Result<Zeroizing<Vec<u8>>, RsaError> {
        let plain = self.key.oaep_decrypt_with_rng::<Sha1, _>(random.generator(), blob);
        plain.map(Zeroizing::new).map_err(|_| RsaError::Undecryptable)
    }

    /// Signs a message. The signature is as long as the modulus.
    ///
    /// # Errors
    /// None in practice; [`RsaError::Invalid`] if the key is inconsistent.
    pub fn sign(&self, message: &[u8], random: &mut Random) -> Result<Vec<u8>, RsaError> {
        let signature = self.key.pkcs1v15_sign_with_rng::<Md5, _>(random.generator(), message);
        signature.map_err(|_| RsaError::Invalid)
    }
}

/// The factors of a modulus, computed from both exponents. `None` if the exponents do not belong to
/// it.
///
/// For every base b, b^(e*d - 1) is 1. Writing e*d - 1 as r * 2^t, squaring b^r repeatedly yields 1
/// at some point. For half of all bases, there is a number before the first 1, and it is not -1. Its
/// difference from 1 then has a common factor with the modulus.
fn factors(modulus: &BoxedUint, private: &BoxedUint) -> Option<[BoxedUint; 2]> {
    /// The probability that all these bases fail for a valid key is 2^-15.
    const BASES: [u64; 15] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47];
    let exponent = BoxedUint::from(u64::from(EXPONENT));
    let multiple = private.concatenating_mul(&exponent);
    let multiple = multiple.checked_sub(&BoxedUint::one_with_precision(multiple.bits_precision()));
    let multiple = multiple.into_option()?;
    let twos = multiple.trailing_zeros_vartime();
    if multiple.is_zero().into() || twos == 0 {
        return None;
    }
    let odd_part = multiple.shr_vartime(twos)?;
    let odd = Odd::new(modulus.clone()).into_option()?;
    let params = BoxedMontyParams::new(odd);
    let one = BoxedMontyForm::one(&params);
    let minus_one = BoxedMontyForm::zero(&params) - &one;
    let bits = modulus.bits_precision();
    BASES.iter().find_map(|base| {
        let base = BoxedUint::from(*base).resize_unchecked(bits);
        let mut power = BoxedMontyForm::new(base, &params).pow(&odd_part);
        for _ in 0..twos {
            let square = power.square();
            if square == one {
                if power == one || power == minus_one {
                    return None;
                }
                let distance = (power - &one).retrieve();
                let p = distance.gcd(modulus);
                let q = modulus / NonZero::new(p.clone()).into_option()?;
                return Some([p, q]);
            }
            power = square;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> Random {
        Random::new([5; 32])
    }

    #[test]
    fn keys_of_clients_are_rebuilt_from_both_numbers() {
        let mut random = random();
        for _ in 0..3 {
            let key = PrivateKey::generate(KeyUse::User, &mut random).unwrap();
            let modulus = key.public().modulus();
            assert_eq!((modulus.len(), key.exponent().len()), (96, 96));
            let rebuilt =
                PrivateKey::from_exponent(KeyUse::User, &modulus, &key.exponent()).unwrap();
            let blob = key.public().encrypt(&[4; 33], &mut random).unwrap();
            assert_eq!(*rebuilt.decrypt(&blob, &mut random).unwrap(), [4; 33]);
        }
    }

    #[test]
    fn numbers_that_are_not_a_key_are_refused() {
        let key = PrivateKey::generate(KeyUse::User, &mut random()).unwrap();
        let (modulus, exponent) = (key.public().modulus(), key.exponent());
        let make = |modulus: &[u8], exponent: &[u8]| {
            PrivateKey::from_exponent(KeyUse::User, modulus, exponent).map(drop)
        };
        let mut other = exponent.to_vec();
        other[40] ^= 1;
        for exponent in [&[][..], &[0; 96], &[1], &[0xff; 96], &[2; 97], &other] {
            assert_eq!(make(&modulus, exponent), Err(RsaError::Invalid), "{exponent:x?}");
        }
        let mut even = modulus.clone();
        even[95] &= 0xfe;
        assert_eq!(make(&even, &exponent), Err(RsaError::Invalid));
        assert_eq!(
            make(&modulus[1..], &exponent),
            Err(RsaError::Size { wanted: KeyUse::User, bits: 760 })
        );
        assert_eq!(
            make(&[0; 96], &exponent),
            Err(RsaError::Size { wanted: KeyUse::User, bits: 0 })
        );
    }

    #[test]
    fn a_blob_holds_a_bounded_text() {
        let mut random = random();
        let key = PrivateKey::generate(KeyUse::User, &mut random).unwrap();
        assert_eq!(key.public().capacity(), 54);
        let blob = key.public().encrypt(&[1; 54], &mut random).unwrap();
        assert_eq!(*key.decrypt(&blob, &mut random).unwrap(), [1; 54]);
        let error = key.public().encrypt(&[1; 55], &mut random).unwrap_err();
        assert_eq!(error, RsaError::TooLong { bytes: 55, most: 54 });
        for blob in [&blob[1..], &[0; 96], &[0xff; 96], &[]] {
            assert_eq!(key.decrypt(blob, &mut random), Err(RsaError::Undecryptable));
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let key = PrivateKey::generate(KeyUse::User, &mut random()).unwrap();
        assert_eq!(
            format!("{key:?} {:?}", key.public()),
            "PrivateKey(768 bits) PublicKey(768 bits)"
        );
        assert_eq!(format!("{:?}", random()), "Random(..)");
    }
}
