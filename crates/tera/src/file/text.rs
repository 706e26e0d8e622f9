//! The text of files that people wrote.

/// What is said of a file that is taken as Latin-1.
pub const NOT_UTF8: &str = "no UTF-8 text; it is read as Latin-1";

/// Why a file is not read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// It is text that an editor saved as UTF-16.
    #[error("UTF-16; save it as UTF-8")]
    Utf16,
    /// It is no text at all; this is the place of the first byte that is no UTF-8.
    #[error("at byte {0}: wanted UTF-8 text")]
    Binary(usize),
}

/// The text of a file, and whether it is no UTF-8: then it is taken as Latin-1, which comments of old
/// files are in.
///
/// # Errors
/// UTF-16, and files that are no text at all: with zeros in them.
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

/// Whether it begins with the mark of UTF-16, or every other byte is zero, and no other one.
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
    fn old_comments_are_read() {
        let old = read(b"int32 a # caf\xe9".to_vec());
        assert_eq!(old, Ok(("int32 a # caf\u{e9}".to_owned(), true)));
        assert_eq!(read("\u{e9}".into()), Ok(("\u{e9}".to_owned(), false)));
        assert_eq!(read(b"a\xe9\0".to_vec()), Err(NotText::Binary(1)));
    }

    #[test]
    fn what_is_utf_16_is_told() {
        let marked = |units: &[u16]| [&[0xfeff], units].concat();
        let text: Vec<u16> = "int32 a\n".encode_utf16().collect();
        let foreign: Vec<u16> = "\u{4e00}".encode_utf16().collect();
        for units in [text.clone(), marked(&text), marked(&foreign)] {
            for to in [u16::to_le_bytes, u16::to_be_bytes] {
                let bytes = units.iter().flat_map(|unit| to(*unit)).collect();
                assert_eq!(read(bytes), Err(NotText::Utf16));
            }
        }
        assert_eq!(NotText::Utf16.to_string(), "UTF-16; save it as UTF-8");
        assert_eq!(read(Vec::new()), Ok((String::new(), false)));
        assert_eq!(read(b"a\0b\0\0\xff".to_vec()), Err(NotText::Binary(5)));
    }
}
