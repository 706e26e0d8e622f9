//! The block ciphers of encrypted files. For compatibility only.
//!
//! Blocks are eight bytes, two little-endian words. They are independent, so equal blocks have
//! equal ciphertexts. The first bytes of a file determine which of the two ciphers it uses (see
//! [`file::secure`](crate::file::secure)).

use zeroize::Zeroizing;

/// A block cipher. Both have 128-bit keys, 64-bit blocks and 32 rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockCipher {
    /// XTEA, for client configuration files (`whatdoyousee`).
    Xtea,
    /// XXTEA with blocks of two words, for scripts and SDL files (`notthedroids`).
    Xxtea,
}

/// One block.
pub type Block = [u8; BLOCK_BYTES];

impl BlockCipher {
    /// Encrypts blocks in place.
    pub fn encrypt(self, key: &[u32; 4], blocks: &mut [Block]) {
        match self {
            Self::Xtea => {
                let rounds = Zeroizing::new(xtea_rounds(key));
                each(blocks, |v| xtea_encrypt(&rounds, v), |v| xtea_encrypt(&rounds, v));
            }
            Self::Xxtea => {
                let rounds = Zeroizing::new(xxtea_rounds(key));
                each(blocks, |v| xxtea_encrypt(&rounds, v), |v| xxtea_encrypt(&rounds, v));
            }
        }
    }

    /// Decrypts blocks in place.
    pub fn decrypt(self, key: &[u32; 4], blocks: &mut [Block]) {
        match self {
            Self::Xtea => {
                let rounds = Zeroizing::new(xtea_rounds(key));
                each(blocks, |v| xtea_decrypt(&rounds, v), |v| xtea_decrypt(&rounds, v));
            }
            Self::Xxtea => {
                let rounds = Zeroizing::new(xxtea_rounds(key));
                each(blocks, |v| xxtea_decrypt(&rounds, v), |v| xxtea_decrypt(&rounds, v));
            }
        }
    }
}

/// The size of a block in bytes.
pub const BLOCK_BYTES: usize = 8;

/// The first and the second words of some blocks. Blocks are independent and rounds depend on the
/// key alone, so the compiler can process several blocks with one instruction.
type Words<const L: usize> = [[u32; L]; 2];

/// Runs a cipher over all blocks, in batches as long as enough blocks are left.
fn each(blocks: &mut [Block], many: impl Fn(&mut Words<LANES>), one: impl Fn(&mut Words<1>)) {
    let (groups, rest) = blocks.as_chunks_mut::<LANES>();
    for group in groups {
        run(group, &many);
    }
    for block in rest {
        run(std::array::from_mut(block), &one);
    }
}

fn run<const L: usize>(blocks: &mut [Block; L], cipher: impl Fn(&mut Words<L>)) {
    let mut words = [[0; L]; 2];
    let [first, second] = &mut words;
    for ((v0, v1), block) in first.iter_mut().zip(second).zip(blocks.iter()) {
        let [a, b, c, d, e, f, g, h] = *block;
        *v0 = u32::from_le_bytes([a, b, c, d]);
        *v1 = u32::from_le_bytes([e, f, g, h]);
    }
    cipher(&mut words);
    let [first, second] = words;
    for ((v0, v1), block) in first.into_iter().zip(second).zip(blocks) {
        let [a, b, c, d] = v0.to_le_bytes();
        let [e, f, g, h] = v1.to_le_bytes();
        *block = [a, b, c, d, e, f, g, h];
    }
}

/// The value that each round of XTEA adds to the mix of either word.
fn xtea_rounds(key: &[u32; 4]) -> [[u32; 2]; ROUNDS] {
    let mut sum = 0_u32;
    std::array::from_fn(|_| {
        let first = sum.wrapping_add(key_word(key, sum));
        sum = sum.wrapping_add(DELTA);
        [first, sum.wrapping_add(key_word(key, sum >> 11))]
    })
}

fn xtea_encrypt<const L: usize>(rounds: &[[u32; 2]; ROUNDS], [v0, v1]: &mut Words<L>) {
    for [first, second] in rounds {
        for (v0, v1) in v0.iter_mut().zip(v1.iter_mut()) {
            *v0 = v0.wrapping_add(xtea_mix(*v1) ^ first);
            *v1 = v1.wrapping_add(xtea_mix(*v0) ^ second);
        }
    }
}

fn xtea_decrypt<const L: usize>(rounds: &[[u32; 2]; ROUNDS], [v0, v1]: &mut Words<L>) {
    for [first, second] in rounds.iter().rev() {
        for (v0, v1) in v0.iter_mut().zip(v1.iter_mut()) {
            *v1 = v1.wrapping_sub(xtea_mix(*v0) ^ second);
            *v0 = v0.wrapping_sub(xtea_mix(*v1) ^ first);
        }
    }
}

