//! The diagnostics of one file.

use core::ops::Range;

use worldwire_core::{Diagnostic, Source};

/// Diagnostics beyond this number are only counted.
const MAX_DIAGNOSTICS: usize = 200;

/// Collects the diagnostics of one text.
pub(crate) struct Diagnostics<'t> {
    pub(crate) source: Source<'t>,
    diagnostics: Vec<Diagnostic>,
    is_strict: bool,
    has_errors: bool,
    omitted: usize,
}

impl<'t> Diagnostics<'t> {
    pub(crate) fn new(source: Source<'t>, is_strict: bool) -> Self {
        Self { source, diagnostics: Vec::new(), is_strict, has_errors: false, omitted: 0 }
    }

    fn push(&mut self, is_error: bool, span: &Range<usize>, text: impl Into<String>, help: &str) {
        // The first error is always kept. Omitted diagnostics are never built: building one scans
        // its whole line, and a hostile file may be one long line.
        if self.has_room() || (is_error && !self.has_errors) {
            let diagnostic = match is_error {
                true => self.source.error(span.clone(), text),
                false => self.source.warning(span.clone(), text),
            };
            let diagnostic = if help.is_empty() { diagnostic } else { diagnostic.help(help) };
            self.diagnostics.push(diagnostic);
        } else {
            self.omitted += 1;
        }
        self.has_errors |= is_error;
    }

    /// Reports something worth knowing in a valid file.
    pub(crate) fn warning(&mut self, span: &Range<usize>, text: impl Into<String>, help: &str) {
        self.push(false, span, text, help);
    }

    /// Reports an error in strict mode, otherwise a warning.
    pub(crate) fn strict_error(
        &mut self,
        span: &Range<usize>,
        text: impl Into<String>,
        help: &str,
    ) {
        self.push(self.is_strict, span, text, help);
    }

    /// Reports an error: the file is refused.
    pub(crate) fn error(&mut self, span: &Range<usize>, text: impl Into<String>, help: &str) {
        self.push(true, span, text, help);
    }

    /// Whether further warnings will be kept. If not, callers need not compute their texts.
    pub(crate) fn has_room(&self) -> bool {
        self.diagnostics.len() < MAX_DIAGNOSTICS
    }

    /// The number of diagnostics, including omitted ones.
    pub(crate) fn count(&self) -> usize {
        self.diagnostics.len() + self.omitted
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.has_errors
    }

    /// All diagnostics, in the order of the text.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.line(), diagnostic.column()));
        if self.omitted > 0 {
            let text = format!("{} more diagnostics omitted", self.omitted);
            self.diagnostics.push(self.source.warning(0..0, text));
        }
        self.diagnostics
    }
}
