//! The long-lived keys of a shard: one pair per server. For compatibility only.
//!
//! A pair consists of a 512-bit modulus `n`, the server's secret `a`, and `x = g^a mod n` for the
//! clients; the base `g` is fixed per server. For text and file formats see
//! [`file::keys`](crate::file::keys); [`exchange`](super::exchange) uses the keys.

use std::fmt;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U512};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::lanes::{self, LANES};
use super::power::Montgomery;

/// The size of a modulus, a secret and a residue in bytes.
pub const KEY_BYTES: usize = 64;

/// The servers that encrypt connections, each with its own keys and base.
///
/// File connections are never encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerKind {
    /// Tells clients the addresses of the other servers.
    Gatekeeper,
    /// Accounts, players, vault.
    Auth,
    /// Age instances.
    Game,
    /// Customer service, long defunct; only found in old captures and key files.
    Csr,
}

impl ServerKind {
    /// All servers, in the order used in key files.
    pub const ALL: [Self; 4] = [Self::Gatekeeper, Self::Auth, Self::Game, Self::Csr];

    /// The base `g`, the same on all shards.
    #[must_use]
    pub fn base(self) -> u32 {
        match self {
            Self::Gatekeeper => 4,
            Self::Auth => 41,
            Self::Game => 73,
            Self::Csr => 97,
        }
    }

    /// The name in worldwire's key files and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gatekeeper => "gatekeeper",
            Self::Auth => "auth",
            Self::Game => "game",
            Self::Csr => "csr",
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a number is not valid in a key. The key file is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The modulus is even. It should be prime, and the arithmetic requires an odd modulus.
    #[error("the modulus n is even; it must be odd")]
    ModulusEven,
    /// The modulus is too small.
    #[error("the modulus n has {found} bits; it must have exactly 512")]
    ModulusBits {
        /// The actual number of bits.
        found: u32,
    },
    /// The public value is 0, 1, n - 1 or at least n, so it cannot hide anything.
    #[error("the public value x is 0, 1, n-1 or not below n; it must satisfy 1 < x < n-1")]
    PublicRange,
    /// The secret is zero.
    #[error("the secret a is zero; it must be a random number of 512 bits")]
    SecretZero,
    /// The given public value does not match the secret.
    #[error("the public value x is not g^a mod n for this secret and modulus")]
    Mismatch,
}

/// A modulus, prepared for arithmetic once rather than per connection.
///
/// It is odd and has exactly 512 bits. It need not be prime: a server must work with the keys that
/// its clients have.
#[derive(Clone, PartialEq, Eq)]
pub struct Modulus {
    params: FixedMontyParams<8>,
    quick: Montgomery,
}

impl Modulus {
    /// Creates a modulus from its bytes, most significant first, as in text formats.
    pub fn from_be_bytes(bytes: &[u8; KEY_BYTES]) -> Result<Self, KeyError> {
        let n = U512::from_be_slice(bytes);
        let found = n.bit_width_vartime();
        if found != U512::BITS {
            return Err(KeyError::ModulusBits { found });
        }
        let odd = Odd::new(n).into_option().ok_or(KeyError::ModulusEven)?;
        Ok(Self {
            params: FixedMontyParams::new_vartime(odd),
            quick: Montgomery::new(n.to_words()),
        })
    }

    /// The modulus, most significant byte first.
    #[must_use]
    pub fn to_be_bytes(&self) -> [u8; KEY_BYTES] {
        be_bytes(self.value())
    }

    pub(super) fn value(&self) -> &U512 {
        self.params.modulus().as_ref()
    }

    /// `base^exponent mod n` in constant time. `base` must be below n.
    pub(super) fn power(&self, base: &U512, exponent: &U512) -> U512 {
        let mut form = FixedMontyForm::new(base, &self.params);
        let mut result = form.pow(exponent);
        let value = result.retrieve();
        form.zeroize();
        result.zeroize();
        value
    }

    /// `base^exponent mod n` in a time that depends on the exponent. Faster, and safe for
    /// decrypting captures with one's own key, where nobody measures the time.
    pub(super) fn power_vartime(&self, base: &U512, exponent: &U512) -> U512 {
        let base = FixedMontyForm::new(base, &self.params).to_montgomery();
        let power = self.quick.power(&base.to_words(), &exponent.to_words());
        let mut result = FixedMontyForm::from_montgomery(U512::from_words(power), &self.params);
        let value = result.retrieve();
        result.zeroize();
        value
    }

