//! The key exchange of a connection. For compatibility only.
//!
//! The client sends a number `y` and the server seven random bytes (the seed), each in a setup
//! packet. The session key is the seed, masked with the seven least significant bytes of the shared
//! secret `s = x^b = y^a mod n`.
//!
//! ```
//! use worldwire_uru::crypt::key::{PrivateKey, PrimeKind, ServerKind};
//! # use rand_core::SeedableRng;
//! # let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
//! // Once per shard:
//! let server = PrivateKey::generate(ServerKind::Auth, PrimeKind::Plain, &mut rng);
//! // Client: `b` is 64 random bytes.
//! let b = [0x5a; 64];
//! let (y, shared) = server.public().client_begin(&b)?;
//! // Server, on receiving `y`; `seed` is random.
//! let seed = [1, 2, 3, 4, 5, 6, 7];
//! let server_key = server.server_answer(y.as_bytes(), seed)?;
//! // Client, on receiving the seed.
//! assert_eq!(shared.session_key(seed), server_key);
//! # Ok::<(), worldwire_uru::crypt::exchange::ExchangeError>(())
//! ```
//!
//! A client without keys sends an empty `y` and continues unencrypted; the framing layer handles
//! that case. The exchange authenticates neither side.

use std::fmt;

use crypto_bigint::U512;
use zeroize::Zeroizing;

use super::key::{KEY_BYTES, PrivateKey, PublicKey, Weakness, le_bytes};
use super::secret::Secret;

/// The size of the seed and of the session key in bytes.
pub const SESSION_KEY_BYTES: usize = 7;

impl PublicKey {
    /// Client: computes the number to send and the shared secret from 64 fresh random bytes.
    ///
    /// `b` may be any number of up to 512 bits. It is read as little-endian, which does not matter
    /// for a random number.
    ///
    /// # Errors
    /// A range error of [`ExchangeError`] for the rare `b` (such as zero) whose number servers
    /// should refuse. Draw another one.
    pub fn client_begin(
        &self,
        b: &[u8; KEY_BYTES],
    ) -> Result<(ClientNumber, SharedSecret), ExchangeError> {
        let b = Zeroizing::new(U512::from_le_slice(b));
        let y = self.n().power(&U512::from_u32(self.kind().base()), &b);
        if let Some(weakness) = self.n().weakness(&y) {
            return Err(weakness.into());
        }
        let shared = SharedSecret(Secret(self.n().power(self.x_value(), &b)));
        Ok((ClientNumber::new(&y), shared))
    }
}

impl PrivateKey {
    /// Server: computes the session key from a client's number `y` and the seed sent in reply.
    ///
    /// `y` is little-endian without leading zero bytes, so one in 256 clients sends fewer than 64
    /// bytes.
    ///
    /// # Errors
    /// [`ExchangeError`] if the number is unsafe; close the connection. Other servers accept such
    /// clients.
    pub fn server_answer(
        &self,
        y: &[u8],
        seed: [u8; SESSION_KEY_BYTES],
    ) -> Result<SessionKey, ExchangeError> {
        let y = read_number(y)?;
        if let Some(weakness) = self.n().weakness(&y) {
            return Err(weakness.into());
        }
        Ok(self.shared(&y).session_key(seed))
    }

    /// Computes the session key of a captured connection, whether or not the server accepted it.
    ///
    /// Other servers accept numbers that [`server_answer`](Self::server_answer) refuses, so this
    /// accepts every number of up to 64 bytes. It is not for servers because its running time
    /// depends on the secret.
    pub fn captured_key(
        &self,
        y: &[u8],
        seed: [u8; SESSION_KEY_BYTES],
    ) -> Result<SessionKey, ExchangeError> {
        let y = self.captured_number(y)?;
        // Running time cannot leak anything here because nobody is waiting for a reply.
        Ok(SharedSecret(Secret(self.n().power_vartime(&y, self.a_value()))).session_key(seed))
    }

    /// Computes the shared secrets of many captured connections, in the order given;
    /// [`captured_key`](Self::captured_key) masks the seed with such a secret. With AVX-512 IFMA,
    /// eight take about as long as two.
    ///
    /// # Errors
    /// [`ExchangeError::TooLong`], separately for each number.
    #[must_use]
    pub fn captured_secrets(&self, ys: &[&[u8]]) -> Vec<Result<SharedSecret, ExchangeError>> {
        let numbers: Vec<_> = ys.iter().map(|y| self.captured_number(y)).collect();
        let bases: Vec<U512> = numbers.iter().flatten().copied().collect();
        let mut powers = self.n().powers_vartime(&bases, self.a_value()).into_iter();
        let secret = |number: Result<U512, _>| {
            // One result for each number.
            number.map(|_| SharedSecret(Secret(powers.next().unwrap_or_default())))
        };
        numbers.into_iter().map(secret).collect()
    }

