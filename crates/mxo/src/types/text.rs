//! Text: Windows-1252, in a fixed number of bytes or behind a count.
//!
//! A fixed text is padded with zeros. What stands behind its first zero byte is mostly zeros too,
//! but need not be: it is kept.
//!
//! As JSON a text is a string. One with bytes other than zero behind its end is
//! `{"text": "Neo", "behind": {"$hex": "0102"}}`, where the zero byte between them is left out.
//! Bytes from `0x80` to `0x9f`, which ISO 8859-1 shows as control characters, are written as
//! `{"$hex": "80"}`; reading also takes the characters of Windows-1252 for them, such as `€`.

/// The characters of the bytes from `0x80` to `0x9f`. Five bytes have none and stand for the
/// control character of their number.
const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text of Windows-1252 bytes.
///
/// ```
/// use worldwire_mxo::types::text;
/// assert_eq!(text::decode(b"Na\xefve \x80"), "Naïve €");
/// assert_eq!(text::encode("Naïve €").unwrap(), b"Na\xefve \x80");
/// assert_eq!(text::encode("日"), None);
/// ```
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    let character = |&byte: &u8| match HIGH.get(usize::from(byte).wrapping_sub(0x80)) {
        Some(high) => *high,
        None => char::from(byte),
    };
    bytes.iter().map(character).collect()
}

/// The Windows-1252 bytes of a text. `None` when a character has none; control characters from
/// U+0080 to U+009F stand for the bytes of their numbers.
#[must_use]
pub fn encode(text: &str) -> Option<Vec<u8>> {
    let byte = |character: char| match u8::try_from(u32::from(character)) {
        Ok(byte) => Some(byte),
        Err(_) => (0x80..).zip(HIGH).find(|(_, high)| *high == character).map(|(byte, _)| byte),
    };
    text.chars().map(byte).collect()
}

/// Splits a padded text: the text itself, and what stands behind its zero byte. `None` where it has
/// no zero byte.
#[must_use]
pub fn split(padded: &[u8]) -> (&[u8], Option<&[u8]>) {
    match padded.iter().position(|byte| *byte == 0) {
        Some(end) => {
            let (text, rest) = padded.split_at(end);
            (text, Some(rest.get(1..).unwrap_or_default()))
        }
        None => (padded, None),
    }
}

/// Whether ISO 8859-1 and Windows-1252 show the bytes alike.
pub(super) fn is_latin1(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, 0x80..=0x9f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let all: Vec<u8> = (0..=255).collect();
        let text = decode(&all);
        assert_eq!(text.chars().count(), 256);
        assert_eq!(encode(&text).unwrap(), all);
    }

    #[test]
    fn a_padded_text_ends_at_its_first_zero() {
        assert_eq!(split(b"Neo\0\0x"), (&b"Neo"[..], Some(&b"\0x"[..])));
        assert_eq!(split(b"Neo\0"), (&b"Neo"[..], Some(&b""[..])));
        assert_eq!(split(b"Neo"), (&b"Neo"[..], None));
    }
}
