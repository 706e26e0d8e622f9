//! The text of files that people wrote.

/// What is said of a file that is taken as Latin-1.
pub const NOT_UTF8: &str = "no UTF-8 text; it is read as Latin-1";

/// The text of a file, and whether it is no UTF-8: then it is taken as Latin-1, which comments of old
/// files are in.
#[must_use]
pub fn read(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (error.into_bytes().into_iter().map(char::from).collect(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn old_comments_are_read() {
        assert_eq!(read(b"int32 a # caf\xe9".to_vec()), ("int32 a # caf\u{e9}".to_owned(), true));
        assert_eq!(read("\u{e9}".into()), ("\u{e9}".to_owned(), false));
    }
}