    /// Computes powers of many bases; several times as fast if the processor can handle eight at a
    /// time.
    pub(super) fn powers_vartime(&self, bases: &[U512], exponent: &U512) -> Vec<U512> {
        let mut all = Vec::with_capacity(bases.len());
        for bases in bases.chunks(LANES) {
            let words: Vec<_> = bases.iter().map(|base| base.to_words()).collect();
            // Eight lanes take as long as two single numbers.
            let powers = (bases.len() > 1)
                .then(|| lanes::powers(&self.quick, &words, &exponent.to_words()))
                .flatten();
            match powers {
                Some(powers) => all.extend(powers.into_iter().map(U512::from_words)),
                None => all.extend(bases.iter().map(|base| self.power_vartime(base, exponent))),
            }
        }
        all
    }

    /// Why `value` is unusable as a public value, if it is.
    pub(super) fn weakness(&self, value: &U512) -> Option<Weakness> {
        let top = self.value().wrapping_sub(&U512::ONE);
        if *value == U512::ZERO {
            Some(Weakness::Zero)
        } else if *value == U512::ONE {
            Some(Weakness::One)
        } else if *value == top {
            Some(Weakness::MinusOne)
        } else if *value > top {
            Some(Weakness::NotReduced)
        } else {
            None
        }
    }
}

impl fmt::Debug for Modulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modulus({:x})", self.value())
    }
}

/// A public value that reveals the shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakness {
    Zero,
    One,
    MinusOne,
    NotReduced,
}

/// The public key of a pair, which H'uru reads from `server.ini` as N and X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: ServerKind,
    n: Modulus,
    x: U512,
}

impl PublicKey {
    /// Creates a public key; `x` is given most significant byte first.
    pub fn new(kind: ServerKind, n: Modulus, x: &[u8; KEY_BYTES]) -> Result<Self, KeyError> {
        let x = U512::from_be_slice(x);
        if n.weakness(&x).is_some() {
            return Err(KeyError::PublicRange);
        }
        Ok(Self { kind, n, x })
    }

    /// The server to which the key belongs.
    #[must_use]
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// The modulus.
    #[must_use]
    pub fn n(&self) -> &Modulus {
        &self.n
    }

    /// The public value, most significant byte first.
    #[must_use]
    pub fn x(&self) -> [u8; KEY_BYTES] {
        be_bytes(&self.x)
    }

    pub(super) fn x_value(&self) -> &U512 {
        &self.x
    }
}

/// The private key of a pair. It decrypts every connection to that server, including recorded ones.
///
/// The secret is called `a` here and in NAGUS; dirtsand and moulars call it `k`. It is cleared on
/// drop and hidden by `Debug`.
#[derive(Clone)]
pub struct PrivateKey {
    public: PublicKey,
    a: U512,
}

impl PrivateKey {
    /// Creates a key pair and computes the public value; `a` is given most significant byte first
    /// and may be larger than `n`.
    ///
    /// # Errors
    /// [`KeyError::SecretZero`], or [`KeyError::PublicRange`] for the rare secret whose public
    /// value reveals it.
    pub fn new(kind: ServerKind, n: Modulus, a: &[u8; KEY_BYTES]) -> Result<Self, KeyError> {
        let a = Zeroizing::new(U512::from_be_slice(a));
        if *a == U512::ZERO {
            return Err(KeyError::SecretZero);
        }
        let x = n.power(&U512::from_u32(kind.base()), &a);
        if n.weakness(&x).is_some() {
            return Err(KeyError::PublicRange);
        }
        Ok(Self { public: PublicKey { kind, n, x }, a: *a })
    }

    /// Generates a key pair: a prime modulus of exactly 512 bits and a secret below it.
    ///
    /// `rng` must be cryptographically secure, and from `rand_core` 0.10. Equal random numbers
    /// yield equal keys. An optimised build takes about 30 ms on average for [`PrimeKind::Safe`],
    /// rarely ten times that, and about 2 ms for [`PrimeKind::Plain`] (bench `uru/key/generate`).
    #[cfg(feature = "keys")]
    #[must_use]
    pub fn generate<R>(kind: ServerKind, prime: PrimeKind, rng: &mut R) -> Self
    where
        R: rand_core::CryptoRng + ?Sized,
    {
        use crypto_primes::{Flavor, random_prime};

        let flavor = match prime {
            PrimeKind::Plain => Flavor::Any,
            PrimeKind::Safe => Flavor::Safe,
        };
        let mut a = Zeroizing::new([0; KEY_BYTES]);
        loop {
            // A prime with its highest bit set is always accepted, and so is nearly every secret,
            // so the loop hardly ever repeats.
            let n: U512 = random_prime(rng, flavor, U512::BITS);
            let Ok(n) = Modulus::from_be_bytes(&be_bytes(&n)) else { continue };
            rng.fill_bytes(&mut *a);
            while U512::from_be_slice(&*a) >= *n.value() {
                rng.fill_bytes(&mut *a);
            }
            if let Ok(key) = Self::new(kind, n, &a) {
                return key;
            }
        }
    }