/// The mixing function of XTEA.
fn xtea_mix(word: u32) -> u32 {
    ((word << 4) ^ (word >> 5)).wrapping_add(word)
}

/// The sum of each round of XXTEA, and the key words for both words. The number of rounds is 6 + 52
/// / words: 32 for two words, the same as in XTEA.
fn xxtea_rounds(key: &[u32; 4]) -> [[u32; 3]; ROUNDS] {
    let mut sum = 0_u32;
    std::array::from_fn(|_| {
        sum = sum.wrapping_add(DELTA);
        let choice = sum >> 2;
        [sum, key_word(key, choice), key_word(key, 1 ^ choice)]
    })
}

fn xxtea_encrypt<const L: usize>(rounds: &[[u32; 3]; ROUNDS], [v0, v1]: &mut Words<L>) {
    for [sum, first, second] in rounds {
        for (v0, v1) in v0.iter_mut().zip(v1.iter_mut()) {
            *v0 = v0.wrapping_add(xxtea_mix(*v1, *sum, *first));
            *v1 = v1.wrapping_add(xxtea_mix(*v0, *sum, *second));
        }
    }
}

fn xxtea_decrypt<const L: usize>(rounds: &[[u32; 3]; ROUNDS], [v0, v1]: &mut Words<L>) {
    for [sum, first, second] in rounds.iter().rev() {
        for (v0, v1) in v0.iter_mut().zip(v1.iter_mut()) {
            *v1 = v1.wrapping_sub(xxtea_mix(*v0, *sum, *second));
            *v0 = v0.wrapping_sub(xxtea_mix(*v1, *sum, *first));
        }
    }
}

/// The mixing function of XXTEA. Both neighbours of a word are the same when there are two words.
fn xxtea_mix(word: u32, sum: u32, key: u32) -> u32 {
    let shifted = ((word >> 5) ^ (word << 2)).wrapping_add((word >> 3) ^ (word << 4));
    shifted ^ (sum ^ word).wrapping_add(key ^ word)
}

/// The key word selected by the two lowest bits.
fn key_word(key: &[u32; 4], choice: u32) -> u32 {
    key[(choice & 3) as usize]
}

const ROUNDS: usize = 32;
const DELTA: u32 = 0x9e37_79b9;
/// The number of blocks in a batch.
const LANES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const DROID: [u32; 4] = [0x3141_5926, 0x5358_9793, 0x2384_6264, 0x3383_2795];
    const CONFIG: [u32; 4] = [0x6c0a_5452, 0x0382_7d0f, 0x3a17_0b92, 0x16db_7fc2];

    /// The one-byte files of the secure file vectors: `x` and seven zeros.
    #[test]
    fn known_blocks() {
        let mut block = [*b"x\0\0\0\0\0\0\0"];
        BlockCipher::Xxtea.encrypt(&DROID, &mut block);
        assert_eq!(block[0], [0x29, 0x72, 0x47, 0xcc, 0x68, 0x17, 0xae, 0x7d]);
        BlockCipher::Xxtea.decrypt(&DROID, &mut block);
        assert_eq!(&block[0], b"x\0\0\0\0\0\0\0");

        BlockCipher::Xtea.encrypt(&CONFIG, &mut block);
        assert_eq!(block[0], [0x98, 0x4f, 0xf3, 0x72, 0x6f, 0x7c, 0xdf, 0x97]);
        BlockCipher::Xtea.decrypt(&CONFIG, &mut block);
        assert_eq!(&block[0], b"x\0\0\0\0\0\0\0");
    }

    /// The published test vector of XTEA for key 000102..0f and text `ABCDEFGH`, with big-endian
    /// words.
    #[test]
    fn published_test_vector() {
        let key = [0x0001_0203, 0x0405_0607, 0x0809_0a0b, 0x0c0d_0e0f];
        let mut words = [[0x4142_4344], [0x4546_4748]];
        xtea_encrypt(&xtea_rounds(&key), &mut words);
        assert_eq!(words, [[0x497d_f3d0], [0x7261_2cb5]]);
    }

    /// Blocks are processed independently, whatever their number.
    #[test]
    fn batches_equal_single_blocks() {
        for cipher in [BlockCipher::Xtea, BlockCipher::Xxtea] {
            for count in [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES + 2] {
                let plain: Vec<Block> =
                    (0..count as u64).map(|i| (i * 0x0123_4567_89ab).to_le_bytes()).collect();
                let mut all = plain.clone();
                cipher.encrypt(&DROID, &mut all);
                for (block, wanted) in plain.iter().zip(&all) {
                    let mut block = [*block];
                    cipher.encrypt(&DROID, &mut block);
                    assert_eq!(block, [*wanted]);
                }
                cipher.decrypt(&DROID, &mut all);
                assert_eq!(all, plain);
            }
        }
    }
}
