//! The JSON of a type list, read at a position.
//!
//! Lists repeat most properties in every derived class. With a position in the text, a reader can
//! recognize a value that it has read before, instead of reading it again; `serde_json` does not
//! offer one. Here, `serde_json` only reads values that are not plain texts or numbers, and
//! explains mistakes.

use core::fmt;
use std::borrow::Cow;

use memchr::{memchr, memchr_iter};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, Visitor};

use super::read::Word;

/// A position in JSON. The position is always at a token: blanks are skipped.
pub(super) struct Cursor<'j> {
    text: &'j str,
    at: usize,
    /// An object or array has just begun, so its first item has no comma before it.
    is_first: bool,
}

/// A mistake in a list, with its position.
pub(super) struct Problem(pub(super) String);

impl<'j> Cursor<'j> {
    /// Starts at the first token.
    pub(super) fn new(json: &'j [u8]) -> Result<Self, Problem> {
        let (text, end) = match str::from_utf8(json) {
            Ok(text) => (text, None),
            Err(error) => {
                let valid = json.get(..error.valid_up_to()).unwrap_or_default();
                (str::from_utf8(valid).unwrap_or_default(), Some(valid.len()))
            }
        };
        let mut cursor = Self { text, at: 0, is_first: false };
        if let Some(end) = end {
            let (line, column) = cursor.place(end);
            return Err(Problem(format!("invalid JSON at {line}:{column}: not UTF-8 text")));
        }
        cursor.skip_blanks();
        Ok(cursor)
    }

    /// Enters an object. `wanted` describes what is expected.
    #[inline]
    pub(super) fn begin(&mut self, wanted: &'static str) -> Result<(), Problem> {
        if !self.take(b'{') {
            return self.seed(Wanted(wanted));
        }
        self.skip_blanks();
        self.is_first = true;
        Ok(())
    }

    /// Continues to the next item before this closing bracket. Returns false after the last one.
    #[inline]
    pub(super) fn next(&mut self, end: u8) -> Result<bool, Problem> {
        let is_first = core::mem::take(&mut self.is_first);
        if self.take(end) {
            self.skip_blanks();
            return Ok(false);
        }
        if !is_first {
            if !self.take(b',') {
                return Err(self.broken());
            }
            self.skip_blanks();
        }
        Ok(true)
    }

