//! Text: Windows-1252, with a fixed size or a length prefix.
//!
//! Text of a fixed size is padded with zeros. Other bytes after the first zero are rare but
//! possible, and are kept.
//!
//! In JSON, a text is a string. If bytes other than zero follow its end, it is `{"text": "Neo",
//! "behind": {"$hex": "0102"}}`, without the zero byte between them. Bytes from `0x80` to `0x9f`,
//! which are control characters in ISO 8859-1, are written as `{"$hex": "80"}`; their Windows-1252
//! characters, such as `€`, can be read as well.

/// The characters of the bytes from `0x80` to `0x9f`. Five bytes have no character, and map to the
/// control characters with the same numbers.
const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes Windows-1252.
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

/// Encodes Windows-1252; `None` if a character has no byte. Control characters from U+0080 to
/// U+009F map to the bytes with the same numbers.
#[must_use]
pub fn encode(text: &str) -> Option<Vec<u8>> {
    let byte = |character: char| match u8::try_from(u32::from(character)) {
        Ok(byte) => Some(byte),
        Err(_) => (0x80..).zip(HIGH).find(|(_, high)| *high == character).map(|(byte, _)| byte),
    };
    text.chars().map(byte).collect()
}

/// Splits padded text into the text and the bytes after its zero byte; `None` if it has no zero
/// byte.
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

/// Whether the bytes mean the same in ISO 8859-1 and Windows-1252.
pub(super) fn is_latin1(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, 0x80..=0x9f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
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
