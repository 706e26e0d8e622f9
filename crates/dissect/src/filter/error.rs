//! Errors of filters.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::text::is_hostile;

/// Reports the position of a mistake in a filter, the expected input, and the actual input.
///
/// It is displayed as three lines: the error, the filter, and a mark under the position. For a long
/// filter, only the part around the position is shown.
///
/// ```
/// use worldwire_dissect::filter::Filter;
/// let error = Filter::parse("result = 3").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "filter, column 8: wanted a comparison, found `=`; did you mean `==`?\n  \
///        result = 3\n         ^"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    problem: Problem,
    column: usize,
    /// The part of the filter that is shown, and the position of the mark in it.
    excerpt: String,
    mark: usize,
}

/// The kind of a filter error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// The text does not follow the filter syntax.
    Syntax,
    /// A regular expression is invalid or too large.
    Regex,
    /// A bound is exceeded.
    Limit {
        /// The bound: `bytes`, `depth`, `steps` or `regexes`.
        name: &'static str,
        /// Its value.
        limit: usize,
    },
}

impl FilterError {
    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> FilterErrorKind {
        self.0.problem.kind
    }

    /// The position, counted in characters from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// What was expected.
    #[must_use]
    pub fn wanted(&self) -> &str {
        &self.0.problem.wanted
    }

    /// What was found.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.problem.found
    }

    /// What to write instead, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.problem.hint.as_deref()
    }

    /// The error in one line, without the position.
    #[must_use]
    pub fn problem(&self) -> String {
        let Problem { wanted, found, hint, .. } = &self.0.problem;
        let mut text = format!("wanted {wanted}, found {found}");
        if let Some(hint) = hint {
            text.push_str("; ");
            text.push_str(hint);
        }
        text
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { column, excerpt, mark, .. } = &*self.0;
        writeln!(f, "filter, column {column}: {}", self.problem())?;
        write!(f, "  {excerpt}\n  {:mark$}^", "")
    }
}

impl std::error::Error for FilterError {}

/// An error during parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    kind: FilterErrorKind,
    /// The offset in bytes.
    at: usize,
    wanted: Cow<'static, str>,
    found: String,
    hint: Option<Cow<'static, str>>,
}

impl Problem {
    #[cold]
    pub(super) fn new(
        at: usize,
        wanted: impl Into<Cow<'static, str>>,
        found: impl AsRef<str>,
    ) -> Self {
        let kind = FilterErrorKind::Syntax;
        Self { kind, at, wanted: wanted.into(), found: one_line(found.as_ref()), hint: None }
    }

    #[cold]
    pub(super) fn limit(at: usize, name: &'static str, limit: usize, wanted: String) -> Self {
        let kind = FilterErrorKind::Limit { name, limit };
        Self { kind, ..Self::new(at, wanted, "more") }
    }

    pub(super) fn regex(mut self) -> Self {
        self.kind = FilterErrorKind::Regex;
        self
    }

    /// Adds a hint on what to write instead, unless there already is one.
    pub(super) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Finds the column and cuts out the part to show.
    pub(super) fn in_filter(self, filter: &str) -> FilterError {
        /// The number of characters to show on each side of the position.
        const AROUND: usize = 60;
        let at = filter.floor_char_boundary(self.at.min(filter.len()));
        let (before, behind) = filter.split_at(at);
        let place = before.chars().count();
        // The mark must line up with its position, so every character takes one cell on one line.
        let shown = |c: char| if is_hostile(c) { ' ' } else { c };
        let mut excerpt = String::new();
        let mut mark = place;
        if place > AROUND {
            excerpt.push_str("...");
            mark = 3 + AROUND;
        }
        excerpt.extend(before.chars().skip(place.saturating_sub(AROUND)).map(shown));
        let mut rest = behind.chars().map(shown);
        excerpt.extend(rest.by_ref().take(AROUND));
        if rest.next().is_some() {
            excerpt.push_str("...");
        }
        FilterError(Box::new(Inner { column: place + 1, excerpt, mark, problem: self }))
    }
}

/// Shortens what was found and escapes terminal control characters in it.
fn one_line(text: &str) -> String {
    /// Longer text is shortened.
    const LONGEST: usize = 60;
    let mut line = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == LONGEST => {
                line.push_str("...");
                break;
            }
            _ if is_hostile(c) => line.extend(c.escape_debug()),
            _ => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_filter_is_shortened_around_the_error() {
        let filter = format!("{}?{}", "ä".repeat(1000), "b".repeat(1000));
        let error = Problem::new(2000, "a name", "`?`").in_filter(&filter);
        assert_eq!(error.column(), 1001);
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "filter, column 1001: wanted a name, found `?`");
        let mark = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(mark), Some('?'));
        assert!(lines[1].starts_with("  ...ä") && lines[1].ends_with("b..."));
    }

    #[test]
    fn hostile_characters_are_not_shown() {
        let error = Problem::new(6, "a name", "the end").in_filter("\u{1b}[2J\n\u{202e}");
        assert!(error.to_string().ends_with("   [2J  \n       ^"), "{error}");
    }
}
