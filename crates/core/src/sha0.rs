//! SHA-0, the withdrawn first edition of SHA-1: Uru hashes account passwords with it, TERA expands
//! keys with it, and no crate provides it. For compatibility only: collisions take seconds.
//!
//! Implemented from the 1993 federal standard (FIPS 180). The only difference from SHA-1 is that
//! the message schedule is not rotated.

use zeroize::Zeroize;

/// The length of a digest in bytes.
pub const DIGEST_BYTES: usize = 20;

/// The digest of a whole message.
///
/// The five words are big-endian, as in the standard and in login hashes.
///
/// ```
/// let digest = worldwire_core::sha0::sha0(b"abc");
/// assert_eq!(digest[..4], [0x01, 0x64, 0xb8, 0xa9]);
/// ```
#[must_use]
pub fn sha0(message: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hash = Sha0::new();
    hash.update(message);
    hash.finish()
}

/// The digest of a message that arrives in pieces. Holds at most one block of it, which is cleared
/// on drop.
pub struct Sha0 {
    state: [u32; 5],
    block: [u8; BLOCK_BYTES],
    /// The number of bytes of `block` in use; it is never full between calls.
    filled: usize,
    /// The number of message bytes so far. The standard stops at 2^61; this wraps, because no
    /// message here can be that long.
    length: u64,
}

impl Sha0 {
    /// The digest of the empty message, to be continued.
    #[must_use]
    pub fn new() -> Self {
        Self { state: INITIAL, block: [0; BLOCK_BYTES], filled: 0, length: 0 }
    }

    /// Continues the message.
    pub fn update(&mut self, mut piece: &[u8]) {
        self.length = self.length.wrapping_add(piece.len() as u64);
        if self.filled > 0 {
            let (head, rest) = piece.split_at(piece.len().min(BLOCK_BYTES - self.filled));
            self.block[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            piece = rest;
            if self.filled < BLOCK_BYTES {
                return;
            }
            compress(&mut self.state, &self.block);
            self.filled = 0;
        }
        let (blocks, rest) = piece.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            compress(&mut self.state, block);
        }
        self.block[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// Finishes the message.
    #[must_use]
    pub fn finish(mut self) -> [u8; DIGEST_BYTES] {
        let bits = self.length.wrapping_mul(8);
        self.update(&[0x80]);
        if self.filled > LENGTH_AT {
            self.block[self.filled..].fill(0);
            compress(&mut self.state, &self.block);
            self.filled = 0;
        }
        self.block[self.filled..LENGTH_AT].fill(0);
        self.block[LENGTH_AT..].copy_from_slice(&bits.to_be_bytes());
        compress(&mut self.state, &self.block);

        let mut digest = [0; DIGEST_BYTES];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

impl Default for Sha0 {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sha0 {
    fn drop(&mut self) {
        self.state.zeroize();
        self.block.zeroize();
    }
}

impl std::fmt::Debug for Sha0 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha0(..)")
    }
}

/// Adds one block to the state.
fn compress(state: &mut [u32; 5], block: &[u8; BLOCK_BYTES]) {
    let mut schedule = [0_u32; 80];
    for (word, bytes) in schedule.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for t in 16..80 {
        // SHA-1 would rotate this by one bit to the left.
        schedule[t] = schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16];
    }

    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (t, word) in schedule.iter().enumerate() {
        let (mix, constant) = match t {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999_u32),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        e = d;
        d = c;
        c = b.rotate_left(30);
        b = a;
        a = next;
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(add);
    }
    // The schedule is a linear mix of the password, so it would reveal the password.
    schedule.zeroize();
}

const BLOCK_BYTES: usize = 64;
/// Where the bit length goes in the last block.
const LENGTH_AT: usize = 56;
const INITIAL: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: [u8; 20]) -> String {
        digest.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The login hash vectors: empty, one block, a length that spills over, exactly one block.
    #[test]
    fn known_digests() {
        assert_eq!(hex(sha0(b"")), "f96cea198ad1dd5617ac084a3d92c6107708c0ef");
        assert_eq!(hex(sha0(b"abc")), "0164b8a914cd2a5e74c4f7ff082c4d97f1edf880");
        assert_eq!(hex(sha0(&[b'a'; 200])), "80f1a570879e73542f05dd581530c94b141288f4");
        let counted: Vec<u8> = (0..64).collect();
        assert_eq!(hex(sha0(&counted)), "bbe543eb4fe1d3f84daf70535919f20647e8959e");
    }

    #[test]
    fn pieces_make_no_difference() {
        let message: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200, 256] {
            let whole = sha0(&message[..length]);
            for size in [1, 3, 7, 63, 64, 65] {
                let mut hash = Sha0::new();
                for piece in message[..length].chunks(size) {
                    hash.update(piece);
                }
                assert_eq!(hash.finish(), whole, "{length} bytes by {size}");
            }
        }
    }
}
