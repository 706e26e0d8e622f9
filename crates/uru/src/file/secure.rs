//! Encrypted files: scripts and SDL files that the auth server sends, and the client's settings.
//! For compatibility only: the cipher only deters casual inspection.
//!
//! | offset | size | type | name | meaning |
//! |---|---|---|---|---|
//! | 0 | 12 | bytes | magic | selects cipher and key, see [`Magic`] |
//! | 12 | 4 | u32, little-endian | plain length | size of the plain file in bytes |
//! | 16 | | blocks of 8 | | the file, zero-padded to whole blocks |
//!
//! The format has no checksum, so a wrong key cannot be detected with certainty. It usually
//! produces non-zero padding; see [`SecureFile::is_canonical`].
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

use std::str::FromStr;

use zeroize::Zeroizing;

use crate::crypt::secret::Secret;
use crate::crypt::xtea::{BLOCK_BYTES, BlockCipher};

/// Decrypts a file with the key that its magic selects.
///
/// `droid` is the shard's key for `notthedroids` files; the other keys are built into every client.
/// `limit` is the maximum plain size, checked before memory is allocated.
///
/// # Errors
/// Any [`SecureError`]. All but [`SecureError::NoDroidKey`] are the fault of the file.
pub fn open(data: &[u8], droid: Option<&SecureKey>, limit: u64) -> Result<SecureFile, SecureError> {
    let key = match Header::read(data)?.magic {
        Magic::NotTheDroids => droid.ok_or(SecureError::NoDroidKey)?,
        Magic::WhatDoYouSee | Magic::BriceIsSmart => &SecureKey::SETTINGS,
    };
    open_with(data, key, limit)
}

/// Decrypts a file with the given key, whatever its magic; otherwise like [`open`].
pub fn open_with(data: &[u8], key: &SecureKey, limit: u64) -> Result<SecureFile, SecureError> {
    let Header { magic, length, body } = Header::read(data)?;
    if u64::from(length) > limit {
        return Err(SecureError::TooLarge { limit, found: length });
    }
    let too_short = SecureError::PlainLength { length, available: body.len() };
    // A length that does not fit in usize cannot be present in memory.
    let Ok(plain_length) = usize::try_from(length) else { return Err(too_short) };
    if plain_length > body.len() {
        return Err(too_short);
    }
    let wanted = plain_length.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
    let Some((blocks, trailing)) = body.split_at_checked(wanted) else {
        return Err(SecureError::Truncated { wanted: HEADER_BYTES + wanted, found: data.len() });
    };

    let mut plain = blocks.to_vec();
    magic.cipher().decrypt(&key.0.0, plain.as_chunks_mut().0);
    let padding = plain.split_off(plain_length);
    Ok(SecureFile { magic, plain, padding, trailing: trailing.to_vec() })
}

/// The magic at the beginning of an encrypted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Magic {
    /// Scripts (`.pak`) and SDL files (`.sdl`): XXTEA with the shard's own key, which the client
    /// receives in `AcctLoginReply`.
    NotTheDroids,
    /// Client settings: XTEA with [`SecureKey::SETTINGS`].
    WhatDoYouSee,
    /// Old magic for client settings; nothing writes it today.
    BriceIsSmart,
}

impl Magic {
    /// The size of a magic in bytes.
    pub const BYTES: usize = 12;

    const ALL: [Self; 3] = [Self::NotTheDroids, Self::WhatDoYouSee, Self::BriceIsSmart];

    /// The magic that the data begins with; `None` for a plain file.
    #[must_use]
    pub fn detect(data: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|magic| data.starts_with(magic.bytes()))
    }

    /// The magic itself, which is ASCII.
    #[must_use]
    pub fn bytes(self) -> &'static [u8; Self::BYTES] {
        match self {
            Self::NotTheDroids => b"notthedroids",
            Self::WhatDoYouSee => b"whatdoyousee",
            Self::BriceIsSmart => b"BriceIsSmart",
        }
    }

    /// The cipher for files with this magic.
    #[must_use]
    pub fn cipher(self) -> BlockCipher {
        match self {
            Self::NotTheDroids => BlockCipher::Xxtea,
            Self::WhatDoYouSee | Self::BriceIsSmart => BlockCipher::Xtea,
        }
    }
}

/// A decrypted file, with everything needed to encrypt it to the same bytes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureFile {
    magic: Magic,
    plain: Vec<u8>,
    /// The rest of the last block after the plain bytes; zeros in well-formed files. If this is
    /// shorter than that rest, the remainder is zero.
    padding: Vec<u8>,
    /// Bytes after the last block, kept as they are.
    trailing: Vec<u8>,
}

impl SecureFile {
    /// A file to be encrypted.
    #[must_use]
    pub fn new(magic: Magic, plain: Vec<u8>) -> Self {
        Self { magic, plain, padding: Vec::new(), trailing: Vec::new() }
    }

