//! Errors and warnings about text files: definitions, message tables, maps.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

/// The maximum number of bytes of a line that a diagnostic quotes.
const MAX_QUOTED: usize = 240;

/// A named text. Creates diagnostics that point into it.
///
/// ```
/// use worldwire_core::Source;
///
/// let source = Source::new("Game.xml", "<A>\n  <Force TPYE='FLT'/>\n</A>\n");
/// let odd = source.warning(13..17, "attribute TPYE, read as TYPE").help("write TYPE");
/// assert_eq!(odd.to_string(), "Game.xml:2:10: warning: attribute TPYE, read as TYPE (write TYPE)");
/// assert_eq!(odd.line_text(), "  <Force TPYE='FLT'/>");
/// assert_eq!(&odd.line_text()[odd.span_in_line()], "TPYE");
/// ```
#[derive(Clone, Debug)]
pub struct Source<'t> {
    name: Arc<str>,
    text: &'t str,
    /// Where each line begins.
    lines: Arc<[usize]>,
}

impl<'t> Source<'t> {
    /// A text with the name users know, usually a path.
    #[must_use]
    pub fn new(name: &str, text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The line that contains a byte offset, counted from 1.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset)
    }

    /// An error about these bytes. A range that extends past the text or splits a character is
    /// narrowed.
    #[must_use]
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Error, span, message.into())
    }

    /// A warning about these bytes: something odd that was accepted anyway.
    #[must_use]
    pub fn warning(&self, span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Warning, span, message.into())
    }

    fn diagnostic(&self, severity: Severity, span: Range<usize>, message: String) -> Diagnostic {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.ceil_char_boundary(span.end).max(start);
        let line = self.line(start);
        let begin = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied();
        let begin = begin.unwrap_or(0);
        let rest = self.text.get(begin..).unwrap_or_default();
        let whole = rest.split('\n').next().unwrap_or_default();
        let whole = whole.strip_suffix('\r').unwrap_or(whole);
        // A long line is quoted from shortly before the error.
        let from = match start - begin {
            near if near < MAX_QUOTED / 2 => 0,
            far => whole.floor_char_boundary(far - MAX_QUOTED / 4),
        };
        let until = whole.floor_char_boundary(from + MAX_QUOTED);
        let quoted = whole.get(from..until).unwrap_or_default();
        let column = self.text.get(begin..start).unwrap_or_default().chars().count() + 1;
        let low = start.saturating_sub(begin + from).min(quoted.len());
        let high = end.saturating_sub(begin + from).clamp(low, quoted.len());
        Diagnostic {
            severity,
            file: Arc::clone(&self.name),
            line,
            column,
            line_text: quoted.into(),
            span_in_line: low..high,
            message,
            help: None,
        }
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Accepted anyway.
    Warning,
    /// Not accepted.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// An error or warning about a text file: its severity, position, message, and how to fix it.
///
/// `Display` writes one line, `file:line:column: warning: message (help)`. Programs that mark the
/// place in the text use the quoted line and the span in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    severity: Severity,
    file: Arc<str>,
    line: usize,
    column: usize,
    line_text: Box<str>,
    span_in_line: Range<usize>,
    message: String,
    help: Option<String>,
}

impl Diagnostic {
    /// Adds advice on how to fix it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Replaces the name of the text, if it was read under another one.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        self.file = name.into();
        self
    }

    /// Its severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The name of the text.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The line, or the relevant part of a long one.
    #[must_use]
    pub fn line_text(&self) -> &str {
        &self.line_text
    }

    /// The affected bytes of [`Self::line_text`].
    #[must_use]
    pub fn span_in_line(&self) -> Range<usize> {
        self.span_in_line.clone()
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The advice, if there is any.
    #[must_use]
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, severity, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {severity}: {message}")?;
        if let Some(help) = &self.help {
            write!(f, " ({help})")?;
        }
        Ok(())
    }
}

impl core::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let source = Source::new("a", "é=1\r\nßß x\n");
        let end = source.error(11..12, "x");
        assert_eq!((end.line(), end.column(), end.line_text()), (2, 4, "ßß x"));
        assert_eq!(source.error(0..1, "e").span_in_line(), 0..2);
        // After the end of the text.
        let behind = source.error(99..100, "behind");
        assert_eq!((behind.line(), behind.column(), behind.line_text()), (3, 1, ""));
        assert_eq!(Source::new("", "").error(0..0, "empty").to_string(), ":1:1: error: empty");
    }

    #[test]
    fn a_long_line_is_quoted_around_the_place() {
        let text = "ä".repeat(5_000) + "here" + &"ö".repeat(5_000);
        let source = Source::new("long", &text);
        let odd = source.warning(10_000..10_004, "odd");
        assert_eq!(&odd.line_text()[odd.span_in_line()], "here");
        assert!(odd.line_text().len() <= MAX_QUOTED);
        assert_eq!(odd.column(), 5_001);
    }
}
