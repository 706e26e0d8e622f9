//! Pike, the stream cipher from Ross Anderson's "On Fibonacci Keystream Generators" (1994), with
//! TERA's key expansion.
//!
//! Three lagged Fibonacci generators run over constant buffers; the majority of their carries
//! decides which of them step. Since the buffers never change, each generator's sums and carries
//! repeat after as many steps as it has words. They are computed once, and the carries of a
//! generator fit in one 64-bit register.

use core::fmt;

use worldwire_core::connection::StreamCipher;
use worldwire_core::sha0::{DIGEST_BYTES, sha0};
use zeroize::Zeroize;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 128;
/// Length of an expanded key in bytes.
pub(crate) const STATE_BYTES: usize = 680;

/// Words per generator, and the offset of the second tap.
const SIZES: [usize; 3] = [55, 57, 58];
const TAPS: [usize; 3] = [31, 50, 39];

/// Words of keystream generated at a time.
const BLOCK_WORDS: usize = 128;
const BLOCK_BYTES: usize = 4 * BLOCK_WORDS;
/// Length of a generator's sums, unrolled so that a block never wraps around.
const UNROLLED: usize = SIZES[2] + BLOCK_WORDS;

/// One direction of a connection. Encryption and decryption are the same operation.
#[derive(Clone)]
pub struct Pike {
    generators: [Generator; 3],
    block: [u8; BLOCK_BYTES],
    /// Bytes of the block that have been used.
    used: usize,
}

impl fmt::Debug for Pike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pike(..)")
    }
}

/// A lagged Fibonacci generator, as the sequence of its outputs.
#[derive(Clone)]
struct Generator {
    sums: [u32; UNROLLED],
    /// The carries of the sums, with the carry of the current position in bit 0.
    carries: u64,
    position: usize,
}

/// Expands a key: the key is repeated, then every 20 bytes are replaced with the hash of
/// everything.
pub(crate) fn expand(key: &[u8; KEY_BYTES]) -> [u8; STATE_BYTES] {
    let mut state = [0; STATE_BYTES];
    for (place, byte) in state.iter_mut().zip(key.iter().cycle()) {
        *place = *byte;
    }
    state[0] = 128;
    for start in (0..STATE_BYTES).step_by(DIGEST_BYTES) {
        let digest = sha0(&state);
        // The digest's words are big-endian, the state's are little-endian.
        for (place, word) in state[start..].chunks_exact_mut(4).zip(digest.chunks_exact(4)) {
            place.copy_from_slice(word);
            place.reverse();
        }
    }
    state
}

impl Pike {
    /// The cipher for a key, at its first byte.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        #[cfg(feature = "fuzzing")]
        if let Some(pike) = kept::keystream(key) {
            return pike;
        }
        Self::expanded(key)
    }

    fn expanded(key: &[u8; KEY_BYTES]) -> Self {
        let mut state = expand(key);
        let mut words = [0; STATE_BYTES / 4];
        for (word, bytes) in words.iter_mut().zip(state.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mut rest = &words[..];
        let generators = core::array::from_fn(|index| {
            let (own, others) = rest.split_at(SIZES[index]);
            rest = others;
            Generator::new(own, TAPS[index])
        });
        state.zeroize();
        words.zeroize();
        Self { generators, block: [0; BLOCK_BYTES], used: BLOCK_BYTES }
    }

    /// Encrypts or decrypts the next bytes.
    pub fn apply(&mut self, mut data: &mut [u8]) {
        while !data.is_empty() {
            if self.used == BLOCK_BYTES {
                self.refill();
            }
            let count = data.len().min(BLOCK_BYTES - self.used);
            let (now, later) = data.split_at_mut(count);
            let key = &self.block[self.used..self.used + count];
            now.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            self.used += count;
            data = later;
        }
    }

    /// Skips missing bytes.
    pub fn skip(&mut self, mut count: u64) {
        while count > 0 {
            if self.used == BLOCK_BYTES {
                self.refill();
            }
            let step = count.min((BLOCK_BYTES - self.used) as u64);
            self.used += usize::try_from(step).unwrap_or(0);
            count -= step;
        }
    }

    fn refill(&mut self) {
        let [a, b, c] = &mut self.generators;
        let (places, _) = self.block.as_chunks_mut::<4>();
        let (mut at_a, mut at_b, mut at_c) = (a.position, b.position, c.position);
        let (mut bits_a, mut bits_b, mut bits_c) = (a.carries, b.carries, c.carries);
        for place in places {
            // A block never steps past the end of the unrolled sums.
            let word = a.sums[at_a] ^ b.sums[at_b] ^ c.sums[at_c];
            *place = word.to_le_bytes();
            let majority = (bits_a & bits_b) | (bits_a & bits_c) | (bits_b & bits_c);
            let (step_a, step_b, step_c) =
                (!(bits_a ^ majority) & 1, !(bits_b ^ majority) & 1, !(bits_c ^ majority) & 1);
            bits_a = turned::<{ SIZES[0] }>(bits_a, step_a);
            bits_b = turned::<{ SIZES[1] }>(bits_b, step_b);
            bits_c = turned::<{ SIZES[2] }>(bits_c, step_c);
            at_a += usize::from(step_a == 1);
            at_b += usize::from(step_b == 1);
            at_c += usize::from(step_c == 1);
        }
        (a.carries, b.carries, c.carries) = (bits_a, bits_b, bits_c);
        a.position = at_a % SIZES[0];
        b.position = at_b % SIZES[1];
        c.position = at_c % SIZES[2];
        self.used = 0;
    }
}

