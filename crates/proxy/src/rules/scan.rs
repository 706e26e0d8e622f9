//! Reads the words, texts and punctuation of a rules file.

use core::time::Duration;

use worldwire_core::text::parse_escape;
use worldwire_core::value::parse_hex;
use worldwire_core::{Diagnostic, Source};

use super::syntax::{Piece, Span, Spanned};

/// The maximum number of reported errors.
pub(super) const MAX_DIAGNOSTICS: usize = 100;
/// The longest time in a file.
const MAX_TIME: Duration = Duration::from_hours(24);

/// An error was reported. Parsing continues after the statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported;

/// The result of reading a part.
pub(super) type Outcome<T> = Result<T, Reported>;

/// The unread part of a file, and the errors found so far.
pub(super) struct Scanner<'t> {
    source: Source<'t>,
    /// The text, with comments replaced by spaces.
    text: &'t str,
    pub(super) at: usize,
    pub(super) found: Vec<Diagnostic>,
    pub(super) depth: usize,
}

impl<'t> Scanner<'t> {
    /// `text` is the source's text with its comments [blanked](without_comments).
    pub(super) fn new(source: Source<'t>, text: &'t str) -> Self {
        Self { source, text, at: 0, found: Vec::new(), depth: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips spaces on this line.
    pub(super) fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    }

    /// Skips all white space.
    pub(super) fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes a punctuation mark, if it is next.
    pub(super) fn takes(&mut self, mark: char) -> bool {
        let is_next = self.peek() == Some(mark);
        if is_next {
            self.at += mark.len_utf8();
        }
        is_next
    }

    /// Consumes a punctuation mark, or reports that it is missing.
    pub(super) fn mark(&mut self, mark: char, wanted: &str) -> Outcome<()> {
        if self.takes(mark) { Ok(()) } else { Err(self.wanted(wanted)) }
    }

    /// The next word; empty if there is none.
    pub(super) fn peek_word(&self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Consumes a word, or reports that it is missing.
    pub(super) fn word(&mut self, wanted: &str) -> Outcome<Spanned> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.wanted(wanted));
        }
        let span = self.at..self.at + word.len();
        self.at = span.end;
        Ok(Spanned { text: word.to_owned(), span })
    }

    /// Consumes a path: words, and brackets with an index, `*` or a name in quotes.
    pub(super) fn path(&mut self) -> Outcome<Spanned> {
        let start = self.at;
        self.at += self.peek_word().len();
        while self.takes('[') {
            self.space();
            match self.peek() {
                Some('"') => drop(self.quoted(None)?),
                _ if self.takes('*') => {}
                _ => drop(self.word("an index, `*` or a name in quotes")?),
            }
            self.space();
            self.mark(']', "`]`")?;
            if self.peek() == Some('.') {
                self.at += self.peek_word().len();
            }
        }
        if self.at == start {
            return Err(self.wanted("a field"));
        }
        let span = start..self.at;
        Ok(Spanned { text: self.slice(span.clone()).to_owned(), span })
    }

    /// Consumes a duration: `200ms`, `1.5s`, `2m`, `1h`.
    pub(super) fn duration(&mut self, least: Duration) -> Outcome<Duration> {
        let word = self.word("a time such as `200ms` or `30s`")?;
        let unit = word.text.find(|c: char| c.is_alphabetic()).unwrap_or(word.text.len());
        let (number, unit) = word.text.split_at(unit);
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => {
                let message = format!("`{}` is not a time", word.text);
                let help = "write a number and a unit: `200ms`, `30s`, `5m` or `1h`";
                return Err(self.error_with(word.span, message, help));
            }
        };
        let number: f64 = match number.parse::<f64>() {
            Ok(number) if number >= 0.0 && !number.is_infinite() => number,
            _ => {
                let message = format!("`{}` is not a time", word.text);
                return Err(self.error_with(word.span, message, "write `200ms` or `1.5s`"));
            }
        };
        let time = Duration::try_from_secs_f64(number * unit).ok();
        match time.filter(|time| (least..=MAX_TIME).contains(time)) {
            Some(time) => Ok(time),
            None => {
                let message = format!("`{}` is out of range", word.text);
                let least = least.as_millis();
                let help = format!("use at least {least}ms and at most 24h");
                Err(self.error_with(word.span, message, help))
            }
        }
    }

    /// Consumes a text in quotes: `"..."` with escapes, or `r"..."` without.
    pub(super) fn text(&mut self, wanted: &str) -> Outcome<String> {
        if self.rest().starts_with("r\"") {
            self.at += 1;
            return self.verbatim().map(str::to_owned);
        }
        if self.peek() != Some('"') {
            return Err(self.wanted(wanted));
        }
        self.quoted(None)
    }

    /// Consumes `hex"00ff"`, if it is next.
    pub(super) fn hex(&mut self) -> Outcome<Option<Vec<u8>>> {
        let start = self.at;
        if !self.rest().starts_with("hex\"") {
            return Ok(None);
        }
        self.at += 3;
        match parse_hex(self.verbatim()?) {
            Some(bytes) => Ok(Some(bytes)),
            None => {
                let message = "wanted an even number of hexadecimal digits";
                Err(self.error(start..self.at, message))
            }
        }
    }

    /// Consumes a text in quotes with values in braces, for `log`.
    pub(super) fn template(&mut self) -> Outcome<Vec<Piece>> {
        if self.peek() != Some('"') {
            return Err(self.wanted("text in double quotes"));
        }
        let mut pieces = Vec::new();
        let last = self.quoted(Some(&mut pieces))?;
        pieces.push(Piece::Text(last));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Ok(pieces)
    }

    /// Consumes a text up to the next quote, without escapes.
    fn verbatim(&mut self) -> Outcome<&'t str> {
        let start = self.at;
        self.at += 1;
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or_default();
        match line.find('"') {
            Some(end) => {
                self.at += end + 1;
                Ok(line.get(..end).unwrap_or_default())
            }
            None => Err(self.unclosed(start)),
        }
    }

    /// Consumes a text with escapes. With `pieces`, values in braces and the text before each are
    /// added to them.
    fn quoted(&mut self, mut pieces: Option<&mut Vec<Piece>>) -> Outcome<String> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let at = self.at;
            let Some(c) = self.peek().filter(|c| *c != '\n') else {
                return Err(self.unclosed(start));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape(at)?),
                '{' | '}' if pieces.is_some() && self.takes(c) => text.push(c),
                '{' if let Some(pieces) = &mut pieces => {
                    self.space();
                    let path = self.path()?;
                    self.space();
                    self.mark('}', "`}` after the field")?;
                    pieces.push(Piece::Text(core::mem::take(&mut text)));
                    pieces.push(Piece::Value(path));
                }
                '}' if pieces.is_some() => {
                    let help = "write `}}` for a brace in the text";
                    return Err(self.error_with(at..self.at, "a `}` without `{`", help));
                }
                _ => text.push(c),
            }
        }
    }

    /// The character after a backslash at `at`.
    fn escape(&mut self, at: usize) -> Outcome<char> {
        if self.peek().is_none_or(|c| c == '\n') {
            return Err(self.unclosed(at));
        }
        match parse_escape(self.rest()) {
            Some((c, length)) => {
                self.at += length;
                Ok(c)
            }
            None => {
                self.at += self.peek().map_or(0, char::len_utf8);
                Err(self.bad_escape(at))
            }
        }
    }

    fn bad_escape(&mut self, at: usize) -> Reported {
        let message = format!("unknown escape `{}`", self.slice(at..self.at));
        let help = r#"escapes are `\"`, `\\`, `\n`, `\r`, `\t`, `\0` and `\u{...}`"#;
        self.error_with(at..self.at, message, help)
    }

    fn unclosed(&mut self, at: usize) -> Reported {
        self.error_with(at..at + 1, "no closing quote on this line", "text ends with `\"`")
    }

    /// Reports that something else was expected here.
    pub(super) fn wanted(&mut self, wanted: &str) -> Reported {
        let rest = self.rest();
        let word = self.peek_word();
        let (found, length) = match rest.chars().next() {
            None => ("the end of the file".to_owned(), 0),
            Some('\n') => ("the end of the line".to_owned(), 1),
            Some(_) if !word.is_empty() => (format!("`{}`", shown(word)), word.len()),
            Some('"') => ("text".to_owned(), 1),
            Some(c) => (format!("`{}`", c.escape_debug()), c.len_utf8()),
        };
        self.error(self.at..self.at + length, format!("wanted {wanted}, found {found}"))
    }

    pub(super) fn error(&mut self, span: Span, message: impl Into<String>) -> Reported {
        self.report(self.source.error(span, message))
    }

    pub(super) fn error_with(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.report(self.source.error(span, message).help(help))
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        if self.found.len() < MAX_DIAGNOSTICS {
            self.found.push(diagnostic);
        }
        Reported
    }
}

