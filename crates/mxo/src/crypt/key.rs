//! Session keys and encryption with them.

use core::fmt;

use worldwire_core::Error;
use worldwire_core::value::parse_hex;
use zeroize::Zeroizing;

use super::envelope::{has_right_length, is_intact};
use super::twofish::{BLOCK_BYTES, Twofish};

/// The first byte of an encrypted datagram.
pub(crate) const SEALED: u8 = 1;

/// A session key with its key schedule. Both are wiped on drop, and `Debug` never shows them.
#[derive(Clone)]
pub struct SessionKey {
    cipher: Twofish,
    bytes: Zeroizing<[u8; BLOCK_BYTES]>,
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl SessionKey {
    /// Copies the key; the caller must wipe the original.
    #[must_use]
    pub fn new(key: &[u8; BLOCK_BYTES]) -> Self {
        Self { cipher: Twofish::new(key), bytes: Zeroizing::new(*key) }
    }

    /// Parses a key of 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(parse_hex(text)?);
        let key = Zeroizing::new(<[u8; BLOCK_BYTES]>::try_from(bytes.as_slice()).ok()?);
        Some(Self::new(&key))
    }

    /// The key itself, for writing key files.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; BLOCK_BYTES] {
        &self.bytes
    }

    /// Encrypts a packet as a datagram: 01, the initialisation vector, then the encrypted packet
    /// with PKCS#7 padding. Each datagram needs its own random vector; see
    /// [`IvSource`](super::IvSource).
    #[must_use]
    pub fn seal_datagram(&self, iv: &[u8; BLOCK_BYTES], packet: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(sealed_bytes(packet.len()));
        datagram.push(SEALED);
        self.seal(iv, packet, &mut datagram);
        datagram
    }

    /// Appends the initialisation vector and the encrypted bytes with PKCS#7 padding.
    pub fn seal(&self, iv: &[u8; BLOCK_BYTES], plain: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(iv);
        let from = out.len();
        out.extend_from_slice(plain);
        let whole = padded_bytes(plain.len());
        let padding = u8::try_from(whole - plain.len()).unwrap_or(0);
        out.resize(from + whole, padding);
        let mut last = *iv;
        let (blocks, _) = out.get_mut(from..).unwrap_or_default().as_chunks_mut();
        for block in blocks {
            xor(block, &last);
            self.cipher.encrypt(block);
            last = *block;
        }
    }

    /// Decrypts a packet or a margin message, removes the padding, and checks the length and the
    /// CRC at the start.
    pub fn open(&self, iv: &[u8; BLOCK_BYTES], sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        let mut plain = core::mem::take(&mut *self.open_blocks(iv, sealed)?);
        let is_right_key = has_right_length(&plain);
        let Some(length) = unpadded_bytes(&plain) else {
            return Err(if is_right_key { Unopened::Damaged } else { Unopened::OtherKey });
        };
        plain.truncate(length);
        match (is_right_key, is_intact(&plain)) {
            (_, true) => Ok(plain),
            (true, false) => Err(Unopened::Damaged),
            (false, false) => Err(Unopened::OtherKey),
        }
    }

    /// Encrypts whole blocks of 16 bytes in CBC mode without padding. Bytes after the last whole
    /// block are not encrypted.
    #[must_use]
    pub fn seal_blocks(&self, iv: &[u8; BLOCK_BYTES], plain: &[u8]) -> Vec<u8> {
        let mut sealed = plain.to_vec();
        let mut last = *iv;
        for block in sealed.as_chunks_mut().0 {
            xor(block, &last);
            self.cipher.encrypt(block);
            last = *block;
        }
        sealed
    }

    /// Decrypts what [`seal_blocks`](Self::seal_blocks) encrypted. A wrong key goes undetected.
    ///
    /// # Errors
    /// [`Unopened::NoBlocks`].
    pub fn open_blocks(
        &self,
        iv: &[u8; BLOCK_BYTES],
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        if sealed.is_empty() || !sealed.len().is_multiple_of(BLOCK_BYTES) {
            return Err(Unopened::NoBlocks { bytes: sealed.len() });
        }
        let mut plain = Zeroizing::new(sealed.to_vec());
        let (mut last, (blocks, _)) = (iv, plain.as_chunks_mut());
        for (block, sealed) in blocks.iter_mut().zip(sealed.as_chunks().0) {
            self.cipher.decrypt(block);
            xor(block, last);
            last = sealed;
        }
        Ok(plain)
    }

    /// Encrypts a single block in CBC mode, with a zero initialisation vector and no padding.
    #[must_use]
    pub fn seal_block(&self, block: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
        let mut block = *block;
        self.cipher.encrypt(&mut block);
        block
    }

    /// Decrypts a block that [`seal_block`](Self::seal_block) encrypted.
    #[must_use]
    pub fn open_block(&self, block: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
        let mut block = *block;
        self.cipher.decrypt(&mut block);
        block
    }

    /// The session ID in the encrypted block of a hello.
    #[must_use]
    pub fn session_id(&self, block: &[u8; BLOCK_BYTES]) -> u32 {
        let [a, b, c, d, ..] = self.open_block(block);
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Why encrypted bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unopened {
    /// The length is zero or not a multiple of 16 bytes.
    NoBlocks {
        /// The length.
        bytes: usize,
    },
    /// Neither the padding nor the length field is valid, so the bytes were encrypted with another
    /// key. Damage to the first block or to the initialisation vector can look the same, because it
    /// corrupts the length field.
    OtherKey,
    /// The key is right, but the padding or the CRC is not.
    Damaged,
}

impl From<Unopened> for Error {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::NoBlocks { bytes } => {
                Self::malformed("whole blocks of 16 bytes", format!("{bytes} bytes"))
            }
            Unopened::OtherKey => {
                Self::malformed("bytes encrypted with this key", "bytes encrypted with another key")
            }
            Unopened::Damaged => {
                Self::malformed("a packet with a correct CRC-32", "a damaged packet")
            }
        }
    }
}

