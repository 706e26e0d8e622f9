//! String IDs and property hashes: the numbers that represent texts in KI's protocols.

use std::collections::HashMap;

use worldwire_core::wire_enum;

/// A dictionary keeps at most this many words for one ID.
const MAX_WORDS: usize = 64;

/// The schools of magic. A character's `m_schoolOfFocus` holds the ID of the name;
/// `MSG_LOGINLOGCHARACTERCREATION` holds the index into this array.
pub const SCHOOLS: [&str; 7] = ["Fire", "Ice", "Storm", "Myth", "Life", "Death", "Balance"];

/// The ID of a string, used for type tags, error codes, and the names of schools and states.
///
/// The hash covers the raw bytes of the string, which are UTF-8 in practice. Implementations differ
/// for bytes below 0x20, which do not occur in any known name; this one follows the arithmetic rule
/// of the Kronos Grimoire.
///
/// ```
/// use worldwire_ki::string_id;
/// const FIRE: u32 = string_id(b"Fire");
/// assert_eq!(FIRE, 2_343_174);
/// ```
#[must_use]
pub const fn string_id(text: &[u8]) -> u32 {
    let mut hash: i32 = 0;
    let mut shift = 0;
    let mut at = 0;
    while at < text.len() {
        let value = text[at] as i32 - 32;
        hash ^= value << shift;
        if shift > 24 {
            hash ^= value >> (32 - shift);
        }
        shift = (shift + 5) % 32;
        at += 1;
    }
    hash.unsigned_abs()
}

/// The djb2 hash with its top bit cleared, used for property names and for Pirate101's class tags.
#[must_use]
pub const fn djb2_31(text: &[u8]) -> u32 {
    let mut hash: u32 = 5381;
    let mut at = 0;
    while at < text.len() {
        hash = hash.wrapping_mul(33).wrapping_add(text[at] as u32);
        at += 1;
    }
    hash & 0x7fff_ffff
}

/// The hash of a property, computed from its type as spelled in the type list (`unsigned int`,
/// `class SharedPointer<class EquipmentSet>`) and its name, which may be a path (`m_id.m_full`).
///
/// ```
/// use worldwire_ki::property_hash;
/// assert_eq!(property_hash(b"unsigned int", b"m_value"), 1_024_392_906);
/// ```
#[must_use]
pub const fn property_hash(type_name: &[u8], name: &[u8]) -> u32 {
    string_id(type_name).wrapping_add(djb2_31(name))
}

macro_rules! errors {
    ($($name:ident($type:ident): $about:literal;)*) => {$(
        wire_enum! {
            #[doc = $about]
            pub enum $name($type) {
                /// Success.
                Success = 0,
                /// The account is banned.
                AccountBanned = 87_620_544,
                /// The machine is banned.
                MachineBanned = 1_157_331_960,
                /// Wrong name or password.
                AuthenFailed = 996_708_736,
                /// The account server accepts no logins.
                AISNoLogin = 1_662_107_094,
                /// The login timed out.
                Timeout = 1_361_855_231,
                /// Free players cannot log in at the moment.
                FtpCapped = 1_543_467_878,
                /// The character could not be locked.
                ErrorNoLock = 1_742_541_802,
                /// An upload failed.
                FailedUpload = 277_183_861,
                /// The pass key of the second connection is wrong.
                ValidateFailed = 246_825_817,
                /// The name of a new character is refused. Unverified: the text was found by
                /// searching for words with this ID.
                InvalidName = 1_745_079_928,
                /// The client has not logged in or is not admitted yet. This one and the rest are
                /// specific to `worldwire serve ki`: no document has IDs for them.
                NotAdmitted = 548_851_844,
                /// The blob of a new character is malformed.
                MalformedCharacter = 344_871_311,
                /// The account has no slot left.
                SlotLimit = 789_879_832,
                /// The character does not exist or belongs to another account.
                UnknownCharacter = 991_218_962,
                /// The key with which a client enters a zone is wrong, already used, or expired.
                WrongKey = 307_639_470,
            }
        }
    )*};
}

errors! {
    LoginError(u32): "Errors of a login server: the string IDs of these names, in fields called \
                      `Error` or `ErrorCode` of type `UINT`.";
    LoginErrorInt(i32): "A [`LoginError`] in a field of type `INT`.";
}

/// Finds the texts with a given ID among known words.
///
/// IDs cannot be turned back into text, but a dictionary of the words in definitions finds most of
/// them.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    words: HashMap<u32, Vec<String>>,
}

impl Dictionary {
    /// A dictionary with the names of the known errors and the schools of magic.
    #[must_use]
    pub fn new() -> Self {
        let errors = LoginError::NAMES.iter().map(|(_, name)| name);
        let errors = errors.filter(|name| *name != "Success");
        let mut dictionary = Self::default();
        errors.chain(SCHOOLS).for_each(|word| dictionary.add(word));
        dictionary
    }

    /// Adds a word. Only the first 64 words with the same ID are kept: real words hardly ever share
    /// an ID, but such words are easy to construct.
    pub fn add(&mut self, word: &str) {
        let words = self.words.entry(string_id(word.as_bytes())).or_default();
        if words.len() < MAX_WORDS && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }

    /// The words with this ID, in insertion order.
    #[must_use]
    pub fn find(&self, id: u32) -> &[String] {
        self.words.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The number of distinct IDs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the dictionary contains no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_the_ids_of_their_names() {
        for (number, name) in LoginError::NAMES.iter().filter(|(number, _)| *number != 0) {
            assert_eq!(number, i64::from(string_id(name.as_bytes())), "{name}");
        }
    }

    #[test]
    fn the_absolute_value_cannot_overflow() {
        // Tests the arithmetic directly, because no known text has this hash.
        assert_eq!(i32::MIN.unsigned_abs(), 0x8000_0000);
        // The rotating form of the hash, for bytes of 0x20 and more.
        let text = "class SharedPointer<class ÄÖÜ日本語>".as_bytes();
        let rotated = text.iter().enumerate().fold(0u32, |hash, (at, byte)| {
            hash ^ (u32::from(*byte) - 32).rotate_left(u32::try_from(5 * at % 32).unwrap_or(0))
        });
        assert_eq!(string_id(text), rotated.cast_signed().unsigned_abs());
    }

    #[test]
    fn a_dictionary_finds_words() {
        let mut dictionary = Dictionary::new();
        assert_eq!(dictionary.find(2_343_174), ["Fire"]);
        assert_eq!(dictionary.find(996_708_736), ["AuthenFailed"]);
        assert!(dictionary.find(1).is_empty());
        dictionary.add("class Duel");
        dictionary.add("class Duel");
        assert_eq!(dictionary.find(85_019_234), ["class Duel"]);
    }
}
