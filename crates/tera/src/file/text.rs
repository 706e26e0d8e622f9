//! The text of files that people wrote.

/// What is said of a file that is taken as Latin-1.
pub const NOT_UTF8: &str = "no UTF-8 text; it is read as Latin-1";

/// The text of a file, and whether it is no UTF-8: then it is taken as Latin-1, which comments of old
/// files are in.
///
/// # Errors
/// The place of the first byte that is no UTF-8, in a file that is no text at all: with zeros in it.
pub fn read(bytes: Vec<u8>) -> Result<(String, bool), usize> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, false)),
        Err(error) if error.as_bytes().contains(&0) => Err(error.utf8_error().valid_up_to()),
        Err(error) => Ok((error.into_bytes().into_iter().map(char::from).collect(), true)),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn old_comments_are_read() {
        let old = read(b"int32 a # caf\xe9".to_vec());
        assert_eq!(old, Ok(("int32 a # caf\u{e9}".to_owned(), true)));
        assert_eq!(read("\u{e9}".into()), Ok(("\u{e9}".to_owned(), false)));
        assert_eq!(read(b"a\xe9\0".to_vec()), Err(1));
    }
}
