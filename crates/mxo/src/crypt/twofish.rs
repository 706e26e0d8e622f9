//! Twofish with 128-bit keys. For compatibility only: its table lookups, and so its timing, depend
//! on the key and the data.
//!
//! The whole key goes into four tables ("full keying" in its authors' terms), which makes
//! encrypting a block about fifty times faster than computing the substitutions each time. That is
//! worth 4 KiB for a key that is used for a whole session.

use core::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// The size of a block, of an initialisation vector and of a key.
pub const BLOCK_BYTES: usize = 16;

const ROUNDS: usize = 16;

/// An expanded key. It is wiped when it is dropped.
#[derive(Clone)]
pub(super) struct Twofish {
    /// The contribution of each byte of a word to `g`.
    tables: Box<[[u32; 256]; 4]>,
    /// The subkeys for whitening, then two for each round.
    subkeys: [u32; 8 + 2 * ROUNDS],
}

impl fmt::Debug for Twofish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Twofish(..)")
    }
}

impl Drop for Twofish {
    fn drop(&mut self) {
        self.tables.iter_mut().for_each(Zeroize::zeroize);
        self.subkeys.zeroize();
    }
}

impl ZeroizeOnDrop for Twofish {}

impl Twofish {
    pub(super) fn new(key: &[u8; BLOCK_BYTES]) -> Self {
        let mut words = words(key);
        let [even, odd] = [[words[0], words[2]], [words[1], words[3]]];
        let [low, high] = [[words[0], words[1]], [words[2], words[3]]];
        let mut boxes = [reed_solomon(high), reed_solomon(low)];
        let mut tables = Box::new([[0; 256]; 4]);
        for (position, table) in tables.iter_mut().enumerate() {
            for (byte, entry) in (0..=u8::MAX).zip(table.iter_mut()) {
                *entry = column(position, substitute(position, byte, boxes));
            }
        }
        let mut subkeys = [0; 8 + 2 * ROUNDS];
        let (pairs, _) = subkeys.as_chunks_mut::<2>();
        for (index, pair) in (0..).zip(pairs) {
            let a = h(index * 2, even);
            let b = h(index * 2 + 1, odd).rotate_left(8);
            let sum = a.wrapping_add(b);
            *pair = [sum, sum.wrapping_add(b).rotate_left(9)];
        }
        words.zeroize();
        boxes.zeroize();
        Self { tables, subkeys }
    }

    pub(super) fn encrypt(&self, block: &mut [u8; BLOCK_BYTES]) {
        let [before, after, rounds @ ..] = self.subkeys.as_chunks::<4>().0 else { return };
        let [mut a, mut b, mut c, mut d] = mixed(words(block), *before);
        for [even, odd, next_even, next_odd] in rounds {
            let [first, second] = self.round(a, b, *even, *odd);
            c = (c ^ first).rotate_right(1);
            d = d.rotate_left(1) ^ second;
            let [first, second] = self.round(c, d, *next_even, *next_odd);
            a = (a ^ first).rotate_right(1);
            b = b.rotate_left(1) ^ second;
        }
        *block = bytes(mixed([c, d, a, b], *after));
    }

    pub(super) fn decrypt(&self, block: &mut [u8; BLOCK_BYTES]) {
        let [before, after, rounds @ ..] = self.subkeys.as_chunks::<4>().0 else { return };
        let [mut c, mut d, mut a, mut b] = mixed(words(block), *after);
        for [even, odd, next_even, next_odd] in rounds.iter().rev() {
            let [first, second] = self.round(c, d, *next_even, *next_odd);
            a = a.rotate_left(1) ^ first;
            b = (b ^ second).rotate_right(1);
            let [first, second] = self.round(a, b, *even, *odd);
            c = c.rotate_left(1) ^ first;
            d = (d ^ second).rotate_right(1);
        }
        *block = bytes(mixed([a, b, c, d], *before));
    }

    /// The function F of a round.
    #[inline]
    fn round(&self, a: u32, b: u32, even: u32, odd: u32) -> [u32; 2] {
        let (a, b) = (self.g(a), self.g(b.rotate_left(8)));
        let sum = a.wrapping_add(b);
        [sum.wrapping_add(even), sum.wrapping_add(b).wrapping_add(odd)]
    }

    #[inline]
    fn g(&self, word: u32) -> u32 {
        let [w, x, y, z] = word.to_le_bytes().map(usize::from);
        let [first, second, third, fourth] = &*self.tables;
        first[w] ^ second[x] ^ third[y] ^ fourth[z]
    }
}

fn words(block: &[u8; BLOCK_BYTES]) -> [u32; 4] {
    let (chunks, _) = block.as_chunks::<4>();
    core::array::from_fn(|at| chunks.get(at).map_or(0, |bytes| u32::from_le_bytes(*bytes)))
}

fn bytes(words: [u32; 4]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    for (chunk, word) in block.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    block
}

fn mixed([a, b, c, d]: [u32; 4], [w, x, y, z]: [u32; 4]) -> [u32; 4] {
    [a ^ w, b ^ x, c ^ y, d ^ z]
}