/// The size of the datagram that carries a packet of this size.
pub(crate) fn sealed_bytes(packet: usize) -> usize {
    1 + BLOCK_BYTES + padded_bytes(packet)
}

/// PKCS#7 adds 1 to 16 bytes.
fn padded_bytes(plain: usize) -> usize {
    (plain / BLOCK_BYTES + 1) * BLOCK_BYTES
}

/// The length without PKCS#7 padding; `None` if the padding is invalid.
fn unpadded_bytes(plain: &[u8]) -> Option<usize> {
    let last = *plain.last()?;
    let count = usize::from(last);
    let length = plain.len().checked_sub(count).filter(|_| (1..=BLOCK_BYTES).contains(&count))?;
    plain.get(length..)?.iter().all(|byte| *byte == last).then_some(length)
}

#[inline]
fn xor(block: &mut [u8; BLOCK_BYTES], other: &[u8; BLOCK_BYTES]) {
    let mixed = u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*other);
    *block = mixed.to_ne_bytes();
}

#[cfg(test)]
mod tests {
    use super::super::envelope::UNCOUNTED_BYTES;
    use super::*;

    /// A packet with this many bytes after its time.
    fn packet(bytes: u8) -> Vec<u8> {
        let mut counted = vec![bytes, 0];
        counted.resize(UNCOUNTED_BYTES - 4 + usize::from(bytes), 5);
        [&crc32fast::hash(&counted).to_le_bytes()[..], &counted].concat()
    }

    #[test]
    fn a_wrong_key_and_damage_are_different_errors() {
        let (packet, long) = (packet(5), packet(106));
        let (key, other) = (SessionKey::new(&[1; 16]), SessionKey::new(&[2; 16]));
        let datagram = key.seal_datagram(&[3; 16], &[&packet[..], &[0; 40]].concat());
        // The key is right, but the length field is not.
        assert!(key.open(&[3; 16], &datagram[17..]).is_err());
        let datagram = key.seal_datagram(&[3; 16], &packet);
        assert_eq!(datagram.len(), sealed_bytes(packet.len()));
        let open = |key: &SessionKey, datagram: &[u8]| key.open(&[3; 16], &datagram[17..]);
        assert_eq!(open(&key, &datagram), Ok(packet));
        assert_eq!(open(&other, &datagram), Err(Unopened::OtherKey));
        assert_eq!(open(&key, &datagram[..20]), Err(Unopened::NoBlocks { bytes: 3 }));
        let datagram = key.seal_datagram(&[3; 16], &long);
        for at in 17 + 16..datagram.len() {
            let mut damaged = datagram.clone();
            damaged[at] ^= 4;
            assert_eq!(open(&key, &damaged), Err(Unopened::Damaged), "byte {at}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", SessionKey::new(&[0x41; 16])), "SessionKey(..)");
        assert!(SessionKey::parse("00").is_none());
        let key = SessionKey::parse("a446dc732508eeb76c9eb44ab8e71103").unwrap();
        assert_eq!(key.open_block(&key.seal_block(&[9; 16])), [9; 16]);
    }

    #[test]
    fn chaining_and_padding_agree_with_an_independent_implementation() {
        use cbc::cipher::block_padding::Pkcs7;
        use cbc::cipher::{BlockModeEncrypt as _, InnerIvInit as _, KeyInit as _};

        for length in 0..70_u8 {
            let plain: Vec<u8> = (0..length).collect();
            let mut sealed = Vec::new();
            SessionKey::new(&[5; 16]).seal(&[6; 16], &plain, &mut sealed);
            let other = twofish::Twofish::new_from_slice(&[5; 16]).unwrap();
            let other = cbc::Encryptor::inner_iv_init(other, &[6; 16].into());
            let mut wanted = [0; 96];
            let wanted = other.encrypt_padded_b2b::<Pkcs7>(&plain, &mut wanted).unwrap();
            assert_eq!(sealed[16..], *wanted, "{length} bytes");
        }
    }
}
