//! Encrypted connections: AES-128-GCM in chunks, with a key and nonce that the user supplies.
//!
//! After a session accept whose crypto block is a handshake, each direction can be a stream of
//! chunks: ciphertext, a 16-byte tag, and the 16-byte nonce of the next chunk, unencrypted. A chunk
//! from the client holds 4096 bytes, and one from the server 65536.
//!
//! Unverified: that both directions begin with the same nonce, that the nonce after the tag is
//! unencrypted, and that the chunk size depends on the sender.

use core::fmt;

use worldwire_core::{Error, Result, Side};

use super::cipher::{BLOCK_BYTES, Cipher};
pub use super::observer::StreamKey;

/// The size of the tag and the next nonce in bytes.
const REST_BYTES: usize = 2 * BLOCK_BYTES;

impl StreamKey {
    /// The nonce of a chunk that a relay added.
    pub(crate) fn derived_nonce(&self, tag: [u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
        super::cipher::derived_nonce(self, tag)
    }
}

/// The number of plaintext bytes in a chunk from this side.
#[must_use]
pub(crate) const fn chunk_bytes(side: Side) -> usize {
    match side {
        Side::Client => 4096,
        Side::Server => 65_536,
    }
}

/// Decrypts one direction of an encrypted connection.
#[derive(Clone)]
pub struct Opener {
    stream: Chunks,
    /// The received part of the tag and nonce.
    rest: Vec<u8>,
    chunk: Chunk,
    /// Whether bytes of the next tag, and of the next nonce, are missing.
    is_torn: [bool; 2],
}

/// The state of the current chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// No bytes are missing so far.
    Whole,
    /// Bytes are missing, so the chunk's tag cannot be checked.
    Torn,
    /// The nonce is missing, so the chunk cannot be decrypted.
    Sealed,
}

/// Encrypts one direction of an encrypted connection.
pub struct Sealer {
    stream: Chunks,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener(..)")
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Opener {
    /// Decrypts the stream that `side` sends.
    #[must_use]
    pub fn new(key: &StreamKey, side: Side) -> Self {
        let (stream, rest) = (Chunks::new(key, side), Vec::with_capacity(REST_BYTES));
        Self { stream, rest, chunk: Chunk::Whole, is_torn: [false; 2] }
    }

    /// Decrypts the next bytes, which may be split anywhere, and appends the plaintext. Plaintext
    /// of an incomplete chunk is returned before its tag arrives.
    ///
    /// # Errors
    /// `Malformed` if a tag is wrong: either the plaintext returned from that chunk was forged, or
    /// the key is not this connection's.
    pub fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<()> {
        self.open_part(&mut bytes, plain, |_| ()).map(drop)
    }

    /// Like [`open`](Self::open), but reports every nonce. After a wrong tag, the tag and its nonce
    /// are the [`rest`](Self::rest), and the bytes after them stay in `bytes`. Stops after bytes
    /// that cannot be decrypted because their chunk's nonce [is missing](Self::skip), and returns
    /// their number, or 0 once everything is read.
    pub(crate) fn open_part(
        &mut self,
        bytes: &mut &[u8],
        plain: &mut Vec<u8>,
        mut on_nonce: impl FnMut([u8; BLOCK_BYTES]),
    ) -> Result<usize> {
        while !bytes.is_empty() {
            if self.stream.left > 0 {
                let (now, later) = bytes.split_at(bytes.len().min(self.stream.left));
                *bytes = later;
                if self.chunk == Chunk::Sealed {
                    self.stream.left -= now.len();
                    return Ok(now.len());
                }
                let start = plain.len();
                plain.extend_from_slice(now);
                self.stream.cipher.hash(now);
                self.stream.apply(plain.get_mut(start..).unwrap_or_default());
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(REST_BYTES - self.rest.len()));
            self.rest.extend_from_slice(now);
            *bytes = later;
            if self.rest.len() == REST_BYTES {
                self.check()?;
                self.next_chunk(&mut on_nonce);
            }
        }
        Ok(0)
    }

    /// Checks the chunk's tag, as far as chunk and tag have arrived.
    fn check(&self) -> Result<()> {
        let Some((tag, _)) = self.rest.split_first_chunk::<BLOCK_BYTES>() else { return Ok(()) };
        let is_known = self.chunk == Chunk::Whole && !self.is_torn[0];
        if is_known && !self.stream.cipher.is_tag(tag, self.stream.chunk) {
            let wanted = "the tag of an AES-GCM chunk";
            return Err(Error::malformed(wanted, "a different tag")
                .hint("is the key from another connection, or were the bytes modified?"));
        }
        Ok(())
    }

    /// Begins the next chunk, after tag and nonce were received.
    fn next_chunk(&mut self, on_nonce: &mut impl FnMut([u8; BLOCK_BYTES])) {
        let [_, is_torn] = core::mem::take(&mut self.is_torn);
        let nonce = self.rest.get(BLOCK_BYTES..).and_then(|nonce| nonce.first_chunk().copied());
        self.rest.clear();
        match nonce.filter(|_| !is_torn) {
            Some(nonce) => {
                self.stream.begin(&nonce);
                self.chunk = Chunk::Whole;
                on_nonce(nonce);
            }
            None => {
                self.stream.left = self.stream.chunk;
                self.chunk = Chunk::Sealed;
            }
        }
    }

    /// Continues after a wrong tag as if it were right.
    pub(crate) fn go_on(&mut self) {
        self.next_chunk(&mut |_| ());
    }

    /// Skips missing bytes and returns the number of text bytes among them. A chunk with missing
    /// text remains readable; a chunk without its nonce is skipped.
    pub(crate) fn skip(&mut self, mut length: u64) -> u64 {
        let (chunk, mut text) = (self.stream.chunk, 0);
        let small = |length: u64, max: usize| usize::try_from(length).map_or(max, |it| it.min(max));
        while length > 0 {
            let period = (chunk + REST_BYTES) as u64;
            if self.chunk == Chunk::Sealed && self.stream.left == chunk && length >= period {
                // Chunks that are missing completely.
                let chunks = length / period;
                text += chunks * chunk as u64;
                length -= chunks * period;
            } else if self.stream.left > 0 {
                let now = small(length, self.stream.left);
                if self.chunk != Chunk::Sealed {
                    self.chunk = Chunk::Torn;
                    self.stream.pass(now);
                } else {
                    self.stream.left -= now;
                }
                text += now as u64;
                length -= now as u64;
            } else {
                let from = self.rest.len();
                let now = small(length, REST_BYTES - from);
                self.rest.resize(from + now, 0);
                self.is_torn[0] |= from < BLOCK_BYTES;
                self.is_torn[1] |= from + now > BLOCK_BYTES;
                length -= now as u64;
                if self.rest.len() == REST_BYTES {
                    self.next_chunk(&mut |_| ());
                }
            }
        }
        text
    }

    /// Whether the next bytes cannot be decrypted.
    pub(crate) fn is_sealed(&self) -> bool {
        self.chunk == Chunk::Sealed && self.stream.left > 0
    }

    /// The number of tag and nonce bytes before the next text.
    pub(crate) fn owed(&self) -> usize {
        if self.stream.left == 0 { REST_BYTES - self.rest.len() } else { 0 }
    }

    /// The received part of the tag and nonce.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }
}

impl Sealer {
    /// Encrypts the stream that `side` sends.
    #[must_use]
    pub fn new(key: &StreamKey, side: Side) -> Self {
        Self { stream: Chunks::new(key, side) }
    }

