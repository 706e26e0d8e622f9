//! Problems in a table file, up to a limit.

use core::ops::Range;

use worldwire_core::{Diagnostic, Source};

/// The maximum number of problems per file; one further problem states how many were omitted.
pub const MAX_PROBLEMS: usize = 200;

/// The problems found in the text.
pub(super) struct Problems<'t> {
    name: &'t str,
    text: &'t str,
    /// Created when needed.
    source: Option<Source<'t>>,
    list: Vec<Diagnostic>,
    /// The number of omitted problems and the position of the first.
    more: usize,
    first: Range<usize>,
}

impl<'t> Problems<'t> {
    pub(super) const fn new(name: &'t str, text: &'t str) -> Self {
        Self { name, text, source: None, list: Vec::new(), more: 0, first: 0..0 }
    }

    /// Adds an error.
    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.add(span, |source, span| source.error(span, message));
    }

    /// Adds an error with a hint.
    pub(super) fn error_with(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(span, |source, span| source.error(span, message).help(help));
    }

    /// Adds a warning about something that was read nonetheless.
    pub(super) fn warning(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.add(span, |source, span| source.warning(span, message));
    }

    /// Whether further problems are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    fn add(
        &mut self,
        span: Range<usize>,
        make: impl FnOnce(&Source<'_>, Range<usize>) -> Diagnostic,
    ) {
        if !self.is_full() {
            let (name, text) = (self.name, self.text);
            let source = self.source.get_or_insert_with(|| Source::new(name, text));
            self.list.push(make(source, span));
            return;
        }
        if self.more == 0 {
            self.first = span;
        }
        self.more += 1;
    }

    /// All problems.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.more > 0 {
            let (name, text) = (self.name, self.text);
            let source = self.source.get_or_insert_with(|| Source::new(name, text));
            let message = format!("{} more problems are not shown", self.more);
            self.list.push(source.error(self.first, message));
        }
        self.list
    }
}

/// The lines of the text, without line ends, each with its offset.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split('\n').map(move |line| {
        let at = start;
        start += line.len() + 1;
        (at, line.strip_suffix('\r').unwrap_or(line))
    })
}

/// The position of a part of the text. The part must be a slice of it.
pub(super) fn span_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr()).min(text.len());
    start..(start + part.len()).min(text.len())
}

/// A word from a file, shortened for display if it is long.
pub(super) fn quoted(word: &str) -> String {
    let end = word.floor_char_boundary(40);
    let (head, rest) = word.split_at(end);
    format!("\"{}{}\"", head.escape_debug(), if rest.is_empty() { "" } else { "..." })
}
