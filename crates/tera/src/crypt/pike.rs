//! Pike, the stream cipher of Ross Anderson's "On Fibonacci Keystream Generators" (1994), with
//! the key expansion of TERA.
//!
//! Three lagged Fibonacci generators run over buffers that never change; the majority of their
//! carries says which of them step. Since the buffers are constant, sums and carries of a
//! generator repeat after as many steps as it has words: they are computed once, and the carries of
//! a generator fit into one 64-bit register.

use core::fmt;

use worldwire_core::connection::StreamCipher;
use worldwire_core::sha0::{DIGEST_BYTES, sha0};
use zeroize::Zeroize;

/// Bytes of a key.
pub const KEY_BYTES: usize = 128;
/// Bytes of an expanded key.
pub const STATE_BYTES: usize = 680;

/// Words, and the distance of the second tap.
const SIZES: [usize; 3] = [55, 57, 58];
const TAPS: [usize; 3] = [31, 50, 39];

/// Words of keystream that are made at once.
const BLOCK_WORDS: usize = 128;
const BLOCK_BYTES: usize = 4 * BLOCK_WORDS;
/// Sums of a generator, unrolled so that a block needs no look at the end.
const UNROLLED: usize = SIZES[2] + BLOCK_WORDS;

/// One direction of a connection. Encrypting and decrypting are the same.
#[derive(Clone)]
pub struct Pike {
    generators: [Generator; 3],
    block: [u8; BLOCK_BYTES],
    /// Bytes of the block that are used up.
    used: usize,
}

impl fmt::Debug for Pike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pike(..)")
    }
}

/// A lagged Fibonacci generator: what it yields, step by step.
#[derive(Clone)]
struct Generator {
    sums: [u32; UNROLLED],
    /// The carries that belong to the sums, the one of the present position in bit 0.
    carries: u64,
    position: usize,
}

/// The state that a key makes: the key over and over, and then every 20 bytes the hash of all.
#[must_use]
pub fn expand(key: &[u8; KEY_BYTES]) -> [u8; STATE_BYTES] {
    let mut state = [0; STATE_BYTES];
    for (place, byte) in state.iter_mut().zip(key.iter().cycle()) {
        *place = *byte;
    }
    state[0] = 128;
    for start in (0..STATE_BYTES).step_by(DIGEST_BYTES) {
        let digest = sha0(&state);
        // The words of the digest are big-endian, those of the state are not.
        for (place, word) in state[start..].chunks_exact_mut(4).zip(digest.chunks_exact(4)) {
            place.copy_from_slice(word);
            place.reverse();
        }
    }
    state
}

impl Pike {
    /// The keystream of a key, from its first byte.
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

    /// Encrypts or decrypts the bytes that come next.
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

    /// Passes over bytes that are missing.
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
            // A block's steps cannot leave the unrolled sums, so the mask only tells that.
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

/// Keystreams of the keys that came last, for fuzz targets: nearly all the time of driving a
/// connection would go into expanding a handful of keys over and over.
#[cfg(feature = "fuzzing")]
pub(crate) mod kept {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::{KEY_BYTES, Pike};

    /// The exchanges of all seeds, and a few of mutated ones.
    const MAX: usize = 16;

    /// The last one first.
    type Kept = VecDeque<([u8; KEY_BYTES], Pike)>;

    thread_local! {
        /// Nothing where nobody asked for it: benchmarks and other tests expand every key.
        static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    }

    /// From now on keystreams are kept on this thread.
    pub(crate) fn begin() {
        KEPT.with_borrow_mut(|kept| _ = kept.get_or_insert_default());
    }

    /// The keystream of a key, if keystreams are kept.
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
        fn what_is_kept_is_the_keystream_of_the_key() {
            let stream = |mut pike: Pike| {
                let mut bytes = [0; 700];
                pike.apply(&mut bytes);
                bytes
            };
            assert!(keystream(&[1; KEY_BYTES]).is_none(), "nobody asked for it");
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

/// A register of `N` bits after so many steps, 0 or 1.
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
        // Before the first step all carries are 0, so all generators take it: the first word is
        // the first sums.
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

    /// Word by word, as the description has it.
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
    fn pieces_and_holes_change_nothing() {
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
