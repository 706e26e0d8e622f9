//! The key of a session, and what is encrypted with it.

use core::fmt;

use worldwire_core::Error;
use worldwire_core::value::parse_hex;
use zeroize::Zeroizing;

use super::twofish::{BLOCK_BYTES, Twofish};
use crate::frame::{SEALED, fits, is_whole};

/// The key of a session, made ready for work once. What it holds is wiped when it is dropped, and
/// never shown.
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
    /// Takes the key. The caller wipes its own copy.
    #[must_use]
    pub fn new(key: &[u8; BLOCK_BYTES]) -> Self {
        Self { cipher: Twofish::new(key), bytes: Zeroizing::new(*key) }
    }

    /// Reads the 32 hexadecimal digits of a key.
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

    /// Encrypts a packet to a datagram: 01, the initial vector, the packet with PKCS#7 padding.
    /// The vector must be random, and another one for each datagram: see
    /// [`IvSource`](super::IvSource).
    #[must_use]
    pub fn seal_datagram(&self, iv: &[u8; BLOCK_BYTES], packet: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(sealed_bytes(packet.len()));
        datagram.push(SEALED);
        self.seal(iv, packet, &mut datagram);
        datagram
    }

    /// Appends the initial vector and the encrypted bytes with PKCS#7 padding.
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

    /// Decrypts a packet, or a message of the margin channel: takes the padding off, and checks
    /// the length and the CRC at its beginning.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn open(&self, iv: &[u8; BLOCK_BYTES], sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        if sealed.is_empty() || !sealed.len().is_multiple_of(BLOCK_BYTES) {
            return Err(Unopened::NoBlocks { bytes: sealed.len() });
        }
        let mut plain = sealed.to_vec();
        let (mut last, (blocks, _)) = (iv, plain.as_chunks_mut());
        for (block, sealed) in blocks.iter_mut().zip(sealed.as_chunks().0) {
            self.cipher.decrypt(block);
            xor(block, last);
            last = sealed;
        }
        let fits = fits(&plain);
        let Some(length) = unpadded_bytes(&plain) else {
            return Err(if fits { Unopened::Damaged } else { Unopened::OtherKey });
        };
        plain.truncate(length);
        match (fits, is_whole(&plain)) {
            (_, true) => Ok(plain),
            (true, false) => Err(Unopened::Damaged),
            (false, false) => Err(Unopened::OtherKey),
        }
    }

    /// Encrypts a block: CBC with an initial vector of zeros and no padding.
    #[must_use]
    pub fn seal_block(&self, block: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
        let mut block = *block;
        self.cipher.encrypt(&mut block);
        block
    }

    /// Decrypts a block, as [`seal_block`](Self::seal_block) encrypts it.
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
    /// They are no whole blocks of 16 bytes, or none at all.
    NoBlocks {
        /// How many bytes there are.
        bytes: usize,
    },
    /// Neither the padding nor the length fit: the key is another one. Damage to the first block
    /// or the initial vector can look like that, since that is where the length is.
    OtherKey,
    /// The key is the right one, but the padding or the CRC does not fit.
    Damaged,
}

impl From<Unopened> for Error {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::NoBlocks { bytes } => {
                Self::malformed("whole blocks of 16 bytes", format!("{bytes} bytes"))
            }
            Unopened::OtherKey => {
                Self::malformed("bytes encrypted with this key", "ones of another key")
            }
            Unopened::Damaged => Self::malformed("the CRC-32 of a packet", "a damaged packet"),
        }
    }
}

/// Bytes of a datagram with a packet of so many.
pub(crate) fn sealed_bytes(packet: usize) -> usize {
    1 + BLOCK_BYTES + padded_bytes(packet)
}

/// PKCS#7 adds 1 to 16 bytes.
fn padded_bytes(plain: usize) -> usize {
    (plain / BLOCK_BYTES + 1) * BLOCK_BYTES
}

/// How many bytes stand in front of the padding, if it is one: as many bytes as each of them says.
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
    use super::*;
    use crate::frame::{Packet, SequenceWord};

    #[test]
    fn another_key_is_told_from_damage() {
        let packet = Packet::new(1, SequenceWord::default()).to_bytes().unwrap();
        let (key, other) = (SessionKey::new(&[1; 16]), SessionKey::new(&[2; 16]));
        let datagram = key.seal_datagram(&[3; 16], &[&packet[..], &[0; 40]].concat());
        // Its length is wrong now; nothing but the key is right.
        assert!(key.open(&[3; 16], &datagram[17..]).is_err());
        let datagram = key.seal_datagram(&[3; 16], &packet);
        assert_eq!(datagram.len(), sealed_bytes(packet.len()));
        let open = |key: &SessionKey, datagram: &[u8]| key.open(&[3; 16], &datagram[17..]);
        assert_eq!(open(&key, &datagram), Ok(packet));
        assert_eq!(open(&other, &datagram), Err(Unopened::OtherKey));
        assert_eq!(open(&key, &datagram[..20]), Err(Unopened::NoBlocks { bytes: 3 }));
        let long = Packet {
            sections: vec![crate::frame::Section::Objects(vec![5; 100].into())],
            ..Packet::new(1, SequenceWord::default())
        };
        let datagram = key.seal_datagram(&[3; 16], &long.to_bytes().unwrap());
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
