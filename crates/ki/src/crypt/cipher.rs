//! AES-128-GCM, piece by piece. Existing crates only process whole messages, but a connection cannot
//! wait for a chunk of 64 KiB.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, InnerIvInit, KeyInit, StreamCipher, StreamCipherSeek};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::observer::StreamKey;

pub(super) const BLOCK_BYTES: usize = 16;

/// Derives a nonce from a key and the tag before the nonce.
pub(super) fn derived_nonce(key: &StreamKey, tag: [u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    let hash = Sha256::new().chain_update(b"worldwire relay").chain_update(key.key);
    let hash: [u8; 32] = hash.chain_update(tag).finalize().into();
    core::array::from_fn(|at| hash[at])
}

/// Encrypts or decrypts one message after another.
pub(super) struct Cipher {
    aes: Aes128,
    /// The initial state, copied for every message.
    fresh: GHash,
    ghash: GHash,
    /// Ciphertext that does not fill a block yet.
    partial: Vec<u8>,
    first: [u8; BLOCK_BYTES],
    keystream: ctr::Ctr32BE<Aes128>,
}

impl Clone for Cipher {
    fn clone(&self) -> Self {
        let Self { aes, fresh, ghash, partial, first, keystream: original } = self;
        let mut keystream = keystream(aes, *first);
        keystream.seek(original.current_pos::<u64>());
        let (aes, fresh, ghash) = (aes.clone(), fresh.clone(), ghash.clone());
        Self { aes, fresh, ghash, partial: partial.clone(), first: *first, keystream }
    }
}

/// The keystream of a message. It starts after the first block, which is used to encrypt the tag.
fn keystream(aes: &Aes128, first: [u8; BLOCK_BYTES]) -> ctr::Ctr32BE<Aes128> {
    let mut counter = first;
    let [.., a, b, c, d] = counter;
    let next = u32::from_be_bytes([a, b, c, d]).wrapping_add(1).to_be_bytes();
    counter[BLOCK_BYTES - 4..].copy_from_slice(&next);
    ctr::Ctr32BE::from_core(ctr::CtrCore::inner_iv_init(aes.clone(), &counter.into()))
}

impl Cipher {
    pub(super) fn new(key: &StreamKey) -> Self {
        let aes = Aes128::new(&key.key.into());
        let mut hash_key = [0; BLOCK_BYTES].into();
        aes.encrypt_block(&mut hash_key);
        let fresh = GHash::new(&hash_key);
        let core = ctr::CtrCore::inner_iv_init(aes.clone(), &[0; BLOCK_BYTES].into());
        let mut cipher = Self {
            aes,
            ghash: fresh.clone(),
            fresh,
            partial: Vec::with_capacity(BLOCK_BYTES),
            first: [0; BLOCK_BYTES],
            keystream: ctr::Ctr32BE::from_core(core),
        };
        cipher.begin(&key.nonce);
        cipher
    }

    /// Begins a message. A nonce that is not 12 bytes long is hashed into the first counter block.
    pub(super) fn begin(&mut self, nonce: &[u8; BLOCK_BYTES]) {
        let mut hash = self.fresh.clone();
        hash.update(&[(*nonce).into(), lengths(BLOCK_BYTES).into()]);
        self.first = hash.finalize().into();
        self.keystream = keystream(&self.aes, self.first);
        self.ghash = self.fresh.clone();
        self.partial.clear();
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        self.keystream.apply_keystream(data);
    }

    /// Skips missing text.
    pub(super) fn pass(&mut self, length: usize) {
        let at: u64 = self.keystream.current_pos();
        self.keystream.seek(at + length as u64);
    }

    pub(super) fn hash(&mut self, mut sealed: &[u8]) {
        if !self.partial.is_empty() {
            let take = sealed.len().min(BLOCK_BYTES - self.partial.len());
            let (now, later) = sealed.split_at(take);
            self.partial.extend_from_slice(now);
            sealed = later;
            if let Ok(block) = <[u8; BLOCK_BYTES]>::try_from(self.partial.as_slice()) {
                self.ghash.update(&[block.into()]);
                self.partial.clear();
            }
        }
        let (blocks, rest) = sealed.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            self.ghash.update(&[(*block).into()]);
        }
        self.partial.extend_from_slice(rest);
    }

    /// The tag of a message of this many bytes, a multiple of the block size.
    pub(super) fn tag(&self, length: usize) -> [u8; BLOCK_BYTES] {
        let mut hash = self.ghash.clone();
        hash.update(&[lengths(length).into()]);
        let mut tag: [u8; BLOCK_BYTES] = hash.finalize().into();
        let mut mask = self.first.into();
        self.aes.encrypt_block(&mut mask);
        tag.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        tag
    }

    /// Whether this is the tag of a message of this many bytes, in constant time.
    pub(super) fn is_tag(&self, tag: &[u8; BLOCK_BYTES], length: usize) -> bool {
        self.tag(length).ct_eq(tag).into()
    }
}

/// The last hashed block: the lengths, in bits, of the additional data, which is empty, and of the
/// text.
fn lengths(bytes: usize) -> [u8; BLOCK_BYTES] {
    (8 * bytes as u128).to_be_bytes()
}