/// The function h, applied to a word of four equal bytes.
fn h(byte: u8, keys: [u32; 2]) -> u32 {
    (0..4).fold(0, |sum, position| sum ^ column(position, substitute(position, byte, keys)))
}

/// Three permutations of a byte, with key bytes in between.
fn substitute(position: usize, byte: u8, [outer, inner]: [u32; 2]) -> u8 {
    // The permutations, innermost first.
    const ORDER: [[usize; 3]; 4] = [[0, 0, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]];
    let [first, second, third] = ORDER[position];
    let key = |word: u32| word.to_le_bytes()[position];
    let permute = |which: usize, byte: u8| PERMUTATIONS[which][usize::from(byte)];
    permute(third, permute(second, permute(first, byte) ^ key(inner)) ^ key(outer))
}

/// A column of the MDS matrix, times a byte.
fn column(position: usize, byte: u8) -> u32 {
    let (low, high) = (product(byte, 0x5b, MDS), product(byte, 0xef, MDS));
    u32::from_le_bytes(match position {
        0 => [byte, low, high, high],
        1 => [high, high, low, byte],
        2 => [low, high, byte, high],
        _ => [low, byte, high, low],
    })
}

/// The RS matrix, times eight bytes of the key.
fn reed_solomon(key: [u32; 2]) -> u32 {
    const MATRIX: [[u8; 8]; 4] = [
        [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
        [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
        [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
        [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
    ];
    let key = key.map(u32::to_le_bytes);
    let row = |row: [u8; 8]| {
        let factors = row.iter().zip(key.as_flattened());
        factors.fold(0, |sum, (factor, byte)| sum ^ product(*byte, *factor, RS))
    };
    u32::from_le_bytes(MATRIX.map(row))
}

/// The polynomials of the two 256-element fields.
const MDS: u16 = 0x169;
const RS: u16 = 0x14d;

const fn product(a: u8, b: u8, polynomial: u16) -> u8 {
    let (mut a, mut b, mut sum) = (a as u16, b, 0);
    while b > 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        a <<= 1;
        if a > 0xff {
            a ^= polynomial;
        }
        b >>= 1;
    }
    sum.to_le_bytes()[0]
}

/// The permutations q0 and q1.
static PERMUTATIONS: [[u8; 256]; 2] = [permutation(&NIBBLES[0]), permutation(&NIBBLES[1])];

const NIBBLES: [[[u8; 16]; 4]; 2] = [
    [
        [8, 1, 7, 13, 6, 15, 3, 2, 0, 11, 5, 9, 14, 12, 10, 4],
        [14, 12, 11, 8, 1, 2, 3, 5, 15, 4, 10, 6, 7, 0, 9, 13],
        [11, 10, 5, 14, 6, 13, 9, 0, 12, 8, 15, 3, 2, 4, 7, 1],
        [13, 7, 15, 4, 1, 2, 6, 14, 9, 11, 3, 0, 8, 5, 12, 10],
    ],
    [
        [2, 8, 11, 13, 15, 7, 6, 14, 3, 1, 9, 4, 0, 10, 12, 5],
        [1, 14, 2, 11, 4, 12, 3, 7, 6, 13, 10, 5, 15, 9, 0, 8],
        [4, 12, 7, 5, 1, 6, 9, 10, 0, 14, 13, 8, 2, 11, 3, 15],
        [11, 9, 5, 1, 12, 3, 13, 14, 6, 4, 7, 15, 2, 0, 8, 10],
    ],
];

const fn permutation([t0, t1, t2, t3]: &[[u8; 16]; 4]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (a, b) = (byte / 16, byte % 16);
        let (a, b) = mix(a, b);
        let (a, b) = mix(t0[a] as usize, t1[b] as usize);
        table[byte] = t3[b] * 16 + t2[a];
        byte += 1;
    }
    table
}

/// Mixes two nibbles.
const fn mix(a: usize, b: usize) -> (usize, usize) {
    (a ^ b, (a ^ (b >> 1 | b << 3) ^ a << 3) & 15)
}

#[cfg(test)]
mod tests {
    use twofish::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
    use worldwire_core::{Field, Sampler};

    use super::*;

    #[test]
    fn agrees_with_an_independent_implementation() {
        let mut sampler = Sampler::new(7);
        for _ in 0..2_000 {
            let key: [u8; 16] = Field::sample(&mut sampler);
            let plain: [u8; 16] = Field::sample(&mut sampler);
            let own = Twofish::new(&key);
            let other = twofish::Twofish::new_from_slice(&key).unwrap();
            let mut block = plain;
            own.encrypt(&mut block);
            let mut wanted = plain.into();
            other.encrypt_block(&mut wanted);
            assert_eq!(block, <[u8; 16]>::from(wanted), "{key:02x?}");
            let mut back = block.into();
            other.decrypt_block(&mut back);
            own.decrypt(&mut block);
            assert_eq!((block, <[u8; 16]>::from(back)), (plain, plain));
        }
    }
}
