//! The texts of rows, in a temporary file, because they are larger than the rows.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::recording::read_at;

/// Texts in the order in which they were added. The last ones are still in memory.
#[derive(Debug)]
pub(crate) struct Texts {
    /// An unnamed file, so nothing remains of it however the program ends.
    file: File,
    /// The number of bytes written to it.
    written: u64,
    tail: String,
}

/// The number of bytes collected in memory before they are written.
const TAIL: usize = 1 << 20;

impl Texts {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, written: 0, tail: String::new() })
    }

    /// Where the next text begins.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// Appends a text.
    ///
    /// # Errors
    /// The temporary directory is full.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        self.tail.push_str(text);
        if self.tail.len() >= TAIL {
            // On Windows, reading moves the position.
            self.file.seek(SeekFrom::Start(self.written))?;
            self.file.write_all(self.tail.as_bytes())?;
            self.written += self.tail.len() as u64;
            self.tail.clear();
        }
        Ok(())
    }

    /// The text between two positions; empty if it cannot be read.
    pub(crate) fn read(&self, start: u64, end: u64) -> String {
        if let Some(from) = start.checked_sub(self.written) {
            let range = usize::try_from(from)
                .ok()
                .zip(usize::try_from(end.saturating_sub(self.written)).ok());
            return range
                .and_then(|(from, to)| self.tail.get(from..to))
                .unwrap_or_default()
                .to_owned();
        }
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        let mut bytes = vec![0; length];
        let mut found = 0;
        while let Some(room) = bytes.get_mut(found..).filter(|room| !room.is_empty()) {
            match read_at(&self.file, room, start + found as u64) {
                Ok(0) | Err(_) => return String::new(),
                Ok(count) => found += count,
            }
        }
        String::from_utf8(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_memory_and_in_the_file() {
        let mut texts = Texts::new().unwrap();
        let mut places = Vec::new();
        for number in 0..4000_usize {
            let start = texts.end();
            texts.push(&format!("{number}-").repeat(number % 300)).unwrap();
            places.push((start, texts.end()));
        }
        assert!(
            texts.written > 0 && !texts.tail.is_empty(),
            "{} {}",
            texts.written,
            texts.tail.len()
        );
        for (number, (start, end)) in places.into_iter().enumerate() {
            assert_eq!(texts.read(start, end), format!("{number}-").repeat(number % 300));
        }
    }
}
