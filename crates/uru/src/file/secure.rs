//! Encrypted files: scripts and state descriptions as the auth server sends them, and the client's
//! settings. For compatibility only; the cipher hides text from a casual look and no more.
//!
//! | offset | size | type | name | meaning |
//! |---|---|---|---|---|
//! | 0 | 12 | bytes | magic | which cipher and which key, see [`Magic`] |
//! | 12 | 4 | u32, little-endian | plain length | bytes of the plain file |
//! | 16 | | blocks of 8 | | the file, padded with zeros to whole blocks |
//!
//! Nothing in a file tells whether the key is right. With a wrong one the padding is most likely
//! not zero, see [`SecureFile::is_canonical`].
//!
//! ```
//! use worldwire_uru::file::secure::{Magic, SecureFile, SecureKey, open};
//!
//! let key: SecureKey = "31415926535897932384626433832795".parse()?;
//! let sealed = SecureFile::new(Magic::NotTheDroids, b"STATEDESC".to_vec()).seal(&key)?;
//! assert_eq!(sealed.len(), 16 + 16);
//! assert_eq!(open(&sealed, Some(&key), 1 << 20)?.plain(), b"STATEDESC");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::str::FromStr;

use rand_core::CryptoRng;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::crypt::xtea::{BLOCK_BYTES, BlockCipher};

/// Opens an encrypted file with the key that belongs to its magic.
///
/// `droid` is the shard's key for `notthedroids` files; the others have a key that every client
/// contains. `limit` is how many plain bytes are acceptable, and is checked before memory is taken.
///
/// # Errors
/// [`SecureError`]: the file is at fault, except for [`SecureError::NoDroidKey`].
pub fn open(data: &[u8], droid: Option<&SecureKey>, limit: u64) -> Result<SecureFile, SecureError> {
    let key = match Header::read(data)?.magic {
        Magic::NotTheDroids => droid.ok_or(SecureError::NoDroidKey)?,
        Magic::WhatDoYouSee | Magic::BriceIsSmart => &SecureKey::SETTINGS,
    };
    open_with(data, key, limit)
}

/// Opens an encrypted file with a given key, whatever its magic; else like [`open`].
///
/// # Errors
/// [`SecureError`]: the file is at fault.
pub fn open_with(data: &[u8], key: &SecureKey, limit: u64) -> Result<SecureFile, SecureError> {
    let Header { magic, length, body } = Header::read(data)?;
    if u64::from(length) > limit {
        return Err(SecureError::TooLarge { limit, found: length });
    }
    let too_short = SecureError::PlainLength { length, available: body.len() };
    // Where usize cannot express the length the file cannot be there either.
    let Ok(plain_length) = usize::try_from(length) else { return Err(too_short) };
    if plain_length > body.len() {
        return Err(too_short);
    }
    let wanted = plain_length.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
    let Some((blocks, trailing)) = body.split_at_checked(wanted) else {
        return Err(SecureError::Truncated { wanted: HEADER_BYTES + wanted, found: data.len() });
    };

    let mut plain = blocks.to_vec();
    magic.cipher().decrypt(&key.0, plain.as_chunks_mut().0);
    let padding = plain.split_off(plain_length);
    Ok(SecureFile { magic, plain, padding, trailing: trailing.to_vec() })
}

/// The first bytes of an encrypted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Magic {
    /// Scripts (`.pak`) and state descriptions (`.sdl`): XXTEA with the shard's own key, which the
    /// client gets in `AcctLoginReply`.
    NotTheDroids,
    /// Settings of the client: XTEA with [`SecureKey::SETTINGS`].
    WhatDoYouSee,
    /// Old spelling of the same, never written by anyone today.
    BriceIsSmart,
}

impl Magic {
    /// Bytes of a magic.
    pub const BYTES: usize = 12;

    const ALL: [Self; 3] = [Self::NotTheDroids, Self::WhatDoYouSee, Self::BriceIsSmart];

    /// The magic that the data starts with; `None` for a plain file.
    #[must_use]
    pub fn detect(data: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|magic| data.starts_with(magic.bytes()))
    }

    /// The bytes themselves, which are ASCII.
    #[must_use]
    pub fn bytes(self) -> &'static [u8; Self::BYTES] {
        match self {
            Self::NotTheDroids => b"notthedroids",
            Self::WhatDoYouSee => b"whatdoyousee",
            Self::BriceIsSmart => b"BriceIsSmart",
        }
    }

    /// The cipher of such files.
    #[must_use]
    pub fn cipher(self) -> BlockCipher {
        match self {
            Self::NotTheDroids => BlockCipher::Xxtea,
            Self::WhatDoYouSee | Self::BriceIsSmart => BlockCipher::Xtea,
        }
    }
}

