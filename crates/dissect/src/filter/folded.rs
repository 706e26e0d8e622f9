//! Searches for text in any case, in linear time and without allocating.

use memchr::{memchr, memchr2};

/// A text to search for in any case.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    /// The text in lower case.
    text: Box<[u8]>,
    /// For each byte of the text, the length of the longest proper prefix of the text that ends there, as
    /// in the algorithm of Knuth, Morris and Pratt.
    borders: Box<[usize]>,
}

impl Folded {
    pub(super) fn new(text: &str) -> Self {
        // `str::to_lowercase` treats a final sigma differently.
        let text: String = text.chars().flat_map(char::to_lowercase).collect();
        let text = text.into_bytes();
        let mut borders = vec![0; text.len()];
        let mut matched = 0;
        for (at, byte) in text.iter().enumerate().skip(1) {
            while matched > 0 && text.get(matched) != Some(byte) {
                matched = before(&borders, matched);
            }
            matched += usize::from(text.get(matched) == Some(byte));
            if let Some(border) = borders.get_mut(at) {
                *border = matched;
            }
        }
        Self { text: text.into(), borders: borders.into() }
    }

    /// Whether `hay` contains the text. `hay` may have bytes that are not UTF-8. Takes time linear
    /// in its length.
    pub(super) fn is_in(&self, hay: &[u8]) -> bool {
        let Some(first) = self.text.first() else { return true };
        if hay.is_ascii() {
            return self.is_in_ascii(*first, hay);
        }
        let mut matched = 0;
        for chunk in hay.utf8_chunks() {
            for c in chunk.valid().chars() {
                for lower in c.to_lowercase() {
                    let mut bytes = [0; 4];
                    for byte in lower.encode_utf8(&mut bytes).bytes() {
                        if self.is_over(&mut matched, byte) {
                            return true;
                        }
                    }
                }
            }
            for byte in chunk.invalid() {
                if self.is_over(&mut matched, *byte) {
                    return true;
                }
            }
        }
        false
    }

    fn is_in_ascii(&self, first: u8, hay: &[u8]) -> bool {
        let upper = first.to_ascii_uppercase();
        let mut rest = hay;
        let mut matched = 0;
        loop {
            if matched == 0 {
                let begin = match first == upper {
                    true => memchr(first, rest),
                    false => memchr2(first, upper, rest),
                };
                let Some(next) = begin.and_then(|at| rest.get(at..)) else { return false };
                rest = next;
            }
            let Some((byte, next)) = rest.split_first() else { return false };
            rest = next;
            if self.is_over(&mut matched, byte.to_ascii_lowercase()) {
                return true;
            }
        }
    }

    /// Adds a byte after the first `matched` ones. Returns whether the text is then complete.
    fn is_over(&self, matched: &mut usize, byte: u8) -> bool {
        while *matched > 0 && self.text.get(*matched) != Some(&byte) {
            *matched = before(&self.borders, *matched);
        }
        *matched += usize::from(self.text.get(*matched) == Some(&byte));
        *matched == self.text.len()
    }
}

/// The number of bytes that still match if the byte after the first `matched` ones does not.
fn before(borders: &[usize], matched: usize) -> usize {
    matched.checked_sub(1).and_then(|last| borders.get(last)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_in_any_case() {
        for (text, hay, is_found) in [
            ("chat", "S_CHAT", true),
            ("CHAT", "s_chat", true),
            ("aab", "aaAB", true),
            ("abcabd", "ABCABCABD", true),
            ("abcabd", "abcab", false),
            ("", "", true),
            ("x", "", false),
            ("7", "17", true),
            ("ÉTÉ", "un été", true),
            ("été", "L'ÉTÉ", true),
            ("kelvin", "\u{212a}elvin", true),
            ("ΣΊΣΥΦΟΣ", "σίσυφοσ", true),
            ("é", "e", false),
        ] {
            assert_eq!(Folded::new(text).is_in(hay.as_bytes()), is_found, "{text} in {hay}");
        }
        assert!(Folded::new("ab").is_in(b"\xff\xc3AB"));
        assert!(!Folded::new("ab").is_in(b"A\xffB"));
    }

    #[test]
    fn the_result_is_that_of_a_search_in_lower_case() {
        let letters = ["a", "A", "b", "B", "é", "É"];
        let word = |mut number: usize, length: usize| {
            let mut word = String::new();
            for _ in 0..length {
                word.push_str(letters[number % letters.len()]);
                number /= letters.len();
            }
            word
        };
        for text in (0..216).map(|number| word(number, 3)) {
            let folded = Folded::new(&text);
            for hay in (0..7776).map(|number| word(number, 5)) {
                let expected = hay.to_lowercase().contains(&text.to_lowercase());
                assert_eq!(folded.is_in(hay.as_bytes()), expected, "{text} in {hay}");
            }
        }
    }
}
