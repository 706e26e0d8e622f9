//! Reading TOML files that people write, by hand, so that every mistake is reported with its
//! position.

use core::ops::Range;
use core::str::FromStr;
use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use worldwire_core::{Diagnostic, Source, nearest};

/// Errors beyond this number are only counted.
const MAX_ERRORS: usize = 200;

pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A text and its errors so far.
pub(crate) struct Settings<'t> {
    pub(crate) source: Source<'t>,
    errors: Vec<Diagnostic>,
    /// The number of errors that are only counted.
    omitted: usize,
}

impl<'t> Settings<'t> {
    /// Parses a text. If it is not TOML, the table is empty.
    pub(crate) fn open(name: &str, text: &'t str) -> (Self, DeTable<'t>) {
        let mut settings = Self { source: Source::new(name, text), errors: Vec::new(), omitted: 0 };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            settings.error(error.span().unwrap_or(0..0), error.message());
        }
        (settings, if errors.is_empty() { root.into_inner() } else { DeTable::new() })
    }

    /// Returns what was read, or the errors.
    pub(crate) fn close<R>(mut self, read: R) -> Result<R, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            return Ok(read);
        }
        self.errors.sort_by_key(|error| (error.line(), error.column()));
        if self.omitted > 0 {
            let text = format!("{} more errors omitted", self.omitted);
            self.errors.push(self.source.error(0..0, text));
        }
        Err(self.errors)
    }

    /// The number of errors so far.
    pub(crate) fn count(&self) -> usize {
        self.errors.len() + self.omitted
    }

    pub(crate) fn error(&mut self, span: Range<usize>, message: impl Into<String>) {
        // Building an error scans its whole line, and a hostile file is one long line.
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(self.source.error(span, message));
        } else {
            self.omitted += 1;
        }
    }

    /// The keys and values of a table.
    pub(crate) fn table<'v, 's>(
        &mut self,
        value: &'v Value<'s>,
    ) -> Vec<(&'v Spanned<Cow<'s, str>>, &'v Value<'s>)> {
        match value.get_ref().as_table() {
            Some(table) => table.iter().collect(),
            None => {
                self.error(value.span(), "must be a table");
                Vec::new()
            }
        }
    }

    /// The tables with a name.
    pub(crate) fn each<'s>(
        &mut self,
        name: &str,
        value: &Value<'s>,
        mut read: impl FnMut(&mut Self, &Value<'s>),
    ) {
        match value.get_ref().as_array() {
            Some(items) => items.iter().for_each(|item| read(self, item)),
            None => {
                let message = format!("write each one as a table in double brackets, [[{name}]]");
                self.error(value.span(), message);
            }
        }
    }

    /// Reports an unknown key.
    pub(crate) fn unknown(&mut self, key: &Spanned<Cow<'_, str>>, known: &[&str]) {
        if self.errors.len() >= MAX_ERRORS {
            self.omitted += 1;
            return;
        }
        let message =
            format!("unknown key {}; it must be one of {}", key.get_ref(), known.join(", "));
        let error = self.source.error(key.span(), message);
        self.errors.push(match nearest(key.get_ref(), known.iter().copied()) {
            Some(near) => error.help(format!("did you mean {near}?")),
            None => error,
        });
    }

    pub(crate) fn text(&mut self, value: &Value<'_>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.error(value.span(), "must be a string in quotes");
        }
        text
    }

    /// A whole number, decimal or prefixed with `0x`.
    pub(crate) fn number<N: FromStr + TryFrom<u64>>(
        &mut self,
        value: &Value<'_>,
        message: &str,
    ) -> Option<N> {
        let number = value.get_ref().as_integer().and_then(|number| {
            // The parser has removed the prefix.
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            N::try_from(number).ok()
        });
        if number.is_none() {
            self.error(value.span(), message);
        }
        number
    }

    pub(crate) fn boolean(&mut self, value: &Value<'_>) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.error(value.span(), "must be true or false");
        }
        boolean
    }
}