/// An opened file, with all that is needed to make the very same bytes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureFile {
    magic: Magic,
    plain: Vec<u8>,
    /// What the last block holds after the plain bytes; zeros if it was made properly. May be
    /// shorter than the space there is, the rest is zero then.
    padding: Vec<u8>,
    /// What follows the last block, as it is.
    trailing: Vec<u8>,
}

impl SecureFile {
    /// A file to be sealed.
    #[must_use]
    pub fn new(magic: Magic, plain: Vec<u8>) -> Self {
        Self { magic, plain, padding: Vec::new(), trailing: Vec::new() }
    }

    /// Encrypts the file. An opened file comes out as it was, odd padding and all.
    ///
    /// # Errors
    /// [`SecureError::TooLarge`] if the length does not fit into the header.
    pub fn seal(&self, key: &SecureKey) -> Result<Vec<u8>, SecureError> {
        let limit = u64::from(u32::MAX);
        let length = u32::try_from(self.plain.len())
            .map_err(|_| SecureError::TooLarge { limit, found: u32::MAX })?;
        let padded = self.plain.len().next_multiple_of(BLOCK_BYTES);
        let end = HEADER_BYTES + padded;
        let mut data = Vec::with_capacity(end + self.trailing.len());
        data.extend_from_slice(self.magic.bytes());
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(&self.plain);
        data.extend_from_slice(&self.padding);
        data.resize(end, 0);
        self.magic.cipher().encrypt(&key.0, data[HEADER_BYTES..].as_chunks_mut().0);
        data.extend_from_slice(&self.trailing);
        Ok(data)
    }

    /// The magic the file has.
    #[must_use]
    pub fn magic(&self) -> Magic {
        self.magic
    }

    /// The plain file.
    #[must_use]
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// The plain file, to keep.
    #[must_use]
    pub fn into_plain(self) -> Vec<u8> {
        self.plain
    }

    /// What the last block holds after the plain bytes: zeros if the file was made properly.
    #[must_use]
    pub fn padding(&self) -> &[u8] {
        &self.padding
    }

    /// The same file with this behind its plain bytes: for files that have to come out exactly as
    /// they were. Padding that is longer than the room in the last block is cut.
    #[must_use]
    pub fn with_rest(self, mut padding: Vec<u8>, trailing: Vec<u8>) -> Self {
        let room = self.plain.len().next_multiple_of(BLOCK_BYTES) - self.plain.len();
        padding.truncate(room);
        Self { padding, trailing, ..self }
    }

    /// The bytes after the last block, which no reader looks at.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        &self.trailing
    }

    /// Whether the padding is zero and nothing follows it. If not, the key is wrong or the file was
    /// made by a careless tool.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.trailing.is_empty() && self.padding.iter().all(|byte| *byte == 0)
    }
}

/// Why a file cannot be opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecureError {
    /// The file starts with something else; it may be a plain one.
    #[error(
        "not an encrypted file: wanted notthedroids, whatdoyousee or BriceIsSmart, found \"{}\"",
        found.escape_ascii()
    )]
    BadMagic {
        /// The first bytes.
        found: [u8; Magic::BYTES],
    },
    /// The file ends within its header or within its last block.
    #[error("the encrypted file is cut off: wanted {wanted} bytes, found {found}")]
    Truncated {
        /// Bytes the file needs to have as far as can be told.
        wanted: usize,
        /// Bytes it has.
        found: usize,
    },
    /// The header claims more bytes than follow it.
    #[error("the header promises {length} plain bytes, but only {available} bytes follow it")]
    PlainLength {
        /// The plain length of the header.
        length: u32,
        /// Bytes after the header.
        available: usize,
    },
    /// The caller's limit, or what a header can express.
    #[error("the plain file has {found} bytes or more; the limit is {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// Bytes there are, or would be.
        found: u32,
    },
    /// The caller has no key for this kind of file.
    #[error("the file is encrypted with the shard's own key (notthedroids), which was not given")]
    NoDroidKey,
}

