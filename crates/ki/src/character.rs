//! The parts of a character blob that a login server needs, readable without a type list.
//!
//! `CreationInfo` and `CharacterInfo` hold a `WizardCharacterCreationInfo`: flags 0, mask 0x18,
//! shallow, no envelope. The fields at both ends have fixed positions:
//!
//! | offset | field | type |
//! | --- | --- | --- |
//! | 0 | class tag, 292458316 | `u32` |
//! | 4 | `m_templateID` | `u32` |
//! | 8 | `m_name` | `u16` count and bytes |
//! | 10 + n | `m_shouldRename` | one bit |
//! | 11 + n | `m_globalID` | `u64` |
//! | 19 + n | `m_userID` | `u64` |
//! | 27 + n | `m_quarantined`, a bit; looks, equipment, `m_location`, `m_level` | |
//! | end - 8 | `m_schoolOfFocus`: the string ID of its name | `u32` |
//! | end - 4 | `m_nameIndices`: first, middle and last, 8 bits each | `u32` |
//!
//! Everything in between is kept verbatim. Unverified: that later revisions append nothing; all
//! known blobs end with the name indices.

use worldwire_core::{Error, Result};

/// The tag of `class WizardCharacterCreationInfo`.
pub(crate) const CLASS: u32 = 292_458_316;
/// The highest valid `m_nameIndices`: three 8-bit indices.
pub const MAX_NAME_INDICES: u32 = 0xff_ffff;

/// The offset of the name.
const NAME: usize = 10;
/// The number of bytes from the end of the name to the looks.
const IDS: usize = 17;
/// The minimum number of bytes after the IDs: a bit, two null objects, an empty location, level,
/// school, indices.
const REST: usize = 23;

/// A character's blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Character {
    bytes: Vec<u8>,
    /// The length of the name in bytes.
    name: usize,
}

impl Character {
    /// Checks a blob and wraps it.
    ///
    /// # Errors
    /// `Malformed` if the blob has another class or is truncated.
    pub fn read(blob: &[u8]) -> Result<Self> {
        let short = || Error::malformed("a WizardCharacterCreationInfo", "a truncated blob");
        let tag = blob.first_chunk().copied().map(u32::from_le_bytes).ok_or_else(short)?;
        if tag != CLASS {
            let found = format!("class {tag}");
            return Err(Error::malformed("class WizardCharacterCreationInfo (292458316)", found));
        }
        let count = blob.get(8..NAME).and_then(|count| count.first_chunk().copied());
        let name = usize::from(u16::from_le_bytes(count.ok_or_else(short)?));
        if blob.len() < NAME + name + IDS + REST {
            return Err(short());
        }
        Ok(Self { bytes: blob.to_vec(), name })
    }

    /// A minimal character: no looks, no equipment, level 0. For headless clients.
    #[must_use]
    pub fn plain(name: &str, school: &str, name_indices: u32) -> Self {
        let kept = name.len().min(usize::from(u16::MAX));
        let count = u16::try_from(kept).unwrap_or(u16::MAX);
        let mut bytes = CLASS.to_le_bytes().to_vec();
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(name.as_bytes().iter().take(kept));
        bytes.resize(bytes.len() + IDS + REST - 8, 0);
        bytes.extend(crate::string_id(school.as_bytes()).to_le_bytes());
        bytes.extend(name_indices.to_le_bytes());
        Self { bytes, name: kept }
    }

    /// The blob.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The blob.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// `m_name`, usually empty: the client builds the name from the indices.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.bytes.get(NAME..NAME + self.name).unwrap_or_default()
    }

    /// `m_globalID`: the character's ID.
    #[must_use]
    pub fn global_id(&self) -> u64 {
        self.number(self.ids())
    }

    /// `m_userID`: the account's ID.
    #[must_use]
    pub fn user_id(&self) -> u64 {
        self.number(self.ids() + 8)
    }

    /// `m_schoolOfFocus`: the string ID of the school, such as `Fire`.
    #[must_use]
    pub fn school(&self) -> u32 {
        self.last(8)
    }

    /// `m_nameIndices`: `first << 16 | middle << 8 | last`.
    #[must_use]
    pub fn name_indices(&self) -> u32 {
        self.last(4)
    }

    /// Sets both IDs, which a client that creates a character does not know.
    pub fn set_ids(&mut self, global_id: u64, user_id: u64) {
        let at = self.ids();
        let ids = [global_id.to_le_bytes(), user_id.to_le_bytes()];
        if let Some(place) = self.bytes.get_mut(at..at + 16) {
            place.copy_from_slice(ids.as_flattened());
        }
    }

    fn ids(&self) -> usize {
        NAME + self.name + 1
    }

    fn number(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk().copied());
        bytes.map_or(0, u64::from_le_bytes)
    }

    fn last(&self, before: usize) -> u32 {
        let at = self.bytes.len().saturating_sub(before);
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk().copied());
        bytes.map_or(0, u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::value::parse_hex;

    use super::*;

    /// A blob of revision r707528; `vectors/ki/character_blob.json` explains it.
    const REAL: &str = "4c8f6e110100000000006c000000000000000000000000000000006607\
        8dd0721c8080b1986240310000000088bec104000b00000000230c407109000000000000000000000000\
        00840cab0448448a00";

    #[test]
    fn both_ends_are_read_and_ids_are_set() {
        let blob = parse_hex(REAL).unwrap();
        let mut character = Character::read(&blob).unwrap();
        assert_eq!((character.name(), character.name_indices()), (&b""[..], 9_061_448));
        assert_eq!(character.school(), 78_318_724);
        assert_eq!(character.school(), crate::string_id(b"Death"));
        character.set_ids(0x1122_3344_5566_7788, 42);
        assert_eq!((character.global_id(), character.user_id()), (0x1122_3344_5566_7788, 42));
        let changed = character.into_bytes();
        assert_eq!((&changed[..11], &changed[27..]), (&blob[..11], &blob[27..]));
        assert_eq!(changed[11..19], 0x1122_3344_5566_7788_u64.to_le_bytes());
    }

    #[test]
    fn a_plain_character_reads_back() {
        let character = Character::plain("Merle", "Fire", 0x01_0203);
        let read = Character::read(character.as_bytes()).unwrap();
        assert_eq!(read, character);
        assert_eq!((read.name(), read.school()), (&b"Merle"[..], 2_343_174));
        assert_eq!(read.name_indices(), 0x01_0203);
    }

    #[test]
    fn truncated_blobs_are_refused() {
        let whole = Character::plain("Merle", "Fire", 1).into_bytes();
        for length in 0..whole.len() {
            assert!(Character::read(&whole[..length]).is_err(), "{length} bytes");
        }
        let mut long = whole.clone();
        long[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(Character::read(&long).is_err());
        let mut other = whole;
        other[0] ^= 1;
        let error = Character::read(&other).unwrap_err().to_string();
        assert!(error.starts_with("wanted class WizardCharacterCreationInfo"), "{error}");
    }
}