/// Whether a character can be part of a word: a name, a path, a number.
pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '$')
}

/// A word, shortened for a message.
pub(super) fn shown(word: &str) -> String {
    /// Longer words are shortened.
    const MAX: usize = 60;
    let mut text: String = word.chars().take(MAX).collect();
    if text.len() < word.len() {
        text.push_str("...");
    }
    text
}

/// The text with comments replaced by as many spaces.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (code, comment) = line.split_at(comment_start(line));
        out.push_str(code);
        let kept = comment.trim_end_matches(['\r', '\n']);
        out.extend(core::iter::repeat_n(' ', kept.len()));
        out.push_str(comment.get(kept.len()..).unwrap_or_default());
    }
    out
}

/// The offset of the comment on a line; the line's length if there is none.
fn comment_start(line: &str) -> usize {
    let bytes = line.as_bytes();
    let (mut at, mut raw) = (0, None);
    while let Some(byte) = bytes.get(at) {
        match (byte, raw) {
            (b'"', None) => {
                let is_raw = line.get(..at).is_some_and(|before| {
                    let word = before.rsplit(|c: char| !is_word_char(c)).next();
                    matches!(word, Some("r" | "hex"))
                });
                raw = Some(is_raw);
            }
            (b'"', Some(_)) => raw = None,
            (b'\\', Some(false)) => at += 1,
            (b'#', None) => return at,
            _ => {}
        }
        at += 1;
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::without_comments;

    #[test]
    fn comments_become_spaces_outside_texts() {
        for (text, wanted) in [
            ("a # b\nc", "a    \nc"),
            ("log \"#\" # é\r\n", "log \"#\"     \r\n"),
            ("x ~ r\"\\\" # y", "x ~ r\"\\\"    "),
            ("x == \"\\\"#\" # y", "x == \"\\\"#\"    "),
            ("\"open # text", "\"open # text"),
        ] {
            assert_eq!(without_comments(text), wanted);
            assert_eq!(without_comments(text).len(), text.len());
        }
    }
}