/// The key of encrypted files: four words.
///
/// As text it is 32 hex digits, the most significant of each word first, as dirtsand's `Key.Droid`
/// has it. Cleared on drop, not shown by `Debug`, compared in constant time.
#[derive(Clone)]
pub struct SecureKey([u32; 4]);

impl SecureKey {
    /// The key of the client's settings, the same in all clients and no secret.
    pub const SETTINGS: Self = Self([0x6c0a_5452, 0x0382_7d0f, 0x3a17_0b92, 0x16db_7fc2]);
    /// What dirtsand uses for `notthedroids` files unless told otherwise.
    pub const DIRTSAND_DROID: Self = Self([0x3141_5926, 0x5358_9793, 0x2384_6264, 0x3383_2795]);

    /// A key from the four words of `AcctLoginReply`.
    #[must_use]
    pub fn from_words(words: [u32; 4]) -> Self {
        Self(words)
    }

    /// A new random key for a shard.
    #[must_use]
    pub fn generate<R: CryptoRng + ?Sized>(rng: &mut R) -> Self {
        Self(std::array::from_fn(|_| rng.next_u32()))
    }

    /// The four words, as `AcctLoginReply` sends them.
    #[must_use]
    pub fn words(&self) -> [u32; 4] {
        self.0
    }

    /// The key as 32 lower case hex digits. Cleared on drop.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        let [a, b, c, d] = self.0;
        Zeroizing::new(format!("{a:08x}{b:08x}{c:08x}{d:08x}"))
    }
}

impl FromStr for SecureKey {
    type Err = SecureKeyError;

    /// Reads 32 hex digits of either case, with nothing around or between them.
    fn from_str(text: &str) -> Result<Self, SecureKeyError> {
        let mut key = Self([0; 4]);
        let mut found = 0;
        for (at, c) in text.chars().enumerate() {
            let digit = c.to_digit(16).ok_or(SecureKeyError::Digit { at, found: c })?;
            if let Some(word) = key.0.get_mut(at / 8) {
                *word = *word << 4 | digit;
            }
            found = at + 1;
        }
        if found == HEX_DIGITS { Ok(key) } else { Err(SecureKeyError::Length { found }) }
    }
}

/// Why a text is not a key of encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecureKeyError {
    /// Too few or too many digits.
    #[error("wanted 32 hex digits, found {found}")]
    Length {
        /// Digits there are.
        found: usize,
    },
    /// Something that is not a digit.
    #[error("wanted a hex digit, found {found:?}")]
    Digit {
        /// Characters before it.
        at: usize,
        /// The character.
        found: char,
    },
}

impl fmt::Debug for SecureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecureKey(..)")
    }
}

impl PartialEq for SecureKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecureKey {}

impl Drop for SecureKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for SecureKey {}

/// A header and what follows it.
struct Header<'a> {
    magic: Magic,
    length: u32,
    body: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(data: &'a [u8]) -> Result<Self, SecureError> {
        let truncated = SecureError::Truncated { wanted: HEADER_BYTES, found: data.len() };
        let (found, rest) = data.split_first_chunk::<{ Magic::BYTES }>().ok_or(truncated)?;
        let magic = Magic::detect(found).ok_or(SecureError::BadMagic { found: *found })?;
        let (length, body) = rest.split_first_chunk::<4>().ok_or(truncated)?;
        Ok(Self { magic, length: u32::from_le_bytes(*length), body })
    }
}

