//! Replacements for texts, bytes, numbers and addresses. Equal values get equal replacements.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sha2::{Digest as _, Sha256};

/// The maximum number of names that are recognised inside other texts.
const MAX_WORDS: usize = 1 << 16;
/// The maximum number of addresses with separate replacements.
const MAX_ADDRESSES: usize = 1 << 20;
/// Shorter words are too common to be recognised as names.
const LEAST_WORD: usize = 3;
/// From this length on, hexadecimal digits are replaced by hexadecimal digits.
const LEAST_HEX: usize = 8;

/// A mapping with a secret key, which is not stored.
pub(super) struct Pseudonyms {
    key: [u8; 32],
    /// The names that were found, in lower case, with their replacements.
    words: HashMap<String, String>,
    addresses: HashMap<IpAddr, Ipv4Addr>,
}

/// The results of a first reading: parts of names, in lower case, and addresses.
#[derive(Debug, Default)]
pub(super) struct Found {
    words: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

impl Found {
    /// Adds the words of a name.
    pub(super) fn add_name(&mut self, name: &str) {
        let words =
            words(name).filter(|(word, is_word)| *is_word && word.chars().count() >= LEAST_WORD);
        for (word, _) in words {
            if self.words.len() < MAX_WORDS && !word.chars().all(|c| c.is_ascii_digit()) {
                self.words.insert(word.to_lowercase());
            }
        }
    }

    pub(super) fn add_address(&mut self, address: IpAddr) {
        if self.addresses.len() < MAX_ADDRESSES {
            self.addresses.insert(address);
        }
    }

    /// Adds the results of another reading.
    pub(super) fn add(&mut self, other: &Self) {
        other.words.iter().for_each(|word| self.add_name(word));
        other.addresses.iter().for_each(|address| self.add_address(*address));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.addresses.is_empty()
    }
}

impl Pseudonyms {
    /// Creates a mapping for everything that was found. Different names and addresses get different
    /// replacements.
    pub(super) fn new(key: [u8; 32], found: &Found) -> Self {
        let mut new = Self { key, words: HashMap::new(), addresses: HashMap::new() };
        let mut taken = HashSet::new();
        for word in &found.words {
            // For short names, there are few replacements of the same length.
            const ATTEMPTS: u32 = 64;
            let free = (0..ATTEMPTS)
                .map(|attempt| new.scrambled(word, "word", &format!("{attempt}:{word}")))
                .find(|name| !found.words.contains(name) && !taken.contains(name));
            let name = free.unwrap_or_else(|| new.scrambled(word, "word", word));
            taken.insert(name.clone());
            new.words.insert(word.clone(), name);
        }
        let mut taken = HashSet::new();
        for address in found.addresses.iter().filter(|address| !is_kept(**address)) {
            let mut number = new.address_number(*address);
            while !taken.insert(number) {
                number = (number + 1) & 0x00ff_ffff;
            }
            new.addresses.insert(*address, private(number));
        }
        new
    }

    /// Bytes that depend on the key, the kind of value, and the value.
    pub(super) fn bytes(&self, kind: &str, value: &[u8], length: usize) -> Vec<u8> {
        let mut head = Sha256::new();
        head.update(self.key);
        for part in [kind.as_bytes(), value] {
            head.update((part.len() as u64).to_le_bytes());
            head.update(part);
        }
        let head = head.finalize();
        let block = |count: u64| {
            let mut block = Sha256::new();
            block.update(head);
            block.update(count.to_le_bytes());
            block.finalize()
        };
        let blocks = (0..length.div_ceil(32) as u64).map(block);
        let mut bytes: Vec<u8> = Vec::with_capacity(length.next_multiple_of(32));
        blocks.for_each(|block| bytes.extend_from_slice(&block));
        bytes.truncate(length);
        bytes
    }