    /// Continues to the value of the next key in an object.
    #[inline]
    pub(super) fn next_key(&mut self) -> Result<Option<Cow<'j, str>>, Problem> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// Reads the key at this position, and the colon after it.
    #[inline]
    pub(super) fn key(&mut self) -> Result<Cow<'j, str>, Problem> {
        if self.peek() != Some(b'"') {
            return Err(self.broken());
        }
        let key = self.string()?;
        if !self.take(b':') {
            return Err(self.broken());
        }
        self.skip_blanks();
        Ok(key)
    }

    /// The key and the object at this position, if the object contains at most one other object.
    /// This is a guess: the text is not parsed, and texts can contain braces.
    #[inline]
    pub(super) fn likely_pair(&self) -> Option<&'j str> {
        let rest = self.rest();
        let first = memchr(b'}', rest.as_bytes())?;
        let before = rest.as_bytes().get(..first)?;
        let is_nested = memchr_iter(b'{', before).nth(1).is_some();
        let after = first + 1;
        let end = match is_nested {
            true => after + memchr(b'}', rest.as_bytes().get(after..)?)? + 1,
            false => after,
        };
        rest.get(..end)
    }

    /// The object at this position, if it contains no other objects. This is a guess, too.
    pub(super) fn likely_object(&self) -> Option<&'j str> {
        let rest = self.rest();
        rest.get(..=memchr(b'}', rest.as_bytes())?)
    }

    /// Whether this text is at the current position.
    #[inline]
    pub(super) fn is_at(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Advances past this text.
    #[inline]
    pub(super) fn pass(&mut self, text: &str) {
        self.at += text.len();
        self.skip_blanks();
    }

    /// The position in bytes.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether the text read since a position is exactly this one, apart from blanks after it.
    pub(super) fn has_read(&self, start: usize, text: &str) -> bool {
        self.text.get(start..self.at).is_some_and(|read| read.trim_ascii_end() == text)
    }

    /// A text.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'j, str>, Problem> {
        let start = self.at + 1;
        if self.peek() == Some(b'"')
            && let Some(inside) = self.text.as_bytes().get(start..)
            && let Some(length) = plain_length(inside)
            && let Some(text) = self.text.get(start..start + length)
        {
            self.at = start + length + 1;
            self.skip_blanks();
            return Ok(Cow::Borrowed(text));
        }
        self.value::<String>().map(Cow::Owned)
    }

    /// A 32-bit number: see [`Word`].
    #[inline]
    pub(super) fn word(&mut self) -> Result<u32, Problem> {
        /// The maximum number of digits.
        const DIGITS: usize = 10;
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = rest.iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit());
        let (mut number, mut count) = (0_u64, 0);
        for digit in digits {
            number = number * 10 + u64::from(digit - b'0');
            count += 1;
        }
        let is_whole = !matches!(rest.get(count), Some(b'.' | b'e' | b'E' | b'0'..=b'9'));
        // JSON does not allow zeros before a number.
        let is_number = count == 1 || count > 1 && rest.first() != Some(&b'0');
        if let (true, true, Ok(number)) = (is_whole, is_number, u32::try_from(number)) {
            self.at += count;
            self.skip_blanks();
            return Ok(number);
        }
        self.value().map(|Word(number)| number)
    }

    /// `true` or `false`.
    #[inline]
    pub(super) fn flag(&mut self) -> Result<bool, Problem> {
        let rest = self.rest();
        for (word, value) in [("true", true), ("false", false)] {
            if rest.starts_with(word) {
                self.pass(word);
                return Ok(value);
            }
        }
        self.value()
    }

    /// An array of texts.
    pub(super) fn strings(&mut self) -> Result<Vec<Cow<'j, str>>, Problem> {
        if self.peek() != Some(b'[') {
            return self.value();
        }
        self.pass("[");
        self.is_first = true;
        let mut texts = Vec::new();
        while self.next(b']')? {
            texts.push(self.string()?);
        }
        Ok(texts)
    }

    /// Any value.
    pub(super) fn value<V: Deserialize<'j>>(&mut self) -> Result<V, Problem> {
        self.seed(core::marker::PhantomData)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self) -> Result<(), Problem> {
        self.value::<IgnoredAny>().map(drop)
    }

    /// A value, read by a seed.
    pub(super) fn seed<S: DeserializeSeed<'j>>(&mut self, seed: S) -> Result<S::Value, Problem> {
        let mut json = serde_json::Deserializer::from_str(self.rest());
        match seed.deserialize(&mut json) {
            Ok(value) => {
                self.at += json.into_iter::<IgnoredAny>().byte_offset();
                self.skip_blanks();
                Ok(value)
            }
            Err(error) => Err(self.explained(&error)),
        }
    }

    /// Checks that nothing follows.
    pub(super) fn end(&self) -> Result<(), Problem> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.broken()) }
    }

    /// An error about the list rather than its JSON.
    pub(super) fn problem(&self, text: impl fmt::Display) -> Problem {
        let (line, column) = self.place(self.at);
        Problem(format!("{text} at {line}:{column}"))
    }

    #[inline]
    fn rest(&self) -> &'j str {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The line and the column of a position.
    fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let lines = memchr_iter(b'\n', before);
        let start = lines.clone().next_back().map_or(0, |newline| newline + 1);
        (lines.count() + 1, at - start)
    }

    /// The error for the first mistake in the JSON, at this position.
    fn broken(&self) -> Problem {
        let start = Self { text: self.text, at: 0, is_first: false };
        match serde_json::from_str::<IgnoredAny>(self.text) {
            Err(error) => start.explained(&error),
            Ok(_) => self.problem("invalid JSON"),
        }
    }

    /// A description of the mistake in the JSON, with its position, in plainer words than those of
    /// `serde_json`.
    fn explained(&self, error: &serde_json::Error) -> Problem {
        let text = error.to_string();
        let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
        let (line, column) = match (self.place(self.at), error.line()) {
            ((line, before), 1) => (line, before + error.column()),
            ((line, _), more) => ((line + more).saturating_sub(1), error.column()),
        };
        if !error.is_data() {
            return Problem(format!("invalid JSON at {line}:{column}: {text}"));
        }
        let types = text.strip_prefix("invalid type: ");
        let types = types.and_then(|text| text.split_once(", expected "));
        let text = types.map_or_else(
            || text.to_owned(),
            |(found, wanted)| {
                let found = match found {
                    "sequence" => "an array",
                    "map" => "an object",
                    other => other,
                };
                format!("expected {wanted}, found {found}")
            },
        );
        Problem(if column == 0 { text } else { format!("{text} at {line}:{column}") })
    }
}

/// The length of the text at the start of these bytes, up to its quotation mark; `None` if it
/// contains escapes or control characters, or has no end.
#[inline]
fn plain_length(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The highest bit of the lowest byte that is 0 is set; the bits above it mean nothing.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    let end = loop {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            let rest = bytes.get(at..)?;
            break at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '))?;
        };
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word & HIGH;
        let is = |byte: u8| zeros(word ^ (ONES * u64::from(byte)));
        let special = is(b'"') | is(b'\\') | control;
        if special != 0 {
            break at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    };
    (bytes.get(end) == Some(&b'"')).then_some(end)
}

/// Explains that something other than an object was found.
struct Wanted(&'static str);

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl Visitor<'_> for Wanted {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_the_first_special_byte() {
        for length in 0..30 {
            for special in 0..=255 {
                let mut bytes = vec![b'x'; length];
                bytes.extend([special, 0xff, b'"', b'\\', 0, b'x', b'x', b'x', b'x', b'x']);
                let first = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
                let expected = first.filter(|end| bytes[*end] == b'"');
                assert_eq!(plain_length(&bytes), expected, "{length}, {special}");
                assert_eq!(plain_length(&bytes[..length]), None);
            }
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        let word = |text: &str| {
            let mut cursor = Cursor::new(text.as_bytes()).map_err(|problem| problem.0)?;
            let word = cursor.word().map_err(|problem| problem.0)?;
            cursor.end().map_err(|problem| problem.0).map(|()| word)
        };
        for (text, number) in
            [("0", 0), ("7 ", 7), ("4294967295", u32::MAX), ("-1", u32::MAX), ("\"12\"", 12)]
        {
            assert_eq!(word(text), Ok(number), "{text}");
        }
        for text in ["", "-", "01", "4294967296", "99999999999999999999", "1.0", "1e3", "1x", "[]"]
        {
            assert!(word(text).is_err(), "{text}");
        }
    }
}