const HEADER_BYTES: usize = Magic::BYTES + 4;
const HEX_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    /// From the secure file vectors.
    #[test]
    fn known_files() {
        let other: SecureKey = "dcbb284d196e5ba2d81755cc67bb3dd0".parse().unwrap();
        let cases: [(Magic, &SecureKey, &[u8], &str); 5] = [
            (
                Magic::NotTheDroids,
                &SecureKey::DIRTSAND_DROID,
                b"",
                "6e6f7474686564726f69647300000000",
            ),
            (
                Magic::NotTheDroids,
                &SecureKey::DIRTSAND_DROID,
                b"Hello, world!",
                "6e6f7474686564726f6964730d00000093bd7193a440c26a37d1a79eea9345c9",
            ),
            (
                Magic::WhatDoYouSee,
                &SecureKey::SETTINGS,
                b"Hello, world!",
                "77686174646f796f757365650d000000acc1a6b6dc33950e9918aefc9cd300b9",
            ),
            (
                Magic::WhatDoYouSee,
                &SecureKey::SETTINGS,
                b"x",
                "77686174646f796f7573656501000000984ff3726f7cdf97",
            ),
            (
                Magic::NotTheDroids,
                &other,
                b"\xc4\x81\xbf\x74\x3a\x43\x64\xbb",
                "6e6f7474686564726f69647308000000661914ad5c90a697",
            ),
        ];
        for (magic, key, plain, sealed) in cases {
            let sealed = hex(sealed);
            assert_eq!(Magic::detect(&sealed), Some(magic));
            let file = open_with(&sealed, key, LIMIT).unwrap();
            assert_eq!((file.magic(), file.plain()), (magic, plain));
            assert!(file.is_canonical());
            assert_eq!(SecureFile::new(magic, plain.to_vec()).seal(key).unwrap(), sealed);
        }
    }

    #[test]
    fn the_magic_chooses_the_key() {
        let settings = hex("77686174646f796f7573656501000000984ff3726f7cdf97");
        assert_eq!(open(&settings, None, LIMIT).unwrap().plain(), b"x");
        let script = hex("6e6f7474686564726f69647301000000297247cc6817ae7d");
        assert_eq!(open(&script, None, LIMIT), Err(SecureError::NoDroidKey));
        let file = open(&script, Some(&SecureKey::DIRTSAND_DROID), LIMIT).unwrap();
        assert_eq!(file.plain(), b"x");
        // The old magic reads like the new one.
        let mut old = settings;
        old[..12].copy_from_slice(b"BriceIsSmart");
        let file = open(&old, None, LIMIT).unwrap();
        assert_eq!(file.clone().into_plain(), b"x");
        assert_eq!(file.seal(&SecureKey::SETTINGS).unwrap(), old);
    }

    #[test]
    fn faults_are_named() {
        let key = &SecureKey::DIRTSAND_DROID;
        let good = SecureFile::new(Magic::NotTheDroids, vec![7; 13]).seal(key).unwrap();
        assert_eq!(good.len(), 32);
        for cut in 0..32 {
            let wanted = match cut {
                0..16 => SecureError::Truncated { wanted: 16, found: cut },
                16..29 => SecureError::PlainLength { length: 13, available: cut - 16 },
                _ => SecureError::Truncated { wanted: 32, found: cut },
            };
            assert_eq!(open(&good[..cut], Some(key), LIMIT), Err(wanted));
        }
        assert_eq!(open(&good, Some(key), 12), Err(SecureError::TooLarge { limit: 12, found: 13 }));
        assert!(open(&good, Some(key), 13).is_ok());
        let mut huge = good.clone();
        huge[12..16].fill(0xff);
        assert_eq!(
            open(&huge, Some(key), u64::MAX),
            Err(SecureError::PlainLength { length: u32::MAX, available: 16 })
        );
        let error = open(b"STATEDESC Av\xe9tar", None, LIMIT).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not an encrypted file: wanted notthedroids, whatdoyousee or BriceIsSmart, \
             found \"STATEDESC Av\""
        );
    }

    /// Tools pad with whatever is in their buffer, and append; the same bytes must come out again.
    #[test]
    fn odd_files_survive() {
        let key = &SecureKey::DIRTSAND_DROID;
        let mut odd = SecureFile::new(Magic::NotTheDroids, vec![7; 16]).seal(key).unwrap();
        odd[12] = 13;
        odd.extend_from_slice(b"tail");
        let file = open(&odd, Some(key), LIMIT).unwrap();
        assert_eq!(file.plain(), [7; 13]);
        assert_eq!(file.trailing(), b"tail");
        assert!(!file.is_canonical());
        assert_eq!(file.seal(key).unwrap(), odd);
    }

    #[test]
    fn key_text() {
        let key: SecureKey = "31415926535897932384626433832795".parse().unwrap();
        assert_eq!(key, SecureKey::DIRTSAND_DROID);
        assert_eq!(*key.to_hex(), "31415926535897932384626433832795");
        assert_eq!("".parse::<SecureKey>(), Err(SecureKeyError::Length { found: 0 }));
        assert_eq!("0".repeat(33).parse::<SecureKey>(), Err(SecureKeyError::Length { found: 33 }));
        assert_eq!("31x".parse::<SecureKey>(), Err(SecureKeyError::Digit { at: 2, found: 'x' }));
        assert_eq!(format!("{key:?}"), "SecureKey(..)");
    }
}