    /// Like [`bytes`](Self::bytes), as an array.
    pub(super) fn array<const N: usize>(&self, kind: &str, value: &[u8]) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(kind, value, N));
        array
    }

    /// A replacement for bytes, of the same length. Zeros are kept.
    pub(super) fn blob(&self, bytes: &[u8]) -> Vec<u8> {
        match bytes.iter().all(|byte| *byte == 0) {
            true => bytes.to_vec(),
            false => self.bytes("blob", bytes, bytes.len()),
        }
    }

    /// A replacement for a text: letters become letters and digits become digits, with the same
    /// number of bytes in UTF-8 and in UTF-16. Punctuation is kept.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (index, (word, is_word)) in words(text).enumerate() {
            match self.words.get(&word.to_lowercase()) {
                _ if !is_word => out.push_str(word),
                Some(name) => out.push_str(&in_case_of(word, name)),
                // Equal words in different texts get different replacements, so common words do not
                // stand out.
                None => out.push_str(&self.scrambled(word, "text", &format!("{index}:{text}"))),
            }
        }
        out
    }

    /// A text in which only names are replaced.
    pub(super) fn kept_text(&self, text: &str) -> String {
        let one = |(word, _): (&str, bool)| match self.words.get(&word.to_lowercase()) {
            Some(name) => in_case_of(word, name),
            None => word.to_owned(),
        };
        words(text).map(one).collect()
    }

    /// A replacement for an address. Loopback and unspecified addresses are kept.
    pub(super) fn address(&self, address: IpAddr) -> Ipv4Addr {
        match (self.addresses.get(&address), address) {
            (_, IpAddr::V4(plain)) if is_kept(address) => plain,
            (_, IpAddr::V6(_)) if is_kept(address) => Ipv4Addr::LOCALHOST,
            (Some(address), _) => *address,
            (None, _) => private(self.address_number(address)),
        }
    }

    /// A replacement for an address with a port. The port is kept.
    pub(super) fn end(&self, end: SocketAddr) -> std::net::SocketAddrV4 {
        std::net::SocketAddrV4::new(self.address(end.ip()), end.port())
    }

    /// A replacement for an identifier of 16 bytes.
    pub(super) fn guid(&self, id: &[u8; 16]) -> [u8; 16] {
        if *id == [0; 16] { *id } else { self.array("guid", id) }
    }

    /// A replacement for a number, with the same number of bits. Different numbers get different
    /// replacements. Small numbers are kept. The halves of a long number are replaced separately,
    /// because other messages contain only the lower half.
    pub(super) fn number(&self, number: u64) -> u64 {
        const SMALL: u64 = 16;
        const HALF: u32 = 32;
        if number >> HALF > 0 {
            return (self.number(number >> HALF) << HALF) | self.number(number & ((1 << HALF) - 1));
        }
        if number < SMALL {
            return number;
        }
        let bits = number.ilog2();
        let top = 1 << bits;
        top | self.permuted(number & (top - 1), bits)
    }

    /// Permutes the numbers of up to 31 bits with a Feistel network.
    fn permuted(&self, number: u64, bits: u32) -> u64 {
        const ROUNDS: u8 = 8;
        let low_bits = bits / 2;
        let (mut low, mut high) = (number & ((1 << low_bits) - 1), number >> low_bits);
        for round in 0..ROUNDS {
            let is_low = round % 2 == 0;
            let (changed, other, size) = match is_low {
                true => (&mut low, high, low_bits),
                false => (&mut high, low, bits - low_bits),
            };
            let mut seed = [0; 16];
            seed[..8].copy_from_slice(&other.to_le_bytes());
            seed[8..12].copy_from_slice(&bits.to_le_bytes());
            seed[12] = round;
            let random = u64::from_le_bytes(self.array("number", &seed));
            *changed ^= random & ((1 << size) - 1);
        }
        high << low_bits | low
    }

    fn address_number(&self, address: IpAddr) -> u32 {
        let text = address.to_string();
        u32::from_le_bytes(self.array("address", text.as_bytes())) & 0x00ff_ffff
    }

    /// Replaces every character with one of the same class.
    fn scrambled(&self, word: &str, kind: &str, value: &str) -> String {
        const VOWELS: &[u8] = b"aeiou";
        const CONSONANTS: &[u8] = b"bcdfghjklmnpqrstvwxyz";
        let is_hex = word.len() >= LEAST_HEX && word.bytes().all(|c| c.is_ascii_hexdigit());
        let random = self.bytes(kind, value.to_lowercase().as_bytes(), word.chars().count() * 2);
        let pick = |list: &[u8], random: usize| {
            char::from(list.get(random % list.len()).copied().unwrap_or(b'x'))
        };
        let one = |(c, random): (char, &[u8])| {
            let random = usize::from(random[0]) << 8 | usize::from(random[1]);
            let lower = c.to_ascii_lowercase();
            let new = match c {
                '0'..='9' => pick(b"0123456789", random),
                _ if is_hex => pick(b"abcdef", random),
                _ if c.is_ascii() && VOWELS.contains(&(lower as u8)) => pick(VOWELS, random),
                _ if c.is_ascii_alphabetic() => pick(CONSONANTS, random),
                _ => return of_class(c, random),
            };
            if c.is_ascii_uppercase() { new.to_ascii_uppercase() } else { new }
        };
        word.chars().zip(random.chunks_exact(2)).map(one).collect()
    }
}

/// A character with the same length in UTF-8 and in UTF-16.
fn of_class(c: char, random: usize) -> char {
    let (first, count) = match c.len_utf8() {
        1 => return c,
        // Letters of ISO 8859-1, which may be the encoding.
        2 if c.is_uppercase() => (0xc0, 0x16),
        2 => (0xe0, 0x16),
        3 => (0x4e00, 0x2000),
        _ => (0x1f600, 0x40),
    };
    u32::try_from(first + random % count).ok().and_then(char::from_u32).unwrap_or(c)
}

/// A replacement with the capitals of the original.
fn in_case_of(word: &str, name: &str) -> String {
    let one = |(c, new): (char, char)| match c.is_ascii_uppercase() {
        true => new.to_ascii_uppercase(),
        false => new,
    };
    // Lower case can have a different number of characters.
    let is_plain = word.is_ascii() || word.to_lowercase().len() == name.len();
    match is_plain && word.chars().count() == name.chars().count() {
        true => word.chars().zip(name.chars()).map(one).collect(),
        false => name.to_owned(),
    }
}