    /// A client's number reduced below n, as other servers accept it.
    fn captured_number(&self, y: &[u8]) -> Result<U512, ExchangeError> {
        let y = read_number(y)?;
        // The modulus has 512 bits, so one subtraction is enough.
        Ok(if y >= *self.n().value() { y.wrapping_sub(self.n().value()) } else { y })
    }

    fn shared(&self, y: &U512) -> SharedSecret {
        SharedSecret(Secret(self.n().power(y, self.a_value())))
    }
}

/// Why a peer's number is refused. The peer is at fault and possibly malicious: weak
/// numbers let it learn the shared secret without any key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The number has more than 512 bits.
    #[error("the client's number y has {found} bytes; the limit is 64")]
    TooLong {
        /// The actual number of bytes.
        found: usize,
    },
    /// The number is 0 or empty.
    #[error("the client's number y is 0; it must satisfy 1 < y < n-1")]
    Zero,
    /// The number is 1.
    #[error("the client's number y is 1; it must satisfy 1 < y < n-1")]
    One,
    /// The number is n - 1.
    #[error("the client's number y is n-1; it must satisfy 1 < y < n-1")]
    MinusOne,
    /// The number is n or more, which no correct client computes with the right key.
    #[error("the client's number y is not below n; it must satisfy 1 < y < n-1")]
    NotReduced,
}

impl From<Weakness> for ExchangeError {
    fn from(weakness: Weakness) -> Self {
        match weakness {
            Weakness::Zero => Self::Zero,
            Weakness::One => Self::One,
            Weakness::MinusOne => Self::MinusOne,
            Weakness::NotReduced => Self::NotReduced,
        }
    }
}

/// The number `y` that a client sends in its setup packet.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientNumber {
    bytes: [u8; KEY_BYTES],
    length: usize,
}

impl ClientNumber {
    fn new(y: &U512) -> Self {
        let bytes = le_bytes(y);
        let length = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        Self { bytes, length }
    }

    /// The encoded number: little-endian without leading zeros, 1 to 64 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Debug for ClientNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientNumber").field(&self.as_bytes()).finish()
    }
}

/// The secret that both sides share once the client's number has been sent. The client keeps it
/// until the seed arrives.
///
/// Cleared on drop and hidden by `Debug`.
#[derive(Debug)]
pub struct SharedSecret(Secret<U512>);

impl SharedSecret {
    /// Computes the session key from the server's seed.
    #[must_use]
    pub fn session_key(&self, seed: [u8; SESSION_KEY_BYTES]) -> SessionKey {
        let secret = Zeroizing::new(le_bytes(&self.0.0));
        let mut key = seed;
        for (byte, mask) in key.iter_mut().zip(secret.iter()) {
            *byte ^= mask;
        }
        SessionKey::new(key)
    }
}

/// The session key of one connection, from which [`Rc4`](super::rc4::Rc4) starts in both
/// directions.
///
/// Cleared on drop, hidden by `Debug`, compared in constant time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKey(Secret<[u8; SESSION_KEY_BYTES]>);

impl SessionKey {
    /// A key obtained elsewhere, for example from a client's memory.
    #[must_use]
    pub fn new(bytes: [u8; SESSION_KEY_BYTES]) -> Self {
        Self(Secret(bytes))
    }

    /// The key itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; SESSION_KEY_BYTES] {
        &self.0.0
    }
}