    /// Encrypts bytes and appends them, with tag and nonce after each full chunk. `nonce` must
    /// return 16 fresh random bytes.
    pub fn seal(
        &mut self,
        mut plain: &[u8],
        sealed: &mut Vec<u8>,
        mut nonce: impl FnMut() -> [u8; 16],
    ) {
        while !plain.is_empty() {
            plain = self.seal_part(plain, sealed);
            if self.is_full() {
                self.begin_chunk(&nonce(), sealed);
            }
        }
    }

    /// Encrypts bytes up to the end of the chunk and returns the rest.
    pub(crate) fn seal_part<'p>(&mut self, plain: &'p [u8], sealed: &mut Vec<u8>) -> &'p [u8] {
        let (now, later) = plain.split_at(plain.len().min(self.stream.left));
        let start = sealed.len();
        sealed.extend_from_slice(now);
        self.stream.apply(sealed.get_mut(start..).unwrap_or_default());
        self.stream.cipher.hash(sealed.get(start..).unwrap_or_default());
        later
    }

    /// Whether the chunk is full, so that its tag and the next nonce follow.
    pub(crate) fn is_full(&self) -> bool {
        self.stream.left == 0
    }

    pub(crate) fn tag(&self) -> [u8; BLOCK_BYTES] {
        self.stream.tag()
    }

    /// Appends the tag of the full chunk and the nonce of the next chunk, and begins that chunk.
    pub(crate) fn begin_chunk(&mut self, nonce: &[u8; BLOCK_BYTES], sealed: &mut Vec<u8>) {
        sealed.extend_from_slice(&self.stream.tag());
        sealed.extend_from_slice(nonce);
        self.stream.begin(nonce);
    }
}

/// One direction of a connection, as encrypted chunks.
#[derive(Clone)]
struct Chunks {
    cipher: Cipher,
    /// The number of text bytes in a chunk.
    chunk: usize,
    /// The number of text bytes before the next tag.
    left: usize,
}

impl Chunks {
    fn new(key: &StreamKey, side: Side) -> Self {
        let chunk = chunk_bytes(side);
        Self { cipher: Cipher::new(key), chunk, left: chunk }
    }

    fn begin(&mut self, nonce: &[u8; BLOCK_BYTES]) {
        self.cipher.begin(nonce);
        self.left = self.chunk;
    }

    fn apply(&mut self, data: &mut [u8]) {
        self.left -= data.len();
        self.cipher.apply(data);
    }

    /// Skips missing text.
    fn pass(&mut self, length: usize) {
        self.left -= length;
        self.cipher.pass(length);
    }

    fn tag(&self) -> [u8; BLOCK_BYTES] {
        self.cipher.tag(self.chunk)
    }
}