/// The words of the text and what is between them.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let is_word = rest.chars().next()?.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_word).unwrap_or(rest.len());
        let (word, later) = rest.split_at(end);
        rest = later;
        Some((word, is_word))
    })
}

/// Whether an address does not identify anyone.
fn is_kept(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

/// An address of the private network 10.0.0.0/8.
fn private(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(10 << 24 | number & 0x00ff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms(names: &[&str]) -> Pseudonyms {
        let mut found = Found::default();
        names.iter().for_each(|name| found.add_name(name));
        found.add_address("192.0.2.1".parse().expect("an address"));
        Pseudonyms::new([7; 32], &found)
    }

    #[test]
    fn replacements_keep_lengths_and_classes() {
        let pseudonyms = pseudonyms(&["Merle", "Wächter"]);
        for text in ["Merle", "wächter-9", "Привет, мир!", "漢字", "🙂 ok", "a1b2c3d4e5f6", "", " "]
        {
            let new = pseudonyms.text(text);
            assert_eq!(new.len(), text.len(), "{text} {new}");
            assert_eq!(new.encode_utf16().count(), text.encode_utf16().count(), "{text} {new}");
            assert!(text.chars().all(|c| !c.is_alphanumeric()) || new != text, "{text}");
            for (old, new) in text.chars().zip(new.chars()) {
                assert_eq!(old.is_ascii_digit(), new.is_ascii_digit(), "{text}");
                assert_eq!(old.is_ascii_uppercase(), new.is_ascii_uppercase(), "{text}");
                assert_eq!(old.is_alphanumeric(), new.is_alphanumeric(), "{text}");
            }
        }
    }

    #[test]
    fn names_are_the_same_everywhere() {
        let pseudonyms = pseudonyms(&["Merle Ashthorn"]);
        let (first, last) = (pseudonyms.text("merle"), pseudonyms.text("ashthorn"));
        assert_eq!(pseudonyms.text("Merle"), in_case_of("Merle", &first));
        assert!(pseudonyms.text("hi merle, or ashthorn").contains(&format!(" {first}, ")));
        assert_eq!(pseudonyms.kept_text("merle's garden"), format!("{first}'s garden"));
        assert_ne!(first, last);
        // Other words have different replacements in different texts.
        let [one, other] =
            ["hello there friend", "hello again friend"].map(|it| pseudonyms.text(it));
        assert_ne!(one.split(' ').next(), other.split(' ').next());
    }

    #[test]
    fn different_names_and_addresses_have_different_replacements() {
        let letter = |n: u32| char::from(b'a' + u8::try_from(n % 20).unwrap_or_default());
        let names: Vec<String> =
            (0..400).map(|n| format!("n{}{}a", letter(n), letter(n / 20))).collect();
        let mut found = Found::default();
        names.iter().for_each(|name| found.add_name(name));
        let addresses: Vec<IpAddr> =
            (0..5000_u32).map(|n| Ipv4Addr::from(0x0909_0000 + n).into()).collect();
        addresses.iter().for_each(|address| found.add_address(*address));
        let pseudonyms = Pseudonyms::new([1; 32], &found);
        let new: HashSet<String> = names.iter().map(|name| pseudonyms.text(name)).collect();
        assert_eq!(new.len(), names.len());
        let new: HashSet<Ipv4Addr> = addresses.iter().map(|it| pseudonyms.address(*it)).collect();
        assert_eq!(new.len(), addresses.len());
    }

    #[test]
    fn numbers_keep_their_size_and_bytes_their_length() {
        let pseudonyms = pseudonyms(&[]);
        for number in [16, 255, 256, 65_535, 4_711, u64::from(u32::MAX), u64::MAX] {
            let new = pseudonyms.number(number);
            assert_eq!(new.leading_zeros(), number.leading_zeros(), "{number} {new}");
        }
        assert_eq!(pseudonyms.number(5), 5);
        for range in [16..32, 32..64, 1 << 13..1 << 14] {
            let new: HashSet<u64> = range.clone().map(|it| pseudonyms.number(it)).collect();
            assert_eq!(new, range.clone().collect(), "a permutation");
            assert!(range.clone().any(|number| pseudonyms.number(number) != number), "{range:?}");
        }
        let [long, short] = [0x1234_5678_9abc_def0, 0x9abc_def0].map(|it| pseudonyms.number(it));
        assert!(long != 0x1234_5678_9abc_def0 && long & 0xffff_ffff == short);
        assert_eq!(pseudonyms.blob(&[0; 40]), [0; 40]);
        assert_eq!(pseudonyms.blob(b"secret and more of it: 33 bytes..").len(), 33);
        assert_ne!(pseudonyms.blob(b"secret"), b"secret");
        assert_eq!(pseudonyms.guid(&[0; 16]), [0; 16]);
    }

    #[test]
    fn another_key_makes_other_replacements() {
        let [one, other] = [1, 2].map(|key| Pseudonyms::new([key; 32], &Found::default()));
        assert_ne!(one.text("Ashthorn"), other.text("Ashthorn"));
        assert_ne!(one.blob(b"secret"), other.blob(b"secret"));
    }
}