    /// Encrypts the file. A decrypted file yields its original bytes, including unusual padding.
    ///
    /// # Errors
    /// Fails with [`SecureError::TooLarge`] if the header cannot express the length.
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
        self.magic.cipher().encrypt(&key.0.0, data[HEADER_BYTES..].as_chunks_mut().0);
        data.extend_from_slice(&self.trailing);
        Ok(data)
    }

    /// The magic of the file.
    #[must_use]
    pub fn magic(&self) -> Magic {
        self.magic
    }

    /// The plain bytes.
    #[must_use]
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Extracts the plain bytes.
    #[must_use]
    pub fn into_plain(self) -> Vec<u8> {
        self.plain
    }

    /// The rest of the last block after the plain bytes; zeros in well-formed files.
    #[must_use]
    pub fn padding(&self) -> &[u8] {
        &self.padding
    }

    /// Sets the padding and the trailing bytes, for files that must keep their exact bytes. Padding
    /// beyond the last block is cut off.
    #[must_use]
    pub fn with_rest(self, mut padding: Vec<u8>, trailing: Vec<u8>) -> Self {
        let room = self.plain.len().next_multiple_of(BLOCK_BYTES) - self.plain.len();
        padding.truncate(room);
        Self { padding, trailing, ..self }
    }

    /// The bytes after the last block, which readers ignore.
    #[must_use]
    pub fn trailing(&self) -> &[u8] {
        &self.trailing
    }

    /// Whether the padding consists of zeros and is not followed by anything. Otherwise either the
    /// key is wrong or a sloppy tool wrote the file.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.trailing.is_empty() && self.padding.iter().all(|byte| *byte == 0)
    }
}

/// Why a file cannot be decrypted or encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecureError {
    /// The file does not begin with a known magic; it may be a plain file.
    #[error(
        "not an encrypted file: wanted notthedroids, whatdoyousee or BriceIsSmart, found \"{}\"",
        found.escape_ascii()
    )]
    BadMagic {
        /// The first bytes.
        found: [u8; Magic::BYTES],
    },
    /// The file ends within the header or the last block.
    #[error("the encrypted file is truncated: wanted {wanted} bytes, found {found}")]
    Truncated {
        /// The minimum size of the file, as far as it is known.
        wanted: usize,
        /// The actual size.
        found: usize,
    },
    /// The header claims more bytes than follow it.
    #[error("the header announces {length} plain bytes, but only {available} bytes follow")]
    PlainLength {
        /// The plain length in the header.
        length: u32,
        /// The bytes after the header.
        available: usize,
    },
    /// The plain size exceeds the caller's limit or what a header can express.
    #[error("the plain file has at least {found} bytes; the limit is {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The plain size.
        found: u32,
    },
    /// The caller has no key for this kind of file.
    #[error("the file is encrypted with the shard's own key (notthedroids), which is missing")]
    NoDroidKey,
}

/// The key of encrypted files: four words.
///
/// As text, it is 32 hex digits, most significant digit of each word first, as in dirtsand's
/// `Key.Droid`. Cleared on drop, hidden by `Debug`, compared in constant time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureKey(Secret<[u32; 4]>);

impl SecureKey {
    /// The key of client settings. It is the same in all clients and not a secret.
    pub const SETTINGS: Self = Self(Secret([0x6c0a_5452, 0x0382_7d0f, 0x3a17_0b92, 0x16db_7fc2]));
    /// The default key of dirtsand for `notthedroids` files.
    pub const DIRTSAND_DROID: Self =
        Self(Secret([0x3141_5926, 0x5358_9793, 0x2384_6264, 0x3383_2795]));

    /// A key from the four words in `AcctLoginReply`.
    #[must_use]
    pub fn from_words(words: [u32; 4]) -> Self {
        Self(Secret(words))
    }

    /// A new random key for a shard.
    #[cfg(feature = "keys")]
    #[must_use]
    pub fn generate<R: rand_core::CryptoRng + ?Sized>(rng: &mut R) -> Self {
        Self(Secret(std::array::from_fn(|_| rng.next_u32())))
    }

    /// The four words, as sent in `AcctLoginReply`.
    #[must_use]
    pub fn words(&self) -> [u32; 4] {
        self.0.0
    }

    /// The key as 32 lower-case hex digits. Cleared on drop.
    #[must_use]
    pub fn to_hex(&self) -> Zeroizing<String> {
        let [a, b, c, d] = self.0.0;
        Zeroizing::new(format!("{a:08x}{b:08x}{c:08x}{d:08x}"))
    }
}

impl FromStr for SecureKey {
    type Err = SecureKeyError;

    /// Parses exactly 32 hex digits of either case, with no other characters.
    fn from_str(text: &str) -> Result<Self, SecureKeyError> {
        let mut key = Self(Secret([0; 4]));
        let mut found = 0;
        for (at, c) in text.chars().enumerate() {
            let digit = c.to_digit(16).ok_or(SecureKeyError::Digit { at, found: c })?;
            if let Some(word) = key.0.0.get_mut(at / 8) {
                *word = *word << 4 | digit;
            }
            found = at + 1;
        }
        if found == HEX_DIGITS { Ok(key) } else { Err(SecureKeyError::Length { found }) }
    }
}

/// Why a text is not a key for encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecureKeyError {
    /// The number of digits is wrong.
    #[error("wanted 32 hex digits, found {found}")]
    Length {
        /// The number of digits.
        found: usize,
    },
    /// A character that is not a hex digit.
    #[error("wanted a hex digit, found {found:?}")]
    Digit {
        /// The number of characters before it.
        at: usize,
        /// The character.
        found: char,
    },
}

/// A header and the bytes after it.
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
        worldwire_core::value::parse_hex(text).unwrap()
    }

    /// Cases from the secure file vectors.
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
        // Files with the old magic are read like those with the new one.
        let mut old = settings;
        old[..12].copy_from_slice(b"BriceIsSmart");
        let file = open(&old, None, LIMIT).unwrap();
        assert_eq!(file.clone().into_plain(), b"x");
        assert_eq!(file.seal(&SecureKey::SETTINGS).unwrap(), old);
    }

    #[test]
    fn errors_are_specific() {
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

    /// Tools pad with leftover buffer contents and append bytes; the original bytes must survive.
    #[test]
    fn irregular_files_survive() {
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