    /// The public key for clients.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The server to which the key belongs.
    #[must_use]
    pub fn kind(&self) -> ServerKind {
        self.public.kind
    }

    /// The modulus.
    #[must_use]
    pub fn n(&self) -> &Modulus {
        &self.public.n
    }

    /// The public value, most significant byte first.
    #[must_use]
    pub fn x(&self) -> [u8; KEY_BYTES] {
        self.public.x()
    }

    /// The secret, most significant byte first, for writing key files. Cleared on drop.
    #[must_use]
    pub fn a(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        Zeroizing::new(be_bytes(&self.a))
    }

    pub(super) fn a_value(&self) -> &U512 {
        &self.a
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.a.zeroize();
    }
}

impl ZeroizeOnDrop for PrivateKey {}

/// The kind of prime to generate.
#[cfg(feature = "keys")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrimeKind {
    /// Any prime: fast to generate, and just as good except against a dishonest peer.
    Plain,
    /// A prime n such that (n - 1) / 2 is prime too, which rules out small subgroups.
    #[default]
    Safe,
}

/// The number, most significant byte first.
pub(super) fn be_bytes(value: &U512) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(value.to_be_bytes().as_slice());
    bytes
}

/// The number, least significant byte first.
pub(super) fn le_bytes(value: &U512) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(value.to_le_bytes().as_slice());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The auth server of the key exchange vectors.
    const N: &str = "d9ec7f17e1619000596f05c1599e41502d1711651f90f394536e37faecc2415e\
                     b90956eefce2d9e42f724815210c4d1dcd066823ecb83871867e6d80ad180b0d";
    const A: &str = "6064a3850932e42567fe2e034a4a4430a8e415bf30e198ae012abcb9bed3da42\
                     39d5592c9f789a4cc4121247c9fb44277886ceeedf800e894e4aa3d4a7f6ab85";
    const X: &str = "01ecbaffdd29d78dec8d21bb787ea3f5a396108ecb2d8553efc5be2c23c87275\
                     b66c2a46d5b8c361b0ef88d540d49e91063e88da73b67c250369a260e1a660ea";

    fn number(text: &str) -> [u8; 64] {
        be_bytes(&U512::from_be_hex(text))
    }

    fn modulus() -> Modulus {
        Modulus::from_be_bytes(&number(N)).unwrap()
    }

    #[test]
    fn the_public_value_follows_from_the_secret() {
        let key = PrivateKey::new(ServerKind::Auth, modulus(), &number(A)).unwrap();
        assert_eq!(key.x(), number(X));
        assert_eq!(*key.a(), number(A));
        assert_eq!(key.n().to_be_bytes(), number(N));
        assert_eq!(*key.public(), PublicKey::new(ServerKind::Auth, modulus(), &number(X)).unwrap());
        // A different base yields a different public value.
        let game = PrivateKey::new(ServerKind::Game, modulus(), &number(A)).unwrap();
        assert_ne!(game.x(), number(X));
    }

    #[test]
    fn invalid_numbers_are_reported() {
        let mut even = number(N);
        even[63] &= 0xfe;
        assert_eq!(Modulus::from_be_bytes(&even), Err(KeyError::ModulusEven));
        let mut short = number(N);
        short[0] = 0x3f;
        assert_eq!(Modulus::from_be_bytes(&short), Err(KeyError::ModulusBits { found: 510 }));
        assert_eq!(Modulus::from_be_bytes(&[0; 64]), Err(KeyError::ModulusBits { found: 0 }));
        let a = PrivateKey::new(ServerKind::Auth, modulus(), &[0; 64]);
        assert_eq!(a.unwrap_err(), KeyError::SecretZero);
        let mut one = [0; 64];
        one[63] = 1;
        let mut minus_one = number(N);
        minus_one[63] -= 1;
        for x in [[0; 64], one, minus_one, number(N), [0xff; 64]] {
            assert_eq!(PublicKey::new(ServerKind::Auth, modulus(), &x), Err(KeyError::PublicRange));
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        let key = PrivateKey::new(ServerKind::Auth, modulus(), &number(A)).unwrap();
        let text = format!("{key:?}").to_lowercase();
        assert!(text.contains(&N[..16]));
        assert!(!text.contains(&A[..16]));
    }

    #[test]
    fn new_keys() {
        let mut rng = super::super::exchange::tests::rng(7);
        let key = PrivateKey::generate(ServerKind::Gatekeeper, PrimeKind::Plain, &mut rng);
        assert!(crypto_primes::is_prime(crypto_primes::Flavor::Any, key.n().value()));
        assert!(*key.a_value() < *key.n().value());
        let mut again = super::super::exchange::tests::rng(7);
        let same = PrivateKey::generate(ServerKind::Gatekeeper, PrimeKind::Plain, &mut again);
        assert_eq!(same.public(), key.public());
    }
}