/// Caches expanded keys for fuzz targets, which would otherwise spend nearly all their time
/// expanding the same few keys.
#[cfg(feature = "fuzzing")]
pub(crate) mod kept {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::{KEY_BYTES, Pike};

    /// Enough for the keys of all seeds and a few mutated keys.
    const MAX: usize = 16;

    /// Keys with their ciphers, most recently used first.
    type Kept = VecDeque<([u8; KEY_BYTES], Pike)>;

    thread_local! {
        /// `None` unless enabled: benchmarks and other tests expand every key.
        static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    }

    /// Enables the cache on this thread.
    pub(crate) fn begin() {
        KEPT.with_borrow_mut(|kept| _ = kept.get_or_insert_default());
    }

    /// The cipher for a key, if the cache is enabled.
    pub(super) fn keystream(key: &[u8; KEY_BYTES]) -> Option<Pike> {
        KEPT.with_borrow_mut(|kept| {
            let kept = kept.as_mut()?;
            let place = kept.iter().position(|(known, _)| known == key);
            let entry = place.and_then(|place| kept.remove(place));
            let (key, pike) = entry.unwrap_or_else(|| (*key, Pike::expanded(key)));
            kept.truncate(MAX - 1);
            kept.push_front((key, pike.clone()));
            Some(pike)
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn cached_ciphers_match_their_keys() {
            let stream = |mut pike: Pike| {
                let mut bytes = [0; 700];
                pike.apply(&mut bytes);
                bytes
            };
            assert!(keystream(&[1; KEY_BYTES]).is_none(), "the cache is disabled");
            begin();
            for key in (0..24).chain(0..24).chain([23, 23, 22]) {
                let key = [key; KEY_BYTES];
                assert!(stream(Pike::new(&key)) == stream(Pike::expanded(&key)));
            }
            KEPT.with_borrow(|kept| assert_eq!(kept.as_ref().map(VecDeque::len), Some(MAX)));
        }
    }
}

impl StreamCipher for Pike {
    fn apply(&mut self, bytes: &mut [u8]) {
        Self::apply(self, bytes);
    }
}

/// A register of `N` bits, rotated by 0 or 1 steps.
#[inline]
fn turned<const N: usize>(bits: u64, step: u64) -> u64 {
    let next = (bits >> 1) | ((bits & 1) << (N - 1));
    if step == 1 { next } else { bits }
}

impl Generator {
    fn new(words: &[u32], tap: usize) -> Self {
        let size = words.len();
        let mut sums = [0; UNROLLED];
        let mut carries = 0;
        for (index, place) in sums.iter_mut().enumerate() {
            let (first, second) = (words[index % size], words[(index + tap) % size]);
            let (sum, carry) = first.overflowing_add(second);
            *place = sum;
            if index < size {
                carries |= u64::from(carry) << index;
            }
        }
        // Initially, all carries are 0, so all generators step: the first output word combines the
        // first sums.
        Self { sums, carries, position: 0 }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.sums.zeroize();
        self.carries.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cipher word by word, as published.
    fn described(key: &[u8; KEY_BYTES], count: usize) -> Vec<u8> {
        struct Slow {
            words: Vec<u32>,
            tap: usize,
            position: usize,
            sum: u32,
            carry: bool,
        }
        let state = expand(key);
        let words: Vec<u32> =
            state.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut at = 0;
        let mut generators: Vec<Slow> = SIZES
            .iter()
            .zip(TAPS)
            .map(|(size, tap)| {
                let own = words[at..at + size].to_vec();
                at += size;
                Slow { words: own, tap, position: 0, sum: 0, carry: false }
            })
            .collect();
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let majority = generators.iter().filter(|slow| slow.carry).count() >= 2;
            for slow in generators.iter_mut().filter(|slow| slow.carry == majority) {
                let other = slow.words[(slow.position + slow.tap) % slow.words.len()];
                (slow.sum, slow.carry) = slow.words[slow.position].overflowing_add(other);
                slow.position = (slow.position + 1) % slow.words.len();
            }
            let word = generators.iter().fold(0, |word, slow| word ^ slow.sum);
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn registers_step_as_described() {
        for seed in 0..20u8 {
            let key = core::array::from_fn(|at| {
                at.to_le_bytes()[0].wrapping_mul(seed).wrapping_add(seed)
            });
            let mut bytes = vec![0; 10_001];
            Pike::new(&key).apply(&mut bytes);
            assert!(bytes == described(&key, bytes.len()), "of seed {seed}");
        }
    }

    #[test]
    fn chunks_and_skips_do_not_change_the_keystream() {
        let key = [0x12; KEY_BYTES];
        let mut whole = vec![0; 5000];
        Pike::new(&key).apply(&mut whole);
        for size in [1, 3, 511, 512, 513] {
            let mut pike = Pike::new(&key);
            let mut bytes = vec![0; 5000];
            for (index, piece) in bytes.chunks_mut(size).enumerate() {
                if index % 3 == 2 {
                    pike.skip(piece.len() as u64);
                    piece.copy_from_slice(&whole[index * size..][..piece.len()]);
                } else {
                    pike.apply(piece);
                }
            }
            assert!(bytes == whole, "in pieces of {size}");
        }
    }
}
