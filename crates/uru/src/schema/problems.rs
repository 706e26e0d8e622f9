//! Collects diagnostics about a text.

use core::ops::Range;

use worldwire_core::{Diagnostic, Severity, Source};

/// The maximum number of problems listed for a text. Each problem includes its whole line of text,
/// so the number must be limited.
const MAX_PROBLEMS: usize = 1_000;

/// The errors and warnings about a text.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    source: Source<'t>,
    list: Vec<Diagnostic>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(name: &str, text: &'t str) -> Self {
        Self { source: Source::new(name, text), list: Vec::new() }
    }

    pub(super) fn source(&self) -> &Source<'t> {
        &self.source
    }

    pub(super) fn error(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.add(Severity::Error, span, message.into(), help);
    }

    pub(super) fn warning(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.add(Severity::Warning, span, message.into(), help);
    }

    fn add(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) {
        let diagnostic = match (self.list.len(), severity) {
            (0..MAX_PROBLEMS, Severity::Error) => self.source.error(span, message),
            (0..MAX_PROBLEMS, Severity::Warning) => self.source.warning(span, message),
            (MAX_PROBLEMS, _) => {
                let message = format!("more than {MAX_PROBLEMS} problems; the rest are not listed");
                let end = self.source.text().len();
                self.list.push(self.source.error(end..end, message));
                return;
            }
            _ => return,
        };
        self.list.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }

    /// All problems by line and column; at the same position, errors come first.
    pub(super) fn into_list(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        let is_warning = |one: &Diagnostic| one.severity() == Severity::Warning;
        list.sort_by_key(|one| (one.line(), one.column(), is_warning(one)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;

    #[test]
    fn the_number_of_problems_is_limited() {
        let text = "STATEDESC x { VERSION 1 VAR HUE a[1] VAR INT b[1] HUE=1 }\n".repeat(700);
        let parsed = parse("many", &text);
        assert_eq!((parsed.problems.len(), parsed.statements.len()), (1_001, 700));
        let last = parsed.problems.last().map(ToString::to_string).unwrap_or_default();
        assert!(last.ends_with("more than 1000 problems; the rest are not listed"), "{last}");
    }
}
