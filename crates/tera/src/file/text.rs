//! Reads text files that people wrote.

/// The warning for a file that is read as Latin-1.
pub const NOT_UTF8: &str = "not UTF-8; read as Latin-1";

/// Why a file is not read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// Text saved as UTF-16.
    #[error("encoded as UTF-16; save it as UTF-8")]
    Utf16,
    /// Not text; the first byte that is not UTF-8 is at this offset.
    #[error("not UTF-8 text (at byte {0})")]
    Binary(usize),
}

/// The text of a file, and whether it had to be read as Latin-1, the encoding of comments in old
/// files.
///
/// # Errors
/// UTF-16, and files that contain zero bytes and are therefore not text.
pub fn read(bytes: Vec<u8>) -> Result<(String, bool), NotText> {
    if is_utf16(&bytes) {
        return Err(NotText::Utf16);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, false)),
        Err(error) if error.as_bytes().contains(&0) => {
            Err(NotText::Binary(error.utf8_error().valid_up_to()))
        }
        Err(error) => Ok((error.into_bytes().into_iter().map(char::from).collect(), true)),
    }
}

/// Whether it begins with UTF-16's byte-order mark, or exactly every other byte is zero.
fn is_utf16(bytes: &[u8]) -> bool {
    let is_even = !bytes.is_empty() && bytes.len().is_multiple_of(2);
    let zeros =
        |at: usize| bytes.iter().enumerate().all(|(place, byte)| (*byte == 0) == (place % 2 == at));
    is_even && (matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) || zeros(0) || zeros(1))
}

#[cfg(test)]
mod tests {
    use super::{NotText, read};

    #[test]
    fn latin_1_comments_are_read() {
        let old = read(b"int32 a # caf\xe9".to_vec());
        assert_eq!(old, Ok(("int32 a # caf\u{e9}".to_owned(), true)));
        assert_eq!(read("\u{e9}".into()), Ok(("\u{e9}".to_owned(), false)));
        assert_eq!(read(b"a\xe9\0".to_vec()), Err(NotText::Binary(1)));
    }

    #[test]
    fn utf_16_is_detected() {
        let marked = |units: &[u16]| [&[0xfeff], units].concat();
        let text: Vec<u16> = "int32 a\n".encode_utf16().collect();
        let foreign: Vec<u16> = "\u{4e00}".encode_utf16().collect();
        for units in [text.clone(), marked(&text), marked(&foreign)] {
            for to in [u16::to_le_bytes, u16::to_be_bytes] {
                let bytes = units.iter().flat_map(|unit| to(*unit)).collect();
                assert_eq!(read(bytes), Err(NotText::Utf16));
            }
        }
        assert_eq!(NotText::Utf16.to_string(), "encoded as UTF-16; save it as UTF-8");
        assert_eq!(read(Vec::new()), Ok((String::new(), false)));
        assert_eq!(read(b"a\0b\0\0\xff".to_vec()), Err(NotText::Binary(5)));
    }
}
