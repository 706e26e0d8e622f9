//! The JSON of a type list, read at a position.
//!
//! Lists repeat most properties in every derived class. With a position in the text, a reader can
//! recognize a value that it has read before, instead of reading it again; `serde_json` does not
//! offer one. Here it reads values that are not plain texts or numbers, and explains mistakes.

use core::fmt;
use std::borrow::Cow;

use memchr::{memchr, memchr_iter};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, Visitor};

use super::read::Word;

/// A position in JSON. It is always at a token: blanks are skipped.
pub(super) struct Cursor<'j> {
    text: &'j str,
    at: usize,
    /// An object or array has just begun, so its first item has no comma before it.
    is_first: bool,
}

/// What is wrong with a list, and where.
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
    pub(super) fn begin(&mut self, wanted: &'static str) -> Result<(), Problem> {
        if !self.take(b'{') {
            return self.seed(Wanted(wanted));
        }
        self.skip_blanks();
        self.is_first = true;
        Ok(())
    }

    /// Continues to the next item before this closing bracket. Returns false after the last one.
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
    pub(super) fn next_key(&mut self) -> Result<Option<Cow<'j, str>>, Problem> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// The key here, and the colon after it.
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

    /// The key and the object here, if the object contains at most one other object. This is a
    /// guess: the text is not parsed, and texts can contain braces.
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

    /// The object here, if it contains no other objects. This is a guess, too.
    pub(super) fn likely_object(&self) -> Option<&'j str> {
        let rest = self.rest();
        rest.get(..=memchr(b'}', rest.as_bytes())?)
    }

    /// Whether this text is here.
    pub(super) fn is_at(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Advances past this text.
    pub(super) fn pass(&mut self, text: &str) {
        self.at += text.len();
        self.skip_blanks();
    }

    /// The position in bytes.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether what was read since a position is exactly this text, apart from blanks after it.
    pub(super) fn has_read(&self, start: usize, text: &str) -> bool {
        self.text.get(start..self.at).is_some_and(|read| read.trim_ascii_end() == text)
    }

    /// A text.
    pub(super) fn string(&mut self) -> Result<Cow<'j, str>, Problem> {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
        if let Some(inside) = self.rest().strip_prefix('"')
            && let Some(end) = inside.as_bytes().iter().position(is_special)
            && let Some((text, rest)) = inside.split_at_checked(end)
            && rest.starts_with('"')
        {
            self.at += text.len() + 2;
            self.skip_blanks();
            return Ok(Cow::Borrowed(text));
        }
        self.value::<String>().map(Cow::Owned)
    }

    /// A 32-bit number: see [`Word`].
    pub(super) fn word(&mut self) -> Result<u32, Problem> {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at_checked(end).unwrap_or_default();
        let is_whole = !after.starts_with(['.', 'e', 'E']);
        // JSON does not allow zeros before a number.
        if is_whole
            && (digits.len() == 1 || !digits.starts_with('0'))
            && let Ok(number) = digits.parse()
        {
            self.at += end;
            self.skip_blanks();
            return Ok(number);
        }
        self.value().map(|Word(number)| number)
    }

    /// `true` or `false`.
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

    /// A value that a seed reads.
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

    /// A mistake in the list rather than in its JSON.
    pub(super) fn problem(&self, text: impl fmt::Display) -> Problem {
        let (line, column) = self.place(self.at);
        Problem(format!("{text} at {line}:{column}"))
    }

    fn rest(&self) -> &'j str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    fn skip_blanks(&mut self) {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        self.at += self.rest().as_bytes().iter().take_while(|byte| is_blank(byte)).count();
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

    /// What is wrong with the JSON, and where; `serde_json` would put it less plainly.
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