/// Pads a short number with the omitted zeros.
fn read_number(y: &[u8]) -> Result<U512, ExchangeError> {
    let mut bytes = [0; KEY_BYTES];
    let head = bytes.get_mut(..y.len()).ok_or(ExchangeError::TooLong { found: y.len() })?;
    head.copy_from_slice(y);
    Ok(U512::from_le_slice(&bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::crypt::key::{Modulus, ServerKind, be_bytes};
    use rand_core::SeedableRng;

    pub(crate) fn rng(seed: u64) -> impl rand_core::CryptoRng {
        rand_chacha::ChaCha8Rng::seed_from_u64(seed)
    }

    /// Second case of the key exchange vectors: the gatekeeper, and a number of 63 bytes.
    const N: &str = "ebefca8ab29f8b3c4017a541070caf4efc26add15e639c6e47061c064ed328c2\
                     b01cf79e68d2dbd22dd6f69bf411f9a6b7b269d5891c5498dd013059af4ca973";
    const A: &str = "e3a08d0c388e839070f31477eb5e72e16aa03abef4f19e4983a7392b531219c6\
                     59d18b994f6d468b872c171bed69425ec3d602effef1fd5ae5323ca494985473";
    const B: &str = "036e2d9f602ec8a507d3fa0a03eb51499e1ed4b74bfbed003c7ce1d1ea17956f\
                     4783cb122571cb1f4b5c10aa6fe884db7b4e3d8d7d02a4310bb59d682877ef78";
    const Y: &str = "00c0aabeef7930f333c9a41522a57e681c2c04bf1e24400e584df77515991031\
                     8f70e612a312de9e119d843a78d43b285249f8a7c10e83d983e4c8204c4a4ce1";
    const SEED: [u8; 7] = [0xb8, 0x4b, 0x7b, 0xf0, 0x43, 0xf6, 0x9c];
    const KEY: [u8; 7] = [0xb3, 0x69, 0x97, 0x1b, 0xe0, 0x77, 0x7d];

    fn key() -> PrivateKey {
        let n = Modulus::from_be_bytes(&be_bytes(&U512::from_be_hex(N))).unwrap();
        PrivateKey::new(ServerKind::Gatekeeper, n, &be_bytes(&U512::from_be_hex(A))).unwrap()
    }

    #[test]
    fn known_exchange_with_a_short_number() {
        let b = le_bytes(&U512::from_be_hex(B));
        let (y, shared) = key().public().client_begin(&b).unwrap();
        assert_eq!(y.as_bytes(), &le_bytes(&U512::from_be_hex(Y))[..63]);
        assert_eq!(shared.session_key(SEED).as_bytes(), &KEY);
        assert_eq!(key().server_answer(y.as_bytes(), SEED).unwrap().as_bytes(), &KEY);
        assert_eq!(key().captured_key(y.as_bytes(), SEED).unwrap().as_bytes(), &KEY);
        // Trailing zeros make no difference.
        let padded = le_bytes(&U512::from_be_hex(Y));
        assert_eq!(key().server_answer(&padded, SEED).unwrap().as_bytes(), &KEY);
    }

    #[test]
    fn weak_numbers_are_refused_by_name() {
        let n = U512::from_be_hex(N);
        let cases = [
            (U512::ZERO, ExchangeError::Zero),
            (U512::ONE, ExchangeError::One),
            (n.wrapping_sub(&U512::ONE), ExchangeError::MinusOne),
            (n, ExchangeError::NotReduced),
            (n.wrapping_add(&U512::ONE), ExchangeError::NotReduced),
            (U512::MAX, ExchangeError::NotReduced),
        ];
        for (y, wanted) in cases {
            assert_eq!(key().server_answer(&le_bytes(&y), SEED), Err(wanted));
            assert_eq!(key().server_answer(ClientNumber::new(&y).as_bytes(), SEED), Err(wanted));
            assert!(key().captured_key(&le_bytes(&y), SEED).is_ok());
        }
        assert_eq!(key().server_answer(&[], SEED), Err(ExchangeError::Zero));
        assert_eq!(key().server_answer(&[2; 65], SEED), Err(ExchangeError::TooLong { found: 65 }));
        assert_eq!(key().captured_key(&[2; 65], SEED), Err(ExchangeError::TooLong { found: 65 }));
        // A client without randomness would send g^0 = 1.
        assert_eq!(key().public().client_begin(&[0; 64]).unwrap_err(), ExchangeError::One);
    }

    /// y = 1 makes s = 1 whatever the secret, so the key is the seed with one bit flipped.
    #[test]
    fn weak_numbers_in_captures_are_accepted() {
        let mut wanted = SEED;
        wanted[0] ^= 1;
        assert_eq!(key().captured_key(&[1], SEED).unwrap().as_bytes(), &wanted);
        // A number above n is reduced.
        let above = U512::from_be_hex(N).wrapping_add(&U512::ONE);
        assert_eq!(key().captured_key(&le_bytes(&above), SEED).unwrap().as_bytes(), &wanted);
    }

    #[test]
    fn secrets_computed_together_equal_single_ones() {
        let n = U512::from_be_hex(N);
        let mut numbers: Vec<Vec<u8>> = (1..20_u8).map(|byte| vec![byte; 64]).collect();
        numbers.extend([vec![], vec![1], vec![2; 65], le_bytes(&n).to_vec()]);
        for count in 0..=numbers.len() {
            let ys: Vec<&[u8]> = numbers[..count].iter().map(Vec::as_slice).collect();
            let secrets = key().captured_secrets(&ys);
            assert_eq!(secrets.len(), count);
            for (secret, y) in secrets.into_iter().zip(ys) {
                let found = secret.map(|secret| secret.session_key(SEED));
                assert_eq!(found, key().captured_key(y, SEED), "{y:x?}");
            }
        }
    }

    #[test]
    fn debug_hides_secrets() {
        let (_, shared) = key().public().client_begin(&[9; 64]).unwrap();
        assert_eq!(format!("{shared:?}"), "SharedSecret(..)");
        assert_eq!(format!("{:?}", shared.session_key(SEED)), "SessionKey(..)");
    }
}