#[cfg(all(test, feature = "keys"))]
mod tests {
    use aes::Aes128;
    use aes_gcm::aead::consts::U16;
    use aes_gcm::{AesGcm, KeyInit as _, aead::AeadInOut as _};

    use super::*;

    const KEY: StreamKey = StreamKey { key: [7; 16], nonce: [9; 16] };

    fn sealed(side: Side, plain: &[u8]) -> Vec<u8> {
        let mut count = 0;
        let mut out = Vec::new();
        let mut sealer = Sealer::new(&KEY, side);
        for piece in plain.chunks(777) {
            sealer.seal(piece, &mut out, || {
                count += 1;
                [count; 16]
            });
        }
        out
    }

    #[test]
    fn chunks_equal_those_of_the_aes_gcm_crate() {
        let plain: Vec<u8> = (0..10_000u32).map(|at| at.to_le_bytes()[0] ^ 0x5a).collect();
        let out = sealed(Side::Client, &plain);
        let cipher = AesGcm::<Aes128, U16>::new(&KEY.key.into());
        let mut wanted = Vec::new();
        for (index, chunk) in (0u8..).zip(plain.chunks(4096)) {
            let nonce = if index == 0 { KEY.nonce } else { [index; 16] };
            let mut data = chunk.to_vec();
            let tag = cipher.encrypt_inout_detached(&nonce.into(), b"", data.as_mut_slice().into());
            wanted.extend_from_slice(&data);
            if chunk.len() == 4096 {
                wanted.extend_from_slice(&tag.expect("the text is short"));
                wanted.extend_from_slice(&[index + 1; 16]);
            }
        }
        assert_eq!(out, wanted);
    }

    #[test]
    fn streams_open_however_they_are_split() {
        for side in Side::BOTH {
            let plain: Vec<u8> = (0..140_000u32).map(|at| at.to_le_bytes()[1]).collect();
            let out = sealed(side, &plain);
            for size in [1, 15, 16, 17, 4096, 4128, usize::MAX] {
                let mut opener = Opener::new(&KEY, side);
                let mut opened = Vec::new();
                for piece in out.chunks(size.min(out.len())) {
                    opener.open(piece, &mut opened).expect("nothing was modified");
                }
                assert!(opened == plain, "{side} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_gap_loses_missing_text_and_chunks_without_their_nonce() {
        for side in Side::BOTH {
            let chunk = chunk_bytes(side);
            let plain: Vec<u8> = (0..400_000u32).map(|at| at.to_le_bytes()[1]).collect();
            let out = sealed(side, &plain);
            // The position of a text byte on the wire.
            let position = |at: usize| (at / (chunk + REST_BYTES), at % (chunk + REST_BYTES));
            let holes = [(10, 5), (chunk - 3, 3), (chunk - 3, 10), (chunk + 1, 3), (chunk + 20, 1)];
            let more =
                [(chunk + 31, 1), (chunk + 20, 3 * chunk), (100, 2 * chunk + 64), (9, 300_000)];
            for (from, length) in holes.into_iter().chain(more) {
                let mut opener = Opener::new(&KEY, side);
                let mut known = vec![None; plain.len()];
                let mut at = 0;
                let mut hear = |opener: &mut Opener, mut bytes: &[u8], at: &mut usize| {
                    while !bytes.is_empty() {
                        let mut text = Vec::new();
                        let dark = opener.open_part(&mut bytes, &mut text, |_| ()).unwrap();
                        for byte in text {
                            known[*at] = Some(byte);
                            *at += 1;
                        }
                        *at += dark;
                    }
                };
                hear(&mut opener, &out[..from], &mut at);
                at += usize::try_from(opener.skip(length as u64)).unwrap();
                hear(&mut opener, &out[from + length..], &mut at);
                assert_eq!(at, plain.len(), "{side} {from} {length}");
                for (index, (known, plain)) in known.iter().zip(&plain).enumerate() {
                    let wire = index + index / chunk * REST_BYTES;
                    let nonce = position(wire).0.checked_sub(1).map(|chunks| {
                        let end = (chunks + 1) * (chunk + REST_BYTES);
                        end - BLOCK_BYTES..end
                    });
                    let is_dark = nonce.is_some_and(|it| it.start < from + length && it.end > from);
                    let is_lost = is_dark || (from..from + length).contains(&wire);
                    assert_eq!(*known, (!is_lost).then_some(*plain), "{side} {from} {length}");
                }
            }
            // The time does not depend on the number of missing bytes.
            let mut opener = Opener::new(&KEY, side);
            assert!(opener.skip(1 << 62) > 1 << 61);
        }
    }

    #[test]
    fn a_modified_byte_is_detected() {
        let mut out = sealed(Side::Client, &[0; 5000]);
        out[100] ^= 1;
        let mut opener = Opener::new(&KEY, Side::Client);
        let error = opener.open(&out, &mut Vec::new()).expect_err("a byte was modified");
        insta::assert_snapshot!(
            error,
            @"wanted the tag of an AES-GCM chunk, found a different tag; is the key from another connection, or were the bytes modified?"
        );
    }
}
