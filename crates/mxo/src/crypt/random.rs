//! The random numbers that a login needs: keys, challenges, padding and blinding.

use core::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use zeroize::Zeroize as _;

/// Generates random numbers from a seed (ChaCha20).
///
/// The seed must come from the operating system's random generator and must be used only once.
pub struct Random(ChaCha20Rng);

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random(..)")
    }
}

impl Random {
    /// Creates a generator and wipes this copy of the seed.
    #[must_use]
    pub fn new(mut seed: [u8; 32]) -> Self {
        let random = Self(ChaCha20Rng::from_seed(seed));
        seed.zeroize();
        random
    }

    /// The next random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// The underlying generator, for primitives that take one.
    pub(super) fn generator(&mut self) -> &mut ChaCha20Rng {
        &mut self.0
    }
}
